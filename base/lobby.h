/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A lobby: new sockets wait on one loop for their first message, which says to
 * which loop each socket belongs. A passage (passage.h) then sends the socket
 * to that loop.
 *
 * The loop itself must not watch such a descriptor. libev forgets a descriptor
 * only some time after it was told to; by then another thread may have closed
 * it, and opened another one with the same number. So a lobby watches its
 * sockets ("guests") by an epoll instance of its own, which forgets them at
 * once, and the loop watches only that instance.
 */
#ifndef BASE_LOBBY_H
#define BASE_LOBBY_H

#include "base/loop.h"

struct lobby_turn;

/* A socket that waits. Embedded in the user's structure. */
struct lobby_guest {
	/* Set by the user. Called when the socket is readable, ended or in
	 * error; may remove any guest, and close the lobby. */
	void (*fn)(struct lobby_guest *g);
	/* For the lobby's use: */
	struct lobby *lobby; /* NULL: the guest is in no lobby */
	int fd;
};

/* Owner: the thread of its loop. */
struct lobby {
	struct env_io io;
	struct loop *loop;
	/* The loop cannot watch the lobby any longer (ENV_ERROR). Must remove
	 * all guests, and may call lobby_watch(). */
	void (*failed)(struct lobby *l);
	/* the guests that are being called; NULL: none are */
	struct lobby_turn *turn;
};

/* Opens a lobby on @loop. Returns 0; -ENOMEM or -errno: there is nothing to
 * close. */
int lobby_open(struct lobby *l, struct loop *loop,
	       void (*failed)(struct lobby *l)) must_check;
/* After failed() was called: tries again to watch the lobby. Returns the result
 * of loop_watch(). */
int lobby_watch(struct lobby *l) must_check;
/* All guests must have left. No effect on a lobby that is all zero. */
void lobby_close(struct lobby *l);

/* Adds @g, whose fn is set, to wait until @fd is readable. @fd stays the
 * caller's. Returns 0 or -errno. */
int lobby_enter(struct lobby *l, struct lobby_guest *g, int fd) must_check;
/* Removes @g. Must be called before the descriptor is closed. No effect on a
 * guest that is in no lobby. */
void lobby_leave(struct lobby_guest *g);
/* Calls the guests that are ready now, rather than in the next turn. The lobby
 * may be closed on return. */
void lobby_serve(struct lobby *l);

#endif
