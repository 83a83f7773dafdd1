/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client and a server on two nets, two routers between them, and a steady
 * load of calls; then one router fails in one way or another, and comes back.
 * Measures how long the longest call takes, how many are lost, and whether the
 * router is used again (requirement B4), in virtual time, so that a run is
 * exact.
 *
 *	client --- net 0 --- routers 0, 1 --- net 1 --- server
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/route.h>
#include <ulnet/service.h>
#include <ulnet/sim.h>

#define MSEC	 UINT64_C(1000000)
#define SEC	 (1000 * MSEC)
#define LATENCY	 (2 * MSEC)
#define DEPTH	 8
#define DEADLINE UINT64_C(60000000) /* of a call, us */
#define WARM_UP	 (5 * SEC)
#define FAILED	 (30 * SEC) /* for how long the router is away */
#define BACK	 (70 * SEC) /* an idle gateway is pinged once a minute */
#define STATS	 256

enum { CLIENT, SERVER, ROUTER, OTHER, NODES };

struct setup {
	bool listens; /* the client's node accepts connections */
	unsigned int cpts;
};

struct load {
	struct lnet_sim *sim;
	struct setup setup;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	struct caller {
		struct load *load;
		uint64_t began; /* ns: when its last call began */
	} callers[DEPTH];
	bool over;
	/* What has happened since the failure: */
	bool counts;
	unsigned int lost;
	uint64_t longest; /* ns: the longest call */
};

static int passed, failed;

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "takeover: %s: %s\n", what, strerror(-rc));
	exit(1);
}

/* Returns the NID of @node on net 0 or 1. */
static struct ulnet_nid nid_of(unsigned int node, unsigned int net)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, net),
			     0x0a000001 + (net << 16) + node);
}

/* ---- the load ---- */

static void call(void *arg);

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct caller *c = arg;
	struct load *l = c->load;
	uint64_t took = lnet_sim_now(l->sim) - c->began;

	(void)reply;
	(void)length;
	if (l->over)
		return;
	if (l->counts) {
		l->lost += o->status != 0;
		l->longest = took > l->longest ? took : l->longest;
	}
	/* A call that failed at once is not tried again at once. */
	if (o->status)
		lnet_sim_at(l->sim, 10 * MSEC, call, c);
	else
		call(c);
}

static void call(void *arg)
{
	static const struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	struct caller *c = arg;

	if (c->load->over)
		return;
	c->began = lnet_sim_now(c->load->sim);
	must(ulrpc_call(c->load->client, ulrpc_method("echo"), "", 0, &conf,
			on_end, c, NULL),
	     "a call");
}

static void on_request(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
}

/* ---- nodes ---- */

static void routes_add(struct lnet *node, unsigned int net, unsigned int near)
{
	for (unsigned int i = ROUTER; i < NODES; i++) {
		const struct ulnet_route route = {
			.net = LNET_NET(LNET_TYPE_SOCK, net),
			.gateway = nid_of(i, near),
		};

		must(lnet_route_add(node, &route), "a route");
	}
}

static int start_client(void *arg, unsigned int index, struct lnet *node)
{
	(void)arg;
	(void)index;
	routes_add(node, 1, 0);
	return 0;
}

static int start_server(void *arg, unsigned int index, struct lnet *node)
{
	struct ulrpc_method_conf method = { .name = "echo",
					    .handler = on_request,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;
	struct ulrpc *rpc;

	(void)arg;
	(void)index;
	routes_add(node, 0, 1);
	must(ulrpc_open(node, NULL, &rpc), "the server");
	ulrpc_service_conf_init(&conf);
	conf.name = "echo";
	conf.methods = &method;
	conf.nmethods = 1;
	must(ulrpc_service_start(rpc, &conf, NULL), "the service");
	return 0;
}

static int start_router(void *arg, unsigned int index, struct lnet *node)
{
	const struct ulnet_routing routing = { .enabled = true };

	(void)arg;
	(void)index;
	must(lnet_routing_set(node, &routing), "routing");
	return 0;
}

static void node_add(struct load *l, unsigned int node, const char *nids,
		     bool listens, lnet_sim_start_fn start)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	if (!listens)
		conf.accept = LNET_ACCEPT_NONE;
	if (lnet_sim_node_add(l->sim, nids, &conf, start, l) != (int)node)
		must(-EINVAL, "a node");
}

static void client_open(struct load *l)
{
	const struct ulnet_nid server = nid_of(SERVER, 1);
	struct ulrpc_client_conf conf;

	must(ulrpc_open(lnet_sim_node(l->sim, CLIENT), NULL, &l->rpc), "RPC");
	ulrpc_client_conf_init(&conf);
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = "echo";
	must(ulrpc_client_open(l->rpc, &conf, &l->client), "a client");
}

