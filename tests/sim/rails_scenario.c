/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC calls and operations of LNet itself among nodes with many rails, which
 * come, fail, fall silent, and go. All that holds for RPC (rpc_scenario.c) and
 * for operations (sim/audit.c) must hold here, too. And:
 *
 * No call is lost while one rail between its nodes works.
 *	is_success(), in runs in which one rail is spared
 * Once the faults are over, nodes know each other, and all is in full health.
 *	views_are_right() (rails_views.c)
 * A node that lies harms nobody.
 *	rails_liar.c, in some runs
 * No NI that has failed is chosen; a peer that is not multi-rail sees one
 * source.
 *	way_send() (sim/way.c), of every simulation
 */
#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"

#define NETS  3
#define STEPS 400 /* steps of a run without calls */

const unsigned int scenario_seeds_long = 2000;
const uint64_t scenario_kept[] = { 0 };

bool scenario_repeats(const struct run *r)
{
	(void)r;
	return true;
}

static unsigned int some_size(struct run *r)
{
	if (chance(r, 85))
		return 2 + (unsigned int)rnd(r, 5);
	if (chance(r, 80))
		return 2 + (unsigned int)rnd(r, 22);
	return 25 + (unsigned int)rnd(r, NODES_MAX - 24);
}

/* Returns a number of rails such that each node is on each net. */
static unsigned int some_rails(struct run *r, unsigned int nets)
{
	return nets + (unsigned int)rnd(r, RAILS_MAX + 1 - nets);
}

static unsigned int some_nets(struct run *r)
{
	return r->weather == WEATHER_SPARED ? NETS
					    : 1 + (unsigned int)rnd(r, NETS);
}

static void plan(struct run *r, unsigned int nets)
{
	bool spared = r->weather == WEATHER_SPARED;
	unsigned int rails = spared ? nets : some_rails(r, nets);
	bool same = spared || chance(r, 50);

	for (unsigned int i = 0; i < r->n; i++) {
		struct member *m = &r->members[i];

		m->nnids = same ? rails : some_rails(r, nets);
		cluster_nids_on(m->nids, m->nnids, i, nets);
	}
}

/* Draws what happens in the run: many kinds of faults, with or without calls;
 * or only faults of rails, of which one is spared. */
static void choose(struct run *r)
{
	r->n = some_size(r);
	r->left = CALLS;
	if (chance(r, 30)) {
		play_conf(r);
		r->weather = WEATHER_SPARED;
		r->spare = (unsigned int)rnd(r, NETS);
		r->calm = 1;
		return;
	}
	r->quiet = chance(r, 40);
	r->slow = chance(r, 25);
	play_conf(r);
	r->harsh = chance(r, 25);
	r->tiny = chance(r, 25);
	if (chance(r, 60))
		r->weather = (enum weather)rnd(r, WEATHERS);
	r->named = chance(r, 30);
	if (r->quiet)
		r->left = STEPS;
}

int scenario_set_up(struct run *r)
{
	unsigned int nets;
	int rc = 0;

	choose(r);
	nets = some_nets(r);
	plan(r, nets);
	views_plan(r);
	rails_new(r);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		rc = play_node(r, i);
	if (rc >= 0 && chance(r, 25))
		rc = liar_new(r, nets);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		member_clients(&r->members[i]);
	fault_link(r, LNET_NID_ANY, LNET_NID_ANY);
	return rc < 0 ? rc : 0;
}
