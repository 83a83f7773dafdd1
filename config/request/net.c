/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nets and NIs in requests and files: "net add", "net show", "net:"; and
 * "ip2nets", rules that select networks by the addresses of this host.
 */
#include <errno.h>
#include <inttypes.h>

#include "config/request/request.h"
#include "lnet/text/spec.h"

/* Keys that are shown, but are no configuration. */
static const char *const ni_read_only[] = {
	"status",	 "statistics",	 "sent_stats", "received_stats",
	"dropped_stats", "udsp info",	 "state name", "dev cpt",
	"health stats",	 "resend_count", "resends",    "numa",
	"sending",	 "answered",	 NULL,
};
static const char *const ni_keys[] = {
	"nid", "interfaces",  "tunables", "lnd tunables",
	"CPT", "tcp bonding", "seq_no",	  NULL,
};
/* In files of old kernel nodes an item of "net" may be one NI: it then has
 * these keys beside the net. With "pattern" the item is a rule for some hosts,
 * and "intf" is the interface that the rule adds. */
static const char *const flat_keys[] = {
	"interfaces", "tunables", "lnd tunables", "CPT",
	"nid",	      "intf",	  "pattern",	  NULL,
};

/* ---- names ---- */

/* Reads a net, which must not be lo. */
static int own_net(const struct scope *s, const struct tree *t, uint32_t *net_p)
{
	int rc = scope_net(s, t, net_p);

	if (!rc && LNET_NET_TYPE(*net_p) == LNET_TYPE_LO)
		rc = scope_fail(s, t, -EINVAL, "net lo is always there");
	return rc;
}

/* ---- CPTs ---- */

/* Checks @text, a list of CPTs. A list that lacks a CPT of the node has no
 * effect, which is noted. */
static int check_cpts(struct lnet *node, const struct scope *s,
		      const struct tree *t, const char *text)
{
	int rc = spec_cpts(text, lnet_cpts(node));

	if (rc == -EOPNOTSUPP) {
		answer_note_once(s->answer,
				 "%s: CPTs %s are passed over: " SPEC_ALL_CPTS,
				 s->subject.item, text);
		return 0;
	}
	return rc ? scope_fail(s, t, rc, "cannot parse CPTs '%s'", text) : 0;
}

/* Checks the list of CPTs @t, if there is one: @t may be NULL. It is a text, as
 * for spec_cpts(), or a sequence. */
static int check_cpts_at(struct lnet *node, const struct scope *s,
			 const struct tree *t)
{
	char list[SPEC_CPTS_SIZE] = "[";
	const struct tree *item = NULL;
	const char *text = NULL;
	size_t len = 1;
	int rc = 0;

	if (!t || t->kind == TREE_SCALAR) {
		rc = scope_text(s, t, &text);
		return text ? check_cpts(node, s, t, text) : rc;
	}
	while (!rc && len < sizeof(list) && (item = list_next(t, item))) {
		rc = scope_text(s, item, &text);
		if (!rc)
			len += (size_t)snprintf(list + len, sizeof(list) - len,
						"%s%s", len > 1 ? "," : "",
						text);
	}
	if (!rc && len + 1 >= sizeof(list))
		rc = scope_fail(s, t, -EINVAL, "too many CPTs");
	if (rc)
		return rc;
	memcpy(list + len, "]", 2);
	return check_cpts(node, s, t, list);
}

/* ---- tunables ---- */

/* Reads a number of credits. -1 stands for the default, as it does for all
 * tunables. */
static int set_credits(const struct scope *s, const struct tree *t,
		       uint32_t max, void *field)
{
	int64_t v;
	int rc = scope_number(s, t, -1, max, &v);

	if (!rc)
		*(uint32_t *)field = v < 0 ? 0 : (uint32_t)v;
	return rc;
}

/* Reads peer_timeout. Users write 0 for "never", and -1 for the default; struct
 * ulnet_ni_conf has -1 for "never", and 0 for the default. */
static int set_peer_timeout(const struct scope *s, const struct tree *t,
			    uint32_t max, void *field)
{
	int64_t v;
	int rc = scope_number(s, t, -1, max, &v);

	if (!rc)
		*(int32_t *)field = v < 0 ? 0 : v == 0 ? -1 : (int32_t)v;
	return rc;
}

