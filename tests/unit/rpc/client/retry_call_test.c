/* SPDX-License-Identifier: BSD-3-Clause */
/* The retry rules that callers give, and when the client sends calls again. */
#include "rpc/client/batch.h"
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/call_rig.h"

#define CLIENTS 60

static struct call_rig g;
static struct note n;

static const struct ulrpc_retry none = { 0 };
static const struct ulrpc_retry two = { .policy = ULRPC_BACKOFF_NONE,
					.max = 2 };

/* Opens the rig with a T of 100 ms and @force as the policy for all calls, and
 * connects. */
static void open_with_policy(enum ulrpc_backoff force)
{
	struct ulrpc_conf conf;

	ulrpc_conf_init(&conf);
	conf.timeout_min = conf.timeout_max = 100000;
	conf.force_policy = force;
	rig_open_with(&g, &conf);
	call(&g, &n, 1000000);
	run(&g, 200 * MSEC);
	ended_well(&n);
}

static void call_by(const struct ulrpc_retry *retry, uint64_t deadline)
{
	struct ulrpc_call_conf conf = { .deadline = deadline, .retry = retry };

	call_with(&g, &n, &conf, "hello", 5);
}

static uint64_t refused(void)
{
	return g.client->shard->stats->counts[RPC_STAT_calls_refused];
}

/* ULRPC_FORCE_POLICY overrides the policy that the program forces. ulrpc_open()
 * fails if the variable does not name a policy. */
Test(retry_call, a_policy_may_come_from_the_environment)
{
	struct ulrpc *rpc;

	setenv("ULRPC_FORCE_POLICY", "none", 1);
	open_with_policy(ULRPC_BACKOFF_MAD);
	cr_assert_eq(g.rpc->conf.force_policy, ULRPC_BACKOFF_NONE);
	setenv("ULRPC_FORCE_POLICY", "fool", 1);
	cr_assert_eq(ulrpc_open(lnet_sim_node(g.sim, SERVER), NULL, &rpc),
		     -EINVAL);
	unsetenv("ULRPC_FORCE_POLICY");
	rig_close(&g);
}

/* ---- how many retries ---- */

/* A rule without retries: even a call that is known to be lost is not sent
 * again. */
Test(retry_call, no_retries_are_none)
{
	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->mute_calls = true;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call_by(&none, 10000000);
	run(&g, SEC);
	cr_assert_eq(g.fake->ncalls, 2);
	cr_assert_eq(g.fake->nqueries, 1);
	ended_by(&n, ULRPC_CAUSE_LOST, ULRPC_NOT_EXECUTED);
	cr_assert_eq(n.outcome.retries, 0);
	rig_close(&g);
}

Test(retry_call, no_retries_whatever_policy_is_forced)
{
	for (unsigned int i = 1; i <= ULRPC_BACKOFF_NONE; i++) {
		open_with_policy((enum ulrpc_backoff)i);
		g.fake->call_status = WIRE_OVERLOADED;
		call_by(&none, 10000000);
		run(&g, SEC);
		cr_assert_eq(g.fake->ncalls, 2);
		ended_by(&n, ULRPC_CAUSE_OVERLOADED, ULRPC_NOT_EXECUTED);
		rig_close(&g);
	}
}

Test(retry_call, so_many_and_no_more)
{
	static const uint32_t statuses[] = { WIRE_OVERLOADED, WIRE_EXPIRED };
	static const enum ulrpc_cause causes[] = { ULRPC_CAUSE_OVERLOADED,
						   ULRPC_CAUSE_EXPIRED };

	for (unsigned int i = 0; i < ARRAY_SIZE(statuses); i++) {
		open_with_policy(ULRPC_BACKOFF_DEFAULT);
		g.fake->call_status = statuses[i];
		call_by(&two, 10000000);
		run(&g, SEC);
		cr_assert_eq(g.fake->ncalls, 4);
		ended_by(&n, causes[i], ULRPC_NOT_EXECUTED);
		cr_assert_eq(n.outcome.retries, 2);
		/* The last refusal has ended the call, and is not counted. */
		cr_assert_eq(n.outcome.refusals, 2);
		cr_assert_eq(refused(), 2);
		rig_close(&g);
	}
}

