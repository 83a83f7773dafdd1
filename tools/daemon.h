/* SPDX-License-Identifier: BSD-3-Clause */
/* A process in the background, whose parent waits until it is ready. */
#ifndef TOOLS_DAEMON_H
#define TOOLS_DAEMON_H

/*
 * Returns in a new process, in a session of its own and in the root directory,
 * what daemon_report() wants. The process that called waits for the report, or
 * for the end of the other one, and exits with the status it is told (else 1).
 * What the new process prints goes where it would have gone until
 * daemon_detach(); other open files are closed. No threads yet. -errno: there
 * is no new process.
 */
int daemon_begin(void);
/* Once; @fd < 0: nobody waits. */
void daemon_report(int fd, int status);
/* stdin, stdout and stderr become /dev/null. */
void daemon_detach(void);

#endif
