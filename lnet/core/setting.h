/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: numbers of a node that may change while it runs, as in "lnetctl
 * global show". Any thread reads them without locks, so a message that began
 * before a change may go on with the old value.
 */
#ifndef LNET_SETTING_H
#define LNET_SETTING_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/util.h"
#include "ulnet/path.h"

/* The longest timeout, so that sums in ns do not overflow. */
#define TIMEOUT_MAX_SEC INT32_MAX

/* The ping info with more interfaces would not fit into a message. */
#define INTERFACES_LIMIT 40000

/* Bits of response_tracking: which operations end when the answer is late. */
#define TRACK_GETS 1u
#define TRACK_PUTS 2u

/* In the order in which users see them. */
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
	SETTING_LND_TIMEOUT, /* computed from two others */
	SETTING_RESPONSE_TRACKING,
	SETTING_RECOVERY_LIMIT,
	SETTING_RECOVERY_MAX,
	SETTING_HEALTH_GAIN,
	SETTING_BUSY_POLL,
	SETTING_LARGE_NIDS,
	SETTINGS
};

struct settings {
	pthread_mutex_t lock; /* for writers: values depend on each other */
	_Atomic uint64_t value[SETTINGS]; /* times: ns */
	/* Called after a change of discovery, with the lock held. Immutable
	 * after open; may be NULL. */
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

/* In ns; recovery_limit 0: no limit. */
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
/* What a failure takes from the health of an NI, and what a received message
 * gives back (0: as much). */
SETTING_READER(int32_t, health_loss, SETTING_HEALTH_SENSITIVITY)
SETTING_READER(int32_t, health_gain_set, SETTING_HEALTH_GAIN)
static inline int32_t settings_health_gain(const struct settings *s)
{
	int32_t gain = settings_health_gain_set(s);

	return gain ? gain : settings_health_loss(s);
}

#endif