/* The tunables of LNet itself. This table, and set_lnd_tunable() for the
 * tunables of LNDs, serve all that has tunables: the arguments of "net add",
 * and its argument "tunables"; "tunables" and "lnd tunables" of NIs in files,
 * and of items of "ip2nets". */
static const struct net_tunable {
	const char *name;
	int (*read)(const struct scope *s, const struct tree *t, uint32_t max,
		    void *field);
	uint32_t max;
	size_t field; /* offset in struct ulnet_ni_conf */
} net_tunables[] = {
#define FIELD(name) offsetof(struct ulnet_ni_conf, name)
	{ "credits", set_credits, LNET_CREDITS_MAX, FIELD(credits) },
	{ "peer_credits", set_credits, LNET_PEER_CREDITS_MAX,
	  FIELD(peer_credits) },
	{ "peer_buffer_credits", set_credits, LNET_PEER_CREDITS_MAX,
	  FIELD(peer_buffer_credits) },
	{ "peer_timeout", set_peer_timeout, INT32_MAX, FIELD(peer_timeout) },
#undef FIELD
};

/* Lists of CPTs among the tunables, as files of old kernel nodes have them. */
static const char *const cpt_keys[] = { "SMP", "CPT", "CPTs", "cpts", NULL };

static int unknown_tunable(const struct scope *s, const struct tree *t,
			   const struct ulnet_tunable_info *infos, int n)
{
	const char *names[ARRAY_SIZE(net_tunables) + LNET_TUNABLES_MAX + 1];
	unsigned int last = 0;

	if (!s->lenient)
		return scope_fail(s, t, -EINVAL, "no such tunable: '%s'",
				  t->key);
	for (unsigned int i = 0; i < ARRAY_SIZE(net_tunables); i++)
		names[last++] = net_tunables[i].name;
	for (int i = 0; i < n; i++)
		names[last++] = infos[i].name;
	names[last] = NULL;
	return scope_unknown(s, t, "tunable", key_near(t->key, names));
}

/* Reads the tunable tls, as "net show" writes it (show.c). */
static int read_tls(const struct scope *s, const struct tree *t, int64_t *v)
{
	if (t->kind == TREE_SCALAR && !strcmp(t->text, "required"))
		*v = 1;
	else if (!scope_is_value(t, true, v) || (*v != 0 && *v != 1))
		return scope_fail(s, t, -EINVAL,
				  "tls: required or off is expected");
	return 0;
}

static int set_lnd_tunable(struct lnet *node, const struct scope *s,
			   const struct tree *t, struct ni_spec *spec)
{
	struct ulnet_tunable_info infos[LNET_TUNABLES_MAX];
	int n = lnet_tunables(node, lnet_nid_net(&spec->conf.nid), infos,
			      LNET_TUNABLES_MAX);
	bool words;
	int64_t v;
	int i = 0, rc;

	while (i < n && strcmp(infos[i].name, t->key) != 0)
		i++;
	if (i >= n && strcmp(t->key, "timeout") != 0)
		return unknown_tunable(s, t, infos, n);
	/* Kernel nodes show map_on_demand as a word. */
	words = i < n && ((infos[i].min == 0 && infos[i].max == 1) ||
			  !strcmp(t->key, "map_on_demand"));
	rc = i < n && !strcmp(t->key, "tls") ? read_tls(s, t, &v)
					     : scope_value(s, t, words, &v);
	if (rc)
		return rc;
	/* The timeout of an LND without such a tunable follows from
	 * settings. */
	if (i >= n || v == -1)
		return 0;
	if (v < infos[i].min || v > infos[i].max)
		return scope_fail(s, t, -EINVAL,
				  "%s: %" PRId64 " is not in %" PRId64
				  "..%" PRId64,
				  t->key, v, infos[i].min, infos[i].max);
	if (spec->conf.ntunables == LNET_TUNABLES_MAX)
		return scope_fail(s, t, -EINVAL, "too many tunables");
	spec->tunables[spec->conf.ntunables++] =
		(struct ulnet_tunable){ infos[i].name, v };
	return 0;
}

