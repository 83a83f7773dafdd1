/* SPDX-License-Identifier: BSD-3-Clause */
/* The request "rpc rules" of the control socket: lnet_control(7). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/keys.h"
#include "rpc/rules.h"
#include "rpc/stats/stats.h"
#include "rpc/stats/yaml.h"

/* ---- showing ---- */

static void print_list(struct yaml *y, const char *key, const char *const *list)
{
	if (!list)
		return;
	yaml_line(y, "%s:", key);
	y->depth++;
	for (; *list; list++) {
		char *quoted = NULL;

		if (!lnet_ctl_quote(*list, &quoted))
			yaml_line(y, "- %s", quoted);
		free(quoted);
	}
	y->depth--;
}

static void print_group(struct yaml *y, const struct ulrpc_group *g)
{
	yaml_item(y);
	yaml_name(y, "name", g->name);
	print_list(y, "names", g->names);
	y->depth--;
}

static void print_rule(struct yaml *y, const struct ulrpc_rule *r)
{
	const bool any = !r->services && !r->methods && !r->names &&
			 !r->groups && !r->nids && !r->kind && !r->flavour;

	yaml_item(y);
	if (any) /* YAML would read an item without keys as null */
		yaml_line(y, "services: \"*\"");
	print_list(y, "services", r->services);
	print_list(y, "methods", r->methods);
	print_list(y, "names", r->names);
	print_list(y, "groups", r->groups);
	if (r->nids)
		yaml_name(y, "nids", r->nids);
	if (r->kind)
		yaml_line(y, "kind: %s", peer_kind_name(r->kind));
	if (r->flavour)
		yaml_line(y, "flavour: %s", ulrpc_flavour_name(r->flavour));
	y->depth--;
}

/* Prints the rules in the form in which they can be set again. */
static void rules_print(const struct ulrpc_rules_conf *conf, FILE *out)
{
	struct yaml y = { .out = out };

	yaml_line(&y, conf ? "rpc:" : "rpc: {}");
	if (!conf)
		return;
	y.depth++;
	if (conf->ngroups)
		yaml_line(&y, "groups:");
	for (unsigned int i = 0; i < conf->ngroups; i++)
		print_group(&y, &conf->groups[i]);
	yaml_line(&y, conf->nrules ? "rules:" : "rules: []");
	for (unsigned int i = 0; i < conf->nrules; i++)
		print_rule(&y, &conf->rules[i]);
}

static int rules_text(struct ulrpc *rpc, char **yaml_p)
{
	struct ulrpc_rules *rules = rules_get(rpc);
	size_t size;
	FILE *f = open_memstream(yaml_p, &size);
	int rc = -ENOMEM;

	if (f) {
		rules_print(rules ? rules_conf(rules) : NULL, f);
		rc = ferror(f) ? -ENOMEM : 0;
		if (fclose(f))
			rc = -ENOMEM;
		if (rc)
			free(*yaml_p);
	}
	ulrpc_rules_put(rules);
	return rc;
}

/* ---- setting ---- */

static int rules_of(struct lnet_control_call *call, const char *text,
		    struct ulrpc_rules **rules_p)
{
	struct ulrpc_rules_conf *conf = NULL;
	char why[512] = "";
	int rc = lnet_rules_parse(text, &conf, why, sizeof(why));

	if (!rc)
		rc = ulrpc_rules_new(conf, rules_p, why, sizeof(why));
	free(conf);
	return rc ? lnet_control_fail(call, rc, why) : 0;
}

int on_rules(void *arg, struct lnet_control_call *call, char **output_p)
{
	struct ulrpc_rules *rules = NULL;
	const char *text = NULL;
	bool check = false, clear = false;
	int rc = lnet_control_text(call, "text", &text);

	if (!rc)
		rc = control_flag(call, "check", &check);
	if (!rc)
		rc = control_flag(call, "clear", &clear);
	if (rc)
		return rc;
	if (text && clear)
		return lnet_control_fail(call, -EINVAL,
					 "clear: there are new rules");
	if (text)
		rc = rules_of(call, text, &rules);
	if (!rc && !check && (text || clear))
		rc = ulrpc_use_rules(arg, rules);
	ulrpc_rules_put(rules);
	return rc || text || clear ? rc : rules_text(arg, output_p);
}
