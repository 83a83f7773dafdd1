/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies, as a raw client sends and sees them. */
#include <signal.h>

#include "tests/unit/rpc/server/request_rig.h"

Test(request, replies_of_a_message_travel_together)
{
	struct wire_call calls[8];
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 8; i++)
		calls[i] = raw_client_call_of(i + 1, "echo", 3);
	raw_client_send(&a, calls, 8, "aaabbbcccdddeeefffggghhh", 0);
	settle(&g);
	cr_assert_eq(a.messages, 1);
	cr_assert_eq(a.replies, 8);
	for (unsigned int i = 0; i < 8; i++) {
		char want[4] = { (char)('a' + i), (char)('a' + i),
				 (char)('a' + i) };

		cr_assert_eq(a.reply[i].xid, i + 1);
		cr_assert_eq(a.reply[i].status, WIRE_OK);
		cr_assert_eq(memcmp(a.body[i], want, 3), 0);
	}
	serve_fini(&g);
}

/* The handler gets the trace context of a call if it has the length that is
 * understood; with a trace of any other length the call is served without one.
 */
Test(request, trace)
{
	static const uint8_t trace[TRACE_LENGTH + 1] = {
		0, 0x4b, [16] = 0x36, [24] = 0xb7, [25] = 1
	};
	struct wire_call c;
	struct serve_rig g;

	rig(&g);
	for (uint32_t length = 0; length <= sizeof(trace); length++) {
		c = raw_client_call_of(length + 1, "echo", 1);
		c.trace = (struct wire_view){ trace, trace + length };
		raw_client_send(&a, &c, 1, "x", 0);
		settle(&g);
		cr_assert_eq(a.reply[length].status, WIRE_OK);
		if (length == TRACE_LENGTH)
			cr_assert_str_eq(g.served.info.trace,
					 "00-4b000000000000000000000000000036-"
					 "00000000000000b7-01");
		else
			cr_assert_str_eq(g.served.info.trace, "");
	}
	serve_fini(&g);
}

/* 31 replies of 4096 bytes travel in one message, too, so that the calls that
 * their client makes next can do so as well. */
Test(request, long_replies_of_a_message_travel_together)
{
	static char bodies[31 * 4096];
	struct wire_call calls[31];
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 31; i++)
		calls[i] = raw_client_call_of(i + 1, "echo", 4096);
	raw_client_send(&a, calls, 31, bodies, 0);
	settle(&g);
	cr_assert_eq(a.replies, 31);
	cr_assert_eq(a.messages, 1);
	serve_fini(&g);
}

Test(request, by_workers)
{
	struct wire_call calls[32];
	char bodies[32 * 4];
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 32; i++) {
		calls[i] = raw_client_call_of(i + 1, "work", 4);
		memcpy(bodies + 4 * i, &i, 4);
	}
	raw_client_send(&a, calls, 32, bodies, 0);
	settle(&g);
	cr_assert_eq(a.replies, 32);
	for (unsigned int i = 0; i < 32; i++) {
		cr_assert_eq(raw_client_reply(&a, i + 1)->status, WIRE_OK);
		cr_assert_eq(g.served.order[i], i, "first come, first served");
	}
	serve_fini(&g);
}

#if !SLAB_IS_MALLOC
/* The memory of long bodies is used again for bodies of about the same length.
 */
Test(request, long_bodies)
{
	struct ulrpc_service_conf conf = { .request_max = 100000,
					   .buffer_size = 400000 };
	struct wire_call call = raw_client_call_of(0, "work", 70000);
	static char body[100000];
	struct serve_rig g;
	uint64_t made = 0;

	rig_with(&g, &conf, 1);
	call.reply_max = sizeof(body);
	for (unsigned int i = 0; i < 40; i++) {
		call.xid++;
		call.length = 70000 + 200 * i;
		raw_client_send(&a, &call, 1, body, 0);
		settle(&g);
		if (i == 0)
			made = cpt0(&g)->slab.made;
	}
	cr_assert_eq(g.served.runs, 40);
	cr_assert_gt(cpt0(&g)->slab.kept, 70000);
	cr_assert_eq(cpt0(&g)->slab.made, made);
	serve_fini(&g);
}
#endif

