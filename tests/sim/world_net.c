/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/world.h"

#include "tests/sim/cluster.h"

int world_new(struct lnet_sim *sim)
{
	(void)sim;
	return 0;
}

void world_nids(struct ulnet_nid *nids, unsigned int n, unsigned int index)
{
	cluster_nids(nids, n, index);
}

bool world_disturb(struct lnet_sim *sim, unsigned int nodes)
{
	(void)sim;
	(void)nodes;
	return false;
}

void world_tell(scenario_tell_fn tell, void *arg)
{
	(void)tell;
	(void)arg;
}
