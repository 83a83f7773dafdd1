/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/lobby.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Most guests called in one turn, so that the rest of the loop runs, too. */
#define BATCH 64

/* The guests that epoll_wait() has found, without those that have left since.
 * If a guest closes the lobby, this is freed after the last call. */
struct lobby_turn {
	struct epoll_event events[BATCH];
	int n; /* number of events; 0: no guest is being called */
	bool closed;
};

static void lobby_on_ready(struct env_io *io, int revents)
{
	struct lobby *l = container_of(io, struct lobby, io);

	if (unlikely(revents & ENV_ERROR))
		l->failed(l);
	else
		lobby_serve(l);
}

int lobby_open(struct lobby *l, struct loop *loop,
	       void (*failed)(struct lobby *l))
{
	int rc;

	*l = (struct lobby){ .failed = failed };
	l->turn = calloc(1, sizeof(*l->turn));
	if (!l->turn)
		return -ENOMEM;
	l->io.fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->io.fd < 0) {
		rc = -errno;
		free(l->turn);
		return rc;
	}
	l->loop = loop;
	l->io.events = ENV_READ;
	l->io.fn = lobby_on_ready;
	rc = lobby_watch(l);
	if (rc)
		lobby_close(l);
	return rc;
}

int lobby_watch(struct lobby *l)
{
	return loop_watch(l->loop, &l->io);
}

void lobby_close(struct lobby *l)
{
	if (!l->loop)
		return;
	if (l->turn->n)
		l->turn->closed = true;
	else
		free(l->turn);
	loop_unwatch(l->loop, &l->io);
	close(l->io.fd);
	*l = (struct lobby){ 0 };
}

int lobby_enter(struct lobby *l, struct lobby_guest *g, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = g };

	if (epoll_ctl(l->io.fd, EPOLL_CTL_ADD, fd, &e))
		return -errno;
	g->lobby = l;
	g->fd = fd;
	return 0;
}

void lobby_leave(struct lobby_guest *g)
{
	struct lobby *l = g->lobby;

	if (!l)
		return;
	epoll_ctl(l->io.fd, EPOLL_CTL_DEL, g->fd, NULL);
	g->lobby = NULL;
	for (int i = 0; i < l->turn->n; i++)
		if (l->turn->events[i].data.ptr == g)
			l->turn->events[i].data.ptr = NULL;
}

void lobby_serve(struct lobby *l)
{
	struct lobby_turn *turn = l->turn;

	/* This guest was called by lobby_serve() and has called it again: the
	 * outer call goes on with the other guests, so nothing is to be done
	 * here. */
	if (turn->n)
		return;
	turn->n = MAX(epoll_wait(l->io.fd, turn->events, BATCH, 0), 0);
	for (int i = 0; i < turn->n; i++) {
		struct lobby_guest *g = turn->events[i].data.ptr;

		if (g)
			g->fn(g);
	}
	turn->n = 0;
	if (turn->closed)
		free(turn);
}
