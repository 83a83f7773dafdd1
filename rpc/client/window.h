/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many calls of a client may be in flight: slow start. After a connection
 * has been made, or made again, a client begins with a few calls, and may have
 * twice as many as soon as that many were answered, until it has what the
 * server grants (rpc/server/queue/grant.h) and the user allows. So a server
 * that has just come back, with all its clients waiting, is asked for no more
 * than it answers. Calls that it was too busy for do not count as answered.
 *
 * Calls may wait in their handlers, for other calls even. So while calls are
 * held back by slow start, and nothing is answered for WINDOW_PATIENCE, the
 * limit is doubled all the same.
 *
 * Owner: the client's.
 */
#ifndef RPC_WINDOW_H
#define RPC_WINDOW_H

#include "base/util.h"

#define WINDOW_BEGIN	2u /* by default */
#define WINDOW_PATIENCE (500 * NSEC_PER_MSEC)

/* No member is 0, but for @left. */
struct window {
	uint32_t begin; /* the limit of a new connection */
	uint32_t granted;
	uint32_t limit; /* calls in flight, now: 1 to granted */
	uint32_t left;	/* answers until the limit is doubled */
};

static inline bool window_is_slow(const struct window *w)
{
	return w->limit < w->granted;
}

/* A connection begins. */
static inline void window_begin(struct window *w)
{
	w->left = w->limit = MIN(w->begin, w->granted);
}

/* @begin: 0: the default. */
static inline void window_init(struct window *w, uint32_t begin,
			       uint32_t granted)
{
	w->begin = begin ? begin : WINDOW_BEGIN;
	w->granted = granted;
	window_begin(w);
}

/* From now on the server grants @granted calls. */
static inline void window_grant(struct window *w, uint32_t granted)
{
	w->granted = MAX(granted, 1u);
	w->limit = MIN(w->limit, w->granted);
}

static inline void window_double(struct window *w)
{
	w->limit = w->limit > w->granted / 2 ? w->granted : 2 * w->limit;
	w->left = w->limit;
}

/* @n calls were answered. */
static inline void window_served(struct window *w, uint32_t n)
{
	while (window_is_slow(w) && n >= w->left) {
		n -= w->left;
		window_double(w);
	}
	w->left -= MIN(n, w->left);
}

#endif
