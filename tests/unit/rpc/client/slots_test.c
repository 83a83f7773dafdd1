/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots: each is held by one call at a time, the slot that has been free for
 * longest is taken first, and no more are used than the server has granted. */
#include "rpc/client/slots.h"
#include "tests/unit/rpc/client/call_rig.h"

static struct slots s;
static struct ulrpc_call holder[2];

static void begin(void)
{
	cr_assert_eq(slots_init(&s), 0);
}

static void take(uint32_t want)
{
	cr_assert_eq(slots_have(&s, 1), 1);
	cr_assert_eq(slots_take(&s, &holder[0]), want);
	cr_assert_eq(slots_find(&s, want), &holder[0]);
}

static void put(uint32_t slot)
{
	slots_put(&s, slot);
	cr_assert_null(slots_find(&s, slot));
}

Test(slots, all_are_used_in_turn)
{
	begin();
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < SLOTS_FIRST; i++) {
			take(i);
			put(i);
		}
	}
	slots_fini(&s);
}

Test(slots, the_one_that_is_free_for_longest_is_taken)
{
	begin();
	for (uint32_t i = 0; i < SLOTS_FIRST; i++)
		take(i);
	put(7);
	put(3);
	put(60);
	take(7);
	put(7);
	take(3);
	take(60);
	take(7);
	slots_fini(&s);
}

Test(slots, there_are_more_when_they_are_needed)
{
	begin();
	take(0);
	take(1);
	put(0);
	cr_assert_eq(slots_have(&s, SLOTS_FIRST), SLOTS_FIRST);
	cr_assert_eq(s.made, 2 * SLOTS_FIRST);
	for (uint32_t i = 2; i < SLOTS_FIRST; i++)
		take(i);
	take(0);
	for (uint32_t i = SLOTS_FIRST; i < SLOTS_DEFAULT; i++)
		take(i);
	cr_assert_eq(slots_have(&s, 5), 0);
	put(99);
	cr_assert_eq(slots_have(&s, 5), 1);
	slots_grant(&s, 2 * SLOTS_DEFAULT);
	cr_assert_geq(slots_have(&s, 5), 5);
	slots_fini(&s);
}

Test(slots, a_grant_has_bounds)
{
	begin();
	slots_grant(&s, UINT32_MAX);
	cr_assert_eq(slots_have(&s, UINT32_MAX), SLOTS_MAX);
	slots_grant(&s, 0);
	cr_assert_eq(slots_have(&s, 2), 1);
	slots_fini(&s);
}

/* A server that has restarted may grant fewer slots than before. */
Test(slots, those_that_are_not_granted_any_more_go)
{
	begin();
	for (uint32_t i = 0; i < 6; i++)
		take(i);
	put(1);
	slots_grant(&s, 4);
	cr_assert_eq(slots_have(&s, 9), 1);
	take(1);
	put(5); /* slot 5 is not granted any more */
	cr_assert_eq(slots_have(&s, 9), 0);
	put(2);
	take(2);
	slots_grant(&s, 6); /* slot 4 is still held */
	cr_assert_eq(slots_have(&s, 9), 1);
	take(5);
	put(4);
	take(4);
	cr_assert_null(slots_find(&s, UINT64_MAX));
	slots_fini(&s);
}

/* ---- slots of calls ---- */

static struct call_rig g;

static uint32_t held(void)
{
	const struct slots *all = &g.client->imp->slots;

	return all->made - slots_free(all);
}

Test(slots, a_call_has_one_until_its_end)
{
	struct note n[3];

	rig_open(&g);
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < 3; i++)
		call(&g, &n[i], 1000000);
	cr_assert_eq(held(), 0);
	run(&g, 100 * MSEC);
	cr_assert_eq(held(), 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert_eq(g.fake->calls[i].slot, i);
	ulrpc_cancel(n[1].call);
	run(&g, 100 * MSEC);
	cr_assert_eq(held(), 2);
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 100 * MSEC);
	ended_well(&n[0]);
	cr_assert_eq(held(), 1);
	run(&g, SEC);
	cr_assert_eq(held(), 0);
	ended_by(&n[1], ULRPC_CAUSE_CANCELED, ULRPC_EXECUTION_UNKNOWN);
	ended_by(&n[2], ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	rig_close(&g);
}

static void grant_two(struct fake *f, struct wire_connected *c)
{
	(void)f;
	c->slots = 2;
}

Test(slots, calls_wait_for_one)
{
	struct note n[5];

	rig_open(&g);
	g.fake->mute_calls = true;
	g.fake->on_connected = grant_two;
	for (unsigned int i = 0; i < 5; i++)
		call(&g, &n[i], 10000000);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	fake_echo(g.fake, &g.fake->calls[1]);
	run(&g, 100 * MSEC);
	ended_well(&n[1]);
	cr_assert_eq(g.fake->ncalls, 3);
	cr_assert_eq(g.fake->calls[2].slot, 1);
	g.fake->mute_calls = false;
	fake_echo(g.fake, &g.fake->calls[2]);
	run(&g, 100 * MSEC);
	for (unsigned int i = 2; i < 5; i++) {
		ended_well(&n[i]);
		cr_assert_eq(g.fake->calls[i].slot, 1);
	}
	ulrpc_cancel(n[0].call);
	run(&g, 100 * MSEC);
	ended_by(&n[0], ULRPC_CAUSE_CANCELED, ULRPC_EXECUTION_UNKNOWN);
	rig_close(&g);
}
