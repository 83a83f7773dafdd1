/* SPDX-License-Identifier: BSD-3-Clause */
/* Later attempts of calls, and queries, as a raw client sends them. */
#include <errno.h>

#include "base/crc32c.h"
#include "tests/unit/rpc/server/request_rig.h"

static struct serve_rig g;

/* Sends an attempt of call @xid, to be answered to match bits of its own, which
 * are returned. */
static uint64_t send_attempt(uint64_t xid, const char *method, uint32_t attempt,
			     uint32_t flags)
{
	bool query = flags & WIRE_CALL_QUERY;
	struct wire_call c = raw_client_call_of(xid, method, query ? 0 : 1);

	c.attempt = attempt;
	c.flags = flags;
	raw_client_send(&a, &c, 1, "x", 0);
	return a.match;
}

/* Checks that the last reply that came was this one, to these match bits. */
static void replied(uint64_t xid, uint32_t attempt, uint32_t status,
		    uint64_t match)
{
	const struct wire_reply *r = &a.reply[a.replies - 1];

	cr_assert_gt(a.replies, 0);
	cr_assert_eq(r->xid, xid);
	cr_assert_eq(r->attempt, attempt);
	cr_assert_eq(r->status, status, "%u", r->status);
	cr_assert_eq(a.to[a.replies - 1], match);
}

/* Sends an attempt, and checks that it is answered at once with @status. */
static void answered(uint64_t xid, const char *method, uint32_t attempt,
		     uint32_t flags, uint32_t status)
{
	uint64_t match = send_attempt(xid, method, attempt, flags);

	settle(&g);
	replied(xid, attempt, status, match);
}

static uint64_t count(enum rpc_stat stat)
{
	return serve_counted(cpt0(&g), stat);
}

/* Sets the faults of the link that replies take. */
static void way_back(const struct ulnet_sim_link *link)
{
	link_set(g.sim, SERVER, CALLER, link);
}

/* ---- calls that are being served ---- */

/* The reply goes to the latest attempt of the call, in a message of its own,
 * not in the one for the calls that came with the first attempt. The client
 * gets an extension at once. */
Test(again, the_reply_goes_to_the_latest_attempt)
{
	/* The second attempt is at the call that runs last. */
	struct wire_call calls[2] = { raw_client_call_of(2, "hold", 1),
				      raw_client_call_of(1, "hold", 1) };
	uint64_t first, second, match[2];

	rig(&g);
	raw_client_send(&a, calls, 2, "xy", 0);
	first = a.match;
	settle(&g);
	send_attempt(1, "hold", 1, 0);
	second = send_attempt(1, "hold", 2, WIRE_CALL_QUERY);
	send_attempt(1, "hold", 1, 0); /* a late copy */
	settle(&g);
	cr_assert_eq(g.served.runs, 2);
	cr_assert_eq(a.replies, 0);
	cr_assert_eq(a.extension[a.nextensions - 1].xid, 1);
	cr_assert_eq(a.extension[a.nextensions - 1].attempt, 2);
	cr_assert_eq(count(RPC_STAT_requests_again), 2);
	cr_assert_eq(count(RPC_STAT_requests_repeated), 1);
	/* The handler has been told the number of the attempt that it runs for;
	 * the first one is 1. */
	cr_assert_eq(g.served.info.attempt, 1);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 2);
	cr_assert_eq(a.messages, 2);
	for (unsigned int i = 0; i < 2; i++)
		match[a.reply[i].xid - 1] = a.to[i];
	cr_assert_eq(match[0], second);
	cr_assert_eq(match[1], first);
	cr_assert_eq(raw_client_reply(&a, 1)->attempt, 2);
	cr_assert_eq(raw_client_reply(&a, 2)->attempt, 0);
	serve_fini(&g);
}

/* All attempts come in one message, before any of them runs: by a worker, held
 * by an inline handler, or answered inline. */
