/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a child of fork() must not go on using. Such a child has the memory and
 * the descriptors of its parent, but only the thread that called fork(): it
 * would wait for threads that it does not have, and what it wrote to a socket
 * would get among the bytes of its parent. So in a child, before fork()
 * returns, watches are called and descriptors closed. That includes copies of
 * sockets: with those, a peer would not notice the end of the parent.
 *
 * Not for vfork(), posix_spawn(), _Fork() and clone(), which call nobody; their
 * children are meant to call exec.
 *
 * This state is the process's, as fork() is: the only such state of the
 * library. Any thread.
 */
#ifndef BASE_FORK_H
#define BASE_FORK_H

#include "base/list.h"

struct fork_watch {
	struct list link;
	/* Called in the child, on the thread that called fork(). Other threads
	 * of the parent may have been in the middle of anything, and may have
	 * held any lock. */
	void (*in_child)(struct fork_watch *watch);
};

/* Borrows @watch until fork_watch_del(). 0 or -ENOMEM. */
int fork_watch_add(struct fork_watch *watch) must_check;
void fork_watch_del(struct fork_watch *watch);

/* A number that differs from that of the parent, for objects that may outlive
 * their node. */
unsigned int fork_generation(void);

/* Descriptors that children are to have no copy of. fork_hold() makes others
 * wait who call fork(); then the descriptor @fd is made; fork_fd_made() lets
 * the others go on, and returns @fd, which may be negative, as errno is kept.
 * Without memory to remember @fd, children get a copy. */
void fork_hold(void);
int fork_fd_made(int fd);
/* Closes a descriptor of fork_fd_made(). */
void fork_fd_close(int fd);
/* For descriptors that another library makes and closes: after it has made
 * @fd, and before it closes @fd. */
void fork_fd_add(int fd);
void fork_fd_del(int fd);

#endif
