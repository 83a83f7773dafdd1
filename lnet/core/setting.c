/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/core/setting.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "lnet/core/cpt.h"

#define TRANSACTION_TIMEOUT 50
#define RETRY_COUNT	    2
#define BUSY_POLL_MAX	    1000000 /* us: the highest busy_poll, wait_poll */
/* us: about the time that it takes to sleep and to wake up */
#define WAIT_POLL 50

/* A line of the table. min and max are those of kernel nodes. */
struct setting_row {
	const char *name;
	const char *unit;
	const char *help;
	int64_t min, max, def;
};

/* In the order of enum setting. */
static const struct setting_row table[] = {
	{ "numa_range", "", "NUMA distance up to which NIs are equally near", 0,
	  INT32_MAX, 0 },
	{ "max_interfaces", "",
	  "interfaces of this node, and of a peer that are looked at", 1,
	  INTERFACES_LIMIT, 200 },
	{ "discovery", "", "peers are asked for their NIDs; 2: to verify only",
	  0, 2, 0 },
	{ "drop_asym_route", "",
	  "messages by another way than ours are dropped", 0, 1, 0 },
	{ "retry_count", "",
	  "tries over a path tried before; divides lnd_timeout", 0,
	  TIMEOUT_MAX_SEC - 1, RETRY_COUNT },
	{ "transaction_timeout", "s", "deadline of operations that name none",
	  1, TIMEOUT_MAX_SEC, TRANSACTION_TIMEOUT },
	{ "health_sensitivity", "", "what a failure takes from an NI's health",
	  0, LNET_HEALTH_MAX, 100 },
	{ "recovery_interval", "s", "time between pings of an ill NI", 1,
	  INT32_MAX, 1 },
	{ "router_sensitivity", "",
	  "percent of its health a router in use must have", 0, 100, 100 },
	{ "lnd_timeout", "s", "longest wait for a sign of progress", 1,
	  TIMEOUT_MAX_SEC, (TRANSACTION_TIMEOUT - 1) / (RETRY_COUNT + 1) },
	{ "response_tracking", "",
	  "late answers are given up: 1 of GETs, 2 of PUTs, 3 both, 0 none", 0,
	  TRACK_GETS | TRACK_PUTS, TRACK_GETS | TRACK_PUTS },
	{ "recovery_limit", "s", "ill NIs are pinged that long; 0: for ever", 0,
	  INT32_MAX, 0 },
	{ "max_recovery_ping_interval", "s", "longest time between such pings",
	  1, INT32_MAX, 900 },
	{ "health_gain", "",
	  "what a received message gives back; 0: health_sensitivity", 0,
	  LNET_HEALTH_MAX, 0 },
	{ "busy_poll", "us", "longest polling before a CPT sleeps; 0: none", 0,
	  BUSY_POLL_MAX, 0 },
	{ "wait_poll", "us",
	  "longest polling before a thread that waits sleeps; 0: none", 0,
	  BUSY_POLL_MAX, WAIT_POLL },
	{ "large_nids", "",
	  "interfaces give IPv6 NIDs, and peers are offered large NIDs", 0, 1,
	  0 },
	{ "alive_router_check_interval", "s",
	  "time between two checks of a gateway", 1, INT32_MAX, 60 },
};
_Static_assert(ARRAY_SIZE(table) == SETTINGS, "a row for each setting");

/* The setting that is computed from other settings, and the setting of which
 * this release supports only the default. */
#define DERIVED SETTING_LND_TIMEOUT
#define FIXED	SETTING_RECOVERY_INTERVAL

/* The values of discovery, indexed by what users see: 0 is off, 1 is on, as in
 * kernel nodes. */
static const enum ulnet_discovery modes[] = { LNET_DISCOVERY_OFF,
					      LNET_DISCOVERY_ON,
					      LNET_DISCOVERY_VERIFY };

/* The factor from the value that users see to the value that is kept: times are
 * kept in ns. */
static uint64_t unit_of(enum setting i)
{
	switch (table[i].unit[0]) {
	case 's':
		return NSEC_PER_SEC;
	case 'u':
		return NSEC_PER_USEC;
	default:
		return 1;
	}
}

/* Rounds up: struct ulnet_conf may have set a fraction of the unit. */
static int64_t setting_value_get(const struct settings *s, enum setting i)
{
	uint64_t v = atomic_load_explicit(&s->value[i], memory_order_relaxed);
	uint64_t unit = unit_of(i);

	if (i != SETTING_DISCOVERY)
		return (int64_t)(v / unit + (v % unit != 0));
	for (i = 0; modes[i] != v && i + 1u < ARRAY_SIZE(modes); i++)
		;
	return i;
}

static void value_set(struct settings *s, enum setting i, int64_t value)
{
	uint64_t v = i == SETTING_DISCOVERY ? modes[value]
					    : (uint64_t)value * unit_of(i);
	uint64_t before = atomic_exchange(&s->value[i], v);

	if (i == SETTING_DISCOVERY && before != v && s->discovery_changed)
		s->discovery_changed(s);
	if (i == SETTING_HEALTH_SENSITIVITY && !before && v && s->health_is_on)
		s->health_is_on(s);
}