Test(request, refusals)
{
	struct wire_call c;
	struct serve_rig g;
	static char big[70000];

	rig(&g);
	raw_client_call(&a, 1, "nothing", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_NO_METHOD);
	c = raw_client_call_of(2, "echo", 65537);
	raw_client_send(&a, &c, 1, big, 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_BAD_REQUEST);
	c = raw_client_call_of(0, "echo", 1);
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 0)->status, WIRE_BAD_REQUEST);
	a.epoch = 2;
	raw_client_call(&a, 3, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_STALE_EPOCH);
	a.epoch = 1;
	a.connection ^= UINT64_C(1) << 40;
	raw_client_call(&a, 4, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_NOT_CONNECTED);
	a.connection ^= UINT64_C(1) << 40;
	raw_client_call(&a, 5, "fail", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 5)->status, WIRE_FAILED);
	cr_assert_eq(raw_client_reply(&a, 5)->error, 42);
	c = raw_client_call_of(6, "echo", 10);
	c.reply_max = 9;
	raw_client_send(&a, &c, 1, "0123456789", 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 6)->status, WIRE_HELD);
	cr_assert_eq(raw_client_reply(&a, 6)->needed, 10);
	cr_assert_neq(raw_client_reply(&a, 6)->held, 0);
	cr_assert_eq(g.served.runs, 2, "one failed, one was long");
	serve_fini(&g);
}

/* A call of a service that the client has not opened on this connection. */
Test(request, not_opened)
{
	struct serve_rig g;

	rig(&g);
	a.epoch = 9;
	a.client++;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	raw_client_call(&a, 1, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_NO_SERVICE);
	cr_assert_eq(g.served.runs, 0);
	serve_fini(&g);
}

Test(request, duplicates_are_executed_once)
{
	struct wire_call c = raw_client_call_of(7, "echo", 1);
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 10; i++) {
		c.attempt = i;
		raw_client_send(&a, &c, 1, "x", 0);
		raw_client_send(&a, &c, 1, "x", 0);
	}
	settle(&g);
	/* Each of the ten attempts gets one reply; copies get none. */
	cr_assert_eq(g.served.runs, 1);
	cr_assert_eq(a.replies, 10);
	for (unsigned int i = 0; i < 10; i++) {
		cr_assert_eq(a.reply[i].xid, 7);
		cr_assert_eq(a.reply[i].attempt, i);
		cr_assert_eq(a.reply[i].status, WIRE_OK);
		cr_assert_eq(a.body[i][0], 'x');
	}
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_repeated), 10);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_answers_again), 9);
	/* Copies of a call that is still being served, and of one that was
	 * refused. */
	raw_client_call(&a, 8, "park", "x");
	raw_client_call(&a, 8, "park", "x");
	raw_client_call(&a, 9, "nothing", "x");
	raw_client_call(&a, 9, "nothing", "x");
	settle(&g);
	cr_assert_eq(g.served.runs, 2);
	raw_client_reply(&a, 9);
	serve_release(&g.served);
	settle(&g);
	raw_client_reply(&a, 8);
	/* A call that the client has acknowledged is not executed any more. */
	c = raw_client_call_of(100, "echo", 1);
	raw_client_send(&a, &c, 1, "x", 50);
	c = raw_client_call_of(50, "echo", 1);
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(g.served.runs, 3);
	raw_client_reply(&a, 100);
	serve_fini(&g);
}

/* After a reconnect a call that comes again is executed again only if both its
 * caller and its method are idempotent. */
