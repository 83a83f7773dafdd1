/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that has nothing to do, and clients with new connections: calls are
 * sent at once as far as there are workers for them. Many clients that come
 * together may not send more than that. */
#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "tests/unit/rpc/serve_rig.h"

#define WORKERS 64
#define CALLS	64
#define TAKES	300 /* ms of a call */
#define CLIENTS 100
#define LATENCY MSEC

static struct serve_rig g;
static struct called calls[CLIENTS][CALLS];
static struct {
	unsigned int now, most; /* requests in handlers */
} served;

static void take_long(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	(void)arg;
	served.now++;
	served.most = MAX(served.most, served.now);
	if (ulrpc_request_sleep(r, TAKES * 1000))
		return;
	served.now--;
	ulrpc_reply(r, body, length);
}

static void begin(void)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "long", .handler = take_long },
		{ .name = "echo",
		  .handler = echo,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf sc;

	serve_init(&g, 1, 1);
	served.now = served.most = 0;
	serve_open(&g, NULL);
	ulrpc_service_conf_init(&sc);
	sc.name = "test";
	sc.methods = methods;
	sc.nmethods = ARRAY_SIZE(methods);
	sc.workers_min = WORKERS;
	serve_start(&g, &sc);
	serve_client(&g);
	cluster_links(g.sim, &(struct ulnet_sim_link){ .latency = LATENCY });
}

static void call_long(struct ulrpc_client *client, struct called *c)
{
	const struct ulrpc_call_conf conf = { .deadline = 60000000 };

	for (unsigned int i = 0; i < CALLS; i++) {
		c[i] = (struct called){ 0 };
		cr_assert_eq(ulrpc_call(client, ulrpc_method("long"), "x", 1,
					&conf, on_called, &c[i], NULL),
			     0);
	}
}

/* All calls have ended, none later than @ms after its beginning. */
static void took_at_most(const struct called *c, uint64_t ms)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		const struct ulrpc_outcome *o = &c[i].outcome;

		cr_assert_eq(c[i].ended, 1);
		cr_assert_eq(o->cause, ULRPC_CAUSE_OK);
		cr_assert_leq(o->total / 1000, ms, "call %u: %lu ms", i,
			      (unsigned long)o->total / 1000);
	}
}

/* Connecting, opening and calling take a round trip each. */
#define TRIPS (3 * 2 * LATENCY / MSEC)

Test(begin_pair, workers_are_used_at_once)
{
	begin();
	call_long(g.client, calls[0]);
	lnet_sim_run(g.sim, 5 * SEC);
	took_at_most(calls[0], TAKES + TRIPS + 1);
	/* And again, after the connection was given up as nobody used it. */
	lnet_sim_run(g.sim, 3600 * SEC);
	cr_assert_eq(g.client->imp->fsm.state, IMPORT_IDLE);
	call_long(g.client, calls[0]);
	lnet_sim_run(g.sim, 5 * SEC);
	took_at_most(calls[0], TAKES + TRIPS + 1);
	serve_fini(&g);
}

/* The connection is made again, with the same server: another round trip. */
Test(begin_pair, workers_are_used_at_once_after_a_loss)
{
	begin();
	call_long(g.client, calls[0]);
	lnet_sim_run(g.sim, 5 * SEC);
	import_lost(g.client->imp, g.client->imp->epoch);
	cr_assert_not(import_is_up(g.client->imp));
	call_long(g.client, calls[0]);
	lnet_sim_run(g.sim, 5 * SEC);
	took_at_most(calls[0], TAKES + TRIPS + 11);
	serve_fini(&g);
}

/* What the caller has said applies. */
Test(begin_pair, a_caller_begins_with_what_it_wants)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf = {
		.nids = &nid, .nnids = 1, .service = "test", .inflight_begin = 2
	};
	struct ulrpc_client *client;

	begin();
	cr_assert_eq(ulrpc_client_open(g.rpc[CALLER], &conf, &client), 0);
	call_long(client, calls[0]);
	lnet_sim_run(g.sim, TAKES / 2 * MSEC);
	cr_assert_eq(served.most, 2);
	lnet_sim_run(g.sim, 10 * SEC);
	took_at_most(calls[0], 10000);
	serve_fini(&g);
}

/* A hundred clients at once: the server is sent twice as much as its workers
 * take, and two calls of each client. */
Test(begin_pair, many_clients_do_not_send_more_than_is_taken)
{
	static struct ulrpc *rpc[CLIENTS];
	uint32_t inflight = 0;

	begin();
	for (unsigned int i = 0; i < CLIENTS; i++) {
		unsigned int node = serve_node_add(&g, 2 + i);

		cr_assert_eq(
			ulrpc_open(lnet_sim_node(g.sim, node), NULL, &rpc[i]),
			0);
		call_long(serve_client_of(rpc[i], "test"), calls[i]);
	}
	lnet_sim_run(g.sim, TAKES / 2 * MSEC);
	inflight = (uint32_t)service_sum(g.service).requests;
	cr_assert_geq(inflight, WORKERS);
	cr_assert_leq(inflight, 2 * WORKERS + CLIENTS * WINDOW_BEGIN);
	cr_assert_eq(served.most, WORKERS);
	lnet_sim_run(g.sim, 60 * SEC);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		took_at_most(calls[i], 60000);
		cr_assert_eq(ulrpc_close(rpc[i]), 0);
	}
	serve_fini(&g);
}
