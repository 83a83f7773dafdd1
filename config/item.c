/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/item.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "config/bonding.h"
#include "config/ip2nets_item.h"
#include "config/spec.h"

/* What is printed and has no meaning as configuration. */
static const char *const ni_read_only[] = {
	"status",	 "statistics", "sent_stats", "received_stats",
	"dropped_stats", "udsp info",  "state name", "dev cpt",
	"health stats",	 "resend_count", "sending", "answered",
	NULL,
};
static const char *const ni_keys[] = {
	"nid", "interfaces",  "tunables", "lnd tunables",
	"CPT", "tcp bonding", "seq_no",	  NULL,
};

/* ---- names ---- */

/* Reads the name of a net that can have NIs: -ENOENT for what is none, -EINVAL
 * for lo. */
static int item_net(const struct scope *s, const struct tree *t,
		    uint32_t *net_p)
{
	const char *text;
	int rc = scope_text(s, t, &text);

	if (rc)
		return rc;
	if (lnet_net_parse(text, net_p))
		return scope_fail(s, t, -ENOENT, "cannot parse net '%s'", text);
	if (LNET_NET_TYPE(*net_p) == LNET_TYPE_LO)
		return scope_fail(s, t, -EINVAL, "net lo is always there");
	return 0;
}

int item_nid(const struct scope *s, const struct tree *t,
	     struct ulnet_nid *nid_p)
{
	const char *text;
	int rc = scope_text(s, t, &text);

	if (!rc && (lnet_nid_parse(text, nid_p) || lnet_nid_is_any(nid_p)))
		rc = scope_fail(s, t, -EINVAL, "cannot parse NID '%s'", text);
	return rc;
}

/* ---- tunables ---- */

/* -1 stands for the default everywhere. */
static int set_credits(const struct scope *s, const struct tree *t,
		       uint32_t max, uint32_t *field)
{
	int64_t v;
	int rc = scope_number(s, t, -1, max, &v);

	if (!rc)
		*field = v < 0 ? 0 : (uint32_t)v;
	return rc;
}

/* 0 is "never asks" to a kernel, and the default to struct ulnet_ni_conf. */
static int set_peer_timeout(const struct scope *s, const struct tree *t,
			    int32_t *field)
{
	int64_t v;
	int rc = scope_number(s, t, -1, INT32_MAX, &v);

	if (!rc)
		*field = v < 0 ? 0 : v == 0 ? -1 : (int32_t)v;
	return rc;
}

static const char *const net_tunables[] = { "credits", "peer_credits",
					    "peer_buffer_credits",
					    "peer_timeout", NULL };

static int unknown_tunable(const struct scope *s, const struct tree *t,
			   const struct ulnet_tunable_info *infos, int n)
{
	const char *names[LNET_TUNABLES_MAX + 1];
	const char *near = key_near(t->key, net_tunables);

	if (!s->lenient)
		return scope_fail(s, t, -EINVAL, "no such tunable: '%s'",
				  t->key);
	for (int i = 0; i < n; i++)
		names[i] = infos[i].name;
	names[MAX(n, 0)] = NULL;
	return scope_unknown(s, t, "tunable",
			     near ? near : key_near(t->key, names));
}

static int tunable_value(const struct scope *s, const struct tree *t,
			 int64_t *value_p)
{
	bool on;
	int rc;

	/* Kernel nodes show it as a word. */
	if (strcmp(t->key, "map_on_demand") || t->kind != TREE_SCALAR ||
	    tree_number(t, value_p))
		return scope_number(s, t, INT64_MIN, INT64_MAX, value_p);
	rc = scope_bool(s, t, &on);
	if (!rc)
		*value_p = on;
	return rc;
}

static int set_lnd_tunable(struct lnet *node, const struct scope *s,
			   const struct tree *t, struct ni_wish *wish)
{
	struct ulnet_tunable_info infos[LNET_TUNABLES_MAX];
	int n = lnet_tunables(node, lnet_nid_net(&wish->conf.nid), infos,
			      LNET_TUNABLES_MAX);
	int64_t v;
	int i = 0, rc;

	while (i < n && strcmp(infos[i].name, t->key) != 0)
		i++;
	if (i >= n && strcmp(t->key, "timeout") != 0)
		return unknown_tunable(s, t, infos, n);
	rc = tunable_value(s, t, &v);
	if (rc)
		return rc;
	if (i >= n)
		return 0; /* follows from the settings */
	if (v == -1)
		return 0;
	if (v < infos[i].min || v > infos[i].max)
		return scope_fail(s, t, -EINVAL,
				  "%s: %" PRId64 " is not in %" PRId64
				  "..%" PRId64,
				  t->key, v, infos[i].min, infos[i].max);
	if (wish->conf.ntunables == LNET_TUNABLES_MAX)
		return scope_fail(s, t, -EINVAL, "too many tunables");
	wish->tunables[wish->conf.ntunables++] =
		(struct ulnet_tunable){ infos[i].name, v };
	return 0;
}

