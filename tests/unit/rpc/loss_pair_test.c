/* SPDX-License-Identifier: BSD-3-Clause */
/* Links that lose messages, and an idle server. Loss shows itself when the
 * server says that it does not know a call: it is no overload, and no call may
 * fail for it that has time left. */
#include <errno.h>

#include "tests/unit/rpc/serve_rig.h"

#define CALLS 2000

static struct serve_rig g;
static struct called calls[CALLS];

static void lose(unsigned int percent)
{
	const struct ulnet_sim_link link = {
		.latency = MSEC / 10,
		.loss = percent * (LNET_SIM_ALWAYS / 100),
	};

	cluster_links(g.sim, &link);
}

/* Opens the rig, and makes calls until T follows from what they took. */
static void begin(uint64_t seed)
{
	serve_init(&g, seed, 1);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
	lose(0);
	for (unsigned int i = 0; i < 100; i++) {
		serve_call(&g, "echo", "x", 1, 10000000, 0, &calls[0]);
		lnet_sim_run(g.sim, MSEC);
	}
	cr_assert_eq(calls[0].outcome.cause, ULRPC_CAUSE_OK);
}

/* Makes a call each millisecond while @percent of all messages are lost. */
static void calls_with_loss(unsigned int percent)
{
	unsigned int retries = 0;

	begin(percent);
	lose(percent);
	for (unsigned int i = 0; i < CALLS; i++) {
		serve_call(&g, "echo", "x", 1, 30000000, 0, &calls[i]);
		lnet_sim_run(g.sim, MSEC);
	}
	lnet_sim_run(g.sim, 30 * SEC);
	for (unsigned int i = 0; i < CALLS; i++) {
		const struct ulrpc_outcome *o = &calls[i].outcome;

		cr_assert_eq(calls[i].ended, 1);
		cr_assert_eq(o->cause, ULRPC_CAUSE_OK,
			     "%u %% lost: call %u: %s", percent, i,
			     ulrpc_cause_name(o->cause));
		retries += o->retries;
	}
	/* Every call whose request was lost was sent again. */
	cr_assert_geq(retries, CALLS * percent / 100 * 9 / 10);
	serve_fini(&g);
}

Test(loss_pair, calls_are_repeated_however_many_are_lost)
{
	calls_with_loss(10);
	calls_with_loss(20);
	calls_with_loss(33);
	calls_with_loss(40);
}

/* The client may not repeat the call, or has no time to: the cause says that
 * the call was lost, and not that the server was too late for it. */
static struct ulrpc_outcome lost_call(const struct ulrpc_retry *retry,
				      uint64_t deadline)
{
	const struct ulrpc_call_conf conf = { .deadline = deadline,
					      .retry = retry };
	const struct ulnet_id server = nth_id(SERVER), caller = nth_id(CALLER);
	struct ulnet_sim_link link = { .latency = MSEC / 10,
				       .loss = LNET_SIM_ALWAYS };

	begin(1);
	calls[0] = (struct called){ 0 };
	lnet_sim_link_set(g.sim, &caller.nid, &server.nid, &link);
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("echo"), "x", 1, &conf,
				on_called, &calls[0], NULL),
		     0);
	lnet_sim_run(g.sim, MSEC);
	link.loss = 0;
	lnet_sim_link_set(g.sim, &caller.nid, &server.nid, &link);
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_eq(calls[0].ended, 1);
	serve_fini(&g);
	return calls[0].outcome;
}

Test(loss_pair, a_lost_call_that_is_not_repeated_is_lost)
{
	static const struct ulrpc_retry none = { 0 };
	struct ulrpc_outcome o = lost_call(&none, 10000000);

	cr_assert_eq(o.cause, ULRPC_CAUSE_LOST);
	cr_assert_eq(o.status, -ETIMEDOUT);
	cr_assert_eq(o.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(lost_call(NULL, 10000000).cause, ULRPC_CAUSE_OK);
}

/* The server's host refuses connections: a call without retries ends at once,
 * others at their deadlines. */
Test(loss_pair, who_is_refused_need_not_wait)
{
	static const struct ulrpc_retry none = { 0 };

	for (unsigned int i = 0; i < 2; i++) {
		const struct ulrpc_call_conf conf = { .deadline = 20000000,
						      .retry = i ? NULL
								 : &none };
		const struct ulnet_sim_link closed = {
			.refuse = LNET_SIM_ALWAYS
		};

		serve_init(&g, 1, 1);
		serve_client(&g);
		cluster_links(g.sim, &closed);
		calls[0] = (struct called){ 0 };
		cr_assert_eq(ulrpc_call(g.client, ulrpc_method("echo"), "x", 1,
					&conf, on_called, &calls[0], NULL),
			     0);
		lnet_sim_run(g.sim, 12 * SEC);
		cr_assert_eq(calls[0].ended, !i);
		lnet_sim_run(g.sim, 8 * SEC);
		cr_assert_eq(calls[0].ended, 1);
		cr_assert_eq(calls[0].outcome.cause, ULRPC_CAUSE_UNREACHABLE);
		cr_assert_eq(calls[0].outcome.execution, ULRPC_NOT_EXECUTED);
		cr_assert_eq(ulrpc_close(g.rpc[CALLER]), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(lnet_sim_free(g.sim), 0);
	}
}
