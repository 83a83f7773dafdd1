/* SPDX-License-Identifier: BSD-3-Clause */
/* How a run of the RPC scenarios goes: calls and faults, then no more faults,
 * and everything has to end. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/all_memory.h"
#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"

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

/* In runs with late copies callers are silent between: so a server that has
 * forgotten them hears of them by a copy first. */
static uint64_t step_pause(struct run *r)
{
	if (r->late)
		return rnd(r, 500 * MS);
	return rnd(r, chance(r, 20) ? 50 * MS : 5 * MS);
}

/* Also while a step waits for something, perhaps in vain. */
static void watch(void *arg)
{
	struct run *r = arg;

	if (r->over)
		return;
	caller_check(r);
	wait_check(r);
	audit_all(r);
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
	rails_step(r);
	while (chance(r, r->weather == WEATHER_FICKLE ? 70 : 10))
		caller_cancel_one(r);
	caller_check(r);
	audit_all(r);
	if (r->left)
		lnet_sim_at(r->sim, step_pause(r), step, r);
}

/* Lets time pass until @ready, or @longest; false: not ready then. */
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

/* Without faults for so long, calls succeed that began with them, ... */
#define CALM (LNET_TIME + 10 * SEC)
/* ... if the faults then lasted no longer than this. */
#define FAULTS (20 * SEC)

static void probe_all(struct run *r, const struct probe *probe)
{
	for (unsigned int i = 0; i < r->n; i++)
		caller_probe(&r->members[i], probe);
}

/* ... of which so much is still to come. */
static uint64_t calm_left(struct run *r)
{
	uint64_t end = r->calm + CALM, now = lnet_sim_now(r->sim);

	return end > now ? end - now : 0;
}

/* Each client's call succeeds, by @longest from now; and those under way. */
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

/* Callers give up what has just begun: the servers hear of that, before their
 * handlers come to an end. LNet may still have to give up what faults have left
 * in it, and lets others wait for its credits. */
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

/* Calls are under way while the network and servers fail once more. */
static void last_faults(struct run *r)
{
	const struct probe p = {
		.us = CALM / US,
		.faults = FAULTS / US,
		.idempotent = true,
	};

	probe_all(r, &p);
	for (unsigned int i = (unsigned int)rnd(r, 10); i; i--) {
		fault_outside(r);
		lnet_sim_run(r->sim, rnd(r, chance(r, 30) ? SEC : 50 * MS));
	}
}

/* The faults end, and with them what they have led to. */
static void recover(struct run *r)
{
	r->left = 0;
	r->healed = true;
	if (!run_until(r, all_ended, 60 * SEC))
		lnet_sim_fail(r->sim, "calls do not end");
	last_faults(r);
	fault_heal(r);
	/* Who went away may come back a little later. */
	lnet_sim_run(r->sim, SEC);
	r->calm = lnet_sim_now(r->sim);
	fault_heal(r);
	probe(r, CALM + 10 * SEC);
	/* What faults have left in LNet may hold others up for as long. */
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
			store_make(r, &m->stores[i]);
	lnet_conf_init(&conf);
	conf.discovery = m->discovery;
	return cluster_node_add(r->sim, m->nids, m->nnids, &conf, start, r);
}

/* Short times, so that all of them pass in a run. But clients keep alive more
 * seldom than a keepalive takes: to an NI that has to be asked first, it takes
 * two round trips. */
void play_conf(struct run *r)
{
	uint64_t least = r->slow ? 100000 : 20000;

	ulrpc_conf_init(&r->conf);
	r->conf.keepalive = chance(r, 50) ? least + rnd(r, 200000) : 2000000;
	r->conf.idle = chance(r, 50) ? 10000 + rnd(r, 300000) : 0;
	r->conf.connect_timeout = 100000 + rnd(r, 2000000);
	if (chance(r, 10))
		r->conf.exports_max = 2;
}

static void run_all(struct run *r)
{
	lnet_sim_at(r->sim, MS, step, r);
	lnet_sim_at(r->sim, SEC, watch, r);
	/* Sometimes everything ends in the middle. */
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
	left += rails_free(r);
	caller_free(r);
	free(r->tally);
	free(r->members);
	free(r);
	return left;
}
