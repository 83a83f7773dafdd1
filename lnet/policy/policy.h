/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User-defined selection policies: what matches one, and what all of a node's
 * say (requirement C8). Knows NIDs and nets only, and no node. Immutable: any
 * thread.
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

/* NIDs, or all of the nets that the NIDs of the list are on. */
struct pattern {
	struct ulnet_nidlist *list; /* NULL: none is given */
	bool nets;
};

struct policy {
	enum policy_kind kind;
	struct pattern src, dst, rte;
	uint32_t priority;
	struct ulnet_policy text; /* as it is shown: canonical */
};

/* For policy_free(). As lnet_policy_add(3): -EINVAL with *@err (may be NULL)
 * filled, -ENAMETOOLONG, -ENOMEM. */
int policy_make(const struct ulnet_policy *text, struct ulnet_text_error *err,
		struct policy **policy_p) must_check;
void policy_free(struct policy *policy); /* NULL is fine */

/* Does the pattern name @nid, or its net if it is one of nets? */
static inline bool pattern_covers(const struct pattern *p,
				  const struct ulnet_nid *nid)
{
	return lnet_nidlist_match(p->list, nid);
}

/* Are they the same but for their priority? */
bool policy_same(const struct policy *a, const struct policy *b);

/* The policies of a node, in their order: a snapshot, as the table of routes
 * (route/route.h). Immutable; the policies themselves go from snapshot to
 * snapshot. Of priorities the first policy that matches decides; of pairs and
 * gateways all that match count. A node without any has no table. */
struct policy_table {
	unsigned int n;
	struct policy *policy[];
};

/* The priorities of @nid and of its net, of this node (POLICY_SRC_NET) or of a
 * peer (POLICY_DST_NET): those of the first policies that match, or
 * LNET_PRIORITY_NONE. @t NULL: there are none. */
void policies_of(const struct policy_table *t, enum policy_kind net_kind,
		 const struct ulnet_nid *nid, uint32_t *net_priority_p,
		 uint32_t *priority_p);
/* Is there one by which the peer with @dst is to be sent to from @src? */
bool policies_pair(const struct policy_table *t, const struct ulnet_nid *src,
		   const struct ulnet_nid *dst);
/* ... by which @dst, or what is on its net, is to be reached by @gateway? */
bool policies_gateway(const struct policy_table *t, const struct ulnet_nid *dst,
		      const struct ulnet_nid *gateway);

/* New ones, for free(): with @policy at place @index, at most old's n; without
 * the one there. @old NULL: there is none yet. NULL: no memory. */
struct policy_table *policy_table_with(const struct policy_table *old,
				       unsigned int index,
				       struct policy *policy);
struct policy_table *policy_table_without(const struct policy_table *old,
					  unsigned int index);

#endif
