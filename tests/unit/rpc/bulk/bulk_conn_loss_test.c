/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LND's connection is lost while bulk is being moved. The messages that
 * were under way must be repeated about a round trip later, not when their time
 * is over. Client and service are both real.
 */
#include "tests/unit/rpc/serve_rig.h"

#define LATENCY (10 * MSEC)
#define RTT	(2 * LATENCY)
#define CONNECT (3 * MSEC)
#define LENGTH	1000000
/* ns: the longest pause after a first loss */
#define PAUSE (20 * MSEC)

static struct {
	struct serve_rig g;
	bool put;
	unsigned int moved;
	int status;
	uint8_t *own, *lent;
	struct ulrpc_bulk *bulk;
	struct called call;
} w;

TestSuite(bulk_conn_loss, .timeout = 60);

/* ---- the service ---- */

static void on_moved(void *arg, int status, uint64_t moved)
{
	struct ulrpc_request *r = arg;

	w.status = status;
	w.moved++;
	if (!status)
		cr_assert_eq(moved, LENGTH);
	ulrpc_reply(r, NULL, 0);
}

static void move(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct iovec iov = { w.own, LENGTH };

	(void)arg;
	(void)body;
	(void)length;
	if (w.put)
		cr_assert_eq(ulrpc_bulk_put(r, 0, 0, &iov, 1, on_moved, r), 0);
	else
		cr_assert_eq(ulrpc_bulk_get(r, 0, 0, &iov, 1, on_moved, r), 0);
}

/* ---- the caller ---- */

static void fill(uint8_t *bytes, unsigned int by)
{
	for (unsigned int i = 0; i < LENGTH; i++)
		bytes[i] = (uint8_t)(i * by);
}

static void begin(bool put)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .connect = CONNECT };
	const struct ulrpc_method_conf method = { .name = "move",
						  .handler = move,
						  .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;

	memset(&w, 0, sizeof(w));
	w.put = put;
	serve_init(&w.g, 1, 1);
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
	fill(w.own, 7);
	fill(w.lent, 11);
}

static void call(void)
{
	struct iovec iov = { w.lent, LENGTH };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = w.put ? ULRPC_BULK_SINK
							: ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf conf = { .deadline = 10000000,
					.bulks = &w.bulk,
					.nbulks = 1 };

	w.call = (struct called){ 0 };
	w.moved = 0;
	cr_assert_eq(ulrpc_bulk_new(w.g.rpc[CALLER], &lend, &w.bulk), 0);
	cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method("move"), NULL, 0,
				&conf, on_called, &w.call, NULL),
		     0);
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
	cr_assert_eq(w.moved, 1);
	cr_assert_eq(w.status, 0);
	cr_assert_eq(memcmp(w.own, w.lent, LENGTH), 0);
	ulrpc_bulk_close(w.bulk, NULL, NULL);
}

static void close_all(void)
{
	lnet_sim_buf_retire(w.g.sim, w.own);
	lnet_sim_buf_retire(w.g.sim, w.lent);
	serve_fini(&w.g);
}

/* Makes the call, and runs until @after ns after its request has arrived, while
 * bulk is being moved. */
static void to_the_middle(uint64_t after)
{

	call();
	while (!counted(RPC_STAT_requests_received))
		lnet_sim_run(w.g.sim, MSEC / 10);
	lnet_sim_run(w.g.sim, after);
	cr_assert_eq(w.moved, 0);
}

/* Loses the connection @after ns after the request has arrived: either the
 * service's PUT or GET is lost, or the answer to it. */
static void cut_at(bool put, uint64_t after)
{
	uint64_t at;

	begin(put);
	to_the_middle(after);
	at = lnet_sim_now(w.g.sim);
	cut();
	while (!w.moved)
		lnet_sim_run(w.g.sim, MSEC / 10);
	cr_assert_leq(lnet_sim_now(w.g.sim) - at, PAUSE + CONNECT + 2 * RTT,
		      "%llu us",
		      (unsigned long long)(lnet_sim_now(w.g.sim) - at) / 1000);
	ended_well();
	close_all();
}

Test(bulk_conn_loss, get_is_lost)
{
	cut_at(false, LATENCY / 2);
}

Test(bulk_conn_loss, reply_is_lost)
{
	cut_at(false, LATENCY + LATENCY / 2);
}

Test(bulk_conn_loss, put_is_lost)
{
	cut_at(true, LATENCY / 2);
}

Test(bulk_conn_loss, ack_is_lost)
{
	cut_at(true, LATENCY + LATENCY / 2);
}

/* Connections end all the time. Messages are repeated at a limited rate, and
 * when connections last again, the transfer soon succeeds. */
Test(bulk_conn_loss, in_a_loop)
{
	uint64_t tries, at;

	begin(false);
	to_the_middle(LATENCY / 2);
	for (unsigned int i = 0; i < 1000; i++) {
		cut();
		lnet_sim_run(w.g.sim, 5 * MSEC);
	}
	cr_assert_eq(w.moved, 0);
	cr_assert_eq(w.call.ended, 0);
	tries = counted(RPC_STAT_segments_retried);
	cr_assert_leq(tries, 100, "%llu", (unsigned long long)tries);
	cr_assert_gt(tries, 0);
	at = lnet_sim_now(w.g.sim);
	while (!w.moved)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_leq(lnet_sim_now(w.g.sim) - at, SEC);
	ended_well();
	close_all();
}
