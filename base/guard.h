/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns that take too long, and who made them so: whoever blocks in a turn
 * keeps everybody else of that loop waiting, and nothing shows it.
 *
 * Calls of what may block are not measured one by one. But once some ms of a
 * turn are over by the processor's ticks (tick.h), the guard looks at the clock
 * when the next call ends, and then again every few ms. If too much time has
 * passed since the last look, the log names the call that ends, and says that
 * its caller may be to blame. Each name is logged once. The guard looks at the
 * end of a turn, too, which may be too long though no single call is.
 *
 * Thread: the loop's owner.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdarg.h>
#include "base/tick.h"
#include "base/util.h"

#define GUARD_LONG  (500 * NSEC_PER_MSEC) /* a turn, or a call, is too long */
#define GUARD_PAUSE (60 * NSEC_PER_SEC)	  /* between two lines about turns */
#define GUARD_NAMES 16 /* remembered as logged; no more are logged */

struct guard {
	uint64_t late;	      /* tick: calls that end later are looked at */
	uint64_t begun;	      /* ns: this turn */
	uint64_t looked;      /* ns: the last look in this turn, or its begin */
	bool named;	      /* a call of this turn was too long */
	uint64_t quiet_until; /* ns: no turn is logged */
	unsigned int nsaid;
	uint64_t said[GUARD_NAMES]; /* hashes of names */
};

void guard_init(struct guard *g);
/* A turn begins at @now (ns). */
static inline void guard_turn_begin(struct guard *g, uint64_t now)
{
	g->begun = now;
	g->looked = now;
	g->named = false;
	g->late = tick_now() + TICK_WINDOW;
}
/* A turn has ended at @now; needed only if the guard is late. */
void guard_turn_end(struct guard *g, uint64_t now);
/* The time is @now, and no call is to blame for the time until now. */
void guard_look(struct guard *g, uint64_t now);
/* A call, or the turn, ends: is it time to look at the clock? */
static inline bool guard_is_late(const struct guard *g)
{
	return tick_now() > g->late;
}
/* A call ends at @now (ns). @fmt and @args, as for printf(), name it for people
 * who read the log: "the handler of ..." */
void guard_call(struct guard *g, uint64_t now, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

#endif
