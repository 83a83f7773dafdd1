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

/* In the order in which they are shown. */
enum setting {
	SETTING_NUMA_RANGE,
	SETTING_INTERFACES_MAX,
	SETTING_DISCOVERY, /* kept as enum ulnet_discovery */
	SETTING_DROP_ASYM_ROUTE,
	SETTING_RETRY_COUNT,
	SETTING_TRANSACTION_TIMEOUT,
	SETTING_HEALTH_SENSITIVITY,
	SETTING_RECOVERY_INTERVAL,
	SETTING_ROUTER_SENSITIVITY,
	SETTING_LND_TIMEOUT, /* follows from two others */
	SETTING_RESPONSE_TRACKING,
	SETTING_RECOVERY_LIMIT,
	SETTING_RECOVERY_MAX,
	SETTING_HEALTH_GAIN,
	SETTING_BUSY_POLL,
	SETTING_LARGE_NIDS,
	SETTINGS
};

struct settings {
	pthread_mutex_t lock; /* of writers: values depend on each other */
	_Atomic uint64_t value[SETTINGS]; /* times: ns */
	/* Is called after a change of discovery, with the lock. Immutable after
	 * open; NULL: nobody is to know. */
	void (*discovery_changed)(struct settings *s);
};

/* @conf: checked. @busy_poll: ns. */
void settings_init(struct settings *s, const struct ulnet_conf *conf,
		   uint64_t busy_poll);
void settings_fini(struct settings *s);

#define SETTING_READER(type, name, which)                                \
	static inline type settings_##name(const struct settings *s)     \
	{                                                                \
		return (type)atomic_load_explicit(&s->value[which],      \
						  memory_order_relaxed); \
	}

/* ns; a limit of 0 is none */
SETTING_READER(uint64_t, transaction_timeout, SETTING_TRANSACTION_TIMEOUT)
SETTING_READER(uint64_t, lnd_timeout, SETTING_LND_TIMEOUT)
SETTING_READER(uint64_t, recovery_limit, SETTING_RECOVERY_LIMIT)
SETTING_READER(uint64_t, recovery_max, SETTING_RECOVERY_MAX)
SETTING_READER(uint32_t, retry_count, SETTING_RETRY_COUNT)
SETTING_READER(uint32_t, interfaces_max, SETTING_INTERFACES_MAX)
SETTING_READER(uint32_t, numa_range, SETTING_NUMA_RANGE)
SETTING_READER(uint32_t, response_tracking, SETTING_RESPONSE_TRACKING)
/* Percent of its health that a gateway must have to be in use. */
SETTING_READER(uint32_t, router_sensitivity, SETTING_ROUTER_SENSITIVITY)
SETTING_READER(bool, large_nids, SETTING_LARGE_NIDS)
SETTING_READER(bool, drop_asym_route, SETTING_DROP_ASYM_ROUTE)
SETTING_READER(enum ulnet_discovery, discovery, SETTING_DISCOVERY)
/* What a failure takes from the health of an NI, and what a message that was
 * received gives to it (0: as much). */
SETTING_READER(int32_t, health_loss, SETTING_HEALTH_SENSITIVITY)
SETTING_READER(int32_t, health_gain_set, SETTING_HEALTH_GAIN)
static inline int32_t settings_health_gain(const struct settings *s)
{
	int32_t gain = settings_health_gain_set(s);

	return gain ? gain : settings_health_loss(s);
}

#endif
