/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service that is asked for more than it can do (requirement I4), in virtual
 * time: one worker, 20 ms for each call, 50 calls a second.
 */
#include <stdlib.h>

#include "rpc/rpc.h"
#include "rpc/stats/stat.h"
#include "tests/unit/lnet/cluster.h"
#include "tests/unit/rpc/worker_sleep.h"
#include "ulnet/service.h"

#define SEC	 (1000 * MSEC)
#define CLIENTS	 5
#define SERVER	 CLIENTS
#define CAPACITY 50
#define SERVICE	 (SEC / CAPACITY)

struct rig;

/* A caller: makes its calls at random times, whatever becomes of them, or one
 * at a time, each when the one before has ended. */
struct caller {
	struct rig *g;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	const char *method;
	/* mean time between two calls, ns; 0: one call at a time */
	uint64_t every;
	uint64_t deadline; /* us */
	unsigned int made, ended, good, refused;
};

struct rig {
	struct lnet_sim *sim;
	struct ulrpc *rpc;
	struct ulrpc_service *service;
	struct caller caller[CLIENTS];
	uint64_t until; /* ns: calls are made until then */
	unsigned int executed;
	bool varies; /* service times are random */
};

static double uniform(struct lnet_sim *sim)
{
	return (double)(1 + lnet_sim_random(sim, 1000000)) / 1000001;
}

/* Returns a random value of the exponential distribution with mean 1: -ln(u),
 * computed without libm. */
static double exponential(struct lnet_sim *sim)
{
	double x = 0, u = uniform(sim);

	while (u < 0.5) {
		u *= 2;
		x += 0.693147;
	}
	u = (1 - u) / (1 + u); /* -ln((1 - u) / (1 + u)) = 2 (u + u^3 / 3 ..) */
	return x + 2 * (u + u * u * u / 3 + u * u * u * u * u / 5);
}

/* ---- the service ---- */

static void take(struct rig *g, struct ulrpc_request *request, uint64_t ns)
{
	if (worker_sleep(lnet_sim_node(g->sim, SERVER), ns) == 0)
		ulrpc_reply(request, "done", 4);
}

static void work(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	struct rig *g = arg;
	uint64_t ns = SERVICE;

	(void)body;
	(void)length;
	if (g->varies)
		ns = (uint64_t)((double)ns * exponential(g->sim));
	g->executed++;
	take(g, request, ns);
}

static void rig_init(struct rig *g, const char *policy)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "work", .handler = work, .arg = g },
	};
	struct ulrpc_service_conf conf;

	*g = (struct rig){ 0 };
	cr_assert_eq(lnet_sim_new(1, 1, &g->sim), 0);
	for (unsigned int i = 0; i <= CLIENTS; i++) {
		char text[LNET_NIDSTR_SIZE];
		struct ulnet_id id = nth_id(i);

		lnet_nid_format(&id.nid, text, sizeof(text));
		cr_assert_eq(lnet_sim_node_add(g->sim, text, NULL, NULL, NULL),
			     (int)i);
	}
	cr_assert_eq(ulrpc_open(lnet_sim_node(g->sim, SERVER), NULL, &g->rpc),
		     0);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = 1;
	conf.policy = policy;
	cr_assert_eq(ulrpc_service_start(g->rpc, &conf, &g->service), 0);
	lnet_sim_run(g->sim, MSEC);
}

static void rig_fini(struct rig *g)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		if (g->caller[i].rpc)
			cr_assert_eq(ulrpc_close(g->caller[i].rpc), 0);
	cr_assert_eq(ulrpc_close(g->rpc), 0);
	lnet_sim_run_all(g->sim);
	cr_assert_eq(lnet_sim_free(g->sim), 0);
}

/* ---- callers ---- */

static void call(struct caller *c);

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	struct caller *c = arg;

	(void)reply;
	(void)length;
	c->ended++;
	c->good += o->status == 0;
	c->refused += o->cause == ULRPC_CAUSE_OVERLOADED;
	if (o->cause == ULRPC_CAUSE_OVERLOADED)
		cr_assert_eq(o->execution, ULRPC_NOT_EXECUTED);
	if (!c->every && lnet_sim_now(c->g->sim) < c->g->until)
		call(c);
}