static int set_tunable(struct lnet *node, const struct scope *s,
		       const struct tree *t, struct ni_wish *wish)
{
	if (!strcmp(t->key, "credits"))
		return set_credits(s, t, LNET_CREDITS_MAX, &wish->conf.credits);
	if (!strcmp(t->key, "peer_credits"))
		return set_credits(s, t, LNET_PEER_CREDITS_MAX,
				   &wish->conf.peer_credits);
	if (!strcmp(t->key, "peer_buffer_credits"))
		return set_credits(s, t, LNET_PEER_CREDITS_MAX,
				   &wish->conf.peer_buffer_credits);
	if (!strcmp(t->key, "peer_timeout"))
		return set_peer_timeout(s, t, &wish->conf.peer_timeout);
	return set_lnd_tunable(node, s, t, wish);
}

int item_tunables(struct lnet *node, const struct scope *s,
		  const struct tree *map, const char *const *others,
		  struct ni_wish *wish)
{
	const struct tree *t;
	int rc;

	if (!map)
		return 0;
	rc = scope_map(s, map);
	if (rc)
		return rc;
	tree_for_each (t, map) {
		if (!others || !key_in(t->key, others))
			rc = set_tunable(node, s, t, wish);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- interfaces ---- */

static int check_cpts(struct lnet *node, const struct scope *s,
		      const struct tree *t, const char *text)
{
	unsigned int cpts = lnet_cpts(node);
	unsigned long highest = 0;
	int rc = spec_cpts(text, cpts, &highest);

	if (!s->lenient && highest >= cpts)
		return scope_fail(s, t, -EINVAL,
				  "there is no CPT %lu: this node has %u, "
				  "numbered from 0",
				  highest, cpts);
	if (rc == -EOPNOTSUPP && s->lenient) {
		answer_note_once(s->answer,
				 "%s: CPTs %s are passed over: " SPEC_ALL_CPTS,
				 s->subject.item, text);
		return 0;
	}
	if (rc == -EOPNOTSUPP)
		return scope_fail(s, t, rc,
				  "CPTs %s: an interface for some of the CPTs "
				  "only is not supported: " SPEC_ALL_CPTS,
				  text);
	return rc ? scope_fail(s, t, rc, "cannot parse CPTs '%s'", text) : 0;
}

int item_cpts(struct lnet *node, const struct scope *s, const struct tree *t)
{
	const char *text;
	int rc = t ? scope_text(s, t, &text) : 0;

	return !t || rc ? rc : check_cpts(node, s, t, text);
}

/* Calls @fn for each name in @list: a sequence, a mapping {0: eth0}, or texts
 * with commas; with the list of CPTs behind it, "" for none. Returns how many
 * there were, or -errno. */
static int each_interface(const struct scope *s, const struct tree *list,
			  int (*fn)(void *arg, const struct tree *at,
				    const char *name, const char *cpts),
			  void *arg)
{
	char name[LNET_INTERFACE_SIZE], cpts[SPEC_CPTS_SIZE];
	const struct tree *t = NULL;
	const char *text;
	int n = 0, rc = 0;

	while ((t = list_next(list, t))) {
		rc = scope_text(s, t, &text);
		if (rc)
			return rc;
		while ((rc = spec_interface(&text, name, cpts)) > 0) {
			rc = fn(arg, t, name, cpts);
			if (rc)
				return rc;
			n++;
		}
		if (rc)
			return scope_fail(s, t, rc,
					  "'%s' is not the name of an "
					  "interface",
					  text);
	}
	return n;
}

struct add_call {
	struct plan *plan;
	const struct scope *scope;
	struct ni_wish *wish;
};

static int add_interface(void *arg, const struct tree *at, const char *name,
			 const char *cpts)
{
	struct add_call *c = arg;
	int rc = *cpts ? check_cpts(c->plan->node, c->scope, at, cpts) : 0;

	if (rc)
		return rc;
	text_copy(c->wish->interface, sizeof(c->wish->interface), name);
	return plan_ni_add(c->plan, c->scope, at, c->wish);
}

/* On @net, and of the family that interfaces are to give an address of: that of
 * @nid, if it is said besides them; else what the setting large_nids says. */
static struct ulnet_nid any_nid(const struct plan *plan, uint32_t net,
				const struct tree *nid)
{
	struct ulnet_nid any = lnet_nid_make(net, 0), named;

	if (nid && nid->kind == TREE_SCALAR &&
	    !lnet_nid_parse(nid->text, &named))
		any.size = named.size;
	else if (plan_setting_is_on(plan, "large_nids"))
		any.size = LNET_NID_IPV6_SIZE;
	return any;
}

/* One NI for each interface; without one, @nid says it. */
static int add_nis(struct plan *plan, const struct scope *s,
		   const struct tree *at, const struct tree *interfaces,
		   const struct tree *nid, struct ni_wish *wish)
{
	struct add_call c = { plan, s, wish };
	uint32_t net = lnet_nid_net(&wish->conf.nid);
	int n = 0, rc;

	if (interfaces)
		n = each_interface(s, interfaces, add_interface, &c);
	if (n)
		return n < 0 ? n : 0;
	if (!nid)
		return scope_fail(s, at, -EINVAL,
				  "neither an interface nor a NID is given");
	rc = item_nid(s, nid, &wish->conf.nid);
	if (rc)
		return rc;
	if (lnet_nid_net(&wish->conf.nid) != net)
		return scope_fail(s, nid, -EINVAL, "NID '%s' is on another net",
				  nid->text);
	return plan_ni_add(plan, s, nid, wish);
}

int item_served(struct lnet *node, const struct scope *s, const struct tree *t,
		uint32_t net)
{
	int n = lnet_tunables(node, net, NULL, 0);

	return n < 0 ? scope_fail(s, t, n, "no LND of this build serves net %s",
				  t->text)
		     : 0;
}

/* ---- net add, net del ---- */

static const char *const add_other_keys[] = {
	"net",	"interfaces", "interface",	     "nid",
	"cpts", "tunables",   "skip_mr_route_setup", NULL,
};
/* What kernel nodes' lnetctl takes, and why it is refused here. */
static const char *const add_refused[][2] = {
	{ "auth_key", "only networks of type kfi have it" },
	{ "traffic_class", "only networks of type kfi have it" },
	{ "lnd_timeout",
	  "it follows from transaction_timeout and retry_count: set" },
};

/* The net that "net" names; without "net", the one of "nid". */
static int add_net(struct lnet *node, const struct scope *s,
		   const struct tree *args, uint32_t *net_p)
{
	const struct tree *net = tree_get(args, "net");
	const struct tree *nid = tree_get(args, "nid");
	struct ulnet_nid n;
	int rc;

	if (net)
		rc = item_net(s, net, net_p);
	else if (nid)
		rc = item_nid(s, nid, &n);
	else
		return scope_fail(s, args, -EINVAL, "net add: net is missing");
	if (!rc && !net)
		*net_p = lnet_nid_net(&n);
	return rc ? rc : item_served(node, s, net ? net : nid, *net_p);
}

/* Of "net add" and "net del", where each of the two names interfaces. */
static int refuse_both(const struct scope *s, const struct tree *interfaces,
		       const struct tree *nid)
{
	return interfaces && nid ? scope_fail(s, nid, -EINVAL,
					      "either interfaces or nid is "
					      "needed, not both")
				 : 0;
}

static int refuse_add(const struct scope *s, const struct tree *args)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(add_refused); i++) {
		const struct tree *t = tree_get(args, add_refused[i][0]);

		if (t)
			return scope_fail(s, t, -EOPNOTSUPP,
					  "%s: not supported: %s", t->key,
					  add_refused[i][1]);
	}
	return 0;
}

