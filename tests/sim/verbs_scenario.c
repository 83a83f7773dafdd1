/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC among the nodes of a random cluster, whose o2ib nets consist of queue
 * pairs (sim/sim.h). The same must hold as in rpc_scenario.c.
 */
#include "tests/sim/rpc_run.h"
#include "tests/sim/scenario.h"

#define NODES 6 /* at most */
#define RAILS 3 /* of a node */

const unsigned int scenario_seeds_long = 1000;
const uint64_t scenario_kept[] = {
	52, /* a connection without credits ends when its peer is gone */
	/* a crashed process is audited no more, however long the crash takes */
	340,
	0,
};

/* Which pieces of registered memory are adjacent, and share a registration,
 * depends on the addresses that malloc() returns. Under setarch -R a seed of
 * its own process has the same run each time, but perhaps another one than in a
 * process that has run other seeds before. */
bool scenario_repeats(const struct run *r)
{
	return !r->registered;
}

/* The first NID is always of net type o2ib. */
static void set_nids(struct member *m, const uint32_t nets[RAILS],
		     unsigned int rails)
{
	m->nnids = rails;
	for (unsigned int i = 0; i < rails; i++)
		m->nids[i] = lnet_nid_make(nets[i],
					   0x0a000001 + (i << 16) + m->index);
}

int scenario_set_up(struct run *r)
{
	const uint32_t nets[RAILS] = {
		LNET_NET(LNET_TYPE_O2IB, 0),
		chance(r, 50) ? LNET_NET(LNET_TYPE_SOCK, 0)
			      : LNET_NET(LNET_TYPE_O2IB, 1),
		LNET_NET(LNET_TYPE_O2IB, 0),
	};
	unsigned int rails = 1 + (unsigned int)rnd(r, RAILS);
	int rc;

	play_size(r, NODES);
	if (chance(r, 60))
		r->weather = (enum weather)rnd(r, WEATHERS);
	play_conf(r);
	r->named = chance(r, 30);
	r->registered = chance(r, 60);
	rc = verbs_new(r);
	for (unsigned int i = 0; i < r->n && rc >= 0; i++) {
		r->members[i].index = i;
		set_nids(&r->members[i], nets, rails);
		verbs_device(r, &r->members[i]);
		rc = play_node(r, i);
	}
	for (unsigned int i = 0; i < r->n && rc >= 0; i++)
		member_clients(&r->members[i]);
	if (rc >= 0) {
		fault_link(r, LNET_NID_ANY, LNET_NID_ANY);
		verbs_link(r, LNET_NID_ANY, LNET_NID_ANY);
	}
	return rc < 0 ? rc : 0;
}
