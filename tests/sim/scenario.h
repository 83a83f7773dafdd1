/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random cluster under random traffic and every fault the simulator has, all
 * from one seed. There are two: LNet's (scenario.c), which uses the public API
 * only, as a user's would; and that of RPC (rpc_scenario.c).
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Seeds of a long campaign. */
extern const unsigned int scenario_seeds_long;
/* Is this one of the deliberate mistakes that it is to catch? */
bool scenario_is_for(const char *mutation);

struct scenario_result {
	unsigned int violations;
	uint64_t digest;
	uint64_t operations, messages, faults, events;
};

/* @command: how to repeat it; @trace: event log, or NULL. */
int scenario_run(uint64_t seed, const char *command, FILE *trace,
		 struct scenario_result *result);

#endif
