/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that the client sends again, or must not send again. */
#include "rpc/bulk/bulk_priv.h"
#include "rpc/client/batch.h"
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/call_rig.h"
#include "ulnet/context.h"

static struct call_rig g;
static struct note n, many[600];
static uint8_t lent[1000], got[1000], room[8];

/* Makes two calls that the server does not answer: an at-most-once one, and an
 * idempotent one. */
static void call_both_kinds(void)
{
	struct ulrpc_call_conf conf = within(100000000);

	g.fake->mute_calls = true;
	call_with(&g, &many[0], &conf, "hello", 5);
	conf.semantics = ULRPC_IDEMPOTENT;
	call_with(&g, &many[1], &conf, "hello", 5);
	run(&g, 100 * MSEC);
}

/* The server does not know any connection any more. */
static void server_forgets(void)
{
	g.fake->forgets = true;
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	g.fake->mute_calls = false;
}

static struct arrived *last_call(void)
{
	return &g.fake->calls[(g.fake->ncalls - 1) % CALLS_SEEN];
}

Test(call_again, that_was_not_delivered_is_sent_again)
{
	struct ulnet_sim_link bad = { .refuse = LNET_SIM_ALWAYS }, good = { 0 };

	rig_open(&g);
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &bad);
	call(&g, &n, 20000000);
	run(&g, MSEC);
	cr_assert_eq(n.ended, 0);
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &good);
	run(&g, 20 * SEC);
	cr_assert_gt(n.outcome.attempts, 1);
	ended_well(&n);
	cr_assert_eq(g.fake->ncalls, 2);
	/* The flags do not mark the call as sent again: no earlier attempt was
	 * delivered. */
	cr_assert_eq(g.fake->calls[1].flags, 0);
	cr_assert_eq(g.fake->calls[1].xid, g.fake->calls[0].xid + 1);
	cr_assert_eq(g.fake->calls[1].attempt, n.outcome.attempts - 1);
	cr_assert_eq(n.outcome.retries, 0);
	cr_assert_eq(call_counted(&g, RPC_STAT_parcels_undelivered),
		     n.outcome.attempts - 1);
	cr_assert_eq(call_counted(&g, RPC_STAT_parcels_doubtful), 0);
	rig_close(&g);
}

Test(call_again, of_a_connection_that_is_not_known_is_sent_again)
{
	static const uint32_t statuses[] = { WIRE_NOT_CONNECTED,
					     WIRE_STALE_EPOCH };

	rig_open(&g);
	for (unsigned int i = 0; i < ARRAY_SIZE(statuses); i++) {
		unsigned int connects = g.fake->connects;
		uint32_t epoch = g.fake->epoch;

		call(&g, &n, 10000000);
		run(&g, 10 * SEC);
		ended_well(&n);
		g.fake->mute_calls = true;
		call(&g, &n, 40000000);
		run(&g, 100 * MSEC);
		g.fake->mute_calls = false;
		fake_answer(g.fake, last_call(), statuses[i], NULL, 0);
		run(&g, 40 * SEC);
		ended_well(&n);
		cr_assert_eq(n.outcome.attempts - n.outcome.queries, 2);
		cr_assert_gt(g.fake->epoch, epoch);
		cr_assert_gt(g.fake->connects, connects);
	}
	rig_close(&g);
}

/* The answer that a connection is not known does not count as a served call:
 * the import counts it as a failure. */
Test(call_again, of_a_connection_that_is_not_known_is_no_success)
{
	rig_open(&g);
	call(&g, &n, 10000000);
	run(&g, 10 * SEC);
	ended_well(&n);
	for (unsigned int i = 0; i < 2; i++) {
		g.client->imp->failures = 5;
		g.fake->mute_calls = true;
		call(&g, &n, 1000000);
		run(&g, 100 * MSEC);
		fake_answer(g.fake, last_call(),
			    i ? WIRE_REFUSED : WIRE_STALE_EPOCH, NULL, 0);
		run(&g, 1 * MSEC);
		cr_assert_eq(g.client->imp->failures, i ? 0 : 6);
		run(&g, 40 * SEC);
		cr_assert_eq(n.ended, 1);
		ulrpc_call_put(n.call);
	}
	rig_close(&g);
}

