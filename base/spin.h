/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a loop polls before it sleeps. Waking up takes longer than many
 * answers do, so whoever expects one soon is better off looking for it; whoever
 * does not only takes the processor from others. Which of the two it is, the
 * waits before tell: if what was waited for came within the longest window
 * allowed (while polling, or too late for that), the window is doubled, else it
 * is halved.
 *
 * Knows no clock. Thread: the loop's owner.
 */
#ifndef BASE_SPIN_H
#define BASE_SPIN_H

#include "base/stat.h"

#define SPIN_MIN NSEC_PER_USEC /* of a window, so that it can grow again */

struct spin {
	const _Atomic uint64_t
		*max;	       /* ns; any thread may change it. 0: the loop
				      * does not poll. NULL: never */
	stat_t *hits, *misses; /* windows in which something came, or nothing */
	uint64_t window;       /* ns */
};

/* The longest window, ns; 0: sleep at once. */
static inline uint64_t spin_max(const struct spin *s)
{
	return s->max ? atomic_load_explicit(s->max, memory_order_relaxed) : 0;
}

/* How long to poll now, ns. @max: spin_max(), not 0. */
static inline uint64_t spin_window(struct spin *s, uint64_t max)
{
	s->window = MIN(MAX(s->window, SPIN_MIN), max);
	return s->window;
}

/* The wait is over: it took @waited ns, and @hit says whether polling ended
 * it. */
static inline void spin_learn(struct spin *s, uint64_t max, uint64_t waited,
			      bool hit)
{
	stat_inc(hit ? s->hits : s->misses);
	s->window = waited <= max ? 2 * s->window : s->window / 2;
}

#endif
