/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stats/slow.h"

#include <stdlib.h>

#include "rpc/run.h"
#include "rpc/text.h"

_Static_assert(SLOW_TIMES == STAT_TIMES_MAX && SLOW_TRACE == TRACE_LENGTH,
	       "room for all times, and for a trace");
_Static_assert((int)STAT_CALL_TIME_total == 0 &&
		       (int)STAT_REQUEST_TIME_total == 0,
	       "total_of()");

static uint64_t total_of(const struct slow_entry *e)
{
	return e->times[0];
}

/* Returns the entry with the least total time. There is one. */
static struct slow_entry *table_least(struct slow_table *t)
{
	struct slow_entry *least = &t->entries[0];

	for (unsigned int i = 1; i < t->n; i++)
		if (total_of(&t->entries[i]) < total_of(least))
			least = &t->entries[i];
	return least;
}

static void slow_put(struct slow *sl, const struct slow_entry *e)
{
	struct slow_table *t = &sl->now;

	if (total_of(e) <= sl->least)
		return;
	*(t->n < SLOW_PLACES ? &t->entries[t->n++] : table_least(t)) = *e;
	if (t->n == SLOW_PLACES)
		sl->least = total_of(table_least(t));
}

/* Begins the next window if that of the table is over. */
static void slow_turn(struct slow *sl, uint64_t now)
{
	if (now < sl->until)
		return;
	if (now - sl->until < SLOW_WINDOW)
		sl->before = sl->now;
	else
		sl->before.n = 0;
	sl->now.n = 0;
	sl->least = 0;
	sl->until = now + SLOW_WINDOW;
}

void slow_add(struct slow *sl, const struct slow_entry *e)
{
	slow_turn(sl, e->ended);
	slow_put(sl, e);
}

static void table_merge(struct slow *to, const struct slow_table *from,
			uint64_t now)
{
	for (unsigned int i = 0; i < from->n; i++) {
		struct slow_entry e = from->entries[i];

		e.ended = now > e.ended ? now - e.ended : 0;
		if (e.ended < 2 * SLOW_WINDOW)
			slow_put(to, &e);
	}
}

void slow_merge(struct slow *to, const struct slow *from, uint64_t now)
{
	table_merge(to, &from->now, now);
	table_merge(to, &from->before, now);
}

static int slower_first(const void *a, const void *b)
{
	const struct slow_entry *x = a, *y = b;

	if (total_of(x) != total_of(y))
		return total_of(x) > total_of(y) ? -1 : 1;
	return (x->ended > y->ended) - (x->ended < y->ended);
}

void slow_sort(struct slow *sum)
{
	qsort(sum->now.entries, sum->now.n, sizeof(sum->now.entries[0]),
	      slower_first);
}
