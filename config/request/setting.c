/* SPDX-License-Identifier: BSD-3-Clause */
/* Settings in requests and files: "set", "global:", "numa:"; and the requests
 * "net set" and "peer set", which set the health of interfaces. */
#include <errno.h>
#include <inttypes.h>

#include "config/request/request.h"
#include "ulnet/control.h"
#include "ulnet/path.h"

/* About recovery_interval, the only setting with one value: in kernel nodes it
 * has an effect only in the oldest releases. */
#define FIXED                                                            \
	"without effect: the longer an interface is silent, the longer " \
	"is the time between its pings"

/* ---- names ---- */

/* All that "set" and "global:" can name, in the order in which "lnetctl set"
 * shows it. */
static const struct {
	const char *name;
	bool set; /* "set" takes it */
	/* "global" of kernel nodes has it, and their import refuses a file with
	 * any other */
	bool kernel;
} nameable[] = {
	{ "tiny_buffers", true, false },
	{ "small_buffers", true, false },
	{ "large_buffers", true, false },
	{ "routing", true, false },
	{ "numa_range", true, true },
	{ "max_interfaces", true, true },
	{ "discovery", true, true },
	{ "drop_asym_route", true, true },
	{ "retry_count", true, true },
	{ "transaction_timeout", true, true },
	{ "health_sensitivity", true, true },
	{ "recovery_interval", true, true },
	{ "router_sensitivity", true, true },
	{ "lnd_timeout", false, true },
	{ "response_tracking", true, true },
	{ "recovery_limit", true, true },
	{ "max_recovery_ping_interval", true, true },
	{ "health_gain", true, false },
	{ "busy_poll", true, false },
	{ "wait_poll", true, false },
	{ BONDING, true, false },
	{ "large_nids", true, false },
	{ "alive_router_check_interval", true, false },
	{ PLAN_LOG, true, false },
};

const char *lnet_ctl_setting(unsigned int i)
{
	for (unsigned int at = 0; at < ARRAY_SIZE(nameable); at++)
		if (nameable[at].set && !i--)
			return nameable[at].name;
	return NULL;
}

bool setting_is_kernels(const char *name)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(nameable); i++)
		if (!strcmp(nameable[i].name, name))
			return nameable[i].kernel;
	return false;
}

/* ---- values ---- */

/* The setting @name, which may be an older name of it. */
static const struct ulnet_setting *setting_named(const struct plan *plan,
						 const char *name)
{
	static const char *const older[][2] = { { "max_intf",
						  "max_interfaces" } };

	for (unsigned int i = 0; i < ARRAY_SIZE(older); i++)
		if (!strcmp(name, older[i][0]))
			name = older[i][1];
	return settings_find(&plan->settings, name);
}

/* Can the setting be written "on" or "off", instead of 1 or 0? The value 2, of
 * discovery, is a variety of "on". @setting is NULL if @name is none of the
 * node's settings. */
static bool setting_is_switch(const struct ulnet_setting *setting,
			      const char *name)
{
	return setting ? setting->min == 0 && setting->max <= 2
		       : !strcmp(name, BONDING) || !strcmp(name, "routing");
}

/* Can @setting be set to @value? Returns 0; -ENOENT: @setting is NULL; -EPERM:
 * it follows from other settings; -EOPNOTSUPP: it has only one value; -EINVAL:
 * @value is not in its range. */
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

/* Sets the levels of the log. They belong to the process: they are no setting
 * of the node, and are not exported. But files may have them, because "global
 * show" shows them. */
static int log_set(struct plan *plan, const struct scope *s,
		   const struct tree *t)
{
	struct ulnet_conf_error err = { "a text is expected" };

	if (t->kind == TREE_SCALAR && !lnet_log_levels_check(t->text, &err))
		return plan_log(plan, s, t, t->text);
	if (!s->set)
		return scope_fail(s, t, -EINVAL, "log: %s", err.what);
	scope_set_fail(s, t->key, -EINVAL, err.what);
	return -EINVAL;
}

