/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault rules: the request "fault", and the section "fault" of files. */
#include <errno.h>
#include <inttypes.h>
#include <strings.h>

#include "config/request/request.h"

#define US_PER_SEC 1000000

static const char *const kind_names[] = {
	[LNET_FAULT_DROP] = "drop",	      [LNET_FAULT_DELAY] = "delay",
	[LNET_FAULT_DUPLICATE] = "duplicate", [LNET_FAULT_CORRUPT] = "corrupt",
	[LNET_FAULT_ERROR] = "error",
};

/* A bit of a mask, or several, by name. */
struct bit_name {
	const char *name;
	uint32_t bits;
};

static const struct bit_name messages[] = {
	{ "PUT", LNET_FAULT_PUT },
	{ "ACK", LNET_FAULT_ACK },
	{ "GET", LNET_FAULT_GET },
	{ "REPLY", LNET_FAULT_REPLY },
	{ NULL, 0 },
};

#define CAUSE(name, cause)                                 \
	{                                                  \
		name, LNET_FAULT_CAUSE(LNET_CAUSE_##cause) \
	}

static const struct bit_name causes[] = {
	CAUSE("local_interrupt", LOCAL_INTERRUPT),
	CAUSE("local_dropped", LOCAL_DROPPED),
	CAUSE("local_aborted", LOCAL_ABORTED),
	CAUSE("local_no_route", LOCAL_NO_ROUTE),
	CAUSE("local_error", LOCAL_ERROR),
	CAUSE("local_timeout", LOCAL_TIMEOUT),
	CAUSE("remote_error", REMOTE_ERROR),
	CAUSE("remote_dropped", REMOTE_DROPPED),
	CAUSE("remote_timeout", REMOTE_TIMEOUT),
	CAUSE("network_timeout", NETWORK_TIMEOUT),
	{ "random", LNET_FAULT_CAUSES },
	{ NULL, 0 },
};

/* ---- reading: errors are in the answer ---- */

/* "*", "*@tcp", "255.255.255.255@tcp", or a NID. */
static int fault_pattern_parse(const char *text, struct ulnet_nid *nid_p)
{
	const char *at = strchr(text, '@');
	uint32_t net;

	if (!strcmp(text, "*")) {
		*nid_p = LNET_NID_ANY;
		return 0;
	}
	if (at && (!strncmp(text, "*@", 2) ||
		   !strncmp(text, "255.255.255.255@", 16))) {
		if (lnet_net_parse(at + 1, &net))
			return -EINVAL;
		*nid_p = lnet_nid_make(net, UINT32_MAX);
		return 0;
	}
	return lnet_nid_parse(text, nid_p);
}

/* Reads the pattern of NIDs in argument @key; leaves *@nid_p alone if there is
 * no such argument. */
static int fault_read_nid(const struct scope *s, const struct tree *args,
			  const char *key, struct ulnet_nid *nid_p)
{
	const struct tree *t = tree_get(args, key);
	const char *text = NULL;
	int rc = scope_text(s, t, &text);

	if (text && fault_pattern_parse(text, nid_p))
		rc = scope_fail(s, t, -EINVAL, "%s: cannot parse NID '%s'", key,
				text);
	return rc;
}

static int read_bits(const struct scope *s, const struct tree *args,
		     const char *key, const struct bit_name *names,
		     uint32_t *bits_p)
{
	const struct tree *list = tree_get(args, key), *t = NULL;
	const char *text;
	int rc = 0;

	while (!rc && (t = list_next(list, t))) {
		const struct bit_name *n = names;

		rc = scope_text(s, t, &text);
		while (!rc && n->name && strcasecmp(n->name, text) != 0)
			n++;
		if (!rc && !n->name)
			rc = scope_fail(s, t, -EINVAL, "%s: unknown: '%s'", key,
					text);
		if (!rc)
			*bits_p |= n->bits;
	}
	return rc;
}

static int read_portals(const struct scope *s, const struct tree *args,
			uint64_t *portals_p)
{
	const struct tree *list = tree_get(args, "portal"), *t = NULL;
	int64_t portal;
	int rc = 0;

	while (!rc && (t = list_next(list, t))) {
		if (!tree_number(t, &portal) || portal < 0 ||
		    portal >= LNET_PORTALS)
			rc = scope_fail(s, t, -EINVAL,
					"portal: a number is expected, 0 to %d",
					LNET_PORTALS - 1);
		else
			*portals_p |= UINT64_C(1) << portal;
	}
	return rc;
}

/* Parses seconds, with up to six digits of a fraction, to microseconds. */
static bool seconds_parse(const char *text, uint64_t *us_p)
{
	size_t whole = strspn(text, "0123456789");
	size_t fraction = 0;
	uint64_t us;

	if (text[whole] == '.')
		fraction = strspn(text + whole + 1, "0123456789");
	if (!whole || whole > 9 || fraction > 6 ||
	    text[whole + fraction + (text[whole] == '.')])
		return false;
	us = strtoul(text, NULL, 10) * US_PER_SEC;
	for (uint64_t i = 0, unit = US_PER_SEC / 10; i < fraction; i++) {
		us += (uint64_t)(text[whole + 1 + i] - '0') * unit;
		unit /= 10;
	}
	*us_p = us;
	return true;
}

static int read_seconds(const struct scope *s, const struct tree *args,
			const char *key, uint64_t *us_p)
{
	const struct tree *t = tree_get(args, key);

	if (!t)
		return 0;
	if (t->kind == TREE_SCALAR && seconds_parse(t->text, us_p) && *us_p &&
	    *us_p <= LNET_FAULT_US_MAX)
		return 0;
	return scope_fail(s, t, -EINVAL,
			  "%s: seconds are expected, 0.000001 to %" PRIu64, key,
			  LNET_FAULT_US_MAX / US_PER_SEC);
}

static int read_rate(const struct scope *s, const struct tree *args,
		     struct ulnet_fault *f)
{
	bool all = false;
	int64_t rate = 0;

	if (scope_number(s, tree_get(args, "rate"), 1, UINT32_MAX, &rate) ||
	    read_seconds(s, args, "interval", &f->interval) ||
	    scope_bool(s, tree_get(args, "drop_all"), &all) ||
	    scope_bool(s, tree_get(args, "random"), &f->random))
		return -EINVAL;
	if ((rate != 0) + (f->interval != 0) + all != 1)
		return scope_fail(s, args, -EINVAL,
				  "one of rate, interval and drop_all is "
				  "needed");
	f->rate = all ? 1 : (uint32_t)rate;
	return 0;
}

/* Checks what only rules of some kinds, or for some messages, may or must
 * have. */
static int check_kind(const struct scope *s, const struct tree *args,
		      const struct ulnet_fault *f)
{
	const char *name = kind_names[f->kind];
	bool delays = f->kind == LNET_FAULT_DELAY;
	bool fails = f->kind == LNET_FAULT_ERROR;

	if (f->portals && f->messages &&
	    !(f->messages & (LNET_FAULT_PUT | LNET_FAULT_GET)))
		return scope_fail(s, args, -EINVAL,
				  "portal: ACKs and REPLYs have none");
	if (delays != (f->latency != 0))
		return scope_fail(s, args, -EINVAL, "%s: latency is %s", name,
				  delays ? "needed" : "not for such rules");
	if (fails && !f->causes)
		return scope_fail(s, args, -EINVAL,
				  "%s: health_error is needed", name);
	if (f->causes && !fails && f->kind != LNET_FAULT_DROP)
		return scope_fail(s, args, -EINVAL,
				  "%s: health_error is not for such rules",
				  name);
	return 0;
}

static int fault_read_rule(const struct scope *s, const struct tree *args,
			   struct ulnet_fault *f)
{
	if (fault_read_nid(s, args, "source", &f->source) ||
	    fault_read_nid(s, args, "dest", &f->dest) ||
	    fault_read_nid(s, args, "local_nid", &f->local) ||
	    read_portals(s, args, &f->portals) ||
	    read_bits(s, args, "message", messages, &f->messages) ||
	    read_bits(s, args, "health_error", causes, &f->causes) ||
	    read_seconds(s, args, "latency", &f->latency) ||
	    read_rate(s, args, f) || check_kind(s, args, f))
		return -EINVAL;
	return 0;
}

/* ---- showing ---- */

static void show_pattern(struct tree *out, const char *key,
			 const struct ulnet_nid *nid)
{
	uint32_t net = lnet_nid_net(nid);
	struct ulnet_nid all = lnet_nid_make(net, UINT32_MAX);
	char text[LNET_NIDSTR_SIZE + 2] = "*@";

	if (lnet_nid_is_any(nid)) {
		tree_text(out, key, TREE_DOUBLE, "*");
	} else if (lnet_nid_eq(nid, &all)) { /* all NIDs of a net */
		lnet_net_format(net, text + 2, sizeof(text) - 2);
		tree_text(out, key, TREE_DOUBLE, text);
	} else {
		tree_text(out, key, TREE_PLAIN,
			  lnet_nid_format(nid, text, sizeof(text)));
	}
}

/* Shows @us microseconds as seconds, without zeros at the end. */
static void show_decimal(struct tree *out, const char *key, uint64_t us)
{
	char text[32];
	size_t n;

	if (us % US_PER_SEC == 0) {
		tree_uint(out, key, us / US_PER_SEC);
		return;
	}
	n = (size_t)snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64,
			     us / US_PER_SEC, us % US_PER_SEC);
	while (text[n - 1] == '0')
		text[--n] = '\0';
	tree_text(out, key, TREE_PLAIN, text);
}

