/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log-linear histograms of times in ns: eight buckets for each doubling. A
 * value that is read from a histogram is wrong by at most a sixteenth (6.25 %),
 * or by half a unit if that is more; by a whole unit if a small histogram was
 * merged into a large one. The last bucket has all values of 69 minutes and
 * more. The sum, the smallest and the largest value are exact.
 *
 * There are two sizes: struct hist (unit 64 ns, 2.2 KiB) for what there are few
 * of, struct hist_small (unit 1024 ns, 1 KiB) for what there may be many of.
 * Zeroed memory is an empty histogram. Adding never locks. It allocates only
 * when a counter of a small histogram is full: the counts then move to a large
 * histogram.
 *
 * Thread: the owner's, also for reading.
 */
#ifndef RPC_HIST_H
#define RPC_HIST_H

#include "base/util.h"

#define HIST_STEPS_BITS 3 /* log2 of the buckets for each doubling */
#define HIST_STEPS	(1u << HIST_STEPS_BITS)
#define HIST_RANGE_BITS 42 /* 2^42 ns: 73 minutes */
#define HIST_BUCKETS_OF(unit_bits) \
	((HIST_RANGE_BITS - (unit_bits)-HIST_STEPS_BITS + 1) * HIST_STEPS)

#define HIST_UNIT_BITS	6
#define HIST_BUCKETS	HIST_BUCKETS_OF(HIST_UNIT_BITS)
#define HIST_SMALL_BITS 10
#define HIST_SMALL	HIST_BUCKETS_OF(HIST_SMALL_BITS)

struct hist {
	uint64_t sum, max; /* in ns */
	/* UINT64_MAX minus the smallest value; 0: the histogram is empty */
	uint64_t not_min;
	uint64_t n[HIST_BUCKETS];
};

struct hist_small {
	uint64_t sum, max, not_min; /* as in struct hist, of all values */
	/* holds counts that did not fit into n[]; NULL: none. Only its n[] is
	 * used */
	struct hist *spilled;
	uint32_t n[HIST_SMALL];
};
_Static_assert(sizeof(struct hist_small) <= 1024, "one for each peer");

/* Returns the bucket of a value of @v units. Each value below HIST_STEPS has a
 * bucket of its own. */
static inline unsigned int hist_bucket(uint64_t v)
{
	unsigned int shift;

	if (v < HIST_STEPS)
		return (unsigned int)v;
	shift = 63 - HIST_STEPS_BITS - (unsigned int)__builtin_clzll(v);
	return shift * HIST_STEPS + (unsigned int)(v >> shift);
}

/* Returns the time, in ns, up to which (not including it) values are in
 * @bucket, and sets *@low to the time from which on they are. */
static inline uint64_t hist_range(unsigned int bucket, unsigned int unit_bits,
				  uint64_t *low)
{
	unsigned int shift = bucket < HIST_STEPS ? 0 : bucket / HIST_STEPS - 1;

	*low = (uint64_t)(bucket - shift * HIST_STEPS) << shift << unit_bits;
	return *low + (UINT64_C(1) << shift << unit_bits);
}

/* Adds @n values of @ns each. */
static inline void hist_add(struct hist *h, uint64_t ns, uint32_t n)
{
	unsigned int b;

	/* frequent, since the clock stands still within a turn */
	if (!ns) {
		h->n[0] += n;
		h->not_min = UINT64_MAX;
		return;
	}
	b = hist_bucket(ns >> HIST_UNIT_BITS);
	h->n[MIN(b, HIST_BUCKETS - 1)] += n;
	h->sum += ns * n;
	if (unlikely(ns > h->max))
		h->max = ns;
	if (unlikely(UINT64_MAX - ns > h->not_min))
		h->not_min = UINT64_MAX - ns;
}

/* Moves the counts of @h to a large histogram. Returns false if there is no
 * memory. */
bool hist_small_spill(struct hist_small *h) must_check;
/* Adds @n values of @ns each. Returns false if nothing was added, because a
 * counter would overflow and hist_small_spill() has failed. */
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
	if (unlikely(UINT64_MAX - ns > h->not_min))
		h->not_min = UINT64_MAX - ns;
	return true;
}

/*
 * Values below HIST_FINE_END of which many come one after another, as they are
 * collected before they are added to several histograms. Zeroed memory has
 * none.
 */
#define HIST_FINE     32
#define HIST_FINE_END (HIST_FINE << HIST_UNIT_BITS) /* ns: 2048 */

struct hist_fine {
	uint64_t sum;
	uint32_t max, not_min; /* as in struct hist */
	uint8_t n[HIST_FINE];  /* by unit, not by bucket */
};

/* Adds a value of @ns, less than HIST_FINE_END. Returns false if it is the last
 * one for which there is room. */
static inline bool hist_fine_add(struct hist_fine *f, uint32_t ns)
{
	f->sum += ns;
	if (unlikely(ns > f->max))
		f->max = ns;
	if (unlikely(UINT32_MAX - ns > f->not_min))
		f->not_min = UINT32_MAX - ns;
	return likely(++f->n[ns >> HIST_UNIT_BITS] < UINT8_MAX);
}

/* Add all @n values of @f, each @base ns longer, to @h. The second returns
 * false if not all were added, as hist_small_add(). */
void hist_add_fine(struct hist *h, uint64_t base, const struct hist_fine *f,
		   uint32_t n);
bool must_check hist_small_add_fine(struct hist_small *h, uint64_t base,
				    const struct hist_fine *f, uint32_t n);

/* Empties the histogram, and frees the memory that it has allocated. */
void hist_small_clear(struct hist_small *h);

/* ---- reading ---- */

/* Add all values of @from to @h. */
void hist_merge(struct hist *h, const struct hist *from);
void hist_merge_small(struct hist *h, const struct hist_small *from);

/* Takes the values of @part, which were added to @h as well, off the buckets
 * and the sum of @h. */
void hist_subtract(struct hist *h, const struct hist *part);

uint64_t hist_count(const struct hist *h);
/* Returns the smallest value, in ns; 0: the histogram is empty. The largest
 * value is h->max. */
static inline uint64_t hist_min(const struct hist *h)
{
	return h->not_min ? UINT64_MAX - h->not_min : 0;
}

/* Returns the value, in ns, that @per_10000 of 10000 values do not exceed: 5000
 * gives the median, 10000 the largest value. 0: the histogram is empty. */
uint64_t hist_quantile(const struct hist *h, unsigned int per_10000);

#endif
