/* SPDX-License-Identifier: BSD-3-Clause */
/* A service with four workers, and a client that vanishes while workers wait
 * for its bulk. Calls of another client must go on, however many calls the
 * first one has made. */
#include <errno.h>

#include "tests/unit/rpc/serve_rig.h"

#define WORKERS 4
#define CALLS	36
#define OTHER	2
#define LENGTH	64

static struct {
	struct serve_rig g;
	struct ulrpc *other_rpc;
	struct ulrpc_client *other;
	struct called calls[CALLS];
	struct ulrpc_bulk *bulks[CALLS];
	char lent[LENGTH];
	unsigned int begun, moved, given_up, failed;
} w;

static void take(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	char memory[LENGTH];
	struct iovec iov = { memory, sizeof(memory) };
	int rc;

	(void)arg;
	(void)body;
	(void)length;
	w.begun++;
	rc = ulrpc_bulk_get_wait(r, 0, 0, &iov, 1);
	w.moved += rc == 0;
	w.given_up += rc == -ETIMEDOUT;
	w.failed += rc && rc != -ETIMEDOUT;
	if (rc)
		ulrpc_fail(r, rc);
	else
		ulrpc_reply(r, NULL, 0);
}

static void stuck(bool on)
{
	const struct ulnet_id server = nth_id(SERVER), caller = nth_id(CALLER);
	const struct ulnet_sim_link link = { .loss = on ? LNET_SIM_ALWAYS : 0,
					     .latency = MSEC };

	lnet_sim_link_set(w.g.sim, &server.nid, &caller.nid, &link);
}

static void call_work(struct ulrpc_client *client, struct called *c)
{
	const struct ulrpc_call_conf conf = { .deadline = 60000000 };

	*c = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(client, ulrpc_method("work"), "x", 1, &conf,
				on_called, c, NULL),
		     0);
}

/* Makes calls until the window allows as many as the tests make at a time. */
static void warm_up(struct ulrpc_client *client)
{
	struct called done[2 * CALLS];

	for (unsigned int i = 0; i < ARRAY_SIZE(done); i++)
		call_work(client, &done[i]);
	lnet_sim_run(w.g.sim, SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(done); i++)
		cr_assert_eq(done[i].outcome.cause, ULRPC_CAUSE_OK);
}

/* Makes a call of the other client. Returns how many ms of virtual time it
 * takes. */
static unsigned int other_takes(void)
{
	unsigned int ms = 0;
	struct called c;

	for (call_work(w.other, &c); !c.ended; ms++) {
		cr_assert_lt(ms, 60000);
		lnet_sim_run(w.g.sim, MSEC);
	}
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	return ms;
}

static void open_all(void)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "take", .handler = take },
		{ .name = "work", .handler = echo, .arg = &w.g.served },
	};
	struct ulrpc_service_conf sc = { .name = "four",
					 .methods = methods,
					 .nmethods = ARRAY_SIZE(methods),
					 .workers_min = WORKERS };

	memset(&w, 0, sizeof(w));
	serve_init(&w.g, 1, 1);
	serve_open(&w.g, NULL);
	serve_start(&w.g, &sc);
	cr_assert_eq(ulrpc_open(w.g.node[CALLER], NULL, &w.g.rpc[CALLER]), 0);
	cr_assert_eq(
		ulrpc_open(lnet_sim_node(w.g.sim, serve_node_add(&w.g, OTHER)),
			   NULL, &w.other_rpc),
		0);
	w.g.client = serve_client_of(w.g.rpc[CALLER], "four");
	w.other = serve_client_of(w.other_rpc, "four");
	cluster_links(w.g.sim, &(struct ulnet_sim_link){ .latency = MSEC });
	warm_up(w.g.client);
	warm_up(w.other);
}

