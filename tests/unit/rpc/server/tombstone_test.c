/* SPDX-License-Identifier: BSD-3-Clause */
/* Tombstones: portals whose service has stopped, and may be started again. */
#include "rpc/client/client.h"
#include "rpc/server/tombstone.h"
#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

static struct serve_rig g;
static struct raw_client a;
static struct called one, many[100];
static uint8_t big[256 << 10];

static void start_with(uint32_t request_max)
{
	struct ulrpc_service_conf c = serve_conf(&g);

	c.request_max = request_max;
	serve_start(&g, &c);
}

static void start(void)
{
	start_with(0);
}

static void stop(void)
{
	cr_assert_eq(ulrpc_service_stop(g.service, 1000000), 0);
	g.service = NULL;
}

static void start_other(const char *name, struct ulrpc_service **svc_p)
{
	struct ulrpc_service_conf c = serve_conf(&g);

	c.name = name;
	cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, svc_p), 0);
}

static void rig(unsigned int cpts)
{
	serve_init(&g, 1, cpts);
	serve_open(&g, NULL);
	start();
	serve_client(&g);
}

/* @g has a client that has made a successful call, and a service that has been
 * stopped since. */
static void rig_gone(void)
{
	rig(1);
	serve_call(&g, "echo", "hello", 5, 10000000, ULRPC_PRIORITY_NORMAL,
		   &one);
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(one.outcome.cause, ULRPC_CAUSE_OK);
	stop();
}

static void call(const void *body, size_t length, uint64_t us, struct called *c)
{
	serve_call(&g, "echo", body, length, us, ULRPC_PRIORITY_NORMAL, c);
}

static void ended(const struct called *c, enum ulrpc_cause cause,
		  enum ulrpc_execution execution)
{
	cr_assert_eq(c->ended, 1, "ended %u times", c->ended);
	cr_assert_eq(c->outcome.cause, cause, "%s",
		     ulrpc_cause_name(c->outcome.cause));
	cr_assert_eq(c->outcome.execution, execution);
}

static uint64_t counted(unsigned int side, enum rpc_stat stat)
{
	return g.rpc[side]->shards[0].stats->counts[stat];
}

/* ---- calls ---- */

/* A call waits for the service to be started again until its deadline, and
 * fails only then. */
Test(tombstone, refuses_calls_of_the_service)
{
	rig_gone();
	call("hello", 5, 1000000, &one);
	lnet_sim_run(g.sim, 999 * MSEC);
	cr_assert_eq(one.ended, 0);
	lnet_sim_run(g.sim, 10 * MSEC);
	ended(&one, ULRPC_CAUSE_NO_SERVICE, ULRPC_NOT_EXECUTED);
	serve_fini(&g);
}

Test(tombstone, leads_to_the_service_that_came_again)
{
	unsigned int portal;

	rig(1);
	portal = ulrpc_service_portal(g.service);
	for (unsigned int i = 0; i < 5; i++) {
		call("hello", 5, 60000000, &one);
		lnet_sim_run(g.sim, 100 * MSEC);
		ended(&one, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
		cr_assert_eq(one.outcome.attempts, i ? 2 : 1);
		stop();
		start();
		cr_assert_eq(ulrpc_service_portal(g.service), portal);
	}
	cr_assert_eq(g.served.runs, 5);
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	serve_fini(&g);
}

/* The service is started again at another portal. */
Test(tombstone, leads_to_another_portal)
{
	struct ulrpc_service_conf c;

	rig_gone();
	c = serve_conf(&g);
	c.portal = 20;
	serve_start(&g, &c);
	for (unsigned int i = 0; i < 100; i++)
		call("hello", 5, 60000000, &many[i]);
	lnet_sim_run(g.sim, 100 * MSEC);
	for (unsigned int i = 0; i < 100; i++)
		ended(&many[i], ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(g.served.runs, 101, "each once");
	serve_fini(&g);
}

/* A call has been executed, and its reply is lost: another attempt of it gets
 * the reply although the service has ended. */
Test(tombstone, does_not_deny_what_was_executed)
{
	struct wire_call c = raw_client_call_of(1, "echo", 1);

	rig(1);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	raw_client_call(&a, 1, "echo", "x");
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(g.served.runs, 1);
	stop();
	a.replies = 0;
	raw_client_call(&a, 1, "echo", "x");
	c.attempt = 1;
	raw_client_send(&a, &c, 1, "x", 0);
	raw_client_call(&a, 2, "echo", "x");
	c = raw_client_call_of(3, "echo", 0);
	c.flags = WIRE_CALL_QUERY;
	raw_client_send(&a, &c, 1, "", 0);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(raw_client_reply(&a, 1)->attempt, 1);
	cr_assert_eq(raw_client_reply(&a, 1)->length, 1);
	cr_assert_eq(counted(SERVER, RPC_STAT_answers_again), 1);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_NO_SERVICE);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_UNKNOWN_CALL);
	serve_fini(&g);
}

