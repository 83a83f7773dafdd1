/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls, and LNet's own operations, among nodes with many rails, which come,
 * fail, fall silent, and go. Whatever holds for RPC (rpc_scenario.c) and for
 * operations (sim/audit.c) holds here, too.
 */
#include <string.h>

#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"

#define NETS 3

const unsigned int scenario_seeds_long = 2000;

bool scenario_is_for(const char *mutation)
{
	return strncmp(mutation, "rails_", 6) == 0;
}

static unsigned int some_size(struct run *r)
{
	if (chance(r, 85))
		return 2 + (unsigned int)rnd(r, 5);
	if (chance(r, 80))
		return 2 + (unsigned int)rnd(r, 22);
	return 25 + (unsigned int)rnd(r, NODES_MAX - 24);
}

/* Each node is on each net, by one rail at least. */
static unsigned int some_rails(struct run *r, unsigned int nets)
{
	return nets + (unsigned int)rnd(r, RAILS_MAX + 1 - nets);
}

static void plan(struct run *r)
{
	unsigned int nets = 1 + (unsigned int)rnd(r, NETS);
	unsigned int rails = some_rails(r, nets);
	bool same = chance(r, 50);

	for (unsigned int i = 0; i < r->n; i++) {
		struct member *m = &r->members[i];

		m->nnids = same ? rails : some_rails(r, nets);
		cluster_nids_on(m->nids, m->nnids, i, nets);
	}
}

int scenario_set_up(struct run *r)
{
	int rc = 0;

	r->n = some_size(r);
	r->left = CALLS;
	r->slow = chance(r, 25);
	r->harsh = chance(r, 25);
	r->tiny = chance(r, 25);
	if (chance(r, 60))
		r->weather = (enum weather)rnd(r, WEATHERS);
	play_conf(r);
	r->named = chance(r, 30);
	plan(r);
	rails_new(r);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		rc = play_node(r, i);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		member_clients(&r->members[i]);
	fault_link(r, LNET_NID_ANY, LNET_NID_ANY);
	return rc < 0 ? rc : 0;
}
