/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that is slow, and a client that waits for it: both are real. */
#include "tests/unit/rpc/serve_rig.h"

static uint64_t counted(const struct serve_rig *g, unsigned int node,
			enum rpc_stat stat)
{
	return g->rpc[node]->shards[0].stats->counts[stat];
}

static void link_to(struct serve_rig *g, const struct ulnet_sim_link *link)
{
	const struct ulnet_nid from = nth_id(SERVER).nid;
	const struct ulnet_nid to = nth_id(CALLER).nid;

	cr_assert_eq(lnet_sim_link_set(g->sim, &from, &to, link), 0);
}

/* Makes a call that takes @seconds, while the link to the client is @link, and
 * checks that it is executed once and succeeds, over one connection. */
static void slow_call(struct serve_rig *g, unsigned int seconds,
		      const struct ulnet_sim_link *link, struct called *c)
{
	const struct ulnet_sim_link good = { 0 };
	struct ulrpc_service_conf conf = { .stuck = ULRPC_NEVER };

	serve_init(g, 1, 1);
	serve_open(g, NULL);
	serve_start_with(g, &conf);
	serve_client(g);
	serve_call(g, "echo", "x", 1, 1000000, ULRPC_PRIORITY_NORMAL, c);
	lnet_sim_run(g->sim, SEC);
	cr_assert_eq(c->outcome.cause, ULRPC_CAUSE_OK);
	g->served.runs = 0;
	serve_call(g, "hold", "x", 1, 36000000000, ULRPC_PRIORITY_NORMAL, c);
	lnet_sim_run(g->sim, 100 * MSEC);
	link_to(g, link);
	lnet_sim_run(g->sim, seconds * SEC);
	cr_assert_eq(c->ended, 0);
	cr_assert_eq(g->served.parked, 1);
	link_to(g, &good);
	serve_release(&g->served);
	lnet_sim_run(g->sim, 100 * MSEC);
	cr_assert_eq(c->ended, 1);
	cr_assert_eq(c->outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(g->served.runs, 1);
	cr_assert_eq(counted(g, CALLER, RPC_STAT_connections_lost), 0);
}

/* However slow the server is, no connection is lost, and the client sends
 * nothing again, and no query. The server sends at most log2(total / T) + 2
 * extensions, and one each four minutes. T is at least 50 ms, the estimate for
 * fast methods. */
Test(slow_pair, waits)
{
	static const unsigned int seconds[] = { 1, 10, 100, 1000, 10000 };
	const struct ulnet_sim_link good = { 0 };

	for (unsigned int i = 0; i < ARRAY_SIZE(seconds); i++) {
		unsigned int most = 2 + seconds[i] / 240;
		struct serve_rig g;
		struct called c;

		for (uint64_t t = 50; t < seconds[i] * 1000 + 100; t *= 2)
			most++;
		slow_call(&g, seconds[i], &good, &c);
		cr_assert_eq(c.outcome.queries, 0);
		cr_assert_eq(c.outcome.attempts, 1);
		cr_assert_leq(counted(&g, SERVER, RPC_STAT_extensions_sent),
			      most);
		if (seconds[i] > 1)
			cr_assert_geq(
				counted(&g, SERVER, RPC_STAT_extensions_sent),
				2);
		cr_assert_eq(counted(&g, SERVER, RPC_STAT_requests_again),
			     c.outcome.queries);
		cr_assert_eq(counted(&g, SERVER, RPC_STAT_requests_repeated),
			     0);
		ulrpc_client_close(g.client);
		serve_fini(&g);
	}
}

/* Extensions are lost, duplicated and reordered: the client sends queries, but
 * nothing else changes. */
Test(slow_pair, over_a_bad_network)
{
	const struct ulnet_sim_link bad[] = {
		{ .duplicate = LNET_SIM_ALWAYS },
		{ .loss = LNET_SIM_ALWAYS / 2,
		  .duplicate = LNET_SIM_ALWAYS / 2 },
		{ .latency = 5 * MSEC,
		  .jitter = 20 * MSEC,
		  .reorder = LNET_SIM_ALWAYS / 2,
		  .reorder_window = 50 * MSEC,
		  .duplicate = LNET_SIM_ALWAYS },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		struct serve_rig g;
		struct called c;

		slow_call(&g, 100, &bad[i], &c);
		cr_assert_geq(counted(&g, SERVER, RPC_STAT_extensions_sent), 1);
		ulrpc_client_close(g.client);
		serve_fini(&g);
	}
}

/* ---- a server that is far away ---- */

#define WAY (100 * MSEC)

struct nap {
	uint64_t takes; /* us */
	uint64_t least; /* ns: the least T of all requests */
};

static void take_nap(void *arg, struct ulrpc_request *r, const void *body,
		     size_t length)
{
	struct nap *nap = arg;

	(void)body;
	(void)length;
	nap->least = MIN(nap->least, r->timeout);
	cr_assert_eq(ulrpc_request_sleep(r, nap->takes), 0);
	ulrpc_reply(r, NULL, 0);
}

static void link_both(struct serve_rig *g, unsigned int node,
		      const struct ulnet_sim_link *link)
{
	const struct ulnet_nid a = nth_id(SERVER).nid, b = nth_id(node).nid;

	cr_assert_eq(lnet_sim_link_set(g->sim, &a, &b, link), 0);
	cr_assert_eq(lnet_sim_link_set(g->sim, &b, &a, link), 0);
}

static void nap_call(struct serve_rig *g, struct ulrpc_client *client,
		     uint64_t seconds)
{
	const struct ulrpc_call_conf conf = { .deadline = 3600000000 };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(client, ulrpc_method("nap"), NULL, 0, &conf,
				on_called, &c, NULL),
		     0);
	lnet_sim_run(g->sim, seconds * SEC);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(c.outcome.attempts, 1);
	cr_assert_eq(c.outcome.queries, 0);
}

