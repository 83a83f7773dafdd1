/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for nets with tls: required in requests and files: "tls set",
 * "tls show", "tls:". Whether a name and its NIDs make sense, is for
 * lnet_tls_rule_set(3). */
#include <errno.h>
#include <stdlib.h>

#include "config/request/request.h"

static const char *const set_keys[] = { "name", "nids", NULL };
static const char *const del_keys[] = { "name", "all", NULL };
static const char *const file_keys[] = { "name", "nids", "seq_no", NULL };

/* ---- reading ---- */

static int read_name(const struct scope *s, const struct tree *map,
		     const char **name_p)
{
	const struct tree *t;
	int rc = scope_need(s, map, "name", &t);

	return rc ? rc : scope_text(s, t, name_p);
}

/* Sets *@nids_p to the NIDs of @map, a text, or a list of texts, which are
 * joined. The caller owes free(). */
static int read_nids(const struct scope *s, const struct tree *map,
		     char **nids_p)
{
	const struct tree *list, *item = NULL;
	int rc = scope_need(s, map, "nids", &list);
	char *all = rc ? NULL : strdup("");
	const char *text;

	if (!rc && list->kind == TREE_MAP)
		rc = scope_fail(s, list, -EINVAL, "nids: a list is expected");
	while (!rc && all && (item = list_next(list, item))) {
		char *longer;

		rc = scope_text(s, item, &text);
		if (rc)
			break;
		longer = realloc(all, strlen(all) + strlen(text) + 2);
		if (longer) {
			strcat(strcat(longer, *longer ? " " : ""), text);
			all = longer;
		} else {
			rc = -ENOMEM;
		}
	}
	if (!rc && !all)
		rc = -ENOMEM;
	if (rc == -ENOMEM)
		(void)scope_fail(s, map, rc, "no memory");
	if (rc)
		free(all);
	else
		*nids_p = all;
	return rc;
}

static int plan_set_rule(struct plan *plan, const struct scope *s,
			 const struct tree *map, const char *name)
{
	char *nids;
	int rc = read_nids(s, map, &nids);

	if (rc)
		return rc;
	rc = plan_tls_rule(plan, s, map, name, nids);
	free(nids);
	return rc;
}

/* ---- commands, and files ---- */

int tls_forget(struct plan *plan, const struct scope *s)
{
	struct ulnet_tls_rule *all;
	int n = tls_rules_read(plan->node, &all), rc = 0;

	if (n < 0)
		return scope_fail(s, NULL, n, "no memory");
	for (int i = 0; !rc && i < n; i++)
		rc = plan_tls_rule(plan, s, NULL, all[i].name, NULL);
	free(all);
	return rc;
}

int tls_args(struct plan *plan, const struct scope *s, const struct tree *args,
	     bool add)
{
	const char *name;
	bool all = false;
	int rc = scope_keys(s, args, add ? set_keys : del_keys);

	if (!rc && !add)
		rc = scope_bool(s, tree_get(args, "all"), &all);
	if (!rc && all)
		return tls_forget(plan, s);
	if (!rc)
		rc = read_name(s, args, &name);
	if (rc)
		return rc;
	return add ? plan_set_rule(plan, s, args, name)
		   : plan_tls_rule(plan, s, args, name, NULL);
}

int tls_item(struct plan *plan, const struct scope *s, const struct tree *item,
	     bool add)
{
	struct scope strict = *s;
	const char *name;
	int rc;

	/* What an unknown key may have meant is not left out of a rule. */
	strict.lenient = false;
	rc = scope_keys(&strict, item, file_keys);
	if (!rc)
		rc = read_name(s, item, &name);
	if (rc)
		return rc;
	return add ? plan_set_rule(plan, s, item, name)
		   : plan_tls_rule(plan, s, item, name, NULL);
}

/* ---- showing ---- */

static void show_rule(const struct ulnet_tls_rule *rule, struct tree *out)
{
	struct tree *map = tree_item(out, "tls");

	tree_text(map, "name", TREE_PLAIN, rule->name);
	tree_text(map, "nids", TREE_PLAIN, rule->nids);
}

int show_tls_rules(struct lnet *node, const char *name, struct tree *out)
{
	struct ulnet_tls_rule *all;
	int n = tls_rules_read(node, &all);

	for (int i = 0; i < n; i++)
		if (!name || !strcmp(all[i].name, name))
			show_rule(&all[i], out);
	free(all);
	return MIN(n, 0);
}

void tls_show(struct request *r)
{
	const char *name = NULL;

	if (!scope_text(&r->scope, tree_get(r->args, "name"), &name))
		cannot_get(&r->scope,
			   show_tls_rules(r->control->node, name,
					  answer_output(r->answer)),
			   "tls rules");
}

int tls_show_item(struct lnet *node, const struct scope *s,
		  const struct tree *item)
{
	const char *name;
	int rc = scope_keys(s, item, file_keys);

	if (!rc)
		rc = read_name(s, item, &name);
	return rc ? rc : show_tls_rules(node, name, answer_output(s->answer));
}
