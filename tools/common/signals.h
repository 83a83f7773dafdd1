/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGINT and SIGTERM as something to be asked for, which needs no handler. */
#ifndef TOOLS_SIGNALS_H
#define TOOLS_SIGNALS_H

/* Before there are threads: blocks them, and ignores SIGPIPE. Returns a
 * descriptor that is readable when there is one; -errno. */
int signals_open(void);
/* The number of a signal that has come, which is taken; 0: none. Does not
 * wait. */
int signals_take(int fd);
/* From now on a signal ends the program at once, also one that has come and was
 * not taken. */
void signals_release(void);

#endif
