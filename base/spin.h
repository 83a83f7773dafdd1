/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a thread polls before it sleeps. Waking up takes longer than many
 * answers do, so polling pays if something comes soon; otherwise it only takes
 * the processor from others. The thread learns from earlier waits: if what
 * ended a wait came within *max ns, the next window is twice as long, else half
 * as long. It does not poll for a time, twice as long each time that it finds
 * the same again,
 *
 *	- if it often waits for a processor, while it polls: others want that;
 *	- if in many windows in a row whoever was waited for needed the
 *	  processor: nothing came before it was taken from the thread, or
 *	  nothing came at all, but soon after the thread had begun to sleep;
 *	- if it may run on too few processors for one that polls, and for those
 *	  that it waits for.
 */
#ifndef BASE_SPIN_H
#define BASE_SPIN_H

#include <pthread.h>
#include "base/env.h"
#include "base/stat.h"

/* ns between two looks at the clock that are more than polling takes, and less
 * than a thread that is woken up, and answers. */
#define SPIN_ROBBED (4 * NSEC_PER_USEC)

struct spin {
	/* What the user sets; the rest is 0 at first. */
	/* *max: the longest window, ns, which any thread may change; 0: there
	 * is no polling. A NULL pointer: likewise */
	const _Atomic uint64_t *max;
	/* counters of windows in which something came, and of those in which
	 * nothing came */
	stat_t *hits, *misses;
	/* the fewest processors on which a thread that polls must be allowed to
	 * run; 0: any */
	unsigned int processors;

	/* ns: how long the thread polls before it sleeps the next time */
	uint64_t window;
	/* of this window: ns, when the thread last looked at the clock; and has
	 * somebody else had its processor? */
	uint64_t looked;
	bool robbed;
	unsigned int vain; /* number of windows in vain, in a row */
	/* ns: since when the system counts what @starved was then; 0: not yet
	 */
	uint64_t since;
	uint64_t starved; /* env_ops.starved() at that time */
	pthread_t of;	  /* the thread that @starved is about */
	/* ns: there is no polling until then; and how long that was. 0: it was
	 * never off */
	uint64_t off_until, off;
};

static inline uint64_t spin_max(const struct spin *s)
{
	return s->max ? atomic_load_explicit(s->max, memory_order_relaxed) : 0;
}

/* A wait of the calling thread begins at @now, ns. @max: spin_max(@s), not 0.
 * Returns for how many ns to poll; 0: not at all. */
uint64_t spin_begin(struct spin *s, struct env *env, uint64_t now,
		    uint64_t max) must_check;
/* The thread polls, and it is @now, ns. To be called for each look at the
 * clock. */
static inline void spin_looked(struct spin *s, uint64_t now)
{
	s->robbed |= now - s->looked > SPIN_ROBBED;
	s->looked = now;
}
/* What was waited for from @begun on, by polling first, has come at @now, ns.
 * @hit: while the thread polled. */
void spin_end(struct spin *s, uint64_t begun, uint64_t now, bool hit);

#endif
