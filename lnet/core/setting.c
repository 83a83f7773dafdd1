/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/core/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "lnet/core/cpt.h"

#define TRANSACTION_TIMEOUT 50
#define RETRY_COUNT	    2
#define BUSY_POLL_MAX	    1000000 /* us */
#define SENSITIVITY	    100
#define RECOVERY_MAX	    900
#define ROUTER_SENSITIVITY  100

/* One line of the table. What a kernel node takes is min..max; without get()
 * this release can do nothing but the default. */
struct setting {
	const char *name;
	const char *unit;
	const char *help;
	int64_t min, max, def;
	int64_t (*get)(const struct settings *s);
	/* With the lock; @value is in range. -EINVAL: other values forbid it.
	 * NULL: derived. */
	int (*set)(struct settings *s, int64_t value);
};

/* ---- discovery ---- */

/* As kernel nodes count: 0 is off, 1 is on. */
static const uint8_t discovery_modes[] = { LNET_DISCOVERY_OFF,
					   LNET_DISCOVERY_ON,
					   LNET_DISCOVERY_VERIFY };

static int64_t get_discovery(const struct settings *s)
{
	uint8_t mode = settings_discovery(s);
	int64_t i = ARRAY_SIZE(discovery_modes) - 1;

	while (i && discovery_modes[i] != mode)
		i--;
	return i;
}

static int set_discovery(struct settings *s, int64_t value)
{
	uint8_t mode = discovery_modes[value];

	if (atomic_exchange(&s->discovery, mode) != mode &&
	    s->discovery_changed)
		s->discovery_changed(s);
	return 0;
}

/* ---- timeouts ---- */

/* A fraction, which only struct ulnet_conf can have, counts as a whole. */
static int64_t get_transaction_timeout(const struct settings *s)
{
	uint64_t ns = settings_transaction_timeout(s);

	return (int64_t)(ns / NSEC_PER_SEC + (ns % NSEC_PER_SEC != 0));
}

static int64_t get_retry_count(const struct settings *s)
{
	return settings_retry_count(s);
}

static int64_t get_lnd_timeout(const struct settings *s)
{
	return (int64_t)(settings_lnd_timeout(s) / NSEC_PER_SEC);
}

/* Each of retry_count + 1 transmissions gets its part of the time. */
static int64_t lnd_timeout_of(int64_t transaction_timeout, int64_t retry_count)
{
	return MAX(1, (transaction_timeout - 1) / (retry_count + 1));
}

static void update_lnd_timeout(struct settings *s)
{
	int64_t sec =
		lnd_timeout_of(get_transaction_timeout(s), get_retry_count(s));

	atomic_store_explicit(&s->lnd_timeout, (uint64_t)sec * NSEC_PER_SEC,
			      memory_order_relaxed);
}

static int set_transaction_timeout(struct settings *s, int64_t value)
{
	if (value <= get_retry_count(s))
		return -EINVAL;
	atomic_store_explicit(&s->transaction_timeout,
			      (uint64_t)value * NSEC_PER_SEC,
			      memory_order_relaxed);
	update_lnd_timeout(s);
	return 0;
}

static int set_retry_count(struct settings *s, int64_t value)
{
	if (value >= get_transaction_timeout(s))
		return -EINVAL;
	atomic_store_explicit(&s->retry_count, (uint32_t)value,
			      memory_order_relaxed);
	update_lnd_timeout(s);
	return 0;
}

/* ---- health ---- */

static int64_t get_health_sensitivity(const struct settings *s)
{
	return settings_health_loss(s);
}

