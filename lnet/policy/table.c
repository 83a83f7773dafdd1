/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/policy/table.h"

#include <stdlib.h>

/* The first one of that kind that matches: its priority. */
static uint32_t priority_of(const struct policy_table *t, enum policy_kind kind,
			    const struct ulnet_nid *nid)
{
	bool src = kind == POLICY_SRC_NET || kind == POLICY_SRC_NID;

	for (unsigned int i = 0; i < t->n; i++) {
		const struct policy *p = t->policy[i];

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
	*net_priority_p = priority_of(t, net_kind, nid);
	*priority_p = priority_of(t, nid_kind, nid);
}

bool policies_pair(const struct policy_table *t, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst)
{
	for (unsigned int i = 0; i < t->n; i++) {
		const struct policy *p = t->policy[i];

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
		const struct policy *p = t->policy[i];

		if (p->kind == POLICY_GATEWAY && pattern_covers(&p->dst, dst) &&
		    pattern_covers(&p->rte, gateway))
			return true;
	}
	return false;
}

static struct policy_table *table_of(unsigned int n)
{
	struct policy_table *t =
		malloc(sizeof(*t) + n * sizeof(struct policy *));

	if (t)
		t->n = n;
	return t;
}

struct policy_table *policy_table_with(const struct policy_table *old,
				       unsigned int index,
				       struct policy *policy)
{
	unsigned int n = old ? old->n : 0;
	struct policy_table *t = table_of(n + 1);

	if (!t)
		return NULL;
	for (unsigned int i = 0; i < n; i++)
		t->policy[i + (i >= index)] = old->policy[i];
	t->policy[index] = policy;
	return t;
}

struct policy_table *policy_table_without(const struct policy_table *old,
					  unsigned int index)
{
	struct policy_table *t = table_of(old->n - 1);

	for (unsigned int i = 0; t && i < t->n; i++)
		t->policy[i] = old->policy[i + (i >= index)];
	return t;
}
