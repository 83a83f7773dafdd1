/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "config/show.h"

#define ANY_INDEX LNET_POLICY_LAST

/* What a kernel node prints for a pattern that there is none of. */
#define NO_PATTERN "NA"

static const char *const args_keys[] = { "src",	     "dst", "rte",
					 "priority", "idx", NULL };
static const char *const del_keys[] = { "idx", "all", NULL };
static const char *const file_keys[] = { "src",	   "dst",    "rte", "idx",
					 "action", "seq_no", NULL };
static const char *const action_keys[] = { "priority", NULL };
const char *const policy_show_keys[] = { "idx", NULL };

/* ---- all that there are ---- */

struct policy_list {
	struct ulnet_policy *all; /* for free() */
	unsigned int n;
};

static int list_read(struct lnet *node, struct policy_list *list)
{
	int n = lnet_policies(node, NULL, 0);

	*list = (struct policy_list){ NULL, 0 };
	list->all = calloc((size_t)n + 1, sizeof(*list->all));
	if (!list->all)
		return -ENOMEM;
	list->n = (unsigned int)MIN(
		n, lnet_policies(node, list->all, (unsigned int)n));
	return 0;
}

/* ---- reading ---- */

static int read_index(const struct scope *s, const struct tree *map,
		      unsigned int *index_p)
{
	const struct tree *t = tree_get(map, "idx");
	int64_t v = ANY_INDEX;
	int rc = t ? scope_number(s, t, -1, LNET_POLICIES_MAX, &v) : 0;

	*index_p = v < 0 ? ANY_INDEX : (unsigned int)v;
	return rc;
}

