/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User-defined selection policies: which nets, interfaces, pairs and gateways
 * are preferred for messages. Manual: lnet_policy_add(3), lnet_policy(7).
 */
#ifndef ULNET_POLICY_H
#define ULNET_POLICY_H

#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the longest pattern, with its terminator. */
#define LNET_PATTERN_SIZE 256
/* The most policies of a node; adding one more returns -ENOSPC. */
#define LNET_POLICIES_MAX 1024
/* No priority: worse than any priority, of which 0 is the best. */
#define LNET_PRIORITY_NONE UINT32_MAX
/* As the id of a new policy: after all present policies. */
#define LNET_POLICY_LAST UINT32_MAX
/* The highest id that a new policy can be given. */
#define LNET_POLICY_ID_MAX INT32_MAX

/*
 * A policy. A pattern with '@' is a list of NIDs (lnet_nidlist(3)); one without
 * '@' is a list of nets, as "tcp1" or "o2ib[1-3]"; "" is no pattern. The
 * patterns that are set determine what the policy does:
 *
 *	src		gives the priority to nets or NIDs of this node
 *	dst		gives the priority to nets or NIDs of peers
 *	src, dst	prefers local NIs src for messages to peer NIDs dst
 *	dst, rte	prefers gateways rte (NIDs) for messages to dst (NIDs or
 *			nets)
 */
struct ulnet_policy {
	char src[LNET_PATTERN_SIZE];
	char dst[LNET_PATTERN_SIZE];
	char rte[LNET_PATTERN_SIZE];
	/* if only src or only dst is set; else LNET_PRIORITY_NONE */
	uint32_t priority;
	/* Filled in by lnet_policies(). It stays when other policies are
	 * deleted. */
	uint32_t id;
};

ULNET_EXPORT int lnet_policy_add(struct lnet *node, uint32_t id,
				 const struct ulnet_policy *policy,
				 struct ulnet_text_error *err);
ULNET_EXPORT int lnet_policy_del(struct lnet *node, uint32_t id);
ULNET_EXPORT int lnet_policies(struct lnet *node, struct ulnet_policy *policies,
			       unsigned int n);

#ifdef __cplusplus
}
#endif

#endif
