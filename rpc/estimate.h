/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long something may take: what time-outs are made of. The estimate is the
 * larger one of
 * - a time that 999 of 1000 samples do not exceed, where a sample counts half
 *   as much with every ESTIMATE_HALF_LIFE, and nothing after some of these;
 * - the longest sample of the last ESTIMATE_RECENT, or of up to twice that
 *   time: so a server that becomes slow is believed at once.
 * So a single sample that is far off is forgotten within seconds where there
 * are many samples, and within minutes where there are few.
 *
 * Samples are work that was done, as the one who did it measured it: never how
 * long somebody was willing to wait for it, nor by how much a wait was
 * extended; that would have estimates feed on themselves.
 *
 * Adding takes a few instructions; so does reading, except once in
 * ESTIMATE_RECENT. Empty if zeroed. Times are ns of one monotonic clock; a time
 * before the last one counts as the last one. No owner of its own: one thread
 * at a time.
 */
#ifndef RPC_ESTIMATE_H
#define RPC_ESTIMATE_H

#include "base/util.h"

/* Four for each doubling, from 1 us to more than an hour. */
#define ESTIMATE_BUCKETS   128u
#define ESTIMATE_RECENT	   (2 * NSEC_PER_SEC)
#define ESTIMATE_HALF_LIFE (60 * NSEC_PER_SEC)

struct estimate {
	uint64_t span;	    /* ESTIMATE_RECENTs of the clock, so far */
	uint64_t recent[2]; /* the longest of this one, and of the one before */
	uint64_t tail;	    /* of weight, as of the beginning of the span */
	uint32_t weight[ESTIMATE_BUCKETS];
};

/* @n samples of @ns each, at @now. */
void estimate_add(struct estimate *e, uint64_t ns, uint32_t n, uint64_t now);
/* 0: nothing is known (any more). At most a quarter above the longest
 * sample. */
uint64_t estimate_read(struct estimate *e, uint64_t now);

#endif
