/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers that wait for bulk from callers that vanish, leave, are silent, or
 * cancel, and for longer than the service allows. A worker must be free for
 * calls of other clients as soon as the server knows that the wait is over.
 */
#include "tests/unit/rpc/serve_rig.h"

#define WORKERS 4
/* bytes: more chunks than may be under way at a time */
#define LENGTH 12000000
#define OTHER  2
/* us: deadline of the calls that lend bulk */
#define FOR_EVER  UINT64_C(3600000000)
#define KEEPALIVE UINT64_C(500000) /* us: a lease is three of these */

static struct {
	struct serve_rig g;
	struct ulrpc *other;
	struct ulrpc_client *client;
	/* us: what the service allows for a transfer; 0: no limit */
	uint64_t timeout;
	struct ulrpc_request *waiting[WORKERS];
	unsigned int begun, ended;
	int status;  /* of the last wait that has ended */
	uint64_t at; /* ns: when that wait ended */
	struct called calls[WORKERS], others[WORKERS];
	struct ulrpc_bulk *bulks[WORKERS];
	uint8_t *lent[WORKERS];
	unsigned int released;
} w;

/* ---- the service ---- */

/* Waits for the bulk; nobody may touch its memory after that. */
static void take(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct iovec iov = { lnet_sim_buf(w.g.sim, LENGTH), LENGTH };
	unsigned int i = w.begun++;

	(void)arg;
	(void)body;
	(void)length;
	w.waiting[i % WORKERS] = r;
	if (w.timeout)
		cr_assert_eq(ulrpc_bulk_timeout(r, 0, w.timeout), 0);
	cr_assert_eq(ulrpc_bulk_timeout(r, 1, w.timeout), -ENOENT);
	w.status = ulrpc_bulk_get_wait(r, 0, 0, &iov, 1);
	w.at = lnet_sim_now(w.g.sim);
	for (unsigned int k = 0; !w.status && k < LENGTH; k++)
		cr_assert_eq(((uint8_t *)iov.iov_base)[k], (uint8_t)(k * 7));
	lnet_sim_buf_retire(w.g.sim, iov.iov_base);
	w.ended++;
	if (w.status)
		ulrpc_fail(r, w.status);
	else
		ulrpc_reply(r, NULL, 0);
}

static void open_all(void)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "take", .handler = take },
		{ .name = "work", .handler = echo, .arg = &w.g.served },
	};
	struct ulrpc_conf conf = { .keepalive = KEEPALIVE };
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf cc;
	struct ulrpc_service_conf sc;

	memset(&w, 0, sizeof(w));
	serve_init(&w.g, 1, 1);
	serve_node_add(&w.g, OTHER);
	serve_open(&w.g, &conf);
	ulrpc_service_conf_init(&sc);
	sc.name = "test";
	sc.methods = methods;
	sc.nmethods = ARRAY_SIZE(methods);
	sc.workers_min = WORKERS;
	serve_start(&w.g, &sc);
	serve_client(&w.g);
	cr_assert_eq(ulrpc_open(lnet_sim_node(w.g.sim, OTHER), NULL, &w.other),
		     0);
	ulrpc_client_conf_init(&cc);
	cc.nids = &nid;
	cc.nnids = 1;
	cc.service = "test";
	cr_assert_eq(ulrpc_client_open(w.other, &cc, &w.client), 0);
	cluster_links(w.g.sim,
		      &(struct ulnet_sim_link){ .latency = MSEC,
						.bandwidth = 40000000 });
}

static void close_all(void)
{
	cr_assert_eq(ulrpc_close(w.other), 0);
	if (w.g.rpc[CALLER])
		cr_assert_eq(ulrpc_close(w.g.rpc[CALLER]), 0);
	cr_assert_eq(ulrpc_close(w.g.rpc[SERVER]), 0);
	lnet_sim_run_all(w.g.sim);
	cr_assert_eq(lnet_sim_free(w.g.sim), 0);
}

/* ---- callers ---- */

static void on_released(void *arg)
{
	w.released++;
	lnet_sim_buf_retire(w.g.sim, arg);
}

/* Makes calls until the window allows as many as the tests make at a time. */
static void warm(struct ulrpc_client *client)
{
	struct ulrpc_call_conf conf = { .deadline = 1000000 };

	for (unsigned int i = 0; i < 2 * WORKERS; i++) {
		struct called c = { 0 };

		cr_assert_eq(ulrpc_call(client, ulrpc_method("work"), "hello",
					5, &conf, on_called, &c, NULL),
			     0);
		lnet_sim_run(w.g.sim, 10 * MSEC);
		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	}
}

/* Makes a call for each worker, whose bulk begins to move. */
static void call_all(void)
{
	warm(w.g.client);
	warm(w.client);
	for (unsigned int i = 0; i < WORKERS; i++) {
		struct iovec iov = { lnet_sim_buf(w.g.sim, LENGTH), LENGTH };
		struct ulrpc_bulk_conf bc = { .iov = &iov,
					      .niov = 1,
					      .access = ULRPC_BULK_SOURCE };
		struct ulrpc_call_conf conf = { .deadline = FOR_EVER,
						.bulks = &w.bulks[i],
						.nbulks = 1 };

		w.lent[i] = iov.iov_base;
		for (unsigned int k = 0; k < LENGTH; k++)
			w.lent[i][k] = (uint8_t)(k * 7);
		cr_assert_eq(ulrpc_bulk_new(w.g.rpc[CALLER], &bc, &w.bulks[i]),
			     0);
		cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method("take"), NULL,
					0, &conf, on_called, &w.calls[i], NULL),
			     0);
	}
	while (w.begun < WORKERS)
		lnet_sim_run(w.g.sim, MSEC);
	lnet_sim_run(w.g.sim, 10 * MSEC);
	cr_assert_eq(w.ended, 0);
}

