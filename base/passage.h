/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A passage counts what is on its way from one loop, its home, to other loops.
 * So the home, when it shuts down, learns when everything has arrived.
 */
#ifndef BASE_PASSAGE_H
#define BASE_PASSAGE_H

#include <stdatomic.h>
#include "base/loop.h"

struct passage {
	struct loop *home;
	struct work closed;
	/* number of works and holds on their way, plus 1 until passage_close()
	 */
	atomic_uint count;
};

void passage_init(struct passage *p, struct loop *home, work_fn closed);
/* Runs @w on @to, in a later turn. @w->fn must call passage_arrived() once it
 * needs nothing of the home any more. A descriptor that goes with @w must not
 * be watched by any loop (lobby.h). To be called on the home's thread, before
 * passage_close(). */
void passage_send(struct passage *p, struct loop *to, struct work *w);
/* Something has arrived. The caller may not touch @p afterwards. Any thread. */
void passage_arrived(struct passage *p);
/* Counts one more as on its way, until passage_arrived(). Returns false:
 * passage_close() was called and all has arrived, so it is too late. Any
 * thread. */
bool passage_hold(struct passage *p) must_check;
/* Runs `closed` on the home's thread, in a later turn, once all has arrived. No
 * passage_send() may follow. To be called on the home's thread. */
void passage_close(struct passage *p);

#endif
