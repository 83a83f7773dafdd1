/* SPDX-License-Identifier: BSD-3-Clause */
/* What is between the nodes of a cluster: the simulated network (world_net.c),
 * or memory (world_memory.c). */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "base/util.h"
#include "tests/sim/scenario.h"
#include "ulnet/sim.h"

/* To be called before the first node is added. Returns 0 or -errno. */
int world_new(struct lnet_sim *sim) must_check;
/* Sets the NIDs of node @index, on @n rails. */
void world_nids(struct ulnet_nid *nids, unsigned int n, unsigned int index);
/* Perhaps lets something happen that only this world knows, to one of @nodes
 * nodes. Returns whether it does. */
bool world_disturb(struct lnet_sim *sim, unsigned int nodes);
/* Reports what has happened in the run: for scenario_tell(). */
void world_tell(scenario_tell_fn tell, void *arg);

#endif