static void show_bits(struct tree *out, const char *key,
		      const struct bit_name *names, uint32_t bits)
{
	struct tree *seq = bits ? tree_seq(out, key) : NULL;

	for (; seq && names->name; names++)
		if ((names->bits & bits) == names->bits &&
		    names->bits != LNET_FAULT_CAUSES)
			tree_text(seq, NULL, TREE_PLAIN, names->name);
}

static void show_portals(struct tree *out, uint64_t portals)
{
	struct tree *seq = portals ? tree_seq(out, "portal") : NULL;

	for (unsigned int i = 0; seq && i < LNET_PORTALS; i++)
		if (portals & UINT64_C(1) << i)
			tree_uint(seq, NULL, i);
}

static void show_rule(struct tree *out, const struct ulnet_fault_info *info,
		      bool backup)
{
	const struct ulnet_fault *f = &info->fault;
	struct tree *counts;

	tree_text(out, "rule_type", TREE_PLAIN, kind_names[f->kind]);
	show_pattern(out, "source", &f->source);
	show_pattern(out, "dest", &f->dest);
	show_pattern(out, "local_nid", &f->local);
	show_portals(out, f->portals);
	show_bits(out, "message", messages, f->messages);
	if (f->rate)
		tree_uint(out, "rate", f->rate);
	else
		show_decimal(out, "interval", f->interval);
	if (f->random)
		tree_text(out, "random", TREE_PLAIN, "true");
	if (f->latency)
		show_decimal(out, "latency", f->latency);
	show_bits(out, "health_error", causes, f->causes);
	if (backup)
		return;
	counts = tree_map(out, "statistics");
	tree_uint(counts, "seen", info->seen);
	tree_uint(counts, "struck", info->fired);
	tree_uint(counts, "put", info->struck.put);
	tree_uint(counts, "ack", info->struck.ack);
	tree_uint(counts, "get", info->struck.get);
	tree_uint(counts, "reply", info->struck.reply);
}

