/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns that take too long, and who made them so: whoever blocks in a turn
 * keeps everybody else of that loop waiting, and nothing shows it.
 *
 * Each turn is measured by one look at a cheap clock at its end. Calls of what
 * may block are not measured one by one, until a turn has been too long: then
 * each of them is for a while, so that the one that does it again is named.
 * Each name is said once.
 *
 * Thread: the loop's owner.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stdarg.h>
#include "base/util.h"

#define GUARD_LONG  (500 * NSEC_PER_MSEC) /* a turn, or a call, is too long */
#define GUARD_WATCH (60 * NSEC_PER_SEC)	  /* then calls are measured */
#define GUARD_NAMES 16 /* remembered as logged; no more are logged */

struct guard {
	bool watching;	/* calls are measured */
	uint64_t until; /* ns: calls are measured until then */
	bool named;	/* a call of this turn was */
	unsigned int nsaid;
	uint64_t said[GUARD_NAMES]; /* hashes of names */
};

void guard_init(struct guard *g);
/* A turn, which began at @begun, has ended at @now (ns; may be a little
 * behind). */
void guard_turn_slow(struct guard *g, uint64_t begun, uint64_t now);
static inline void guard_turn(struct guard *g, uint64_t begun, uint64_t now)
{
	if (unlikely(now > begun + GUARD_LONG) || unlikely(g->watching))
		guard_turn_slow(g, begun, now);
}
/* A call has taken @ns. The name, as printf() makes it, is complete for people:
 * "the handler of ..." */
void guard_call(struct guard *g, uint64_t ns, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

#endif
