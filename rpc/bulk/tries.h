/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tries to move something by GET or PUT, until a deadline. Pure: any thread.
 *
 * How long a try has: a quarter of the time that is left, but at least 50 ms
 * and at most a limit. The limit is 5 s; or, once it is known how long other
 * tries took, four times that, if that is less, but no less than 200 ms. Each
 * try that took all of its time doubles the limit.
 *
 * When the next one begins: at once, if a try took all of its time. If it
 * failed sooner, at once for the first time, and then after a pause, counted
 * from the beginning of the last try (base/backoff.h).
 */
#ifndef RPC_TRIES_H
#define RPC_TRIES_H

#include <errno.h>
#include "base/backoff.h"

struct tries {
	unsigned int timeouts; /* those that took all of their time */
	unsigned int refusals; /* and those that did not */
};

#define TRIES_MIN     (50 * NSEC_PER_MSEC)
#define TRIES_MAX     (5 * NSEC_PER_SEC)
#define TRIES_DOUBLED 6
#define TRIES_KNOWN   (200 * NSEC_PER_MSEC)

/* ns for one that begins at @now, ns; 0: there is no time left. @slowest: ns
 * that others took; 0: not known. */
static inline uint64_t tries_time(const struct tries *t, uint64_t now,
				  uint64_t deadline, uint64_t slowest)
{
	uint64_t longest = TRIES_MAX;
	uint64_t left;

	if (slowest)
		longest = MIN(longest, MAX(4 * slowest, TRIES_KNOWN));
	longest <<= MIN(t->timeouts, TRIES_DOUBLED);

	if (deadline == TIME_NEVER)
		return longest;
	if (deadline < now + NSEC_PER_USEC)
		return 0;
	left = deadline - now;
	return MIN(left, MIN(MAX(left / 4, TRIES_MIN), longest));
}

/* One has failed with @status: ns from its beginning to that of the next.
 * @random: 64 bits. */
static inline uint64_t tries_pause(struct tries *t, int status, uint64_t random)
{
	static const struct backoff_law law = { .base = 10 * NSEC_PER_MSEC,
						.cap = 500 * NSEC_PER_MSEC };

	if (status == -ETIMEDOUT) {
		t->timeouts++; /* it has waited already */
		return 0;
	}
	return backoff_pause(&law, t->refusals++, random);
}

#endif