static int setting_set_one(struct plan *plan, const struct scope *s,
			   const struct tree *t)
{
	const struct ulnet_setting *setting = setting_named(plan, t->key);
	char why[128];
	int64_t v;
	int rc;

	if (!strcmp(t->key, PLAN_LOG))
		return log_set(plan, s, t);
	if (!scope_is_value(t, setting_is_switch(setting, t->key), &v)) {
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
		snprintf(why, sizeof(why), "it follows from other settings");
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
	const struct ulnet_setting *setting = setting_named(plan, name);
	bool bonding = !strcmp(name, BONDING);
	int64_t v, min = 0, max = 1;
	int rc;

	if (!strcmp(name, PLAN_LOG))
		return log_set(plan, s, t);
	if (!bonding && !setting)
		return unknown_setting(plan, s, t);
	rc = scope_value(s, t, setting_is_switch(setting, name), &v);
	if (rc)
		return rc;
	rc = bonding ? bonding_set(s->answer, v) : setting_check(setting, v);
	if (!rc)
		return bonding ? 0 : plan_set(plan, s, t, setting, v);
	if (rc == -EPERM) /* the setting is shown, but is no configuration */
		return 0;
	if (rc == -EOPNOTSUPP) { /* files of kernel nodes have such values */
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

/* ---- health ---- */

/* What these requests can change on kernel nodes only, and why. */
static const struct refused fixed[] = {
	{ "conns_per_peer",
	  "it is given when net add or import adds the interface" },
	{ "lnd_timeout",
	  "it follows from transaction_timeout and retry_count: use set" },
	{ "state",
	  "it is what discovery has found: use discover, or peer add" },
	{ NULL, NULL },
};

typedef int (*set_fn)(struct lnet *node, const struct ulnet_nid *nid,
		      int32_t health);

/* Whose health is set: of all, of those on a net, or of a NID. */
struct whose {
	bool all;
	uint32_t net;	      /* the net; LNET_NET_ANY: no net was named */
	struct ulnet_nid nid; /* the NID; LNET_NID_ANY: no NID was named */
};

static int read_whose(const struct request *r, struct whose *w)
{
	const struct scope *s = &r->scope;
	bool nid = tree_get(r->args, "nid"), net = tree_get(r->args, "net");
	int rc = scope_bool(s, tree_get(r->args, "all"), &w->all);

	if (!rc && w->all + nid + net != 1)
		rc = scope_fail(s, r->args, -EINVAL,
				net ? "one of nid, net and all is needed"
				    : "either nid or all is needed");
	if (!rc)
		rc = scope_net(s, tree_get(r->args, "net"), &w->net);
	return rc ? rc : scope_nid(s, tree_get(r->args, "nid"), &w->nid);
}

/* Sets the health of all interfaces on @net. */
static int net_set_health(struct lnet *node, uint32_t net, int32_t health)
{
	struct ulnet_ni_info info;
	int rc = -ENOENT;

	for (unsigned int i = 0; !lnet_ni_info(node, i, &info); i++) {
		if (lnet_nid_net(&info.nid) != net)
			continue;
		rc = lnet_ni_set_health(node, &info.nid, health);
		if (rc)
			return rc;
	}
	return rc;
}

static void health_set(struct request *r, set_fn fn)
{
	const struct tree *health;
	struct whose w = { .net = LNET_NET_ANY, .nid = LNET_NID_ANY };
	struct lnet *node = r->control->node;
	char text[LNET_NIDSTR_SIZE] = "all";
	bool of_net;
	int64_t value;
	int rc;

	if (scope_refuse(&r->scope, r->args, fixed, " cannot be set") ||
	    scope_need(&r->scope, r->args, "health", &health) ||
	    scope_number(&r->scope, health, 0, LNET_HEALTH_MAX, &value) ||
	    read_whose(r, &w))
		return;
	of_net = w.net != LNET_NET_ANY;
	if (of_net)
		lnet_net_format(w.net, text, sizeof(text));
	else if (!w.all)
		lnet_nid_format(&w.nid, text, sizeof(text));
	if (of_net ? LNET_NET_TYPE(w.net) == LNET_TYPE_LO
		   : !w.all && lnet_nid_is_lo(&w.nid)) {
		scope_fail(&r->scope, r->args, -EINVAL, "%s has no health",
			   text);
		return;
	}
	rc = of_net ? net_set_health(node, w.net, (int32_t)value)
		    : fn(node, w.all ? NULL : &w.nid, (int32_t)value);
	if (rc)
		scope_fail(&r->scope, r->args, rc,
			   "cannot set the health of %s: %s", text,
			   rc != -ENOENT ? strerror(-rc)
			   : of_net	 ? "no such network here"
					 : "no such NID here");
}

void health_net_set(struct request *r)
{
	health_set(r, lnet_ni_set_health);
}

void health_peer_set(struct request *r)
{
	health_set(r, lnet_peer_set_health);
}
