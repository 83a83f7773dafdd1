/* SPDX-License-Identifier: BSD-3-Clause */
/* Loops on the system's clock, and pipes for them to watch. */
#ifndef TESTS_LOOP_RIG_H
#define TESTS_LOOP_RIG_H

#include <time.h>
#include <unistd.h>

#include "base/loop.h"
#include "tests/unit/base/note.h"

static inline struct loop *make_loop(struct ev_loop *ev)
{
	struct loop *l;
	struct env *e;

	cr_assert_eq(env_ev_new(ev, &e), 0);
	cr_assert_eq(loop_new(e, &l), 0);
	return l;
}

static inline void sleep_ms(unsigned int ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000L };

	nanosleep(&t, NULL);
}

struct pipe_io {
	struct env_io io;
	struct loop *loop;
	int fds[2];
	unsigned int reads;
	unsigned int writes;
};

static inline void on_pipe(struct env_io *io, int revents)
{
	struct pipe_io *p = container_of(io, struct pipe_io, io);
	char c;

	cr_assert_eq(loop_current(), p->loop);
	if (revents & ENV_READ) {
		p->reads++;
		if (read(io->fd, &c, 1) == 0)
			loop_unwatch(p->loop, io);
	}
	if (revents & ENV_WRITE)
		p->writes++;
}

static inline void pipe_init(struct pipe_io *p, struct loop *l, int end)
{
	*p = (struct pipe_io){ .loop = l };
	cr_assert_eq(pipe(p->fds), 0);
	p->io.fd = p->fds[end];
	p->io.fn = on_pipe;
	p->io.events = end ? ENV_WRITE : ENV_READ;
}

#endif
