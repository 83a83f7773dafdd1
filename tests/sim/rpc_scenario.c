/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC among the nodes of a random cluster. What must hold, and who looks:
 *
 * Memory that is its owner's again is not written to.
 *	bulk_retire(), part_end(), call_start(), by lnet_sim_buf_retire()
 * Nothing is executed twice, unless its caller does not mind; what is said not
 * to be executed never is, what is said to be has been; a service that has
 * forgotten nothing knows each call, and so does one with a store, whatever
 * happens: its transactions are counted.
 *	execute(), check_run(), check_execution(), check_memory()
 * A call ends once, by its deadline, after the call that began it; neither an
 * attempt nor its request are to last longer; the time of a request never gets
 * shorter, whatever copies, queries and Extends do.
 *	on_done(), check_times(), outlasts(), job_audit(), job_deadline()
 * A slow server costs neither connections nor repetitions; callers hear of more
 * time as often as that doubles; nobody learns from waiting.
 *	tally_check(), job_audit(), expects_too_much()
 * Replies and bulk have the contents that belong to them: replies longer than
 * their callers had room for, bulk of 0 bytes, of 1 byte, in short segments, in
 * messages that are lost both ways, moved after the reply, or again by another
 * attempt.
 *	check_reply(), is_whole(), bulks_end(), part_end()
 * What waits does so for something that will come; counts are right.
 *	audit_waiting()
 * Who is given up hears of it, and does not begin any more.
 *	audit_given_up(), check_run()
 * RPC, and each service, ends in time, whatever is under way.
 *	wait_check(), caller_closed()
 * When faults end, calls succeed: at once, when LNet has given up what faults
 * have left in it; and nothing is left in the end.
 *	is_success(), audit_rpc(), caller_left()
 *
 * Looked at elsewhere, each with a scenario of its own: how soon the dead are
 * found out (tests/unit/rpc/client/attempt_test.c, import_test.c), what comes
 * after a restart of a server with many clients (herd.c), two processes with
 * one id (tests/unit/rpc/server/export_test.c), other processors and pages
 * (tests/unit/rpc/wire, bulk). Wall time is read by nobody: env.h has none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"

const unsigned int scenario_seeds_long = 2000;

bool scenario_is_for(const char *mutation)
{
	return strncmp(mutation, "rpc_", 4) == 0;
}

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
	for (; burst && r->left; burst--)
		caller_call(m);
	if (chance(r, r->late ? 60 : 12))
		fault_one(r);
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

/* Each client's call succeeds, by @longest from now; and those under way. */
static void probe(struct run *r, uint64_t longest)
{
	const struct probe p = { .us = longest / US };

	probe_all(r, &p);
	if (!run_until(r, all_ended, CALM + FAULTS + SEC))
		lnet_sim_fail(r->sim, "calls do not end without faults");
}

/* Callers give up what has just begun: the servers hear of that. */
static void give_up(struct run *r)
{
	static const struct probe p = { .idempotent = true };

	probe_all(r, &p);
	lnet_sim_run(r->sim, 100 * MS);
	caller_cancel_long(r);
	lnet_sim_run(r->sim, 100 * MS);
	caller_given_up(r);
	for (unsigned int i = 0; i < r->n; i++)
		audit_given_up(&r->members[i]);
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
	probe(r, 5 * SEC);
	give_up(r);
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

	(void)node;
	return member_open(&r->members[index]);
}

static int add_member(struct run *r, unsigned int index, unsigned int rails)
{
	struct member *m = &r->members[index];

	m->run = r;
	m->index = index;
	m->nnids = rails;
	for (unsigned int i = 0; i < SERVICES; i++)
		if (chance(r, 40))
			store_make(r, &m->stores[i]);
	return cluster_node_add(r->sim, index, rails, m->nids, NULL, start, r);
}

/* Short times, so that all of them pass in a run. */
static void conf_fill(struct run *r)
{
	ulrpc_conf_init(&r->conf);
	r->conf.keepalive = chance(r, 50) ? 20000 + rnd(r, 200000) : 2000000;
	r->conf.idle = chance(r, 50) ? 10000 + rnd(r, 300000) : 0;
	r->conf.connect_timeout = 100000 + rnd(r, 2000000);
	if (chance(r, 10))
		r->conf.exports_max = 2;
}

static int set_up(struct run *r)
{
	unsigned int rails = 1 + (unsigned int)rnd(r, RAILS_MAX);
	int rc = 0;

	r->n = 2 + (unsigned int)rnd(r, chance(r, 30) ? NODES_MAX - 1 : 3);
	r->left = CALLS;
	r->slow = chance(r, 25);
	r->harsh = chance(r, 25);
	r->tiny = chance(r, 25);
	r->late = chance(r, 35);
	if (!r->late && chance(r, 60))
		r->weather = (enum weather)rnd(r, WEATHERS);
	conf_fill(r);
	r->named = chance(r, 30);
	/* See step_pause(): nor does it hear of them by a keepalive. */
	if (r->late) {
		r->n = 2;
		r->conf.keepalive = 2000000;
	}
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		rc = add_member(r, i, rails);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		member_clients(&r->members[i]);
	fault_link(r, LNET_NID_ANY, LNET_NID_ANY);
	return rc < 0 ? rc : 0;
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
	r->sim = sim;
	r->tally = tally_new();
	return r;
}

int scenario_play(struct run *r)
{
	int rc = set_up(r);

	if (!rc)
		run_all(r);
	r->over = true;
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
	caller_free(r);
	free(r->tally);
	free(r);
	return left;
}
