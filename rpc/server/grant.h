/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many calls a client is granted to have in flight at a service, from how
 * long requests wait for workers (as CoDel): if even the one that waited least
 * in 100 ms waited longer than the target, there is a standing queue, which
 * makes everybody wait and nobody's work faster, and the window shrinks to 0.8
 * of what it was; else it grows by an eighth, at least by one. (By one alone it
 * would take minutes to grow back.) A queue that comes and goes is left alone.
 *
 * The window is the same for all hosts, and each client gets its share of its
 * host's: so those who ask for more than others are slowed down first, and who
 * makes many connections has no more than who makes one. Each client is granted
 * one call at least, and the service's window at most, which is what it gets
 * while there is no standing queue.
 *
 * Requests that are run inline do not wait: then everybody has the whole
 * window. Time in the gate (gate.h) does not count.
 *
 * Owner: the CPT.
 */
#ifndef RPC_GRANT_H
#define RPC_GRANT_H

#include "base/util.h"

struct grant {
	uint32_t max;	 /* of a client */
	uint32_t window; /* of a host, now: 1 to grant_most() */
	uint64_t end;	 /* ns: of the 100 ms that are measured; 0: none yet */
	uint64_t least;	 /* ns: that a request has waited in them */
};

/* Clients of one host that are not limited while there is no queue. */
#define GRANT_CLIENTS 64u

void grant_init(struct grant *g, uint32_t max);
/* A request that waited for a worker for @delay ns has been taken by one.
 * @target: ns; @flight: requests under way. */
void grant_sample(struct grant *g, uint64_t delay, uint64_t target,
		  uint32_t flight, uint64_t now);
/* Of one of @clients of a host; 0 counts as 1. */
static inline uint32_t grant_of(const struct grant *g, unsigned int clients)
{
	uint32_t n = g->window / MAX(clients, 1u);

	return MAX(1, MIN(n, g->max));
}

#endif
