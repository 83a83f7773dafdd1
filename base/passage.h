/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A passage counts what is on its way from one loop, its home, to others, so
 * that a home that shuts down learns when all of that has arrived.
 */
#ifndef BASE_PASSAGE_H
#define BASE_PASSAGE_H

#include <stdatomic.h>
#include "base/loop.h"

struct passage {
	struct loop *home;
	struct work closed;
	atomic_uint count; /* on their way, and 1 until passage_close() */
};

void passage_init(struct passage *p, struct loop *home, work_fn closed);
/* Home, before passage_close(). Runs @w on @to, in a later turn; @w->fn calls
 * passage_arrived() once nothing of the home is needed any more. A descriptor
 * that goes with @w must not be watched by any loop (lobby.h). */
void passage_send(struct passage *p, struct loop *to, struct work *w);
/* Any thread. The caller may not touch @p afterwards. */
void passage_arrived(struct passage *p);
/* Any thread. Counts one more as on its way, until passage_arrived(). False: it
 * is too late, since passage_close() was called and all has arrived. */
bool passage_hold(struct passage *p) must_check;
/* Home. No passage_send() may follow. Once all have arrived, `closed` runs at
 * home, in a later turn. */
void passage_close(struct passage *p);

#endif
