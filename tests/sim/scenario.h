/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random cluster under random traffic and every fault the simulator has, all
 * from one seed: what campaign.c runs. There are seven scenarios: that of LNet
 * (scenario.c), which uses the public API only, as a user would; that of RPC
 * (rpc_scenario.c); that of streams (streams_scenario.c); that of calls to
 * several servers (replicas_scenario.c); that of RPC over RDMA
 * (verbs_scenario.c); that of nodes with many rails (rails_scenario.c); and
 * that of nets with routers between them (routes_scenario.c).
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <ulnet/sim.h>

/* seeds of a long campaign */
extern const unsigned int scenario_seeds_long;
/* Seeds that have once found a defect, in ascending order, ended by 0. Each
 * campaign from seed 1 runs them, however short it is. */
extern const uint64_t scenario_kept[];

struct run;

/* Never returns NULL. */
struct run *scenario_new(struct lnet_sim *sim);
/* Plays the whole run. Returns 0, or why it could not be set up. */
int scenario_play(struct run *r);
/* The kind of what a scenario is for. A campaign from seed 1, of the usual
 * length or longer, fails unless each such thing happens in one of 20 runs. */
#define SCENARIO_MUST "must happen: "
/* Reports what has happened in the run, and how often; @kind and @what together
 * name it. */
typedef void (*scenario_tell_fn)(void *arg, const char *kind, const char *what,
				 uint64_t n);
void scenario_tell(const struct run *r, scenario_tell_fn tell, void *arg);
/* Is a run of the same seed the same each time? */
bool scenario_repeats(const struct run *r);
/* Frees all, after the simulation. Returns how much is left that should not be.
 */
unsigned int scenario_free(struct run *r);

#endif
