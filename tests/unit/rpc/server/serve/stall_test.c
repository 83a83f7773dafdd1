/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are given up as stalled because their handlers make no
 * progress. A service may be configured so. */
#include <errno.h>

#include "rpc/server/serve/deadline.h"
#include "tests/unit/rpc/server/request_rig.h"

#define STALLED UINT64_C(4000000)

static void stall_rig(struct serve_rig *g, uint64_t stalled)
{
	/* Clients may be silent for as long as they like. */
	const struct ulrpc_conf rpc = { .keepalive = 1000000000000000 };
	const struct ulrpc_service_conf conf = { .stalled = stalled };

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	serve_init_apart(g, 1, 1);
	serve_open(g, &rpc);
	serve_start_with(g, &conf);
	raw_client_init(&a, g->sim, CALLER, SERVER);
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
}

static struct wire_call slow(uint64_t xid, const char *method)
{
	struct wire_call c = raw_client_call_of(xid, method, 1);

	c.timeout = 1000000;
	c.remaining = 600000000;
	return c;
}

static void ask(uint64_t xid, uint32_t attempt)
{
	struct wire_call c = slow(xid, "park");

	c.attempt = attempt;
	c.flags = WIRE_CALL_QUERY;
	c.length = 0;
	raw_client_send(&a, &c, 1, "", 0);
	lnet_sim_run(a.sim, 20 * MSEC);
}

/* Returns the time, ns, until which the last extension has prolonged T. */
static uint64_t said_until(void)
{
	const unsigned int i = a.nextensions - 1;

	return a.extended[i] + a.extension[i].extend * NSEC_PER_USEC;
}

static void run_until(struct serve_rig *g, uint64_t at)
{
	lnet_sim_run(g->sim, at - lnet_now(g->node[CALLER], 0));
}

/* Once a request is stalled, the client gets no more extensions. An attempt
 * that comes before T is over is told how much of T is left; every later one is
 * told that the request is stalled, even after the handler has replied after
 * all. */
Test(stall, ends_what_callers_are_told)
{
	struct wire_call c = slow(1, "park");
	struct ulrpc_request *r;
	struct serve_rig g;
	unsigned int told;

	stall_rig(&g, STALLED);
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 3900 * MSEC);
	r = g.served.park[0];
	cr_assert_not(r->stalled);
	lnet_sim_run(g.sim, 200 * MSEC);
	cr_assert(r->stalled);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stalled), 1);
	told = a.nextensions;
	run_until(&g, said_until() - 50 * MSEC);
	cr_assert_eq(a.nextensions, told);
	ask(1, 1);
	cr_assert_eq(a.nextensions, told + 1);
	cr_assert_leq(a.extension[told].extend, 50000);
	cr_assert_not(ulrpc_request_canceled(r));
	lnet_sim_run(g.sim, 50 * MSEC);
	for (unsigned int i = 2; i < 5; i++) {
		cr_assert_eq(a.replies, i - 2);
		ask(1, i);
		cr_assert_eq(a.replies, i - 1);
		cr_assert_eq(a.reply[i - 2].status, WIRE_STALLED);
		cr_assert_eq(a.reply[i - 2].attempt, i);
		cr_assert(ulrpc_request_canceled(r));
	}
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(a.replies, 3);
	ask(1, 5);
	cr_assert_eq(a.replies, 4);
	cr_assert_eq(a.reply[3].status, WIRE_STALLED);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stalled), 1);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 0);
	serve_fini(&g);
}

/* Any report of progress counts, even if its number is the same as before. */
Test(stall, not_with_progress)
{
	struct wire_call c = slow(1, "park");
	struct serve_rig g;

	stall_rig(&g, STALLED);
	raw_client_send(&a, &c, 1, "x", 0);
	for (unsigned int i = 0; i < 30; i++) {
		lnet_sim_run(g.sim, 3 * SEC);
		ulrpc_progress(g.served.park[0], 100);
		cr_assert_gt(said_until(), lnet_now(g.node[CALLER], 0));
	}
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stalled), 0);
	cr_assert_eq(a.extension[a.nextensions - 1].progress, 100);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	serve_fini(&g);
}

/* While the node is stopped, no handler can make progress. */
Test(stall, not_while_the_node_sleeps)
{
	struct wire_call c = slow(1, "park");
	struct ulrpc_request *r;
	struct serve_rig g;

	stall_rig(&g, STALLED);
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 2 * SEC);
	r = g.served.park[0];
	cr_assert_eq(lnet_sim_pause(g.sim, SERVER, 60 * SEC), 0);
	lnet_sim_run(g.sim, 63 * SEC);
	cr_assert_not(r->stalled);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stalled), 0);
	lnet_sim_run(g.sim, 2 * SEC);
	cr_assert(r->stalled);
	serve_release(&g.served);
	settle(&g);
	serve_fini(&g);
}

