/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/rules.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pattern.h"
#include "rpc/keys.h"
#include "rpc/rpc.h"
#include "secure/identity.h"

/* What is parsed of a rule, beside its texts. */
struct parsed {
	/* the NIDs that the rule is for; NULL: all */
	struct ulnet_nidlist *nids;
	/* the groups that the rule names; NULL: none */
	const struct ulrpc_group **groups;
	unsigned int ngroups;
};

struct ulrpc_rules {
	_Atomic unsigned int refs;
	struct ulrpc_rules_conf conf; /* a deep copy of what the user gave */
	struct ulrpc_rule *rules;     /* where conf.rules points to */
	struct ulrpc_group *groups;   /* where conf.groups points to */
	struct parsed *parsed;	      /* one for each rule */
	/* how many patterns there are, counted as for RULES_PATTERNS */
	unsigned int patterns;
};

/* ---- what is refused ---- */

/* What is being checked, and where the complaint goes. */
struct place {
	char *why;
	size_t size;
	const char *kind; /* "rule" or "group" */
	unsigned int at;  /* the number of the rule or group, from 1 */
	unsigned int line;
};

static __attribute__((format(printf, 3, 4))) int refuse(const struct place *p,
							int rc, const char *fmt,
							...)
{
	char what[ULRPC_TEXT_MAX], line[32] = "";
	va_list ap;

	if (!p->size)
		return rc;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (p->line)
		snprintf(line, sizeof(line), "line %u: ", p->line);
	if (p->at)
		snprintf(p->why, p->size, "%s%s %u: %s", line, p->kind, p->at,
			 what);
	else
		snprintf(p->why, p->size, "%s%s", line, what);
	return rc;
}

static int no_memory(const struct place *p)
{
	return refuse(p, -ENOMEM, "no memory");
}

/* ---- texts ---- */

static bool any_fits(const char *const *patterns, const char *text)
{
	for (; *patterns; patterns++)
		if (pattern_fits(*patterns, text))
			return true;
	return false;
}

static bool is_printable(unsigned char c)
{
	return c >= ' ' && c != 0x7f;
}

/* A list of texts in a rule or group, to be copied. */
struct texts {
	const char *key;
	const char *const *from;
	/* is the character allowed in a pattern? NULL: the texts are no
	 * patterns */
	bool (*is_good)(unsigned char c);
	const char ***to;
};

static int text_check(const struct place *p, const struct texts *l,
		      const char *text)
{
	if (!*text)
		return refuse(p, -EINVAL, "%s: a name is empty", l->key);
	if (strlen(text) >= RULES_NAME_SIZE)
		return refuse(p, -ENAMETOOLONG, "%s: longer than %d bytes",
			      l->key, RULES_NAME_SIZE - 1);
	for (const char *c = text; *c; c++)
		if (!l->is_good((unsigned char)*c))
			return refuse(p, -EINVAL,
				      "%s: '%s': there is no such name; it "
				      "has " PATTERN_CHARS,
				      l->key, text);
	return 0;
}

/* Copies a list with its texts into one block of memory. */
static int texts_copy(struct ulrpc_rules *rules, const struct place *p,
		      const struct texts *l)
{
	size_t n = 0, size = sizeof(*l->from);
	const char **to;
	char *text;

	if (!l->from)
		return 0;
	for (; l->from[n]; n++) {
		int rc = text_check(p, l, l->from[n]);

		if (rc)
			return rc;
		size += sizeof(*l->from) + strlen(l->from[n]) + 1;
	}
	if (!n)
		return refuse(p, -EINVAL,
			      "%s: the list is empty: leave it out for all",
			      l->key);
	if (n > RULES_PATTERNS - rules->patterns)
		return refuse(p, -E2BIG, "%s: more than %d names in all rules",
			      l->key, RULES_PATTERNS);
	to = malloc(size);
	if (!to)
		return no_memory(p);
	text = (char *)&to[n + 1];
	for (size_t i = 0; i < n; i++) {
		to[i] = text;
		text = stpcpy(text, l->from[i]) + 1;
	}
	to[n] = NULL;
	*l->to = to;
	rules->patterns += (unsigned int)n;
	return 0;
}

/* ---- rules ---- */

static const struct ulrpc_group *group_find(const struct ulrpc_rules *rules,
					    const char *name)
{
	for (unsigned int i = 0; i < rules->conf.ngroups; i++)
		if (!strcmp(rules->groups[i].name, name))
			return &rules->groups[i];
	return NULL;
}

static unsigned int texts_count(const char *const *list)
{
	unsigned int n = 0;

	while (list && list[n])
		n++;
	return n;
}

