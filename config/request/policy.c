/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection policies in requests and files: "udsp add", "udsp show",
 * "udsp:". */
#include <errno.h>
#include <inttypes.h>

#include "config/request/request.h"

#define ANY_ID LNET_POLICY_LAST

/* What kernel nodes print instead of a pattern that a policy does not have. */
#define NO_PATTERN "NA"

static const char *const args_keys[] = { "src",	     "dst", "rte",
					 "priority", "idx", NULL };
static const char *const del_keys[] = { "idx", "all", NULL };
static const char *const file_keys[] = { "src",	   "dst",    "rte", "idx",
					 "action", "seq_no", NULL };
static const char *const action_keys[] = { "priority", NULL };

/* ---- reading ---- */

static int read_id(const struct scope *s, const struct tree *map,
		   uint32_t *id_p)
{
	int64_t v = ANY_ID;
	int rc = scope_number(s, tree_get(map, "idx"), -1, LNET_POLICY_ID_MAX,
			      &v);

	*id_p = v < 0 ? ANY_ID : (uint32_t)v;
	return rc;
}

static int read_pattern(const struct scope *s, const struct tree *map,
			const char *key, char *buf)
{
	const struct tree *t = tree_get(map, key);
	const char *text = NO_PATTERN;
	int rc = scope_text(s, t, &text);

	*buf = '\0';
	if (rc || !strcmp(text, NO_PATTERN))
		return rc;
	if (!*text)
		return scope_fail(s, t, -EINVAL, "%s: a pattern is expected",
				  key);
	if (strlen(text) >= LNET_PATTERN_SIZE)
		return scope_fail(s, t, -ENAMETOOLONG,
				  "%s: longer than %d bytes", key,
				  LNET_PATTERN_SIZE - 1);
	snprintf(buf, LNET_PATTERN_SIZE, "%s", text);
	return 0;
}

static int read_patterns(const struct scope *s, const struct tree *map,
			 struct ulnet_policy *p)
{
	int rc = read_pattern(s, map, "src", p->src);

	if (!rc)
		rc = read_pattern(s, map, "dst", p->dst);
	return rc ? rc : read_pattern(s, map, "rte", p->rte);
}

static int read_priority(const struct scope *s, const struct tree *map,
			 uint32_t *priority_p)
{
	int64_t v = LNET_PRIORITY_NONE;
	int rc = scope_number(s, tree_get(map, "priority"), 0,
			      LNET_PRIORITY_NONE - 1, &v);

	*priority_p = (uint32_t)v;
	return rc;
}

/* In a file the priority may be -1, which kernel nodes print for "none", if the
 * policy is about a pair or about gateways, and so has no priority. For other
 * policies -1 is an error: it must not become 0, the best priority. */
static int read_file_priority(const struct scope *s, const struct tree *map,
			      struct ulnet_policy *p)
{
	bool none = *p->rte || (*p->src && *p->dst);
	int64_t v;

	if (none && tree_get(map, "priority") &&
	    tree_number(tree_get(map, "priority"), &v) && v == -1)
		return 0;
	return read_priority(s, map, &p->priority);
}

static int read_action(const struct scope *s, const struct tree *item,
		       struct ulnet_policy *p)
{
	const struct tree *action = tree_get(item, "action");
	struct scope strict = *s;
	int rc;

	/* An unknown action is an error. */
	strict.lenient = false;
	rc = action ? scope_keys(&strict, action, action_keys) : 0;
	p->priority = LNET_PRIORITY_NONE;
	return rc || !action ? rc : read_file_priority(s, action, p);
}

/* ---- finding a policy ---- */

/* Writes @pattern as the node shows it: "tcp0" becomes "tcp". Returns false if
 * it is no pattern, or if there is no memory. */
static bool canonical(char *pattern)
{
	bool nets = !strchr(pattern, '@');
	char text[LNET_PATTERN_SIZE + 2];
	struct ulnet_nidlist *list;
	size_t len;

	if (!*pattern)
		return true;
	snprintf(text, sizeof(text), "%s%s", nets ? "*@" : "", pattern);
	if (lnet_nidlist_parse(text, &list, NULL))
		return false;
	len = lnet_nidlist_format(list, text, sizeof(text));
	lnet_nidlist_free(list);
	if (len >= sizeof(text))
		return false;
	snprintf(pattern, LNET_PATTERN_SIZE, "%s", text + (nets ? 2 : 0));
	return true;
}

static bool same_patterns(const struct ulnet_policy *a,
			  const struct ulnet_policy *b)
{
	return !strcmp(a->src, b->src) && !strcmp(a->dst, b->dst) &&
	       !strcmp(a->rte, b->rte);
}

/* Finds a policy among the @n policies @all: the one that has the patterns of
 * @like, or, if @like has no patterns, the one with @id. NULL: there is no such
 * policy. */