/* Many answers that a connection is not known do not make the client connect
 * sooner. */
Test(call_again, of_a_connection_that_is_never_known_does_not_flood_the_server)
{
	rig_open(&g);
	g.fake->call_status = WIRE_NOT_CONNECTED;
	for (unsigned int i = 0; i < 600; i++)
		call(&g, &many[i], 4000000);
	run(&g, 5 * SEC);
	cr_assert_geq(g.fake->connects, 20);
	cr_assert_leq(g.fake->connects, 200, "%u", g.fake->connects);
	for (unsigned int i = 0; i < 600; i++) {
		cr_assert_eq(many[i].ended, 1);
		cr_assert_eq(many[i].outcome.execution, ULRPC_NOT_EXECUTED);
		ulrpc_call_put(many[i].call);
	}
	rig_close(&g);
}

/* A call is told that its connection is not known after the connection was
 * replaced because of another call. */
Test(call_again, of_a_connection_that_was_replaced_is_sent_again_at_once)
{
	struct arrived late;
	unsigned int connects;

	rig_open(&g);
	g.fake->mute_calls = true;
	call(&g, &many[0], 40000000);
	run(&g, 100 * MSEC);
	late = g.fake->calls[0];
	call(&g, &many[1], 40000000);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	g.fake->mute_calls = false;
	fake_answer(g.fake, &g.fake->calls[1], WIRE_STALE_EPOCH, NULL, 0);
	run(&g, 2 * SEC);
	ended_well(&many[1]);
	connects = g.fake->connects;
	fake_answer(g.fake, &late, WIRE_STALE_EPOCH, NULL, 0);
	run(&g, 100 * MSEC);
	ended_well(&many[0]);
	cr_assert_eq(g.fake->connects, connects);
	rig_close(&g);
}

/* ---- calls whose bulk failed ---- */

/* The service never gets the bulk. The pauses before retries grow. */
Test(call_again, whose_bulk_fails_each_time)
{
	static const struct ulrpc_retry usual = { .max = ULRPC_RETRIES_ANY };
	struct iovec iov = { lent, sizeof(lent) };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf conf = { .deadline = 20000000,
					.semantics = ULRPC_IDEMPOTENT,
					.retry = &usual,
					.nbulks = 1 };
	struct ulrpc_bulk *bulk;

	rig_open(&g);
	cr_assert_eq(ulrpc_bulk_new(g.rpc, &lend, &bulk), 0);
	conf.bulks = &bulk;
	g.fake->call_status = WIRE_BULK_FAILED;
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, 10 * SEC);
	cr_assert_eq(n.ended, 0);
	run(&g, 11 * SEC);
	cr_assert_geq(g.fake->ncalls, 6);
	cr_assert_leq(g.fake->ncalls, 30, "%u", g.fake->ncalls);
	ended_by(&n, ULRPC_CAUSE_BULK, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(n.outcome.retries, g.fake->ncalls - 1);
	ulrpc_bulk_close(bulk, NULL, NULL);
	rig_close(&g);
}

/* Makes an idempotent call whose bulk fails while the handler still runs: the
 * client learns that from two copies of the answer to its query, of which it
 * ignores the second. The next query is answered with @then. */
static struct ulrpc_bulk *bulk_fails_when_asked(uint32_t then)
{
	struct iovec iov = { lent, sizeof(lent) };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf conf = within(20000000);
	struct ulrpc_bulk *bulk;