static void call(struct caller *c)
{
	struct ulrpc_call_conf conf = { .deadline = c->deadline };

	c->made++;
	cr_assert_eq(ulrpc_call(c->client, ulrpc_method("work"), "x", 1, &conf,
				on_done, c, NULL),
		     0);
}

static void arrives(void *arg)
{
	struct caller *c = arg;
	struct lnet_sim *sim = c->g->sim;

	if (lnet_sim_now(sim) >= c->g->until)
		return;
	call(c);
	lnet_sim_at(sim, (uint64_t)((double)c->every * exponential(sim)),
		    arrives, c);
}

static struct caller *caller_open(struct rig *g, unsigned int i, uint64_t every,
				  uint64_t deadline)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct caller *c = &g->caller[i];
	struct ulrpc_client_conf conf;

	*c = (struct caller){ .g = g, .every = every, .deadline = deadline };
	cr_assert_eq(ulrpc_open(lnet_sim_node(g->sim, (int)i), NULL, &c->rpc),
		     0);
	ulrpc_client_conf_init(&conf);
	conf.inflight_begin = 1024; /* what is tested is the server */
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(c->rpc, &conf, &c->client), 0);
	return c;
}

/* Runs the service for @seconds under a load of @offered calls a second, of all
 * callers together. Returns how many calls succeeded per second. */
static double goodput(struct rig *g, const char *policy, bool varies,
		      unsigned int offered, unsigned int seconds)
{
	unsigned int good = 0, made = 0, ended = 0;
	const uint64_t *counts;

	rig_init(g, policy);
	g->varies = varies;
	g->until = seconds * SEC;
	for (unsigned int i = 0; i < CLIENTS; i++)
		arrives(caller_open(g, i, SEC * CLIENTS / offered, 1000000));
	lnet_sim_run(g->sim, g->until + 5 * SEC);
	for (unsigned int i = 0; i < CLIENTS; i++) {
		good += g->caller[i].good;
		made += g->caller[i].made;
		ended += g->caller[i].ended;
	}
	cr_assert_eq(made, ended);
	cr_assert_leq(g->executed - good, g->executed / 20,
		      "%u of %u at %u/s were executed in vain",
		      g->executed - good, g->executed, offered);
	counts = g->rpc->shards[0].stats->counts;
	if (offered > CAPACITY) {
		cr_assert_gt(counts[RPC_STAT_windows_shrunk], 0);
		cr_assert_gt(counts[RPC_STAT_requests_hopeless], 0);
		cr_assert_gt(counts[RPC_STAT_requests_overdue], 0);
	}
	rig_fini(g);
	return (double)good / seconds;
}

static void at_loads(const char *policy, bool varies)
{
	static const unsigned int loads[] = { 25, 50, 60, 100, 200, 400 };
	struct rig g;

	for (unsigned int i = 0; i < ARRAY_SIZE(loads); i++) {
		double got = goodput(&g, policy, varies, loads[i], 60);

		cr_assert_geq(got, 0.9 * MIN(loads[i], CAPACITY),
			      "%s, %u/s offered: %.1f/s", policy, loads[i],
			      got);
	}
}

Test(overload, goodput)
{
	at_loads("fair", false);
}

Test(overload, goodput_of_calls_that_differ)
{
	at_loads("fair", true);
}

Test(overload, goodput_in_order_of_arrival)
{
	at_loads("fifo", false);
}

/* Calls that are refused are sent again until it is too late for them, and end
 * as refused by their deadlines. */
Test(overload, refused_early)
{
	struct rig g;
	struct caller *c;

	rig_init(&g, NULL);
	c = caller_open(&g, 0, SEC, 1000000);
	call(c);
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(c->good, 1, "and what it took is known");
	for (unsigned int i = 0; i < 200; i++)
		call(c);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(c->ended, 201);
	cr_assert_geq(c->refused, 90, "%u", c->refused);
	cr_assert_geq(c->good, 40, "%u", c->good);
	rig_fini(&g);
}