static struct load *load_new(const struct setup *setup)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .connect = MSEC };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct load *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	l->setup = *setup;
	must(lnet_sim_new(1, setup->cpts, &l->sim), "the simulation");
	must(lnet_sim_link_set(l->sim, &any, &any, &link), "the links");
	node_add(l, CLIENT, "10.0.0.1@tcp", setup->listens, start_client);
	node_add(l, SERVER, "10.1.0.2@tcp1", true, start_server);
	node_add(l, ROUTER, "10.0.0.3@tcp 10.1.0.3@tcp1", true, start_router);
	node_add(l, OTHER, "10.0.0.4@tcp 10.1.0.4@tcp1", true, start_router);
	client_open(l);
	for (unsigned int i = 0; i < DEPTH; i++) {
		l->callers[i].load = l;
		call(&l->callers[i]);
	}
	return l;
}

/* ---- what fails ---- */

static void crash(struct load *l)
{
	must(lnet_sim_crash(l->sim, ROUTER), "a crash");
}

static void restart(struct load *l)
{
	must(lnet_sim_restart(l->sim, ROUTER), "a restart");
}

static void side_silent(struct load *l, unsigned int net, bool on)
{
	const struct ulnet_nid any = LNET_NID_ANY, nid = nid_of(ROUTER, net);

	must(lnet_sim_partition(l->sim, &nid, &any, on), "a partition");
}

static void near_silent(struct load *l)
{
	side_silent(l, 0, true);
}

static void far_silent(struct load *l)
{
	side_silent(l, 1, true);
}

static void both_silent(struct load *l)
{
	near_silent(l);
	far_silent(l);
}

static void heard(struct load *l)
{
	side_silent(l, 0, false);
	side_silent(l, 1, false);
}

static void side_down(struct load *l, unsigned int net, bool down)
{
	const struct ulnet_nid nid = nid_of(ROUTER, net);

	must(lnet_sim_ni_set(l->sim, &nid, !down), "a link");
}

static void near_down(struct load *l)
{
	side_down(l, 0, true);
}

static void far_down(struct load *l)
{
	side_down(l, 1, true);
}

static void up(struct load *l)
{
	side_down(l, 0, false);
	side_down(l, 1, false);
}

static void routing_off(struct load *l)
{
	const struct ulnet_routing off = { .enabled = false };

	must(lnet_routing_set(lnet_sim_node(l->sim, ROUTER), &off), "routing");
}

static void routing_on(struct load *l)
{
	start_router(NULL, ROUTER, lnet_sim_node(l->sim, ROUTER));
}

static const struct failure {
	const char *what;
	void (*fail)(struct load *l);
	void (*mend)(struct load *l);
	unsigned int longest; /* the longest call, ms */
} failures[] = {
	{ "it crashes", crash, restart, 200 },
	{ "it is silent", both_silent, heard, 1000 },
	{ "its near side is silent", near_silent, heard, 1000 },
	{ "its far side is silent", far_silent, heard, 2000 },
	{ "its near link goes down", near_down, up, 200 },
	{ "its far link goes down", far_down, up, 1000 },
	{ "it routes no more", routing_off, routing_on, 200 },
};

/* ---- a run ---- */

static uint64_t carried(const struct load *l)
{
	struct ulnet_stat stats[STATS];
	int n = lnet_stats(lnet_sim_node(l->sim, ROUTER), stats, STATS);

	for (int i = 0; i < n && i < STATS; i++)
		if (!strcmp(stats[i].name, "route_count"))
			return stats[i].value;
	must(-ENOENT, "route_count");
	return 0;
}

static void report(const struct failure *f, const struct load *l, bool used)
{
	bool good = !l->lost && l->longest <= f->longest * MSEC && used;

	printf("%s %s, %u CPT%s: %s: %u calls lost, the longest took %lu ms, "
	       "the router is %sused again\n",
	       good ? "PASS" : "FAIL",
	       l->setup.listens ? "client listens" : "client only calls",
	       l->setup.cpts, l->setup.cpts == 1 ? "" : "s", f->what, l->lost,
	       (unsigned long)(l->longest / MSEC), used ? "" : "not ");
	good ? passed++ : failed++;
}

static void play(const struct failure *f, const struct setup *setup)
{
	struct load *l = load_new(setup);
	uint64_t before, end;

	lnet_sim_run(l->sim, WARM_UP);
	l->counts = true;
	f->fail(l);
	lnet_sim_run(l->sim, FAILED);
	f->mend(l);
	lnet_sim_run(l->sim, BACK);
	before = carried(l);
	lnet_sim_run(l->sim, SEC);
	end = lnet_sim_now(l->sim);
	/* A call that is still under way has taken at least this long. */
	for (unsigned int i = 0; i < DEPTH; i++) {
		uint64_t took = end - l->callers[i].began;

		l->longest = took > l->longest ? took : l->longest;
	}
	report(f, l, carried(l) > before);
	l->over = true;
	failed += lnet_sim_free(l->sim) != 0;
	free(l);
}

int main(void)
{
	static const struct setup setups[] = {
		{ true, 1 }, { false, 1 }, { true, 3 }, { false, 3 }
	};

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	for (size_t s = 0; s < sizeof(setups) / sizeof(setups[0]); s++)
		for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]);
		     i++)
			play(&failures[i], &setups[s]);
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
