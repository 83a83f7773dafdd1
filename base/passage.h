/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A passage: what is on its way from one loop, the home, to others, counted; so
 * a home that shuts down learns when nothing is under way any more.
 */
#ifndef BASE_PASSAGE_H
#define BASE_PASSAGE_H

#include <stdatomic.h>
#include "base/loop.h"

struct passage {
	struct loop *home;
	struct work closed;
	atomic_uint count; /* on their way, and 1 until it is closed */
};

void passage_init(struct passage *p, struct loop *home, work_fn closed);
/* Home. @w runs on @to, in a later turn, and calls passage_arrived() when
 * nothing of the home is needed any more. A descriptor that goes with @w is
 * watched by no loop meanwhile (lobby.h). Not after passage_close(). */
void passage_send(struct passage *p, struct loop *to, struct work *w);
/* Any thread. The caller may not touch @p afterwards. */
void passage_arrived(struct passage *p);
/* Any thread. One more that is under way, until passage_arrived(); false: all
 * has arrived after passage_close(). */
bool passage_hold(struct passage *p) must_check;
/* Home. Nothing more is sent, but by who has held it. Once all have arrived,
 * `closed` runs at home, in a later turn. */
void passage_close(struct passage *p);

#endif
