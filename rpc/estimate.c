/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/estimate.h"

/* The weight of a new sample. Three halvings make it 0. */
#define WEIGHT 4u
/* One part in TAIL of the weight may be above the tail. */
#define TAIL 1000u
/* The first bucket begins at 2^FIRST ns; shorter times count there, too. */
#define FIRST 10u
#define SPANS (ESTIMATE_HALF_LIFE / ESTIMATE_RECENT)

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int octave;

	if (ns < UINT64_C(1) << FIRST)
		return 0;
	octave = 63 - (unsigned int)__builtin_clzll(ns) - FIRST;
	if (octave >= ESTIMATE_BUCKETS / 4)
		return ESTIMATE_BUCKETS - 1;
	return octave * 4 + (ns >> (octave + FIRST - 2) & 3);
}

/* Returns a time in ns that is longer than any sample in bucket @b. */
static uint64_t bucket_end(unsigned int b)
{
	return (UINT64_C(5) + b % 4) << (b / 4 + FIRST - 2);
}

static uint64_t tail_of(const struct estimate *e)
{
	unsigned int b = ESTIMATE_BUCKETS;
	uint64_t all = 0, above = 0;

	for (unsigned int i = 0; i < ESTIMATE_BUCKETS; i++)
		all += e->weight[i];
	if (!all)
		return 0;
	while (above <= all / TAIL)
		above += e->weight[--b];
	return bucket_end(b);
}

static void halve(struct estimate *e, uint64_t times)
{
	unsigned int shift = times < 31 ? (unsigned int)times : 31;

	for (unsigned int i = 0; i < ESTIMATE_BUCKETS; i++)
		e->weight[i] >>= shift;
}

static out_of_line void estimate_advance(struct estimate *e, uint64_t span)
{
	e->recent[1] = span == e->span + 1 ? e->recent[0] : 0;
	e->recent[0] = 0;
	if (span / SPANS != e->span / SPANS)
		halve(e, span / SPANS - e->span / SPANS);
	e->span = span;
	e->tail = tail_of(e);
}

static void estimate_settle(struct estimate *e, uint64_t now)
{
	if (unlikely(now / ESTIMATE_RECENT > e->span))
		estimate_advance(e, now / ESTIMATE_RECENT);
}

void estimate_add(struct estimate *e, uint64_t ns, uint32_t n, uint64_t now)
{
	uint32_t *weight = &e->weight[bucket_of(ns)];
	uint64_t sum;

	if (!n)
		return;
	estimate_settle(e, now);
	sum = *weight + (uint64_t)n * WEIGHT;
	*weight = (uint32_t)MIN(sum, UINT32_MAX);
	/* 0 would say that there is no sample. */
	e->recent[0] = MAX(e->recent[0], MAX(ns, 1));
}

uint64_t estimate_read(struct estimate *e, uint64_t now)
{
	estimate_settle(e, now);
	return MAX(e->tail, MAX(e->recent[0], e->recent[1]));
}
