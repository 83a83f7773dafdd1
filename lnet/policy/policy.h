/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User-defined selection policies, and tables of them (requirement C8). Knows
 * NIDs and nets, but no node. Immutable: any thread.
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
	bool nets;		    /* of nets: list has all NIDs on them */
};

struct policy {
	enum policy_kind kind;
	struct pattern src, dst, rte;
	uint32_t priority;
	struct ulnet_policy text; /* canonical, as users see it */
};

/* Makes a policy for policy_free(). Returns 0; -EINVAL, with *@err (may be
 * NULL) filled in; -ENAMETOOLONG; -ENOMEM. */
int policy_make(const struct ulnet_policy *text, struct ulnet_text_error *err,
		struct policy **policy_p) must_check;
void policy_free(struct policy *policy); /* NULL is fine */

/* Does the pattern contain @nid, or its net? */
static inline bool pattern_covers(const struct pattern *p,
				  const struct ulnet_nid *nid)
{
	return lnet_nidlist_match(p->list, nid);
}

/* Do they have the same patterns? */
bool policy_same(const struct policy *a, const struct policy *b);

/* The policies of a node in their order: an immutable snapshot. Snapshots share
 * policies. The first policy that matches sets a priority; all pairs and
 * gateways that match count. A node without policies has no table. */
struct policy_table {
	unsigned int n;
	struct policy *policy[];
};

/* Sets the priorities of @nid and of its net, or LNET_PRIORITY_NONE. @net_kind:
 * POLICY_SRC_NET if @nid is this node's, POLICY_DST_NET if it is a peer's. @t
 * may be NULL: no policies. */
void policies_of(const struct policy_table *t, enum policy_kind net_kind,
		 const struct ulnet_nid *nid, uint32_t *net_priority_p,
		 uint32_t *priority_p);
/* Is there a policy that prefers @src for messages to @dst? */
bool policies_pair(const struct policy_table *t, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst);
/* Is there a policy that prefers @gateway for messages to @dst? */
bool policies_gateway(const struct policy_table *t, const struct ulnet_nid *dst,
		      const struct ulnet_nid *gateway);

/* Return a new table, for free(), with @policy inserted at @index (at most
 * old->n; @old may be NULL), or without the one there. NULL: no memory. */
struct policy_table *policy_table_with(const struct policy_table *old,
				       unsigned int index,
				       struct policy *policy);
struct policy_table *policy_table_without(const struct policy_table *old,
					  unsigned int index);

#endif