Test(again, attempts_of_one_message)
{
	static const char *const methods[] = { "work", "hold", "echo" };
	struct wire_call calls[4];

	for (unsigned int m = 0; m < ARRAY_SIZE(methods); m++) {
		rig(&g);
		for (unsigned int i = 0; i < ARRAY_SIZE(calls); i++) {
			calls[i] = raw_client_call_of(1, methods[m], 1);
			calls[i].attempt = i;
		}
		raw_client_send(&a, calls, ARRAY_SIZE(calls), "wxyz", 0);
		settle(&g);
		serve_release(&g.served);
		settle(&g);
		cr_assert_eq(g.served.runs, 1);
		/* Inline, the first attempt was answered before the second was
		 * read. */
		cr_assert_eq(a.replies, m == 2 ? 4 : 1);
		replied(1, 3, WIRE_OK, a.match);
		cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 0);
		serve_fini(&g);
	}
}

/* A later attempt prolongs the time of a queued request, and never shortens it.
 */
Test(again, deadlines_move_forward)
{
	struct wire_call c = raw_client_call_of(2, "work", 1);

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	c.timeout = c.remaining = 1000000;
	c.remaining *= 10;
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 100 * MSEC);
	c.attempt = 1;
	c.timeout = 5000000;
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 100 * MSEC);
	c.attempt = 2;
	c.timeout = 1;
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 4 * SEC);
	cr_assert_eq(a.replies, 0);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_OK);
	cr_assert_eq(raw_client_reply(&a, 2)->attempt, 2);
	serve_fini(&g);
}

/* The next call in a slot ends the one before: it is not executed if it is
 * queued, canceled if it is running, and not answered, even if another attempt
 * of it comes later. */
Test(again, the_slot_is_used_again)
{
	struct wire_call c = raw_client_call_of(3, "work", 1);
	const struct ulrpc_request *r;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	raw_client_call(&a, 2, "work", "x");
	settle(&g);
	r = g.served.park[0];
	cr_assert(!ulrpc_request_canceled(r));
	c.slot = 2;
	raw_client_send(&a, &c, 1, "x", 0);
	c = raw_client_call_of(4, "work", 1);
	c.slot = 1;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert(ulrpc_request_canceled(r));
	cr_assert_eq(count(RPC_STAT_requests_canceled), 2);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 3);
	send_attempt(1, "park", 1, 0);
	send_attempt(2, "work", 1, WIRE_CALL_QUERY);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(g.served.runs, 3);
	cr_assert_eq(a.replies, 2);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_OK);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_OK);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 0);
	serve_fini(&g);
}

/* ---- calls that have been served ---- */

/* If the reply is lost a later attempt, or a query, is answered with the same
 * reply, which the record has kept. */
Test(again, a_reply_that_is_lost)
{
	static const struct ulnet_sim_link bad[] = {
		{ .loss = LNET_SIM_ALWAYS },
		{ .error = LNET_SIM_ALWAYS }, /* perhaps delivered */
		/* never delivered, and the server is told late */
		{ .stall = LNET_SIM_ALWAYS },
	};
	static const char *const methods[] = { "echo", "work", "fail" };
	static const struct ulnet_sim_link good = { .latency = 0 };

	rig(&g);
	for (uint64_t xid = 1; xid <= 9; xid++) {
		const char *method = methods[xid % 3];
		uint32_t status = xid % 3 == 2 ? WIRE_FAILED : WIRE_OK;

		way_back(&bad[(xid - 1) / 3]);
		send_attempt(xid, method, 0, 0);
		lnet_sim_run(g.sim, MSEC);
		way_back(&good);
		a.replies = 0;
		answered(xid, method, 1, WIRE_CALL_QUERY, status);
		answered(xid, method, 2, 0, status);
		if (status == WIRE_OK)
			cr_assert_eq(a.body[a.replies - 1][0], 'x');
		else
			cr_assert_eq(a.reply[a.replies - 1].error, 42);
		cr_assert_eq(g.served.runs, xid);
	}
	cr_assert_eq(count(RPC_STAT_answers_again), 18);
	lnet_sim_run(g.sim, SEC);
	serve_fini(&g);
}

/* The reply to a later attempt says the same of bulk as the first one, also
 * after the service has stopped. */
static char moved_from[4096];

static void on_put(void *arg, int status, uint64_t length)
{
	cr_assert_eq(status, 0);
	cr_assert_eq(length, sizeof(moved_from));
	ulrpc_reply(arg, "put", 3);
}