static int groups_find(struct ulrpc_rules *rules, const struct place *p,
		       const struct ulrpc_rule *r, struct parsed *to)
{
	unsigned int n = texts_count(r->groups);

	to->groups = n ? calloc(n, sizeof(struct ulrpc_group *)) : NULL;
	if (n && !to->groups)
		return no_memory(p);
	for (unsigned int i = 0; i < n; i++) {
		const struct ulrpc_group *g = group_find(rules, r->groups[i]);
		unsigned int more = g ? texts_count(g->names) : 0;

		if (!g)
			return refuse(p, -ENOENT,
				      "groups: there is no group '%s'",
				      r->groups[i]);
		if (more > RULES_PATTERNS - rules->patterns)
			return refuse(p, -E2BIG,
				      "groups: more than %d names in all rules",
				      RULES_PATTERNS);
		rules->patterns += more;
		to->groups[to->ngroups++] = g;
	}
	return 0;
}

static int nids_parse(const struct place *p, const char *text,
		      struct ulnet_nidlist **list_p)
{
	struct ulnet_text_error err;
	int rc;

	if (!text)
		return 0;
	rc = lnet_nidlist_parse(text, list_p, &err);
	if (rc == -EINVAL)
		return refuse(p, rc, "nids: '%s', at character %zu: %s", text,
			      err.offset + 1, err.what);
	return rc ? no_memory(p) : 0;
}

/* Is @pattern of a form that user_fits() knows? */
static bool names_user(const char *pattern)
{
	static const char *const kinds[] = { "user=", "uid=", "group=",
					     "gid=" };

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strncmp(pattern, kinds[i], strlen(kinds[i])))
			return true;
	return false;
}

/* Checks that a rule for users of MUNGE has no bare names: those are names of
 * certificates, and would fit no user. */
static int users_check(const struct place *p, const struct ulrpc_rule *r)
{
	const char *const *name = r->names;

	if (r->kind != ULRPC_PEER_MUNGE || !name)
		return 0;
	for (; *name; name++)
		if (!names_user(*name))
			return refuse(p, -EINVAL,
				      "names: '%s': kind munge has user=NAME, "
				      "uid=NUMBER, group=NAME and gid=NUMBER",
				      *name);
	return 0;
}

static int rule_check(const struct place *p, const struct ulrpc_rule *r)
{
	if ((unsigned int)r->kind > ULRPC_PEER_MUNGE)
		return refuse(p, -EINVAL, "kind: %u is none",
			      (unsigned int)r->kind);
	if ((unsigned int)r->flavour > ULRPC_FLAVOUR_PRIVACY)
		return refuse(p, -EINVAL, "flavour: %u is none",
			      (unsigned int)r->flavour);
	if (r->flavour == ULRPC_FLAVOUR_NONE && (r->names || r->groups))
		return refuse(p, -EINVAL,
			      "flavour: none proves no name, and there are "
			      "names");
	return users_check(p, r);
}

static int rule_take(struct ulrpc_rules *rules, const struct place *p,
		     const struct ulrpc_rule *from, unsigned int i)
{
	struct ulrpc_rule *r = &rules->rules[i];
	struct parsed *parsed = &rules->parsed[i];
	const char **services = NULL, **methods = NULL, **names = NULL,
		   **groups = NULL;
	const struct texts lists[] = {
		{ "services", from->services, is_printable, &services },
		{ "methods", from->methods, is_printable, &methods },
		{ "names", from->names, pattern_may_have, &names },
		{ "groups", from->groups, is_printable, &groups },
	};
	int rc = rule_check(p, from);

	for (unsigned int k = 0; !rc && k < ARRAY_SIZE(lists); k++)
		rc = texts_copy(rules, p, &lists[k]);
	*r = (struct ulrpc_rule){ .services = services,
				  .methods = methods,
				  .names = names,
				  .groups = groups,
				  .kind = from->kind,
				  .flavour = from->flavour,
				  .line = from->line };
	if (!rc)
		rc = nids_parse(p, from->nids, &parsed->nids);
	if (!rc && from->nids) {
		r->nids = strdup(from->nids);
		rc = r->nids ? 0 : no_memory(p);
	}
	return rc ? rc : groups_find(rules, p, r, parsed);
}

static int group_take(struct ulrpc_rules *rules, const struct place *p,
		      const struct ulrpc_group *from, unsigned int i)
{
	struct ulrpc_group *g = &rules->groups[i];
	const char **names = NULL;
	const struct texts list = { "names", from->names, pattern_may_have,
				    &names };
	const struct texts own = { "name", NULL, is_printable, NULL };
	int rc;

	if (!from->name)
		return refuse(p, -EINVAL, "name is missing");
	if (!from->names)
		return refuse(p, -EINVAL, "names is missing");
	rc = text_check(p, &own, from->name);
	if (!rc && group_find(rules, from->name))
		rc = refuse(p, -EEXIST, "name: '%s' comes twice", from->name);
	if (!rc)
		rc = texts_copy(rules, p, &list);
	if (rc)
		return rc;
	*g = (struct ulrpc_group){ strdup(from->name), names, from->line };
	if (!g->name) {
		free(names);
		g->names = NULL;
		return no_memory(p);
	}
	rules->conf.ngroups++;
	return 0;
}