static const struct ulnet_policy *policy_named(const struct ulnet_policy *all,
					       int n,
					       const struct ulnet_policy *like,
					       uint32_t id)
{
	struct ulnet_policy p = *like;
	bool named = *p.src || *p.dst || *p.rte;

	if (named &&
	    (!canonical(p.src) || !canonical(p.dst) || !canonical(p.rte)))
		return NULL;
	for (int i = 0; i < n; i++)
		if (named ? same_patterns(&all[i], &p) : all[i].id == id)
			return &all[i];
	return NULL;
}

static int policy_del(struct plan *plan, const struct scope *s,
		      const struct tree *at, const struct ulnet_policy *like,
		      uint32_t id)
{
	const struct ulnet_policy *p;
	struct ulnet_policy *all;
	int n = policies_read(plan->node, &all), rc;

	if (n < 0)
		return scope_fail(s, at, n, "no memory");
	p = policy_named(all, n, like, id);
	rc = p ? plan_policy(plan, s, at, p, p->id, false)
	       : scope_fail(s, at, -ENOENT,
			    "cannot del udsp: No such file or directory");
	free(all);
	return rc;
}

int policies_forget(struct plan *plan, const struct scope *s)
{
	struct ulnet_policy *all;
	int n = policies_read(plan->node, &all), rc = 0;

	if (n < 0)
		return scope_fail(s, NULL, n, "no memory");
	for (unsigned int i = (unsigned int)n; !rc && i--;)
		rc = plan_policy(plan, s, NULL, &all[i], all[i].id, false);
	free(all);
	return rc;
}

/* ---- commands ---- */

static int policy_add_args(struct plan *plan, const struct scope *s,
			   const struct tree *args)
{
	struct ulnet_policy p = { .priority = LNET_PRIORITY_NONE };
	uint32_t id;
	int rc = scope_keys(s, args, args_keys);

	if (!rc)
		rc = read_patterns(s, args, &p);
	if (!rc)
		rc = read_priority(s, args, &p.priority);
	if (!rc)
		rc = read_id(s, args, &id);
	return rc ? rc : plan_policy(plan, s, args, &p, id, true);
}

int policy_args(struct plan *plan, const struct scope *s,
		const struct tree *args, bool add)
{
	const struct ulnet_policy none = { .priority = LNET_PRIORITY_NONE };
	uint32_t id;
	bool all = false;
	int rc;

	if (add)
		return policy_add_args(plan, s, args);
	rc = scope_keys(s, args, del_keys);
	if (!rc)
		rc = scope_bool(s, tree_get(args, "all"), &all);
	if (!rc)
		rc = read_id(s, args, &id);
	if (rc)
		return rc;
	if (all)
		return policies_forget(plan, s);
	if (id == ANY_ID)
		return scope_fail(s, args, -EINVAL, "idx is missing");
	return policy_del(plan, s, args, &none, id);
}

/* ---- files ---- */

static int read_item(const struct scope *s, const struct tree *item,
		     struct ulnet_policy *p, uint32_t *id_p)
{
	int rc = scope_keys(s, item, file_keys);

	if (!rc)
		rc = read_patterns(s, item, p);
	if (!rc)
		rc = read_action(s, item, p);
	return rc ? rc : read_id(s, item, id_p);
}

int policy_item(struct plan *plan, const struct scope *s,
		const struct tree *item, bool add)
{
	struct ulnet_policy p;
	uint32_t id;
	int rc = read_item(s, item, &p, &id);

	if (rc)
		return rc;
	return add ? plan_policy(plan, s, item, &p, id, true)
		   : policy_del(plan, s, item, &p, id);
}

/* ---- showing ---- */

static void show_policy(const struct ulnet_policy *p, struct tree *map)
{
	tree_uint(map, "idx", p->id);
	tree_text(map, "src", TREE_PLAIN, *p->src ? p->src : NO_PATTERN);
	tree_text(map, "dst", TREE_PLAIN, *p->dst ? p->dst : NO_PATTERN);
	tree_text(map, "rte", TREE_PLAIN, *p->rte ? p->rte : NO_PATTERN);
	if (p->priority != LNET_PRIORITY_NONE)
		tree_uint(tree_map(map, "action"), "priority", p->priority);
}

int show_policies(struct lnet *node, uint32_t only, struct tree *out)
{
	struct ulnet_policy *all;
	int n = policies_read(node, &all);

	for (int i = 0; i < n; i++)
		if (only == ANY_ID || only == all[i].id)
			show_policy(&all[i], tree_item(out, "udsp"));
	free(all);
	return MIN(n, 0);
}

void policy_show(struct request *r)
{
	uint32_t id;

	if (!read_id(&r->scope, r->args, &id))
		cannot_get(&r->scope,
			   show_policies(r->control->node, id,
					 answer_output(r->answer)),
			   "policies");
}

int policy_show_item(struct lnet *node, const struct scope *s,
		     const struct tree *item)
{
	const struct ulnet_policy *found;
	struct ulnet_policy *all, p;
	uint32_t id;
	int rc = read_item(s, item, &p, &id), n;

	if (rc)
		return rc;
	n = policies_read(node, &all);
	found = policy_named(all, n, &p, id);
	if (found)
		show_policy(found, tree_item(answer_output(s->answer), "udsp"));
	free(all);
	return MIN(n, 0);
}
