/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages say of the calls in them. */
#include "rpc/client/batch.h"
#include "tests/unit/rpc/client/call_rig.h"

static struct call_rig g;
static struct note n, many[64];

static void is_answered(void)
{
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
}

/* Returns a bulk that the server may write. */
static struct ulrpc_bulk *sink(void)
{
	static uint8_t memory[3000];
	static struct iovec iov = { memory, sizeof(memory) };
	struct ulrpc_bulk_conf conf = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SINK };
	struct ulrpc_bulk *bulk;

	cr_assert_eq(ulrpc_bulk_new(g.rpc, &conf, &bulk), 0);
	return bulk;
}

#define KINDS 6	 /* of calls */
#define EACH  10 /* calls of a kind */

/* The calls of a kind are alike in pairs, each of which differs in one thing
 * from the first. */
enum pair { FIRST, OTHER_TIME, NO_DEADLINE, OTHER_METHOD, OTHER_LENGTH };

static enum pair pair_of(unsigned int i)
{
	return (enum pair)(i % EACH / 2);
}

/* Returns how call @i is made. @bulk: what those that have one have. */
static struct ulrpc_call_conf conf_of(unsigned int i, struct ulrpc_bulk **bulk)
{
	struct ulrpc_call_conf conf = within(1000000);

	switch (i / EACH) {
	case 1:
		conf.reply_max = 100;
		conf.priority = ULRPC_PRIORITY_BACKGROUND;
		break;
	case 2:
		conf.deadline = 2000000;
		conf.semantics = ULRPC_IDEMPOTENT;
		break;
	case 3:
		conf.reply_limit = 5000 + i;
		break;
	case 4:
		conf.trace = "00-0af7651916cd43dd8448eb211c80319c-"
			     "b7ad6b7169203331-01";
		break;
	case 5:
		*bulk = sink();
		conf.bulks = bulk;
		conf.nbulks = 1;
	}
	if (pair_of(i) == NO_DEADLINE)
		conf.deadline = ULRPC_NEVER;
	return conf;
}

/* Says @a what conf_of(@i) does? */
static void is_as_made(const struct arrived *a, unsigned int i)
{
	unsigned int kind = i / EACH;
	uint64_t deadline = kind == 2 ? 2000000 : 1000000;

	cr_assert_eq(a->flags, 0);
	cr_assert_eq(a->reply_max, kind == 1 ? 100 : 4096);
	cr_assert_eq(a->priority, kind == 1 ? ULRPC_PRIORITY_BACKGROUND : 0);
	cr_assert_eq(a->semantics, kind == 2 ? ULRPC_IDEMPOTENT : 0);
	cr_assert_eq(a->reply_limit, kind == 3 ? 5000 + i : 0);
	cr_assert_eq(a->traced, kind == 4);
	cr_assert_eq(a->bulk_match != 0, kind == 5);
	if (pair_of(i) == NO_DEADLINE)
		deadline = 0;
	cr_assert_leq(a->remaining, deadline);
	cr_assert(!deadline || a->remaining > deadline - 1000);
}

static void make(unsigned int i, bool alone, struct ulrpc_bulk **bulk)
{
	struct ulrpc_call_conf conf = conf_of(i, bulk);
	enum pair pair = pair_of(i);

	g.rpc->conf.timeout_min = g.rpc->conf.timeout_max =
		alone && pair == OTHER_TIME ? 200000 : 300000;
	many[i] = (struct note){ .sim = g.sim };
	cr_assert_eq(ulrpc_call(g.client, pair == OTHER_METHOD ? 78 : 77,
				"hello", pair == OTHER_LENGTH ? 4 : 5, &conf,
				note_end, &many[i], &many[i].call),
		     0);
}

/* Makes all calls. If they are made @alone, each goes in a message of its own,
 * and OTHER_TIME have another T. */
static void calls_of_all_kinds(bool alone)
{
	struct ulrpc_bulk *bulks[EACH * KINDS] = { NULL };

	rig_open(&g);
	is_answered();
	for (unsigned int i = 0; i < ARRAY_SIZE(bulks); i++) {
		make(i, alone, &bulks[i]);
		if (alone)
			run(&g, 10 * MSEC);
	}
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->messages, 1 + (alone ? ARRAY_SIZE(bulks) : 1));
	for (unsigned int i = 0; i < ARRAY_SIZE(bulks); i++) {
		const struct arrived *a = &g.fake->calls[1 + i];
		enum pair pair = pair_of(i);

		ended_by(&many[i], ULRPC_CAUSE_OK, ULRPC_EXECUTED);
		cr_assert_eq(a->xid, 2 + i);
		cr_assert_eq(a->method, pair == OTHER_METHOD ? 78 : 77);
		cr_assert_eq(a->length, pair == OTHER_LENGTH ? 4 : 5);
		cr_assert_eq(a->timeout,
			     alone && pair == OTHER_TIME ? 200000 : 300000);
		is_as_made(a, i);
		if (bulks[i])
			ulrpc_bulk_close(bulks[i], NULL, NULL);
	}
	rig_close(&g);
}

/* Calls share fields, which are encoded once; each call must arrive with its
 * own. */
Test(batch, of_calls_that_share_fields)
{
	calls_of_all_kinds(false);
}

Test(batch, of_a_call_that_shares_fields_with_those_before)
{
	calls_of_all_kinds(true);
}

/* The second attempt of a call has twice the T. A new call that travels with
 * it, and has the same deadline, has its own T. */
Test(batch, of_calls_with_times_of_their_own)
{
	struct ulrpc_call_conf conf = within(60000000);
	const struct arrived *again, *first;

	rig_open(&g);
	g.rpc->conf.timeout_min = 100000;
	g.rpc->conf.timeout_max = 1000000;
	is_answered();
	g.fake->call_status = WIRE_OVERLOADED;
	g.fake->retry_after = 300000;
	call_with(&g, &many[0], &conf, "hello", 5);
	run(&g, 10 * MSEC);
	/* While another call is under way, which takes all of the window, this
	 * call becomes ready to be sent again. */
	g.fake->mute_calls = true;
	call(&g, &n, 90000000);
	run(&g, 10 * MSEC);
	g.client->window.limit = 1;
	run(&g, 400 * MSEC);
	conf.deadline -= 420000;
	call_with(&g, &many[1], &conf, "hello", 5);
	cr_assert_eq(many[0].call->deadline, many[1].call->deadline);
	g.client->window.limit = 64;
	g.fake->mute_calls = false;
	g.fake->call_status = WIRE_OK;
	cr_assert_eq(g.fake->ncalls, 3);
	fake_echo(g.fake, &g.fake->calls[2]);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->ncalls, 5);
	cr_assert_eq(g.fake->most, 2);
	again = &g.fake->calls[3];
	first = &g.fake->calls[4];
	cr_assert_eq(again->xid, g.fake->calls[1].xid);
	cr_assert_eq(first->timeout, g.fake->calls[1].timeout);
	cr_assert_eq(again->timeout, 2 * first->timeout);
	ended_well(&n);
	ended_well(&many[0]);
	ended_well(&many[1]);
	rig_close(&g);
}
