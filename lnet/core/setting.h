/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings: numbers of a node that may change while it runs, as listed by
 * "lnetctl global show". Any thread reads them without locks, so a message that
 * began before a change may continue with the old value.
 */
#ifndef LNET_SETTING_H
#define LNET_SETTING_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/util.h"
#include "ulnet/path.h"

/* The longest timeout, so that sums in ns do not overflow. */
#define TIMEOUT_MAX_SEC INT32_MAX

/* Most interfaces of a node: a ping info with more would not fit into a
 * message. */
#define INTERFACES_LIMIT 40000

/* Bits of response_tracking: operations that end when their answer is late. */
#define TRACK_GETS 1u
#define TRACK_PUTS 2u

/* In the order in which users see them. */
enum setting {
	SETTING_NUMA_RANGE,
	SETTING_INTERFACES_MAX,
	SETTING_DISCOVERY, /* an enum ulnet_discovery */
	SETTING_DROP_ASYM_ROUTE,
	SETTING_RETRY_COUNT,
	SETTING_TRANSACTION_TIMEOUT,
	SETTING_HEALTH_SENSITIVITY,
	SETTING_RECOVERY_INTERVAL,
	SETTING_ROUTER_SENSITIVITY,
	/* computed from the transaction timeout and the retry count */
	SETTING_LND_TIMEOUT,
	SETTING_RESPONSE_TRACKING,
	SETTING_RECOVERY_LIMIT,
	SETTING_RECOVERY_MAX,
	SETTING_HEALTH_GAIN,
	SETTING_BUSY_POLL,
	SETTING_WAIT_POLL,
	SETTING_LARGE_NIDS,
	SETTING_ROUTER_CHECK,
	SETTINGS
};

struct settings {
	/* locked by writers, because values depend on each other */
	pthread_mutex_t lock;
	_Atomic uint64_t value[SETTINGS]; /* times in ns */
	/* The default of discovery, which the node was opened with. Immutable.
	 */
	int64_t discovery_def;
	/* Called with the lock held after discovery has changed, and after
	 * health was switched on. Immutable after open; may be NULL. */
	void (*discovery_changed)(struct settings *s);
	void (*health_is_on)(struct settings *s);
};

/* @conf must have been checked. @busy_poll: ns. */
void settings_init(struct settings *s, const struct ulnet_conf *conf,
		   uint64_t busy_poll);
void settings_fini(struct settings *s);

#define SETTING_READER(type, name, which)                                \
	static inline type settings_##name(const struct settings *s)     \
	{                                                                \
		return (type)atomic_load_explicit(&s->value[which],      \
						  memory_order_relaxed); \
	}

/* Times in ns. recovery_limit 0: no limit. */
SETTING_READER(uint64_t, transaction_timeout, SETTING_TRANSACTION_TIMEOUT)
SETTING_READER(uint64_t, lnd_timeout, SETTING_LND_TIMEOUT)
SETTING_READER(uint64_t, recovery_limit, SETTING_RECOVERY_LIMIT)
SETTING_READER(uint64_t, recovery_max, SETTING_RECOVERY_MAX)
SETTING_READER(uint64_t, router_check, SETTING_ROUTER_CHECK)
SETTING_READER(uint32_t, retry_count, SETTING_RETRY_COUNT)
SETTING_READER(uint32_t, interfaces_max, SETTING_INTERFACES_MAX)
SETTING_READER(uint32_t, numa_range, SETTING_NUMA_RANGE)
SETTING_READER(uint32_t, response_tracking, SETTING_RESPONSE_TRACKING)
SETTING_READER(uint32_t, router_sensitivity, SETTING_ROUTER_SENSITIVITY)
SETTING_READER(bool, large_nids, SETTING_LARGE_NIDS)
SETTING_READER(bool, drop_asym_route, SETTING_DROP_ASYM_ROUTE)
SETTING_READER(enum ulnet_discovery, discovery, SETTING_DISCOVERY)
/* health_loss: what a failure takes from the health of an NI; 0: health is off,
 * which means that it decides nothing, and that nobody is pinged for it.
 * health_gain: what a received message adds to it; 0: as much as health_loss,
 * or everything while health is off. */
SETTING_READER(int32_t, health_loss, SETTING_HEALTH_SENSITIVITY)
SETTING_READER(int32_t, health_gain_set, SETTING_HEALTH_GAIN)
static inline bool settings_health_is_on(const struct settings *s)
{
	return settings_health_loss(s) != 0;
}
static inline int32_t settings_health_gain(const struct settings *s)
{
	int32_t gain = settings_health_gain_set(s);
	int32_t loss = settings_health_loss(s);

	return gain ? gain : loss ? loss : LNET_HEALTH_MAX;
}
/* A gateway whose health is below this percentage of LNET_HEALTH_MAX is not
 * used if another one is left. */
static inline uint32_t settings_route_health(const struct settings *s)
{
	return settings_health_is_on(s) ? settings_router_sensitivity(s) : 0;
}

#endif
