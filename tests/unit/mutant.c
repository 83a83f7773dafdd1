/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unit tests with deliberate mistakes compiled in (base/mutation.h): the one
 * that ULNET_MUTATION names is made, and a test must fail. With a name that
 * there is not, none does.
 */
#include "base/mutation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mutation mutation_now;

static const char *const names[] = {
	[MUTATION_NONE] = "none",
#define MUTATION(name, what) #name,
#include "base/mutation.def"
#undef MUTATION
};

/* In each process that criterion makes for a test, too. */
__attribute__((constructor)) static void choose(void)
{
	const char *name = getenv("ULNET_MUTATION");

	if (!name)
		return;
	for (int m = MUTATION_NONE; m < MUTATION_COUNT; m++)
		if (strcmp(name, names[m]) == 0)
			mutation_now = (enum mutation)m;
	if (mutation_now == MUTATION_NONE)
		fprintf(stderr, "mutant: there is no mutation %s\n", name);
}
