/* SPDX-License-Identifier: BSD-3-Clause */
/* Conditions that may be checked on any thread: failures are counted, and the
 * first ones printed. */
#ifndef TESTS_THREAD_CHECK_H
#define TESTS_THREAD_CHECK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define SAID_MOST 20

static atomic_uint failures;

static inline bool check_at(bool ok, const char *what, const char *file,
			    int line)
{
	if (!ok && atomic_fetch_add(&failures, 1) < SAID_MOST)
		fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
	return ok;
}
#define check(cond) check_at(cond, #cond, __FILE__, __LINE__)

#endif
