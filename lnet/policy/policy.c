/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/policy/policy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Put before the text of a list of nets to make it a list of NIDs. */
#define ALL_ON	   "*@"
#define ALL_ON_LEN (sizeof(ALL_ON) - 1)

/* Returns -EINVAL, and fills in *@err unless it is NULL. */
static int wrong(struct ulnet_text_error *err, const char *fmt, ...)
{
	va_list args;

	if (!err)
		return -EINVAL;
	err->offset = 0;
	va_start(args, fmt);
	vsnprintf(err->what, sizeof(err->what), fmt, args);
	va_end(args);
	return -EINVAL;
}

/* ---- patterns ---- */

static int policy_pattern_parse(struct pattern *p, const char *name,
				const char *text, struct ulnet_text_error *err)
{
	struct ulnet_text_error at = { 0, "" };
	char list[LNET_PATTERN_SIZE + ALL_ON_LEN];
	int rc;

	if (strnlen(text, LNET_PATTERN_SIZE) == LNET_PATTERN_SIZE)
		return -ENAMETOOLONG;
	p->nets = !strchr(text, '@');
	snprintf(list, sizeof(list), "%s%s", p->nets ? ALL_ON : "", text);
	rc = lnet_nidlist_parse(list, &p->list, &at);
	if (rc == -EINVAL)
		return wrong(err, "%s: %s", name, at.what);
	return rc;
}

/* Writes the canonical form into @buf, of LNET_PATTERN_SIZE bytes. */
static int pattern_format(const struct pattern *p, char *buf)
{
	char list[LNET_PATTERN_SIZE + ALL_ON_LEN];
	size_t skip = p->nets ? ALL_ON_LEN : 0;
	size_t len = lnet_nidlist_format(p->list, list, sizeof(list)) - skip;

	if (len >= LNET_PATTERN_SIZE)
		return -ENAMETOOLONG;
	memcpy(buf, list + skip, len + 1);
	return 0;
}

/* ---- policies ---- */

/* Sets the kind of @p by the patterns that it has. Both patterns of a pair, and
 * the pattern rte, must be of NIDs, not of nets. */
static int find_kind(struct policy *p, struct ulnet_text_error *err)
{
	bool src = p->src.list, dst = p->dst.list, rte = p->rte.list;

	if (rte && (src || !dst))
		return wrong(err, src ? "rte: goes with dst alone"
				      : "rte: goes with dst");
	if (rte)
		p->kind = POLICY_GATEWAY;
	else if (src && dst)
		p->kind = POLICY_PAIR;
	else if (src)
		p->kind = p->src.nets ? POLICY_SRC_NET : POLICY_SRC_NID;
	else if (dst)
		p->kind = p->dst.nets ? POLICY_DST_NET : POLICY_DST_NID;
	else
		return wrong(err, "one of src and dst is needed");
	if (rte && p->rte.nets)
		return wrong(err, "rte: NIDs are expected, not a net");
	if (p->kind == POLICY_PAIR && (p->src.nets || p->dst.nets))
		return wrong(err, "%s: NIDs are expected of a pair, not a net",
			     p->src.nets ? "src" : "dst");
	return 0;
}

static int take_priority(struct policy *p, uint32_t priority,
			 struct ulnet_text_error *err)
{
	bool has_one = p->kind != POLICY_PAIR && p->kind != POLICY_GATEWAY;

	if (!has_one && priority != LNET_PRIORITY_NONE)
		return wrong(err, "priority: %s has none",
			     p->kind == POLICY_PAIR ? "a pair"
						    : "a rule of gateways");
	p->priority = has_one && priority == LNET_PRIORITY_NONE ? 0 : priority;
	return 0;
}

static int policy_parse(struct policy *p, const struct ulnet_policy *text,
			struct ulnet_text_error *err)
{
	const struct {
		const char *name, *from;
		struct pattern *pattern;
		char *to;
	} parts[] = {
		{ "src", text->src, &p->src, p->text.src },
		{ "dst", text->dst, &p->dst, p->text.dst },
		{ "rte", text->rte, &p->rte, p->text.rte },
	};
	int rc = 0;

	for (unsigned int i = 0; !rc && i < ARRAY_SIZE(parts); i++) {
		if (!*parts[i].from)
			continue;
		rc = policy_pattern_parse(parts[i].pattern, parts[i].name,
					  parts[i].from, err);
		if (!rc)
			rc = pattern_format(parts[i].pattern, parts[i].to);
	}
	if (!rc)
		rc = find_kind(p, err);
	if (!rc)
		rc = take_priority(p, text->priority, err);
	p->text.priority = p->priority;
	return rc;
}

int policy_make(const struct ulnet_policy *text, struct ulnet_text_error *err,
		struct policy **policy_p)
{
	struct policy *p = calloc(1, sizeof(*p));
	int rc = p ? policy_parse(p, text, err) : -ENOMEM;

