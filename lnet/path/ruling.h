/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the user's policies (policy/policy.h) say of the interfaces of this node
 * and of its peers. Found out when it is asked for, once, and kept with the
 * interface, until policies, local interfaces or routes change: then cpt.rules
 * is another number. A node without policies does not ask.
 *
 * On the CPT's thread.
 */
#ifndef LNET_PATH_RULING_H
#define LNET_PATH_RULING_H

#include "lnet/net/config.h"
#include "lnet/peer/peer.h"
#include "lnet/policy/policy.h"

struct lnet_route;

/* The priorities of a local NI and of its net; of a peer NI and of its net at
 * the peer. */
const struct ni_ruling *ruling_of_ni(const struct lnet_cpt *cpt,
				     struct lnet_ni *ni);
const struct peer_ruling *ruling_of(const struct lnet_cpt *cpt,
				    struct lnet_peer_ni *lpni);

/* Is @lpni to be sent to from @ni, or by @route, rather than otherwise? */
bool ruling_prefers_ni(const struct peer_ruling *r, const struct lnet_ni *ni);
bool ruling_prefers_route(const struct peer_ruling *r,
			  const struct lnet_route *route);
/* Is there an NI that is up, and to be preferred to @ni? */
bool ruling_has_better(const struct peer_ruling *r, const struct lnet_ni *ni);

#endif