Test(request, executed_once_over_a_reconnect)
{
	static const struct {
		const char *method;
		enum ulrpc_semantics semantics;
		unsigned int runs, replies;
	} cases[] = {
		{ "again", ULRPC_IDEMPOTENT, 2, 2 },
		{ "again", ULRPC_AT_MOST_ONCE, 1, 2 },
		{ "echo", ULRPC_IDEMPOTENT, 1, 2 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_call c = raw_client_call_of(3, cases[i].method, 1);
		struct serve_rig g;

		rig(&g);
		c.semantics = cases[i].semantics;
		raw_client_send(&a, &c, 1, "x", 0);
		settle(&g);
		a.epoch = 2;
		raw_client_connect(&a);
		cr_assert(a.control.connected.reconnected);
		/* A copy of the first attempt, and another attempt. */
		raw_client_send(&a, &c, 1, "x", 0);
		c.attempt = 1;
		c.flags = WIRE_CALL_RESENT;
		raw_client_send(&a, &c, 1, "x", 0);
		settle(&g);
		cr_assert_eq(g.served.runs, cases[i].runs, "case %u", i);
		cr_assert_eq(a.replies, cases[i].replies);
		serve_fini(&g);
	}
}

/* The caller says that another server, or this one over another connection, may
 * have executed the call. It is executed only if both caller and method are
 * idempotent. */
Test(request, resent_calls)
{
	static const struct {
		const char *method;
		enum ulrpc_semantics caller;
		uint32_t status;
	} cases[] = {
		{ "echo", ULRPC_AT_MOST_ONCE, WIRE_DOUBTFUL },
		{ "echo", ULRPC_IDEMPOTENT, WIRE_DOUBTFUL },
		{ "again", ULRPC_AT_MOST_ONCE, WIRE_DOUBTFUL },
		{ "again", ULRPC_EXACTLY_ONCE, WIRE_DOUBTFUL },
		{ "again", ULRPC_IDEMPOTENT, WIRE_OK },
		{ "nothing", ULRPC_AT_MOST_ONCE, WIRE_NO_METHOD },
	};
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_call c =
			raw_client_call_of(i + 1, cases[i].method, 1);

		c.flags = WIRE_CALL_RESENT;
		c.semantics = cases[i].caller;
		raw_client_send(&a, &c, 1, "x", 0);
		settle(&g);
		cr_assert_eq(raw_client_reply(&a, i + 1)->status,
			     cases[i].status);
	}
	cr_assert_eq(g.served.runs, 1);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_doubtful), 4);
	cr_assert_eq(serve_ended(cpt0(&g), WIRE_DOUBTFUL), 4);
	serve_fini(&g);
}

static unsigned int continued;

static void reply_continued(void *arg, struct ulrpc_request *r)
{
	cr_assert_eq(arg, &continued);
	continued++;
	ulrpc_reply(r, "later", 5);
}

static void continue_twice(void *arg, struct ulrpc_request *r)
{
	continued++;
	cr_assert_eq(ulrpc_request_continue(r, reply_continued, arg), 0);
}

/* A handler that has returned without replying may be continued on a worker,
 * and that continuation may continue once more. */
Test(request, continued)
{
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	raw_client_call(&a, 2, "hold", "x");
	raw_client_call(&a, 3, "work", "x");
	settle(&g);
	while (g.served.parked)
		cr_assert_eq(ulrpc_request_continue(unpark(&g.served),
						    continue_twice, &continued),
			     0);
	cr_assert_eq(continued, 0, "not inside of that");
	settle(&g);
	cr_assert_eq(continued, 4);
	for (uint64_t xid = 1; xid <= 3; xid++)
		cr_assert_eq(raw_client_reply(&a, xid)->status, WIRE_OK);
	serve_fini(&g);
}

/* A request can be continued even after its service has stopped. */
Test(request, continued_after_the_end)
{
	struct ulrpc_request *kept, *waiting;
	struct serve_rig g;

	continued = 0;
	rig(&g);
	raw_client_call(&a, 1, "hold", "x");
	raw_client_call(&a, 2, "hold", "x");
	settle(&g);
	kept = unpark(&g.served);
	waiting = unpark(&g.served);
	cr_assert_eq(
		ulrpc_request_continue(waiting, continue_twice, &continued), 0);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), -ETIMEDOUT);
	cr_assert_eq(continued, 2);
	cr_assert_eq(ulrpc_request_continue(kept, continue_twice, &continued),
		     0);
	cr_assert_eq(continued, 4);
	serve_fini(&g);
}

