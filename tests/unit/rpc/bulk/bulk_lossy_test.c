/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls and their bulk over ways that lose a third of the messages all the
 * time, as a router does that drops them: how long they take, in virtual time.
 * A time-out that grows because a server may be slow is of no use then. Client
 * and service are both real.
 */
#include "tests/unit/rpc/serve_rig.h"

#define LATENCY	 MSEC
#define SEGMENT	 4096
#define LENGTH	 (SEGMENT * 16)
#define THIRD	 (LNET_SIM_ALWAYS / 3)
#define RUNS	 100
#define CALLS	 4
#define DEADLINE (60 * SEC / NSEC_PER_USEC)

enum kind { NONE, GOT, PUT };

static struct {
	struct serve_rig g;
	enum kind kind;
	uint32_t segment; /* bytes of each of the caller's segments */
	uint8_t *own, *lent;
} w;

TestSuite(bulk_lossy, .timeout = 60);

/* ---- the service ---- */

static void on_moved(void *arg, int status, uint64_t moved)
{
	(void)moved;
	if (status)
		ulrpc_fail(arg, status);
	else
		ulrpc_reply(arg, NULL, 0);
}

static void move(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct iovec iov = { w.own, LENGTH };

	(void)arg;
	(void)body;
	(void)length;
	if (w.kind == NONE)
		ulrpc_reply(r, NULL, 0);
	else if (w.kind == PUT)
		cr_assert_eq(ulrpc_bulk_put(r, 0, 0, &iov, 1, on_moved, r), 0);
	else
		cr_assert_eq(ulrpc_bulk_get(r, 0, 0, &iov, 1, on_moved, r), 0);
}

/* ---- the caller ---- */

static void open_all(uint64_t seed)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .loss = THIRD };
	const struct ulrpc_method_conf method = { .name = "move",
						  .handler = move,
						  .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;

	serve_init(&w.g, seed, 1);
	cluster_links(w.g.sim, &link);
	serve_open(&w.g, NULL);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	serve_start(&w.g, &conf);
	serve_client(&w.g);
	w.own = lnet_sim_buf(w.g.sim, LENGTH);
	w.lent = lnet_sim_buf(w.g.sim, LENGTH);
}

static void close_all(void)
{
	lnet_sim_buf_retire(w.g.sim, w.own);
	lnet_sim_buf_retire(w.g.sim, w.lent);
	serve_fini(&w.g);
}

/* Makes a call, whose number is @n, and returns how long it took, ns. It may
 * have been until the deadline. */
static uint64_t call(unsigned int n)
{
	struct iovec iov = { w.lent, LENGTH };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.segment = w.segment,
					.access = w.kind == PUT
							  ? ULRPC_BULK_SINK
							  : ULRPC_BULK_SOURCE };
	struct ulrpc_bulk *bulk;
	struct ulrpc_call_conf conf = { .deadline = DEADLINE, .bulks = &bulk };
	struct called c = { 0 };
	uint64_t began = lnet_sim_now(w.g.sim), took;

	for (unsigned int i = 0; i < LENGTH; i++) {
		w.own[i] = (uint8_t)(i * 7 + n);
		w.lent[i] = (uint8_t)(i * 11 + n);
	}
	conf.nbulks = w.kind != NONE;
	cr_assert_eq(ulrpc_bulk_new(w.g.rpc[CALLER], &lend, &bulk), 0);
	cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method("move"), NULL, 0,
				&conf, on_called, &c, NULL),
		     0);
	while (!c.ended)
		lnet_sim_run(w.g.sim, MSEC);
	took = lnet_sim_now(w.g.sim) - began;
	if (c.outcome.cause != ULRPC_CAUSE_OK)
		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_DEADLINE);
	else if (w.kind != NONE)
		cr_assert_eq(memcmp(w.own, w.lent, LENGTH), 0);
	ulrpc_bulk_close(bulk, NULL, NULL);
	return took;
}

/* Makes some calls in each of many runs: they take at most @mean ns on average.
 */
static void lossy(enum kind kind, unsigned int segments, uint64_t mean)
{
	uint64_t sum = 0;

	for (uint64_t seed = 1; seed <= RUNS; seed++) {
		memset(&w, 0, sizeof(w));
		w.kind = kind;
		w.segment = LENGTH / segments;
		open_all(seed);
		for (unsigned int i = 0; i < CALLS; i++)
			sum += call(i);
		close_all();
	}
	cr_assert_leq(sum, CALLS * RUNS * mean, "%lu ms",
		      (unsigned long)(sum / (CALLS * RUNS) / MSEC));
}

Test(bulk_lossy, without_bulk)
{
	lossy(NONE, 1, 1500 * MSEC);
}

Test(bulk_lossy, gets)
{
	lossy(GOT, 16, 6 * SEC);
}

Test(bulk_lossy, puts)
{
	lossy(PUT, 16, 6 * SEC);
}

/* No other chunk tells that the network is lossy, and not slow: only what has
 * happened to earlier calls does. */
Test(bulk_lossy, one_get)
{
	lossy(GOT, 1, 13 * SEC);
}

Test(bulk_lossy, one_put)
{
	lossy(PUT, 1, 13 * SEC);
}
