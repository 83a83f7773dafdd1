/* SPDX-License-Identifier: BSD-3-Clause */
/* A process in the background, whose parent waits until it is ready. */
#ifndef TOOLS_DAEMON_H
#define TOOLS_DAEMON_H

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

#endif