/* Messages that cannot be decoded are counted, hold nothing afterwards, and do
 * not affect later calls. */
Test(request, unreadable)
{
	uint8_t bytes[300];
	uint64_t hdr_data, random = 88172645463325252u;
	struct wire_call c = raw_client_call_of(1, "echo", 20);
	struct serve_rig g;
	size_t length;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	rig(&g);
	length = raw_client_pack(&a, &c, 1, "01234567890123456789", 0, bytes,
				 &hdr_data);
	for (size_t cut = 0; cut < length; cut++) {
		raw_client_put(&a, a.portal, 1, hdr_data, bytes, cut);
		if (cut % 100 == 0)
			settle(&g);
	}
	for (unsigned int i = 0; i < 200; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		raw_client_put(&a, a.portal, 1, random, bytes, length);
	}
	settle(&g);
	cr_assert_eq(g.served.runs, 0);
	cr_assert_eq(a.replies, 0);
	cr_assert_eq(serve_unreadable(cpt0(&g)), length + 200);
	cr_assert_eq(serve_holds(cpt0(&g)), 0);
	raw_client_call(&a, 1, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	serve_fini(&g);
}

/* Replies of 5000 bytes of inline handlers and of workers in one message, then
 * a single one of 60000 bytes. */
Test(request, long_replies)
{
	static char big[60000];
	struct wire_call calls[12];
	struct serve_rig g;

	rig(&g);
	for (unsigned int i = 0; i < 12; i++) {
		calls[i] = raw_client_call_of(i + 1, i % 2 ? "work" : "echo",
					      5000);
		calls[i].reply_max = 100000;
		memset(big + i * 5000, 'a' + (int)i, 5000);
	}
	raw_client_send(&a, calls, 12, big, 0);
	settle(&g);
	cr_assert_eq(a.replies, 12);
	cr_assert_leq(a.messages, 7, "6 are inline");
	for (unsigned int i = 0; i < 12; i++) {
		const struct wire_reply *r = raw_client_reply(&a, i + 1);

		cr_assert_eq(r->length, 5000);
		cr_assert_eq(r->body[0], 'a' + i);
		cr_assert_eq(r->body[4999], 'a' + i);
	}
	calls[0] = raw_client_call_of(20, "work", 60000);
	calls[0].reply_max = 100000;
	raw_client_send(&a, calls, 1, big, 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 20)->length, 60000);
	serve_fini(&g);
}

Test(request, replies_are_sent_again)
{
	struct ulnet_sim_link bad = { .refuse = LNET_SIM_ALWAYS };
	struct ulnet_sim_link good = { 0 };
	struct ulnet_nid from = nth_id(SERVER).nid, to = nth_id(CALLER).nid;
	struct serve_rig g;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	rig(&g);
	lnet_sim_link_set(g.sim, &from, &to, &bad);
	raw_client_call(&a, 1, "echo", "x");
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(a.replies, 0);
	cr_assert_gt(serve_counted(cpt0(&g), RPC_STAT_answers_resent), 2);
	lnet_sim_link_set(g.sim, &from, &to, &good);
	lnet_sim_run(g.sim, 6 * SEC);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(g.served.runs, 1);
	/* The server gives up a reply that it cannot deliver for long. */
	lnet_sim_link_set(g.sim, &from, &to, &bad);
	raw_client_call(&a, 2, "echo", "x");
	lnet_sim_run(g.sim, 30 * SEC);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_answers_lost), 1);
	cr_assert(list_empty(&cpt0(&g)->replies));
	serve_fini(&g);
}

static char logged[1024];
static unsigned int nlogged;

static void log_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	nlogged++;
	snprintf(logged, sizeof(logged), "%s", line);
}

