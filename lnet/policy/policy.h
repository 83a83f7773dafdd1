/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User-defined selection policies, and tables of them (requirement C8). Knows
 * NIDs and nets, but no node. Policies and tables are immutable, so any thread
 * may use them.
 */
#ifndef LNET_POLICY_POLICY_H
#define LNET_POLICY_POLICY_H

#include "base/util.h"
#include "ulnet/policy.h"

enum policy_kind {
	POLICY_SRC_NET,
	POLICY_SRC_NID,
	POLICY_DST_NET,
	POLICY_DST_NID,
	POLICY_PAIR,
	POLICY_GATEWAY,
};

/* A pattern of NIDs or of nets. */
struct pattern {
	struct ulnet_nidlist *list; /* NULL: no pattern is given */
	/* the pattern is of nets; then list has all NIDs on them */
	bool nets;
};

struct policy {
	enum policy_kind kind;
	struct pattern src, dst, rte;
	uint32_t priority;
	struct ulnet_policy text; /* canonical text, as users see it */
};

/* Makes a policy, to be freed with policy_free(). Returns 0; -EINVAL, with
 * *@err filled in unless @err is NULL; -ENAMETOOLONG; -ENOMEM. */
int policy_make(const struct ulnet_policy *text, struct ulnet_text_error *err,
		struct policy **policy_p) must_check;
void policy_free(struct policy *policy); /* NULL is fine */

/* Does the pattern contain @nid or, if it is of nets, the net of @nid? */
static inline bool pattern_covers(const struct pattern *p,
				  const struct ulnet_nid *nid)
{
	return lnet_nidlist_match(p->list, nid);
}

/* Do the two policies have the same patterns? */
bool policy_same(const struct policy *a, const struct policy *b);

/* A policy in a table. */
struct policy_slot {
	uint32_t id; /* as users see it; in a table ids ascend, with gaps */
	struct policy *policy;
};

/* The policies of a node, in their order: an immutable snapshot. Several
 * snapshots may share policies. The priority of an NI or net comes from the
 * first policy that matches; policies on pairs and gateways all count. A node
 * without policies has no table, or an empty one if its NIs are in several IP
 * networks (path/verdict.h). */
struct policy_table {
	unsigned int n;
	struct policy_slot slot[];
};

/* Sets *@net_priority_p and *@priority_p to the priorities of the net of @nid
 * and of @nid, or to LNET_PRIORITY_NONE. @net_kind: POLICY_SRC_NET if @nid is a
 * NID of this node, POLICY_DST_NET if it is a peer's. @t NULL: there are no
 * policies. */
void policies_of(const struct policy_table *t, enum policy_kind net_kind,
		 const struct ulnet_nid *nid, uint32_t *net_priority_p,
		 uint32_t *priority_p);
/* Is there a policy that prefers @src for messages to @dst? */
bool policies_pair(const struct policy_table *t, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst);
/* Is there a policy that prefers @gateway for messages to @dst? */
bool policies_gateway(const struct policy_table *t, const struct ulnet_nid *dst,
		      const struct ulnet_nid *gateway);

/* Finds the slot with @id. NULL: there is none, or no table. */
const struct policy_slot *policy_table_find(const struct policy_table *t,
					    uint32_t id);
/* Finds the slot whose policy has the patterns of @like. NULL: there is none,
 * or no table. */
const struct policy_slot *policy_table_like(const struct policy_table *t,
					    const struct policy *like);

/* Return a new table, to be freed with free(); NULL: there is no memory.
 * policy_table_with(): @old (NULL: an empty table) with @policy as @id
 * (LNET_POLICY_LAST: behind all others), where policies that would have the
 * same id get the next one. policy_table_replace(): with @policy in place of
 * the policy of @slot. policy_table_without(): without @slot. */
struct policy_table *policy_table_with(const struct policy_table *old,
				       uint32_t id, struct policy *policy);
struct policy_table *policy_table_replace(const struct policy_table *old,
					  const struct policy_slot *slot,
					  struct policy *policy);
struct policy_table *policy_table_without(const struct policy_table *old,
					  const struct policy_slot *slot);

#endif
