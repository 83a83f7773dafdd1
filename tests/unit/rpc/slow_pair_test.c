/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that is slow, and a client that waits: both real. */
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

/* A call that takes @seconds, and what became of it. */
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
	serve_call(g, "hold", "x", 1, 3600000000, ULRPC_PRIORITY_NORMAL, c);
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

/* However slow: no connection is lost, nothing is sent again, nor asked for,
 * and the client hears no more than log2(total / T) + 2 times; of T it is known
 * that it is 50 ms or more, as methods take that did not take long. */
Test(slow_pair, waits)
{
	static const unsigned int seconds[] = { 1, 10, 100, 1000 };
	const struct ulnet_sim_link good = { 0 };

	for (unsigned int i = 0; i < ARRAY_SIZE(seconds); i++) {
		unsigned int most = 2;
		struct serve_rig g;
		struct called c;

		for (uint64_t t = 50; t < seconds[i] * 1000 + 100; t *= 2)
			most++;
		slow_call(&g, seconds[i], &good, &c);
		cr_assert_eq(c.outcome.attempts, 1);
		cr_assert_leq(counted(&g, SERVER, RPC_STAT_extensions_sent),
			      most);
		if (seconds[i] > 1)
			cr_assert_geq(
				counted(&g, SERVER, RPC_STAT_extensions_sent),
				2);
		cr_assert_eq(counted(&g, SERVER, RPC_STAT_requests_again), 0);
		cr_assert_eq(counted(&g, SERVER, RPC_STAT_requests_repeated),
			     0);
		ulrpc_client_close(g.client);
		serve_fini(&g);
	}
}

/* What says so is lost, repeated, and comes in any order: the client asks, and
 * nothing else happens. */
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
