/* SPDX-License-Identifier: BSD-3-Clause */
/* A file with the process's id, which is locked while the process lives: one
 * left behind by a crash is no obstacle. */
#ifndef TOOLS_PIDFILE_H
#define TOOLS_PIDFILE_H

/*
 * Makes @path, or takes over one that nobody has locked. *@fd_p is its lock,
 * for pidfile_drop(). -EEXIST: a running process has it; -EMEDIUMTYPE: there is
 * a file that has something else in it, and is left as it is; -errno, and
 * nothing is left.
 */
int pidfile_take(const char *path, int *fd_p);
/* Removes the file, if it is still there. @fd < 0: there is none. */
void pidfile_drop(const char *path, int fd);

#endif
