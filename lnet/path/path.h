/* SPDX-License-Identifier: BSD-3-Clause */
/* What a CPT knows of the paths of its messages. */
#ifndef LNET_PATH_H
#define LNET_PATH_H

#include "lnet/peer/peer.h"

struct path_cpt {
	struct peer_cpt peer;
	uint64_t ni_uses; /* of NI choices */
};

static inline struct path_cpt *path_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct path_cpt, peer.portal.cpt);
}

#endif
