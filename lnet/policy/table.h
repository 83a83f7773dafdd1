/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policies of a node, in their order: a snapshot, as the table of routes
 * (route/table.h). Immutable; the policies themselves go from snapshot to
 * snapshot. Of priorities the first policy that matches decides; of pairs and
 * gateways all that match count.
 *
 * A node without any has no table.
 */
#ifndef LNET_POLICY_TABLE_H
#define LNET_POLICY_TABLE_H

#include "lnet/policy/policy.h"

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
