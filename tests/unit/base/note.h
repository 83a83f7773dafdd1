/* SPDX-License-Identifier: BSD-3-Clause */
/* A timer and a piece of work that note when their loop calls them. */
#ifndef TESTS_NOTE_H
#define TESTS_NOTE_H

#include <criterion/criterion.h>
#include "base/loop.h"

struct note {
	struct timer timer;
	struct work work;
	struct loop *loop;
	unsigned int calls;
	uint64_t at;
};

static inline void note_called(struct note *n)
{
	n->calls++;
	n->at = loop_now(n->loop);
	cr_assert_eq(loop_current(), n->loop);
	cr_assert(loop_is_owner(n->loop));
}

static inline void on_timer(struct timer *t)
{
	note_called(container_of(t, struct note, timer));
}

static inline void on_work(struct work *w)
{
	note_called(container_of(w, struct note, work));
}

static inline void note_init(struct note *n, struct loop *l)
{
	*n = (struct note){ .loop = l, .work.fn = on_work };
	timer_init(&n->timer, on_timer);
}

#endif
