/* SPDX-License-Identifier: BSD-3-Clause */
/* The gauges in statistics: estimates, round trips, windows. */
#include "rpc/client/client.h"
#include "rpc/stats/stats.h"
#include "tests/unit/rpc/server/request_rig.h"

static struct serve_rig g;

static void rig_begin(void)
{
	serve_init(&g, 1, 1);
	lnet_sim_run(g.sim, MSEC); /* as the time 0 stands for "never" */
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
}

static void rig_end(void)
{
	ulrpc_client_close(g.client);
	serve_fini(&g);
}

/* Makes a call whose handler takes @ns. */
static void call_taking(const char *method, uint64_t ns)
{
	struct called c = { 0 };

	serve_call(&g, method, "hello", 5, 100000000, ULRPC_PRIORITY_DEFAULT,
		   &c);
	lnet_sim_run(g.sim, 10 * MSEC + ns);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(c.ended, 1);
}

static struct stats_sum *sum_of(unsigned int node)
{
	struct stats_sum *sum;

	cr_assert_eq(stats_sum(g.rpc[node], true, &sum), 0);
	return sum;
}

static struct stat_method_gauges method_of(struct stats_sum *sum,
					   enum stat_side side,
					   const char *method)
{
	struct stat_service *sv = stat_service_get(&sum->all, side, "test");
	const struct stat_method *m =
		stat_method_find(sv, ulrpc_method(method));

	return m ? m->gauges : (struct stat_method_gauges){ 0 };
}

/* Returns whether @is could stand for @exact, with the width of a bucket and
 * the time that call_taking() adds. */
static bool is_near(uint64_t is, uint64_t exact)
{
	return is >= exact && is <= exact + exact * 2 / 5;
}

Test(gauges, methods)
{
	struct stat_method_gauges m;
	struct stats_sum *sum;

	rig_begin();
	call_taking("hold", 100 * MSEC);
	call_taking("park", 300 * MSEC);
	sum = sum_of(CALLER);
	m = method_of(sum, STAT_CALLS, "hold");
	cr_expect(is_near(m.estimate, 100 * MSEC));
	cr_expect_eq(m.timeout, client_timeout(g.client, ulrpc_method("hold"),
					       TIME_NEVER));
	cr_expect_gt(m.timeout, m.estimate);
	m = method_of(sum, STAT_CALLS, "park");
	cr_expect(is_near(m.estimate, 300 * MSEC));
	cr_expect_eq(m.timeout, client_timeout(g.client, ulrpc_method("park"),
					       TIME_NEVER));
	/* This method was not called. */
	cr_expect_eq(method_of(sum, STAT_CALLS, "echo").timeout, 0);
	stats_sum_free(sum);

	sum = sum_of(SERVER);
	cr_expect(is_near(method_of(sum, STAT_REQUESTS, "hold").estimate,
			  100 * MSEC));
	cr_expect(is_near(method_of(sum, STAT_REQUESTS, "park").estimate,
			  300 * MSEC));
	cr_expect_eq(method_of(sum, STAT_REQUESTS, "echo").estimate, 0);
	stats_sum_free(sum);
	rig_end();
}

/* Gauges show the present: a reset does not change them. */
Test(gauges, are_not_reset)
{
	struct stats_sum *sum;

	rig_begin();
	call_taking("hold", 100 * MSEC);
	for (unsigned int node = 0; node < 2; node++)
		cr_assert_eq(ulrpc_stats_reset(g.rpc[node]), 0);
	sum = sum_of(CALLER);
	cr_expect(is_near(method_of(sum, STAT_CALLS, "hold").estimate,
			  100 * MSEC));
	stats_sum_free(sum);
	sum = sum_of(SERVER);
	cr_expect(is_near(method_of(sum, STAT_REQUESTS, "hold").estimate,
			  100 * MSEC));
	stats_sum_free(sum);
	rig_end();
}

static struct stat_peer_gauges peer_of(unsigned int node, enum stat_side side)
{
	struct stats_sum *sum = sum_of(node);
	struct stat_peer_gauges peer;

	cr_assert_eq(sum->npeers[side], 1);
	peer = sum->peers[side][0].gauges;
	stats_sum_free(sum);
	return peer;
}

Test(gauges, servers)
{
	struct stat_peer_gauges peer;
	struct import *imp;

	rig_begin();
	imp = g.client->imp;
	peer = peer_of(CALLER, STAT_CALLS);
	cr_expect_str_neq(peer.state, "full");
	call_taking("hold", 100 * MSEC);
	peer = peer_of(CALLER, STAT_CALLS);
	cr_expect_str_eq(peer.state, "full");
	cr_expect_gt(peer.rtt, 0);
	cr_expect_eq(peer.rtt, import_rtt(imp));
	cr_expect_eq(peer.backoff, 1);
	cr_expect_eq(peer.slots, RECORD_SLOTS);
	/* In slow start the window grows with each reply. */
	cr_expect_eq(peer.window, g.client->window.limit);
	for (unsigned int i = 0; i < 4; i++)
		call_taking("echo", 0);
	cr_expect_gt(peer_of(CALLER, STAT_CALLS).window, peer.window);

	imp->backoff = 3;
	cr_expect_eq(peer_of(CALLER, STAT_CALLS).backoff, 8);
	imp->backoff = 0;
	rig_end();
}