	rig_open(&g);
	cr_assert_eq(ulrpc_bulk_new(g.rpc, &lend, &bulk), 0);
	conf.bulks = &bulk;
	conf.nbulks = 1;
	conf.semantics = ULRPC_IDEMPOTENT;
	g.fake->mute_calls = g.fake->mute_queries = true;
	call_with(&g, &n, &conf, "hello", 5);
	while (!g.fake->nqueries)
		run(&g, MSEC);
	cr_assert_eq(g.fake->nqueries, 1);
	g.fake->mute_calls = g.fake->mute_queries = false;
	g.fake->query_status = then;
	for (unsigned int i = 0; i < 2; i++)
		fake_answer(g.fake, &g.fake->queries[0], WIRE_BULK_FAILED, NULL,
			    0);
	run(&g, 5 * SEC);
	return bulk;
}

Test(call_again, whose_bulk_has_failed_when_it_is_asked_about)
{
	struct ulrpc_bulk *bulk = bulk_fails_when_asked(WIRE_UNKNOWN_CALL);

	cr_assert_eq(g.fake->ncalls, 2);
	cr_assert_eq(n.outcome.queries, 2);
	cr_assert_eq(n.outcome.retries, 1);
	ended_well(&n);
	ulrpc_bulk_close(bulk, NULL, NULL);
	rig_close(&g);
}

/* A call whose bulk has failed for good is not sent again if the method is not
 * idempotent. */
Test(call_again, not_whose_bulk_has_failed_for_good)
{
	struct ulrpc_bulk *bulk = bulk_fails_when_asked(WIRE_BULK_FAILED);

	cr_assert_eq(g.fake->ncalls, 1);
	cr_assert_eq(n.outcome.queries, 2);
	ended_by(&n, ULRPC_CAUSE_BULK, ULRPC_EXECUTED);
	ulrpc_bulk_close(bulk, NULL, NULL);
	rig_close(&g);
}

/* ---- calls that wait for their bulk before they are sent again ---- */

static void on_get(const struct ulnet_event *ev)
{
	if (ev->type == LNET_EVENT_REPLY)
		cr_assert_eq(ev->status, 0);
}

/* The server gets the bulk of the last call, which takes a second. Meanwhile it
 * refuses the call so that it has to be sent again. */
static void refuse_busy(void)
{
	const struct arrived *a = last_call();
	struct ulnet_nid from = nth_id(CLIENT).nid, to = nth_id(SERVER).nid;
	struct ulnet_sim_link slow = { .bandwidth = sizeof(lent) };
	struct ulnet_md md = { .start = got,
			       .length = sizeof(got),
			       .threshold = 2,
			       .handler = on_get };
	struct ulnet_md_handle mdh;

	lnet_sim_link_set(g.sim, &from, &to, &slow);
	cr_assert_eq(LNetMDBind(g.fake->node, &md, LNET_UNLINK, &mdh), 0);
	cr_assert_eq(LNetGet(LNET_NID_ANY, mdh, nth_id(CLIENT),
			     ULRPC_PORTAL_BULK, a->bulk_match, 0),
		     0);
	run(&g, 10 * MSEC);
	fake_answer(g.fake, a, WIRE_STALE_EPOCH, NULL, 0);
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 0);
}

static struct ulrpc_bulk *bulk_new(void *base, size_t length,
				   enum ulrpc_bulk_access access)
{
	struct iovec iov = { base, length };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = access };
	struct ulrpc_bulk *bulk;

	cr_assert_eq(ulrpc_bulk_new(g.rpc, &lend, &bulk), 0);
	return bulk;
}

/* A call whose source is being sent. @sink: it also has a sink, which stays in
 * use until bulk_unuse(). */
static struct ulrpc_bulk *call_refused_busy(uint64_t deadline,
					    struct ulrpc_bulk **sink)
{
	struct ulrpc_call_conf conf = within(deadline);
	struct ulrpc_bulk *bulks[2];

	rig_open(&g);
	bulks[0] = bulk_new(lent, sizeof(lent), ULRPC_BULK_SOURCE);
	if (sink)
		*sink = bulks[1] =
			bulk_new(room, sizeof(room), ULRPC_BULK_SINK);
	conf.bulks = bulks;
	conf.nbulks = sink ? 2 : 1;
	memset(lent, 7, sizeof(lent));
	g.fake->mute_calls = true;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, 100 * MSEC);
	g.fake->mute_calls = false;
	if (sink)
		bulk_use(*sink);
	refuse_busy();
	return bulks[0];
}