/* The transaction timeout is divided among retry_count + 1 transmissions. */
static void update_lnd_timeout(struct settings *s)
{
	int64_t sec = (setting_value_get(s, SETTING_TRANSACTION_TIMEOUT) - 1) /
		      (setting_value_get(s, SETTING_RETRY_COUNT) + 1);

	value_set(s, SETTING_LND_TIMEOUT, MAX(1, sec));
}

void settings_init(struct settings *s, const struct ulnet_conf *conf,
		   uint64_t busy_poll)
{
	int64_t timeout;

	pthread_mutex_init(&s->lock, NULL);
	s->discovery_changed = NULL;
	s->health_is_on = NULL;
	for (unsigned int i = 0; i < SETTINGS; i++)
		value_set(s, i, table[i].def);
	s->value[SETTING_TRANSACTION_TIMEOUT] =
		conf->transaction_timeout * NSEC_PER_USEC;
	s->value[SETTING_INTERFACES_MAX] = conf->interfaces_max;
	s->value[SETTING_BUSY_POLL] = busy_poll;
	s->value[SETTING_DISCOVERY] = conf->discovery;
	s->discovery_def = setting_value_get(s, SETTING_DISCOVERY);
	timeout = setting_value_get(s, SETTING_TRANSACTION_TIMEOUT);
	/* A short transaction timeout leaves no time for RETRY_COUNT retries.
	 */
	value_set(s, SETTING_RETRY_COUNT, MIN(RETRY_COUNT, timeout - 1));
	update_lnd_timeout(s);
}

void settings_fini(struct settings *s)
{
	pthread_mutex_destroy(&s->lock);
}

/* Checks @value without looking at other settings. */
static int setting_check(enum setting i, int64_t value)
{
	const struct setting_row *t = &table[i];

	if (i == DERIVED) {
		log_warn("setting",
			 "%s is computed from other settings, and cannot be "
			 "set",
			 t->name);
		return -EPERM;
	}
	if (value < t->min || value > t->max) {
		log_warn("setting",
			 "%s: %" PRId64 " is not within %" PRId64
			 " to %" PRId64,
			 t->name, value, t->min, t->max);
		return -EINVAL;
	}
	if (i == FIXED && value != t->def) {
		log_warn("setting",
			 "%s: %" PRId64 ": this release supports only %" PRId64,
			 t->name, value, t->def);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Do the other settings allow @value, which setting_check() has accepted? With
 * the lock held. */
static bool others_allow(const struct settings *s, enum setting i,
			 int64_t value)
{
	if (i == SETTING_TRANSACTION_TIMEOUT)
		return value > setting_value_get(s, SETTING_RETRY_COUNT);
	return i != SETTING_RETRY_COUNT ||
	       value < setting_value_get(s, SETTING_TRANSACTION_TIMEOUT);
}

static int setting_set(struct settings *s, enum setting i, int64_t value)
{
	const char *name = table[i].name;
	int64_t before;
	bool allowed;

	pthread_mutex_lock(&s->lock);
	before = setting_value_get(s, i);
	allowed = others_allow(s, i, value);
	if (allowed) {
		value_set(s, i, value);
		update_lnd_timeout(s);
	}
	pthread_mutex_unlock(&s->lock);
	if (!allowed) {
		log_warn("setting",
			 "%s: %" PRId64
			 ": transaction_timeout must be above retry_count",
			 name, value);
		return -EINVAL;
	}
	if (before != value)
		log_info("setting", "%s: %" PRId64 ", was %" PRId64, name,
			 value, before);
	return 0;
}

int lnet_setting_set(struct lnet *node, const char *name, int64_t value)
{
	if (node->forked)
		return -ESHUTDOWN;
	for (unsigned int i = 0; i < SETTINGS; i++) {
		int rc;

		if (strcmp(table[i].name, name) != 0)
			continue;
		rc = setting_check(i, value);
		return rc ? rc : setting_set(&node->settings, i, value);
	}
	log_warn("setting", "%s: there is no such setting", name);
	return -ENOENT;
}

int lnet_settings(struct lnet *node, struct ulnet_setting *settings,
		  unsigned int n)
{
	for (unsigned int i = 0; i < n && i < SETTINGS; i++) {
		const struct setting_row *t = &table[i];

		settings[i] = (struct ulnet_setting){
			.name = t->name,
			.unit = t->unit,
			.help = t->help,
			.value = setting_value_get(&node->settings, i),
			.min = i == FIXED ? t->def : t->min,
			.max = i == FIXED ? t->def : t->max,
			.def = i == SETTING_DISCOVERY
				       ? node->settings.discovery_def
				       : t->def,
			.derived = i == DERIVED,
		};
	}
	return SETTINGS;
}
