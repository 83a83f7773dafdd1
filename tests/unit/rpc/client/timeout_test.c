/* SPDX-License-Identifier: BSD-3-Clause */
/* The time T of attempts, which follows from what the server advertises and
 * from the times in its replies. */
#include "rpc/client/client.h"
#include "rpc/run.h"
#include "tests/unit/rpc/client/call_rig.h"

#define METHOD 77 /* method that call() calls */
#define GRACE  (20 * MSEC)

static struct call_rig g;
static struct note n;

static uint64_t timeout_of(uint32_t method)
{
	return client_timeout(g.client, method, TIME_NEVER);
}

/* Returns whether @is is at least @exact, and at most @per_cent more. */
static bool is_near(uint64_t is, uint64_t exact, unsigned int per_cent)
{
	return is >= exact && is <= exact + exact * per_cent / 100;
}

static struct arrived *last_call(void)
{
	return &g.fake->calls[(g.fake->ncalls - 1) % CALLS_SEEN];
}

/* Makes a call that takes @service us, as the server reports. */
static void call_taking(uint64_t service)
{
	g.fake->mute_calls = true;
	g.fake->queue = 0;
	g.fake->service = service;
	call(&g, &n, 100000000);
	run(&g, 10 * MSEC + service * USEC);
	fake_echo(g.fake, last_call());
	run(&g, 10 * MSEC);
	ended_well(&n);
}

Test(timeout, a_second_if_nothing_is_known)
{
	rig_open(&g);
	cr_expect_eq(timeout_of(METHOD), SEC);
	cr_expect_eq(client_timeout(g.client, METHOD, 300 * MSEC), 150 * MSEC);
	rig_close(&g);
}

static void says_40_ms(struct fake *f, struct wire_opened *o)
{
	(void)f;
	o->estimate = 40000;
}

Test(timeout, as_the_service_says)
{
	rig_open(&g);
	g.fake->on_opened = says_40_ms;
	g.fake->mute_calls = true;
	call(&g, &n, 100000000);
	run(&g, 100 * MSEC);
	cr_expect_eq(timeout_of(METHOD), 60 * MSEC + GRACE);
	cr_expect_eq(client_timeout(g.client, METHOD, MSEC), MSEC / 2);
	ulrpc_cancel(n.call);
	run(&g, MSEC);
	ended_by(&n, ULRPC_CAUSE_CANCELED, ULRPC_EXECUTION_UNKNOWN);
	rig_close(&g);
}

/* The estimate that replies carry counts for methods of which the client has no
 * samples. */