static struct ulrpc_bulk *call_in_fence(uint64_t deadline,
					struct ulrpc_bulk **sink)
{
	struct ulrpc_bulk *bulk = call_refused_busy(deadline, sink);

	cr_assert_eq(n.call->fsm.state, CALL_FENCE);
	return bulk;
}

/* Bytes of bulk that the server has got, as the client's statistics have them.
 */
static uint64_t counted_sent(void)
{
	struct stat_shard *st = g.rpc->shards[0].stats;
	const struct stat_peer *p =
		list_first(&st->peers[STAT_CALLS], struct stat_peer, link);
	const struct stat_service *sv = list_first(&st->services[STAT_CALLS],
						   struct stat_service, link);
	uint32_t bucket = 0;
	const struct stat_method *m;

	stat_fold(st);
	m = stat_method_walk(sv, &bucket, NULL);
	cr_assert_eq(m->counts[STAT_COUNT_bulk_sent_bytes],
		     p->counts[STAT_COUNT_bulk_sent_bytes]);
	return p->counts[STAT_COUNT_bulk_sent_bytes];
}

Test(call_again, in_fence_goes_on_when_its_bulk_is_free)
{
	struct ulrpc_bulk *sink, *bulk = call_in_fence(100000000, &sink);
	unsigned int messages;

	run(&g, 5 * SEC);
	messages = g.fake->messages;
	run(&g, 500 * MSEC);
	cr_assert_eq(n.call->fsm.state, CALL_FENCE);
	cr_assert_eq(g.fake->messages, messages);
	bulk_unuse(sink);
	run(&g, 50 * SEC);
	cr_assert_eq(n.outcome.attempts, 2);
	ended_well(&n);
	cr_assert_eq(counted_sent(), sizeof(lent));
	cr_assert_eq(memcmp(lent, got, sizeof(got)), 0);
	ulrpc_bulk_close(bulk, NULL, NULL);
	ulrpc_bulk_close(sink, NULL, NULL);
	rig_close(&g);
}

static void on_released(void *arg)
{
	unsigned int *released = arg;

	++*released;
}

/* A source is lent again while LNet still sends it, as it would to a dead
 * server until it gives that up. The memory is free only then. */
Test(call_again, lends_its_source_again_while_it_is_still_sent)
{
	struct ulrpc_bulk *bulk = call_refused_busy(100000000, NULL);
	unsigned int released = 0;

	run(&g, 100 * MSEC);
	cr_assert_eq(n.ended, 0);
	cr_assert_neq(n.call->fsm.state, CALL_FENCE);
	run(&g, 5 * SEC);
	cr_assert_eq(n.outcome.attempts, 2);
	ended_well(&n);
	ulrpc_bulk_close(bulk, on_released, &released);
	run(&g, 5 * SEC);
	cr_assert_eq(released, 1);
	cr_assert_eq(counted_sent(), sizeof(lent));
	cr_assert_eq(memcmp(lent, got, sizeof(got)), 0);
	rig_close(&g);
}

/* Ends a call in state FENCE by @cause. The call ends at once; its memory is
 * free only when the server's GET has ended. */