/* A stalled request whose handler makes progress again is extended again at
 * once. */
Test(stall, until_there_is_progress)
{
	struct wire_call c = slow(1, "hold");
	struct serve_rig g;
	unsigned int told;

	stall_rig(&g, STALLED);
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 4100 * MSEC);
	cr_assert(g.served.park[0]->stalled);
	told = a.nextensions;
	run_until(&g, said_until() + 100 * MSEC);
	cr_assert_eq(a.nextensions, told);
	ulrpc_progress(g.served.park[0], 1);
	lnet_sim_run(g.sim, 1100 * MSEC);
	cr_assert_eq(a.nextensions, told + 1);
	ask(1, 1);
	cr_assert_eq(a.replies, 0);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	serve_fini(&g);
}

/* A request does not stall while it waits for a worker. */
Test(stall, not_in_the_queue)
{
	struct wire_call c[2] = { slow(1, "park"), slow(2, "work") };
	struct serve_rig g;

	stall_rig(&g, STALLED);
	raw_client_send(&a, c, 2, "xy", 0);
	for (unsigned int i = 0; i < 10; i++) {
		lnet_sim_run(g.sim, 3 * SEC);
		ulrpc_progress(g.served.park[0], i);
	}
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stalled), 0);
	serve_release(&g.served);
	settle(&g);
	cr_assert_eq(raw_client_reply(&a, 2)->status, WIRE_OK);
	serve_fini(&g);
}

Test(stall, never_unless_asked_for)
{
	struct wire_call c = slow(1, "park");
	struct serve_rig g;

	stall_rig(&g, 0);
	raw_client_send(&a, &c, 1, "x", 0);
	lnet_sim_run(g.sim, 500 * SEC);
	cr_assert_eq(serve_counted(cpt0(&g), RPC_STAT_requests_stalled), 0);
	cr_assert_gt(said_until(), lnet_now(g.node[CALLER], 0));
	serve_release(&g.served);
	serve_fini(&g);
}

/* ---- by a real client ---- */

/* The handler gets one segment every three seconds, and then hangs. */
#define SLOW_SEGMENTS 5

static void slowly(void *arg, struct ulrpc_request *r, const void *body,
		   size_t length)
{
	unsigned int *moved = arg;
	char memory[64];
	struct iovec iov = { memory, sizeof(memory) };

	(void)body;
	(void)length;
	for (unsigned int i = 0; i < SLOW_SEGMENTS; i++) {
		cr_assert_eq(ulrpc_bulk_get_wait(r, 0, 0, &iov, 1), 0);
		(*moved)++;
		cr_assert_eq(ulrpc_request_sleep(r, 3000000), 0);
	}
	cr_assert_eq(ulrpc_request_sleep(r, ULRPC_NEVER), -ECANCELED);
	ulrpc_reply(r, NULL, 0);
}

Test(stall, a_caller_is_told)
{
	static char memory[64];
	struct iovec iov = { memory, sizeof(memory) };
	const struct ulrpc_bulk_conf lend = { .iov = &iov,
					      .niov = 1,
					      .access = ULRPC_BULK_SOURCE };
	unsigned int moved = 0;
	const struct ulrpc_method_conf method = { .name = "slowly",
						  .handler = slowly,
						  .arg = &moved };
	struct ulrpc_service_conf conf = { .name = "test",
					   .methods = &method,
					   .nmethods = 1,
					   .stalled = STALLED };
	struct ulrpc_call_conf call = { .deadline = 600000000, .nbulks = 1 };
	struct ulrpc_bulk *bulk;
	struct called c = { 0 };
	struct serve_rig g;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start(&g, &conf);
	serve_client(&g);
	cr_assert_eq(ulrpc_bulk_new(g.rpc[CALLER], &lend, &bulk), 0);
	call.bulks = &bulk;
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("slowly"), "x", 1, &call,
				on_called, &c, NULL),
		     0);
	lnet_sim_run(g.sim, 15 * SEC);
	cr_assert_eq(moved, SLOW_SEGMENTS);
	cr_assert_eq(c.ended, 0);
	lnet_sim_run(g.sim, 45 * SEC);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_STALLED);
	cr_assert_eq(c.outcome.status, -ETIMEDOUT);
	cr_assert_eq(c.outcome.execution, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(atomic_load(&g.service->cpt[0].under_way), 0,
		     "all is free");
	ulrpc_bulk_close(bulk, NULL, NULL);
	serve_fini(&g);
}
