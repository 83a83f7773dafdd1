/* SPDX-License-Identifier: BSD-3-Clause */
/* Policies on the nodes of a random cluster (lnet_policy(7)), and whether
 * choices follow them. */
#ifndef TESTS_SIM_POLICIES_H
#define TESTS_SIM_POLICIES_H

#include <ulnet/policy.h>
#include <ulnet/sim.h>

/* A policy more on @node, of any kind, about @mine, a NID of its own,
 * @other, and @gateway; or one less. */
void policies_change(struct lnet_sim *sim, struct lnet *node,
		     const struct ulnet_nid *mine,
		     const struct ulnet_nid *other,
		     const struct ulnet_nid *gateway);

/* Is what @node would choose for @dst, and what it says of the others, what its
 * policies say? Else the run has failed. @only: the peer has no other NID. */
void policies_check(struct lnet_sim *sim, struct lnet *node,
		    const struct ulnet_nid *dst, bool only);

#endif
