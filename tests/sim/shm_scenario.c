/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC among the processes of a random host, which have rings in memory between
 * them, and perhaps TCP beside it (sim/sim.h). The same must hold as in
 * rpc_scenario.c. Nodes die, and stand still, while others read what they have
 * written, and write what they are to read.
 */
#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/world.h"

#define NODES 6 /* at most */
#define RAILS 3 /* of a node */

const unsigned int scenario_seeds_long = 2000;
const uint64_t scenario_kept[] = { 0 };

bool scenario_repeats(const struct run *r)
{
	(void)r;
	return true;
}

int scenario_set_up(struct run *r)
{
	unsigned int rails = 1 + (unsigned int)rnd(r, RAILS);
	int rc;

	play_size(r, NODES);
	if (chance(r, 60))
		r->weather = (enum weather)rnd(r, WEATHERS);
	play_conf(r);
	r->named = chance(r, 30);
	r->pauses = chance(r, 60);
	rc = world_new(r->sim);
	r->world_tell = world_tell;
	for (unsigned int i = 0; i < r->n && rc >= 0; i++) {
		r->members[i].index = i;
		r->members[i].nnids = rails;
		world_nids(r->members[i].nids, rails, i);
		rc = play_node(r, i);
	}
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		member_clients(&r->members[i]);
	if (rc >= 0)
		fault_link(r, LNET_NID_ANY, LNET_NID_ANY);
	return rc < 0 ? rc : 0;
}
