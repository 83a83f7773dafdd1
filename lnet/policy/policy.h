/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One user-defined selection policy: what matches it (requirement C8). Knows
 * NIDs and nets only, and no node. Immutable: any thread.
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

#endif
