/* SPDX-License-Identifier: BSD-3-Clause */
/* The course of a run of the RPC scenarios: calls and faults, then no more
 * faults, and everything has to end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/all_memory.h"
#include "tests/sim/rpc_run.h"
#include "tests/sim/sim_keys.h"
#include "tests/sim/scenario.h"
#include "ulnet/keys.h"

/* ---- what happens ---- */

static void audit_all(struct run *r)
{
	if (++r->steps % 16 == 0)
		lnet_sim_check(r->sim);
	for (unsigned int i = 0; i < r->n; i++)
		audit_waiting(&r->members[i]);
	for (unsigned int i = 0; i < r->n; i++)
		audit_times(&r->members[i]);
}

/* In runs with late copies of messages there are long pauses between steps: a
 * server then forgets clients, and may get a late copy from a client before
 * anything new. */
static uint64_t step_pause(struct run *r)
{
	if (r->late)
		return rnd(r, 500 * MS);
	/* So that others have much to do while a node stands still. */
	if (r->pauses)
		return rnd(r, chance(r, 50) ? 500 * MS : 5 * MS);
	return rnd(r, chance(r, 20) ? 50 * MS : 5 * MS);
}

static void keys_wear(struct member *m)
{
	for (unsigned int n = sim_keys_wear(m->rpc); n; n--)
		tally_count(m->run, KEY_IS_RENEWED);
}

/* Audits regularly, also while a step waits for something, perhaps in vain. */
static void watch(void *arg)
{
	struct run *r = arg;

	if (r->over)
		return;
	caller_check(r);
	wait_check(r);
	audit_all(r);
	if (r->conf.keys && keys_seed(r->sim) % 2)
		for (unsigned int i = 0; i < r->n; i++)
			keys_wear(&r->members[i]);
	lnet_sim_at(r->sim, 100 * MS, watch, r);
}

static unsigned int step_calls(struct run *r)
{
	if ((r->weather == WEATHER_CROWDED || r->weather == WEATHER_FAIR) &&
	    chance(r, 15))
		return 150;
	return r->late || chance(r, 15) ? 20 : 1;
}

static void step(void *arg)
{
	struct run *r = arg;
	struct member *m = &r->members[rnd(r, r->n)];
	unsigned int burst = step_calls(r);

	if (r->over || r->healed)
		return;
	r->left -= r->quiet;
	for (; burst && r->left && !r->quiet; burst--)
		caller_call(m);
	if (chance(r, r->late ? 60 : 12))
		fault_one(r);
	if (r->pauses && chance(r, 3))
		fault_pause(r);
	rails_step(r);
	while (chance(r, r->weather == WEATHER_FICKLE ? 70 : 10))
		caller_cancel_one(r);
	caller_check(r);
	audit_all(r);
	if (r->left)
		lnet_sim_at(r->sim, step_pause(r), step, r);
}

/* Runs until @ready, for at most @longest. Returns whether it is ready. */
static bool run_until(struct run *r, bool (*ready)(struct run *r),
		      uint64_t longest)
{
	uint64_t end = lnet_sim_now(r->sim) + longest;

	while (!ready(r)) {
		if (lnet_sim_now(r->sim) >= end)
			return false;
		lnet_sim_run(r->sim, 500 * MS);
	}
	return true;
}

static bool is_spent(struct run *r)
{
	return r->left == 0;
}

static bool all_ended(struct run *r)
{
	caller_cancel_long(r);
	return !r->waiting && caller_check(r) == 0;
}

static bool all_clean(struct run *r)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (server_jobs(&r->members[i]) ||
		    !audit_rpc(&r->members[i], false))
			return false;
	return true;
}

/* A call succeeds if it begins after CALM without faults, and the faults before
 * did not last longer than FAULTS. */
#define CALM   (LNET_TIME + 10 * SEC)
#define FAULTS (20 * SEC)

static void probe_all(struct run *r, const struct probe *probe)
{
	for (unsigned int i = 0; i < r->n; i++)
		caller_probe(&r->members[i], probe);
}