/* Ends everything while the call is under way. */
static void call_left(void)
{
	rig_close(&g);
	ulrpc_call_put(n.call);
}

/* With a least time, a call that is not answered is asked about later, and one
 * that is refused is sent again later; but never too late for another attempt.
 */
Test(retry_call, the_least_time)
{
	static const struct ulrpc_retry slowly = { .policy = ULRPC_BACKOFF_MAD,
						   .max = ULRPC_RETRIES_ANY,
						   .least = 3000000 };

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->mute_calls = true;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call_by(&slowly, 60000000);
	run(&g, 2900 * MSEC);
	cr_assert_eq(g.fake->nqueries, 0);
	cr_assert_eq(g.fake->ncalls, 2);
	run(&g, 200 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	cr_assert_eq(g.fake->ncalls, 3);
	call_left();

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->call_status = WIRE_OVERLOADED;
	call_by(&slowly, 60000000);
	run(&g, 2900 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	run(&g, 200 * MSEC);
	cr_assert_eq(g.fake->ncalls, 3);
	call_left();

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->mute_calls = true;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call_by(&slowly, 2000000);
	run(&g, 1500 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	cr_assert_eq(g.fake->ncalls, 3);
	call_left();
}

/* Calls of one message may have several rules. */
Test(retry_call, the_least_time_of_each_call)
{
	static const struct ulrpc_retry slowly = { .policy = ULRPC_BACKOFF_NONE,
						   .max = ULRPC_RETRIES_ANY,
						   .least = 3000000 };

	for (unsigned int slow = 0; slow < 2; slow++) {
		struct note notes[2];

		open_with_policy(ULRPC_BACKOFF_DEFAULT);
		g.fake->mute_calls = true;
		for (unsigned int i = 0; i < 2; i++) {
			struct ulrpc_call_conf conf = within(60000000);

			if (i == slow)
				conf.retry = &slowly;
			call_with(&g, &notes[i], &conf, "hello", 5);
		}
		run(&g, 10 * MSEC);
		cr_assert_eq(g.fake->messages, 2);
		run(&g, 2890 * MSEC);
		cr_assert_eq(g.fake->nqueries, 1);
		cr_assert_eq(g.fake->queries[0].xid, notes[!slow].call->xid);
		run(&g, 200 * MSEC);
		cr_assert_eq(g.fake->nqueries, 2);
		cr_assert_eq(g.fake->queries[1].xid, notes[slow].call->xid);
		rig_close(&g);
		for (unsigned int i = 0; i < 2; i++)
			ulrpc_call_put(notes[i].call);
	}
}

Test(retry_call, lost_messages_are_counted)
{
	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->mute_calls = true;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call_by(&two, 10000000);
	run(&g, 9 * SEC);
	cr_assert_eq(g.fake->ncalls, 4);
	cr_assert_eq(g.fake->nqueries, 3);
	ended_by(&n, ULRPC_CAUSE_LOST, ULRPC_NOT_EXECUTED);
	cr_assert_eq(n.outcome.retries, 2);
	cr_assert_eq(n.outcome.refusals, 0);
	cr_assert_eq(refused(), 0);
	rig_close(&g);
}

/* A rule without retries: the server has forgotten whether it executed the
 * call. */
Test(retry_call, no_repetition_of_what_may_have_been_executed)
{
	struct ulrpc_call_conf conf = { .deadline = 10000000,
					.retry = &none,
					.semantics = ULRPC_IDEMPOTENT };

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->unknown_for = 0;
	g.fake->forgets = true;
	g.fake->call_status = WIRE_NOT_CONNECTED;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, SEC);
	cr_assert_eq(g.fake->ncalls, 2);
	ended_by(&n, ULRPC_CAUSE_FORGOTTEN, ULRPC_EXECUTION_UNKNOWN);
	rig_close(&g);
}

/* ---- callers that want to be told of overload ---- */

Test(retry_call, told_of_overload)
{
	static const struct ulrpc_retry tell = { .max = ULRPC_RETRIES_ANY,
						 .tell_overloaded = true };

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->retry_after = 4321;
	g.fake->call_status = WIRE_OVERLOADED;
	call_by(&tell, 10000000);
	run(&g, 10 * MSEC);
	ended_by(&n, ULRPC_CAUSE_OVERLOADED, ULRPC_NOT_EXECUTED);
	cr_assert_eq(n.outcome.retry_after, 4321);
	cr_assert_eq(g.fake->ncalls, 2);
	rig_close(&g);
}

/* The client waits as long as the server asks it to, and tries again until the
 * deadline. */
Test(retry_call, overload_that_passes)
{
	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->retry_after = 300000;
	g.fake->call_status = WIRE_OVERLOADED;
	call_by(NULL, 10000000);
	run(&g, 290 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	run(&g, 20 * MSEC);
	cr_assert_eq(g.fake->ncalls, 3);
	g.fake->call_status = WIRE_OK;
	run(&g, 310 * MSEC);
	ended_well(&n);
	cr_assert_eq(n.outcome.retries, 2);
	cr_assert_eq(n.outcome.refusals, 2);
	rig_close(&g);
}

Test(retry_call, overload_that_does_not_pass)
{
	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->retry_after = 300000;
	g.fake->call_status = WIRE_OVERLOADED;
	call_by(NULL, 1000000);
	run(&g, 950 * MSEC);
	/* The call ends early, as the next attempt would come after the
	 * deadline. */
	ended_by(&n, ULRPC_CAUSE_OVERLOADED, ULRPC_NOT_EXECUTED);
	cr_assert_lt(n.outcome.total, 910000);
	cr_assert_eq(n.outcome.retries, 3);
	rig_close(&g);
}

/* A call without a deadline is tried again after a limited time, however long
 * the server asks it to wait. */
Test(retry_call, overload_for_ever)
{
	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->retry_after = UINT32_MAX; /* us: over an hour */
	g.fake->call_status = WIRE_OVERLOADED;
	call_by(NULL, ULRPC_NEVER);
	run(&g, 29 * SEC);
	cr_assert_eq(g.fake->ncalls, 2);
	g.fake->call_status = WIRE_OK;
	run(&g, 2 * SEC);
	ended_well(&n);
	rig_close(&g);
}

/* ---- pauses ---- */

/* Makes a call that is refused as the server is overloaded. Returns the ns from
 * the call until its second attempt. */
static uint64_t pause_of(const struct ulrpc_retry *retry)
{
	unsigned int before = g.fake->ncalls;
	uint64_t begin = lnet_sim_now(g.sim), end;

	g.fake->call_status = WIRE_OVERLOADED;
	call_by(retry, 30000000);
	while (g.fake->ncalls < before + 2)
		run(&g, MSEC);
	end = lnet_sim_now(g.sim);
	ulrpc_cancel(n.call);
	run(&g, SEC); /* The budget for retries recovers meanwhile. */
	cr_assert_eq(n.outcome.cause, ULRPC_CAUSE_CANCELED);
	ulrpc_call_put(n.call);
	return end - begin;
}

/* Sets *@least and *@most to the shortest and longest of CLIENTS pauses. */
static void pauses_of(const struct ulrpc_retry *retry, uint64_t *least,
		      uint64_t *most)
{
	*least = TIME_NEVER;
	*most = 0;
	for (unsigned int i = 0; i < CLIENTS; i++) {
		uint64_t pause = pause_of(retry);

		*least = MIN(*least, pause);
		*most = MAX(*most, pause);
	}
}

static struct ulrpc_retry retry_of(enum ulrpc_backoff policy)
{
	return (struct ulrpc_retry){ .policy = policy,
				     .max = ULRPC_RETRIES_ANY,
				     .base = 1000000 };
}

Test(retry_call, pauses_are_as_the_caller_says)
{
	struct ulrpc_retry full = retry_of(ULRPC_BACKOFF_FULL);
	struct ulrpc_retry equal = retry_of(ULRPC_BACKOFF_EQUAL);
	struct ulrpc_retry mad = retry_of(ULRPC_BACKOFF_MAD);
	uint64_t least, most;

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	pauses_of(&full, &least, &most);
	cr_expect(least < 200 * MSEC);
	cr_expect(most > 800 * MSEC && most <= SEC + MSEC);
	pauses_of(&equal, &least, &most);
	cr_expect(least >= 500 * MSEC && least < 600 * MSEC);
	cr_expect(most > 900 * MSEC && most <= SEC + MSEC);
	/* The server asked for no wait. The policy "mad" does not add the time
	 * of an attempt to that (ulrpc_retry(7)). */
	pauses_of(&mad, &least, &most);
	cr_expect_leq(most, MSEC);
	pauses_of(NULL, &least, &most); /* by the rule of the rig's client */
	cr_expect_leq(most, MSEC);
	rig_close(&g);
}

Test(retry_call, a_policy_is_forced_on_all)
{
	struct ulrpc_retry full = retry_of(ULRPC_BACKOFF_FULL);
	uint64_t least, most;

	open_with_policy(ULRPC_BACKOFF_EQUAL);
	pauses_of(&full, &least, &most);
	cr_expect(least >= 500 * MSEC);
	pauses_of(NULL, &least, &most);
	cr_expect(least >= 25 * MSEC && most <= 51 * MSEC);
	rig_close(&g);
}

/* A query is sent after T, a round trip, and a random pause, so that clients do
 * not ask at the same moment. */
Test(retry_call, queries_are_spread)
{
	struct ulrpc_retry full = retry_of(ULRPC_BACKOFF_FULL);
	uint64_t least = TIME_NEVER, most = 0;

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->mute_calls = true;
	g.fake->query_status = WIRE_OK;
	for (unsigned int i = 0; i < CLIENTS; i++) {
		unsigned int before = g.fake->nqueries;
		uint64_t begin = lnet_sim_now(g.sim), took;

		call_by(&full, 30000000);
		while (g.fake->nqueries == before)
			run(&g, MSEC);
		took = lnet_sim_now(g.sim) - begin;
		least = MIN(least, took);
		most = MAX(most, took);
		ulrpc_cancel(n.call);
		run(&g, 10 * MSEC);
		ulrpc_call_put(n.call);
	}
	cr_expect(least >= 100 * MSEC && least < 300 * MSEC);
	cr_expect(most > 900 * MSEC && most < 1200 * MSEC);
	rig_close(&g);
}

/* Batches are in the order of their next queries, so that the client need not
 * search client.watched. */
Test(retry_call, queries_of_one_client_are_in_order)
{
	static struct note many[100];
	struct ulrpc_retry full = retry_of(ULRPC_BACKOFF_FULL);
	struct ulrpc_call_conf conf = { .deadline = 30000000, .retry = &full };
	uint64_t begin = 0, sent = 0;
	const struct batch *p;

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		call_with(&g, &many[i], &conf, "hello", 5);
		run(&g, 10000);
		/* The first batch has jitter of its own. */
		if (i == 0)
			begin = lnet_sim_now(g.sim);
	}
	list_for_each_entry (p, &g.client->watched, of_watch) {
		if (p->sent < begin)
			continue;
		cr_assert_geq(p->sent, sent);
		sent = p->sent;
	}
	cr_assert_gt(sent, begin);
	ulrpc_client_close(g.client);
	run(&g, MSEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		ended_by(&many[i], ULRPC_CAUSE_CANCELED,
			 ULRPC_EXECUTION_UNKNOWN);
	rig_client(&g, 0);
	rig_close(&g);
}

/* ---- the budget for retries ---- */

/* All calls are refused. The client may send a tenth of them again, plus ten in
 * a second, plus the burst of the budget. */
Test(retry_call, an_overloaded_server_sees_few_retries)
{
	unsigned int before, sent = 0;

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->call_status = WIRE_OVERLOADED;
	before = g.fake->ncalls;
	for (unsigned int i = 0; i < 3000; i++) {
		call(&g, &n, 50000);
		sent++;
		run(&g, 60 * MSEC);
		cr_assert_eq(n.ended, 1);
		ulrpc_call_put(n.call);
	}
	cr_expect_eq(sent, 3000);
	cr_expect(g.fake->ncalls - before - sent <= 300 + 1800 + 64 + 20, "%u",
		  g.fake->ncalls - before - sent);
	rig_close(&g);
}

static uint64_t spent(void)
{
	return g.client->imp->budget.spent;
}

/* Makes a call that the server answers @times times with @status before it
 * serves it. */
static void call_until(const struct ulrpc_call_conf *conf, uint32_t status,
		       unsigned int times)
{
	unsigned int before = g.fake->ncalls;

	g.fake->call_status = status;
	call_with(&g, &n, conf, "hello", 5);
	while (g.fake->ncalls < before + times)
		run(&g, MSEC);
	g.fake->call_status = WIRE_OK;
	run(&g, SEC);
	ended_well(&n);
}

/* Makes a call that is lost once. */
static void lose_once(const struct ulrpc_call_conf *conf)
{
	g.fake->mute_calls = true;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call_with(&g, &n, conf, "hello", 5);
	run(&g, 10 * MSEC);
	g.fake->mute_calls = false;
	run(&g, SEC);
	ended_well(&n);
}

/* Attempts that were certainly not executed are repeated whatever the rule, and
 * do not count as retries: ulrpc_retry(7). */
Test(retry_call, what_is_no_retry_costs_nothing)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000,
					      .retry = &none };

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	call_until(&conf, WIRE_STALE_EPOCH, 3);
	cr_assert_geq(n.outcome.attempts, 4);
	cr_assert_eq(n.outcome.retries, 0);
	cr_assert_eq(spent(), 0);
	rig_close(&g);
}

/* A retry after a restart does not use the budget, nor does one of a call that
 * the server did not know. A retry after a refusal does: ulrpc_retry(7). */
Test(retry_call, which_retries_use_the_budget)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000,
					      .retry = &two,
					      .semantics = ULRPC_IDEMPOTENT };

	open_with_policy(ULRPC_BACKOFF_DEFAULT);
	g.fake->unknown_for = 0;
	g.fake->forgets = true;
	call_until(&conf, WIRE_NOT_CONNECTED, 1);
	cr_assert_eq(n.outcome.retries, 1);
	cr_assert_eq(spent(), 0);
	g.fake->forgets = false;
	lose_once(&conf);
	cr_assert_eq(n.outcome.retries, 1);
	cr_assert_eq(spent(), 0);
	g.fake->retry_after = 10000;
	call_until(&conf, WIRE_OVERLOADED, 1);
	cr_assert_eq(n.outcome.retries, 1);
	cr_assert_gt(spent(), 0);
	rig_close(&g);
}

/* ---- rules that are refused ---- */

Test(retry_call, policies_that_there_are_not)
{
	struct ulrpc_retry bad = { .policy = (enum ulrpc_backoff)9 };
	struct ulrpc_call_conf conf = { .deadline = 1000000, .retry = &bad };
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf client_conf;
	struct ulrpc_client *client;
	struct ulrpc_conf rpc_conf;
	struct ulrpc *rpc;

	rig_open(&g);
	cr_assert_eq(ulrpc_call(g.client, 77, "", 0, &conf, note_end, &n, NULL),
		     -EINVAL);
	ulrpc_client_conf_init(&client_conf);
	client_conf.nids = &nid;
	client_conf.nnids = 1;
	client_conf.service = "test";
	client_conf.retry = &bad;
	cr_assert_eq(ulrpc_client_open(g.rpc, &client_conf, &client), -EINVAL);
	ulrpc_conf_init(&rpc_conf);
	rpc_conf.force_policy = (enum ulrpc_backoff)9;
	cr_assert_eq(ulrpc_open(lnet_sim_node(g.sim, SERVER), &rpc_conf, &rpc),
		     -EINVAL);
	rig_close(&g);
}
