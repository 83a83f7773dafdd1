/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/grant.h"

#define GRANT_NS (100 * NSEC_PER_MSEC)
/* After so many 100 ms the window has grown from 1 to anything. */
#define GRANT_STEPS 200

static uint32_t grant_most(const struct grant *g)
{
	return g->max * GRANT_CLIENTS;
}

void grant_init(struct grant *g, uint32_t max)
{
	*g = (struct grant){ .max = MIN(max, UINT32_MAX / GRANT_CLIENTS) };
	g->window = grant_most(g);
}

static void grant_grow(struct grant *g)
{
	uint32_t by = MAX(g->window / 8, 1);

	g->window += MIN(by, grant_most(g) - g->window);
}

/* No window is larger than all that is under way: shrinking begins with what is
 * of use. */
static void grant_shrink(struct grant *g, uint32_t flight)
{
	uint64_t n = MIN(g->window, flight);

	g->window = (uint32_t)MAX(n * 4 / 5, 1);
}

static void grant_measured(struct grant *g, uint64_t target, uint32_t flight,
			   uint64_t now)
{
	uint64_t empty = (now - g->end) / GRANT_NS;

	if (g->least > target)
		grant_shrink(g, flight);
	else
		grant_grow(g);
	/* And those times in which nothing came. */
	for (uint64_t i = 0; i < MIN(empty, GRANT_STEPS); i++)
		grant_grow(g);
}

void grant_sample(struct grant *g, uint64_t delay, uint64_t target,
		  uint32_t flight, uint64_t now)
{
	if (likely(now < g->end)) {
		g->least = MIN(g->least, delay);
		return;
	}
	if (g->end)
		grant_measured(g, target, flight, now);
	g->end = now + GRANT_NS;
	g->least = delay;
}