int item_net_add(struct plan *plan, const struct scope *s,
		 const struct tree *args)
{
	const struct tree *t, *interfaces = tree_get(args, "interfaces");
	struct ni_wish wish = { .interface = "" };
	uint32_t number = 0;
	int rc = refuse_add(s, args);

	t = tree_get(args, "ip2net");
	if (t)
		return rc ? rc : ip2nets_add(plan, s, args, t);
	if (!interfaces)
		interfaces = tree_get(args, "interface");
	if (!rc)
		rc = refuse_both(s, interfaces, tree_get(args, "nid"));
	if (!rc)
		rc = add_net(plan->node, s, args, &number);
	if (args->kind != TREE_MAP || rc)
		return rc;
	wish.conf.nid = any_nid(plan, number, NULL);
	tree_for_each (t, args) {
		if (!key_in(t->key, add_other_keys))
			rc = set_tunable(plan->node, s, t, &wish);
		if (rc)
			return rc;
	}
	rc = item_tunables(plan->node, s, tree_get(args, "tunables"), NULL,
			   &wish);
	if (!rc)
		rc = item_cpts(plan->node, s, tree_get(args, "cpts"));
	return rc ? rc
		  : add_nis(plan, s, args, interfaces, tree_get(args, "nid"),
			    &wish);
}