static int groups_take(struct ulrpc_rules *rules,
		       const struct ulrpc_rules_conf *conf, struct place p)
{
	int rc = 0;

	p.kind = "group";
	for (unsigned int i = 0; !rc && i < conf->ngroups; i++) {
		p.at = i + 1;
		p.line = conf->groups[i].line;
		rc = group_take(rules, &p, &conf->groups[i], i);
	}
	return rc;
}

static int rules_take(struct ulrpc_rules *rules,
		      const struct ulrpc_rules_conf *conf, struct place p)
{
	int rc = 0;

	p.kind = "rule";
	for (unsigned int i = 0; !rc && i < conf->nrules; i++) {
		p.at = i + 1;
		p.line = conf->rules[i].line;
		rc = rule_take(rules, &p, &conf->rules[i], i);
		rules->conf.nrules++;
	}
	return rc;
}

/* ---- life ---- */

static void rules_free(struct ulrpc_rules *rules)
{
	for (unsigned int i = 0; i < rules->conf.nrules; i++) {
		const struct ulrpc_rule *r = &rules->rules[i];

		free((void *)r->services);
		free((void *)r->methods);
		free((void *)r->names);
		free((void *)r->groups);
		free((void *)r->nids);
		lnet_nidlist_free(rules->parsed[i].nids);
		free(rules->parsed[i].groups);
	}
	for (unsigned int i = 0; i < rules->conf.ngroups; i++) {
		free((void *)rules->groups[i].name);
		free((void *)rules->groups[i].names);
	}
	free(rules->rules);
	free(rules->groups);
	free(rules->parsed);
	free(rules);
}

static int rules_alloc(const struct ulrpc_rules_conf *conf,
		       struct ulrpc_rules **rules_p)
{
	struct ulrpc_rules *rules = calloc(1, sizeof(*rules));

	if (!rules)
		return -ENOMEM;
	rules->refs = 1;
	rules->rules = calloc(conf->nrules + 1, sizeof(*rules->rules));
	rules->parsed = calloc(conf->nrules + 1, sizeof(*rules->parsed));
	rules->groups = calloc(conf->ngroups + 1, sizeof(*rules->groups));
	rules->conf.rules = rules->rules;
	rules->conf.groups = rules->groups;
	*rules_p = rules;
	return rules->rules && rules->parsed && rules->groups ? 0 : -ENOMEM;
}

int ulrpc_rules_new(const struct ulrpc_rules_conf *conf,
		    struct ulrpc_rules **rules_p, char *why, size_t size)
{
	struct ulrpc_rules *rules = NULL;
	const struct place p = { .why = why, .size = size };
	int rc;

	if (conf->nrules > RULES_MAX || conf->ngroups > RULES_MAX)
		return refuse(&p, -E2BIG, "more than %d rules, or groups",
			      RULES_MAX);
	rc = rules_alloc(conf, &rules);
	if (rc)
		no_memory(&p);
	if (!rc)
		rc = groups_take(rules, conf, p);
	if (!rc)
		rc = rules_take(rules, conf, p);
	if (!rc)
		*rules_p = rules;
	else if (rules)
		rules_free(rules);
	return rc;
}

struct ulrpc_rules *rules_ref(struct ulrpc_rules *rules)
{
	atomic_fetch_add(&rules->refs, 1);
	return rules;
}

void ulrpc_rules_put(struct ulrpc_rules *rules)
{
	if (rules && atomic_fetch_sub(&rules->refs, 1) == 1)
		rules_free(rules);
}

const struct ulrpc_rules_conf *rules_conf(const struct ulrpc_rules *rules)
{
	return &rules->conf;
}

/* ---- judgement ---- */

/* Does @pattern consist of @prefix and a pattern that fits @text? */
static bool fits_behind(const char *pattern, const char *prefix,
			const char *text)
{
	size_t n = strlen(prefix);

	return !strncmp(pattern, prefix, n) && pattern_fits(pattern + n, text);
}

/* Does @pattern fit one of the user's other groups? */
static bool other_group_fits(const char *pattern, const struct identity *who)
{
	const char *text = who->groups;

	for (; text; text = identity_next_group(text)) {
		const char *name = strchr(text, '=') + 1;
		size_t n = (size_t)(name - text);

		if (!strncmp(pattern, text, n) &&
		    pattern_fits(pattern + n, name))
			return true;
	}
	return false;
}

