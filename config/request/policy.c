/* SPDX-License-Identifier: BSD-3-Clause */
/* Selection policies in requests and files: "udsp add", "udsp show",
 * "udsp:". */
#include <errno.h>
#include <inttypes.h>

#include "config/request/request.h"

#define ANY_INDEX LNET_POLICY_LAST

/* What kernel nodes print instead of a pattern that a policy does not have. */
#define NO_PATTERN "NA"

static const char *const args_keys[] = { "src",	     "dst", "rte",
					 "priority", "idx", NULL };
static const char *const del_keys[] = { "idx", "all", NULL };
static const char *const file_keys[] = { "src",	   "dst",    "rte", "idx",
					 "action", "seq_no", NULL };
static const char *const action_keys[] = { "priority", NULL };

/* ---- reading ---- */

static int read_index(const struct scope *s, const struct tree *map,
		      unsigned int *index_p)
{
	int64_t v = ANY_INDEX;
	int rc = scope_number(s, tree_get(map, "idx"), -1, LNET_POLICIES_MAX,
			      &v);

	*index_p = v < 0 ? ANY_INDEX : (unsigned int)v;
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

/* Kernel nodes print -1 for a policy without a priority. */
static int read_priority(const struct scope *s, const struct tree *map,
			 uint32_t *priority_p)
{
	int64_t v = -1;
	int rc = scope_number(s, tree_get(map, "priority"), -1,
			      LNET_PRIORITY_NONE - 1, &v);

	*priority_p = v < 0 ? LNET_PRIORITY_NONE : (uint32_t)v;
	return rc;
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
	return rc || !action ? rc : read_priority(s, action, &p->priority);
}

/* ---- which one is meant ---- */

/* Writes @pattern as the node shows it: "tcp0" becomes "tcp". False: it is no
 * pattern, or there is no memory. */
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

/* Finds a policy among the @n policies @all: the first that has the patterns of
 * @like, or, if @like has no patterns, the one at @index. Returns its index, or
 * ANY_INDEX: there is no such policy. */
static unsigned int policy_named(const struct ulnet_policy *all, int n,
				 const struct ulnet_policy *like,
				 unsigned int index)
{
	struct ulnet_policy p = *like;
	int i = 0;

	if (!*p.src && !*p.dst && !*p.rte)
		return (int64_t)index < n ? index : ANY_INDEX;
	if (!canonical(p.src) || !canonical(p.dst) || !canonical(p.rte))
		return ANY_INDEX;
	while (i < n && !same_patterns(&all[i], &p))
		i++;
	return i < n ? (unsigned int)i : ANY_INDEX;
}

static int policy_del(struct plan *plan, const struct scope *s,
		      const struct tree *at, const struct ulnet_policy *like,
		      unsigned int index)
{
	struct ulnet_policy *all;
	int n = policies_read(plan->node, &all), rc;

	if (n < 0)
		return scope_fail(s, at, n, "no memory");
	index = policy_named(all, n, like, index);
	if (index == ANY_INDEX)
		rc = scope_fail(s, at, -ENOENT,
				"cannot del udsp: No such file or directory");
	else
		rc = plan_policy(plan, s, at, &all[index], index, false);
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
		rc = plan_policy(plan, s, NULL, &all[i], i, false);
	free(all);
	return rc;
}

/* ---- commands ---- */

static int policy_add_args(struct plan *plan, const struct scope *s,
			   const struct tree *args)
{
	struct ulnet_policy p = { .priority = LNET_PRIORITY_NONE };
	unsigned int index;
	int rc = scope_keys(s, args, args_keys);

	if (!rc)
		rc = read_patterns(s, args, &p);
	if (!rc)
		rc = read_priority(s, args, &p.priority);
	if (!rc)
		rc = read_index(s, args, &index);
	return rc ? rc : plan_policy(plan, s, args, &p, index, true);
}

int policy_args(struct plan *plan, const struct scope *s,
		const struct tree *args, bool add)
{
	const struct ulnet_policy none = { .priority = LNET_PRIORITY_NONE };
	unsigned int index;
	bool all = false;
	int rc;

	if (add)
		return policy_add_args(plan, s, args);
	rc = scope_keys(s, args, del_keys);
	if (!rc)
		rc = scope_bool(s, tree_get(args, "all"), &all);
	if (!rc)
		rc = read_index(s, args, &index);
	if (rc)
		return rc;
	if (all)
		return policies_forget(plan, s);
	if (index == ANY_INDEX)
		return scope_fail(s, args, -EINVAL, "idx is missing");
	return policy_del(plan, s, args, &none, index);
}

/* ---- files ---- */

static int read_item(const struct scope *s, const struct tree *item,
		     struct ulnet_policy *p, unsigned int *index_p)
{
	int rc = scope_keys(s, item, file_keys);

	if (!rc)
		rc = read_patterns(s, item, p);
	if (!rc)
		rc = read_action(s, item, p);
	return rc ? rc : read_index(s, item, index_p);
}

int policy_item(struct plan *plan, const struct scope *s,
		const struct tree *item, bool add)
{
	struct ulnet_policy p;
	unsigned int index;
	int rc = read_item(s, item, &p, &index);

	if (rc)
		return rc;
	return add ? plan_policy(plan, s, item, &p, index, true)
		   : policy_del(plan, s, item, &p, index);
}

/* ---- showing ---- */

static void show_policy(const struct ulnet_policy *p, unsigned int index,
			struct tree *map)
{
	tree_uint(map, "idx", index);
	tree_text(map, "src", TREE_PLAIN, *p->src ? p->src : NO_PATTERN);
	tree_text(map, "dst", TREE_PLAIN, *p->dst ? p->dst : NO_PATTERN);
	tree_text(map, "rte", TREE_PLAIN, *p->rte ? p->rte : NO_PATTERN);
	if (p->priority != LNET_PRIORITY_NONE)
		tree_uint(tree_map(map, "action"), "priority", p->priority);
}

static void show_some(const struct ulnet_policy *all, int n, unsigned int only,
		      struct tree *out)
{
	for (unsigned int i = 0; (int)i < n; i++)
		if (only == ANY_INDEX || only == i)
			show_policy(&all[i], i, tree_item(out, "udsp"));
}

int show_policies(struct lnet *node, unsigned int only, struct tree *out)
{
	struct ulnet_policy *all;
	int n = policies_read(node, &all);

	show_some(all, n, only, out);
	free(all);
	return MIN(n, 0);
}

void policy_show(struct request *r)
{
	unsigned int index;

	if (!read_index(&r->scope, r->args, &index))
		cannot_get(&r->scope,
			   show_policies(r->control->node, index,
					 answer_output(r->answer)),
			   "policies");
}

int policy_show_item(struct lnet *node, const struct scope *s,
		     const struct tree *item)
{
	struct ulnet_policy *all, p;
	unsigned int index;
	int rc = read_item(s, item, &p, &index), n;

	if (rc)
		return rc;
	n = policies_read(node, &all);
	index = policy_named(all, n, &p, index);
	if (index != ANY_INDEX)
		show_some(all, n, index, answer_output(s->answer));
	free(all);
	return MIN(n, 0);
}