struct del_call {
	struct plan *plan;
	const struct scope *scope;
	uint32_t net;
};

/* Is @name the NI's interface, or its address? */
static bool ni_named(const struct ulnet_ni_info *info, const char *name)
{
	char nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&info->nid, nid, sizeof(nid));
	*strchrnul(nid, '@') = '\0';
	return !strcmp(info->interface, name) || !strcmp(nid, name);
}

/* Plans the end of the NIs that are on @net, have @nid, and are called @name;
 * NULL: any. */
static int del_nis(struct plan *plan, const struct scope *s,
		   const struct tree *at, uint32_t net,
		   const struct ulnet_nid *nid, const char *name)
{
	struct ulnet_ni_info info;
	unsigned int found = 0;
	char text[LNET_NIDSTR_SIZE];
	int rc;

	for (unsigned int i = 1; !lnet_ni_info(plan->node, i, &info); i++) {
		if (lnet_nid_net(&info.nid) != net ||
		    (nid && !lnet_nid_eq(nid, &info.nid)) ||
		    (name && !ni_named(&info, name)) ||
		    plan_deletes(plan, &info.nid))
			continue;
		rc = plan_ni_del(plan, s, at, &info);
		if (rc)
			return rc;
		found++;
	}
	if (found)
		return 0;
	if (nid)
		lnet_nid_format(nid, text, sizeof(text));
	else
		lnet_net_format(net, text, sizeof(text));
	return scope_fail(s, at, -EINVAL, "cannot del network: no %s%s%s%s",
			  text, name ? "(" : "", name ? name : "",
			  name ? ")" : "");
}

int item_del_nis(struct plan *plan, const struct scope *s,
		 const struct tree *at, uint32_t net, const char *interface)
{
	return del_nis(plan, s, at, net, NULL, interface);
}

static int del_interface(void *arg, const struct tree *at, const char *name,
			 const char *cpts)
{
	struct del_call *c = arg;

	(void)cpts; /* says no more than which interface is meant */
	return del_nis(c->plan, c->scope, at, c->net, NULL, name);
}

int item_net_del(struct plan *plan, const struct scope *s,
		 const struct tree *args)
{
	static const char *const keys[] = { "net", "interfaces", "interface",
					    "nid", NULL };
	const struct tree *net = tree_get(args, "net");
	const struct tree *nid = tree_get(args, "nid");
	const struct tree *list = tree_get(args, "interfaces");
	struct del_call c = { plan, s, 0 };
	struct ulnet_nid n;
	int rc = scope_keys(s, args, keys);

	if (!list)
		list = tree_get(args, "interface");
	if (!rc && !net && !nid)
		return scope_fail(s, args, -EINVAL, "net del: net is missing");
	if (!rc)
		rc = refuse_both(s, list, nid);
	if (!rc && net)
		rc = item_net(s, net, &c.net);
	if (!rc && nid)
		rc = item_nid(s, nid, &n);
	if (rc)
		return rc;
	if (nid && net && lnet_nid_net(&n) != c.net)
		return scope_fail(s, nid, -EINVAL,
				  "cannot del network: NID '%s' is on another "
				  "net",
				  nid->text);
	if (list) {
		rc = each_interface(s, list, del_interface, &c);
		return rc < 0 ? rc
		       : rc   ? 0
			      : scope_fail(s, list, -EINVAL,
					   "no interface is given");
	}
	return del_nis(plan, s, nid ? nid : net, nid ? lnet_nid_net(&n) : c.net,
		       nid ? &n : NULL, NULL);
}

