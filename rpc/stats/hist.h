/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histograms of times, in ns: log-linear, eight buckets for each doubling, so
 * that any value read from one is off by at most a sixteenth of it (6.25 %), or
 * by half a unit where that is more (by a whole one, when a small histogram was
 * merged into a large one). A value of an hour and more falls into the last
 * bucket; the largest one is known exactly.
 *
 * Two sizes: struct hist (unit 64 ns, 2.2 KiB) for what there are few of,
 * struct hist_small (unit 1024 ns, 1 KiB) for what there may be many of. Zeroed
 * memory is an empty histogram. Adding neither locks nor allocates, nor
 * forgets: a small one whose counters are full is poured into a large one that
 * it brings along.
 *
 * Thread: owner, also for reading.
 */
#ifndef RPC_HIST_H
#define RPC_HIST_H

#include "base/util.h"

#define HIST_STEPS_BITS 3 /* of buckets for each doubling */
#define HIST_STEPS	(1u << HIST_STEPS_BITS)
#define HIST_RANGE_BITS 42 /* 2^42 ns: 73 minutes */
#define HIST_BUCKETS_OF(unit_bits) \
	((HIST_RANGE_BITS - (unit_bits)-HIST_STEPS_BITS + 1) * HIST_STEPS)

#define HIST_UNIT_BITS	6
#define HIST_BUCKETS	HIST_BUCKETS_OF(HIST_UNIT_BITS)
#define HIST_SMALL_BITS 10
#define HIST_SMALL	HIST_BUCKETS_OF(HIST_SMALL_BITS)

struct hist {
	uint64_t sum, max; /* ns */
	uint64_t room;	   /* UINT64_MAX - the smallest value; 0 when empty */
	uint64_t n[HIST_BUCKETS];
};

struct hist_small {
	uint64_t sum, max, room; /* of all values */
	struct hist *full;	 /* buckets of earlier ones; NULL: there are
				  * none */
	uint32_t n[HIST_SMALL];
};
_Static_assert(sizeof(struct hist_small) <= 1024, "one for each peer");

/* The bucket of a value, in units. Below HIST_STEPS each has one of its own. */
static inline unsigned int hist_bucket(uint64_t v)
{
	unsigned int shift;

	if (v < HIST_STEPS)
		return (unsigned int)v;
	shift = 63 - HIST_STEPS_BITS - (unsigned int)__builtin_clzll(v);
	return shift * HIST_STEPS + (unsigned int)(v >> shift);
}

/* The values that fall into @bucket: from *@low up to, not including, what is
 * returned. */
static inline uint64_t hist_range(unsigned int bucket, unsigned int unit_bits,
				  uint64_t *low)
{
	unsigned int shift = bucket < HIST_STEPS ? 0 : bucket / HIST_STEPS - 1;

	*low = (uint64_t)(bucket - shift * HIST_STEPS) << shift << unit_bits;
	return *low + (UINT64_C(1) << shift << unit_bits);
}

/* @n values of @ns each. */
static inline void hist_add(struct hist *h, uint64_t ns, uint32_t n)
{
	unsigned int b;

	/* Frequent: who has not waited, within one turn of a loop. */
	if (!ns) {
		h->n[0] += n;
		h->room = UINT64_MAX;
		return;
	}
	b = hist_bucket(ns >> HIST_UNIT_BITS);
	h->n[MIN(b, HIST_BUCKETS - 1)] += n;
	h->sum += ns * n;
	if (unlikely(ns > h->max))
		h->max = ns;
	if (unlikely(UINT64_MAX - ns > h->room))
		h->room = UINT64_MAX - ns;
}

/* False: a counter would overflow, and there was no memory for a large
 * histogram; then nothing was added. */
bool hist_small_spill(struct hist_small *h) must_check;
static inline bool must_check hist_small_add(struct hist_small *h, uint64_t ns,
					     uint32_t n)
{
	unsigned int b = hist_bucket(ns >> HIST_SMALL_BITS);
	uint32_t *in = &h->n[MIN(b, HIST_SMALL - 1)];

	if (unlikely(*in > UINT32_MAX - n) && !hist_small_spill(h))
		return false;
	*in += n;
	h->sum += ns * n;
	if (unlikely(ns > h->max))
		h->max = ns;
	if (unlikely(UINT64_MAX - ns > h->room))
		h->room = UINT64_MAX - ns;
	return true;
}

/* Frees what the histogram has allocated, not the histogram, which is empty
 * then. */
void hist_small_clear(struct hist_small *h);

/* ---- reading ---- */

/* Adds all values of @from. */
void hist_merge(struct hist *h, const struct hist *from);
void hist_merge_small(struct hist *h, const struct hist_small *from);

uint64_t hist_count(const struct hist *h);
/* The smallest value, exactly; 0 when empty. The largest one is h->max. */
static inline uint64_t hist_min(const struct hist *h)
{
	return h->room ? UINT64_MAX - h->room : 0;
}

/* A value that @per_10000 of 10000 values do not exceed, at least one of them:
 * 5000 is the median, 10000 the largest one. 0 when empty. */
uint64_t hist_quantile(const struct hist *h, unsigned int per_10000);

#endif