/* One client always has 1,000 calls under way, the other one only one. */
Test(overload, modest_client_gets_its_share)
{
	struct caller *greedy, *modest;
	struct rig g;

	rig_init(&g, NULL);
	g.until = 20 * SEC;
	greedy = caller_open(&g, 0, 0, 60000000);
	for (unsigned int i = 0; i < 1000; i++)
		call(greedy);
	modest = caller_open(&g, 1, 0, 1000000);
	lnet_sim_run(g.sim, SEC);
	call(modest);
	lnet_sim_run(g.sim, 100 * SEC);
	/* The modest client gets every second turn, and waits for one other
	 * call at most. */
	cr_assert_geq(modest->good, 19 * CAPACITY / 2 * 9 / 10, "%u",
		      modest->good);
	cr_assert_eq(modest->good, modest->ended);
	rig_fini(&g);
}

/* A method that was slow once is not refused for ever: a call that finds a
 * worker free is served, from which the server learns that the method is fast
 * again. */
static void slow(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	struct rig *g = arg;

	(void)body;
	(void)length;
	take(g, request, g->executed++ ? MSEC : 10 * SEC);
}

Test(overload, slow_once)
{
	struct ulrpc_method_conf methods[] = {
		{ .name = "work", .handler = slow },
	};
	struct ulrpc_service_conf conf;
	struct caller *c;
	struct rig g;

	rig_init(&g, NULL);
	cr_assert_eq(ulrpc_service_stop(g.service, 0), 0);
	methods[0].arg = &g;
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = 1;
	cr_assert_eq(ulrpc_service_start(g.rpc, &conf, &g.service), 0);
	c = caller_open(&g, 0, 5 * MSEC, 20000);
	call(c);
	lnet_sim_run(g.sim, 11 * SEC);
	cr_assert_eq(c->good, 0);
	/* A call every 5 ms, each of which takes 1 ms and may take 20 ms. */
	g.until = lnet_sim_now(g.sim) + 10 * SEC;
	arrives(c);
	lnet_sim_run(g.sim, 11 * SEC);
	cr_assert_geq(c->good, c->made * 9 / 10, "%u of %u", c->good, c->made);
	rig_fini(&g);
}

/* ---- rules ---- */

static unsigned int throttled; /* calls that have been throttled */

static void on_limited(void *arg, const struct ulrpc_outcome *o,
		       const void *reply, size_t length)
{
	struct caller *c = arg;

	throttled += o->server_throttled != 0;
	if (o->status == 0 && o->server_throttled)
		cr_assert_leq(o->server_queue, 60000, "it waits in the gate");
	if (o->cause == ULRPC_CAUSE_OVERLOADED)
		cr_assert_geq(o->retry_after, 10000);
	on_done(c, o, reply, length);
}

static void limited(struct caller *c, unsigned int n)
{
	struct ulrpc_call_conf conf = { .deadline = c->deadline };

	c->made += n;
	while (n--)
		cr_assert_eq(ulrpc_call(c->client, ulrpc_method("work"), "x", 1,
					&conf, on_limited, c, NULL),
			     0);
}

/* A host may make 10 calls a second. Further calls wait, and those that would
 * wait until they are too late are refused at once. Other hosts are not
 * affected. */
Test(overload, limited_by_rules)
{
	struct caller *fast, *slow_down;
	struct rig g;

	rig_init(&g, "tbf nid=10.0.0.1@tcp rate=10 depth=2");
	slow_down = caller_open(&g, 0, SEC, 3000000);
	fast = caller_open(&g, 1, SEC, 3000000);
	limited(slow_down, 100);
	lnet_sim_run(g.sim, 100 * MSEC);
	limited(fast, 20);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(fast->good, 20, "%u", fast->good);
	cr_assert_leq(slow_down->good, 2 + 12, "%u", slow_down->good);
	lnet_sim_run(g.sim, 3 * SEC);
	cr_assert_geq(slow_down->refused, 60, "%u", slow_down->refused);
	cr_assert_eq(slow_down->good + slow_down->refused, 100);
	cr_assert_geq(slow_down->good, 28, "%u", slow_down->good);
	cr_assert_leq(slow_down->good, 2 + 31, "%u", slow_down->good);
	cr_assert_eq(throttled, slow_down->good - 2);
	rig_fini(&g);
}
