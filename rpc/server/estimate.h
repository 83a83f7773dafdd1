/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long something takes, from what it took lately: a decaying mean, and a
 * decaying mean of the distance from that, as TCP estimates its round trips.
 *
 * Any thread may add and read. Two that add at the same time may lose one of
 * the two samples, which costs nothing: the next one is as good.
 */
#ifndef RPC_ESTIMATE_H
#define RPC_ESTIMATE_H

#include <stdatomic.h>
#include <stdint.h>

struct estimate {
	_Atomic uint64_t mean; /* ns; 0: there is no sample yet */
	_Atomic uint64_t deviation;
};

static inline uint64_t estimate_mean(const struct estimate *e)
{
	return atomic_load_explicit(&e->mean, memory_order_relaxed);
}

/* Most samples are below this. */
static inline uint64_t estimate_most(const struct estimate *e)
{
	return estimate_mean(e) +
	       2 * atomic_load_explicit(&e->deviation, memory_order_relaxed);
}

static inline void estimate_add(struct estimate *e, uint64_t ns)
{
	uint64_t mean = estimate_mean(e), distance;
	uint64_t deviation =
		atomic_load_explicit(&e->deviation, memory_order_relaxed);

	if (ns == 0)
		ns = 1;
	distance = ns > mean ? ns - mean : mean - ns;
	if (mean == 0) {
		mean = ns;
		deviation = ns / 2;
	} else {
		deviation = deviation - deviation / 4 + distance / 4;
		mean = mean - mean / 8 + ns / 8;
	}
	/* A mean of 0 would say that there is no sample. */
	atomic_store_explicit(&e->mean, mean ? mean : 1, memory_order_relaxed);
	atomic_store_explicit(&e->deviation, deviation, memory_order_relaxed);
}

#endif
