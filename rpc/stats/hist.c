/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stats/hist.h"

#include <stdlib.h>
#include <string.h>

/* Returns the value, in ns, that stands for all values in a bucket. */
static uint64_t middle(unsigned int bucket, unsigned int unit_bits)
{
	uint64_t low, end = hist_range(bucket, unit_bits, &low);

	return low + (end - low) / 2;
}

static void add_buckets(struct hist *h, const struct hist_small *from)
{
	for (unsigned int i = 0; i < HIST_SMALL; i++) {
		uint64_t ns = middle(i, HIST_SMALL_BITS);

		if (from->n[i])
			h->n[hist_bucket(ns >> HIST_UNIT_BITS)] += from->n[i];
	}
}

bool hist_small_spill(struct hist_small *h)
{
	if (!h->spilled)
		h->spilled = calloc(1, sizeof(*h->spilled));
	if (!h->spilled)
		return false;
	add_buckets(h->spilled, h);
	memset(h->n, 0, sizeof(h->n));
	return true;
}

void hist_add_fine(struct hist *h, uint64_t base, const struct hist_fine *f,
		   uint32_t n)
{
	uint64_t not_min = UINT64_MAX - base - (UINT32_MAX - f->not_min);

	for (unsigned int i = 0; i < HIST_FINE; i++) {
		unsigned int b = hist_bucket((base >> HIST_UNIT_BITS) + i);

		h->n[MIN(b, HIST_BUCKETS - 1)] += f->n[i];
	}
	h->sum += base * n + f->sum;
	h->max = MAX(h->max, base + f->max);
	h->not_min = MAX(h->not_min, not_min);
}

bool hist_small_add_fine(struct hist_small *h, uint64_t base,
			 const struct hist_fine *f, uint32_t n)
{
	uint64_t not_min = UINT64_MAX - base - (UINT32_MAX - f->not_min);

	for (unsigned int i = 0; i < HIST_FINE; i++) {
		unsigned int b = hist_bucket((base + (i << HIST_UNIT_BITS)) >>
					     HIST_SMALL_BITS);
		uint32_t *in = &h->n[MIN(b, HIST_SMALL - 1)];

		if (unlikely(*in > UINT32_MAX - f->n[i]) &&
		    !hist_small_spill(h))
			return false;
		*in += f->n[i];
	}
	h->sum += base * n + f->sum;
	h->max = MAX(h->max, base + f->max);
	h->not_min = MAX(h->not_min, not_min);
	return true;
}

void hist_small_clear(struct hist_small *h)
{
	free(h->spilled);
	*h = (struct hist_small){ 0 };
}

/* ---- reading ---- */

static void merge_bounds(struct hist *h, uint64_t sum, uint64_t max,
			 uint64_t not_min)
{
	h->sum += sum;
	h->max = MAX(h->max, max);
	h->not_min = MAX(h->not_min, not_min);
}

void hist_merge(struct hist *h, const struct hist *from)
{
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		h->n[i] += from->n[i];
	merge_bounds(h, from->sum, from->max, from->not_min);
}

void hist_merge_small(struct hist *h, const struct hist_small *from)
{
	if (from->spilled)
		hist_merge(h, from->spilled);
	add_buckets(h, from);
	merge_bounds(h, from->sum, from->max, from->not_min);
}

void hist_subtract(struct hist *h, const struct hist *part)
{
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		h->n[i] -= part->n[i];
	h->sum -= part->sum;
}

uint64_t hist_count(const struct hist *h)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		count += h->n[i];
	return count;
}

uint64_t hist_quantile(const struct hist *h, unsigned int per_10000)
{
	unsigned __int128 all = (unsigned __int128)hist_count(h) * per_10000;
	uint64_t rank = (uint64_t)((all + 9999) / 10000), seen = 0;
	unsigned int i = 0;

	if (!h->not_min)
		return 0;
	rank = MAX(rank, 1);
	while (i < HIST_BUCKETS - 1 && (seen += h->n[i]) < rank)
		i++;
	if (i == HIST_BUCKETS - 1 && h->max >> HIST_RANGE_BITS)
		return h->max; /* the bucket has no end */
	return MAX(MIN(middle(i, HIST_UNIT_BITS), h->max), hist_min(h));
}
