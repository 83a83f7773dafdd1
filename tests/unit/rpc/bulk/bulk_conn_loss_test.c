/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LND's connection is lost while bulk is being moved. The messages that
 * were under way must be repeated about a round trip later, not when their time
 * is over. Client and service are both real.
 */
#include "tests/unit/rpc/mover.h"

#define LATENCY (10 * MSEC)
#define RTT	(2 * LATENCY)
#define CONNECT (3 * MSEC)
#define LENGTH	1000000
/* ns: the longest pause after a first loss */
#define PAUSE (20 * MSEC)

static struct {
	struct serve_rig g;
	struct mover m;
	struct ulrpc_bulk *bulk;
	struct called call;
} w;

static void begin(enum move move)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .connect = CONNECT };

	mover_open(&w.m, &w.g, 1, LENGTH, &link);
	w.m.move = move;
	mover_fill(&w.m, 0);
}

static void cut(void)
{
	const struct ulnet_id a = nth_id(CALLER), b = nth_id(SERVER);

	lnet_sim_cut(w.g.sim, &a.nid, &b.nid);
}

static uint64_t counted(enum rpc_stat stat)
{
	return serve_counted(&w.g.service->cpt[0], stat);
}

static void ended_well(void)
{
	lnet_sim_run(w.g.sim, SEC);
	cr_assert_eq(w.call.ended, 1);
	cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(w.m.ended, 1);
	cr_assert_eq(w.m.status, 0);
	cr_assert(mover_is_done(&w.m));
	ulrpc_bulk_close(w.bulk, NULL, NULL);
}

/* Makes the call, and runs until @after ns after its request has arrived, while
 * bulk is being moved. */
static void to_the_middle(uint64_t after)
{
	w.bulk = mover_call(&w.m, &w.g, 10000000, &w.call);
	while (!counted(RPC_STAT_requests_received))
		lnet_sim_run(w.g.sim, MSEC / 10);
	lnet_sim_run(w.g.sim, after);
	cr_assert_eq(w.m.ended, 0);
}

/* Loses the connection @after ns after the request has arrived: either the
 * service's PUT or GET is lost, or the answer to it. */
static void cut_at(enum move move, uint64_t after)
{
	uint64_t at;

	begin(move);
	to_the_middle(after);
	at = lnet_sim_now(w.g.sim);
	cut();
	while (!w.m.ended)
		lnet_sim_run(w.g.sim, MSEC / 10);
	cr_assert_leq(lnet_sim_now(w.g.sim) - at, PAUSE + CONNECT + 2 * RTT,
		      "%llu us",
		      (unsigned long long)(lnet_sim_now(w.g.sim) - at) / 1000);
	ended_well();
	mover_close(&w.m, &w.g);
}

Test(bulk_conn_loss, get_is_lost)
{
	cut_at(MOVE_GET, LATENCY / 2);
}

Test(bulk_conn_loss, reply_is_lost)
{
	cut_at(MOVE_GET, LATENCY + LATENCY / 2);
}

Test(bulk_conn_loss, put_is_lost)
{
	cut_at(MOVE_PUT, LATENCY / 2);
}

Test(bulk_conn_loss, ack_is_lost)
{
	cut_at(MOVE_PUT, LATENCY + LATENCY / 2);
}

/* Connections end all the time. Messages are repeated at a limited rate, and
 * when connections last again, the transfer soon succeeds. */
Test(bulk_conn_loss, in_a_loop)
{
	uint64_t tries, at;

	begin(MOVE_GET);
	to_the_middle(LATENCY / 2);
	for (unsigned int i = 0; i < 1000; i++) {
		cut();
		lnet_sim_run(w.g.sim, 5 * MSEC);
	}
	cr_assert_eq(w.m.ended, 0);
	cr_assert_eq(w.call.ended, 0);
	tries = counted(RPC_STAT_segments_retried);
	cr_assert_leq(tries, 100, "%llu", (unsigned long long)tries);
	cr_assert_gt(tries, 0);
	at = lnet_sim_now(w.g.sim);
	while (!w.m.ended)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_leq(lnet_sim_now(w.g.sim) - at, SEC);
	ended_well();
	mover_close(&w.m, &w.g);
}