static void close_bulks(void)
{
	for (unsigned int i = 0; i < WORKERS; i++)
		ulrpc_bulk_close(w.bulks[i], on_released, w.lent[i]);
}

/* Makes calls of another client, each of which needs a worker. */
static void call_others(void)
{
	struct ulrpc_call_conf conf = { .deadline = 60000000 };

	for (unsigned int i = 0; i < WORKERS; i++)
		cr_assert_eq(ulrpc_call(w.client, ulrpc_method("work"), "hello",
					5, &conf, on_called, &w.others[i],
					NULL),
			     0);
}

static void others_ended_well(void)
{
	for (unsigned int i = 0; i < WORKERS; i++) {
		cr_assert_eq(w.others[i].ended, 1);
		cr_assert_eq(w.others[i].outcome.cause, ULRPC_CAUSE_OK);
	}
}

static void vanish(void)
{
	const struct ulnet_id a = nth_id(CALLER), b = nth_id(SERVER);

	cr_assert_eq(lnet_sim_partition(w.g.sim, &a.nid, &b.nid, true), 0);
}

Test(bulk_wait, all_is_well)
{
	open_all();
	call_all();
	lnet_sim_run(w.g.sim, 6000 * MSEC);
	cr_assert_eq(w.ended, WORKERS);
	cr_assert_eq(w.status, 0);
	close_bulks();
	cr_assert_eq(w.released, WORKERS);
	close_all();
}

/* The link is so slow that the bulk takes longer than a lease, and nothing else
 * gets through. The chunks that arrive show that the client is alive. */
Test(bulk_wait, slow_link)
{
	uint64_t begin;

	open_all();
	call_all();
	cluster_links(w.g.sim,
		      &(struct ulnet_sim_link){ .latency = MSEC,
						.bandwidth = 10000000 });
	begin = lnet_sim_now(w.g.sim);
	lnet_sim_run(w.g.sim, 20000 * MSEC);
	cr_assert_eq(w.ended, WORKERS);
	cr_assert_eq(w.status, 0, "%d", w.status);
	cr_assert_gt(w.at - begin, 4 * KEEPALIVE * 1000);
	for (unsigned int i = 0; i < WORKERS; i++) {
		cr_assert_eq(w.calls[i].outcome.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(w.calls[i].outcome.attempts, 1);
	}
	close_bulks();
	close_all();
}

/* The callers' node vanishes. When the lease is over, long before the deadline,
 * all workers are free. */
Test(bulk_wait, caller_vanishes)
{
	uint64_t begin;

	open_all();
	call_all();
	begin = lnet_sim_now(w.g.sim);
	vanish();
	call_others();
	while (w.ended < WORKERS) {
		lnet_sim_run(w.g.sim, 10 * MSEC);
		cr_assert_lt(lnet_sim_now(w.g.sim) - begin, 60 * SEC);
	}
	cr_assert_lt(w.status, 0);
	/* A lease is three keepalives; within one more the server notices its
	 * end. */
	cr_assert_leq(w.at - begin, 4 * KEEPALIVE * 1000 + 100 * MSEC,
		      "%llu ms", (unsigned long long)((w.at - begin) / MSEC));
	lnet_sim_run(w.g.sim, 100 * MSEC);
	others_ended_well();
	close_bulks();
	close_all();
}

/* The callers close their RPC, and so disconnect: the workers are free soon. */
Test(bulk_wait, caller_leaves)
{
	uint64_t begin;

	open_all();
	call_all();
	begin = lnet_sim_now(w.g.sim);
	cr_assert_eq(ulrpc_close(w.g.rpc[CALLER]), 0);
	w.g.rpc[CALLER] = NULL;
	close_bulks();
	cr_assert_eq(w.released, WORKERS);
	call_others();
	lnet_sim_run(w.g.sim, 200 * MSEC);
	cr_assert_eq(w.ended, WORKERS);
	cr_assert_lt(w.status, 0);
	/* Only messages that were being sent are waited for. */
	cr_assert_lt(w.at - begin, 3000 * MSEC);
	others_ended_well();
	close_all();
}

/* The service limits the time of each transfer. */
Test(bulk_wait, service_has_a_limit)
{
	uint64_t begin;

	open_all();
	w.timeout = 500000;
	call_all();
	begin = lnet_sim_now(w.g.sim);
	vanish();
	lnet_sim_run(w.g.sim, 600 * MSEC);
	cr_assert_eq(w.ended, WORKERS);
	cr_assert_eq(w.status, -ETIMEDOUT);
	cr_assert_leq(w.at - begin, 500 * MSEC);
	close_bulks();
	close_all();
}

/* The service cancels the transfer for which one worker waits. */
Test(bulk_wait, service_cancels)
{
	uint64_t begin;

	open_all();
	call_all();
	vanish();
	begin = lnet_sim_now(w.g.sim);
	cr_assert_eq(ulrpc_bulk_cancel(w.waiting[1], 1), -ENOENT);
	cr_assert_eq(ulrpc_bulk_cancel(w.waiting[1], 0), 0);
	lnet_sim_run(w.g.sim, 500 * MSEC);
	cr_assert_eq(w.ended, 1);
	cr_assert_eq(w.status, -ECANCELED);
	cr_assert_lt(w.at - begin, 100 * MSEC);
	close_bulks();
	close_all();
}
