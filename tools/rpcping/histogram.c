/* SPDX-License-Identifier: BSD-3-Clause */
#include "histogram.h"

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	if (!from->n)
		return;
	if (!to->n || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->n += from->n;
	to->sum += from->sum;
	for (unsigned int i = 0; i < HISTOGRAM_SIZE; i++)
		to->count[i] += from->count[i];
}

static uint64_t middle_of(unsigned int index)
{
	unsigned int shift;
	uint64_t low;

	if (index < 2u << HISTOGRAM_BITS)
		return index;
	shift = (index >> HISTOGRAM_BITS) - 1;
	low = (uint64_t)(index - (shift << HISTOGRAM_BITS)) << shift;
	return low + ((UINT64_C(1) << shift) - 1) / 2;
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
	uint64_t rank = (uint64_t)(q * (double)h->n), seen = 0, ns;

	if (!h->n)
		return 0;
	/* The rank is rounded up, and at least 1. */
	if ((double)rank < q * (double)h->n || !rank)
		rank++;
	if (rank >= h->n)
		return h->max;
	for (unsigned int i = 0; i < HISTOGRAM_SIZE; i++) {
		seen += h->count[i];
		if (seen < rank)
			continue;
		ns = middle_of(i);
		return ns < h->min ? h->min : ns > h->max ? h->max : ns;
	}
	return h->max;
}

void histogram_since(struct histogram *to, const struct histogram *now,
		     const struct histogram *before)
{
	to->n = now->n - before->n;
	to->min = now->min;
	to->max = now->max;
	to->sum = now->sum - before->sum;
	for (unsigned int i = 0; i < HISTOGRAM_SIZE; i++)
		to->count[i] = now->count[i] - before->count[i];
}