static int set_tunable(struct lnet *node, const struct scope *s,
		       const struct tree *t, struct ni_spec *spec)
{
	if (key_in(t->key, cpt_keys))
		return check_cpts_at(node, s, t);
	for (unsigned int i = 0; i < ARRAY_SIZE(net_tunables); i++) {
		const struct net_tunable *tunable = &net_tunables[i];

		if (!strcmp(t->key, tunable->name))
			return tunable->read(s, t, tunable->max,
					     (char *)&spec->conf +
						     tunable->field);
	}
	return set_lnd_tunable(node, s, t, spec);
}

/* Sets the tunables in @map, which may be NULL. @others, unless it is NULL, is
 * an array that ends with NULL, of keys that are no tunables. */
static int set_tunables(struct lnet *node, const struct scope *s,
			const struct tree *map, const char *const *others,
			struct ni_spec *spec)
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
			rc = set_tunable(node, s, t, spec);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- interfaces ---- */

/* Checks that an LND serves @net, which was read from @t. */
static int check_served(struct lnet *node, const struct scope *s,
			const struct tree *t, uint32_t net)
{
	int n = lnet_tunables(node, net, NULL, 0);

	return n < 0 ? scope_fail(s, t, n, "no LND of this build serves net %s",
				  t->text)
		     : 0;
}

/* Sets the tunables that are in @map, but for the keys @others, and in
 * @tunables; and checks the list of CPTs @cpts. Each may be NULL. */
static int ni_spec_read(struct lnet *node, const struct scope *s,
			const struct tree *map, const char *const *others,
			const struct tree *tunables, const struct tree *cpts,
			struct ni_spec *spec)
{
	int rc = set_tunables(node, s, map, others, spec);

	if (!rc)
		rc = set_tunables(node, s, tunables, NULL, spec);
	return rc ? rc : check_cpts_at(node, s, cpts);
}

/* Is @name the name of the NI's interface, or the NI's address? */
static bool ni_named(const struct ulnet_ni_info *info, const char *name)
{
	char nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&info->nid, nid, sizeof(nid));
	*strchrnul(nid, '@') = '\0';
	return !strcmp(info->interface, name) || !strcmp(nid, name);
}

/* Adds steps that delete the NIs on @net that have @nid (NULL: any) and the
 * interface @name (NULL: any). */
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

/* NIs that are to be added or deleted. */
struct nis {
	struct plan *plan;
	const struct scope *scope;
	bool add;
	/* what the NIs have in common: all but the interface; if NIs are
	 * deleted, only the net counts */
	struct ni_spec spec;
};

/* Adds a step for the NI of interface @name; @cpts: the list of CPTs that was
 * written behind the name, or "". */
static int plan_ni(struct nis *nis, const struct tree *at, const char *name,
		   const char *cpts)
{
	struct ni_spec *spec = &nis->spec;
	int rc;

	if (!nis->add)
		return del_nis(nis->plan, nis->scope, at,
			       lnet_nid_net(&spec->conf.nid), NULL, name);
	rc = *cpts ? check_cpts(nis->plan->node, nis->scope, at, cpts) : 0;
	if (rc)
		return rc;
	text_copy(spec->interface, sizeof(spec->interface), name);
	return plan_ni_add(nis->plan, nis->scope, at, spec);
}

/* Adds steps for the NIs of all interfaces in @list: NULL, a text with commas,
 * or a sequence or mapping ("0: eth0") of such texts. Returns how many there
 * are, or -errno. */
static int plan_nis(struct nis *nis, const struct tree *list)
{
	char name[LNET_INTERFACE_SIZE], cpts[SPEC_CPTS_SIZE];
	const struct tree *t = NULL;
	const char *text;
	int n = 0, rc = 0;

	while ((t = list_next(list, t))) {
		rc = scope_text(nis->scope, t, &text);
		if (rc)
			return rc;
		for (; (rc = spec_interface(&text, name, cpts)) > 0; n++) {
			rc = plan_ni(nis, t, name, cpts);
			if (rc)
				return rc;
		}
		if (rc)
			return scope_fail(nis->scope, t, rc,
					  "'%s' is not the name of an "
					  "interface",
					  text);
	}
	return n;
}

