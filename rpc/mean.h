/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long something takes, from what it took lately: a decaying mean, and a
 * decaying mean of the distance from that, as TCP estimates its round trips.
 * For what is known to be near its mean; estimate.h is for what is not.
 *
 * Any thread may add and read. Two that add at the same time may lose one of
 * the two samples, which costs nothing: the next one is as good.
 */
#ifndef RPC_MEAN_H
#define RPC_MEAN_H

#include <stdatomic.h>
#include <stdint.h>

struct mean {
	_Atomic uint64_t value; /* ns; 0: there is no sample yet */
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

/* The mean, and so many deviations more: two are above most samples, four
 * above nearly all. */
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
