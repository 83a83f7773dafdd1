/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: numbers of a node that may change while it runs, those of
 * "lnetctl global show". What this release acts on is kept here; the rest are
 * constants of the table in setting.c.
 *
 * Any thread reads, without locks: a message that began before a change may go
 * on with what was.
 */
#ifndef LNET_SETTING_H
#define LNET_SETTING_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/util.h"
#include "ulnet/path.h"

/* Longest timeouts, so that sums of ns never overflow. */
#define TIMEOUT_MAX_SEC INT32_MAX

/* A ping information with more does not fit into a message. */
#define INTERFACES_LIMIT 40000

/* Bits of response_tracking: operations that end when the answer is late. */
#define TRACK_GETS 1u
#define TRACK_PUTS 2u

struct settings {
	pthread_mutex_t lock; /* of writers: values depend on each other */
	_Atomic uint64_t transaction_timeout; /* ns */
	_Atomic uint64_t lnd_timeout;	      /* ns; follows from two others */
	_Atomic uint32_t retry_count;
	_Atomic uint32_t health_sensitivity;
	_Atomic uint32_t health_gain; /* 0: as much */
	_Atomic uint32_t recovery_limit; /* s; 0: none */
	_Atomic uint32_t recovery_max;	 /* s */
	_Atomic uint32_t interfaces_max;
	_Atomic uint32_t numa_range;
	_Atomic uint32_t response_tracking; /* TRACK_* */
	_Atomic uint32_t router_sensitivity; /* percent */
	atomic_bool drop_asym_route;
	atomic_bool large_nids;
	_Atomic uint8_t discovery;	    /* enum ulnet_discovery */
	/* Is called after a change of discovery, with the lock. Immutable after
	 * open; NULL: nobody is to know. */
	void (*discovery_changed)(struct settings *s);
	_Atomic uint64_t busy_poll;	    /* ns */
};

/* @conf: checked. @busy_poll: ns. */
void settings_init(struct settings *s, const struct ulnet_conf *conf,
		   uint64_t busy_poll);
void settings_fini(struct settings *s);

static inline uint64_t settings_transaction_timeout(const struct settings *s)
{
	return atomic_load_explicit(&s->transaction_timeout,
				    memory_order_relaxed);
}

static inline uint64_t settings_lnd_timeout(const struct settings *s)
{
	return atomic_load_explicit(&s->lnd_timeout, memory_order_relaxed);
}

static inline uint32_t settings_retry_count(const struct settings *s)
{
	return atomic_load_explicit(&s->retry_count, memory_order_relaxed);
}

/* What a failure takes from the health of an NI, and what a message that was
 * received gives to it. */
static inline int32_t settings_health_loss(const struct settings *s)
{
	return (int32_t)atomic_load_explicit(&s->health_sensitivity,
					     memory_order_relaxed);
}
static inline int32_t settings_health_gain(const struct settings *s)
{
	uint32_t gain = atomic_load_explicit(&s->health_gain,
					     memory_order_relaxed);

	return gain ? (int32_t)gain : settings_health_loss(s);
}

static inline enum ulnet_discovery
settings_discovery(const struct settings *s)
{
	return (enum ulnet_discovery)atomic_load_explicit(&s->discovery,
							  memory_order_relaxed);
}

/* ns; 0: no limit. */
static inline uint64_t settings_recovery_limit(const struct settings *s)
{
	return NSEC_PER_SEC * atomic_load_explicit(&s->recovery_limit,
						   memory_order_relaxed);
}
/* ns */
static inline uint64_t settings_recovery_max(const struct settings *s)
{
	return NSEC_PER_SEC * atomic_load_explicit(&s->recovery_max,
						   memory_order_relaxed);
}

static inline uint32_t settings_interfaces_max(const struct settings *s)
{
	return atomic_load_explicit(&s->interfaces_max, memory_order_relaxed);
}

static inline bool settings_large_nids(const struct settings *s)
{
	return atomic_load_explicit(&s->large_nids, memory_order_relaxed);
}

static inline uint32_t settings_numa_range(const struct settings *s)
{
	return atomic_load_explicit(&s->numa_range, memory_order_relaxed);
}

/* Percent of its health that a gateway must have to be in use. */
static inline uint32_t settings_router_sensitivity(const struct settings *s)
{
	return atomic_load_explicit(&s->router_sensitivity,
				    memory_order_relaxed);
}

static inline bool settings_drop_asym_route(const struct settings *s)
{
	return atomic_load_explicit(&s->drop_asym_route, memory_order_relaxed);
}

static inline uint32_t settings_response_tracking(const struct settings *s)
{
	return atomic_load_explicit(&s->response_tracking,
				    memory_order_relaxed);
}

#endif
