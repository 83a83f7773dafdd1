/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests whose client, service or node goes away before they are answered. */
#include "tests/unit/rpc/server/request_rig.h"

static void on_moved(void *arg, int status, uint64_t moved)
{
	(void)moved;
	*(int *)arg = status;
}

/* Sends two calls without a deadline: call 1 is being served, and has bulk that
 * the client never lends; call 2 waits for the worker. */
static void two_for_ever(struct serve_rig *g)
{
	static const uint32_t length = 64;
	const struct wire_segments lent = { .match = 0x77000,
					    .access = WIRE_ACCESS_SINK,
					    .n = 1,
					    .length = &length };
	struct wire_call c;

	rig(g);
	for (uint64_t xid = 1; xid <= 2; xid++) {
		c = raw_client_call_of(xid, xid == 1 ? "park" : "work", 1);
		c.timeout = c.remaining = 0;
		c.bulks.n = xid == 1;
		c.bulks.list = &lent;
		raw_client_send(&a, &c, 1, "x", 0);
	}
	settle(g);
	cr_assert_eq(g->served.parked, 1);
}

Test(request_end, of_a_client_that_leaves)
{
	static char memory[64];
	const struct iovec iov = { memory, sizeof(memory) };
	struct wire_control m = { .kind = WIRE_DISCONNECT };
	struct serve_rig g;
	int status = 1;

	two_for_ever(&g);
	cr_assert_eq(ulrpc_bulk_put(g.served.park[0], 0, 0, &iov, 1, on_moved,
				    &status),
		     0);
	settle(&g);
	cr_assert_eq(status, 1, "it goes on");
	m.disconnect.connection = a.connection;
	m.disconnect.client = a.client;
	m.disconnect.epoch = a.epoch;
	raw_client_control(&a, &m);
	lnet_sim_run(g.sim, 6 * SEC);
	cr_assert_eq(status, -ECANCELED, "%d", status);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_STALE_EPOCH);
	status = 1;
	cr_assert_eq(ulrpc_bulk_put(g.served.park[0], 0, 0, &iov, 1, on_moved,
				    &status),
		     0);
	settle(&g);
	cr_assert_eq(status, -ECANCELED, "nor is any begun");
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(g.served.runs, 1);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 0);
	serve_fini(&g);
}

Test(request_end, of_a_client_that_is_silent)
{
	struct serve_rig g;

	two_for_ever(&g);
	lnet_sim_run(g.sim, 25 * SEC);
	cr_assert_eq(a.replies, 0);
	lnet_sim_run(g.sim, 75 * SEC);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_STALE_EPOCH);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(g.served.runs, 1);
	serve_fini(&g);
}

/* ---- end of the service, with requests in all states ---- */

static void all_states(struct serve_rig *g)
{
	static char big[5000];
	struct wire_call c;

	raw_client_call(&a, 1, "hold", "inline, later");
	raw_client_call(&a, 2, "park", "has the worker");
	raw_client_call(&a, 3, "work", "waits");
	raw_client_call(&a, 4, "low", "waits");
	c = raw_client_call_of(5, "hold", sizeof(big));
	raw_client_send(&a, &c, 1, big, 0);
	c = raw_client_call_of(6, "work", sizeof(big));
	c.reply_max = sizeof(big);
	raw_client_send(&a, &c, 1, big, 0);
	settle(g);
	cr_assert_eq(a.replies, 0);
	cr_assert_eq(g->served.parked, 3);
}

Test(request_end, stop_waits)
{
	struct serve_rig g;

	rig(&g);
	raw_client_call(&a, 1, "echo", "x");
	settle(&g);
	cr_assert_eq(ulrpc_service_stop(g.service, 1000000), 0);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_NO_SERVICE);
	serve_fini(&g);
}

static void release_later(void *arg)
{
	struct serve_rig *g = arg;

	serve_release(&g->served);
	if (!lnet_sim_at(g->sim, MSEC, release_later, g))
		return;
}

Test(request_end, stop_refuses_and_answers)
{
	struct serve_rig g;

	rig(&g);
	all_states(&g);
	lnet_sim_at(g.sim, SEC, release_later, &g);
	cr_assert_eq(ulrpc_service_stop(g.service, 20000000), 0);
	for (uint64_t xid = 1; xid <= 6; xid++)
		cr_assert_eq(raw_client_reply(&a, xid)->status, WIRE_OK,
			     "%llu: %u", (unsigned long long)xid,
			     raw_client_reply(&a, xid)->status);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_close(g.rpc[i]), 0);
	cr_assert_eq(lnet_sim_free(g.sim), 0);
}

/* The handler has replied, but a transfer of bulk is still under way when the
 * service stops: the caller is told that it failed. */
