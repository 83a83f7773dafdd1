/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/sched.h"

#include <errno.h>
#include <string.h>

/* The first one is the default. */
static const struct sched_ops *const policies[] = {
	&sched_fair,
	&sched_fifo,
};

const struct sched_ops *sched_find(const char *name)
{
	if (!name)
		return policies[0];
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (!strcmp(policies[i]->name, name))
			return policies[i];
	return NULL;
}

/* ---- lanes ---- */

int lanes_init(struct lanes *l, const struct sched_ops *ops, unsigned int ratio)
{
	*l = (struct lanes){ .ratio = ratio };
	for (unsigned int i = 0; i < LANES; i++) {
		l->lane[i].sched = ops->new ();
		if (!l->lane[i].sched) {
			lanes_fini(l);
			return -ENOMEM;
		}
	}
	return 0;
}

void lanes_fini(struct lanes *l)
{
	for (unsigned int i = 0; i < LANES; i++) {
		struct sched *s = l->lane[i].sched;

		if (s)
			s->ops->free(s);
		l->lane[i].sched = NULL;
	}
}

void lanes_put(struct lanes *l, struct sched_item *item, uint64_t now)
{
	struct sched *s = l->lane[item->lane].sched;

	item->queued = true;
	s->ops->enqueue(s, item, now);
	l->lane[item->lane].queued++;
	l->queued++;
}

static void taken(struct lanes *l, struct sched_item *item)
{
	item->queued = false;
	l->lane[item->lane].queued--;
	l->queued--;
}

void lanes_remove(struct lanes *l, struct sched_item *item)
{
	struct sched *s = l->lane[item->lane].sched;

	BUG_ON(!item->queued);
	s->ops->remove(s, item);
	taken(l, item);
}

static bool lower_waits(const struct lanes *l, unsigned int lane,
			unsigned int mask)
{
	while (++lane < LANES)
		if (mask & 1u << lane && l->lane[lane].queued)
			return true;
	return false;
}

static struct sched_item *take_from(struct lanes *l, unsigned int i,
				    unsigned int mask, uint64_t now,
				    uint64_t *again)
{
	struct lane *lane = &l->lane[i];
	struct sched_item *item;

	if (!(mask & 1u << i) || !lane->queued)
		return NULL;
	item = lane->sched->ops->dequeue(lane->sched, now, again);
	if (!item)
		return NULL;
	lane->row = lower_waits(l, i, mask) ? lane->row + 1 : 0;
	taken(l, item);
	return item;
}

struct sched_item *lanes_take(struct lanes *l, unsigned int mask, uint64_t now,
			      uint64_t *again)
{
	/* First those whose row is not over; then, if that leaves nothing,
	 * whatever there is: the row was for the sake of a lane that holds all
	 * of its own back. */
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < LANES; i++) {
			struct sched_item *item;

			if (!pass && l->lane[i].row >= l->ratio &&
			    lower_waits(l, i, mask)) {
				l->lane[i].row = 0;
				continue;
			}
			item = take_from(l, i, mask, now, again);
			if (item)
				return item;
		}
	return NULL;
}

/* Of each higher lane at most `ratio` for each one of this lane, of each lower
 * one at most one for `ratio` of this lane. */
unsigned int lanes_ahead(const struct lanes *l, const struct sched_item *item)
{
	const struct lane *own = &l->lane[item->lane];
	const struct sched_ops *ops = own->sched->ops;
	uint64_t ahead = ops->ahead ? ops->ahead(own->sched, item, own->queued)
				    : own->queued;
	uint64_t n = ahead;

	for (unsigned int i = 0; i < LANES; i++) {
		uint64_t most = i < item->lane ? (ahead + 1) * l->ratio
					       : ahead / l->ratio;

		if (i != item->lane)
			n += MIN(l->lane[i].queued, most);
	}
	return (unsigned int)MIN(n, UINT32_MAX);
}
