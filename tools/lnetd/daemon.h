/* SPDX-License-Identifier: BSD-3-Clause */
/* A process in the background: its parent, who waits until it is ready; a
 * service manager, who is told; and the file with its id. */
#ifndef TOOLS_DAEMON_H
#define TOOLS_DAEMON_H

#include <stdbool.h>

/*
 * Returns what daemon_report() wants, in a new process, in a session of its own
 * and in the root directory. The process that called waits for the report, or
 * for the end of the new process, and exits with the status that it is told
 * (else 1). What the new process prints goes where it would have gone until
 * daemon_detach(); other open files are closed. No threads yet. -errno: there
 * is no new process.
 */
int daemon_begin(void);
/* To be called once. @fd < 0: nobody waits. */
void daemon_report(int fd, int status);
/* stdin, stdout and stderr become /dev/null. */
void daemon_detach(void);

/* What a service manager wants to be told, as sd_notify(3) has it: one datagram
 * to the socket in $NOTIFY_SOCKET. Does it want to be told? */
bool notify_wanted(void);
/* @state: "READY=1", lines. 0 also if nobody wants it; -EAFNOSUPPORT: the
 * socket is not of a kind known here; -errno. */
int notify_send(const char *state);

/*
 * A file with the process's id, which is locked while the process lives: one
 * left behind by a crash is no obstacle. Makes @path, or takes over one that
 * nobody has locked. *@fd_p is its lock, for pidfile_drop(). -EEXIST: a running
 * process has it; -EMEDIUMTYPE: there is a file that has something else in it,
 * and is left as it is; -errno, and nothing is left.
 */
int pidfile_take(const char *path, int *fd_p);
/* Removes the file, if it is still there. @fd < 0: there is none. */
void pidfile_drop(const char *path, int fd);

#endif
