/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Estimates of how long something takes, from what it took lately: struct
 * estimate, an upper bound for time-outs, and struct mean, for what stays near
 * its mean.
 *
 * An estimate is the larger one of
 * - a time that 999 of 1000 samples do not exceed; the weight of a sample
 *   halves with every ESTIMATE_HALF_LIFE, and is 0 after three of them;
 * - the longest sample of the last ESTIMATE_RECENT, or of up to twice that
 *   time, so that the estimate follows at once when a server becomes slow.
 * So a single sample that is far off is forgotten within seconds where there
 * are many samples, and within minutes where there are few.
 *
 * A sample is the time that work took, measured where it was done; never how
 * long somebody was willing to wait for it, because that time comes from an
 * estimate.
 *
 * Adding a sample takes a few instructions; so does reading, except once in
 * ESTIMATE_RECENT. An estimate that is all 0 is empty. Times are ns of one
 * monotonic clock; a time before the last one counts as the last one. Only one
 * thread at a time may use an estimate.
 */
#ifndef RPC_ESTIMATE_H
#define RPC_ESTIMATE_H

#include <stdatomic.h>
#include "base/util.h"

/* Four buckets for each doubling of the time, from 1 us to more than an hour.
 */
#define ESTIMATE_BUCKETS   128u
#define ESTIMATE_RECENT	   (2 * NSEC_PER_SEC)
#define ESTIMATE_HALF_LIFE (60 * NSEC_PER_SEC)

struct estimate {
	/* the value of now / ESTIMATE_RECENT when the estimate was last used */
	uint64_t span;
	/* ns: the longest sample of this span, and of the span before */
	uint64_t recent[2];
	/* ns that 999 of 1000 samples do not exceed; computed when the span
	 * began */
	uint64_t tail;
	uint32_t weight[ESTIMATE_BUCKETS];
};

/* Adds @n samples of @ns each, at @now. */
void estimate_add(struct estimate *e, uint64_t ns, uint32_t n, uint64_t now);
/* Returns the estimate in ns, at most a quarter above the longest sample; 0:
 * there is no sample, or none that still counts. */
uint64_t estimate_read(struct estimate *e, uint64_t now);

/* ---- means ---- */

/*
 * A decaying mean, and the decaying mean of the distance from it, as TCP
 * estimates round trips. Any thread may add and read; of two samples that are
 * added at the same time, one may be lost, which does no harm.
 */
struct mean {
	_Atomic uint64_t value; /* the mean, in ns; 0: there is no sample yet */
	_Atomic uint64_t deviation;
};

static inline uint64_t mean_value(const struct mean *m)
{
	return atomic_load_explicit(&m->value, memory_order_relaxed);
}

static inline uint64_t mean_deviation(const struct mean *m)
{
	return atomic_load_explicit(&m->deviation, memory_order_relaxed);
}

/* Returns, in ns, the mean plus @deviations times the mean distance from it.
 * Most samples are below that with two deviations, and nearly all with four. */
static inline uint64_t mean_upto(const struct mean *m, unsigned int deviations)
{
	return mean_value(m) + deviations * mean_deviation(m);
}

static inline void mean_add(struct mean *m, uint64_t ns)
{
	uint64_t value = mean_value(m), distance;
	uint64_t deviation = mean_deviation(m);

	if (ns == 0)
		ns = 1;
	distance = ns > value ? ns - value : value - ns;
	if (value == 0) {
		value = ns;
		deviation = ns / 2;
	} else {
		deviation = deviation - deviation / 4 + distance / 4;
		value = value - value / 8 + ns / 8;
	}
	/* A mean of 0 would say that there is no sample. */
	atomic_store_explicit(&m->value, value ? value : 1,
			      memory_order_relaxed);
	atomic_store_explicit(&m->deviation, deviation, memory_order_relaxed);
}

#endif