Test(request, stuck_is_logged_once)
{
	struct ulrpc_service_conf conf = { .stuck = 2000000 };
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	lnet_log_set(LNET_LOG_WARN, log_line, NULL);
	raw_client_call(&a, 1, "hold", "x");
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(nlogged, 0);
	lnet_sim_run(g.sim, 60 * SEC);
	cr_assert_eq(nlogged, 1);
	cr_assert(strstr(logged, "service test, method hold: request 1 of "),
		  "%s", logged);
	serve_release(&g.served);
	lnet_log_set(LNET_LOG_WARN, NULL, NULL);
	serve_fini(&g);
}

/* Workers take requests of high priority first, but after every high_ratio of
 * them one of another lane. */
Test(request, lanes)
{
	struct ulrpc_service_conf conf = { .high_ratio = 2 };
	static const uint32_t want[] = { 100, 1, 2, 50, 3, 4, 51, 5 };
	struct serve_rig g;
	uint64_t xid = 1;

	rig_with(&g, &conf, 1);
	for (uint32_t i = 0; i < 8; i++) {
		static const struct {
			uint32_t word;
			enum ulrpc_priority priority;
		} todo[] = {
			/* occupies the worker */
			{ 100, ULRPC_PRIORITY_NORMAL },
			{ 50, ULRPC_PRIORITY_NORMAL },
			{ 51, ULRPC_PRIORITY_NORMAL },
			{ 1, ULRPC_PRIORITY_HIGH },
			{ 2, ULRPC_PRIORITY_HIGH },
			{ 3, ULRPC_PRIORITY_HIGH },
			{ 4, ULRPC_PRIORITY_HIGH },
			{ 5, ULRPC_PRIORITY_HIGH },
		};
		struct wire_call c = raw_client_call_of(xid++, "park", 4);

		c.priority = todo[i].priority;
		raw_client_send(&a, &c, 1, &todo[i].word, 0);
		settle(&g);
	}
	for (unsigned int i = 0; i < 8; i++) {
		cr_assert_eq(g.served.runs, i + 1);
		cr_assert_eq(g.served.order[i], want[i], "%u: %u", i,
			     g.served.order[i]);
		ulrpc_reply(unpark(&g.served), NULL, 0);
		settle(&g);
	}
	serve_fini(&g);
}

Test(request, second_reply, .signal = SIGABRT)
{
	struct ulrpc_request *r;
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	settle(&g);
	r = unpark(&g.served);
	/* As it waits for nothing, the request would be gone after its first
	 * reply: it is made to look like one that has been replied to. */
	atomic_store(&r->state, REQUEST_REPLIED);
	ulrpc_reply(r, NULL, 0);
}

/* Requests are served on the CPT of their connection; a message that comes to
 * another CPT is passed on to it. */
Test(request, other_cpts)
{
	struct serve_rig g;
	unsigned int home, n = 0;

	rig_with(&g, NULL, 4);
	home = export_cpt(a.connection);
	for (uint64_t xid = 1; xid <= 20; xid++)
		raw_client_call(&a, xid, xid % 2 ? "echo" : "work", "x");
	settle(&g);
	cr_assert_eq(a.replies, 20);
	cr_assert_eq(serve_ended_all(&g.service->cpt[home]), 20);
	/* Calls request_on_message() on each of the other CPTs, as if a message
	 * had come there. */
	for (unsigned int cpt = 0; cpt < 4; cpt++) {
		struct wire_call c = raw_client_call_of(100 + cpt, "echo", 1);
		struct ulnet_event ev = {
			.type = LNET_EVENT_PUT,
			.initiator = nth_id(CALLER),
			.source = nth_id(CALLER).nid,
			.target = nth_id(SERVER),
			.match_bits = 5,
		};
		uint8_t bytes[200];
		size_t length =
			raw_client_pack(&a, &c, 1, "x", 0, bytes, &ev.hdr_data);

		if (cpt == home)
			continue;
		request_on_message(&g.service->cpt[cpt], &ev, bytes, length);
		settle(&g);
		n++;
		cr_assert_eq(raw_client_reply(&a, 100 + cpt)->status, WIRE_OK);
		cr_assert_eq(g.service->cpt[cpt].forwards, 0);
	}
	cr_assert_eq(serve_ended_all(&g.service->cpt[home]), 20 + n);
	serve_fini(&g);
}