/* Does @pattern fit the user @who? A user is named by user=NAME or uid=NUMBER,
 * and by the group of his process, or another one of his, as group=NAME or
 * gid=NUMBER. A pattern names in one of these ways only. */
static bool user_fits(const char *pattern, const struct identity *who)
{
	const char *name = identity_user_name(who);
	char uid[16], gid[16];

	snprintf(uid, sizeof(uid), "%" PRIu32, who->uid);
	snprintf(gid, sizeof(gid), "%" PRIu32, who->gid);
	return fits_behind(pattern, "uid=", uid) ||
	       fits_behind(pattern, "gid=", gid) ||
	       fits_behind(pattern, "group=", who->group) ||
	       other_group_fits(pattern, who) ||
	       (name && fits_behind(pattern, "user=", name));
}

static bool any_names(const char *const *patterns, const struct identity *who)
{
	if (who->kind != IDENTITY_MUNGE)
		return any_fits(patterns, who->name);
	for (; *patterns; patterns++)
		if (user_fits(*patterns, who))
			return true;
	return false;
}

static bool is_named(const struct ulrpc_rule *r,
			      const struct parsed *parsed,
			      const struct identity *who)
{
	if (r->names && any_names(r->names, who))
		return true;
	for (unsigned int i = 0; i < parsed->ngroups; i++)
		if (any_names(parsed->groups[i]->names, who))
			return true;
	return false;
}

static bool is_about(const struct ulrpc_rule *r, const char *service,
		     const char *method)
{
	if (r->services && !any_fits(r->services, service))
		return false;
	if (!r->methods)
		return true;
	return method && any_fits(r->methods, method);
}

static enum rules_verdict rule_judge(const struct ulrpc_rule *r,
				     const struct parsed *parsed,
				     const struct rules_caller *caller)
{
	const struct identity *who = caller->who;
	bool by_name = r->names || r->groups;

	if (parsed->nids && !lnet_nidlist_match(parsed->nids, caller->nid))
		return RULES_UNNAMED;
	if (!who && (by_name || r->kind))
		return RULES_NOBODY;
	if (r->kind && r->kind != peer_kind(who))
		return RULES_UNNAMED;
	/* A rule without a kind, perhaps with a pattern such as *, may be older
	 * than the node's acceptance of users, and does not name them. */
	if (by_name && !r->kind && who->kind == IDENTITY_MUNGE)
		return RULES_UNNAMED;
	if (by_name && !is_named(r, parsed, who))
		return RULES_UNNAMED;
	return caller->flavour < r->flavour ? RULES_LOW : RULES_LET;
}

enum rules_verdict rules_judge(const struct ulrpc_rules *rules,
			       const struct rules_caller *caller,
			       const char *service, const char *method,
			       enum ulrpc_flavour *flavour_p)
{
	enum rules_verdict best = RULES_UNNAMED;

	for (unsigned int i = 0; i < rules->conf.nrules; i++) {
		const struct ulrpc_rule *r = &rules->rules[i];
		enum rules_verdict v;

		if (!is_about(r, service, method))
			continue;
		v = rule_judge(r, &rules->parsed[i], caller);
		if (v == RULES_LET)
			return v;
		if (v == RULES_LOW &&
		    (best != RULES_LOW || r->flavour < *flavour_p))
			*flavour_p = r->flavour;
		best = MIN(best, v);
	}
	return best;
}

/* ---- of a node ---- */

struct ulrpc_rules *rules_get(struct ulrpc *rpc)
{
	struct ulrpc_rules *rules;

	pthread_mutex_lock(&rpc->wait.lock);
	rules = rpc->rules ? rules_ref(rpc->rules) : NULL;
	pthread_mutex_unlock(&rpc->wait.lock);
	return rules;
}

static int rules_changed(void *arg)
{
	struct shard *s = arg;

	s->rpc->server->on_rules(s);
	return 0;
}

/* Each CPT takes the rules that the node has at that moment. So if two threads
 * set rules at once, the rules of one of them win on all CPTs. */
int ulrpc_use_rules(struct ulrpc *rpc, struct ulrpc_rules *rules)
{
	struct ulrpc_rules *before;
	int rc = 0;

	if (lnet_in_turn())
		return -EDEADLK;
	if (lnet_is_forked(rpc->node))
		return -ESHUTDOWN;
	pthread_mutex_lock(&rpc->wait.lock);
	before = rpc->rules;
	rpc->rules = rules ? rules_ref(rules) : NULL;
	pthread_mutex_unlock(&rpc->wait.lock);
	ulrpc_rules_put(before);
	for (unsigned int i = 0; !rc && i < rpc->ncpts; i++)
		rc = lnet_call(rpc->node, i, rules_changed, &rpc->shards[i]);
	return rc;
}