static void on_sink(const struct ulnet_event *ev)
{
	(void)ev;
}

static void put_all(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct iovec iov = { moved_from, sizeof(moved_from) };

	(void)arg;
	(void)body;
	(void)length;
	cr_assert_eq(ulrpc_bulk_put(r, 0, 0, &iov, 1, on_put, r), 0);
}

Test(again, bulk_in_replies_sent_again)
{
	static const struct ulrpc_method_conf method = {
		.name = "put", .handler = put_all, .run = ULRPC_RUN_INLINE
	};
	struct ulrpc_service_conf conf = { .name = "test",
					   .methods = &method,
					   .nmethods = 1 };
	static const uint32_t lengths[] = { 1000, sizeof(moved_from) - 1000 };
	struct wire_segments lent = { .match = 0x7700,
				      .access = WIRE_ACCESS_SINK,
				      .checked = true,
				      .n = 2,
				      .length = lengths };
	struct wire_call c = raw_client_call_of(1, "put", 1);
	static uint8_t sink[2 * sizeof(moved_from)];
	uint32_t sums[3][ULRPC_SEGMENTS_MAX];

	for (unsigned int i = 0; i < sizeof(moved_from); i++)
		moved_from[i] = (char)(i * 7);
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start(&g, &conf);
	raw_client_init(&a, g.sim, CALLER, SERVER);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	raw_client_attach(&a, ULRPC_PORTAL_BULK, ~UINT64_C(0), sink,
			  sizeof(sink), on_sink);
	c.bulks.n = 1;
	c.bulks.list = &lent;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	c.attempt = 1;
	c.flags = WIRE_CALL_QUERY;
	c.length = c.bulks.n = 0;
	raw_client_send(&a, &c, 1, "", 0);
	settle(&g);
	cr_assert_eq(ulrpc_service_stop(g.service, 1000000), 0);
	g.service = NULL;
	c.attempt = 2;
	raw_client_send(&a, &c, 1, "", 0);
	settle(&g);
	cr_assert_eq(a.replies, 3);
	for (unsigned int i = 0; i < 3; i++) {
		struct wire_view view = a.reply[i].bulks.view;
		struct wire_moved_in in;

		cr_assert_eq(a.reply[i].attempt, i);
		cr_assert_eq(a.reply[i].status, WIRE_OK);
		cr_assert_eq(memcmp(a.body[i], "put", 3), 0);
		cr_assert_eq(a.reply[i].bulks.n, 1);
		cr_assert(wire_moved_next(&view, &in));
		cr_assert_eq(in.index, 0);
		cr_assert_eq(in.n, 2);
		wire_moved_checksums(&in, sums[i]);
	}
	cr_assert_eq(sums[0][0], crc32c(0, moved_from, 1000));
	for (unsigned int i = 1; i < 3; i++)
		cr_assert_eq(memcmp(sums[0], sums[i], 2 * sizeof(sums[0][0])),
			     0);
	serve_fini(&g);
}

/* The reply to an idempotent call is not kept: a query finds the call unknown,
 * and a later attempt executes it again. A call that was refused runs when it
 * comes again. */
Test(again, replies_that_are_not_kept)
{
	struct wire_call c = raw_client_call_of(1, "again", 1);

	rig(&g);
	c.semantics = ULRPC_IDEMPOTENT;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(atomic_load(&cpt0(&g)->used_bytes), 0);
	answered(1, "again", 1, WIRE_CALL_QUERY, WIRE_UNKNOWN_CALL);
	c.attempt = 2;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	replied(1, 2, WIRE_OK, a.match);
	cr_assert_eq(g.served.runs, 2);
	/* The handler refuses, so it has done nothing. */
	answered(2, "full", 0, 0, WIRE_OVERLOADED);
	answered(2, "full", 1, WIRE_CALL_QUERY, WIRE_UNKNOWN_CALL);
	answered(2, "full", 2, 0, WIRE_OVERLOADED);
	cr_assert_eq(g.served.runs, 4);
	cr_assert_eq(count(RPC_STAT_queries_unknown), 2);
	serve_fini(&g);
}

