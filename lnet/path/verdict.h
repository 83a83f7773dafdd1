/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policy verdicts: what the user's policies (policy/policy.h) say of a local NI
 * or a peer NI. A verdict is computed when it is first asked for, and kept with
 * the NI until policies, local NIs or routes change, which changes cpt.rules.
 * Nobody asks on a node without a table of policies; one whose NIs are in
 * several IP networks always has a table. Thread: the CPT's.
 */
#ifndef LNET_PATH_VERDICT_H
#define LNET_PATH_VERDICT_H

#include "lnet/net/net.h"
#include "lnet/peer/peer.h"
#include "lnet/policy/policy.h"

/* Returns the priorities of the NI and of its net; for a peer NI, also which
 * local NIs and routes are preferred. */
const struct ni_verdict *verdict_of_ni(const struct lnet_cpt *cpt,
				       struct lnet_ni *ni);
const struct peer_verdict *verdict_of_peer_ni(const struct lnet_cpt *cpt,
					      struct lnet_peer_ni *lpni);

/* Do policies prefer @way, which is a local NI or a route, for messages to
 * @lpni? Without a policy about @lpni, the local NIs in its IP network are
 * preferred to those in others. */
bool verdict_prefers(const struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		     const void *way);
/* Do policies prefer another local NI, which is up, to @ni for messages to
 * @lpni? */
bool verdict_has_better(const struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			const struct lnet_ni *ni);

#endif
