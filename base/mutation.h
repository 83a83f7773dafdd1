/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deliberate mistakes, which only the mutants among the simulation campaigns
 * contain (tests/module.mk): a campaign must catch each mistake, or its checks
 * are worth nothing.
 */
#ifndef BASE_MUTATION_H
#define BASE_MUTATION_H

enum mutation {
	MUTATION_NONE,
#define MUTATION(name, what) MUTATION_##name,
#include "base/mutation.def"
#undef MUTATION
	MUTATION_COUNT
};

#ifdef ULNET_MUTATIONS
extern enum mutation mutation_now;
#define MUTATE(name) (mutation_now == MUTATION_##name)
#else
#define MUTATE(name) 0
#endif

#endif