static int read_pattern(const struct scope *s, const struct tree *map,
			const char *key, char *buf)
{
	const struct tree *t = tree_get(map, key);
	const char *text;
	int rc = t ? scope_text(s, t, &text) : 0;

	*buf = '\0';
	if (!t || rc || !strcmp(text, NO_PATTERN))
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

/* -1, which kernel nodes print for none, is none. */
static int read_priority(const struct scope *s, const struct tree *map,
			 uint32_t *priority_p)
{
	const struct tree *t = tree_get(map, "priority");
	int64_t v = -1;
	int rc = t ? scope_number(s, t, -1, LNET_PRIORITY_NONE - 1, &v) : 0;

	*priority_p = v < 0 ? LNET_PRIORITY_NONE : (uint32_t)v;
	return rc;
}

static int read_action(const struct scope *s, const struct tree *item,
		       struct ulnet_policy *p)
{
	const struct tree *action = tree_get(item, "action");
	struct scope strict = *s;
	int rc;

	/* What it shall do cannot be passed over. */
	strict.lenient = false;
	rc = action ? scope_keys(&strict, action, action_keys) : 0;
	p->priority = LNET_PRIORITY_NONE;
	return rc || !action ? rc : read_priority(s, action, &p->priority);
}

/* ---- which one is meant ---- */

/* "tcp0" and "tcp" are the same. False: it is no pattern, or no memory. */
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

/* The first of @list that has those patterns, else the one with the index: its
 * index; ANY_INDEX: there is none. */
static unsigned int find(const struct policy_list *list,
			 const struct ulnet_policy *wanted, unsigned int index)
{
	struct ulnet_policy p = *wanted;
	unsigned int i = 0;

	if (!*p.src && !*p.dst && !*p.rte)
		return index < list->n ? index : ANY_INDEX;
	if (!canonical(p.src) || !canonical(p.dst) || !canonical(p.rte))
		return ANY_INDEX;
	while (i < list->n && !same_patterns(&list->all[i], &p))
		i++;
	return i < list->n ? i : ANY_INDEX;
}

static int plan_del(struct plan *plan, const struct scope *s,
		    const struct tree *at, const struct ulnet_policy *wanted,
		    unsigned int index)
{
	struct policy_list list;
	int rc = list_read(plan->node, &list);

	if (rc)
		return scope_fail(s, at, rc, "no memory");
	index = find(&list, wanted, index);
	if (index == ANY_INDEX)
		rc = scope_fail(s, at, -ENOENT,
				"cannot del udsp: No such file or directory");
	else
		rc = plan_policy(plan, s, at, &list.all[index], index, false);
	free(list.all);
	return rc;
}

int policies_forget(struct plan *plan, const struct scope *s)
{
	struct policy_list list;
	int rc = list_read(plan->node, &list);

	if (rc)
		return scope_fail(s, NULL, rc, "no memory");
	for (unsigned int i = list.n; !rc && i--;)
		rc = plan_policy(plan, s, NULL, &list.all[i], i, false);
	free(list.all);
	return rc;
}

/* ---- commands ---- */

void policy_add(struct request *r)
{
	struct ulnet_policy p = { .priority = LNET_PRIORITY_NONE };
	unsigned int index;
	struct plan plan;
	int rc = scope_keys(&r->scope, r->args, args_keys);

	if (!rc)
		rc = read_patterns(&r->scope, r->args, &p);
	if (!rc)
		rc = read_priority(&r->scope, r->args, &p.priority);
	if (!rc)
		rc = read_index(&r->scope, r->args, &index);
	if (rc)
		return;
	plan_init(&plan, r->control->node);
	if (!plan_policy(&plan, &r->scope, r->args, &p, index, true))
		(void)plan_run(&plan);
	plan_fini(&plan);
}

static int plan_dels(struct plan *plan, struct request *r)
{
	const struct tree *t = tree_get(r->args, "all");
	struct ulnet_policy none = { .priority = LNET_PRIORITY_NONE };
	unsigned int index;
	bool all = false;
	int rc = t ? scope_bool(&r->scope, t, &all) : 0;

	if (!rc)
		rc = read_index(&r->scope, r->args, &index);
	if (rc)
		return rc;
	if (all)
		return policies_forget(plan, &r->scope);
	if (index == ANY_INDEX)
		return scope_fail(&r->scope, r->args, -EINVAL,
				  "idx is missing");
	return plan_del(plan, &r->scope, r->args, &none, index);
}

void policy_del(struct request *r)
{
	struct plan plan;

	if (scope_keys(&r->scope, r->args, del_keys))
		return;
	plan_init(&plan, r->control->node);
	if (!plan_dels(&plan, r))
		(void)plan_run(&plan);
	plan_fini(&plan);
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

int policy_file_item(struct plan *plan, const struct scope *s,
		     const struct tree *item, bool add)
{
	struct ulnet_policy p;
	unsigned int index;
	int rc = read_item(s, item, &p, &index);

	if (rc)
		return rc;
	return add ? plan_policy(plan, s, item, &p, index, true)
		   : plan_del(plan, s, item, &p, index);
}

/* ---- showing ---- */

static void show_policy(const struct ulnet_policy *p, unsigned int index,
			struct tree *policies)
{
	struct tree *map = tree_map(policies, NULL);

	tree_uint(map, "idx", index);
	tree_text(map, "src", TREE_PLAIN, *p->src ? p->src : NO_PATTERN);
	tree_text(map, "dst", TREE_PLAIN, *p->dst ? p->dst : NO_PATTERN);
	tree_text(map, "rte", TREE_PLAIN, *p->rte ? p->rte : NO_PATTERN);
	if (p->priority != LNET_PRIORITY_NONE)
		tree_uint(tree_map(map, "action"), "priority", p->priority);
}

static void show_list(const struct policy_list *list, unsigned int only,
		      struct tree *out)
{
	struct tree *policies = NULL;

	for (unsigned int i = 0; i < list->n; i++) {
		if (only != ANY_INDEX && only != i)
			continue;
		if (!policies)
			policies = show_section(out, "udsp");
		show_policy(&list->all[i], i, policies);
	}
}

int show_policies(struct lnet *node, struct tree *out)
{
	struct policy_list list;
	int rc = list_read(node, &list);

	if (rc)
		return rc;
	show_list(&list, ANY_INDEX, out);
	free(list.all);
	return 0;
}

void policy_show(struct request *r)
{
	struct policy_list list;
	unsigned int index;
	int rc = read_index(&r->scope, r->args, &index);

	if (rc)
		return;
	rc = list_read(r->control->node, &list);
	if (rc) {
		scope_fail(&r->scope, NULL, rc, "cannot get policies: %s",
			   strerror(-rc));
		return;
	}
	show_list(&list, index, answer_output(r->answer));
	free(list.all);
}

int policy_show_item(struct lnet *node, const struct scope *s,
		     const struct tree *item)
{
	struct policy_list list;
	struct ulnet_policy p;
	unsigned int index;
	int rc = read_item(s, item, &p, &index);

	if (!rc)
		rc = list_read(node, &list);
	if (rc)
		return rc;
	index = find(&list, &p, index);
	if (index != ANY_INDEX)
		show_list(&list, index, answer_output(s->answer));
	free(list.all);
	return 0;
}