/* ---- calls that are unknown ---- */

/* If a query comes before the attempt that it asks about, that attempt is never
 * executed. */
Test(again, a_query_comes_first)
{
	rig(&g);
	send_attempt(1, "echo", 1, WIRE_CALL_QUERY);
	send_attempt(1, "echo", 0, 0);
	settle(&g);
	cr_assert_eq(g.served.runs, 0);
	cr_assert_eq(a.replies, 1);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_UNKNOWN_CALL);
	a.replies = 0;
	answered(1, "echo", 2, 0, WIRE_OK);
	cr_assert_eq(g.served.runs, 1);
	serve_fini(&g);
}

/* The client reconnects, and the server keeps its records: a message of the
 * older epoch is either a copy, or refused and not executed later. */
Test(again, of_an_older_epoch)
{
	rig(&g);
	send_attempt(1, "echo", 0, 0);
	settle(&g);
	a.epoch = 2;
	raw_client_connect(&a);
	cr_assert(a.control.connected.reconnected);
	a.replies = 0;
	answered(1, "echo", 1, WIRE_CALL_QUERY, WIRE_OK);
	answered(2, "echo", 1, WIRE_CALL_QUERY, WIRE_UNKNOWN_CALL);
	/* Copies and first attempts of the older epoch arrive. */
	a.replies = 0;
	a.epoch = 1;
	send_attempt(1, "echo", 0, 0);
	send_attempt(2, "echo", 0, 0);
	settle(&g);
	cr_assert_eq(a.replies, 0);
	answered(3, "echo", 0, 0, WIRE_STALE_EPOCH);
	a.epoch = 2;
	send_attempt(3, "echo", 0, 0);
	settle(&g);
	cr_assert_eq(a.replies, 1);
	answered(3, "echo", 1, 0, WIRE_OK);
	cr_assert_eq(g.served.runs, 2);
	serve_fini(&g);
}

/* If there is no room for a record the call is refused, and a query is told
 * that the call was not executed; but an attempt of a call that others may have
 * executed is not answered. When there is room the call is executed once. */
Test(again, no_room_for_records)
{
	struct quotas *chunks;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	rig(&g);
	chunks = &g.rpc[SERVER]->shards[0].exports->pools[EXPORT_PROVED].chunks;
	chunks->max = 0;
	answered(1, "echo", 0, 0, WIRE_OVERLOADED);
	cr_assert_gt(a.reply[0].retry_after, 0);
	answered(1, "echo", 1, 0, WIRE_OVERLOADED);
	answered(1, "echo", 2, WIRE_CALL_QUERY, WIRE_UNKNOWN_CALL);
	a.replies = 0;
	send_attempt(2, "echo", 1, WIRE_CALL_RESENT);
	settle(&g);
	cr_assert_eq(a.replies, 0);
	cr_assert_eq(count(RPC_STAT_requests_unnoted), 4);
	chunks->max = 4;
	answered(1, "echo", 0, 0, WIRE_OVERLOADED);
	answered(1, "echo", 1, 0, WIRE_OVERLOADED);
	cr_assert_eq(g.served.runs, 0);
	answered(1, "echo", 3, 0, WIRE_OK);
	cr_assert_eq(g.served.runs, 1);
	a.replies = 0;
	for (uint32_t attempt = 0; attempt <= 3; attempt++)
		send_attempt(1, "echo", attempt, 0);
	settle(&g);
	cr_assert_eq(a.replies, 0);
	cr_assert_eq(g.served.runs, 1);
	serve_fini(&g);
}

/* As above, with a real client: its call is executed if there is room before
 * its deadline, and otherwise ends with NOT_EXECUTED. */
