/* SPDX-License-Identifier: BSD-3-Clause */
/* Random policies on the nodes of a random cluster (lnet_policy(7)), and a
 * check that choices follow them. */
#ifndef TESTS_SIM_POLICIES_H
#define TESTS_SIM_POLICIES_H

#include <ulnet/policy.h>
#include <ulnet/sim.h>

/* Adds a policy of any kind to @node, or removes one. It is about @mine, a NID
 * of the node, @other, a NID of another one, and @gateway. */
void policies_change(struct lnet_sim *sim, struct lnet *node,
		     const struct ulnet_nid *mine,
		     const struct ulnet_nid *other,
		     const struct ulnet_nid *gateway);

/* Violation: the path that @node would choose for @dst, or the reason it gives
 * for rejecting a candidate, does not follow its policies. @only: the peer has
 * no other NID. */
void policies_check(struct lnet_sim *sim, struct lnet *node,
		    const struct ulnet_nid *dst, bool only);

#endif