/* Returns a NID on @net without an address. Its size, that of IPv4 or of IPv6,
 * is the size of @nid, if @nid is a NID; otherwise the setting large_nids
 * decides. */
static struct ulnet_nid any_nid(struct plan *plan, uint32_t net,
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

/* Adds steps for an NI of each interface, or, without interfaces, for @nid. */
static int add_nis(struct nis *nis, const struct tree *at,
		   const struct tree *interfaces, const struct tree *nid)
{
	const struct scope *s = nis->scope;
	uint32_t net = lnet_nid_net(&nis->spec.conf.nid);
	int n = plan_nis(nis, interfaces), rc;

	if (n)
		return MIN(n, 0);
	/* In shared memory, any number will do. */
	if (!nid && LNET_NET_TYPE(net) == LNET_TYPE_SHM)
		return plan_ni(nis, at, "auto", "");
	if (!nid)
		return scope_fail(s, at, -EINVAL,
				  "neither an interface nor a NID is given");
	rc = scope_nid(s, nid, &nis->spec.conf.nid);
	if (rc)
		return rc;
	if (lnet_nid_net(&nis->spec.conf.nid) != net)
		return scope_fail(s, nid, -EINVAL, "NID '%s' is on another net",
				  nid->text);
	return plan_ni_add(nis->plan, s, nid, &nis->spec);
}

/* ---- by the addresses of this host ---- */

static const char *const rule_args_keys[] = {
	"ip2net", "cpts", "tunables", "skip_mr_route_setup", NULL,
};
static const char *const excluded[] = { "net", "nid", "interfaces", "interface",
					NULL };
static const char *const rule_keys[] = {
	"net-spec",	"interfaces", "ip-range", "tunables",
	"lnd tunables", "CPT",	      "seq_no",	  NULL,
};
/* keys of an item of "net" that has a pattern: such an item is a rule, too */
static const char *const pattern_keys[] = {
	"net",	    "net type",	    "intf", "interfaces", "pattern",
	"tunables", "lnd tunables", "CPT",  "seq_no",	  NULL,
};

/* Has an earlier item chosen @net? @before: how many nets were chosen when the
 * present item began. */
static bool net_has_come(const struct rules *rules, unsigned int before,
			 uint32_t net)
{
	for (unsigned int i = 0; i < before; i++)
		if (rules->nets[i] == net)
			return true;
	return false;
}

/* Leaves out of @confs what is on nets that earlier items have chosen, and
 * remembers the other nets. Returns how many are left, or -errno. */
static int rules_choose(const struct scope *s, const struct tree *at,
			struct rules *rules, struct ulnet_ni_conf *confs,
			unsigned int n)
{
	unsigned int before = rules->n, left = 0;
	char text[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < n; i++) {
		uint32_t net = lnet_nid_net(&confs[i].nid);

		if (net_has_come(rules, before, net)) {
			lnet_log(LNET_LOG_INFO, "config",
				 "ip2nets: item %u is passed over for net %s: "
				 "an earlier one is for this host",
				 s->index,
				 lnet_net_format(net, text, sizeof(text)));
			continue;
		}
		if (rules->n == ARRAY_SIZE(rules->nets))
			return scope_fail(s, at, -EINVAL, "too many nets");
		rules->nets[rules->n++] = net;
		confs[left++] = confs[i];
	}
	return (int)left;
}

/* Adds steps for the NIs that @text, rules read from @at, stand for; @rules, if
 * not NULL, is what earlier items have chosen. The other arguments are as for
 * ni_spec_read(). -ENOENT, without an error in the answer: no rule matches. */
static int net_plan_rules(struct nis *nis, const struct tree *at,
			  const char *text, struct rules *rules,
			  const struct tree *map, const char *const *others,
			  const struct tree *tunables)
{
	struct lnet *node = nis->plan->node;
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	unsigned int n;
	int rc = lnet_ip2nets_parse(text, &confs, &n, &err);

	if (rc == -ENOENT)
		return rc;
	if (rc)
		return scope_fail(nis->scope, at, rc,
				  "'%.64s': at character %zu: %s", text,
				  err.offset + 1,
				  *err.what ? err.what : strerror(-rc));
	if (rules)
		rc = rules_choose(nis->scope, at, rules, confs, n);
	if (rules && rc >= 0) {
		n = (unsigned int)rc;
		rc = 0;
	}
	for (unsigned int i = 0; !rc && i < n; i++) {
		uint32_t net = lnet_nid_net(&confs[i].nid);

		nis->spec =
			(struct ni_spec){ .conf.nid = lnet_nid_make(net, 0) };
		rc = check_served(node, nis->scope, at, net);
		if (!rc && nis->add)
			rc = ni_spec_read(node, nis->scope, map, others,
					  tunables, NULL, &nis->spec);
		if (!rc)
			rc = plan_ni(nis, at, confs[i].interface, "");
	}
	free(confs);
	return rc;
}

/* Reads the arguments of "net add" with @rules, one of which must match.
 * Arguments that name nets, interfaces or NIDs are refused. */
static int ip2nets_args(struct plan *plan, const struct scope *s,
			const struct tree *args, const struct tree *rules)
{
	struct nis nis = { .plan = plan, .scope = s, .add = true };
	const char *text;
	int rc = scope_text(s, rules, &text);

	for (unsigned int i = 0; !rc && excluded[i]; i++)
		if (tree_get(args, excluded[i]))
			rc = scope_fail(s, args, -EINVAL,
					"'%s' does not go with ip2net, which "
					"names the networks",
					excluded[i]);
	if (!rc)
		rc = check_cpts_at(plan->node, s, tree_get(args, "cpts"));
	if (rc)
		return rc;
	rc = net_plan_rules(&nis, rules, text, NULL, args, rule_args_keys,
			    tree_get(args, "tunables"));
	return rc == -ENOENT
		       ? scope_fail(s, rules, rc,
				    "no rule matches an address of this host")
		       : rc;
}

/* Returns the child of @item with @key, or, if there is none, the child with
 * the older name of that key. */
static const struct tree *either(const struct tree *item, const char *key,
				 const char *older)
{
	const struct tree *t = tree_get(item, key);

	return t ? t : tree_get(item, older);
}

/* Writes the texts of @list to @out, separated by @between. */
static int put_texts(const struct scope *s, const struct tree *list,
		     const char *between, FILE *out)
{
	const struct tree *t = NULL;
	const char *text, *before = "";

	while ((t = list_next(list, t))) {
		int rc = scope_text(s, t, &text);

		if (rc)
			return rc;
		fprintf(out, "%s%s", before, text);
		before = between;
	}
	return 0;
}

static int put_rule(const struct scope *s, const struct tree *item,
		    const char *net, FILE *out)
{
	const struct tree *interfaces = either(item, "interfaces", "intf");
	int rc;

	fputs(net, out);
	if (interfaces) {
		fputc('(', out);
		rc = put_texts(s, interfaces, ",", out);
		if (rc)
			return rc;
		fputc(')', out);
	}
	fputc(' ', out);
	return put_texts(s, either(item, "ip-range", "pattern"), " ", out);
}

/* Sets *@rule_p, to be freed, to the rule of the item, as lnet_ip2nets_parse()
 * takes it. @net is the text of its net. */
static int rule_of(const struct scope *s, const struct tree *item,
		   const struct tree *net, char **rule_p)
{
	const char *name;
	FILE *out;
	size_t size;
	int rc = scope_text(s, net, &name);

	if (rc)
		return rc;
	out = open_memstream(rule_p, &size);
	if (!out)
		return scope_fail(s, item, -ENOMEM, "no memory");
	rc = put_rule(s, item, name, out);
	if (!text_end(out, rc, rule_p))
		return 0;
	return rc ? rc : scope_fail(s, item, -ENOMEM, "no memory");
}

/* Adds steps for @item, the rule of @net. -ENOENT, without an error in the
 * answer: it is not for this host. */
static int plan_rule(struct plan *plan, const struct scope *s,
		     const struct tree *item, const struct tree *net, bool add,
		     struct rules *rules)
{
	struct nis nis = { .plan = plan, .scope = s, .add = add };
	char *rule = NULL;
	int rc = check_cpts_at(plan->node, s, tree_get(item, "CPT"));

	if (!rc)
		rc = rule_of(s, item, net, &rule);
	if (rc)
		return rc;
	rc = net_plan_rules(&nis, item, rule, rules, tree_get(item, "tunables"),
			    NULL, tree_get(item, "lnd tunables"));
	free(rule);
	return rc;
}

int ip2nets_item(struct plan *plan, const struct scope *s,
		 const struct tree *item, bool add, struct rules *rules)
{
	const struct tree *net, *range;
	int rc = scope_keys(s, item, rule_keys);

	if (!rc)
		rc = scope_need(s, item, "net-spec", &net);
	if (!rc)
		rc = scope_need(s, item, "ip-range", &range);
	if (rc)
		return rc;
	rc = plan_rule(plan, s, item, net, add, rules);
	rules->applied |= !rc;
	return rc == -ENOENT ? 0 : rc;
}

/* Reads an item of "net" that has a pattern. */
static int pattern_item(struct plan *plan, const struct scope *s,
			const struct tree *item, const struct tree *net,
			bool add)
{
	int rc = scope_keys(s, item, pattern_keys);

	if (!rc)
		rc = plan_rule(plan, s, item, net, add, NULL);
	if (rc != -ENOENT)
		return rc;
	answer_note(s->answer,
		    "net: the pattern of net %s is not for this host",
		    net->text);
	return 0;
}

/* ---- net add, net del ---- */

static const char *const add_other_keys[] = {
	"net",	"interfaces", "interface",	     "nid",
	"cpts", "tunables",   "skip_mr_route_setup", NULL,
};
/* Arguments that only kernel nodes take, and why. */
static const struct refused add_refused[] = {
	{ "auth_key", "only networks of type kfi have it" },
	{ "traffic_class", "only networks of type kfi have it" },
	{ "lnd_timeout",
	  "it follows from transaction_timeout and retry_count: use set" },
	{ NULL, NULL },
};

/* Sets *@net_p to the net that "net" names, or, if that is missing, to the net
 * of "nid". */
static int add_net(struct lnet *node, const struct scope *s,
		   const struct tree *args, uint32_t *net_p)
{
	const struct tree *net = tree_get(args, "net");
	const struct tree *nid = tree_get(args, "nid");
	struct ulnet_nid n;
	int rc;

	if (net)
		rc = own_net(s, net, net_p);
	else if (nid)
		rc = scope_nid(s, nid, &n);
	else
		return scope_fail(s, args, -EINVAL, "net add: net is missing");
	if (!rc && !net)
		*net_p = lnet_nid_net(&n);
	return rc ? rc : check_served(node, s, net ? net : nid, *net_p);
}

/* Refuses interfaces together with a NID: "net add" and "net del" take either.
 */
static int refuse_both(const struct scope *s, const struct tree *interfaces,
		       const struct tree *nid)
{
	return interfaces && nid ? scope_fail(s, nid, -EINVAL,
					      "either interfaces or nid is "
					      "needed, not both")
				 : 0;
}

static int net_add(struct plan *plan, const struct scope *s,
		   const struct tree *args)
{
	const struct tree *t, *interfaces = tree_get(args, "interfaces");
	struct nis nis = { .plan = plan, .scope = s, .add = true };
	uint32_t number = 0;
	int rc = scope_refuse(s, args, add_refused, ": not supported");

	t = tree_get(args, "ip2net");
	if (t)
		return rc ? rc : ip2nets_args(plan, s, args, t);
	if (!interfaces)
		interfaces = tree_get(args, "interface");
	if (!rc)
		rc = refuse_both(s, interfaces, tree_get(args, "nid"));
	if (!rc)
		rc = add_net(plan->node, s, args, &number);
	if (rc)
		return rc;
	nis.spec.conf.nid = any_nid(plan, number, NULL);
	rc = ni_spec_read(plan->node, s, args, add_other_keys,
			  tree_get(args, "tunables"), tree_get(args, "cpts"),
			  &nis.spec);
	return rc ? rc : add_nis(&nis, args, interfaces, tree_get(args, "nid"));
}

static int net_del(struct plan *plan, const struct scope *s,
		   const struct tree *args)
{
	static const char *const keys[] = { "net", "interfaces", "interface",
					    "nid", NULL };
	const struct tree *net = tree_get(args, "net");
	const struct tree *nid = tree_get(args, "nid");
	const struct tree *list = tree_get(args, "interfaces");
	struct nis nis = { .plan = plan, .scope = s };
	uint32_t number = 0;
	struct ulnet_nid n;
	int rc = scope_keys(s, args, keys);

	if (!list)
		list = tree_get(args, "interface");
	if (!rc && !net && !nid)
		return scope_fail(s, args, -EINVAL, "net del: net is missing");
	if (!rc)
		rc = refuse_both(s, list, nid);
	if (!rc && net)
		rc = own_net(s, net, &number);
	if (!rc && nid)
		rc = scope_nid(s, nid, &n);
	if (rc)
		return rc;
	if (nid && net && lnet_nid_net(&n) != number)
		return scope_fail(s, nid, -EINVAL,
				  "cannot del network: NID '%s' is on another "
				  "net",
				  nid->text);
	if (!list)
		return del_nis(plan, s, nid ? nid : net,
			       nid ? lnet_nid_net(&n) : number, nid ? &n : NULL,
			       NULL);
	nis.spec.conf.nid = lnet_nid_make(number, 0);
	rc = plan_nis(&nis, list);
	return rc ? MIN(rc, 0)
		  : scope_fail(s, list, -EINVAL, "no interface is given");
}

int net_args(struct plan *plan, const struct scope *s, const struct tree *args,
	     bool add)
{
	return add ? net_add(plan, s, args) : net_del(plan, s, args);
}

/* ---- bonding ---- */

int bonding_set(struct answer *a, int64_t value)
{
	if (value != 0 && value != 1)
		return -EINVAL;
	if (value)
		answer_note(a, "use_tcp_bonding: each interface has an NI of "
			       "its own here, and all of them are used");
	return 0;
}

/* Notes that one NI with @n interfaces on @net, in a file, becomes @n NIs. */
static void bonding_note_nis(struct answer *a, uint32_t net, unsigned int n)
{
	char text[LNET_NIDSTR_SIZE];

	lnet_net_format(net, text, sizeof(text));
	lnet_log(LNET_LOG_INFO, "config",
		 "%s: %u interfaces of one NI become one NI each", text, n);
	answer_note(a, "%s: %u interfaces of one NI become one NI each", text,
		    n);
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

static int file_ni_add(struct nis *nis, const struct tree *ni)
{
	uint32_t net = lnet_nid_net(&nis->spec.conf.nid);
	const struct scope *s = nis->scope;
	struct plan *plan = nis->plan;
	unsigned int before = plan->n;
	int64_t bonding = 0;
	int rc = scope_number(s, tree_get(ni, "tcp bonding"), 0, 1, &bonding);

	if (!rc)
		rc = bonding_set(s->answer, bonding);
	nis->spec.conf.nid = any_nid(plan, net, tree_get(ni, "nid"));
	if (!rc)
		rc = ni_spec_read(plan->node, s, tree_get(ni, "tunables"), NULL,
				  tree_get(ni, "lnd tunables"),
				  tree_get(ni, "CPT"), &nis->spec);
	if (!rc)
		rc = add_nis(nis, ni, either(ni, "interfaces", "intf"),
			     tree_get(ni, "nid"));
	if (!rc && plan->n - before > 1)
		bonding_note_nis(s->answer, net, plan->n - before);
	return rc;
}

static int file_ni_del(struct nis *nis, const struct tree *ni)
{
	uint32_t net = lnet_nid_net(&nis->spec.conf.nid);
	const struct tree *nid = tree_get(ni, "nid");
	const struct scope *s = nis->scope;
	struct ulnet_nid n;
	int rc;

	if (nid) {
		rc = scope_nid(s, nid, &n);
		return rc ? rc : del_nis(nis->plan, s, nid, net, &n, NULL);
	}
	rc = plan_nis(nis, either(ni, "interfaces", "intf"));
	return rc ? MIN(rc, 0)
		  : scope_fail(s, ni, -EINVAL,
			       "neither an interface nor a NID is given");
}

static bool is_lo(const struct tree *type)
{
	uint32_t net;

	return type->kind == TREE_SCALAR && !lnet_net_parse(type->text, &net) &&
	       LNET_NET_TYPE(net) == LNET_TYPE_LO;
}

static int file_ni(struct plan *plan, const struct scope *s, uint32_t net,
		   const struct tree *ni, bool add)
{
	struct nis one = { .plan = plan,
			   .scope = s,
			   .add = add,
			   .spec.conf.nid = lnet_nid_make(net, 0) };

	return add ? file_ni_add(&one, ni) : file_ni_del(&one, ni);
}

static int file_nis(struct plan *plan, const struct scope *item_scope,
		    uint32_t net, const struct tree *nis, bool add)
{
	const struct tree *ni = NULL;
	int rc = 0;

	while (!rc && (ni = items_next(nis, ni))) {
		struct scope s = *item_scope;

		if (tree_get(ni, "seq_no"))
			s.subject.seq_no = tree_get(ni, "seq_no");
		rc = check_ni_keys(&s, ni);
		if (!rc)
			rc = file_ni(plan, &s, net, ni, add);
	}
	return rc;
}

/* Does the item of a net have the keys of an NI itself? */
static bool net_is_flat(const struct tree *item)
{
	const struct tree *t;

	tree_for_each (t, item)
		if (key_in(t->key, flat_keys))
			return true;
	return false;
}

/* Reads the NIs of the item of @net, which are in one of three places. */
static int net_item_nis(struct plan *plan, const struct scope *s,
			const struct tree *item, const struct tree *type,
			uint32_t net, bool add)
{
	const struct tree *nis = tree_get(item, "local NI(s)");

	if (items_next(nis, NULL))
		return file_nis(plan, s, net, nis, add);
	if (net_is_flat(item))
		return file_ni(plan, s, net, item, add);
	if (add)
		return scope_misread(s, item, "local NI(s) is missing");
	return del_nis(plan, s, type, net, NULL, NULL);
}

int net_item(struct plan *plan, const struct scope *s, const struct tree *item,
	     bool add)
{
	static const char *const keys[] = {
		"net type",	"local NI(s)", "seq_no",       "state name",
		"health value", "statistics",  "net",	       "detail",
		"interfaces",	"tunables",    "lnd tunables", "CPT",
		"nid",		"status",      "intf",	       NULL,
	};
	const struct tree *type = either(item, "net type", "net");
	uint32_t net;
	int rc = 0;

	if (type && tree_get(item, "pattern"))
		return pattern_item(plan, s, item, type, add);
	rc = scope_keys(s, item, keys);
	if (!rc && !type)
		rc = scope_need(s, item, "net type", &type);
	if (rc || is_lo(type))
		return rc;
	rc = own_net(s, type, &net);
	if (!rc)
		rc = check_served(plan->node, s, type, net);
	return rc ? rc : net_item_nis(plan, s, item, type, net, add);
}

/* ---- showing ---- */

void net_show(struct request *r)
{
	struct show show = { .net = LNET_NET_ANY, .nid = LNET_NID_ANY };

	if (read_verbose(&r->scope, r->args, &show.verbose) ||
	    scope_net(&r->scope, tree_get(r->args, "net"), &show.net))
		return;
	cannot_get(&r->scope,
		   show_nets(r->control->node, &show, answer_output(r->answer)),
		   "networks");
}

int net_show_item(struct lnet *node, const struct scope *s,
		  const struct tree *item)
{
	struct show show = { .verbose = 2, .nid = LNET_NID_ANY };
	const struct tree *type = either(item, "net type", "net");
	int rc = type ? 0 : scope_need(s, item, "net type", &type);

	if (!rc)
		rc = scope_net(s, type, &show.net);
	if (rc)
		return rc;
	rc = show_nets(node, &show, answer_output(s->answer));
	return rc ? scope_fail(s, item, rc, "cannot get networks: %s",
			       strerror(-rc))
		  : 0;
}
