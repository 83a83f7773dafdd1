/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters with one writer, the owner, and any number of readers, who may see a
 * change late: a counter orders no other memory.
 */
#ifndef BASE_STAT_H
#define BASE_STAT_H

#include <stdatomic.h>
#include "base/util.h"

typedef _Atomic uint64_t stat_t;

static inline uint64_t stat_get(const stat_t *s)
{
	return atomic_load_explicit(s, memory_order_relaxed);
}

static inline void stat_set(stat_t *s, uint64_t v)
{
	atomic_store_explicit(s, v, memory_order_relaxed);
}

static inline void stat_add(stat_t *s, uint64_t n)
{
	stat_set(s, stat_get(s) + n);
}

static inline void stat_inc(stat_t *s)
{
	stat_add(s, 1);
}

#endif