Test(timeout, as_replies_say)
{
	rig_open(&g);
	g.fake->estimate = 200000;
	call(&g, &n, 100000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_expect(is_near(timeout_of(METHOD + 1), 300 * MSEC + GRACE, 1));
	cr_expect_eq(timeout_of(METHOD), 50 * MSEC);
	/* A reply without an estimate changes nothing. */
	g.fake->estimate = 0;
	call(&g, &n, 100000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_expect(is_near(timeout_of(METHOD + 1), 300 * MSEC + GRACE, 1));
	rig_close(&g);
}

/* The client forgets estimates and samples when it meets another server (P6).
 */
Test(timeout, of_another_server_nothing_is_known)
{
	rig_open(&g);
	g.fake->estimate = 200000;
	for (unsigned int i = 0; i < 10; i++)
		call_taking(300000);
	cr_expect_geq(timeout_of(METHOD), 450 * MSEC);
	cr_expect_neq(timeout_of(METHOD + 1), SEC);
	g.fake->id++;
	g.fake->estimate = 0;
	g.fake->mute_calls = false;
	g.fake->service = 1000;
	import_lost(g.client->imp, g.client->imp->epoch);
	call(&g, &n, 100000000);
	run(&g, SEC);
	ended_well(&n);
	cr_expect_eq(timeout_of(METHOD), 50 * MSEC, "%llu",
		     (unsigned long long)timeout_of(METHOD));
	cr_expect_eq(timeout_of(METHOD + 1), SEC);
	rig_close(&g);
}

Test(timeout, an_absurd_estimate_is_bounded)
{
	rig_open(&g);
	g.fake->estimate = UINT64_MAX;
	call(&g, &n, 100000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_expect_eq(timeout_of(METHOD + 1), 30 * SEC);
	rig_close(&g);
}

Test(timeout, the_bounds_are_the_configured_ones)
{
	struct ulrpc_conf conf;

	ulrpc_conf_init(&conf);
	conf.timeout_min = 70000;
	conf.timeout_max = 90000;
	rig_open_with(&g, &conf);
	cr_expect_eq(timeout_of(METHOD), 90 * MSEC);
	call(&g, &n, 100000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_expect_eq(timeout_of(METHOD), 70 * MSEC);
	rig_close(&g);
}

Test(timeout, bounds_that_contradict_each_other)
{
	struct ulrpc_conf conf;
	struct ulrpc *rpc;

	g.sim = cluster(1);
	ulrpc_conf_init(&conf);
	conf.timeout_min = 2;
	conf.timeout_max = 1;
	cr_expect_eq(ulrpc_open(lnet_sim_node(g.sim, 0), &conf, &rpc), -EINVAL);
	conf.timeout_min = 0;
	cr_assert_eq(ulrpc_open(lnet_sim_node(g.sim, 0), &conf, &rpc), 0);
	cr_expect_eq(rpc->conf.timeout_min, 1);
	cr_expect_eq(ulrpc_close(rpc), 0);
	conf.timeout_min = 60000000;
	conf.timeout_max = 0;
	cr_assert_eq(ulrpc_open(lnet_sim_node(g.sim, 0), &conf, &rpc), 0);
	cr_expect_eq(rpc->conf.timeout_max, 60000000);
	cr_expect_eq(ulrpc_close(rpc), 0);
	cluster_end(g.sim);
}

Test(timeout, learned_from_replies)
{
	rig_open(&g);
	call_taking(300000);
	cr_expect(is_near(timeout_of(METHOD), 450 * MSEC + GRACE, 10));
	/* The client has no samples of other methods. */
	cr_expect_eq(timeout_of(METHOD + 1), SEC);
	rig_close(&g);
}

Test(timeout, queue_and_service_count)
{
	rig_open(&g);
	g.fake->mute_calls = true;
	g.fake->queue = 100000;
	g.fake->service = 50000;
	call(&g, &n, 100000000);
	run(&g, 200 * MSEC);
	fake_echo(g.fake, last_call());
	run(&g, 10 * MSEC);
	ended_well(&n);
	cr_expect(is_near(client_estimate(g.client, METHOD), 150 * MSEC, 1));
	rig_close(&g);
}

/* The server cannot report that a call took longer than it was under way. */
Test(timeout, not_longer_than_it_can_have_been)
{
	rig_open(&g);
	g.fake->service = UINT64_MAX;
	call(&g, &n, 100000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_expect_leq(client_estimate(g.client, METHOD), 100 * MSEC);
	rig_close(&g);
}

/* Calls whose handler failed are samples; refused calls are not. */
Test(timeout, learned_from_what_was_executed)
{
	rig_open(&g);
	g.fake->call_status = WIRE_OVERLOADED;
	call(&g, &n, 1000);
	run(&g, 100 * MSEC);
	cr_assert_eq(n.ended, 1);
	ulrpc_call_put(n.call);
	cr_expect_eq(client_estimate(g.client, METHOD), 0);
	g.fake->call_status = WIRE_FAILED;
	call(&g, &n, 100000000);
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_HANDLER, ULRPC_EXECUTED);
	cr_expect_neq(client_estimate(g.client, METHOD), 0);
	rig_close(&g);
}

Test(timeout, not_learned_from_calls_without_an_answer)
{
	rig_open(&g);
	g.fake->mute_calls = true;
	call(&g, &n, 3000000);
	run(&g, 4 * SEC);
	cr_assert_eq(n.ended, 1);
	ulrpc_call_put(n.call);
	cr_expect_eq(client_estimate(g.client, METHOD), 0);
	cr_expect_eq(mean_value(&g.client->imp->rtt), 0);
	rig_close(&g);
}

/* If a call was sent again, the client cannot know which attempt was answered,
 * and takes no sample. */
Test(timeout, not_learned_from_calls_that_were_sent_again)
{
	struct ulnet_sim_link bad = { .refuse = LNET_SIM_ALWAYS }, good = { 0 };

	rig_open(&g);
	g.fake->mute_calls = true;
	call(&g, &n, 100);
	run(&g, 100 * MSEC);
	cr_assert_eq(n.ended, 1);
	ulrpc_call_put(n.call);
	g.fake->mute_calls = false;
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &bad);
	call(&g, &n, 20000000);
	run(&g, MSEC);
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &good);
	run(&g, 20 * SEC);
	cr_assert_gt(n.outcome.attempts, 1);
	ended_well(&n);
	cr_expect_eq(client_estimate(g.client, METHOD), 0);
	cr_expect_eq(mean_value(&g.client->imp->rtt), 0);
	rig_close(&g);
}

Test(timeout, forgotten_in_time)
{
	rig_open(&g);
	call_taking(300000);
	cr_expect_neq(client_estimate(g.client, METHOD), 0);
	run(&g, 240 * SEC);
	cr_expect_eq(client_estimate(g.client, METHOD), 0);
	cr_expect_eq(timeout_of(METHOD), SEC);
	rig_close(&g);
}

/* Calls count as samples even while a run of equal ones goes on. */
Test(timeout, learned_from_a_run_that_goes_on)
{
	rig_open(&g);
	for (unsigned int i = 0; i < 400; i++) {
		call(&g, &n, 100000000);
		run(&g, SEC);
		ended_well(&n);
		cr_assert_neq(client_estimate(g.client, METHOD), 0);
	}
	rig_close(&g);
}

/* ---- round trips ---- */

static void latency(uint64_t ns)
{
	struct ulnet_sim_link link = { .latency = ns };

	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &link);
}

Test(timeout, round_trips_of_the_network)
{
	rig_open(&g);
	/* the default: no round trip is known */
	cr_expect_eq(import_rtt(g.client->imp), 100 * MSEC);
	latency(4 * MSEC);
	for (unsigned int i = 0; i < 30; i++)
		call_taking(10000 + i * 100);
	(void)client_estimate(g.client, METHOD);
	/* The fake server takes 6 ms more than it reports. */
	cr_expect(is_near(import_rtt(g.client->imp), 14 * MSEC, 20), "%lu",
		  import_rtt(g.client->imp));
	rig_close(&g);
}

/* If round trips vary, T includes more time for them. */
Test(timeout, round_trips_that_vary)
{
	rig_open(&g);
	for (unsigned int i = 0; i < 30; i++) {
		latency(i % 2 ? MSEC : 100 * MSEC);
		run(&g, SEC);
		call(&g, &n, 100000000);
		run(&g, SEC);
		ended_well(&n);
	}
	(void)client_estimate(g.client, METHOD);
	cr_expect_gt(timeout_of(METHOD), 150 * MSEC);
	rig_close(&g);
}
