/* SPDX-License-Identifier: BSD-3-Clause */
/* Attempts that the server does not answer: when the client sends a query, and
 * what it does with the answer. */
#include "rpc/client/attempt.h"
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/call_rig.h"

static struct call_rig g;
static struct note n, many[300];

static uint64_t counted(enum rpc_stat stat)
{
	return g.client->shard->stats->counts[stat];
}

static struct arrived *call_nr(unsigned int i)
{
	return &g.fake->calls[i % CALLS_SEEN];
}

static struct arrived *query_nr(unsigned int i)
{
	return &g.fake->queries[i % CALLS_SEEN];
}

static void time_is(uint64_t us)
{
	g.rpc->conf.timeout_min = g.rpc->conf.timeout_max = us;
}

/* Opens the rig with @us as the shortest and longest time T of attempts, and
 * has one call served. Later calls are not answered by themselves. */
static void open_with(uint64_t us)
{
	struct ulrpc_conf conf;

	ulrpc_conf_init(&conf);
	conf.timeout_min = conf.timeout_max = us;
	rig_open_with(&g, &conf);
	call(&g, &n, 1000000);
	run(&g, 200 * MSEC); /* until the call counts as a sample of T */
	ended_well(&n);
	g.fake->mute_calls = true;
}

static void call_of(struct note *note, enum ulrpc_semantics semantics)
{
	struct ulrpc_call_conf conf = { .deadline = 10000000,
					.semantics = semantics };

	call_with(&g, note, &conf, "hello", 5);
}

/* The server answers the call or query @a with @status, and without a body. */
static void answer_with(const struct arrived *a, uint32_t status)
{
	fake_answer(g.fake, a, status, NULL, 0);
	run(&g, 10 * MSEC);
}

/* The server executes the call @a, which ends it. */
static void ends_with(const struct arrived *a)
{
	fake_echo(g.fake, a);
	run(&g, 10 * MSEC);
	ended_well(&n);
}

/* ---- when a query is sent ---- */

