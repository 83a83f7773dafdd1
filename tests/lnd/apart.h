/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests that run in processes of their own, so that what a test does to its
 * network or to its rights ends with it.
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

/* Takes main()'s arguments: parts of the names of the tests to run; none: all.
 * @needs: what the tests need of the machine, which apart_end() prints if all
 * of them were skipped; NULL: it prints nothing. */
struct apart apart_begin(int argc, char **argv, const char *needs);
/* Runs @fn, if its name was chosen, in a new process. @fn returns 0 or SKIPPED;
 * all else is a failure. Prints and counts the result. */
void apart_run(struct apart *a, const char *name, int (*fn)(const void *arg),
	       const void *arg);
/* Returns what @fn returns in a new process; 1 if the process ends otherwise.
 */
int apart_status(int (*fn)(const void *arg), const void *arg);
/* Prints the sum. Returns the status for main(). */
int apart_end(const struct apart *a);

struct apart_test {
	const char *name;
	int (*fn)(void);
};

/* Runs all tests of a table. Returns the status for main(). */
int apart_all(struct apart *a, const struct apart_test *tests, unsigned int n);

#endif
