/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pauses between attempts, for everything that is retried: connections,
 * calls, replies, bulk data, queries. Attempt 0 is the first; retry n follows
 * the n-th failure in a row, after a pause of M + X(n):
 *
 *	full	X(n) = U{0 .. win(n)}		win(n) = min(C, b 2^(n-1))
 *	equal	X(n) = win(n) / 2 + U{0 .. win(n) / 2}
 *	mad	X(1) = 0, X(n) = win(n - 1) - U{0 .. min(b, win(n - 1))}
 *	none	X(n) = 0
 *
 * with base b, cap C, and minimum wait M (what a peer asked for, or 0).
 * U{0 .. w} is uniform and includes both ends. So parties that failed at the
 * same moment spread over a range that doubles with each failure, and the cap
 * bounds how long anybody waits beyond M once an attempt would succeed.
 *
 * "mad" is how InfiniBand repeats management datagrams: the sender passes its
 * time-out as M, and the range in which it retries has constant width, at the
 * end of a time that doubles. First retries are not spread at all.
 *
 * A retry is refused when the maximum is reached, when it would start at or
 * after the end of the time that all attempts have together, or when its answer
 * would come after that end.
 *
 * Times are ns of one monotonic clock. The caller supplies the randomness.
 */
#ifndef BASE_BACKOFF_H
#define BASE_BACKOFF_H

#include "base/util.h"

enum backoff_policy {
	BACKOFF_FULL,
	BACKOFF_EQUAL,
	BACKOFF_MAD,
	BACKOFF_NONE,
	BACKOFF_POLICIES
};
extern const char *const backoff_names[BACKOFF_POLICIES];

#define BACKOFF_NO_MAX UINT32_MAX

struct backoff_law {
	enum backoff_policy policy;
	/* most retries in a row; 0: none; BACKOFF_NO_MAX: no limit */
	uint32_t max;
	uint64_t base, cap; /* ns: b, which is not 0, and C */
};

/* Returns the random part X(n) of the pause before retry @n, ns; 0 for @n = 0.
 * @random: 64 random bits. */
uint64_t backoff_pause(const struct backoff_law *law, uint32_t n,
		       uint64_t random);

/* The attempts to do one thing. */
struct backoff {
	uint32_t n; /* retries that backoff_next() has allowed in a row */
	/* ns: when the time of all attempts ends; TIME_NEVER: never */
	uint64_t until;
};

static inline void backoff_begin(struct backoff *b, uint64_t until)
{
	b->n = 0;
	b->until = until;
}

/* A failed attempt. Times are ns. */
struct backoff_failure {
	uint64_t now;
	uint64_t least;	 /* M of the pause */
	uint64_t answer; /* how long the answer to a retry takes at least */
	uint64_t random; /* 64 random bits */
};

enum backoff_verdict {
	BACKOFF_RETRY,
	BACKOFF_ENOUGH,	 /* the maximum number of retries is reached */
	BACKOFF_TOO_LATE /* the next attempt would end after b->until */
};

/* Is there a retry after @f? BACKOFF_RETRY: yes; counts it, and stores in
 * *@at_p when it is due (ns). Otherwise *@at_p is untouched. */
enum backoff_verdict backoff_next(struct backoff *b,
				  const struct backoff_law *law,
				  const struct backoff_failure *f,
				  uint64_t *at_p);

/* Returns the time that all attempts have together under "mad", when each one
 * has @timeout and the caller has set no other limit. */
uint64_t backoff_mad_total(const struct backoff_law *law, uint64_t timeout);

#endif
