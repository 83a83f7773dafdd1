/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests that are processes of their own: what one does to its network, or to
 * its rights, goes with it.
 */
#ifndef TESTS_LND_APART_H
#define TESTS_LND_APART_H

#include "base/util.h"

#define SKIPPED 77

struct apart {
	int argc;
	char **argv;
	const char *needs;
	unsigned int passed, failed, skipped;
};

/* main()'s: the arguments are parts of the names of those that are wanted.
 * @needs: what there has to be, or they are skipped; NULL: nothing. */
struct apart apart_begin(int argc, char **argv, const char *needs);
/* Runs @fn, if it is wanted, in a new process: 0, SKIPPED, or it has failed.
 * Prints how it ended, and counts. */
void apart_run(struct apart *a, const char *name, int (*fn)(const void *arg),
	       const void *arg);
/* What @fn returns in a new process; 1 if it does not return. */
int apart_status(int (*fn)(const void *arg), const void *arg);
/* Prints the sum. Returns what main() returns. */
int apart_end(const struct apart *a);

struct apart_test {
	const char *name;
	int (*fn)(void);
};

/* Runs all of a table. Returns what main() returns. */
int apart_all(struct apart *a, const struct apart_test *tests, unsigned int n);

#endif