/* The way back loses all messages: calls are executed, and their replies lost,
 * before the service stops. @again: it is started again before the network is
 * mended. */
static void replies_are_lost(bool again)
{
	static const struct ulnet_sim_link bad = { .loss = LNET_SIM_ALWAYS };
	static const struct ulnet_sim_link good = { .latency = 0 };
	unsigned int runs;

	rig(1);
	call("hello", 5, 60000000, &one);
	lnet_sim_run(g.sim, 100 * MSEC);
	ended(&one, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	link_set(g.sim, SERVER, CALLER, &bad);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		call(&i, sizeof(i), 60000000, &many[i]);
	lnet_sim_run(g.sim, 10 * MSEC);
	runs = g.served.runs;
	cr_assert_gt(runs, 1);
	stop();
	if (again)
		start();
	link_set(g.sim, SERVER, CALLER, &good);
	lnet_sim_run(g.sim, 10 * SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		if (!again && !many[i].ended)
			continue;
		ended(&many[i], ULRPC_CAUSE_OK, ULRPC_EXECUTED);
		cr_assert_eq(many[i].length, sizeof(i));
		cr_assert_eq(memcmp(many[i].reply, &i, sizeof(i)), 0);
		runs--;
	}
	if (!again)
		cr_assert_eq(runs, 1, "those that were executed have ended");
	else
		cr_assert_eq(g.served.runs, ARRAY_SIZE(many) + 1, "once");
	/* The client acknowledges, and nothing is kept any more. */
	lnet_sim_run(g.sim, 60 * SEC);
	cr_assert_eq(counted(SERVER, RPC_STAT_answers_kept_bytes), 0);
	serve_fini(&g);
}

Test(tombstone, has_the_replies_of_the_service)
{
	replies_are_lost(false);
}

Test(tombstone, leaves_replies_to_the_next_service)
{
	replies_are_lost(true);
}

/* Asks for call @xid. */
static void query_is(uint64_t xid, uint32_t status)
{
	struct wire_call c = raw_client_call_of(xid, "echo", 0);

	c.attempt = 1;
	c.flags = WIRE_CALL_QUERY;
	raw_client_send(&a, &c, 1, "", 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_reply(&a, xid)->status, status);
}

/* A host has half of the 16 MiB, if nobody else needs them. Of what has no room
 * nobody knows whether it was executed. */
Test(tombstone, has_room_for_so_many_replies)
{
	enum { N = 200, SIZE = 60000 };
	static const struct ulnet_sim_link bad = { .loss = LNET_SIM_ALWAYS };
	static const struct ulnet_sim_link good = { .latency = 0 };
	uint64_t kept;

	rig(1);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	link_set(g.sim, SERVER, 2, &bad);
	for (uint64_t xid = 1; xid <= N; xid++) {
		struct wire_call c = raw_client_call_of(xid, "echo", SIZE);

		c.reply_max = SIZE;
		raw_client_send(&a, &c, 1, big, 0);
		lnet_sim_run(g.sim, MSEC);
	}
	cr_assert_eq(g.served.runs, N);
	stop();
	kept = counted(SERVER, RPC_STAT_answers_kept_bytes);
	cr_assert_leq(kept, (UINT64_C(8) << 20) + SIZE);
	cr_assert_gt(kept, UINT64_C(7) << 20);
	link_set(g.sim, SERVER, 2, &good);
	query_is(1, WIRE_OK);
	query_is(kept / SIZE, WIRE_OK);
	query_is(kept / SIZE + 1, WIRE_DOUBTFUL);
	query_is(N, WIRE_DOUBTFUL);
	serve_fini(&g);
}

/* A call has been executed and answered. A copy of the request that comes after
 * the service has stopped is not answered at all. */
Test(tombstone, knows_what_was_executed)
{
	rig(1);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	raw_client_call(&a, 1, "echo", "x");
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	stop();
	raw_client_call(&a, 1, "echo", "x");
	raw_client_call(&a, 2, "echo", "x");
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_NO_SERVICE);
	/* A call that the tombstone has refused is not executed when the
	 * service is back, either. */
	start();
	raw_client_open(&a, "test");
	raw_client_call(&a, 2, "echo", "x");
	raw_client_call(&a, 3, "echo", "x");
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_NO_SERVICE);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_OK);
	cr_assert_eq(g.served.runs, 2);
	serve_fini(&g);
}

