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

/* Borrows @watch until fork_watch_del(). Returns 0 or -ENOMEM. */
int fork_watch_add(struct fork_watch *watch) must_check;
void fork_watch_del(struct fork_watch *watch);

/* Returns a number that differs between a parent and its children. An object
 * that may outlive its node keeps it, to find out later whether it is used in a
 * child. */
unsigned int fork_generation(void);

/* For descriptors of which children are to have no copy. fork_hold() makes
 * threads that call fork() wait; then the caller makes the descriptor @fd;
 * fork_fd_made() lets the threads go on. It returns @fd, which may be negative,
 * and keeps errno. Without memory to remember @fd, children get a copy of it.
 */
void fork_hold(void);
int fork_fd_made(int fd);
/* Lets the threads go on, where what the caller has made is no descriptor: a
 * mapping, until it has MADV_DONTFORK. */
void fork_done(void);
/* Closes a descriptor that fork_fd_made() has returned. */
void fork_fd_close(int fd);
/* For a descriptor that another library makes and closes: fork_fd_add() after
 * it was made, fork_fd_del() before it is closed. */
void fork_fd_add(int fd);
void fork_fd_del(int fd);

#endif
