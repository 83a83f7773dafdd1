/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules for callers of RPC, in YAML: the section "rpc" of lnet.conf(5). This
 * file knows how they are written; what they mean, and which mistakes are in
 * their texts, is for ulrpc_rules_new(3).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "config/yaml/scope.h"
#include "ulnet/control.h"
#include "ulnet/service.h"

/* What is being made: rules, groups, lists and texts are in one block, which
 * its user frees. */
struct reading {
	const struct tree *section;
	char *why;
	size_t size;
	struct ulrpc_rule *rules;
	struct ulrpc_group *groups;
	const char **list; /* the next free pointer */
	char *text;	   /* the next free byte */
};

static __attribute__((format(printf, 3, 4))) int wrong(const struct reading *r,
						       const struct tree *at,
						       const char *fmt, ...)
{
	char what[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (r->size)
		snprintf(r->why, r->size, "line %u: %s", at->line, what);
	return -EINVAL;
}

/* Is @t a mapping with no other keys than @keys? Each key must have a value,
 * since a rule with an empty key would let in all. */
static int keys_check(const struct reading *r, const struct tree *t,
		      const char *what, const char *const *keys)
{
	const struct tree *child;

	if (t->kind != TREE_MAP)
		return wrong(r, t, "%s: a mapping is expected", what);
	tree_for_each (child, t) {
		const char *near = key_near(child->key, keys);

		if (!key_in(child->key, keys))
			return near ? wrong(r, child,
					    "%s: unknown key '%s': '%s' may be "
					    "meant",
					    what, child->key, near)
				    : wrong(r, child, "%s: unknown key '%s'",
					    what, child->key);
		if (tree_is_null(child))
			return wrong(r, child, "%s: %s: a value is expected",
				     what, child->key);
	}
	return 0;
}

/* ---- texts and lists ---- */

static const char *text_add(struct reading *r, const char *text)
{
	const char *at = r->text;

	r->text = stpcpy(r->text, text) + 1;
	return at;
}

/* Reads a text, or a list of them. */
static int read_list(struct reading *r, const struct tree *map, const char *key,
		     const char *const **list_p)
{
	const struct tree *t = tree_get(map, key), *item = NULL;
	const char **list = r->list;

	if (!t)
		return 0;
	if (t->kind == TREE_MAP)
		return wrong(r, t, "%s: a list is expected", key);
	while ((item = list_next(t, item))) {
		if (!tree_is_text(item))
			return wrong(r, item, "%s: a text is expected", key);
		*r->list++ = text_add(r, item->text);
	}
	*r->list++ = NULL;
	*list_p = list;
	return 0;
}

static int read_text(struct reading *r, const struct tree *map, const char *key,
		     const char **text_p)
{
	const struct tree *t = tree_get(map, key);

	if (!t)
		return 0;
	if (!tree_is_text(t))
		return wrong(r, t, "%s: a text is expected", key);
	*text_p = text_add(r, t->text);
	return 0;
}

/* Sets *@value_p to the index of the text in @names, whose NULLs are no
 * values. */
static int read_choice(const struct reading *r, const struct tree *map,
		       const char *key, const char *const *names,
		       unsigned int n, unsigned int *value_p)
{
	const struct tree *t = tree_get(map, key);
	char all[128] = "";

	if (!t)
		return 0;
	for (unsigned int i = 0; i < n; i++) {
		size_t used = strlen(all);

		if (!names[i])
			continue;
		if (tree_is_text(t) && !strcmp(t->text, names[i])) {
			*value_p = i;
			return 0;
		}
		snprintf(all + used, sizeof(all) - used, "%s%s",
			 used ? ", " : "", names[i]);
	}
	return wrong(r, t, "%s: '%s': one of these is expected: %s", key,
		     tree_is_text(t) ? t->text : "", all);
}

static int read_kind(const struct reading *r, const struct tree *map,
		     enum ulrpc_peer_kind *kind_p)
{
	static const char *const names[] = {
		[ULRPC_PEER_CERTIFICATE] = "certificate",
		[ULRPC_PEER_CLUSTER] = "cluster",
		[ULRPC_PEER_MUNGE] = "munge",
	};
	unsigned int value = *kind_p;
	int rc = read_choice(r, map, "kind", names, ARRAY_SIZE(names), &value);

	*kind_p = (enum ulrpc_peer_kind)value;
	return rc;
}

/* The names are those of ulrpc_flavour_name(), which another library has. */
static int read_flavour(const struct reading *r, const struct tree *map,
			enum ulrpc_flavour *flavour_p)
{
	static const char *const names[] = {
		[ULRPC_FLAVOUR_NONE] = "none",
		[ULRPC_FLAVOUR_AUTH] = "auth",
		[ULRPC_FLAVOUR_INTEGRITY] = "integrity",
		[ULRPC_FLAVOUR_PRIVACY] = "privacy",
	};
	unsigned int value = *flavour_p;
	int rc = read_choice(r, map, "flavour", names, ARRAY_SIZE(names),
			     &value);

	*flavour_p = (enum ulrpc_flavour)value;
	return rc;
}

/* ---- items ---- */

static const char *const section_keys[] = { "groups", "rules", NULL };
static const char *const group_keys[] = { "name", "names", NULL };
static const char *const rule_keys[] = { "services", "methods", "names",
					 "groups",   "nids",	"kind",
					 "flavour",  NULL };

static int read_group(struct reading *r, const struct tree *t)
{
	struct ulrpc_group *g = r->groups++;
	int rc = keys_check(r, t, "groups", group_keys);

	g->line = t->line;
	if (!rc)
		rc = read_text(r, t, "name", &g->name);
	return rc ? rc : read_list(r, t, "names", &g->names);
}

static int read_rule(struct reading *r, const struct tree *t)
{
	struct ulrpc_rule *rule = r->rules++;
	int rc = keys_check(r, t, "rules", rule_keys);

	rule->line = t->line;
	if (!rc)
		rc = read_list(r, t, "services", &rule->services);
	if (!rc)
		rc = read_list(r, t, "methods", &rule->methods);
	if (!rc)
		rc = read_list(r, t, "names", &rule->names);
	if (!rc)
		rc = read_list(r, t, "groups", &rule->groups);
	if (!rc)
		rc = read_text(r, t, "nids", &rule->nids);
	if (!rc)
		rc = read_kind(r, t, &rule->kind);
	return rc ? rc : read_flavour(r, t, &rule->flavour);
}

static int read_items(struct reading *r, const char *key,
		      int (*fn)(struct reading *r, const struct tree *t))
{
	const struct tree *t = NULL, *list = tree_get(r->section, key);
	int rc = 0;

	while (!rc && (t = items_next(list, t)))
		rc = fn(r, t);
	return rc;
}

/* ---- the block ---- */

static unsigned int items_count(const struct tree *list)
{
	const struct tree *t = NULL;
	unsigned int n = 0;

	while ((t = items_next(list, t)))
		n++;
	return n;
}

/* Adds up the pointers and the bytes that the lists and texts below @t need.
 * Each list is ended by a pointer. */
static void measure(const struct tree *t, size_t *pointers, size_t *bytes)
{
	const struct tree *child;

	*pointers += 2;
	if (t->kind == TREE_SCALAR) {
		*bytes += strlen(t->text) + 1;
		return;
	}
	tree_for_each (child, t)
		measure(child, pointers, bytes);
}

static struct ulrpc_rules_conf *block_new(struct reading *r)
{
	unsigned int nrules = items_count(tree_get(r->section, "rules"));
	unsigned int ngroups = items_count(tree_get(r->section, "groups"));
	size_t pointers = 0, bytes = 0;
	struct ulrpc_rules_conf *conf;

	measure(r->section, &pointers, &bytes);
	conf = calloc(1, sizeof(*conf) + nrules * sizeof(*r->rules) +
				 ngroups * sizeof(*r->groups) +
				 pointers * sizeof(*r->list) + bytes);
	if (!conf)
		return NULL;
	r->rules = (struct ulrpc_rule *)(conf + 1);
	r->groups = (struct ulrpc_group *)(r->rules + nrules);
	r->list = (const char **)(r->groups + ngroups);
	r->text = (char *)(r->list + pointers);
	*conf = (struct ulrpc_rules_conf){ r->rules, nrules, r->groups,
					   ngroups };
	return conf;
}

static int section_read(struct reading *r, struct ulrpc_rules_conf **conf_p)
{
	struct ulrpc_rules_conf *conf;
	int rc = keys_check(r, r->section, "rpc", section_keys);

	if (!rc && !tree_get(r->section, "rules"))
		rc = wrong(r, r->section, "rpc: rules is missing");
	if (rc)
		return rc;
	conf = block_new(r);
	if (!conf)
		return -ENOMEM;
	rc = read_items(r, "groups", read_group);
	if (!rc)
		rc = read_items(r, "rules", read_rule);
	if (rc)
		free(conf);
	else
		*conf_p = conf;
	return rc;
}

int lnet_rules_parse(const char *text, struct ulrpc_rules_conf **conf_p,
		     char *why, size_t size)
{
	struct reading r = { .why = why, .size = size };
	struct tree_error err;
	struct doc *doc;
	int rc = tree_parse(text, strlen(text), &request_limits, &doc, &err);

	if (rc) {
		if (size)
			snprintf(why, size, "line %u, column %u: %s", err.line,
				 err.column, err.what);
		return rc;
	}
	r.section = tree_get(doc_root(doc), "rpc");
	if (r.section)
		rc = section_read(&r, conf_p);
	else
		rc = -ENOENT;
	if (size && (rc == -ENOENT || rc == -ENOMEM))
		snprintf(why, size, "%s",
			 rc == -ENOMEM ? "no memory"
				       : "there is no section 'rpc'");
	doc_free(doc);
	return rc;
}
