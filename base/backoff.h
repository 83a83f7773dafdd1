/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The law of pauses between attempts, for all that is tried again: connections,
 * calls, replies, bulk data, questions. Attempt 0 is the first one; retry n
 * follows the n-th failure in a row, after a pause of M + X(n):
 *
 *	full	X(n) = U{0 .. win(n)}		win(n) = min(C, b 2^(n-1))
 *	equal	X(n) = win(n) / 2 + U{0 .. win(n) / 2}
 *	mad	X(1) = 0, X(n) = win(n - 1) - U{0 .. min(b, win(n - 1))}
 *	none	X(n) = 0
 *
 * with the base b, the cap C, and the least wait M, which is what a peer asked
 * for, or 0. U{0 .. w} is uniform, and includes both ends. So parties that
 * failed at the same moment spread themselves over a range that doubles with
 * each failure, and the cap is the longest that anybody waits beyond M once an
 * attempt would succeed.
 *
 * "mad" is the law that management datagrams of InfiniBand are repeated by: who
 * gives its time-out as M waits for at least that, then for a range of constant
 * width at the end of a time that doubles. It spreads the first retries not at
 * all.
 *
 * There are no retries beyond a law's max, at or after the end of the time that
 * all attempts have together, nor at a time when the answer would come too
 * late: waiting for what is certain to fail helps nobody.
 *
 * Times are ns of one monotonic clock. Whoever uses this brings 64 random bits.
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
	uint32_t max;	    /* retries; 0: none; BACKOFF_NO_MAX */
	uint64_t base, cap; /* b, which is not 0, and C */
};

/* X(n), of the retry @n: 0 for @n = 0. @random: 64 random bits. */
uint64_t backoff_pause(const struct backoff_law *law, uint32_t n,
		       uint64_t random);

/* Attempts of one thing. */
struct backoff {
	uint32_t n;	/* retries that backoff_next() has allowed in a row */
	uint64_t until; /* the end of the time of all attempts; TIME_NEVER */
};

static inline void backoff_begin(struct backoff *b, uint64_t until)
{
	b->n = 0;
	b->until = until;
}

/* An attempt has failed. */
struct backoff_failure {
	uint64_t now;
	uint64_t least;	 /* M */
	uint64_t answer; /* how long the answer to a retry will take at least */
	uint64_t random; /* 64 bits */
};

enum backoff_verdict {
	BACKOFF_RETRY,
	BACKOFF_ENOUGH,	 /* there have been as many retries as may be */
	BACKOFF_TOO_LATE /* the next one would end after b->until */
};

/* BACKOFF_RETRY: one more is counted, and due at *@at_p; that is left alone
 * otherwise. */
enum backoff_verdict backoff_next(struct backoff *b,
				  const struct backoff_law *law,
				  const struct backoff_failure *f,
				  uint64_t *at_p);

/* The time that all attempts together have under "mad", if each has @timeout
 * and the caller has not given a time for all of them. */
uint64_t backoff_mad_total(const struct backoff_law *law, uint64_t timeout);

#endif
