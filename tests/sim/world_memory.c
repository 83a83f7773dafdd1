/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/world.h"

#include "sim/sim.h"
#include "tests/sim/cluster.h"

static uint64_t rnd(struct lnet_sim *sim, uint64_t below)
{
	return lnet_sim_random(sim, below);
}

/* Short rings are soon full; and what is short is copied out of the sender's
 * memory, too, or nothing is. */
int world_new(struct lnet_sim *sim)
{
	static const int64_t copy_min[] = { 0, 64, 1024, 16384 };
	const struct sim_memory conf = {
		.delay = rnd(sim, rnd(sim, 100) < 20 ? MS : 20 * US),
		.ring_size = 16384 << rnd(sim, 2),
		.copy_min = copy_min[rnd(sim, 4)],
	};

	return sim_memory(sim, &conf);
}

/* The second of several rails is TCP. */
void world_nids(struct ulnet_nid *nids, unsigned int n, unsigned int index)
{
	for (unsigned int i = 0; i < n; i++)
		nids[i] = lnet_nid_make(
			LNET_NET(i == 1 ? LNET_TYPE_SOCK : LNET_TYPE_SHM, 0),
			0x0a000001 + (i << 16) + index);
}

/* A node stands still for up to half a minute. */
bool world_disturb(struct lnet_sim *sim, unsigned int nodes)
{
	unsigned int i = (unsigned int)rnd(sim, nodes);

	return rnd(sim, 100) < 30 &&
	       !lnet_sim_pause(sim, i, rnd(sim, (100 * MS) << rnd(sim, 9)));
}