/* A request may come to another CPT than that of its connection. */
Test(tombstone, on_any_cpt)
{
	/* Each client needs memory of its own: the server's Goodbyes are
	 * written there. */
	static struct raw_client raw_clients[20];

	rig(4);
	for (unsigned int i = 0; i < ARRAY_SIZE(raw_clients); i++) {
		struct raw_client *s = &raw_clients[i];
		unsigned int cpt;

		raw_client_init(s, g.sim, serve_node_add(&g, 2 + i), SERVER);
		raw_client_connect(s);
		raw_client_open(s, "test");
		stop();
		raw_client_call(s, 1, "echo", "x");
		lnet_sim_run(g.sim, MSEC);
		cr_assert_eq(raw_client_reply(s, 1)->status, WIRE_NO_SERVICE);
		/* The same with handles that name each of the other CPTs. */
		for (cpt = 0; cpt < 6; cpt++) {
			uint64_t mine = s->connection;

			s->connection = (mine & ~UINT64_C(0xff000000)) |
					(uint64_t)cpt << 24;
			if (s->connection != mine) {
				s->replies = 0;
				raw_client_call(s, 2, "echo", "x");
				lnet_sim_run(g.sim, MSEC);
				cr_assert_eq(raw_client_reply(s, 2)->status,
					     WIRE_NOT_CONNECTED);
			}
			s->connection = mine;
		}
		start();
	}
	serve_fini(&g);
}

/* A tombstone answers long requests, too: it needs only their heads. */
Test(tombstone, answers_long_messages)
{
	struct ulrpc_service_conf c;

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	start_with(sizeof(big));
	serve_client(&g);
	for (unsigned int i = 0; i < 3; i++) {
		call(big, sizeof(big), 60000000, &one);
		lnet_sim_run(g.sim, SEC);
		ended(&one, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
		cr_assert_eq(one.length, sizeof(big));
		stop();
		c = serve_conf(&g);
		c.request_max = sizeof(big);
		c.portal = 20 + i;
		serve_start(&g, &c);
	}
	stop();
	call(big, sizeof(big), 1000000, &one);
	lnet_sim_run(g.sim, SEC);
	ended(&one, ULRPC_CAUSE_NO_SERVICE, ULRPC_NOT_EXECUTED);
	serve_fini(&g);
}

/* Calls that are under way while the service stops and starts are each executed
 * once, or fail with NOT_EXECUTED. */
Test(tombstone, loses_nothing)
{
	unsigned int n = 0;

	rig(1);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		call(&i, sizeof(i), 60000000, &many[i]);
		if (i % 10 == 9) {
			stop();
			lnet_sim_run(g.sim, i * 10000);
			start();
		}
		lnet_sim_run(g.sim, i * 7000);
	}
	lnet_sim_run(g.sim, 10 * SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		cr_assert_eq(many[i].ended, 1);
		cr_assert_neq(many[i].outcome.execution,
			      ULRPC_EXECUTION_UNKNOWN);
		n += many[i].outcome.execution == ULRPC_EXECUTED;
	}
	cr_assert_eq(g.served.runs, n);
	serve_fini(&g);
}

/* ---- portals ---- */