Test(request_end, stop_answers_what_is_replied)
{
	static char memory[64];
	static const uint32_t length = 64;
	const struct wire_segments lent = { .match = 0x77000,
					    .access = WIRE_ACCESS_SINK,
					    .n = 1,
					    .length = &length };
	const struct iovec iov = { memory, sizeof(memory) };
	struct wire_call c = raw_client_call_of(1, "hold", 1);
	struct serve_rig g;
	int status = 1;

	rig(&g);
	c.bulks.n = 1;
	c.bulks.list = &lent;
	raw_client_send(&a, &c, 1, "x", 0);
	settle(&g);
	cr_assert_eq(ulrpc_bulk_put(g.served.park[0], 0, 0, &iov, 1, on_moved,
				    &status),
		     0);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(status, 1);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), -ETIMEDOUT);
	settle(&g);
	cr_assert_eq(status, -ESHUTDOWN);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_BULK_FAILED);
	serve_fini(&g);
}

static void call_during(void *arg)
{
	struct serve_rig *g = arg;

	raw_client_call(&a, 50, "echo", "x");
	(void)g;
}

/* The service stays until its worker has returned from the last handler,
 * although all requests have been given up before. */
Test(request_end, stop_times_out)
{
	struct serve_rig g;
	uint64_t began;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	rig(&g);
	all_states(&g);
	lnet_sim_at(g.sim, SEC / 2, call_during, &g);
	serve_dismiss_at(&g, 2 * SEC);
	began = lnet_sim_now(g.sim);
	cr_assert_eq(ulrpc_service_stop(g.service, 1000000), -ETIMEDOUT);
	cr_assert_geq(lnet_sim_now(g.sim), began + 2 * SEC);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 50)->status, WIRE_SHUTTING_DOWN);
	/* Requests that had not begun are refused: they were not executed. */
	cr_assert_eq(a.replies, 1 + 6);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_SHUTTING_DOWN);
	cr_assert_eq(raw_client_reply(&a, 4)->status, WIRE_SHUTTING_DOWN);
	cr_assert_eq(raw_client_reply(&a, 6)->status, WIRE_SHUTTING_DOWN);
	/* Requests that had begun may or may not have been executed. */
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_DOUBTFUL);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_DOUBTFUL);
	cr_assert_eq(raw_client_reply(&a, 5)->status, WIRE_DOUBTFUL);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_close(g.rpc[i]), 0);
	/* Replies to these requests go nowhere, but the requests are still
	 * valid, down to their bodies. */
	cr_assert_eq(g.served.parked, 3);
	cr_assert_eq(memcmp(g.served.park[0]->body, "inline, later", 13), 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct ulrpc_request_info info;

		ulrpc_request_info(g.served.park[i], &info);
		cr_assert_str_eq(info.service, "test");
		cr_assert_eq(info.time_left, 0);
	}
	lnet_sim_run_all(g.sim);
	cr_assert_eq(lnet_sim_free(g.sim), 0);
	serve_release(&g.served);
}

/* A message that comes while RPC is closed is not served after RPC is opened
 * again: it may be a copy of a call executed before, which RPC would not know.
 */
Test(request_end, what_came_while_rpc_was_closed_is_forgotten)
{
	struct ulrpc_service_conf conf;
	struct serve_rig g;
	unsigned int before;

	rig(&g);
	raw_client_call(&a, 1, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	cr_assert_eq(ulrpc_close(g.rpc[SERVER]), 0);
	before = a.replies;
	raw_client_call(&a, 2, "echo", "x");
	settle(&g);
	serve_open(&g, NULL);
	conf = serve_conf(&g);
	serve_start(&g, &conf);
	settle(&g);
	cr_assert_eq(a.replies, before);
	cr_assert_eq(g.served.runs, 1);
	/* A message that comes now is refused: its connection is not known. */
	raw_client_call(&a, 3, "echo", "x");
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 3)->status, WIRE_NOT_CONNECTED);
	serve_fini(&g);
}

Test(request_end, close_with_all_states)
{
	struct serve_rig g;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	rig(&g);
	all_states(&g);
	serve_dismiss_at(&g, SEC);
	serve_fini(&g);
	serve_release(&g.served);
}

Test(request_end, crash_with_all_states)
{
	struct ulnet_sim_link bad = { .refuse = LNET_SIM_ALWAYS };
	struct ulnet_nid from = nth_id(SERVER).nid, to = nth_id(CALLER).nid;
	struct serve_rig g;

	rig(&g);
	all_states(&g);
	lnet_sim_link_set(g.sim, &from, &to, &bad);
	raw_client_call(&a, 20, "echo", "to be sent again");
	lnet_sim_run(g.sim, SEC);
	raw_client_call(&a, 21, "echo", "on its way");
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
	g.rpc[SERVER] = NULL;
	serve_fini(&g);
}

/* The client has crashed by the time its reply is made. */
Test(request_end, reply_to_nobody)
{
	struct serve_rig g;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	rig(&g);
	raw_client_call(&a, 1, "hold", "x");
	settle(&g);
	cr_assert_eq(lnet_sim_crash(g.sim, CALLER), 0);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 60 * SEC);
	cr_assert_eq(cpt0(&g)->shard->work, 0);
	cr_assert(list_empty(&cpt0(&g)->replies));
	serve_fini(&g);
}
