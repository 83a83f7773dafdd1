/* SPDX-License-Identifier: BSD-3-Clause */
/* Going to the background, unless there is a service manager, and pid files. */
#ifndef TOOLS_DAEMON_H
#define TOOLS_DAEMON_H

#include <stdbool.h>

/*
 * Starts a new process, in a session of its own and in the root directory, and
 * returns in that process, with a descriptor for daemon_report(). The calling
 * process waits for the report, and exits with the status in it, or with 1 if
 * the new process ends before. Open files but stdin, stdout and stderr are
 * closed. To be called before there are threads. -errno: there is no new
 * process.
 */
int daemon_begin(void);
/* Ends the process that called daemon_begin(), with @status. To be called once;
 * @fd < 0: does nothing. */
void daemon_report(int fd, int status);
/* Makes stdin, stdout and stderr refer to /dev/null. */
void daemon_detach(void);

/* Was this process started by a service manager that lnet_notify(3) tells? */
bool notify_has_manager(void);

/*
 * Writes the process's id to the file @path, and keeps it locked while the
 * process lives. A file that nobody has locked, as a crash leaves it, is taken
 * over. *@fd_p is for pidfile_drop(). -EEXIST: a running process has locked it;
 * -EMEDIUMTYPE: the file contains something else, and is left as it is; -errno.
 */
int pidfile_take(const char *path, int *fd_p);
/* Removes the pid file, unless another file has its name by now. @fd < 0: does
 * nothing. */
void pidfile_drop(const char *path, int fd);

#endif