Test(again, no_room_for_records_of_a_caller)
{
	const struct ulrpc_call_conf conf = { .deadline = 2000000 };

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	for (uint32_t room = 0; room < 2; room++) {
		struct called c = { 0 };
		struct quotas *chunks;

		serve_init(&g, 1, 1);
		serve_open(&g, NULL);
		serve_start_with(&g, NULL);
		serve_client(&g);
		chunks = &g.rpc[SERVER]
				  ->shards[0]
				  .exports->pools[EXPORT_PROVED]
				  .chunks;
		chunks->max = 0;
		cr_assert_eq(ulrpc_call(g.client, ulrpc_method("echo"), "x", 1,
					&conf, on_called, &c, NULL),
			     0);
		lnet_sim_run(g.sim, 5 * MSEC);
		cr_assert_eq(c.ended, 0);
		chunks->max = 4 * room;
		lnet_sim_run(g.sim, 2 * SEC);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(c.outcome.cause,
			     room ? ULRPC_CAUSE_OK : ULRPC_CAUSE_OVERLOADED);
		cr_assert_eq(c.outcome.execution,
			     room ? ULRPC_EXECUTED : ULRPC_NOT_EXECUTED);
		cr_assert_eq(g.served.runs, room);
		serve_fini(&g);
	}
}

/* The client is silent for longer than its lease: the server frees its records
 * and what they hold. When it connects again, it is told that the connection is
 * new. */
Test(again, the_connection_is_forgotten)
{
	struct shard *s;

	rig(&g);
	s = &g.rpc[SERVER]->shards[0];
	send_attempt(1, "echo", 0, 0);
	send_attempt(2, "park", 0, 0);
	settle(&g);
	cr_assert_gt(atomic_load(&cpt0(&g)->kept_bytes), 0);
	cr_assert_eq(s->exports->pools[EXPORT_PROVED].chunks.used, 1);
	cr_assert_eq(count(RPC_STAT_slots_noted), RECORD_CHUNK);
	cr_assert_eq(count(RPC_STAT_answers_kept_bytes),
		     atomic_load(&cpt0(&g)->kept_bytes));
	cr_assert_eq(ulrpc_stats_reset(g.rpc[SERVER]), 0);
	cr_assert_eq(count(RPC_STAT_requests_received), 0);
	lnet_sim_run(g.sim, 200 * SEC);
	cr_assert_eq(s->exports->table.used, 0);
	cr_assert_eq(s->exports->pools[EXPORT_PROVED].chunks.used, 0);
	cr_assert_eq(count(RPC_STAT_slots_noted), 0);
	cr_assert_eq(count(RPC_STAT_answers_kept_bytes), 0);
	cr_assert_eq(atomic_load(&cpt0(&g)->kept_bytes), 0);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(atomic_load(&cpt0(&g)->used_bytes), 0);
	a.epoch = 2;
	a.replies = 0;
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	cr_assert(!a.control.opened.status);
	answered(1, "echo", 1, WIRE_CALL_RESENT, WIRE_DOUBTFUL);
	/* Another attempt does not execute the call, either. */
	answered(1, "echo", 2, 0, WIRE_DOUBTFUL);
	cr_assert_eq(g.served.runs, 2);
	serve_fini(&g);
}

/* A service stops while it has one request in a handler, and another one has
 * been answered. The server still knows that both were executed, but their
 * replies are lost. */
Test(again, the_service_has_gone)
{
	struct ulrpc_request *r;

	rig(&g);
	send_attempt(1, "echo", 0, 0);
	send_attempt(2, "park", 0, 0);
	send_attempt(3, "work", 0, 0);
	settle(&g);
	r = unpark(&g.served);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), -ETIMEDOUT);
	ulrpc_reply(r, "late", 4);
	serve_start_with(&g, NULL);
	a.replies = 0;
	raw_client_open(&a, "test");
	/* The service has left the reply of this one. */
	answered(1, "echo", 1, WIRE_CALL_QUERY, WIRE_OK);
	cr_assert_eq(a.body[a.replies - 1][0], 'x');
	answered(2, "park", 1, 0, WIRE_DOUBTFUL);
	/* This call was refused when the service stopped. */
	answered(3, "work", 1, 0, WIRE_OK);
	cr_assert_eq(g.served.runs, 3);
	serve_fini(&g);
}

/* ---- memory of kept replies ---- */

/* A client that acknowledges nothing has its share of the memory for replies,
 * and no more; others are served. Once the deadlines of its calls are over, its
 * replies are dropped, and it is served again. */
