/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/queue/grant.h"

#define GRANT_NS (100 * NSEC_PER_MSEC)

static void grant_grow(struct grant *g, uint32_t whole)
{
	uint32_t by = MAX(g->window / 8, 1u);

	g->window = by < whole - g->window ? g->window + by : 0;
}

/* From what is of use: a window may be larger than what is under way. */
static void grant_shrink(struct grant *g, uint32_t whole, uint32_t flight)
{
	uint64_t n = MIN(grant_of(g, whole), flight);

	g->window = (uint32_t)MAX(n * 4 / 5, 1);
}

static bool grant_measured(struct grant *g, uint64_t target, uint32_t whole,
			   uint32_t flight, uint64_t now)
{
	bool shrinks = g->least > target;
	uint64_t empty = (now - g->end) / GRANT_NS;

	if (shrinks)
		grant_shrink(g, whole, flight);
	else if (g->window)
		grant_grow(g, whole);
	/* And those times in which nothing came. */
	for (; g->window && empty; empty--)
		grant_grow(g, whole);
	return shrinks;
}

bool grant_sample(struct grant *g, uint64_t delay, uint64_t target,
		  uint32_t whole, uint32_t flight, uint64_t now)
{
	bool shrinks;

	if (likely(now < g->end)) {
		g->least = MIN(g->least, delay);
		return false;
	}
	shrinks = g->end && grant_measured(g, target, whole, flight, now);
	g->end = now + GRANT_NS;
	g->least = delay;
	return shrinks;
}
