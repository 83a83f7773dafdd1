/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls and their bulk over ways that lose a third of the messages all the
 * time, as a router does that drops them: how long they take, in virtual time.
 * A time-out that grows because a server may be slow is of no use then. Client
 * and service are both real.
 */
#include "tests/unit/rpc/mover.h"

#define LATENCY	 MSEC
#define SEGMENT	 4096
#define LENGTH	 (SEGMENT * 16)
#define THIRD	 (LNET_SIM_ALWAYS / 3)
#define RUNS	 100
#define CALLS	 4
#define DEADLINE (60 * SEC / NSEC_PER_USEC)

static struct {
	struct serve_rig g;
	struct mover m;
} w;

/* Returns how many tries of chunks the service has repeated. */
static uint64_t retried(void)
{
	return serve_counted(&w.g.service->cpt[0], RPC_STAT_segments_retried);
}

/* Makes a call, whose number is @n, and returns how long it took, ns. It may
 * have been until the deadline. */
static uint64_t call(unsigned int n)
{
	uint64_t began = lnet_sim_now(w.g.sim), took;
	struct ulrpc_bulk *bulk;
	struct called c;

	mover_fill(&w.m, n);
	bulk = mover_call(&w.m, &w.g, DEADLINE, &c);
	while (!c.ended)
		lnet_sim_run(w.g.sim, MSEC);
	took = lnet_sim_now(w.g.sim) - began;
	if (c.outcome.cause != ULRPC_CAUSE_OK)
		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_DEADLINE);
	else if (bulk)
		cr_assert(mover_is_done(&w.m));
	if (bulk)
		ulrpc_bulk_close(bulk, NULL, NULL);
	return took;
}

/* Makes some calls in each of many runs: they take at most @mean ns on average.
 */
static void lossy(enum move move, unsigned int segments, uint64_t mean)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .loss = THIRD };
	uint64_t sum = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		mover_open(&w.m, &w.g, seed, LENGTH, &link);
		w.m.move = move;
		w.m.segment = LENGTH / segments;
		for (unsigned int i = 0; i < CALLS; i++)
			sum += call(i);
		mover_close(&w.m, &w.g);
	}
	cr_assert_leq(sum, CALLS * RUNS * mean, "%lu ms",
		      (unsigned long)(sum / (CALLS * RUNS) / MSEC));
}

Test(bulk_lossy, without_bulk)
{
	lossy(MOVE_NOTHING, 1, 1500 * MSEC);
}

Test(bulk_lossy, gets)
{
	lossy(MOVE_GET, 16, 2500 * MSEC);
}

Test(bulk_lossy, puts)
{
	lossy(MOVE_PUT, 16, 2500 * MSEC);
}

/* No other chunk tells that the network is lossy, and not slow: only what has
 * happened to earlier calls does. */
Test(bulk_lossy, one_get)
{
	lossy(MOVE_GET, 1, 8 * SEC);
}

Test(bulk_lossy, one_put)
{
	lossy(MOVE_PUT, 1, 8 * SEC);
}

/* Nothing is heard any more of a caller whose connection has lost messages: it
 * is not flooded with short tries. */
Test(bulk_lossy, silence)
{
	struct ulnet_sim_link link = { .latency = LATENCY, .loss = THIRD };
	unsigned int runs;
	struct ulrpc_bulk *bulk;
	struct called c;
	uint64_t tries;

	mover_open(&w.m, &w.g, 1, LENGTH, &link);
	w.m.move = MOVE_GET;
	w.m.segment = SEGMENT;
	for (unsigned int i = 0; i < CALLS; i++)
		call(i);
	runs = w.m.runs;
	tries = retried();
	bulk = mover_call(&w.m, &w.g, DEADLINE, &c);
	while (w.m.runs == runs)
		lnet_sim_run(w.g.sim, MSEC / 10);
	link.loss = LNET_SIM_ALWAYS;
	cluster_links(w.g.sim, &link);
	lnet_sim_run(w.g.sim, 20 * SEC);
	tries = retried() - tries;
	cr_assert_gt(tries, LENGTH / SEGMENT);
	cr_assert_lt(tries, 20 * LENGTH / SEGMENT);
	ulrpc_bulk_close(bulk, NULL, NULL);
	mover_close(&w.m, &w.g);
}