Test(again, who_never_acknowledges)
{
	struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 17 };
	static struct raw_client b;
	static char big[2000];
	unsigned int runs;

	rig_with(&g, &conf, 1);
	raw_client_init(&b, g.sim, serve_node_add(&g, 2), SERVER);
	raw_client_connect(&b);
	raw_client_open(&b, "test");
	for (uint64_t xid = 1; xid <= 200; xid++) {
		struct wire_call c =
			raw_client_call_of(xid, "echo", sizeof(big));

		raw_client_send(&a, &c, 1, big, 0);
		lnet_sim_run(g.sim, MSEC);
	}
	runs = g.served.runs;
	cr_assert_lt(runs, 100);
	cr_assert_gt(runs, 20);
	cr_assert_eq(a.replies, 200);
	cr_assert_eq(a.reply[199].status, WIRE_OVERLOADED);
	cr_assert_leq(atomic_load(&cpt0(&g)->used_bytes),
		      conf.queue_bytes_max + sizeof(big) + 2048);
	/* The other client acknowledges its replies, and so needs little
	 * memory. */
	for (uint64_t xid = 1; xid <= 200; xid++) {
		struct wire_call c =
			raw_client_call_of(xid, "echo", sizeof(big));

		raw_client_send(&b, &c, 1, big, xid - 1);
		lnet_sim_run(g.sim, MSEC);
		cr_assert_eq(raw_client_reply(&b, xid)->status, WIRE_OK);
	}
	/* The replies of the first client are still kept. */
	a.replies = 0;
	answered(1, "echo", 1, WIRE_CALL_QUERY, WIRE_OK);
	/* Its callers' deadlines, 10 s, pass. */
	lnet_sim_run(g.sim, 11 * SEC);
	answered(300, "echo", 0, 0, WIRE_OK);
	cr_assert_lt(atomic_load(&cpt0(&g)->used_bytes), 10000);
	answered(1, "echo", 2, 0, WIRE_DOUBTFUL);
	cr_assert_eq(g.served.runs, runs + 201);
	serve_fini(&g);
}

/* When a call of a message finds no room the server looks for replies to drop.
 * It does not drop that of the call before, which is still being packed. */
Test(again, no_room_for_the_next_one)
{
	struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 17 };
	struct wire_call calls[2];

	rig_with(&g, &conf, 1);
	calls[0] = raw_client_call_of(1, "echo", 1);
	calls[1] = raw_client_call_of(2, "echo", 1);
	calls[1].reply_max = 1 << 20;
	raw_client_send(&a, calls, 2, "xy", 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_OVERLOADED);
	answered(1, "echo", 1, WIRE_CALL_QUERY, WIRE_OK);
	cr_assert_eq(g.served.runs, 1);
	serve_fini(&g);
}

/* A client that reuses its slots has one kept reply for each at most. */
Test(again, slots_bound_what_is_kept)
{
	uint64_t held = 0;

	rig(&g);
	for (uint64_t xid = 1; xid <= 400; xid++) {
		struct wire_call c = raw_client_call_of(xid, "echo", 1);

		c.slot = xid % 50;
		raw_client_send(&a, &c, 1, "x", 0);
		lnet_sim_run(g.sim, MSEC);
		if (xid == 50)
			held = atomic_load(&cpt0(&g)->used_bytes);
	}
	cr_assert_eq(g.served.runs, 400);
	cr_assert_eq(atomic_load(&cpt0(&g)->used_bytes), held);
	cr_assert_eq(atomic_load(&cpt0(&g)->kept_bytes), held);
	serve_fini(&g);
}

/* ---- messages on other CPTs ---- */

/* Messages come to any CPT; attempts, too, are passed on to that of their
 * connection. */
Test(again, on_any_cpt)
{
	static const struct ulnet_sim_link bad = { .loss = LNET_SIM_ALWAYS };
	static const struct ulnet_sim_link good = { .latency = 0 };

	rig_with(&g, NULL, 4);
	way_back(&bad);
	send_attempt(1, "echo", 0, 0);
	settle(&g);
	way_back(&good);
	for (uint32_t i = 1; i <= 8; i++)
		answered(1, "echo", i, WIRE_CALL_QUERY, WIRE_OK);
	cr_assert_eq(g.served.runs, 1);
	serve_fini(&g);
}