static void close_all(unsigned int n)
{
	cr_assert_eq(ulrpc_close(w.other_rpc), 0);
	serve_fini(&w.g);
	for (unsigned int i = 0; i < n; i++)
		ulrpc_bulk_close(w.bulks[i], NULL, NULL);
}

static void vanish_with(unsigned int n)
{
	struct iovec iov = { w.lent, LENGTH };
	struct ulrpc_bulk_conf bc = { .iov = &iov,
				      .niov = 1,
				      .access = ULRPC_BULK_SOURCE };

	stuck(true);
	for (unsigned int i = 0; i < n; i++) {
		struct ulrpc_call_conf conf = { .deadline = 3600000000,
						.bulks = &w.bulks[i],
						.nbulks = 1 };

		cr_assert_eq(ulrpc_bulk_new(w.g.rpc[CALLER], &bc, &w.bulks[i]),
			     0);
		cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method("take"), "x",
					1, &conf, on_called, &w.calls[i], NULL),
			     0);
	}
	lnet_sim_run(w.g.sim, 100 * MSEC);
	cr_assert_eq(w.moved + w.given_up + w.failed, 0);
}

static const struct exec *exec_of(void)
{
	return &w.g.service->exec;
}

/* The vanished client has as many calls as there are workers: none of them is
 * given up, and the other client does not wait. */
Test(away_pair, one_for_each_worker)
{
	open_all();
	vanish_with(WORKERS);
	for (unsigned int i = 0; i < 200; i++)
		cr_assert_leq(other_takes(), 3, "%u", i);
	cr_assert_eq(w.begun, WORKERS);
	cr_assert_eq(w.moved + w.given_up + w.failed, 0);
	/* The calls go on when their client is back. */
	stuck(false);
	lnet_sim_run(w.g.sim, 10 * SEC);
	cr_assert_eq(w.moved, WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++)
		cr_assert_eq(w.calls[i].outcome.cause, ULRPC_CAUSE_OK);
	/* The time that workers need for methods does not include the time for
	 * which they wait. */
	cr_assert_lt(mean_value(&exec_of()->worker_time), MSEC);
	cr_assert_eq(exec_of()->seated, 0);
	cr_assert_eq(exec_of()->away.used, 0);
	close_all(WORKERS);
}

/* No other client waits: no call is given up, but the vanished client has no
 * more than its share of threads. */
Test(away_pair, alone)
{
	open_all();
	vanish_with(CALLS);
	lnet_sim_run(w.g.sim, 5 * SEC);
	cr_assert_eq(w.moved + w.given_up + w.failed, 0);
	cr_assert_eq(exec_of()->away.used, WORKERS / 2 + 1);
	cr_assert_eq(exec_of()->nworkers, WORKERS + WORKERS / 2 + 1);
	close_all(CALLS);
}

/* The vanished client has more calls than its share of threads. The first call
 * of the other client waits until the server knows that the first client is
 * silent; later ones do not wait. */
static void dozens(unsigned int n)
{
	unsigned int ms;

	open_all();
	vanish_with(n);
	ms = other_takes();
	cr_assert_leq(ms, 1010, "%u", ms);
	for (unsigned int i = 0; i < 200; i++) {
		ms = other_takes();
		cr_assert_leq(ms, 5, "%u: %u ms", i, ms);
	}
	cr_assert_eq(w.moved + w.failed, 0);
	cr_assert_geq(w.given_up, 1);
	stuck(false);
	lnet_sim_run(w.g.sim, 60 * SEC);
	cr_assert_eq(w.failed, 0);
	cr_assert_eq(w.moved + w.given_up, w.begun);
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(w.calls[i].ended, 1);
	cr_assert_leq(exec_of()->nworkers, 2 * WORKERS);
	cr_assert_eq(exec_of()->leaving, 0);
	close_all(n);
}

Test(away_pair, a_dozen)
{
	dozens(12);
}

Test(away_pair, two_dozen)
{
	dozens(24);
}

Test(away_pair, three_dozen)
{
	dozens(36);
}
