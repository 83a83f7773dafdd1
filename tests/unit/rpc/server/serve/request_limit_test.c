/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of a service: requests that are too many, too large or too late. */
#include "tests/unit/rpc/server/request_rig.h"

Test(request_limit, no_room_says_the_handler)
{
	struct ulrpc_service_conf conf = { .retry_after = 1234 };
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	raw_client_call(&a, 1, "full", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OVERLOADED);
	cr_assert_eq(raw_client_reply(&a, 1)->retry_after, 1234);
	cr_assert_eq(serve_ended(cpt0(&g), WIRE_OVERLOADED), 1);
	serve_fini(&g);
}

Test(request_limit, expired_in_the_queue)
{
	struct wire_call c;
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "park", "first");
	c = raw_client_call_of(2, "work", 1);
	c.timeout = c.remaining = 5000;
	raw_client_send(&a, &c, 1, "x", 0);
	c = raw_client_call_of(3, "work", 1);
	c.timeout = 0;
	c.remaining = 5000;
	raw_client_send(&a, &c, 1, "x", 0);
	c = raw_client_call_of(4, "work", 1);
	c.timeout = c.remaining = 0;
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 6 * MSEC);
	cr_assert_eq(a.replies, 2, "at once");
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_OK);
	cr_assert_eq(g.served.runs, 2, "2 and 3 were too late");
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_EXPIRED);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_EXPIRED);
	cr_assert_eq(serve_ended(cpt0(&g), WIRE_EXPIRED), 2);
	serve_fini(&g);
}

/* Judging by how long earlier calls took, a call would be served too late: it
 * is refused at once, and told when to try again. */
Test(request_limit, would_be_too_late)
{
	struct wire_call c;
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "park", "x");
	settle(&g);
	serve_release(&g.served);
	settle(&g);
	raw_client_call(&a, 2, "park", "x");
	c = raw_client_call_of(3, "park", 1);
	c.timeout = c.remaining = 25000;
	raw_client_send(&a, &c, 1, "x", 0);
	c.xid = 4;
	c.timeout = c.remaining = 200000;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_OVERLOADED);
	cr_assert_geq(raw_client_reply(&a, 3)->retry_after, 20000);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_hopeless), 1);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_unroomed), 0);
	cr_assert_eq(g.served.parked, 1);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(g.served.parked, 1, "4 can be done in time");
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_OK);
	serve_fini(&g);
}

/* The only worker never returns: requests in the queue are refused at their
 * deadlines all the same, and make room for others. */
Test(request_limit, expired_behind_a_worker_that_is_stuck)
{
	struct ulrpc_service_conf conf = { .queue_max = 3 };
	struct wire_call c;
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	raw_client_call(&a, 1, "park", "first");
	for (uint64_t xid = 2; xid < 4; xid++) {
		c = raw_client_call_of(xid, "work", 1);
		c.timeout = c.remaining = 1500000;
		raw_client_send(&a, &c, 1, "x", 0);
	}
	settle(&g);
	raw_client_call(&a, 4, "work", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_OVERLOADED);
	lnet_sim_run(g.sim, 3 * SEC);
	cr_assert_eq(serve_ended(cpt0(&g), WIRE_EXPIRED), 2);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_EXPIRED);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_EXPIRED);
	raw_client_call(&a, 5, "work", "x");
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 5)->status, WIRE_OK);
	serve_fini(&g);
}

/* Each queued request is refused at its own deadline, less 5 ms for turns of
 * the loop (P17). */
Test(request_limit, expired_when_it_is_time)
{
	static const uint64_t ms[] = { 1700, 400, 900, 401, 2300 };
	struct serve_rig g;
	uint64_t sent;

	rig(&g);
	raw_client_call(&a, 1, "park", "first");
	settle(&g);
	sent = lnet_now(g.node[SERVER], 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(ms); i++) {
		struct wire_call c = raw_client_call_of(2 + i, "work", 1);

		c.timeout = c.remaining = ms[i] * 1000;
		raw_client_send(&a, &c, 1, "x", 0);
	}
	for (uint64_t at = 100; at < 2500; at++) {
		unsigned int due = 0;

		lnet_sim_run(g.sim,
			     sent + at * MSEC - lnet_now(g.node[SERVER], 0));
		for (unsigned int i = 0; i < ARRAY_SIZE(ms); i++)
			due += at + 5 >= ms[i];
		cr_assert_eq(a.replies, due, "%u after %llu ms", a.replies,
			     (unsigned long long)at);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(ms); i++)
		cr_assert_eq(raw_client_reply(&a, 2 + i)->status, WIRE_EXPIRED);
	serve_release(&g.served);
	serve_fini(&g);
}

