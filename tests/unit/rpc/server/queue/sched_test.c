/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "rpc/server/queue/sched.h"

#define ALL ((1u << LANES) - 1)

static struct sched_item items[64];
static struct sched_host hosts[4];
/* clients 0 to 3 are on hosts of their own, 4 to 7 on the same ones */
static struct sched_client clients[8];
static struct lanes lanes;
static struct sched_plan plan;

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

static void begin_with(const char *policy, unsigned int ratio)
{
	cr_assert_eq(sched_plan_parse(policy, &plan, NULL), 0);
	cr_assert_eq(lanes_init(&lanes, &plan, ratio), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(items); i++)
		items[i].client = &clients[0];
	memset(hosts, 0, sizeof(hosts));
	memset(clients, 0, sizeof(clients));
	for (unsigned int i = 0; i < ARRAY_SIZE(clients); i++)
		clients[i].host = &hosts[i % 4];
}

static void begin(unsigned int ratio)
{
	begin_with(NULL, ratio);
}

static const struct sched_ops *order_of(const char *text)
{
	cr_assert_eq(sched_plan_parse(text, &plan, NULL), 0, "%s", text);
	cr_assert_null(plan.rules);
	return plan.ops;
}

Test(sched, policies)
{
	cr_assert_eq(order_of(NULL), &sched_fair);
	cr_assert_eq(order_of("fair"), &sched_fair);
	cr_assert_eq(order_of(" fifo "), &sched_fifo);
	cr_assert_eq(order_of("edf"), &sched_edf);
	cr_assert_eq(order_of("rr"), &sched_rr);
	cr_assert_eq(plan.quantum, 0, "its own");
	cr_assert_eq(order_of("rr quantum=3"), &sched_rr);
	cr_assert_eq(plan.quantum, 3);
}

Test(sched, unknown_policies)
{
	static const struct {
		const char *text;
		int rc;
		size_t offset;
		const char *what;
	} wrong[] = {
		{ "lifo", -EOPNOTSUPP, 0,
		  "'lifo' is no policy: fair, rr, fifo, edf or tbf is "
		  "expected" },
		{ "", -EOPNOTSUPP, 0,
		  "'' is no policy: fair, rr, fifo, edf or tbf is expected" },
		{ "fifo quantum=3", -EINVAL, 5, "fifo has no quantum" },
		{ "rr quantum=0", -EINVAL, 3, "quantum: not from 1 to 65536" },
		{ "rr quantum=4x", -EINVAL, 3, "quantum: not from 1 to 65536" },
		{ "rr fifo", -EINVAL, 3, "fifo: 'tbf' is expected here" },
	};
	struct ulnet_text_error err;

	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		cr_assert_eq(sched_plan_parse(wrong[i].text, &plan, &err),
			     wrong[i].rc, "%s", wrong[i].text);
		cr_assert_eq(err.offset, wrong[i].offset, "%s", wrong[i].text);
		cr_assert_str_eq(err.what, wrong[i].what);
	}
}

static void in_order(const char *policy)
{
	begin_with(policy, 10);
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

Test(sched, of_one_client_in_order)
{
	in_order("fifo");
	in_order("fair");
	in_order("rr");
	in_order("edf");
}

/* ---- fair between clients ---- */

static void put_of(unsigned int i, unsigned int client)
{
	items[i].client = &clients[client];
	put(i, LANE_NORMAL);
}

/* Client 0 has ten items queued; those of other clients come later, and take
 * turns with them. */
Test(sched, fair_in_turn)
{
	static const int order[] = { 0, 20, 30, 1, 21, 2 };

	begin_with("fair", 10);
	for (unsigned int i = 0; i < 10; i++)
		put_of(i, 0);
	put_of(20, 1);
	put_of(21, 1);
	put_of(30, 2);
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++)
		cr_assert_eq(take(ALL), order[i]);
	/* Two clients that come back have a turn in the current round, and no
	 * more than one. */
	put_of(22, 1);
	put_of(32, 2);
	cr_assert_eq(take(ALL), 22);
	cr_assert_eq(take(ALL), 32);
	put_of(23, 1);
	cr_assert_eq(take(ALL), 3);
	cr_assert_eq(take(ALL), 23);
	put_of(24, 1);
	cr_assert_eq(take(ALL), 4);
	cr_assert_eq(take(ALL), 24);
	while (take(ALL) >= 0)
		;
	lanes_fini(&lanes);
}

/* Two clients of one host have, together, as much as a client on another host,
 * and as much as each other. */
Test(sched, fair_between_hosts)
{
	unsigned int n[8] = { 0 };

	begin_with("fair", 10);
	for (unsigned int i = 0; i < 60; i++)
		put_of(i, (const unsigned int[]){ 0, 4, 1 }[i / 20]);
	for (unsigned int i = 0; i < 40; i++)
		n[items[take(ALL)].client - clients]++;
	cr_assert_eq(n[0], 10);
	cr_assert_eq(n[4], 10);
	cr_assert_eq(n[1], 20);
	while (take(ALL) >= 0)
		;
	lanes_fini(&lanes);
}