/* T is little more than a round trip. No query is sent about a slow call, be it
 * of a client that has called before, or the first one of a new client
 * (@first). */
static void far_call(uint64_t seed, bool first)
{
	const struct ulnet_sim_link far = { .latency = WAY };
	struct nap nap = { .takes = 130000 };
	const struct ulrpc_method_conf method = { .name = "nap",
						  .handler = take_nap,
						  .arg = &nap };
	const struct ulrpc_service_conf conf = { .name = "test",
						 .methods = &method,
						 .nmethods = 1 };
	struct serve_rig g;
	struct ulrpc *rpc;

	serve_init(&g, seed, 1);
	serve_node_add(&g, 2);
	link_both(&g, CALLER, &far);
	link_both(&g, 2, &far);
	serve_open(&g, NULL);
	serve_start(&g, &conf);
	serve_client(&g);
	for (unsigned int i = 0; i < 10; i++)
		nap_call(&g, g.client, 1);
	nap = (struct nap){ .takes = 5000000, .least = UINT64_MAX };
	cr_assert_eq(ulrpc_open(lnet_sim_node(g.sim, 2), NULL, &rpc), 0);
	nap_call(&g, first ? serve_client_of(rpc, "test") : g.client, 10);
	cr_assert_gt(nap.least, 2 * WAY);
	cr_assert_lt(nap.least, 3 * WAY);
	cr_assert_gt(counted(&g, SERVER, RPC_STAT_extensions_sent), 2);
	cr_assert_eq(counted(&g, SERVER, RPC_STAT_requests_again), 0);
	cr_assert_eq(ulrpc_close(rpc), 0);
	serve_fini(&g);
}

Test(slow_pair, over_a_long_way)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		far_call(seed, false);
		far_call(seed, true);
	}
}

/* All workers are busy until the caller's deadline. The server's answer that
 * the call was not executed arrives before that, however long the way is. */
Test(slow_pair, what_was_never_run_says_so)
{
	static const uint64_t latency[] = { 0, 5 * MSEC, 50 * MSEC };

	for (unsigned int i = 0; i < ARRAY_SIZE(latency); i++) {
		struct ulrpc_service_conf conf = { .workers_max = 1 };
		struct called first = { 0 }, park = { 0 }, c = { 0 };
		const struct ulnet_sim_link link = {
			.latency = latency[i],
		};
		struct serve_rig g;

		serve_init(&g, 1, 1);
		serve_open(&g, NULL);
		serve_start_with(&g, &conf);
		serve_client(&g);
		link_to(&g, &link);
		for (unsigned int n = 0; n < 8; n++) {
			serve_call(&g, "echo", "x", 1, 10000000,
				   ULRPC_PRIORITY_NORMAL, &first);
			lnet_sim_run(g.sim, SEC);
		}
		cr_assert_eq(first.outcome.cause, ULRPC_CAUSE_OK);
		serve_call(&g, "park", "x", 1, 60000000, ULRPC_PRIORITY_NORMAL,
			   &park);
		lnet_sim_run(g.sim, SEC);
		serve_call(&g, "work", "x", 1, 1000000, ULRPC_PRIORITY_NORMAL,
			   &c);
		lnet_sim_run(g.sim, 2 * SEC);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(c.outcome.execution, ULRPC_NOT_EXECUTED,
			     "%llu ns: %s, %s", (unsigned long long)latency[i],
			     ulrpc_cause_name(c.outcome.cause),
			     ulrpc_execution_name(c.outcome.execution));
		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_EXPIRED);
		cr_assert_eq(c.outcome.attempts, 1);
		serve_release(&g.served);
		lnet_sim_run(g.sim, SEC);
		ulrpc_client_close(g.client);
		serve_fini(&g);
	}
}