/* Returns how much of CALM is still to come. */
static uint64_t calm_left(struct run *r)
{
	uint64_t end = r->calm + CALM, now = lnet_sim_now(r->sim);

	return end > now ? end - now : 0;
}

/* Lets each client make a call, which has to succeed within @longest ns. Calls
 * that are under way already have to end, too. */
static void probe(struct run *r, uint64_t longest)
{
	const struct probe p = { .us = longest / US };

	probe_all(r, &p);
	if (!run_until(r, all_ended, CALM + FAULTS + SEC))
		lnet_sim_fail(r->sim, "calls do not end without faults");
}

static bool is_heard(struct run *r)
{
	for (unsigned int i = 0; i < r->n; i++)
		if (!audit_given_up(&r->members[i], false))
			return false;
	return true;
}

/* Cancels calls that have just begun, so that the servers hear of it before
 * their handlers end. LNet may still be giving up what faults have left in it,
 * while other messages wait for its credits. */
static void give_up(struct run *r)
{
	static const struct probe p = { .idempotent = true };

	probe_all(r, &p);
	lnet_sim_run(r->sim, 100 * MS);
	caller_cancel_long(r);
	lnet_sim_run(r->sim, 100 * MS);
	caller_given_up(r);
	if (run_until(r, is_heard, 4 * SEC))
		return;
	for (unsigned int i = 0; i < r->n; i++)
		audit_given_up(&r->members[i], true);
}

/* Begins calls, and lets the network and servers fail once more meanwhile. */
static void last_faults(struct run *r)
{
	const struct probe p = {
		.us = CALM / US,
		.faults = FAULTS / US,
		.idempotent = true,
	};

	probe_all(r, &p);
	for (unsigned int i = (unsigned int)rnd(r, 10); i; i--) {
		if (r->pauses && chance(r, 30))
			fault_pause(r);
		fault_outside(r);
		lnet_sim_run(r->sim, rnd(r, chance(r, 30) ? SEC : 50 * MS));
	}
}

/* Ends the faults, and waits until their consequences are over. */
static void recover(struct run *r)
{
	r->left = 0;
	r->healed = true;
	if (!run_until(r, all_ended, r->pauses ? 160 * SEC : 60 * SEC))
		lnet_sim_fail(r->sim, "calls do not end");
	last_faults(r);
	fault_heal(r);
	/* A node that is restarted may come back a little later. */
	lnet_sim_run(r->sim, SEC);
	r->calm = lnet_sim_now(r->sim);
	fault_heal(r);
	probe(r, CALM + 10 * SEC);
	/* What faults have left in LNet may delay other calls until CALM is
	 * over. */
	probe(r, calm_left(r) + 5 * SEC);
	give_up(r);
	rails_settle(r);
	if (run_until(r, all_clean, 150 * SEC))
		return;
	for (unsigned int i = 0; i < r->n; i++) {
		audit_rpc(&r->members[i], true);
		if (server_jobs(&r->members[i]))
			lnet_sim_fail(r->sim, "node %u: %u jobs never end", i,
				      server_jobs(&r->members[i]));
	}
}

/* ---- setting up ---- */

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct run *r = arg;
	int rc = 0;

	if (r->registered && index % 2)
		rc = all_memory_register(node);
	if (rc)
		return rc;
	rails_start(r, index, node);
	return member_open(&r->members[index]);
}

int play_node(struct run *r, unsigned int index)
{
	struct member *m = &r->members[index];
	struct ulnet_conf conf;

	m->run = r;
	m->index = index;
	for (unsigned int i = 0; i < SERVICES; i++)
		if (chance(r, 40))
			store_make(m, &m->stores[i]);
	lnet_conf_init(&conf);
	conf.discovery = m->discovery;
	return cluster_node_add(r->sim, m->nids, m->nnids, &conf, start, r);
}

unsigned int run_flavours(const struct run *r)
{
	if (!r->conf.keys)
		return 0;
	return keys_seed(r->sim) % 4 ? 3 : 1;
}

