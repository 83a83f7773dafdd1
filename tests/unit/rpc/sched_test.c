/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "rpc/sched.h"

#define ALL ((1u << LANES) - 1)

static struct sched_item items[64];
static struct lanes lanes;

static void put(unsigned int i, enum sched_lane lane)
{
	items[i].lane = (uint8_t)lane;
	lanes_put(&lanes, &items[i], 0);
	cr_assert(items[i].queued);
}

static int take(unsigned int mask)
{
	uint64_t again = TIME_NEVER;
	struct sched_item *item = lanes_take(&lanes, mask, 0, &again);

	if (!item)
		return -1;
	cr_assert_not(item->queued);
	return (int)(item - items);
}

static void begin(unsigned int ratio)
{
	cr_assert_eq(lanes_init(&lanes, sched_find(NULL), ratio), 0);
}

Test(sched, policies)
{
	cr_assert_eq(sched_find(NULL), &sched_fifo);
	cr_assert_eq(sched_find("fifo"), &sched_fifo);
	cr_assert_null(sched_find("lifo"));
}

Test(sched, fifo)
{
	begin(10);
	for (unsigned int i = 0; i < 10; i++)
		put(i, LANE_NORMAL);
	lanes_remove(&lanes, &items[3]);
	for (int i = 0; i < 10; i++)
		if (i != 3)
			cr_assert_eq(take(ALL), i);
	cr_assert_eq(take(ALL), -1);
	cr_assert_eq(lanes.queued, 0);
	lanes_fini(&lanes);
}

Test(sched, high_alone_is_not_held_up)
{
	begin(2);
	for (unsigned int i = 0; i < 8; i++)
		put(i, LANE_HIGH);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(take(ALL), i);
	/* and that has not used up its row */
	put(0, LANE_NORMAL);
	put(1, LANE_HIGH);
	cr_assert_eq(take(ALL), 1);
	cr_assert_eq(take(ALL), 0);
	lanes_fini(&lanes);
}

Test(sched, every_lane_has_its_turn)
{
	unsigned int n[LANES] = { 0 };

	begin(2);
	for (unsigned int i = 0; i < 60; i++)
		put(i, (enum sched_lane)(i / 20));
	for (unsigned int i = 0; i < 27; i++)
		n[take(ALL) / 20]++;
	cr_assert_eq(n[LANE_HIGH], 18);
	cr_assert_eq(n[LANE_NORMAL], 6);
	cr_assert_eq(n[LANE_BACKGROUND], 3);
	while (take(ALL) >= 0)
		;
	lanes_fini(&lanes);
}

/* A lane that must not be served now waits, and counts for nothing. */
Test(sched, mask)
{
	begin(1);
	put(0, LANE_NORMAL);
	put(1, LANE_HIGH);
	put(2, LANE_HIGH);
	cr_assert_eq(take(1u << LANE_HIGH), 1);
	cr_assert_eq(take(1u << LANE_HIGH), 2);
	cr_assert_eq(take(1u << LANE_HIGH), -1);
	cr_assert_eq(take(ALL), 0);
	lanes_fini(&lanes);
}

/* ---- a policy that holds back ---- */

static struct sched slow = { NULL };
static struct sched_item *slow_item;

static struct sched_item *slow_dequeue(struct sched *s, uint64_t now,
				       uint64_t *again)
{
	struct sched_item *item = slow_item;

	(void)s;
	if (now < 100) {
		*again = MIN(*again, 100);
		return NULL;
	}
	slow_item = NULL;
	return item;
}

static void slow_enqueue(struct sched *s, struct sched_item *item, uint64_t now)
{
	(void)s;
	(void)now;
	slow_item = item;
}

static struct sched *slow_new(void)
{
	return &slow;
}

static void slow_free(struct sched *s)
{
	(void)s;
}

Test(sched, held_back)
{
	static const struct sched_ops ops = {
		.name = "slow",
		.new = slow_new,
		.free = slow_free,
		.enqueue = slow_enqueue,
		.dequeue = slow_dequeue,
	};
	uint64_t again = TIME_NEVER;

	slow.ops = &ops;
	cr_assert_eq(lanes_init(&lanes, &ops, 1), 0);
	put(0, LANE_NORMAL);
	cr_assert_null(lanes_take(&lanes, ALL, 50, &again));
	cr_assert_eq(again, 100);
	cr_assert_eq(lanes_take(&lanes, ALL, 100, &again), &items[0]);
	lanes_fini(&lanes);
}
