/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lobby: sockets that wait on one loop for their first message, which tells
 * which loop a socket belongs to. It goes to that loop through a passage
 * (passage.h).
 *
 * A descriptor must not move between loops while its loop knows it. libev
 * forgets a descriptor some time after it was told to, and another thread may
 * have closed the descriptor by then, and opened another one of the same
 * number. So a lobby watches its guests by an epoll instance of its own, which
 * forgets a guest at once, and which is all that the loop sees.
 */
#ifndef BASE_LOBBY_H
#define BASE_LOBBY_H

#include "base/loop.h"

struct lobby_turn;

/* A socket that waits. Embedded in its owner's structure. */
struct lobby_guest {
	/* Set by the owner. Called when there is something to read, an end or
	 * an error included; may make any guest leave, and close the lobby. */
	void (*fn)(struct lobby_guest *g);
	/* The lobby's: */
	struct lobby *lobby; /* NULL: in none */
	int fd;
};

/* Owner: the thread of its loop. */
struct lobby {
	struct env_io io;
	struct loop *loop;
	/* The loop cannot watch the lobby any longer (ENV_ERROR, env.h). */
	void (*failed)(struct lobby *l);
	struct lobby_turn *turn; /* guests that are being called */
};

/* 0, -ENOMEM, or -errno, with nothing left to be closed. @failed: makes all
 * guests leave, and may call lobby_watch(). */
int lobby_open(struct lobby *l, struct loop *loop,
	       void (*failed)(struct lobby *l)) must_check;
/* After `failed`: tries again to watch the lobby. Returns as loop_watch(). */
int lobby_watch(struct lobby *l) must_check;
/* To be called when all guests have left. A lobby that is zero stays so. */
void lobby_close(struct lobby *l);

/* @g, whose fn is set, waits until @fd can be read. @fd stays the caller's. 0
 * or -errno. */
int lobby_enter(struct lobby *l, struct lobby_guest *g, int fd) must_check;
/* @g->fn is not called any more. To be called before the descriptor is closed.
 * Fine for a guest that is in no lobby. */
void lobby_leave(struct lobby_guest *g);
/* Calls those that have something to read now, rather than in the next turn.
 * The lobby may be closed on return. */
void lobby_serve(struct lobby *l);

#endif
