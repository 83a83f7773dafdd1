/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/ip2nets_item.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/item.h"
#include "ulnet/control.h"

static const char *const args_keys[] = {
	"ip2net", "cpts", "tunables", "skip_mr_route_setup", NULL,
};
static const char *const excluded[] = { "net", "nid", "interfaces", "interface",
					NULL };
static const char *const file_keys[] = {
	"net-spec",	"interfaces", "ip-range", "tunables",
	"lnd tunables", "CPT",	      "seq_no",	  NULL,
};

/* What all NIs of a rule have: the tunables in @map, but for the keys @others,
 * and those in @tunables. */
struct nis {
	struct plan *plan;
	const struct scope *scope;
	const struct tree *at, *map, *tunables;
	const char *const *others; /* NULL: none */
	bool add;
};

static int plan_one(const struct nis *nis, const struct ulnet_ni_conf *conf)
{
	struct lnet *node = nis->plan->node;
	uint32_t net = lnet_nid_net(&conf->nid);
	struct ni_wish wish = { .conf.nid = lnet_nid_make(net, 0) };
	int rc = item_served(node, nis->scope, nis->at, net);

	if (!rc && !nis->add)
		return item_del_nis(nis->plan, nis->scope, nis->at, net,
				    conf->interface);
	if (!rc)
		rc = item_tunables(node, nis->scope, nis->map, nis->others,
				   &wish);
	if (!rc)
		rc = item_tunables(node, nis->scope, nis->tunables, NULL,
				   &wish);
	if (rc)
		return rc;
	text_copy(wish.interface, sizeof(wish.interface), conf->interface);
	return plan_ni_add(nis->plan, nis->scope, nis->at, &wish);
}

/* -ENOENT, and nothing said: no rule matches. */
static int plan_rules(const struct nis *nis, const char *rules)
{
	struct ulnet_text_error err = { 0, "" };
	struct ulnet_ni_conf *confs;
	unsigned int n;
	int rc = lnet_ip2nets_parse(rules, &confs, &n, &err);

	if (rc == -ENOENT)
		return rc;
	if (rc)
		return scope_fail(nis->scope, nis->at, rc,
				  "'%.64s': at character %zu: %s", rules,
				  err.offset + 1,
				  *err.what ? err.what : strerror(-rc));
	for (unsigned int i = 0; !rc && i < n; i++)
		rc = plan_one(nis, &confs[i]);
	free(confs);
	return rc;
}

/* ---- net add ---- */

int ip2nets_add(struct plan *plan, const struct scope *s,
		const struct tree *args, const struct tree *rules)
{
	struct nis nis = {
		plan,	   s,	rules, args, tree_get(args, "tunables"),
		args_keys, true
	};
	const char *text;
	int rc = scope_text(s, rules, &text);

	for (unsigned int i = 0; !rc && excluded[i]; i++)
		if (tree_get(args, excluded[i]))
			rc = scope_fail(s, args, -EINVAL,
					"ip2net says the networks: '%s' does "
					"not go with it",
					excluded[i]);
	if (!rc)
		rc = item_cpts(plan->node, s, tree_get(args, "cpts"));
	if (rc)
		return rc;
	rc = plan_rules(&nis, text);
	return rc == -ENOENT
		       ? scope_fail(s, rules, rc,
				    "no rule matches an address of this host")
		       : rc;
}

/* ---- files ---- */

/* Adds the texts of @list, a sequence or the values of a mapping, to @out. */
static int put_texts(const struct scope *s, const struct tree *list,
		     const char *between, FILE *out)
{
	const struct tree *t = NULL;
	const char *text, *before = "";

	while (list && (t = list_next(list, t))) {
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
	const struct tree *interfaces = tree_get(item, "interfaces");
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
	return put_texts(s, tree_get(item, "ip-range"), " ", out);
}

/* The rule that the item says; to be freed. */
static int rule_of(const struct scope *s, const struct tree *item,
		   char **rule_p)
{
	const struct tree *net = tree_get(item, "net-spec");
	const char *name;
	FILE *out;
	size_t size;
	int rc;

	if (!net)
		return scope_misread(s, item, "net-spec is missing");
	if (!tree_get(item, "ip-range"))
		return scope_misread(s, item, "ip-range is missing");
	rc = scope_text(s, net, &name);
	if (rc)
		return rc;
	out = open_memstream(rule_p, &size);
	if (!out)
		return scope_fail(s, item, -ENOMEM, "no memory");
	rc = put_rule(s, item, name, out);
	if (fclose(out) && !rc)
		rc = scope_fail(s, item, -ENOMEM, "no memory");
	if (rc)
		free(*rule_p);
	return rc;
}

int ip2nets_file_item(struct plan *plan, const struct scope *s,
		      const struct tree *item, bool add, bool *applied_p)
{
	struct nis nis = { plan,
			   s,
			   item,
			   tree_get(item, "tunables"),
			   tree_get(item, "lnd tunables"),
			   NULL,
			   add };
	char *rule = NULL;
	int rc = scope_keys(s, item, file_keys);

	if (!rc)
		rc = item_cpts(plan->node, s, tree_get(item, "CPT"));
	if (!rc)
		rc = rule_of(s, item, &rule);
	if (rc)
		return rc;
	rc = plan_rules(&nis, rule);
	free(rule);
	if (rc == -ENOENT)
		return 0;
	*applied_p = true;
	return rc;
}