/* ---- the net section of a file ---- */

static int check_ni_keys(const struct scope *s, const struct tree *ni)
{
	const struct tree *t;
	int rc = scope_map(s, ni);

	if (rc)
		return rc;
	tree_for_each (t, ni) {
		if (key_in(t->key, ni_keys) || key_in(t->key, ni_read_only))
			continue;
		rc = scope_unknown(s, t, "key", key_near(t->key, ni_keys));
		if (rc)
			return rc;
	}
	return 0;
}

static int set_bonding(const struct scope *s, const struct tree *t)
{
	int64_t on;
	int rc;

	if (!t)
		return 0;
	rc = scope_number(s, t, 0, 1, &on);
	return rc ? rc : bonding_set(s->answer, on);
}

static int file_ni_add(struct plan *plan, const struct scope *s, uint32_t net,
		       const struct tree *ni)
{
	struct ni_wish wish = { .conf.nid = any_nid(plan, net,
						    tree_get(ni, "nid")) };
	const struct tree *interfaces = tree_get(ni, "interfaces");
	unsigned int before = plan->n;
	int rc = set_bonding(s, tree_get(ni, "tcp bonding"));

	if (!rc)
		rc = item_tunables(plan->node, s, tree_get(ni, "tunables"),
				   NULL, &wish);
	if (!rc)
		rc = item_tunables(plan->node, s, tree_get(ni, "lnd tunables"),
				   NULL, &wish);
	if (!rc)
		rc = item_cpts(plan->node, s, tree_get(ni, "CPT"));
	if (!rc)
		rc = add_nis(plan, s, ni, interfaces, tree_get(ni, "nid"),
			     &wish);
	if (!rc && plan->n - before > 1)
		bonding_note_nis(s->answer, net, plan->n - before);
	return rc;
}

static int file_ni_del(struct plan *plan, const struct scope *s, uint32_t net,
		       const struct tree *ni)
{
	const struct tree *interfaces = tree_get(ni, "interfaces");
	const struct tree *nid = tree_get(ni, "nid");
	struct del_call c = { plan, s, net };
	struct ulnet_nid n;
	int rc = 0;

	if (nid) {
		rc = item_nid(s, nid, &n);
		return rc ? rc : del_nis(plan, s, nid, net, &n, NULL);
	}
	if (interfaces)
		rc = each_interface(s, interfaces, del_interface, &c);
	return rc < 0 ? rc
	       : rc   ? 0
		      : scope_fail(s, ni, -EINVAL,
				   "neither an interface nor a NID is given");
}

static bool is_lo(const struct tree *type)
{
	uint32_t net;

	return type && type->kind == TREE_SCALAR &&
	       !lnet_net_parse(type->text, &net) &&
	       LNET_NET_TYPE(net) == LNET_TYPE_LO;
}

static int file_nis(struct plan *plan, const struct scope *item_scope,
		    uint32_t net, const struct tree *nis, bool add)
{
	const struct tree *ni = NULL;
	int rc = scope_seq(item_scope, nis);

	while (!rc && (ni = list_next(nis, ni))) {
		struct scope s = *item_scope;

		if (tree_get(ni, "seq_no"))
			s.subject.seq_no = tree_get(ni, "seq_no");
		rc = check_ni_keys(&s, ni);
		if (rc)
			break;
		rc = add ? file_ni_add(plan, &s, net, ni)
			 : file_ni_del(plan, &s, net, ni);
	}
	return rc;
}

int item_file_net(struct plan *plan, const struct scope *s,
		  const struct tree *item, bool add)
{
	static const char *const keys[] = {
		"net type",	"local NI(s)", "seq_no", "state name",
		"health value", "statistics",  NULL,
	};
	const struct tree *type, *nis;
	uint32_t net;
	int rc = scope_keys(s, item, keys);

	if (rc)
		return rc;
	type = tree_get(item, "net type");
	nis = tree_get(item, "local NI(s)");
	if (!type)
		return scope_misread(s, item, "net type is missing");
	if (is_lo(type))
		return 0;
	rc = item_net(s, type, &net);
	if (!rc)
		rc = item_served(plan->node, s, type, net);
	if (rc)
		return rc;
	if (nis && list_next(nis, NULL))
		return file_nis(plan, s, net, nis, add);
	if (add)
		return scope_misread(s, item, "local NI(s) is missing");
	return del_nis(plan, s, type, net, NULL, NULL);
}
