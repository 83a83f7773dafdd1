/* SPDX-License-Identifier: BSD-3-Clause */
/* What a CPT has for telling peers of this node, and for asking them. */
#ifndef LNET_DISCOVERY_H
#define LNET_DISCOVERY_H

#include "lnet/discovery/discover.h"
#include "lnet/discovery/late.h"
#include "lnet/discovery/recovery.h"
#include "lnet/discovery/router.h"
#include "lnet/message/msgs.h"

struct targets;

struct discovery_cpt {
	struct msg_cpt msg;
	struct targets *targets;
	struct disc_cpt disc;
	struct late_claims late;
	struct recovery_cpt recovery;
	struct router_watch routers;
};

static inline struct discovery_cpt *discovery_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct discovery_cpt,
			    msg.path.peer.portal.cpt);
}

#endif
