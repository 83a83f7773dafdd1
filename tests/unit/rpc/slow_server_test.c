/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client knows how long calls take, and then they take ten or a hundred
 * times as long, in the handler and in the queue: nothing must be sent again,
 * no query be sent, and no connection be given up. But a dead server must be
 * noticed soon.
 */
#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "tests/unit/rpc/serve_rig.h"

#define CALLS	60
#define WORKERS 2

struct rig {
	struct serve_rig g;
	uint64_t takes;
	unsigned int executed;
	uint32_t extensions; /* the most extensions that any request has had */
};

static struct rig r;

/* Returns how many extensions a request may have had: two, one for each time
 * that its time has doubled since T, and one each four minutes. */
static uint32_t extensions_max(const struct ulrpc_request *request)
{
	uint64_t total = shard_now(request->sc->shard) - request->arrival;
	uint32_t n = 2 + (uint32_t)(total / (240 * SEC));

	for (uint64_t t = request->timeout; t < total; t *= 2)
		n++;
	return n;
}

static void work(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	r.executed++;
	/* Nonzero: the node has crashed. */
	if (ulrpc_request_sleep(request, r.takes / NSEC_PER_USEC))
		return;
	cr_assert_leq(request->extensions, extensions_max(request));
	r.extensions = MAX(r.extensions, request->extensions);
	ulrpc_reply(request, body, length);
}

static void rig_init(uint64_t seed)
{
	const struct ulrpc_method_conf method = {
		.name = "work",
		.handler = work,
		.semantics = ULRPC_IDEMPOTENT,
	};
	struct ulrpc_service_conf conf;

	memset(&r, 0, sizeof(r));
	serve_init(&r.g, seed, 1);
	serve_open(&r.g, NULL);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.workers_min = WORKERS;
	serve_start(&r.g, &conf);
	serve_client(&r.g);
}

static void call(struct called *c)
{
	struct ulrpc_call_conf conf = { .deadline = 6000 * SEC / NSEC_PER_USEC,
					.semantics = ULRPC_IDEMPOTENT };

	*c = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(r.g.client, ulrpc_method("work"), "x", 1, &conf,
				on_called, c, NULL),
		     0);
}

/* ns that calls usually take */
static const uint64_t usual[] = { MSEC, 30 * MSEC, 200 * MSEC, SEC };

/* Makes calls that take @takes ns, so that client and server know that. */
static void learn(uint64_t takes)
{
	struct called c;

	r.takes = takes;
	for (unsigned int i = 0; i < 50; i++) {
		call(&c);
		lnet_sim_run(r.g.sim, 5 * takes);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(c.outcome.status, 0);
	}
	cr_assert_eq(r.executed, 50);
	r.executed = 0;
}

static uint64_t counted(unsigned int side, enum rpc_stat stat)
{
	return r.g.rpc[side]->shards[0].stats->counts[stat];
}

/* Returns the T of an attempt, ns. */
static uint64_t timeout(void)
{
	return client_timeout(r.g.client, ulrpc_method("work"), TIME_NEVER);
}

/* Makes calls that take @times as long as the usual @usually ns. */
static void wait_for(uint64_t usually, uint64_t times)
{
	uint64_t total = CALLS / WORKERS * times * usually;
	static struct called c[CALLS];

	rig_init(times);
	learn(usually);
	cr_assert_leq(timeout(), MAX(4 * usually, 60 * MSEC));
	r.takes = times * usually;
	for (unsigned int i = 0; i < CALLS; i++)
		call(&c[i]);
	lnet_sim_run(r.g.sim, total + SEC);
	for (unsigned int i = 0; i < CALLS; i++) {
		cr_assert_eq(c[i].ended, 1, "%u", i);
		cr_assert_eq(c[i].outcome.status, 0, "%u: %s", i,
			     ulrpc_cause_name(c[i].outcome.cause));
		cr_assert_eq(c[i].outcome.attempts, 1);
		cr_assert_eq(c[i].outcome.queries, 0);
	}
	cr_assert_eq(r.executed, CALLS);
	cr_assert_gt(r.extensions, 0);
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_made), 1);
	cr_assert_eq(counted(CALLER, RPC_STAT_connections_lost), 0);
	cr_assert_eq(counted(SERVER, RPC_STAT_requests_again), 0);
	serve_fini(&r.g);
}

Test(slow_server, is_waited_for)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(usual); i++)
		for (uint64_t times = 10; times <= 100; times *= 10)
			wait_for(usual[i], times);
}

/* The server dies. The client must notice that within 3 (T + rtt). */
static void find_dead(uint64_t usually, uint64_t seed)
{
	const struct ulnet_sim_link dead = { .loss = LNET_SIM_ALWAYS };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct import *imp;
	struct called c;
	uint64_t since, longest, rtt;

	rig_init(seed);
	learn(usually);
	imp = r.g.client->imp;
	rtt = MAX(import_rtt(imp), 250 * MSEC);
	longest = 3 * (timeout() + rtt);
	/* The server is not known to be dead: messages are lost without an
	 * error. */
	lnet_sim_link_set(r.g.sim, &any, &any, &dead);
	since = lnet_sim_now(r.g.sim);
	call(&c);
	while (import_is_up(imp) && lnet_sim_now(r.g.sim) < since + 10 * SEC)
		lnet_sim_run(r.g.sim, MSEC);
	cr_assert_leq(lnet_sim_now(r.g.sim), since + longest, "%lu of %lu ms",
		      (unsigned long)((lnet_sim_now(r.g.sim) - since) / MSEC),
		      (unsigned long)(longest / MSEC));
	cr_assert_not(import_is_up(imp));
	serve_fini(&r.g);
}

Test(slow_server, is_noticed_when_dead)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(usual); i++)
		for (uint64_t seed = 1; seed <= 8; seed++)
			find_dead(usual[i], seed);
}