	if (rc)
		policy_free(p);
	else
		*policy_p = p;
	return rc;
}

void policy_free(struct policy *p)
{
	if (!p)
		return;
	lnet_nidlist_free(p->src.list);
	lnet_nidlist_free(p->dst.list);
	lnet_nidlist_free(p->rte.list);
	free(p);
}

bool policy_same(const struct policy *a, const struct policy *b)
{
	return !strcmp(a->text.src, b->text.src) &&
	       !strcmp(a->text.dst, b->text.dst) &&
	       !strcmp(a->text.rte, b->text.rte);
}

/* ---- tables ---- */

/* Returns the priority of the first policy of that kind that matches. */
static uint32_t policy_priority_of(const struct policy_table *t,
				   enum policy_kind kind,
				   const struct ulnet_nid *nid)
{
	bool src = kind == POLICY_SRC_NET || kind == POLICY_SRC_NID;

	for (unsigned int i = 0; i < t->n; i++) {
		const struct policy *p = t->slot[i].policy;

		if (p->kind == kind &&
		    pattern_covers(src ? &p->src : &p->dst, nid))
			return p->priority;
	}
	return LNET_PRIORITY_NONE;
}

void policies_of(const struct policy_table *t, enum policy_kind net_kind,
		 const struct ulnet_nid *nid, uint32_t *net_priority_p,
		 uint32_t *priority_p)
{
	enum policy_kind nid_kind =
		net_kind == POLICY_SRC_NET ? POLICY_SRC_NID : POLICY_DST_NID;

	*net_priority_p = *priority_p = LNET_PRIORITY_NONE;
	if (!t)
		return;
	*net_priority_p = policy_priority_of(t, net_kind, nid);
	*priority_p = policy_priority_of(t, nid_kind, nid);
}

bool policies_pair(const struct policy_table *t, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst)
{
	for (unsigned int i = 0; i < t->n; i++) {
		const struct policy *p = t->slot[i].policy;

		if (p->kind == POLICY_PAIR && pattern_covers(&p->src, src) &&
		    pattern_covers(&p->dst, dst))
			return true;
	}
	return false;
}

bool policies_gateway(const struct policy_table *t, const struct ulnet_nid *dst,
		      const struct ulnet_nid *gateway)
{
	for (unsigned int i = 0; i < t->n; i++) {
		const struct policy *p = t->slot[i].policy;

		if (p->kind == POLICY_GATEWAY && pattern_covers(&p->dst, dst) &&
		    pattern_covers(&p->rte, gateway))
			return true;
	}
	return false;
}

static struct policy_table *table_of(unsigned int n)
{
	struct policy_table *t =
		malloc(sizeof(*t) + n * sizeof(struct policy_slot));

	if (t)
		t->n = n;
	return t;
}

const struct policy_slot *policy_table_find(const struct policy_table *t,
					    uint32_t id)
{
	for (unsigned int i = 0; t && i < t->n; i++)
		if (t->slot[i].id == id)
			return &t->slot[i];
	return NULL;
}

const struct policy_slot *policy_table_like(const struct policy_table *t,
					    const struct policy *like)
{
	for (unsigned int i = 0; t && i < t->n; i++)
		if (policy_same(t->slot[i].policy, like))
			return &t->slot[i];
	return NULL;
}

struct policy_table *policy_table_with(const struct policy_table *old,
				       uint32_t id, struct policy *policy)
{
	unsigned int n = old ? old->n : 0, at = 0;
	struct policy_table *t = table_of(n + 1);

	if (!t)
		return NULL;
	if (id == LNET_POLICY_LAST)
		id = n ? old->slot[n - 1].id + 1 : 0;
	while (at < n && old->slot[at].id < id)
		at++;
	if (old)
		memcpy(t->slot, old->slot, at * sizeof(t->slot[0]));
	t->slot[at] = (struct policy_slot){ id, policy };
	for (unsigned int i = at + 1; i < t->n; i++) {
		t->slot[i] = old->slot[i - 1];
		if (t->slot[i].id == t->slot[i - 1].id)
			t->slot[i].id++;
	}
	return t;
}

struct policy_table *policy_table_replace(const struct policy_table *old,
					  const struct policy_slot *slot,
					  struct policy *policy)
{
	struct policy_table *t = table_of(old->n);

	if (!t)
		return NULL;
	memcpy(t->slot, old->slot, old->n * sizeof(t->slot[0]));
	t->slot[slot - old->slot].policy = policy;
	return t;
}

struct policy_table *policy_table_without(const struct policy_table *old,
					  const struct policy_slot *slot)
{
	struct policy_table *t = table_of(old->n - 1);
	unsigned int at = (unsigned int)(slot - old->slot);

	for (unsigned int i = 0; t && i < t->n; i++)
		t->slot[i] = old->slot[i + (i >= at)];
	return t;
}