static int set_health_sensitivity(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->health_sensitivity, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_health_gain(const struct settings *s)
{
	return atomic_load_explicit(&s->health_gain, memory_order_relaxed);
}

static int set_health_gain(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->health_gain, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_recovery_limit(const struct settings *s)
{
	return (int64_t)(settings_recovery_limit(s) / NSEC_PER_SEC);
}

static int set_recovery_limit(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->recovery_limit, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_recovery_max(const struct settings *s)
{
	return (int64_t)(settings_recovery_max(s) / NSEC_PER_SEC);
}

static int set_recovery_max(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->recovery_max, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

/* ---- others ---- */

static int64_t get_interfaces_max(const struct settings *s)
{
	return settings_interfaces_max(s);
}

static int set_interfaces_max(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->interfaces_max, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_numa_range(const struct settings *s)
{
	return settings_numa_range(s);
}

static int set_numa_range(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->numa_range, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_response_tracking(const struct settings *s)
{
	return settings_response_tracking(s);
}

static int set_response_tracking(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->response_tracking, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_router_sensitivity(const struct settings *s)
{
	return settings_router_sensitivity(s);
}

static int set_router_sensitivity(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->router_sensitivity, (uint32_t)value,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_drop_asym_route(const struct settings *s)
{
	return settings_drop_asym_route(s);
}

static int set_drop_asym_route(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->drop_asym_route, value != 0,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_busy_poll(const struct settings *s)
{
	return (int64_t)(atomic_load_explicit(&s->busy_poll,
					      memory_order_relaxed) /
			 NSEC_PER_USEC);
}

static int set_busy_poll(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->busy_poll, (uint64_t)value * NSEC_PER_USEC,
			      memory_order_relaxed);
	return 0;
}

static int64_t get_large_nids(const struct settings *s)
{
	return settings_large_nids(s);
}

static int set_large_nids(struct settings *s, int64_t value)
{
	atomic_store_explicit(&s->large_nids, value != 0, memory_order_relaxed);
	return 0;
}

/* In the order in which they are shown. */
static const struct setting table[] = {
	{ "numa_range", "", "NUMA distance up to which NIs are equally near", 0,
	  INT32_MAX, 0, get_numa_range, set_numa_range },
	{ "max_interfaces", "",
	  "interfaces of this node, and of a peer that are looked at", 1,
	  INTERFACES_LIMIT, 200, get_interfaces_max, set_interfaces_max },
	{ "discovery", "", "peers are asked for their NIDs; 2: to verify only",
	  0, 2, 0, get_discovery, set_discovery },
	{ "drop_asym_route", "",
	  "messages by another way than ours are dropped", 0, 1, 0,
	  get_drop_asym_route, set_drop_asym_route },
	{ "retry_count", "",
	  "tries over a path tried before; divides lnd_timeout", 0,
	  TIMEOUT_MAX_SEC - 1, RETRY_COUNT, get_retry_count, set_retry_count },
	{ "transaction_timeout", "s", "deadline of operations that name none",
	  1, TIMEOUT_MAX_SEC, TRANSACTION_TIMEOUT, get_transaction_timeout,
	  set_transaction_timeout },
	{ "health_sensitivity", "", "what a failure takes from an NI's health",
	  0, LNET_HEALTH_MAX, SENSITIVITY, get_health_sensitivity,
	  set_health_sensitivity },
	{ "recovery_interval", "s", "time between pings of an ill NI", 1,
	  INT32_MAX, 1, NULL, NULL },
	{ "router_sensitivity", "",
	  "percent of its health a router in use must have", 0, 100,
	  ROUTER_SENSITIVITY, get_router_sensitivity, set_router_sensitivity },
	{ "lnd_timeout", "s", "longest wait for a sign of progress", 1,
	  TIMEOUT_MAX_SEC, (TRANSACTION_TIMEOUT - 1) / (RETRY_COUNT + 1),
	  get_lnd_timeout, NULL },
	{ "response_tracking", "",
	  "late answers are given up: 1 of GETs, 2 of PUTs, 3 both, 0 none", 0,
	  TRACK_GETS | TRACK_PUTS, TRACK_GETS | TRACK_PUTS,
	  get_response_tracking, set_response_tracking },
	{ "recovery_limit", "s", "ill NIs are pinged that long; 0: for ever", 0,
	  INT32_MAX, 0, get_recovery_limit, set_recovery_limit },
	{ "max_recovery_ping_interval", "s", "longest time between such pings",
	  1, INT32_MAX, RECOVERY_MAX, get_recovery_max, set_recovery_max },
	{ "health_gain", "",
	  "what a received message gives back; 0: health_sensitivity", 0,
	  LNET_HEALTH_MAX, 0, get_health_gain, set_health_gain },
	{ "busy_poll", "us", "longest polling before a CPT sleeps; 0: none", 0,
	  BUSY_POLL_MAX, 0, get_busy_poll, set_busy_poll },
	{ "large_nids", "",
	  "interfaces give IPv6 NIDs, and peers are offered large NIDs", 0, 1,
	  0, get_large_nids, set_large_nids },
};

void settings_init(struct settings *s, const struct ulnet_conf *conf,
		   uint64_t busy_poll)
{
	int64_t timeout;

	pthread_mutex_init(&s->lock, NULL);
	atomic_init(&s->transaction_timeout,
		    conf->transaction_timeout * NSEC_PER_USEC);
	timeout = get_transaction_timeout(s);
	/* A node with a short timeout has no time for as many. */
	atomic_init(&s->retry_count, (uint32_t)MIN(RETRY_COUNT, timeout - 1));
	atomic_init(&s->health_sensitivity, SENSITIVITY);
	atomic_init(&s->health_gain, 0);
	atomic_init(&s->recovery_limit, 0);
	atomic_init(&s->recovery_max, RECOVERY_MAX);
	atomic_init(&s->interfaces_max, conf->interfaces_max);
	atomic_init(&s->numa_range, 0);
	atomic_init(&s->response_tracking, TRACK_GETS | TRACK_PUTS);
	atomic_init(&s->router_sensitivity, ROUTER_SENSITIVITY);
	atomic_init(&s->drop_asym_route, false);
	atomic_init(&s->large_nids, false);
	atomic_init(&s->busy_poll, busy_poll);
	atomic_init(&s->discovery, (uint8_t)conf->discovery);
	s->discovery_changed = NULL;
	update_lnd_timeout(s);
}

void settings_fini(struct settings *s)
{
	pthread_mutex_destroy(&s->lock);
}

static const struct setting *setting_find(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

/* May it have this value, as far as it alone goes? */
static int setting_check(const struct setting *t, int64_t value)
{
	if (t->get && !t->set) {
		log_warn("setting", "%s follows from others", t->name);
		return -EPERM;
	}
	if (value < t->min || value > t->max) {
		log_warn("setting",
			 "%s: %" PRId64 " is not within %" PRId64
			 " to %" PRId64,
			 t->name, value, t->min, t->max);
		return -EINVAL;
	}
	if (!t->get && value != t->def) {
		log_warn("setting",
			 "%s: %" PRId64 ": this release knows %" PRId64 " only",
			 t->name, value, t->def);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* As lnet_setting_set(3). */
static int settings_set(struct settings *s, const char *name, int64_t value)
{
	const struct setting *t = setting_find(name);
	int64_t before;
	int rc;

	if (!t) {
		log_warn("setting", "%s: there is no such setting", name);
		return -ENOENT;
	}
	rc = setting_check(t, value);
	if (rc || !t->set)
		return rc;
	pthread_mutex_lock(&s->lock);
	before = t->get(s);
	rc = t->set(s, value);
	pthread_mutex_unlock(&s->lock);
	if (rc)
		log_warn("setting",
			 "%s: %" PRId64
			 ": transaction_timeout must be above retry_count",
			 name, value);
	else if (before != value)
		log_info("setting", "%s: %" PRId64 ", was %" PRId64, name,
			 value, before);
	return rc;
}

int lnet_setting_set(struct lnet *node, const char *name, int64_t value)
{
	return settings_set(&node->settings, name, value);
}

int lnet_settings(struct lnet *node, struct ulnet_setting *settings,
		  unsigned int n)
{
	for (unsigned int i = 0; i < n && i < ARRAY_SIZE(table); i++) {
		const struct setting *t = &table[i];

		settings[i] = (struct ulnet_setting){
			.name = t->name,
			.unit = t->unit,
			.help = t->help,
			.value = t->get ? t->get(&node->settings) : t->def,
			.min = t->get ? t->min : t->def,
			.max = t->get ? t->max : t->def,
			.def = t->def,
			.derived = t->get && !t->set,
		};
	}
	return (int)ARRAY_SIZE(table);
}
