/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory for replies: buffers that an import keeps for later calls, and
 * messages that arrive late in them. */
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/call_rig.h"

#define KEPT 4 /* buffers that an import keeps at most */

static struct call_rig g;
static struct note n[8];

static void call_short(unsigned int i, uint64_t us)
{
	struct ulrpc_call_conf conf = { .deadline = us, .reply_max = 64 };

	call_with(&g, &n[i], &conf, "hello", 5);
	run(&g, 10 * MSEC);
}

static uint64_t counted(enum rpc_stat stat)
{
	return g.client->shard->stats->counts[stat];
}

static unsigned int idle(void)
{
	unsigned int count = 0;
	struct list *l;

	for (l = g.client->imp->reply_bufs.next;
	     l != &g.client->imp->reply_bufs; l = l->next)
		count++;
	return count;
}

static void kept_are(unsigned int all, unsigned int unused)
{
	cr_assert_eq(g.client->imp->nreply_bufs, all, "%u",
		     g.client->imp->nreply_bufs);
	cr_assert_eq(idle(), unused, "%u", idle());
}

Test(reply_buf, serves_one_call_after_the_other)
{
	rig_open(&g);
	for (unsigned int i = 0; i < 8; i++) {
		call_short(i, 1000000);
		ended_well(&n[i]);
		kept_are(1, 1);
		cr_assert_eq(g.fake->calls[i].match, g.fake->calls[0].match);
	}
	rig_close(&g);
}

Test(reply_buf, is_not_kept_for_long_replies)
{
	rig_open(&g);
	call(&g, &n[0], 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n[0]);
	kept_are(0, 0);
	rig_close(&g);
}

/* Each call under way has a buffer of its own, in whatever order replies come.
 * The import keeps some of the buffers. */
Test(reply_buf, one_for_each_that_waits)
{
	rig_open(&g);
	call_short(0, 1000000);
	ended_well(&n[0]);
	g.fake->mute_calls = true;
	for (unsigned int i = 1; i < 8; i++)
		call_short(i, 1000000);
	kept_are(KEPT, 0);
	cr_assert_eq(g.fake->ncalls, 8);
	for (unsigned int i = 1; i < 8; i++)
		for (unsigned int k = 1; k < i; k++)
			cr_assert_neq(g.fake->calls[i].match,
				      g.fake->calls[k].match);
	for (unsigned int i = 7; i >= 1; i--) {
		cr_assert_eq(n[i].ended, 0);
		fake_echo(g.fake, &g.fake->calls[i]);
		run(&g, 10 * MSEC);
		ended_well(&n[i]);
	}
	kept_are(KEPT, KEPT);
	rig_close(&g);
}

/* A late copy of a reply lands in the buffer of the next call, which ignores
 * it. */
Test(reply_buf, what_comes_late_is_for_nobody)
{
	rig_open(&g);
	call_short(0, 1000000);
	ended_well(&n[0]);
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 10 * MSEC);
	cr_assert_eq(counted(RPC_STAT_replies_late), 1);

	g.fake->mute_calls = true;
	call_short(1, 1000000);
	cr_assert_eq(g.fake->calls[1].match, g.fake->calls[0].match);
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 10 * MSEC);
	cr_assert_eq(n[1].ended, 0);
	cr_assert_eq(counted(RPC_STAT_replies_unknown), 1);
	fake_echo(g.fake, &g.fake->calls[1]);
	run(&g, 10 * MSEC);
	ended_well(&n[1]);
	kept_are(1, 1);
	rig_close(&g);
}

static void where(void *arg, const struct ulrpc_outcome *o, const void *reply,
		  size_t length)
{
	const uint8_t **p = arg;

	cr_assert_eq(o->cause, ULRPC_CAUSE_OK);
	cr_assert_eq(length, 5);
	*p = reply;
}

/* Messages in one buffer do not overwrite each other: a copy of an earlier
 * reply may still be landing, over another connection. */
Test(reply_buf, messages_lie_one_behind_the_other)
{
	struct ulrpc_call_conf conf = { .deadline = 1000000, .reply_max = 64 };
	const uint8_t *at[3] = { NULL };

	rig_open(&g);
	for (unsigned int i = 0; i < ARRAY_SIZE(at); i++) {
		cr_assert_eq(ulrpc_call(g.client, 77, "hello", 5, &conf, where,
					&at[i], NULL),
			     0);
		run(&g, 10 * MSEC);
		cr_assert_not_null(at[i]);
		cr_assert_eq(g.fake->calls[i].match, g.fake->calls[0].match);
		if (i)
			cr_assert_geq(at[i] - at[i - 1], 5);
		/* The copy of the reply takes room, too. */
		fake_echo(g.fake, &g.fake->calls[i]);
		run(&g, 10 * MSEC);
	}
	cr_assert_eq(at[2] - at[1], at[1] - at[0]);
	kept_are(1, 1);
	rig_close(&g);
}

