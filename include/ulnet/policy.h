/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User-defined selection policies: which nets, interfaces, pairs and gateways
 * messages shall take rather than others. Manual: lnet_policy_add(3),
 * lnet_policy(7).
 */
#ifndef ULNET_POLICY_H
#define ULNET_POLICY_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a pattern, with its terminator. */
#define LNET_PATTERN_SIZE 256
/* As many a node may have; one more is -ENOSPC. */
#define LNET_POLICIES_MAX 1024
/* Whatever has no priority comes behind what has one: 0 is the best. */
#define LNET_PRIORITY_NONE UINT32_MAX
/* Behind all others. */
#define LNET_POLICY_LAST UINT32_MAX

/*
 * A rule. A pattern with '@' is a list of NIDs (lnet_nidlist(3)), one without
 * is a net, as "tcp1" or "o2ib[1-3]"; "" is none. What is given makes the kind:
 *
 *	src		nets or NIDs of this node: have the priority
 *	dst		nets or NIDs of peers: have the priority
 *	src, dst	NIDs: peers with such a NID are sent to from such an NI
 *	dst, rte	NIDs (dst: or nets): are reached by such gateways
 */
struct ulnet_policy {
	char src[LNET_PATTERN_SIZE];
	char dst[LNET_PATTERN_SIZE];
	char rte[LNET_PATTERN_SIZE];
	uint32_t priority; /* with src or dst alone; else LNET_PRIORITY_NONE */
};

ULNET_EXPORT int lnet_policy_add(struct lnet *node, unsigned int index,
				 const struct ulnet_policy *policy,
				 struct ulnet_text_error *err);
ULNET_EXPORT int lnet_policy_del(struct lnet *node, unsigned int index);
ULNET_EXPORT int lnet_policies(struct lnet *node, struct ulnet_policy *policies,
			       unsigned int n);

#ifdef __cplusplus
}
#endif

#endif