enum ulrpc_flavour run_flavour(const struct run *r, unsigned int who)
{
	unsigned int n = run_flavours(r);

	if (!n)
		return ULRPC_FLAVOUR_DEFAULT;
	return (enum ulrpc_flavour)(ULRPC_FLAVOUR_AUTH +
				    (keys_seed(r->sim) + who) % n);
}

/* In every other run with keys, rules let each call in, method by method, so
 * that each is judged. */
static void rules_make(struct run *r)
{
	static const char *const any[] = { "*", NULL };
	const struct ulrpc_rule rule = { .methods = any,
					 .names = any,
					 .kind = ULRPC_PEER_CLUSTER };
	const struct ulrpc_rules_conf conf = { .rules = &rule, .nrules = 1 };
	char why[256] = "";

	if (r->conf.keys && keys_seed(r->sim) / 2 % 2 &&
	    ulrpc_rules_new(&conf, &r->let_in, why, sizeof(why)))
		lnet_sim_fail(r->sim, "no rules: %s", why);
}

void play_size(struct run *r, unsigned int nodes)
{
	r->n = 2 + (unsigned int)rnd(r, chance(r, 30) ? nodes - 1 : 3);
	r->left = CALLS;
	r->slow = chance(r, 25);
	r->harsh = chance(r, 25);
	r->tiny = chance(r, 25);
}

/* Sets short times, so that all of them pass in a run. The time between
 * keepalives is longer than a keepalive takes: two round trips, to an NI that
 * has to be discovered first. */
void play_conf(struct run *r)
{
	uint64_t least = r->slow ? 100000 : 20000;

	ulrpc_conf_init(&r->conf);
	r->conf.keepalive = chance(r, 50) ? least + rnd(r, 200000) : 2000000;
	r->conf.idle = chance(r, 50) ? 10000 + rnd(r, 300000) : 0;
	r->conf.connect_timeout = 100000 + rnd(r, 2000000);
	if (chance(r, 10))
		r->conf.exports_max = 2;
	/* Takes no random numbers, so other seeds mean what they meant. */
	if (spreads(r->sim))
		r->conf.spread = ULRPC_SPREAD_CLIENTS;
	if (is_narrow(r->sim))
		r->conf.reply_bytes_max = NARROW;
	if (has_keys(r->sim))
		r->conf.keys = sim_keys_new(r->sim);
	rules_make(r);
}

static void run_all(struct run *r)
{
	lnet_sim_at(r->sim, MS, step, r);
	lnet_sim_at(r->sim, SEC, watch, r);
	/* Sometimes the run ends while calls and faults are under way. */
	if (chance(r, 30)) {
		lnet_sim_run(r->sim, rnd(r, SEC));
		return;
	}
	run_until(r, is_spent, 100 * SEC);
	recover(r);
}

struct run *scenario_new(struct lnet_sim *sim)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->members = calloc(NODES_MAX, sizeof(*r->members));
	if (!r->members)
		abort();
	r->sim = sim;
	r->tally = tally_new();
	return r;
}

int scenario_play(struct run *r)
{
	int rc = scenario_set_up(r);

	if (!rc)
		run_all(r);
	r->over = true;
	rails_over(r);
	for (unsigned int i = 0; i < r->n; i++)
		tally_rpc(&r->members[i]);
	tally_check(r);
	return rc;
}

unsigned int scenario_free(struct run *r)
{
	unsigned int left;

	for (unsigned int i = 0; i < r->n; i++)
		server_free(&r->members[i]);
	left = caller_left(r);
	for (unsigned int i = 0; i < r->n; i++)
		left += intercept_left(&r->members[i]);
	left += rails_free(r);
	left += spans_wrong(r);
	caller_free(r);
	ulrpc_keys_put(r->conf.keys);
	ulrpc_rules_put(r->let_in);
	free(r->tally);
	free(r->members);
	free(r);
	return left;
}