/* Replies use up a buffer, and the next call gets another one. */
Test(reply_buf, is_replaced_when_it_is_used_up)
{
	unsigned int others = 0;
	uint64_t match = 0;

	rig_open(&g);
	for (unsigned int i = 0; i < 500; i++) {
		struct note one = { 0 };
		struct ulrpc_call_conf conf = { .deadline = 1000000,
						.reply_max = 64 };

		call_with(&g, &one, &conf, "hello", 5);
		run(&g, 10 * MSEC);
		ended_well(&one);
		others += match != g.fake->calls[i % CALLS_SEEN].match;
		match = g.fake->calls[i % CALLS_SEEN].match;
		cr_assert_leq(g.client->imp->nreply_bufs, 1);
	}
	cr_assert_geq(others, 3);
	cr_assert_leq(others, 50);
	rig_close(&g);
}

/* A buffer in which the reply to a canceled or expired call may still land is
 * not given to another call. */
Test(reply_buf, of_a_call_that_is_given_up_goes)
{
	rig_open(&g);
	call_short(0, 1000000);
	ended_well(&n[0]);
	g.fake->mute_calls = true;
	call_short(1, 5000);
	run(&g, 10 * MSEC);
	ended_by(&n[1], ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	kept_are(0, 0);

	g.fake->mute_calls = false;
	call_short(2, 1000000);
	ended_well(&n[2]);
	cr_assert_neq(g.fake->calls[2].match, g.fake->calls[1].match);
	kept_are(1, 1);
	/* The buffer for this reply was unlinked, so LNet drops the reply. */
	fake_echo(g.fake, &g.fake->calls[1]);
	run(&g, 10 * MSEC);
	cr_assert_eq(counted(RPC_STAT_replies_late), 0);
	cr_assert_eq(counted(RPC_STAT_replies_unknown), 0);
	rig_close(&g);
}

/* A message that is not the reply uses up the call's buffer. The reply's match
 * value must find another buffer, although the import also has free ones. */
Test(reply_buf, that_is_used_up_is_found_again)
{
	struct arrived other;

	rig_open(&g);
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i <= KEPT; i++)
		call_short(i, 1000000);
	kept_are(KEPT, 0);
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 10 * MSEC);
	ended_well(&n[0]);
	kept_are(KEPT, 1);

	other = g.fake->calls[KEPT];
	other.xid += 100;
	fake_echo(g.fake, &other);
	run(&g, 10 * MSEC);
	cr_assert_eq(counted(RPC_STAT_replies_unknown), 1);
	kept_are(KEPT, 1);
	fake_echo(g.fake, &g.fake->calls[KEPT]);
	run(&g, 10 * MSEC);
	ended_well(&n[KEPT]);
	g.fake->mute_calls = false;
	rig_close(&g);
}

/* An idle import keeps no buffers: a client of very many servers needs memory
 * only for those that it has called lately. */
Test(reply_buf, are_not_kept_by_an_import_that_rests)
{
	rig_open_with(&g, &(struct ulrpc_conf){ .idle = 1000000 });
	call_short(0, 1000000);
	ended_well(&n[0]);
	kept_are(1, 1);
	run(&g, 2 * SEC);
	cr_assert_eq(g.client->imp->fsm.state, IMPORT_IDLE);
	kept_are(0, 0);
	call_short(1, 1000000);
	ended_well(&n[1]);
	kept_are(1, 1);
	rig_close(&g);
}

Test(reply_buf, after_a_crash_nothing_is_left)
{
	rig_open(&g);
	g.fake->mute_calls = true;
	call_short(0, 1000000);
	g.fake->mute_calls = false;
	call_short(1, 1000000);
	ended_well(&n[1]);
	kept_are(2, 1);
	ulrpc_call_put(n[0].call);
	cr_assert_eq(lnet_sim_crash(g.sim, CLIENT), 0);
	g.crashed = true;
	run(&g, 10 * MSEC);
	rig_close(&g);
}