Test(tombstone, portal_of_a_name_is_kept_for_it)
{
	struct ulrpc_service *other, *all[23];
	unsigned int portal;

	rig(1);
	portal = ulrpc_service_portal(g.service);
	stop();
	start_other("other", &other);
	cr_assert_neq(ulrpc_service_portal(other), portal);
	start();
	cr_assert_eq(ulrpc_service_portal(g.service), portal);
	stop();
	/* It is kept while any other portal is left. */
	for (unsigned int n = 0; n < ARRAY_SIZE(all); n++) {
		struct ulrpc_service_conf c = serve_conf(&g);
		char name[16];

		snprintf(name, sizeof(name), "s%u", n);
		c.name = name;
		cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, &all[n]),
			     0);
		cr_assert_neq(ulrpc_service_portal(all[n]), portal);
	}
	start();
	cr_assert_eq(ulrpc_service_portal(g.service), portal);
	call("hello", 5, 60000000, &one);
	lnet_sim_run(g.sim, 100 * MSEC);
	ended(&one, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	serve_fini(&g);
}

/* Stopping and starting a service 200 times does not use up anything. */
Test(tombstone, stop_and_start_use_nothing_up)
{
	rig(4);
	for (unsigned int i = 0; i < 200; i++) {
		stop();
		start();
	}
	lnet_sim_run(g.sim, MSEC);
	call("hello", 5, 60000000, &one);
	lnet_sim_run(g.sim, 100 * MSEC);
	ended(&one, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	stop();
	serve_fini(&g);
}

/* ---- requests of raw clients ---- */

Test(tombstone, answers_what_it_can_read)
{
	struct wire_call calls[WIRE_CALLS_MAX];
	uint64_t hdr_data;
	size_t length;

	rig_gone();
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.portal = ULRPC_PORTAL_FIRST;
	for (unsigned int i = 0; i < WIRE_CALLS_MAX; i++)
		calls[i] = raw_client_call_of(i + 1, "echo", 10);
	for (unsigned int known = 0; known < 3; known++) {
		uint32_t status = known == 0   ? WIRE_NOT_CONNECTED
				  : known == 1 ? WIRE_NO_SERVICE
					       : WIRE_STALE_EPOCH;

		if (known == 1)
			cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
		a.epoch += known == 2;
		for (unsigned int i = 0; known == 2 && i < WIRE_CALLS_MAX; i++)
			calls[i].xid += WIRE_CALLS_MAX;
		a.replies = a.messages = 0;
		raw_client_send(&a, calls, WIRE_CALLS_MAX, big, 0);
		lnet_sim_run(g.sim, MSEC);
		cr_assert_eq(a.messages, 1);
		cr_assert_eq(a.replies, WIRE_CALLS_MAX);
		for (unsigned int i = 0; i < WIRE_CALLS_MAX; i++)
			cr_assert_eq(raw_client_reply(&a, calls[i].xid)->status,
				     status);
	}
	a.replies = a.messages = 0;
	a.epoch--;
	/* The same calls are not answered a second time. */
	raw_client_send(&a, calls, WIRE_CALLS_MAX, big, 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(a.messages, 0);
	cr_assert_eq(counted(SERVER, RPC_STAT_requests_repeated),
		     WIRE_CALLS_MAX);
	/* A message without calls, or one that cannot be decoded, is not
	 * answered. */
	raw_client_send(&a, calls, 0, "", 0);
	length = raw_client_pack(&a, calls, 1, big, 0, big + 100, &hdr_data);
	for (unsigned int i = 0; i < 64; i++)
		raw_client_put(&a, a.portal, 1, hdr_data ^ UINT64_C(1) << i,
			       big + 100, length);
	raw_client_put(&a, a.portal, 1, hdr_data, "", 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(a.messages, 0);
	cr_assert_eq(counted(SERVER, RPC_STAT_requests_malformed) +
			     counted(SERVER, RPC_STAT_requests_damaged) +
			     counted(SERVER, RPC_STAT_requests_unversioned),
		     65);
	serve_fini(&g);
}

/* A client that sends more requests than the server can answer is not answered
 * beyond that limit, and other clients are not affected. */
Test(tombstone, floods)
{
	struct wire_call c = raw_client_call_of(1, "echo", 0);
	struct ulrpc_service *other;

	rig_gone();
	start_other("other", &other);
	raw_client_init(&a, g.sim, serve_node_add(&g, 2), SERVER);
	a.portal = ULRPC_PORTAL_FIRST;
	for (unsigned int i = 0; i < RAW_CLIENT_ANSWERS; i++)
		raw_client_send(&a, &c, 1, "", 0);
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_leq(a.replies, RAW_CLIENT_ANSWERS);
	cr_assert_geq(a.replies, 256);
	cr_assert_eq(a.replies + counted(SERVER, RPC_STAT_answers_lost),
		     RAW_CLIENT_ANSWERS);
	start();
	call("hello", 5, 60000000, &one);
	lnet_sim_run(g.sim, 100 * MSEC);
	ended(&one, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	serve_fini(&g);
}

/* ---- crash of the server ---- */

Test(tombstone, crash)
{
	rig_gone();
	call("hello", 5, 1000000, &one);
	lnet_sim_run(g.sim, 50000);
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
	g.rpc[SERVER] = NULL;
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_eq(one.ended, 1);
	serve_fini(&g);
}

/* ---- requests that are under way while the service stops or starts ---- */

/* Begins a call whose request is on its way for 30 to 90 ms. */
static void call_slowly(void)
{
	const struct ulnet_sim_link slow = { .latency = 30 * MSEC,
					     .bandwidth = 1000000 };

	cluster_links(g.sim, &slow);
	serve_call(&g, "fail", big, 60000, 60000000, ULRPC_PRIORITY_NORMAL,
		   &one);
	lnet_sim_run(g.sim, 50 * MSEC);
	cluster_links(g.sim, &(struct ulnet_sim_link){ 0 });
	cr_assert_eq(one.ended, 0);
}

Test(tombstone, what_lands_while_the_service_stops_waits_until_it_is_back)
{
	rig_gone();
	start();
	call("hello", 5, 60000000, &one);
	lnet_sim_run(g.sim, 100 * MSEC);
	call_slowly();
	stop();
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(one.ended, 0);
	cr_assert_eq(g.served.runs, 2);
	start();
	lnet_sim_run(g.sim, SEC);
	ended(&one, ULRPC_CAUSE_HANDLER, ULRPC_EXECUTED);
	cr_assert_eq(g.served.runs, 3);
	serve_fini(&g);
}

Test(tombstone, what_lands_while_the_service_comes_again_is_served)
{
	rig_gone();
	call_slowly();
	start();
	lnet_sim_run(g.sim, 100 * MSEC);
	ended(&one, ULRPC_CAUSE_HANDLER, ULRPC_EXECUTED);
	cr_assert_eq(one.outcome.attempts, 2);
	serve_fini(&g);
}

/* A call that is made again whenever it has ended: how often. */
static unsigned int again;

static void ask_again(void *arg, const struct ulrpc_outcome *o,
		      const void *reply, size_t length)
{
	struct ulrpc_call_conf conf = { .deadline = 1000000 };

	(void)arg;
	(void)reply;
	(void)length;
	if (o->cause == ULRPC_CAUSE_NO_SERVICE ||
	    o->cause == ULRPC_CAUSE_CANCELED)
		return;
	again++;
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("echo"), "x", 1, &conf,
				ask_again, NULL, NULL),
		     0);
}

Test(tombstone, constant_calls_do_not_keep_the_service)
{
	/* A reply takes a millisecond, so that one is always under way. */
	const struct ulnet_sim_link slow = { .latency = MSEC,
					     .bandwidth = 100000 };
	const struct ulrpc_outcome first = { 0 };
	uint64_t before;

	rig(1);
	link_set(g.sim, SERVER, CALLER, &slow);
	for (unsigned int i = 0; i < 40; i++) {
		ask_again(NULL, &first, NULL, 0);
		lnet_sim_run(g.sim, 100000);
	}
	before = lnet_sim_now(g.sim);
	cr_assert_eq(ulrpc_service_stop(g.service, 5000000), 0);
	cr_assert_lt(lnet_sim_now(g.sim) - before, SEC);
	again = 0;
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_leq(again, 40);
	serve_fini(&g);
}

Test(tombstone, close_while_calls_are_under_way)
{
	for (unsigned int us = 0; us < 400; us += 7) {
		rig_gone();
		for (unsigned int i = 0; i < 10; i++)
			call("hello", 5, 1000000, &many[i]);
		lnet_sim_run(g.sim, us * 1000);
		serve_fini(&g);
		for (unsigned int i = 0; i < 10; i++)
			cr_assert_eq(many[i].ended, 1);
	}
}
