/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides how many calls a client may have in flight at a service, from how
 * long its own requests wait for workers (as CoDel, for each flow). If even the
 * request that waited least in 100 ms waited longer than the target, the client
 * has a standing queue, which makes calls wait and nothing faster: its window
 * shrinks to 0.8 of what it has under way. Else the window grows by an eighth,
 * at least by one. (By one alone it would take minutes to grow back.) A queue
 * that comes and goes is left alone.
 *
 * In a fair queue a client that asks for more than its share is the one that
 * waits, and so is slowed down, and no other. In a queue in order of arrival
 * all wait alike, and clients that have more under way than others lose more.
 *
 * Requests that are run inline do not wait. Time in the gate (gate.h) does not
 * count: the gate only holds back requests above the rate, and nobody else
 * waits because of them.
 *
 * Owner: the CPT of the client's connection.
 */
#ifndef RPC_GRANT_H
#define RPC_GRANT_H

#include "base/util.h"

/* All 0: the client has the whole window. */
struct grant {
	uint32_t window; /* 0: the whole */
	uint64_t end;	 /* ns: of the 100 ms that are measured; 0: none yet */
	uint64_t least;	 /* ns: that a request has waited in them */
};

/* A request that waited for a worker for @delay ns has been taken by one.
 * @target: ns; @whole: the whole window; @flight: requests of the client that
 * are under way. True: the window has shrunk. */
bool grant_sample(struct grant *g, uint64_t delay, uint64_t target,
		  uint32_t whole, uint32_t flight, uint64_t now);
/* 1 to @whole. */
static inline uint32_t grant_of(const struct grant *g, uint32_t whole)
{
	return likely(!g->window) ? whole : g->window;
}

#endif
