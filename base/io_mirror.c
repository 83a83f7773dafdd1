/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/io_mirror.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/env.h"

void io_mirror_init(struct io_mirror *m)
{
	m->fd = -1;
	atomic_init(&m->bell, -1);
}

static int mirror_ctl(struct io_mirror *m, int op, int fd, int events)
{
	struct epoll_event ev = { .data.fd = fd };

	if (events & ENV_READ)
		ev.events |= EPOLLIN;
	if (events & ENV_WRITE)
		ev.events |= EPOLLOUT;
	return epoll_ctl(m->fd, op, fd, &ev) ? -errno : 0;
}

int io_mirror_open(struct io_mirror *m)
{
	int bell, rc;

	m->fd = epoll_create1(EPOLL_CLOEXEC);
	if (m->fd < 0)
		return -errno;
	bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = bell < 0 ? -errno : mirror_ctl(m, EPOLL_CTL_ADD, bell, ENV_READ);
	/* The store, and the load in io_mirror_ring(), are sequentially
	 * consistent. */
	if (!rc)
		atomic_store(&m->bell, bell);
	else
		io_mirror_close(m);
	if (rc && bell >= 0)
		close(bell);
	return rc;
}

void io_mirror_close(struct io_mirror *m)
{
	int bell = atomic_exchange(&m->bell, -1);

	if (bell >= 0)
		close(bell);
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

int io_mirror_set(struct io_mirror *m, int fd, int before, int events)
{
	int op = !before  ? EPOLL_CTL_ADD
		 : events ? EPOLL_CTL_MOD
			  : EPOLL_CTL_DEL;

	if (!io_mirror_is_open(m) || events == before)
		return 0;
	return mirror_ctl(m, op, fd, events);
}

void io_mirror_ring(struct io_mirror *m)
{
	int bell = atomic_load(&m->bell);
	uint64_t one = 1;

	if (bell >= 0)
		BUG_ON(write(bell, &one, sizeof(one)) < 0 && errno != EAGAIN);
}

void io_mirror_hush(struct io_mirror *m)
{
	int bell = atomic_load_explicit(&m->bell, memory_order_relaxed);
	uint64_t rung;

	if (bell >= 0)
		BUG_ON(read(bell, &rung, sizeof(rung)) < 0 && errno != EAGAIN);
}
