/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random cluster under random traffic and every fault the simulator has, all
 * from one seed: what campaign.c runs. There are five: LNet's (scenario.c),
 * which uses the public API only, as a user's would; that of RPC
 * (rpc_scenario.c); that of RPC over RDMA (verbs_scenario.c); that of nodes
 * with many rails (rails_scenario.c); and that of nets with routers between
 * them (routes_scenario.c).
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <ulnet/sim.h>

/* Seeds of a long campaign. */
extern const unsigned int scenario_seeds_long;
/* Seeds that have once found something, in ascending order, then 0. Each
 * campaign from seed 1 has them, however short it is. */
extern const uint64_t scenario_kept[];

struct run;

/* Never NULL. */
struct run *scenario_new(struct lnet_sim *sim);
/* All that happens. 0, or why it could not be set up. */
int scenario_play(struct run *r);
/* What has happened in the run, and how often; @kind and @what together name
 * it. */
typedef void (*scenario_tell_fn)(void *arg, const char *kind, const char *what,
				 uint64_t n);
void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg);
/* Is the run, which has been played, the same each time? */
bool scenario_repeats(const struct run *r);
/* The simulation is no more. Returns what is left that should not be. */
unsigned int scenario_free(struct run *r);

#endif