Test(attempt, has_its_time_and_a_round_trip)
{
	open_with(100000);
	call(&g, &n, 10000000);
	run(&g, MSEC);
	cr_assert_eq(call_nr(1)->timeout, 100000);
	cr_assert_leq(call_nr(1)->remaining, 10000000);
	run(&g, 98 * MSEC);
	cr_assert_eq(g.fake->nqueries, 0);
	run(&g, 11 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	ends_with(call_nr(1));
	cr_assert_eq(n.outcome.queries, 1);
	cr_assert_eq(n.outcome.attempts, 2);
	cr_assert_eq(n.outcome.retries, 0);
	rig_close(&g);
}

Test(attempt, has_no_more_than_half_of_what_is_left)
{
	open_with(1000000);
	g.fake->mute_queries = true;
	call(&g, &n, 900000);
	run(&g, 440 * MSEC);
	cr_assert_eq(call_nr(1)->timeout, 450000);
	cr_assert_eq(g.fake->nqueries, 0);
	run(&g, 20 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	/* If queries are not answered, each of them, too, has at most half of
	 * the time that is left. */
	run(&g, 2 * SEC);
	ended_by(&n, ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_geq(g.fake->nqueries, 3);
	rig_close(&g);
}

/* After long round trips, an attempt has half of the time that is left beyond T
 * before a query is sent, and the query has half of the rest. */
Test(attempt, leaves_time_to_ask)
{
	open_with(1000000);
	for (unsigned int i = 0; i < 20; i++)
		mean_add(&g.client->imp->rtt, 40 * SEC);
	g.fake->mute_queries = true;
	call(&g, &n, 9000000);
	run(&g, 4900 * MSEC);
	cr_assert_eq(g.fake->nqueries, 0);
	run(&g, 200 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	run(&g, 2 * SEC);
	cr_assert_eq(g.fake->nqueries, 2);
	run(&g, 2 * SEC);
	ended_by(&n, ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_gt(g.fake->nqueries, 4);
	cr_assert_leq(g.fake->nqueries, 10, "%u", g.fake->nqueries);
	rig_close(&g);
}

/* LNet reports for each message that it does not know whether it has arrived.
 */
Test(attempt, that_may_have_arrived)
{
	const struct ulnet_sim_link link = { .error = LNET_SIM_ALWAYS };
	const struct ulnet_sim_link good = { 0 };
	const struct ulnet_nid from = nth_id(CLIENT).nid;
	const struct ulnet_nid to = nth_id(SERVER).nid;

	rig_open(&g);
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_assert_eq(call_counted(&g, RPC_STAT_parcels_doubtful), 0);
	cr_assert_eq(lnet_sim_link_set(g.sim, &from, &to, &link), 0);
	call(&g, &n, 10000000);
	run(&g, 10 * MSEC);
	cr_assert_gt(call_counted(&g, RPC_STAT_parcels_doubtful), 0);
	cr_assert_eq(call_counted(&g, RPC_STAT_parcels_undelivered), 0);
	cr_assert_eq(lnet_sim_link_set(g.sim, &from, &to, &good), 0);
	run(&g, 5 * SEC);
	ended_well(&n);
	rig_close(&g);
}

/* Advertises an estimate that is longer than the deadline of the call. */
static void say_long(struct fake *f, struct wire_opened *o)
{
	(void)f;
	o->estimate = 20000000;
}

static void lose_the_first(uint64_t deadline, unsigned int backoff)
{
	rig_open(&g);
	g.fake->on_opened = say_long;
	g.fake->mute_calls = true;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call(&g, &n, deadline);
	run(&g, 10 * MSEC);
	g.client->imp->backoff = backoff;
	cr_assert_eq(g.fake->ncalls, 1);
	cr_assert_geq(call_nr(0)->timeout, deadline / 2 - 10000);
	cr_assert_leq(call_nr(0)->timeout, deadline / 2);
	g.fake->mute_calls = false;
	run(&g, deadline * USEC);
	ended_well(&n);
	cr_assert_eq(n.outcome.retries, 1);
	rig_close(&g);
}

Test(attempt, that_is_lost_is_repeated_in_time_whatever_it_takes)
{
	lose_the_first(10000000, 0);
	lose_the_first(1000000, 0);
	lose_the_first(10000000, 7);
}

/* The attempts of later calls time out before those of earlier ones. */
Test(attempt, are_watched_in_the_order_of_their_time)
{
	open_with(3000000);
	call(&g, &many[0], 10000000);
	run(&g, 10 * MSEC);
	time_is(160000);
	call(&g, &many[1], 10000000);
	run(&g, 10 * MSEC);
	time_is(1510000);
	call(&g, &many[2], 10000000);
	run(&g, 200 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	cr_assert_eq(query_nr(0)->xid, call_nr(2)->xid);
	run(&g, 1400 * MSEC);
	cr_assert_eq(g.fake->nqueries, 2);
	cr_assert_eq(query_nr(1)->xid, call_nr(3)->xid);
	run(&g, 1500 * MSEC);
	cr_assert_eq(g.fake->nqueries, 3);
	cr_assert_eq(query_nr(2)->xid, call_nr(1)->xid);
	rig_close(&g);
}

/* ---- what is asked, and what the server answers ---- */

static const struct arrived *expect_query(void)
{
	const struct arrived *q = query_nr(0), *a = call_nr(1);

	run(&g, 65 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	cr_assert_eq(q->xid, a->xid);
	cr_assert_eq(q->slot, a->slot);
	cr_assert_eq(q->method, a->method);
	cr_assert_eq(q->semantics, a->semantics);
	cr_assert_eq(q->attempt, a->attempt + 1);
	cr_assert_eq(q->flags, WIRE_CALL_QUERY);
	cr_assert_eq(q->length, 0);
	cr_assert_neq(q->match, a->match);
	return q;
}

Test(attempt, may_be_answered_to_the_query)
{
	open_with(50000);
	g.fake->mute_queries = true;
	call(&g, &n, 10000000);
	fake_answer(g.fake, expect_query(), WIRE_OK, "hello", 5);
	run(&g, 10 * MSEC);
	ended_well(&n);
	cr_assert_eq(g.fake->ncalls, 2);
	rig_close(&g);
}

Test(attempt, may_be_answered_to_itself_while_it_is_asked_about)
{
	open_with(50000);
	g.fake->mute_queries = true;
	call(&g, &n, 10000000);
	(void)expect_query();
	ends_with(call_nr(1));
	/* The answer to the query is a second answer to the call: it is
	 * dropped. */
	fake_answer(g.fake, query_nr(0), WIRE_OK, "other", 5);
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 1);
	rig_close(&g);
}

/* A call that the server does not know is repeated whatever its semantics: the
 * server has not executed it, and will not. */
Test(attempt, that_the_server_does_not_know_is_repeated)
{
	for (unsigned int i = 0; i < 3; i++) {
		const struct arrived *again;

		open_with(50000);
		g.fake->query_status = WIRE_UNKNOWN_CALL;
		call_of(&n, (enum ulrpc_semantics)i);
		(void)expect_query();
		run(&g, 10 * MSEC);
		cr_assert_eq(g.fake->ncalls, 3);
		again = call_nr(2);
		cr_assert_eq(again->xid, call_nr(1)->xid);
		cr_assert_eq(again->slot, call_nr(1)->slot);
		cr_assert_eq(again->attempt, 2);
		cr_assert_eq(again->flags, 0);
		cr_assert_eq(again->length, 5);
		ends_with(again);
		cr_assert_eq(n.outcome.retries, 1);
		cr_assert_eq(n.outcome.queries, 1);
		cr_assert_eq(n.outcome.attempts, 3);
		cr_assert_eq(counted(RPC_STAT_calls_repeated), 1);
		cr_assert_eq(counted(RPC_STAT_queries_sent), 1);
		rig_close(&g);
	}
}

/* One round trip took long, but nearly no other one does: a repetition is
 * usually in time. */
Test(attempt, is_repeated_if_that_would_usually_be_in_time)
{
	open_with(100000);
	for (unsigned int i = 0; i < 20; i++)
		mean_add(&g.client->imp->rtt, MSEC);
	mean_add(&g.client->imp->rtt, 40 * SEC);
	cr_assert_gt(import_rtt(g.client->imp), 40 * SEC);
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call(&g, &n, 20000000);
	run(&g, 11 * SEC);
	cr_assert_eq(g.fake->nqueries, 1);
	cr_assert_eq(g.fake->ncalls, 3);
	fake_echo(g.fake, call_nr(2));
	run(&g, 10 * MSEC);
	ended_well(&n);
	rig_close(&g);
}

/* The server refuses the second attempt. The first attempt of an idempotent
 * call may still be executed. */
Test(attempt, that_is_refused_after_another_may_have_been_executed)
{
	for (unsigned int i = 0; i < 2; i++) {
		open_with(50000);
		g.fake->query_status = WIRE_UNKNOWN_CALL;
		call_of(&n, i ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE);
		(void)expect_query();
		run(&g, 10 * MSEC);
		answer_with(call_nr(2), WIRE_REFUSED);
		ended_by(&n, ULRPC_CAUSE_REFUSED,
			 i ? ULRPC_EXECUTION_UNKNOWN : ULRPC_NOT_EXECUTED);
		rig_close(&g);
	}
}

/* An answer to a query comes after the call was sent again: it says nothing of
 * the new attempt. */
Test(attempt, is_not_repeated_for_an_answer_that_is_late)
{
	open_with(50000);
	g.fake->mute_queries = true;
	call(&g, &n, 10000000);
	run(&g, 200 * MSEC);
	cr_assert_geq(g.fake->nqueries, 2);
	answer_with(query_nr(g.fake->nqueries - 1), WIRE_UNKNOWN_CALL);
	cr_assert_eq(g.fake->ncalls, 3);
	for (unsigned int i = 0; i < g.fake->nqueries; i++)
		fake_answer(g.fake, query_nr(i), WIRE_UNKNOWN_CALL, NULL, 0);
	run(&g, 10 * MSEC);
	cr_assert_eq(g.fake->ncalls, 3);
	rig_close(&g);
}

/* ---- queries that are not answered ---- */

Test(attempt, is_asked_about_ever_more_seldom)
{
	unsigned int first;

	open_with(50000);
	g.fake->mute_queries = true;
	call(&g, &n, 60000000);
	run(&g, 500 * MSEC);
	first = g.fake->nqueries;
	cr_assert_geq(first, 3);
	run(&g, 9500 * MSEC);
	cr_assert_geq(g.fake->nqueries, 5);
	cr_assert_leq(g.fake->nqueries, 50);
	/* The server answers keepalives, so the client keeps the connection. */
	cr_assert_eq(g.fake->connects, 1);
	cr_assert_eq(n.ended, 0);
	fake_answer(g.fake, query_nr(g.fake->nqueries - 1), WIRE_OK, "hello",
		    5);
	run(&g, 10 * MSEC);
	ended_well(&n);
	rig_close(&g);
}

/* The server answers nothing. The client finds out within 3 (T + rtt), where
 * rtt is that of a round trip in which TCP has lost a segment. */
Test(attempt, to_a_dead_server_is_found_out)
{
	static const uint64_t times[] = { 50000,  70000,   150000,
					  400000, 1000000, 3000000 };

	for (unsigned int i = 0; i < ARRAY_SIZE(times); i++) {
		unsigned int connects;

		open_with(times[i]);
		connects = g.fake->connects;
		g.fake->mute_queries = g.fake->mute_alive = true;
		call(&g, &n, 60000000);
		run(&g, 2 * times[i] * USEC);
		cr_assert_eq(g.fake->connects, connects);
		run(&g, times[i] * USEC + 3 * 250 * MSEC);
		cr_assert_gt(g.fake->connects, connects);
		/* The server is alive after all: it answers the call. */
		ends_with(call_nr(1));
		rig_close(&g);
	}
}

/* A server pauses as a busy machine does, or TCP after the loss of a segment.
 * The client keeps the connection. */
Test(attempt, to_a_server_that_pauses_cost_no_connection)
{
	open_with(50000);
	for (unsigned int i = 0; i < 10; i++) {
		g.fake->mute_calls = true;
		g.fake->mute_queries = g.fake->mute_alive = true;
		call(&g, &n, 60000000);
		run(&g, 300 * MSEC);
		g.fake->mute_queries = g.fake->mute_alive = false;
		run(&g, 2 * SEC);
		fake_answer(g.fake, query_nr(g.fake->nqueries - 1), WIRE_OK,
			    "hello", 5);
		run(&g, 10 * MSEC);
		ended_well(&n);
	}
	cr_assert_eq(g.fake->connects, 1);
	rig_close(&g);
}

/* The import had begun to probe the server already, at its usual pace. */
Test(attempt, to_a_server_that_is_suspect_is_found_out_as_soon)
{
	unsigned int connects;

	open_with(400000);
	connects = g.fake->connects;
	g.fake->mute_queries = g.fake->mute_alive = true;
	call(&g, &n, 60000000);
	run(&g, 300 * MSEC);
	import_suspect(g.client->imp, g.client->imp->epoch);
	run(&g, 900 * MSEC);
	cr_assert_eq(g.fake->connects, connects + 1);
	ends_with(call_nr(1));
	rig_close(&g);
}

/* Queries about many calls share messages. */
Test(attempt, of_many_calls_are_asked_about_together)
{
	unsigned int before;

	open_with(50000);
	before = g.fake->messages;
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		call(&g, &many[i], 10000000);
	run(&g, MSEC);
	cr_assert_leq(g.fake->messages - before, 10);
	before = g.fake->messages;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	run(&g, 65 * MSEC);
	cr_assert_eq(g.fake->nqueries, ARRAY_SIZE(many));
	/* These messages carry the queries, and the calls that are sent again.
	 */
	cr_assert_leq(g.fake->messages - before, 20);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		fake_echo(g.fake, call_nr(1 + ARRAY_SIZE(many) + i));
	run(&g, 10 * MSEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		ended_well(&many[i]);
	rig_close(&g);
}

static unsigned int queries_of(const struct arrived *a)
{
	unsigned int of = 0;

	for (unsigned int i = 0; i < g.fake->nqueries; i++)
		of += query_nr(i)->xid == a->xid;
	return of;
}

/* If a call was asked about often, the client waits long for the answer before
 * it sends the next query. If a call is asked about for the first time, even in
 * the same message, the client waits for a short time. */
Test(attempt, each_is_asked_about_at_its_own_pace)
{
	open_with(300000);
	g.fake->mute_queries = true;
	g.client->imp->backoff_until =
		TIME_NEVER; /* no back-off in this test */
	call(&g, &many[0], 60000000);
	call(&g, &many[1], 60000000);
	run(&g, 310 * MSEC);
	cr_assert_eq(g.fake->nqueries, 2);
	for (unsigned int i = 0; i < 2; i++) {
		struct ulrpc_call *c =
			slots_find(&g.client->imp->slots, call_nr(1 + i)->slot);

		cr_assert_eq(c->query.batch->n, 2);
		c->unanswered = i ? 0 : 9;
		call_ask(c);
	}
	run(&g, 300 * MSEC);
	cr_assert_gt(queries_of(call_nr(2)), queries_of(call_nr(1)) + 1);
	for (unsigned int i = 0; i < 2; i++)
		fake_echo(g.fake, call_nr(1 + i));
	run(&g, 10 * MSEC);
	for (unsigned int i = 0; i < 2; i++)
		ended_well(&many[i]);
	rig_close(&g);
}

/* ---- extensions ---- */

Test(attempt, that_is_extended_is_not_asked_about)
{
	open_with(50000);
	call(&g, &n, 60000000);
	run(&g, 30 * MSEC);
	fake_extend(g.fake, call_nr(1), 5000000);
	run(&g, 4900 * MSEC);
	cr_assert_eq(g.fake->nqueries, 0);
	g.fake->mute_queries = true;
	run(&g, 200 * MSEC);
	cr_assert_geq(g.fake->nqueries, 1);
	/* An extension by less time than the attempt has left does not shorten
	 * it. */
	fake_extend(g.fake, query_nr(g.fake->nqueries - 1), 3000000);
	run(&g, 10 * MSEC);
	fake_extend(g.fake, query_nr(g.fake->nqueries - 1), 1000);
	g.fake->nqueries = 0;
	run(&g, 2900 * MSEC);
	cr_assert_eq(g.fake->nqueries, 0);
	/* The server may answer the call or the query. */
	ends_with(call_nr(1));
	cr_assert_eq(n.outcome.extensions, 3);
	cr_assert_eq(counted(RPC_STAT_extensions_received), 3);
	rig_close(&g);
}

Test(attempt, is_not_extended_beyond_the_call)
{
	open_with(50000);
	call(&g, &n, 1000000);
	run(&g, 30 * MSEC);
	fake_extend(g.fake, call_nr(1), UINT64_MAX);
	run(&g, 960 * MSEC);
	cr_assert_eq(n.ended, 0);
	run(&g, 20 * MSEC);
	ended_by(&n, ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	rig_close(&g);
}

/* A call without a deadline is asked about every five minutes, whatever time
 * the server asks for. */
Test(attempt, is_asked_about_every_five_minutes)
{
	open_with(50000);
	call(&g, &n, ULRPC_NEVER);
	run(&g, 30 * MSEC);
	fake_extend(g.fake, call_nr(1), UINT64_MAX);
	run(&g, 299 * SEC);
	cr_assert_eq(g.fake->nqueries, 0);
	run(&g, 2 * SEC);
	cr_assert_eq(g.fake->nqueries, 1);
	run(&g, 600 * SEC);
	cr_assert_eq(g.fake->nqueries, 3);
	cr_assert_eq(g.fake->connects, 1);
	fake_echo(g.fake, call_nr(1));
	run(&g, 10 * MSEC);
	ended_well(&n);
	rig_close(&g);
}

/* Extensions of another call, of a call that has ended, or of another attempt
 * do not extend the attempt. */
Test(attempt, is_extended_by_what_is_meant_for_it_only)
{
	struct arrived wrong;

	open_with(50000);
	call(&g, &n, 10000000);
	run(&g, MSEC);
	wrong = *call_nr(1);
	wrong.xid++;
	fake_extend(g.fake, &wrong, 5000000);
	wrong.xid--;
	wrong.slot++;
	fake_extend(g.fake, &wrong, 5000000);
	wrong.slot = UINT32_MAX;
	fake_extend(g.fake, &wrong, 5000000);
	wrong.slot = call_nr(1)->slot;
	wrong.attempt++;
	fake_extend(g.fake, &wrong, 5000000);
	fake_extend(g.fake, call_nr(0), 5000000);
	run(&g, 10 * MSEC);
	cr_assert_eq(counted(RPC_STAT_extensions_late), 5);
	cr_assert_eq(counted(RPC_STAT_extensions_received), 0);
	run(&g, 90 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	rig_close(&g);
}

/* ---- after the connection was made again ---- */

static void lose_connection(void)
{
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	import_suspect(g.client->imp, g.client->imp->epoch);
	run(&g, 5 * MSEC);
	g.fake->alive_status = WIRE_OK;
}

Test(attempt, before_a_new_connection_is_asked_about_at_once)
{
	open_with(5000000);
	g.fake->mute_queries = true;
	for (unsigned int i = 0; i < 3; i++)
		call_of(&many[i], (enum ulrpc_semantics)i);
	run(&g, 10 * MSEC);
	lose_connection();
	run(&g, 300 * MSEC);
	cr_assert_eq(g.fake->connects, 2);
	cr_assert_geq(g.fake->nqueries, 3);
	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(query_nr(i)->epoch, g.fake->epoch);
		cr_assert_eq(query_nr(i)->xid, call_nr(1 + i)->xid);
	}
	/* The server has served one call, serves another one, and does not know
	 * the third. */
	fake_answer(g.fake, query_nr(g.fake->nqueries - 3), WIRE_OK, "hello",
		    5);
	fake_extend(g.fake, query_nr(g.fake->nqueries - 2), 1000000);
	answer_with(query_nr(g.fake->nqueries - 1), WIRE_UNKNOWN_CALL);
	ended_well(&many[0]);
	cr_assert_eq(g.fake->ncalls, 5);
	fake_echo(g.fake, call_nr(4));
	fake_echo(g.fake, call_nr(2));
	run(&g, 10 * MSEC);
	ended_well(&many[1]);
	ended_well(&many[2]);
	rig_close(&g);
}

/* The attempt times out while there is no connection. */
Test(attempt, is_asked_about_when_there_is_a_connection)
{
	open_with(50000);
	call(&g, &n, 10000000);
	run(&g, 10 * MSEC);
	g.fake->mute_connect = true;
	lose_connection();
	run(&g, SEC);
	cr_assert_eq(g.fake->nqueries, 0);
	cr_assert_eq(n.ended, 0);
	g.fake->mute_connect = false;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	g.fake->mute_calls = false;
	run(&g, 8 * SEC);
	ended_well(&n);
	rig_close(&g);
}

/* ---- answers that end the attempt, but not the call ---- */

Test(attempt, that_expired_is_repeated_with_more_time)
{
	open_with(100000);
	g.rpc->conf.timeout_max = 1000000;
	call(&g, &n, 10000000);
	run(&g, 10 * MSEC);
	answer_with(call_nr(1), WIRE_EXPIRED);
	cr_assert_eq(g.fake->ncalls, 3);
	cr_assert_eq(call_nr(2)->xid, call_nr(1)->xid);
	run(&g, 180 * MSEC);
	cr_assert_eq(g.fake->nqueries, 0);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	ends_with(call_nr(2));
	cr_assert_eq(n.outcome.retries, 1);
	rig_close(&g);
}

Test(attempt, never_has_more_time_than_the_most)
{
	open_with(100000);
	g.rpc->conf.timeout_max = 150000;
	call(&g, &n, 60000000);
	for (unsigned int i = 1; i < 6; i++) {
		run(&g, SEC);
		cr_assert_eq(g.fake->ncalls, 1 + i);
		cr_assert_eq(call_nr(i)->timeout, i == 1 ? 100000 : 150000);
		fake_answer(g.fake, call_nr(i), WIRE_EXPIRED, NULL, 0);
	}
	run(&g, SEC);
	fake_echo(g.fake, call_nr(6));
	run(&g, 10 * MSEC);
	ended_well(&n);
	rig_close(&g);
}

/* A call whose attempt expired at the server is repeated if the call has time
 * left, and ends otherwise. */
Test(attempt, that_expired_is_repeated_if_there_is_time)
{
	uint64_t rtt;

	open_with(1000000);
	call(&g, &many[0], 1100000);
	call(&g, &many[1], 600000);
	run(&g, MSEC);
	rtt = import_rtt(g.client->imp);
	cr_assert_leq(rtt, 10 * MSEC);
	run(&g, 599 * MSEC - rtt);
	for (unsigned int i = 0; i < 2; i++)
		fake_answer(g.fake, call_nr(1 + i), WIRE_EXPIRED, NULL, 0);
	run(&g, rtt);
	cr_assert_eq(g.fake->ncalls, 4);
	cr_assert_eq(call_nr(3)->xid, call_nr(1)->xid);
	ended_by(&many[1], ULRPC_CAUSE_EXPIRED, ULRPC_NOT_EXECUTED);
	fake_echo(g.fake, call_nr(3));
	run(&g, 10 * MSEC);
	ended_well(&many[0]);
	rig_close(&g);
}

Test(attempt, that_is_refused_for_now_is_repeated_when_it_was_told_to)
{
	open_with(50000);
	g.fake->retry_after = 400000;
	call(&g, &n, 10000000);
	run(&g, MSEC);
	fake_answer(g.fake, call_nr(1), WIRE_OVERLOADED, NULL, 0);
	run(&g, 390 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	cr_assert_eq(n.call->fsm.state, CALL_WAIT);
	run(&g, 30 * MSEC);
	cr_assert_eq(g.fake->ncalls, 3);
	ends_with(call_nr(2));
	cr_assert_eq(n.outcome.retries, 1);
	rig_close(&g);
}

/* A call in state WAIT can be canceled, and ends at its deadline. */
Test(attempt, that_waits_can_be_given_up)
{
	open_with(50000);
	g.fake->retry_after = 400000;
	for (unsigned int i = 0; i < 4; i++)
		call(&g, &many[i], i == 1 ? 405000 : 10000000);
	run(&g, MSEC);
	for (unsigned int i = 0; i < 4; i++)
		fake_answer(g.fake, call_nr(1 + i), WIRE_OVERLOADED, NULL, 0);
	run(&g, MSEC);
	ulrpc_cancel(many[0].call);
	run(&g, MSEC);
	ended_by(&many[0], ULRPC_CAUSE_CANCELED, ULRPC_NOT_EXECUTED);
	run(&g, 420 * MSEC);
	cr_assert_eq(many[1].ended, 1);
	cr_assert_eq(many[1].outcome.execution != ULRPC_EXECUTED, true);
	ulrpc_call_put(many[1].call);
	ulrpc_client_close(g.client);
	run(&g, 10 * MSEC);
	for (unsigned int i = 2; i < 4; i++) {
		cr_assert_eq(many[i].ended, 1);
		cr_assert_eq(many[i].outcome.cause, ULRPC_CAUSE_CANCELED);
		ulrpc_call_put(many[i].call);
	}
	g.client = NULL;
	rig_close(&g);
}

/* ---- a service that stops, and starts again ---- */

Test(attempt, goes_on_when_the_service_is_back)
{
	static const uint32_t statuses[] = { WIRE_NO_SERVICE,
					     WIRE_SHUTTING_DOWN };

	for (unsigned int i = 0; i < ARRAY_SIZE(statuses); i++) {
		open_with(50000);
		call(&g, &many[0], 10000000);
		call(&g, &many[1], 1000000);
		run(&g, MSEC);
		g.fake->open_status = statuses[i];
		for (unsigned int j = 0; j < 2; j++)
			fake_answer(g.fake, call_nr(1 + j), statuses[i], NULL,
				    0);
		run(&g, 2 * SEC);
		cr_assert_eq(many[0].ended, 0);
		ended_by(&many[1],
			 i ? ULRPC_CAUSE_SHUTDOWN : ULRPC_CAUSE_NO_SERVICE,
			 ULRPC_NOT_EXECUTED);
		cr_assert_leq(g.fake->opens, 200);
		g.fake->open_status = WIRE_OK;
		g.fake->mute_calls = false;
		run(&g, SEC);
		ended_well(&many[0]);
		cr_assert_eq(many[0].outcome.retries, 0);
		rig_close(&g);
	}
}

/* The server has restarted, and grants only two slots. */
static void grant_two(struct fake *f, struct wire_connected *c)
{
	(void)f;
	c->slots = 2;
}

Test(attempt, without_a_slot_ends)
{
	open_with(50000);
	for (unsigned int i = 0; i < 4; i++)
		call_of(&many[i], ULRPC_IDEMPOTENT);
	run(&g, MSEC);
	g.fake->on_connected = grant_two;
	g.fake->forgets = true;
	g.fake->mute_calls = false;
	g.fake->id++;
	lose_connection();
	run(&g, SEC);
	for (unsigned int i = 0; i < 4; i++) {
		if (call_nr(1 + i)->slot < 2)
			ended_well(&many[i]);
		else
			ended_by(&many[i], ULRPC_CAUSE_RESTARTED,
				 ULRPC_EXECUTION_UNKNOWN);
	}
	rig_close(&g);
}

/* ---- adaptive back-off ---- */

/* The server takes twenty times T for each call, and answers no query
 * meanwhile. The client sends fewer and fewer queries, until the server is fast
 * again. */
Test(attempt, have_more_time_of_a_server_that_is_slow)
{
	unsigned int asked[12];

	open_with(50000);
	g.fake->mute_queries = true;
	for (unsigned int i = 0; i < ARRAY_SIZE(asked); i++) {
		unsigned int before = g.fake->nqueries;

		call(&g, &n, 30000000);
		run(&g, SEC);
		fake_echo(g.fake, call_nr(1 + i));
		run(&g, 10 * MSEC);
		ended_well(&n);
		asked[i] = g.fake->nqueries - before;
	}
	cr_assert_geq(asked[0], 3);
	cr_assert_leq(asked[10] + asked[11], 2, "%u, %u", asked[10], asked[11]);
	cr_assert_gt(g.client->imp->backoff, 0);
	g.fake->mute_calls = g.fake->mute_queries = false;
	for (unsigned int i = 0; i < 8; i++) {
		call(&g, &n, 1000000);
		run(&g, 100 * MSEC);
		ended_well(&n);
	}
	cr_assert_eq(g.client->imp->backoff, 0);
	rig_close(&g);
}
