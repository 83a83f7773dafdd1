/* SPDX-License-Identifier: BSD-3-Clause */
/* A durable service whose node crashes again and again, and a client whose
 * calls are to be executed exactly once, as ulrpc(7) promises. */
#include <errno.h>
#include "tests/unit/rpc/serve_rig.h"

#define CALLS 64
#define SLOTS 256

/* What is on disk, which outlives the node. */
static struct store {
	struct {
		uint8_t key[ULRPC_RECORD_KEY];
		uint8_t value[64];
		size_t length; /* 0: this entry is free */
	} of[SLOTS];
	uint8_t incarnation[16];
	unsigned int runs[CALLS]; /* how often each call was executed */
	unsigned int all;
	bool refuses;
} store;

static struct serve_rig g;
static struct called called[CALLS];
static uint64_t replayed;

static unsigned int store_find(const void *key)
{
	unsigned int i = 0;

	while (store.of[i].length &&
	       memcmp(store.of[i].key, key, ULRPC_RECORD_KEY))
		cr_assert_lt(++i, SLOTS);
	return i;
}

static int store_lookup(void *arg, const void *key, void **value_p,
			size_t *length_p)
{
	unsigned int i = store_find(key);

	(void)arg;
	if (!store.of[i].length)
		return -ENOENT;
	*value_p = malloc(store.of[i].length);
	*length_p = store.of[i].length;
	memcpy(*value_p, store.of[i].value, store.of[i].length);
	return 0;
}

/* Adds 1 to the count of executions of the call whose number is in @body, and
 * replies with it. */
static void add(void *arg, struct ulrpc_request *r, const void *body,
		size_t length)
{
	struct ulrpc_record record;
	uint32_t nr, runs;
	unsigned int i;

	(void)arg;
	cr_assert_eq(length, sizeof(nr));
	memcpy(&nr, body, sizeof(nr));
	runs = store.runs[nr] + 1;
	if (!ulrpc_request_record(r, 0, &runs, sizeof(runs), &record)) {
		i = store_find(record.key);
		memcpy(store.of[i].key, record.key, ULRPC_RECORD_KEY);
		cr_assert_leq(record.length, sizeof(store.of[i].value));
		memcpy(store.of[i].value, record.value, record.length);
		store.of[i].length = record.length;
	}
	store.runs[nr] = runs;
	store.all++;
	ulrpc_reply(r, &runs, sizeof(runs));
}

/* Does the same as add(), but keeps its worker for 2 ms first. */
static void add_slowly(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	if (store.refuses)
		ulrpc_refuse(r);
	else if (ulrpc_request_sleep(r, 2000) == 0)
		add(arg, r, body, length);
	else
		ulrpc_fail(r, -EINTR);
}

static void start(bool durable)
{
	static const struct ulrpc_method_conf m[] = {
		{ .name = "add",
		  .handler = add,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_EXACTLY_ONCE },
		{ .name = "slow",
		  .handler = add_slowly,
		  .semantics = ULRPC_EXACTLY_ONCE },
	};
	struct ulrpc_durable d = { .lookup = store_lookup };
	struct ulrpc_service_conf conf;

	memcpy(d.incarnation, store.incarnation, sizeof(d.incarnation));
	serve_open(&g, NULL);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = m;
	conf.nmethods = ARRAY_SIZE(m);
	conf.workers_min = 4;
	conf.durable = durable ? &d : NULL;
	serve_start(&g, &conf);
}

/* Sets whether the server's messages arrive. */
static void replies_arrive(bool they_do)
{
	const struct ulnet_sim_link link = {
		.loss = they_do ? 0 : LNET_SIM_ALWAYS,
	};
	struct ulnet_nid from = nth_id(SERVER).nid, to = nth_id(CALLER).nid;

	cr_assert_eq(lnet_sim_link_set(g.sim, &from, &to, &link), 0);
}

static void begin(uint64_t seed)
{
	memset(&store, 0, sizeof(store));
	store.incarnation[0] = 1;
	serve_init(&g, seed, 1);
	start(true);
	serve_client(&g);
}

/* Crashes the server's node, and restarts it @away ns later. */
static void restart(uint64_t away, bool durable)
{
	replayed +=
		serve_counted(&g.service->cpt[0], RPC_STAT_requests_replayed);
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
	lnet_sim_run(g.sim, away);
	cr_assert_eq(lnet_sim_restart(g.sim, SERVER), 0);
	g.node[SERVER] = lnet_sim_node(g.sim, SERVER);
	replies_arrive(true);
	start(durable);
}

