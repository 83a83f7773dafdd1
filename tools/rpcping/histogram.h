/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts times in buckets whose width grows with the time: 64 to each power of
 * two, so that what is read is wrong by less than 1 %.
 */
#ifndef TOOLS_HISTOGRAM_H
#define TOOLS_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 6
#define HISTOGRAM_TOP  44 /* bits; what is longer, 4.8 hours, is that long */
#define HISTOGRAM_SIZE ((HISTOGRAM_TOP - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

/* All zero is empty. */
struct histogram {
	uint64_t n;
	uint64_t min, max; /* exact; ns */
	uint64_t sum;
	uint64_t count[HISTOGRAM_SIZE];
};

/* The bucket of @ns, which is below 2 to the power of HISTOGRAM_TOP. */
static inline unsigned int histogram_index(uint64_t ns)
{
	unsigned int shift;

	if (ns < 1u << HISTOGRAM_BITS)
		return (unsigned int)ns;
	shift = 63 - HISTOGRAM_BITS - (unsigned int)__builtin_clzll(ns);
	return (shift << HISTOGRAM_BITS) + (unsigned int)(ns >> shift);
}

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	if (ns >> HISTOGRAM_TOP)
		ns = (UINT64_C(1) << HISTOGRAM_TOP) - 1;
	if (!h->n++ || ns < h->min)
		h->min = ns;
	if (ns > h->max)
		h->max = ns;
	h->sum += ns;
	h->count[histogram_index(ns)]++;
}

void histogram_merge(struct histogram *to, const struct histogram *from);
/* What a histogram has counted between two moments; min and max are those of
 * @now. */
void histogram_since(struct histogram *to, const struct histogram *now,
		     const struct histogram *before);
/* The time that a share @q (0 to 1) of the times does not exceed, ns: the
 * middle of its bucket, but not beyond min and max. 0 without any. */
uint64_t histogram_quantile(const struct histogram *h, double q);

#endif