Test(sched, fair_when_one_gives_up)
{
	begin_with("fair", 10);
	put_of(0, 0);
	put_of(1, 0);
	put_of(10, 1);
	put_of(20, 2);
	lanes_remove(&lanes, &items[10]);
	lanes_remove(&lanes, &items[0]);
	cr_assert_eq(take(ALL), 1);
	cr_assert_eq(take(ALL), 20);
	cr_assert_eq(take(ALL), -1);
	lanes_fini(&lanes);
}

/* ---- round robin ---- */

Test(sched, rr_in_quanta)
{
	static const int order[] = { 0, 1, 2, 20, 30, 31, 32, 3, 4, 5, 33 };

	begin_with("rr quantum=3", 10);
	for (unsigned int i = 0; i < 6; i++)
		put_of(i, 0);
	put_of(20, 1);
	for (unsigned int i = 30; i < 34; i++)
		put_of(i, 2);
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++)
		cr_assert_eq(take(ALL), order[i], "%u", i);
	lanes_fini(&lanes);
}

/* A client whose items are removed in the middle of its turn loses the rest of
 * that turn. */
Test(sched, rr_when_one_gives_up)
{
	begin_with("rr quantum=3", 10);
	for (unsigned int i = 0; i < 3; i++)
		put_of(i, 0);
	put_of(10, 1);
	cr_assert_eq(take(ALL), 0);
	lanes_remove(&lanes, &items[1]);
	lanes_remove(&lanes, &items[2]);
	put_of(3, 0);
	cr_assert_eq(take(ALL), 10);
	cr_assert_eq(take(ALL), 3);
	lanes_fini(&lanes);
}

/* ---- earliest deadline first ---- */

Test(sched, edf)
{
	static const uint64_t deadlines[] = { 50, TIME_NEVER, 20, 50, 10 };
	static const int order[] = { 4, 2, 0, 3, 1 };
	struct sched_item item = { .client = &clients[0] };

	begin_with("edf", 10);
	for (unsigned int i = 0; i < ARRAY_SIZE(deadlines); i++) {
		items[i].deadline = deadlines[i];
		put_of(i, i % 4);
	}
	item.lane = LANE_NORMAL;
	item.deadline = 5;
	cr_assert_eq(lanes_ahead(&lanes, &item), 0, "it would be first");
	item.deadline = 10;
	cr_assert_eq(lanes_ahead(&lanes, &item), 5);
	for (unsigned int i = 0; i < ARRAY_SIZE(order); i++)
		cr_assert_eq(take(ALL), order[i]);
	lanes_fini(&lanes);
}

static unsigned int ahead(unsigned int client, enum sched_lane lane)
{
	struct sched_item item = { .client = &clients[client], .lane = lane };

	return lanes_ahead(&lanes, &item);
}

Test(sched, who_is_ahead)
{
	begin_with("fair", 10);
	for (unsigned int i = 0; i < 20; i++)
		put_of(i, 0);
	put_of(20, 1);
	cr_assert_eq(ahead(0, LANE_NORMAL), 21, "all");
	cr_assert_eq(ahead(1, LANE_NORMAL), 3, "its own, and two turns");
	cr_assert_eq(ahead(2, LANE_NORMAL), 2, "one of each");
	cr_assert_eq(ahead(5, LANE_NORMAL), 3, "after the host's other one");
	cr_assert_eq(ahead(2, LANE_HIGH), 0);
	cr_assert_eq(ahead(2, LANE_BACKGROUND), 10, "ratio");
	while (take(ALL) >= 0)
		;
	lanes_fini(&lanes);
	begin_with("fifo", 10);
	for (unsigned int i = 0; i < 20; i++)
		put_of(i, 0);
	cr_assert_eq(ahead(1, LANE_NORMAL), 20);
	while (take(ALL) >= 0)
		;
	lanes_fini(&lanes);
}

Test(sched, who_is_ahead_by_quanta)
{
	begin_with("rr quantum=4", 10);
	for (unsigned int i = 0; i < 20; i++)
		put_of(i, 0);
	for (unsigned int i = 20; i < 25; i++)
		put_of(i, 1);
	cr_assert_eq(ahead(1, LANE_NORMAL), 13, "its own, and two turns");
	cr_assert_eq(ahead(2, LANE_NORMAL), 8, "a turn of each");
	while (take(ALL) >= 0)
		;
	lanes_fini(&lanes);
}

Test(sched, high_alone_is_not_held_up)
{
	begin(2);
	for (unsigned int i = 0; i < 8; i++)
		put(i, LANE_HIGH);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(take(ALL), i);
	/* The high items above do not count against the next high one. */
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

/* A lane that is not in the mask is not served, and does not affect the turns
 * of the others. */
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

Test(sched, held_back)
{
	static const struct sched_ops ops = {
		.name = "slow",
		.size = sizeof(struct sched),
		.enqueue = slow_enqueue,
		.dequeue = slow_dequeue,
	};
	uint64_t again = TIME_NEVER;

	plan = (struct sched_plan){ .ops = &ops };
	items[0].client = &clients[0];
	cr_assert_eq(lanes_init(&lanes, &plan, 1), 0);
	put(0, LANE_NORMAL);
	cr_assert_null(lanes_take(&lanes, ALL, 50, &again));
	cr_assert_eq(again, 100);
	cr_assert_eq(lanes_take(&lanes, ALL, 100, &again), &items[0]);
	lanes_fini(&lanes);
}
