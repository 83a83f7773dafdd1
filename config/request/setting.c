/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings in requests and files: "set", "global:", "numa:". */
#include <errno.h>
#include <inttypes.h>

#include "config/request/request.h"

/* About recovery_interval, the only setting with one value: in kernel nodes it
 * has an effect only in the oldest releases. */
#define FIXED                                                            \
	"without effect: the longer an interface is silent, the longer " \
	"is the time between its pings"

/* Can @setting be set to @value? 0; -ENOENT: @setting is NULL; -EPERM: it
 * follows from others; -EOPNOTSUPP: it has only one value; -EINVAL: @value is
 * not in its range. */
static int setting_check(const struct ulnet_setting *setting, int64_t value)
{
	if (!setting)
		return -ENOENT;
	if (setting->derived)
		return -EPERM;
	if (value == setting->value ||
	    (value >= setting->min && value <= setting->max))
		return 0;
	return setting->min == setting->max ? -EOPNOTSUPP : -EINVAL;
}

/* ---- set ---- */

static int setting_set_one(struct plan *plan, const struct scope *s,
			   const struct tree *t)
{
	const struct ulnet_setting *setting =
		settings_find(&plan->settings, t->key);
	char why[128];
	int64_t v;
	int rc;

	if (!tree_number(t, &v)) {
		snprintf(why, sizeof(why), "cannot parse %.64s value", t->key);
		answer_setting_error(s->answer, "parser", "set", -1, why);
		return -1;
	}
	rc = routing_set(plan, s, t, v);
	if (rc != -ENOENT)
		return rc;
	if (!strcmp(t->key, BONDING)) {
		rc = bonding_set(s->answer, v);
		if (rc)
			scope_set_fail(s, t->key, rc, "not in 0..1");
		return rc;
	}
	rc = setting_check(setting, v);
	switch (rc) {
	case 0:
		return plan_set(plan, s, t, setting, v);
	case -ENOENT:
		snprintf(why, sizeof(why), "no such setting");
		break;
	case -EPERM:
		snprintf(why, sizeof(why), "it follows from others");
		break;
	case -EOPNOTSUPP:
		snprintf(why, sizeof(why), FIXED);
		break;
	default:
		snprintf(why, sizeof(why), "%s (%" PRId64 "..%" PRId64 ")",
			 strerror(-rc), setting->min, setting->max);
	}
	scope_set_fail(s, t->key, rc, why);
	return rc;
}

int setting_args(struct plan *plan, const struct scope *s,
		 const struct tree *args, bool add)
{
	struct scope set = *s;
	const struct tree *t;
	int rc = plan_need_settings(plan, s);

	(void)add; /* "set" is the only command */
	set.set = true;
	tree_for_each (t, args)
		if (!rc)
			rc = setting_set_one(plan, &set, t);
	return rc || args->count
		       ? rc
		       : scope_fail(&set, args, -EINVAL, "no setting is given");
}

/* ---- files ---- */

static int unknown_setting(const struct plan *plan, const struct scope *s,
			   const struct tree *t)
{
	const char *names[SETTINGS_MAX + 1];

	for (unsigned int i = 0; i < plan->settings.n; i++)
		names[i] = plan->settings.all[i].name;
	names[plan->settings.n] = NULL;
	return scope_unknown(s, t, "setting", key_near(t->key, names));
}

static int file_one(struct plan *plan, const struct scope *s,
		    const struct tree *t, const char *name)
{
	const struct ulnet_setting *setting =
		settings_find(&plan->settings, name);
	bool bonding = !strcmp(name, BONDING);
	int64_t v, min = 0, max = 1;
	int rc;

	if (!bonding && !setting)
		return unknown_setting(plan, s, t);
	rc = scope_number(s, t, INT64_MIN, INT64_MAX, &v);
	if (rc)
		return rc;
	rc = bonding ? bonding_set(s->answer, v) : setting_check(setting, v);
	if (!rc)
		return bonding ? 0 : plan_set(plan, s, t, setting, v);
	if (rc == -EPERM) /* shown, but no configuration */
		return 0;
	if (rc == -EOPNOTSUPP) { /* in files of kernel nodes */
		answer_note(s->answer, "%s: %" PRId64 " is " FIXED, name, v);
		return 0;
	}
	if (!bonding) {
		min = setting->min;
		max = setting->max;
	}
	return scope_fail(s, t, rc,
			  "%s: %" PRId64 " is not in %" PRId64 "..%" PRId64,
			  name, v, min, max);
}

int global_section(struct plan *plan, const struct scope *s,
		   const struct tree *map, bool add)
{
	const struct tree *t;
	int rc = scope_map(s, map);

	(void)add; /* settings cannot be deleted */
	if (!rc)
		rc = plan_need_settings(plan, s);
	tree_for_each (t, map)
		if (!rc && strcmp(t->key, "seq_no") != 0)
			rc = file_one(plan, s, t, t->key);
	return rc;
}

int numa_section(struct plan *plan, const struct scope *s,
		 const struct tree *map, bool add)
{
	static const char *const keys[] = { "range", "seq_no", NULL };
	const struct tree *range = tree_get(map, "range");
	int rc = scope_keys(s, map, keys);

	(void)add;
	if (!rc)
		rc = plan_need_settings(plan, s);
	return rc || !range ? rc : file_one(plan, s, range, "numa_range");
}