static void call_nr(uint32_t nr, const char *method)
{
	struct ulrpc_call_conf conf = { .deadline = 10000000,
					.semantics = ULRPC_EXACTLY_ONCE };

	called[nr] = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method(method), &nr, sizeof(nr),
				&conf, on_called, &called[nr], NULL),
		     0);
}

static void check_once(uint64_t seed, uint32_t nr)
{
	const struct called *c = &called[nr];
	uint32_t runs;

	cr_assert_eq(c->ended, 1, "seed %llu: call %u",
		     (unsigned long long)seed, nr);
	cr_assert_eq(c->outcome.status, 0, "seed %llu: call %u: %s, %s",
		     (unsigned long long)seed, nr,
		     ulrpc_cause_name(c->outcome.cause),
		     ulrpc_execution_name(c->outcome.execution));
	memcpy(&runs, c->reply, sizeof(runs));
	cr_assert_eq(runs, 1, "seed %llu: call %u: %u",
		     (unsigned long long)seed, nr, runs);
	cr_assert_eq(store.runs[nr], 1, "seed %llu: call %u: %u times",
		     (unsigned long long)seed, nr, store.runs[nr]);
}

/* The node crashes four times at random moments while calls are made: before
 * they arrive, while they are served, or when only the reply is missing. */
Test(durable_pair, every_call_is_executed_once)
{
	replayed = 0;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		begin(seed);
		for (uint32_t nr = 0; nr < CALLS; nr++) {
			call_nr(nr, nr % 2 ? "slow" : "add");
			lnet_sim_run(g.sim, lnet_sim_random(g.sim, 300) * 1000);
			if (nr % 16 == 5)
				replies_arrive(false);
			if (nr % 16 == 9)
				restart(lnet_sim_random(g.sim, SEC), true);
		}
		lnet_sim_run(g.sim, 11 * SEC);
		for (uint32_t nr = 0; nr < CALLS; nr++)
			check_once(seed, nr);
		replayed += serve_counted(&g.service->cpt[0],
					  RPC_STAT_requests_replayed);
		serve_fini(&g);
	}
	/* The test shows nothing unless many replies came from the store. */
	cr_assert_gt(replayed, 25, "%llu", (unsigned long long)replayed);
}

/* The service comes back with another store, or with none. A call that may have
 * been executed must not be executed again: its caller is told that this is not
 * known. */
Test(durable_pair, another_store_knows_nothing)
{
	for (unsigned int durable = 0; durable < 2; durable++) {
		unsigned int unknown = 0;

		begin(1);
		for (uint32_t nr = 0; nr < CALLS; nr++)
			call_nr(nr, "slow");
		lnet_sim_run(g.sim, 9 * MSEC);
		replies_arrive(false);
		lnet_sim_run(g.sim, 9 * MSEC);
		cr_assert_gt(store.all, 0);
		store.incarnation[0]++;
		restart(10 * MSEC, durable);
		lnet_sim_run(g.sim, 11 * SEC);
		for (uint32_t nr = 0; nr < CALLS; nr++) {
			const struct ulrpc_outcome *o = &called[nr].outcome;

			cr_assert_eq(called[nr].ended, 1);
			cr_assert_leq(store.runs[nr], 1);
			if (!o->status)
				continue;
			cr_assert_eq(o->cause, ULRPC_CAUSE_RESTARTED);
			cr_assert_eq(o->execution, ULRPC_EXECUTION_UNKNOWN);
			unknown++;
		}
		cr_assert_gt(unknown, 0);
		serve_fini(&g);
	}
}

/* A handler that had not recorded a call before the crash refuses it after the
 * restart: the call was not executed. */
Test(durable_pair, what_is_refused_was_not_executed)
{
	const struct ulrpc_outcome *o = &called[0].outcome;

	begin(1);
	call_nr(0, "slow");
	lnet_sim_run(g.sim, MSEC);
	store.refuses = true;
	restart(10 * MSEC, true);
	lnet_sim_run(g.sim, 11 * SEC);
	cr_assert_eq(called[0].ended, 1);
	cr_assert_eq(o->cause, ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_gt(o->retries, 0);
	cr_assert_eq(o->execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(store.all, 0);
	serve_fini(&g);
}
