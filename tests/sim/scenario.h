/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random cluster under random traffic and every fault the simulator has, all
 * from one seed. Uses the public API only, as a user's scenario would.
 */
#ifndef TESTS_SIM_SCENARIO_H
#define TESTS_SIM_SCENARIO_H

#include <stdint.h>
#include <stdio.h>

struct scenario_result {
	unsigned int violations;
	uint64_t digest;
	uint64_t operations, messages, faults, events;
};

/* @command: how to repeat it; @trace: event log, or NULL. */
int scenario_run(uint64_t seed, const char *command, FILE *trace,
		 struct scenario_result *result);

#endif