/* ---- the request ---- */

/* Adds the error @rc, unless it is 0. @kind LNET_FAULT_KINDS: all kinds. */
static void fault_fail(const struct request *r, enum ulnet_fault_kind kind,
		       int rc)
{
	if (rc)
		scope_fail(&r->scope, NULL, rc, "fault%s%s: %s",
			   kind < LNET_FAULT_KINDS ? " " : "",
			   kind < LNET_FAULT_KINDS ? kind_names[kind] : "",
			   strerror(-rc));
}

static void fault_add(struct request *r, enum ulnet_fault_kind kind)
{
	struct ulnet_fault f;
	int rc;

	lnet_fault_init(&f, kind);
	if (fault_read_rule(&r->scope, r->args, &f))
		return;
	rc = lnet_fault_add(r->control->node, &f);
	if (rc == -EEXIST)
		scope_fail(&r->scope, r->args, rc,
			   "fault %s: there is this rule already",
			   kind_names[kind]);
	else
		fault_fail(r, kind, rc);
}

static void fault_del(struct request *r, enum ulnet_fault_kind kind)
{
	struct ulnet_nid source = LNET_NID_ANY, dest = LNET_NID_ANY;
	bool has_source = tree_get(r->args, "source");
	bool has_dest = tree_get(r->args, "dest");
	bool all = false;
	int n;

	if (scope_bool(&r->scope, tree_get(r->args, "all"), &all) ||
	    fault_read_nid(&r->scope, r->args, "source", &source) ||
	    fault_read_nid(&r->scope, r->args, "dest", &dest))
		return;
	if (all == (has_source || has_dest)) {
		scope_fail(&r->scope, r->args, -EINVAL,
			   "either source and dest, or all, is needed");
		return;
	}
	n = lnet_fault_del(r->control->node, kind, has_source ? &source : NULL,
			   has_dest ? &dest : NULL);
	if (!n && !all)
		scope_fail(&r->scope, r->args, -ENOENT,
			   "there is no such rule");
	fault_fail(r, kind, MIN(n, 0));
}