static struct share *only_share(void)
{
	struct shard *s = g.service->cpt[0].shard;
	struct export *e;

	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++)
		list_for_each_entry (e, &s->exports->silent[i], link)
			return list_first(&e->shares, struct share, link);
	return NULL;
}

Test(gauges, clients)
{
	struct stat_peer_gauges peer;

	rig_begin();
	call_taking("hold", 100 * MSEC);
	peer = peer_of(SERVER, STAT_REQUESTS);
	cr_expect_null(peer.state);
	cr_expect_eq(peer.window, g.service->conf.window);
	only_share()->grant.window = 5;
	cr_expect_eq(peer_of(SERVER, STAT_REQUESTS).window, 5);
	rig_end();
}

/* The gauges of calls under way: their number, the age of the oldest one, and
 * how long nothing was heard of the peer. */
Test(gauges, what_is_under_way)
{
	struct stat_peer_gauges peer;
	struct called c[3] = { 0 };

	rig_begin();
	call_taking("echo", 0);
	lnet_sim_run(g.sim, 30 * MSEC);
	peer = peer_of(CALLER, STAT_CALLS);
	cr_expect_eq(peer.under_way, 0);
	cr_expect_eq(peer.oldest, 0);
	cr_expect(is_near(peer.silent, 40 * MSEC));
	cr_expect(is_near(peer_of(SERVER, STAT_REQUESTS).silent, 40 * MSEC));

	for (unsigned int i = 0; i < 3; i++) {
		serve_call(&g, "hold", "hello", 5, 100000000,
			   ULRPC_PRIORITY_DEFAULT, &c[i]);
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	/* The third call waits for the window. */
	peer = peer_of(CALLER, STAT_CALLS);
	cr_expect_eq(peer.window, 2);
	cr_expect_eq(peer.under_way, 3);
	cr_expect(is_near(peer.oldest, 30 * MSEC));
	cr_expect_eq(peer_of(SERVER, STAT_REQUESTS).under_way, 2);
	while (!c[2].ended) {
		serve_release(&g.served);
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	cr_expect_eq(peer_of(CALLER, STAT_CALLS).under_way, 0);
	cr_expect_eq(peer_of(SERVER, STAT_REQUESTS).under_way, 0);
	rig_end();
}

struct under_way {
	uint64_t all, waiting;
};

static struct under_way under_way_of(unsigned int node, enum stat_side side)
{
	struct stats_sum *sum = sum_of(node);
	const struct stat_service *sv =
		stat_service_get(&sum->all, side, "test");
	struct under_way found = { sv->under_way, sv->waiting };

	stats_sum_free(sum);
	return found;
}

/* How many calls and requests of a service there are, and how many of them
 * wait. Requirement J5. */
Test(gauges, services)
{
	struct ulrpc_service_conf one = { .workers_min = 1, .workers_max = 1 };
	struct under_way calls, requests;
	struct called c[5] = { { 0 } };

	serve_init(&g, 1, 1);
	lnet_sim_run(g.sim, MSEC);
	serve_open(&g, NULL);
	serve_start_with(&g, &one);
	serve_client(&g);
	for (unsigned int i = 0; i < 5; i++)
		serve_call(&g, "park", "hello", 5, 100000000,
			   ULRPC_PRIORITY_DEFAULT, &c[i]);
	calls = under_way_of(CALLER, STAT_CALLS);
	cr_expect_eq(calls.all, 5);
	cr_expect_eq(calls.waiting, 5);
	lnet_sim_run(g.sim, 10 * MSEC);
	/* The window lets some of them go, of which one has the worker. */
	calls = under_way_of(CALLER, STAT_CALLS);
	requests = under_way_of(SERVER, STAT_REQUESTS);
	cr_expect_eq(calls.all, 5);
	cr_expect_lt(calls.waiting, 5);
	cr_expect_gt(requests.all, 1);
	cr_expect_eq(requests.all, 5 - calls.waiting);
	cr_expect_eq(requests.waiting, requests.all - 1);
	for (unsigned int i = 0; i < 5; i++) {
		serve_release(&g.served);
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	calls = under_way_of(CALLER, STAT_CALLS);
	requests = under_way_of(SERVER, STAT_REQUESTS);
	cr_expect(!calls.all && !calls.waiting);
	cr_expect(!requests.all && !requests.waiting);
	rig_end();
}