static void ends_in_fence(enum ulrpc_cause cause)
{
	bool late = cause == ULRPC_CAUSE_DEADLINE;
	struct ulrpc_bulk *sink,
		*bulk = call_in_fence(late ? 500000 : 100000000, &sink);
	struct ulrpc_call_conf conf = { .deadline = 1,
					.bulks = &bulk,
					.nbulks = 1 };
	unsigned int released = 0;

	if (!late)
		ulrpc_cancel(n.call);
	run(&g, late ? 400 * MSEC : 10 * MSEC);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(n.outcome.cause, cause);
	cr_assert_eq(n.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert_not(n.outcome.bulk_free);
	cr_assert_eq(
		ulrpc_call(g.client, 1, NULL, 0, &conf, note_end, &n, NULL),
		-EBUSY);
	ulrpc_bulk_close(bulk, on_released, &released);
	run(&g, 100 * MSEC);
	cr_assert_eq(released, 0);
	cr_assert_eq(counted_sent(), 0);
	bulk_unuse(sink);
	ulrpc_bulk_close(sink, NULL, NULL);
	run(&g, 5 * SEC);
	cr_assert_eq(released, 1);
	cr_assert_eq(counted_sent(), sizeof(lent));
	cr_assert_eq(memcmp(lent, got, sizeof(got)), 0);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(g.fake->ncalls, 1, "nothing is sent again");
	ulrpc_call_put(n.call);
	rig_close(&g);
}

Test(call_again, canceled_in_fence)
{
	ends_in_fence(ULRPC_CAUSE_CANCELED);
}

Test(call_again, ends_by_its_deadline_in_fence)
{
	ends_in_fence(ULRPC_CAUSE_DEADLINE);
}

/* The user closes call, client and RPC while the call is in state FENCE.
 * ulrpc_close() waits for the memory of the bulk. */
Test(call_again, closed_in_fence)
{
	struct ulrpc_bulk *sink, *bulk = call_in_fence(100000000, &sink);
	unsigned int released = 0;

	ulrpc_client_close(g.client);
	g.client = NULL;
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(n.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_not(n.outcome.bulk_free);
	ulrpc_call_put(n.call);
	ulrpc_bulk_close(bulk, on_released, &released);
	cr_assert_eq(released, 0);
	bulk_unuse(sink);
	ulrpc_bulk_close(sink, NULL, NULL);
	rig_close(&g);
	cr_assert_eq(released, 1);
}

Test(call_again, of_a_server_that_restarted_is_repeated_only_if_that_is_allowed)
{
	unsigned int sent;

	rig_open(&g);
	call_both_kinds();
	sent = g.fake->ncalls;
	g.fake->id++;
	server_forgets();
	run(&g, 60 * SEC);
	ended_by(&many[0], ULRPC_CAUSE_RESTARTED, ULRPC_EXECUTION_UNKNOWN);
	ended_well(&many[1]);
	cr_assert_eq(many[1].outcome.retries, 1);
	cr_assert_eq(g.fake->ncalls, sent + 1);
	rig_close(&g);
}

/* A server that does not know the connection may have forgotten that it
 * executed the call, unless it says that it has not known the connection since
 * before the call was sent. */
Test(call_again,
     that_may_have_been_executed_is_repeated_only_if_that_is_allowed)
{
	struct ulrpc_call_conf conf = within(100000000);
	const uint64_t us = 10000; /* from the call to its answer */

	rig_open(&g);
	g.fake->forgets = true;
	for (unsigned int i = 0; i < 4; i++) {
		bool sure = i % 2, idempotent = i / 2;

		g.fake->mute_calls = true;
		conf.semantics =
			idempotent ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE;
		call_with(&g, &n, &conf, "hello", 5);
		run(&g, us * USEC);
		g.fake->mute_calls = false;
		g.fake->unknown_for = us + (sure ? 201000 : 199000);
		fake_answer(g.fake, last_call(), WIRE_NOT_CONNECTED, NULL, 0);
		run(&g, 60 * SEC);
		if (!sure && !idempotent) {
			ended_by(&n, ULRPC_CAUSE_FORGOTTEN,
				 ULRPC_EXECUTION_UNKNOWN);
			cr_assert_eq(n.outcome.attempts, 1);
			continue;
		}
		cr_assert_eq(last_call()->flags, sure ? 0 : WIRE_CALL_RESENT);
		ended_well(&n);
		cr_assert_eq(n.outcome.attempts, 2);
	}
	rig_close(&g);
}

/* A server that answers "doubtful" does not know any more whether it executed
 * the call. */
Test(call_again, that_the_server_doubts_is_repeated_once_if_that_is_allowed)
{
	struct ulrpc_call_conf conf = within(100000000);

	rig_open(&g);
	g.fake->call_status = WIRE_DOUBTFUL;
	for (unsigned int i = 0; i < 2; i++) {
		conf.semantics = i ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE;
		call_with(&g, &n, &conf, "hello", 5);
		run(&g, SEC);
		ended_by(&n, i ? ULRPC_CAUSE_FORGOTTEN : ULRPC_CAUSE_RESTARTED,
			 ULRPC_EXECUTION_UNKNOWN);
		cr_assert_eq(n.outcome.attempts, i + 1);
		cr_assert_eq(last_call()->flags, i ? WIRE_CALL_RESENT : 0);
	}
	rig_close(&g);
}

static void say_sets(struct fake *f, struct wire_connected *c)
{
	(void)f;
	c->annexes = true;
	c->sets = 16;
}

/* A server that says of whatever comes that it does not know the metadata. The
 * call is sent once more, with its metadata, and no other call suffers. */
Test(call_again, that_a_liar_does_not_know_the_metadata_of_ends)
{
	struct ulrpc_call_conf conf = within(100000000);

	rig_open(&g);
	g.fake->on_connected = say_sets;
	cr_assert_eq(ulrpc_context_new(&conf.context), 0);
	cr_assert_eq(ulrpc_context_add(conf.context, "name", "value", 5), 0);
	for (unsigned int i = 0; i < 3; i++) {
		call_with(&g, &n, &conf, "hello", 5);
		run(&g, SEC);
		ended_by(&n, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
		cr_assert_eq(last_call()->flags, WIRE_CALL_ANNEX);
	}
	/* a head of a length, field and number, and the body */
	cr_assert_eq(last_call()->length, 3 + 5);
	g.fake->call_status = WIRE_UNKNOWN_SET;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, SEC);
	ended_by(&n, ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(n.outcome.attempts, 2);
	cr_assert_gt(last_call()->length, 3 + 5);
	g.fake->call_status = WIRE_OK;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, SEC);
	ended_by(&n, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(n.outcome.attempts, 1);
	ulrpc_context_free(conf.context);
	rig_close(&g);
}

/* Sends @body in a message of which LNet never hears that it has gone. Returns
 * the message. */
static struct batch *sent_without_end(const uint8_t *body, size_t length)
{
	struct ulnet_nid from = nth_id(CLIENT).nid, to = nth_id(SERVER).nid;
	struct ulnet_sim_link mute = { .mute = LNET_SIM_ALWAYS }, good = { 0 };
	struct ulrpc_call_conf conf = within(100000000);

	g.fake->mute_calls = true;
	lnet_sim_link_set(g.sim, &from, &to, &mute);
	call_with(&g, &many[0], &conf, body, length);
	run(&g, 10 * MSEC);
	lnet_sim_link_set(g.sim, &from, &to, &good);
	g.fake->mute_calls = false;
	cr_assert_eq(many[0].call->out.batch->nborrowed, 1);
	return many[0].call->out.batch;
}

/* The service has come back with a lower limit while LNet still sends an
 * attempt of a call: the call is not lent before LNet has finished, as that
 * would be written over what LNet sends. A device may take its time for that;
 * here a message that it does not finish is said to be of this call. */
Test(call_again, is_not_lent_while_it_is_still_sent)
{
	static uint8_t body[5000];
	struct ulrpc_call_conf conf = within(100000000);
	struct batch *p;

	memset(body, 'b', sizeof(body));
	rig_open(&g);
	call(&g, &n, 10000000);
	run(&g, SEC);
	ended_well(&n);
	p = sent_without_end(body, sizeof(body));
	g.client->request_max = 1000;
	g.client->request_limit = 1 << 20;
	call_with(&g, &n, &conf, body, sizeof(body));
	call_put(p->entries[0].borrowed);
	p->entries[0].borrowed = n.call;
	call_get(n.call);
	run(&g, SEC);
	cr_assert_eq(n.call->fsm.state, CALL_QUEUED);
	cr_assert_eq(n.call->flags & CALL_LENT, 0);
	cr_assert_eq(memcmp(call_body(n.call), body, sizeof(body)), 0);
	fake_echo(g.fake, last_call());
	run(&g, SEC);
	cr_assert_eq(many[0].ended, 1);
	ulrpc_call_put(many[0].call);
	ended_by(&n, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(last_call()->length, 0, "the body is lent");
	rig_close(&g);
}

static uint8_t store;

static void say_store(struct fake *f, struct wire_opened *o)
{
	(void)f;
	o->durable = true;
	memset(o->incarnation, store, sizeof(o->incarnation));
}

/* The service restarts with the same store, or with another one, while a call
 * is under way. Only the same store knows whether the call was executed. */
Test(call_again, that_was_sent_to_another_store_is_not_looked_up)
{
	struct ulrpc_call_conf conf = within(100000000);

	conf.semantics = ULRPC_EXACTLY_ONCE;
	for (unsigned int other_store = 0; other_store < 2; other_store++) {
		struct arrived *first;

		store = 1;
		rig_open(&g);
		g.fake->on_opened = say_store;
		g.fake->mute_calls = true;
		call_with(&g, &n, &conf, "hello", 5);
		run(&g, 10 * MSEC);
		first = last_call();
		store += (uint8_t)other_store;
		/* After this call the client opens the service again, and
		 * learns of the store. */
		call(&g, &many[0], 50000);
		run(&g, 200 * MSEC);
		ended_by(&many[0], ULRPC_CAUSE_DEADLINE,
			 ULRPC_EXECUTION_UNKNOWN);
		g.fake->mute_calls = false;
		fake_answer(g.fake, first, WIRE_DOUBTFUL, NULL, 0);
		run(&g, SEC);
		if (other_store) {
			ended_by(&n, ULRPC_CAUSE_RESTARTED,
				 ULRPC_EXECUTION_UNKNOWN);
			cr_assert_eq(g.fake->ncalls, 2);
		} else {
			ended_well(&n);
			cr_assert_eq(last_call()->flags, WIRE_CALL_RESENT);
		}
		rig_close(&g);
	}
}

/* When a call ends because the server has restarted, its callback makes a call
 * of another client, which must be sent at once. */
static struct ulrpc_client *other;

static void call_other(void *arg, const struct ulrpc_outcome *o,
		       const void *reply, size_t length)
{
	struct ulrpc_call_conf conf = within(100000000);

	(void)arg;
	(void)reply;
	(void)length;
	cr_assert_eq(o->cause, ULRPC_CAUSE_RESTARTED);
	many[0] = (struct note){ .sim = g.sim };
	cr_assert_eq(ulrpc_call(other, 77, "hello", 5, &conf, note_end,
				&many[0], &many[0].call),
		     0);
}

Test(call_again, that_is_made_after_a_restart_is_not_ended_by_it)
{
	struct ulrpc_call_conf conf = within(100000000);
	struct ulrpc_client *first;

	rig_open(&g);
	first = g.client;
	rig_client(&g, 0);
	other = g.client;
	other->batch_max = 1;
	cr_assert_eq(other->imp, first->imp);
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
	g.fake->mute_calls = true;
	cr_assert_eq(
		ulrpc_call(first, 77, "x", 1, &conf, call_other, NULL, NULL),
		0);
	run(&g, 100 * MSEC);
	g.fake->id++;
	g.fake->forgets = true;
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	g.fake->mute_calls = false;
	run(&g, 60 * SEC);
	ended_well(&many[0]);
	cr_assert_eq(many[0].outcome.attempts, 1);
	ulrpc_client_close(first);
	rig_close(&g);
}

Test(call_again,
     of_a_server_that_has_forgotten_us_is_repeated_only_if_that_is_allowed)
{
	rig_open(&g);
	call_both_kinds();
	cr_assert_eq(g.fake->ncalls, 2);
	server_forgets();
	run(&g, 60 * SEC);
	ended_by(&many[0], ULRPC_CAUSE_FORGOTTEN, ULRPC_EXECUTION_UNKNOWN);
	ended_well(&many[1]);
	cr_assert_eq(g.fake->ncalls, 3);
	rig_close(&g);
}