static void fault_reset(struct request *r, enum ulnet_fault_kind kind)
{
	fault_fail(r, kind, lnet_fault_reset(r->control->node, kind));
}

int show_faults(struct lnet *node, enum ulnet_fault_kind kind, bool backup,
		struct tree *out)
{
	struct ulnet_fault_info *infos =
		calloc(LNET_FAULTS_MAX, sizeof(*infos));
	int n = infos ? lnet_fault_list(node, kind, infos, LNET_FAULTS_MAX)
		      : -ENOMEM;

	for (int i = 0; i < n; i++)
		show_rule(tree_item(out, "fault"), &infos[i], backup);
	free(infos);
	return MIN(n, 0);
}

static void fault_show(struct request *r, enum ulnet_fault_kind kind)
{
	fault_fail(r, kind,
		   show_faults(r->control->node, kind, false,
			       answer_output(r->answer)));
}

/* The actions, with the arguments that each takes beside rule_type. */
static const struct {
	const char *name;
	void (*fn)(struct request *r, enum ulnet_fault_kind kind);
	const char *const keys[12];
} actions[] = {
	{ "add",
	  fault_add,
	  { "source", "dest", "local_nid", "portal", "message", "rate",
	    "interval", "random", "drop_all", "latency", "health_error" } },
	{ "del", fault_del, { "source", "dest", "all" } },
	{ "reset", fault_reset, { NULL } },
	{ "show", fault_show, { NULL } },
	{ "list", fault_show, { NULL } },
};

static int check_keys(const struct scope *s, const struct tree *args,
		      const char *action, const char *const *keys)
{
	const struct tree *t;

	tree_for_each (t, args)
		if (!key_in(t->key, keys) && strcmp(t->key, "action") != 0 &&
		    strcmp(t->key, "rule_type") != 0)
			return scope_fail(s, t, -EINVAL, "%s: not for %s",
					  t->key, action);
	return 0;
}

static int fault_read_kind(const struct scope *s, const struct tree *args,
			   enum ulnet_fault_kind *kind_p)
{
	const struct tree *t;
	const char *text;

	if (scope_need(s, args, "rule_type", &t) || scope_text(s, t, &text))
		return -EINVAL;
	for (unsigned int i = 0; i < LNET_FAULT_KINDS; i++) {
		if (strcmp(kind_names[i], text) != 0)
			continue;
		*kind_p = (enum ulnet_fault_kind)i;
		return 0;
	}
	return scope_fail(s, t, -EINVAL, "rule_type: unknown: '%s'", text);
}

void fault_request(struct request *r)
{
	enum ulnet_fault_kind kind = LNET_FAULT_KINDS;
	const struct tree *t;
	unsigned int i = 0;
	const char *text;

	if (scope_need(&r->scope, r->args, "action", &t) ||
	    scope_text(&r->scope, t, &text))
		return;
	while (i < ARRAY_SIZE(actions) && strcmp(actions[i].name, text) != 0)
		i++;
	if (i == ARRAY_SIZE(actions)) {
		scope_fail(&r->scope, t, -EINVAL, "action: unknown: '%s'",
			   text);
		return;
	}
	r->scope.subject.top = actions[i].name;
	/* Without rule_type, rules of all kinds can be shown, but not changed.
	 */
	if ((actions[i].fn != fault_show || tree_get(r->args, "rule_type")) &&
	    fault_read_kind(&r->scope, r->args, &kind))
		return;
	if (!check_keys(&r->scope, r->args, text, actions[i].keys))
		actions[i].fn(r, kind);
}

/* ---- the section of a file ---- */

int fault_item(struct plan *plan, const struct scope *s,
	       const struct tree *item, bool add)
{
	static const char *const keys[] = {
		"rule_type",  "source",	  "dest",    "local_nid",
		"portal",     "message",  "rate",    "interval",
		"random",     "drop_all", "latency", "health_error",
		"statistics", "seq_no",	  NULL
	};
	enum ulnet_fault_kind kind;
	struct scope strict = *s;
	struct ulnet_fault f;
	int rc;

	/* Unknown keys are errors here: a key may limit the rule. */
	strict.lenient = false;
	rc = scope_keys(&strict, item, keys);
	if (!rc)
		rc = fault_read_kind(s, item, &kind);
	if (rc)
		return rc;
	lnet_fault_init(&f, kind);
	rc = fault_read_rule(s, item, &f);
	return rc ? rc : plan_fault(plan, s, item, &f, add);
}
