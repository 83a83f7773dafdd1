/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One descriptor that is readable when one of those that a loop watches is
 * ready, or when another thread has rung: for those who wait with poll() or
 * epoll of their own instead of with libev, which tells the kernel of changes
 * only when it is about to wait itself, and hears other threads only then.
 *
 * Knows numbers and events (ENV_READ | ENV_WRITE), not the loop.
 */
#ifndef BASE_IO_MIRROR_H
#define BASE_IO_MIRROR_H

#include <stdatomic.h>
#include "base/util.h"

struct io_mirror {
	int fd; /* epoll; -1: there is none. Owner */
	_Atomic int bell; /* eventfd in it; -1: there is none. Any thread */
};

/* All functions but io_mirror_ring() are for the owner. */
void io_mirror_init(struct io_mirror *m);
/* 0; -errno. */
int io_mirror_open(struct io_mirror *m) must_check;
void io_mirror_close(struct io_mirror *m);
static inline bool io_mirror_is_open(const struct io_mirror *m)
{
	return m->fd >= 0;
}

/* From @before to @events, 0 being not watched, at once. No effect while there
 * is no mirror. 0; -errno: nothing has changed. */
int io_mirror_set(struct io_mirror *m, int fd, int before,
		  int events) must_check;

/* Any thread: readable until io_mirror_hush(). The caller has just executed a
 * full fence: an owner that opens the mirror without being seen here sees what
 * the caller has done before. */
void io_mirror_ring(struct io_mirror *m);
/* Before the owner looks for what others have done. */
void io_mirror_hush(struct io_mirror *m);

#endif
