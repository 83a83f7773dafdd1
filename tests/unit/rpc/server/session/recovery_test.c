/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a service recovers from an overload or an outage (22 (5), P30), in
 * virtual time. The callers are unkind: a call that has failed is made again,
 * at once or when the server has said, up to TRIES times, so that the load
 * grows as the server does worse. Goodput has to be back within twice the time
 * that the overload or outage has lasted.
 */
#include <stdlib.h>

#include "tests/unit/lnet/cluster.h"
#include "tests/unit/rpc/worker_sleep.h"
#include "ulnet/service.h"

#define SEC	 (1000 * MSEC)
#define WORKERS	 8
#define COST	 (16 * MSEC)
#define CAPACITY (WORKERS * (unsigned int)(SEC / COST)) /* calls a second */
#define DEADLINE UINT64_C(1000000)			/* us */
#define TRIES	 4
#define SECONDS	 64

struct client {
	struct rig *g;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
};

struct rig {
	struct lnet_sim *sim;
	unsigned int n; /* clients; the server's node is the last one */
	struct ulrpc *rpc;
	struct client *clients;
	uint64_t begun;	   /* ns: time 0 of second() */
	unsigned int rate; /* calls a second, of all clients */
	bool waits;	   /* tries wait as long as the server has told */
	unsigned int good[SECONDS], made[SECONDS]; /* calls by second */
	uint64_t queue[SECONDS]; /* us that good calls have been in the queue */
};

/* What the user wants done: a call, with all its tries. */
struct want {
	struct client *c;
	unsigned int tries;
};

static unsigned int second(const struct rig *g)
{
	uint64_t s = (lnet_sim_now(g->sim) - g->begun) / SEC;

	return (unsigned int)MIN(s, SECONDS - 1);
}

/* ---- the service ---- */

static void work(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	struct rig *g = arg;

	(void)body;
	(void)length;
	if (worker_sleep(lnet_sim_node(g->sim, (int)g->n), COST) == 0)
		ulrpc_reply(request, "done", 4);
}

static void serve(struct rig *g)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "work", .handler = work, .arg = g },
	};
	struct ulrpc_service_conf conf;

	cr_assert_eq(
		ulrpc_open(lnet_sim_node(g->sim, (int)g->n), NULL, &g->rpc), 0);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = 1;
	conf.workers_min = WORKERS;
	cr_assert_eq(ulrpc_service_start(g->rpc, &conf, NULL), 0);
}

/* ---- clients ---- */

static void try_it(void *arg);

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	struct want *w = arg;
	struct rig *g = w->c->g;
	uint64_t wait = g->waits ? o->retry_after * 1000 : 0;

	(void)reply;
	(void)length;
	if (o->status == 0) {
		g->good[second(g)]++;
		g->queue[second(g)] += o->server_queue;
	}
	if (o->status == 0 || w->tries == TRIES)
		free(w);
	else
		cr_assert_eq(lnet_sim_at(g->sim, wait, try_it, w), 0);
}

static void try_it(void *arg)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					.semantics = ULRPC_IDEMPOTENT };
	struct want *w = arg;

	w->tries++;
	cr_assert_eq(ulrpc_call(w->c->client, ulrpc_method("work"), "x", 1,
				&conf, on_done, w, NULL),
		     0);
}

/* Calls come at even intervals, each of a random client. */
static void arrives(void *arg)
{
	struct rig *g = arg;
	struct want *w;

	if (!g->rate)
		return;
	w = calloc(1, sizeof(*w));
	w->c = &g->clients[lnet_sim_random(g->sim, g->n - 1)];
	g->made[second(g)]++;
	try_it(w);
	lnet_sim_at(g->sim, SEC / g->rate, arrives, g);
}

static void rig_init(struct rig *g, unsigned int n)
{
	struct ulnet_nid nid = nth_id(n).nid;
	struct ulrpc_client_conf conf;

	*g = (struct rig){ .n = n };
	g->sim = cluster(n + 1);
	g->clients = calloc(n, sizeof(*g->clients));
	serve(g);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	for (unsigned int i = 0; i < n; i++) {
		struct client *c = &g->clients[i];

		c->g = g;
		cr_assert_eq(ulrpc_open(lnet_sim_node(g->sim, (int)i), NULL,
					&c->rpc),
			     0);
		cr_assert_eq(ulrpc_client_open(c->rpc, &conf, &c->client), 0);
	}
	lnet_sim_run(g->sim, 100 * MSEC);
	g->begun = lnet_sim_now(g->sim);
}

static void rig_fini(struct rig *g)
{
	g->rate = 0;
	lnet_sim_run(g->sim, 2 * TRIES * DEADLINE * 1000);
	for (unsigned int i = 0; i < g->n; i++)
		cr_assert_eq(ulrpc_close(g->clients[i].rpc), 0);
	cr_assert_eq(ulrpc_close(g->rpc), 0);
	cluster_end(g->sim);
	free(g->clients);
}

static void load(struct rig *g, unsigned int percent, unsigned int seconds)
{
	bool idle = !g->rate;

	g->rate = CAPACITY * percent / 100;
	if (idle)
		arrives(g);
	lnet_sim_run(g->sim, seconds * SEC);
}

/* Returns the good calls of seconds @from to @to, as percent of those made. */
static unsigned int goodput(const struct rig *g, unsigned int from,
			    unsigned int to)
{
	unsigned int good = 0, made = 0;

	for (unsigned int i = from; i <= to; i++) {
		good += g->good[i];
		made += g->made[i];
	}
	return good * 100 / made;
}

/* ---- overload ---- */

static void ten_times(unsigned int clients, bool waits)
{
	struct rig g;

	rig_init(&g, clients);
	g.waits = waits;
	load(&g, 80, 5);
	cr_assert_geq(goodput(&g, 2, 4), 95, "%u %%", goodput(&g, 2, 4));
	load(&g, 1000, 4);
	load(&g, 80, 16);
	/* During the overload most of the capacity goes to calls that succeed.
	 */
	cr_assert_geq(g.good[8], CAPACITY * 8 / 10, "%u", g.good[8]);
	/* If there are few clients their windows shrink so far that the queue
	 * is short. */
	if (clients <= 2 * WORKERS)
		cr_assert_leq(g.queue[8] / g.good[8], 5 * COST / 1000, "%u us",
			      (unsigned int)(g.queue[8] / g.good[8]));
	/* Soon after the overload goodput is back. */
	cr_assert_geq(goodput(&g, 17, 22), 95, "%u %%", goodput(&g, 17, 22));
	rig_fini(&g);
}

Test(recovery, ten_times_overload)
{
	ten_times(10, false);
}

Test(recovery, ten_times_overload_of_many)
{
	ten_times(300, false);
}

Test(recovery, ten_times_overload_of_those_who_wait)
{
	ten_times(100, true);
}

/* ---- outage ---- */

/* The server crashes, and is back after 3 seconds; its clients go on calling
 * meanwhile. */
Test(recovery, restart_with_many_clients)
{
	struct rig g;

	rig_init(&g, 1000);
	load(&g, 80, 5);
	cr_assert_geq(goodput(&g, 2, 4), 95, "%u %%", goodput(&g, 2, 4));
	cr_assert_eq(lnet_sim_crash(g.sim, g.n), 0);
	load(&g, 80, 3);
	cr_assert_eq(lnet_sim_restart(g.sim, g.n), 0);
	serve(&g);
	load(&g, 80, 12);
	/* Down from second 5 to 8, so recovered by second 14. */
	cr_assert_geq(goodput(&g, 14, 18), 95, "%u %%", goodput(&g, 14, 18));
	rig_fini(&g);
}