Test(request_limit, overload_by_number)
{
	struct ulrpc_service_conf conf = { .queue_max = 10,
					   .retry_after = 12345 };
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	for (uint64_t xid = 1; xid <= 15; xid++)
		raw_client_call(&a, xid, xid % 2 ? "park" : "hold", "x");
	settle(&g);
	cr_assert_eq(a.replies, 5);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_unroomed), 5);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_hopeless), 0);
	for (uint64_t xid = 11; xid <= 15; xid++) {
		cr_assert_eq(raw_client_reply(&a, xid)->status,
			     WIRE_OVERLOADED);
		cr_assert_eq(raw_client_reply(&a, xid)->retry_after, 12345);
	}
	while (g.served.parked) {
		serve_release(&g.served);
		settle(&g);
	}
	cr_assert_eq(a.replies, 15);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 0);
	cr_assert_eq(serve_holds(cpt0(&g)), 0);
	raw_client_call(&a, 16, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 16)->status, WIRE_OK);
	serve_fini(&g);
}

/* The calls of one message share the room that there is: later ones are refused
 * once earlier ones have used it up. */
Test(request_limit, overload_within_a_message)
{
	static const char *const methods[] = { "echo", "hold", "park", "echo" };
	struct ulrpc_service_conf conf = { .queue_max = 10 };
	struct wire_call calls[40];
	static char bodies[40];
	unsigned int held = 0, full = 0;
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	for (unsigned int i = 0; i < 40; i++)
		calls[i] = raw_client_call_of(i + 1, methods[i % 4], 1);
	raw_client_send(&a, calls, 40, bodies, 0);
	settle(&g);
	for (unsigned int i = 0; i < 40; i++) {
		bool waits = i % 4 == 1 || i % 4 == 2;

		if (held == 10) {
			cr_assert_eq(raw_client_reply(&a, i + 1)->status,
				     WIRE_OVERLOADED);
			full++;
		} else if (waits) {
			held++;
		} else {
			cr_assert_eq(raw_client_reply(&a, i + 1)->status,
				     WIRE_OK);
		}
	}
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 10);
	cr_assert_eq(a.replies, 40 - 10);
	cr_assert_geq(full, 20);
	while (g.served.parked) {
		serve_release(&g.served);
		settle(&g);
	}
	cr_assert_eq(a.replies, 40);
	cr_assert_eq(serve_holds(cpt0(&g)), 0);
	serve_fini(&g);
}

Test(request_limit, overload_by_bytes)
{
	struct ulrpc_service_conf conf = { .queue_bytes_max = 100000 };
	static char big[30000];
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	for (uint64_t xid = 1; xid <= 5; xid++) {
		struct wire_call c = raw_client_call_of(
			xid, xid % 2 ? "park" : "hold", sizeof(big));

		raw_client_send(&a, &c, 1, big, 0);
	}
	settle(&g);
	cr_assert_eq(a.replies, 2);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_OVERLOADED);
	while (g.served.parked) {
		serve_release(&g.served);
		settle(&g);
	}
	cr_assert_eq(a.replies, 5);
	serve_fini(&g);
}

static unsigned int ended_with(const struct raw_client *c, uint32_t status)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->replies; i++)
		n += c->reply[i].status == status;
	return n;
}

/* More replies wait for delivery than there is room for. Calls beyond that are
 * refused before they are executed, and each call that was executed is
 * answered, however long its reply has to wait. */
Test(request_limit, no_reply_is_dropped)
{
	struct ulnet_sim_link bad = { .refuse = LNET_SIM_ALWAYS };
	struct ulnet_sim_link good = { 0 };
	struct ulnet_nid from = nth_id(SERVER).nid, to = nth_id(CALLER).nid;
	struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 18 };
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	lnet_sim_link_set(g.sim, &from, &to, &bad);
	for (uint64_t xid = 1; xid <= 700; xid++)
		raw_client_call(&a, xid, "echo", "x");
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(a.replies, 0);
	cr_assert_leq(atomic_load(&cpt0(&g)->used_bytes),
		      conf.queue_bytes_max + 8192);
	cr_assert_lt(g.served.runs, 700);
	cr_assert_geq(g.served.runs, 400, "%u: small ones count as such",
		      g.served.runs);
	lnet_sim_link_set(g.sim, &from, &to, &good);
	lnet_sim_run(g.sim, 2 * SEC);
	cr_assert_eq(a.replies, 700);
	cr_assert_eq(ended_with(&a, WIRE_OK), g.served.runs);
	cr_assert_eq(ended_with(&a, WIRE_OVERLOADED), 700 - g.served.runs);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_answers_lost), 0);
	cr_assert_eq(serve_holds(cpt0(&g)), 0);
	cr_assert_eq(cpt0(&g)->refusals, 0);
	serve_fini(&g);
}

/* Room is reserved for the longest reply that the caller accepts. */
Test(request_limit, overload_by_bytes_of_replies)
{
	struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 20 };
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	for (uint64_t xid = 1; xid <= 20; xid++) {
		struct wire_call c = raw_client_call_of(xid, "park", 1);

		c.reply_max = 100000;
		raw_client_send(&a, &c, 1, "x", 0);
	}
	settle(&g);
	cr_assert_eq(ended_with(&a, WIRE_OVERLOADED), 10);
	while (g.served.parked) {
		serve_release(&g.served);
		settle(&g);
	}
	cr_assert_eq(ended_with(&a, WIRE_OK), 10);
	serve_fini(&g);
}

/* Descriptors of bulk count, too: a call with a short body may have 50 KiB of
 * them. */
Test(request_limit, overload_by_bytes_of_descriptors)
{
	struct ulrpc_service_conf conf = { .queue_bytes_max = 1 << 20 };
	static uint32_t lengths[ULRPC_SEGMENTS_MAX];
	struct wire_segments lent[ULRPC_BULKS_MAX];
	struct serve_rig g;

	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++)
		lengths[i] = 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(lent); i++)
		lent[i] = (struct wire_segments){ .match = 0x77000 + i * 256,
						  .access = WIRE_ACCESS_SINK,
						  .n = ARRAY_SIZE(lengths),
						  .length = lengths };
	rig_with(&g, &conf, 1);
	for (uint64_t xid = 1; xid <= 100; xid++) {
		struct wire_call c = raw_client_call_of(xid, "park", 1);

		c.bulks.n = ARRAY_SIZE(lent);
		c.bulks.list = lent;
		raw_client_send(&a, &c, 1, "x", 0);
	}
	settle(&g);
	cr_assert_geq(ended_with(&a, WIRE_OVERLOADED), 80, "%u",
		      ended_with(&a, WIRE_OVERLOADED));
	while (g.served.parked) {
		serve_release(&g.served);
		settle(&g);
	}
	cr_assert_eq(a.replies, 100);
	cr_assert_eq(serve_holds(cpt0(&g)), 0);
	serve_fini(&g);
}

/* A call that needs more room than the service has is accepted if it is the
 * only one. */
Test(request_limit, larger_than_the_limit)
{
	struct ulrpc_service_conf conf = { .queue_bytes_max = 65536 };
	struct wire_call c = raw_client_call_of(1, "park", 1);
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	c.reply_max = ULRPC_BODY_MAX;
	raw_client_send(&a, &c, 1, "x", 0);
	c.xid = c.slot = 2;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_OVERLOADED);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	/* The reply is kept until the client acknowledges it, and takes room.
	 */
	cr_assert_gt(atomic_load(&cpt0(&g)->kept_bytes), 0);
	c.xid = c.slot = 3;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_OVERLOADED);
	c.xid = c.slot = 4;
	raw_client_send(&a, &c, 1, "x", 2);
	settle(&g);
	cr_assert_eq(g.served.parked, 1);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_OK);
	serve_fini(&g);
}

/* Long bodies of requests with inline handlers stay in the receive buffers
 * until the reply. */
Test(request_limit, long_bodies_of_inline_handlers)
{
	static char big[20000];
	struct ulrpc_service_conf conf = { .request_max = 20000,
					   .buffers = 4,
					   .buffer_size = 100000 };
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	for (uint64_t xid = 1; xid <= 200; xid++) {
		struct wire_call c =
			raw_client_call_of(xid, "hold", sizeof(big));

		memset(big, (int)xid, sizeof(big));
		raw_client_send(&a, &c, 1, big, 0);
		settle(&g);
		if (g.served.parked < 10)
			continue;
		for (unsigned int i = 0; i < 10; i++) {
			const struct ulrpc_request *r = g.served.park[0];
			const uint8_t *body = r->body;

			cr_assert_eq(r->length, sizeof(big));
			cr_assert_eq(body[0], (uint8_t)r->xid);
			cr_assert_eq(body[sizeof(big) - 1], (uint8_t)r->xid);
			ulrpc_reply(unpark(&g.served), NULL, 0);
		}
	}
	settle(&g);
	cr_assert_eq(a.replies, 200);
	cr_assert_eq(cpt0(&g)->inbox.pinned, 0);
	serve_fini(&g);
}

/* Far more messages than the receive buffers hold arrive at once. */
Test(request_limit, buffers_are_refilled)
{
	static char body[1000];
	struct ulrpc_service_conf conf = { .request_max = 1000,
					   .buffers = 2,
					   .buffer_size = 80000 };
	struct serve_rig g;

	rig_with(&g, &conf, 1);
	for (uint64_t xid = 1; xid <= 1000; xid++) {
		struct wire_call c = raw_client_call_of(xid, "echo", 1000);

		raw_client_send(&a, &c, 1, body, 0);
	}
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(a.replies, 1000);
	cr_assert_eq(g.served.runs, 1000);
	serve_fini(&g);
}
