/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting anew. */
#include <errno.h>

#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "lnet/peer/peer.h"

static int reset_cpt(struct lnet_cpt *cpt, void *arg)
{
	(void)arg;
	/* The NIs may be gone. */
	if (cpt->closing)
		return -ESHUTDOWN;
	cpt_stats_reset(cpt);
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		ni_stats_reset(cpt->config->ni[i], cpt);
	return 0;
}

int lnet_stats_reset(struct lnet *node)
{
	int rc = node_each_cpt(node, reset_cpt, NULL);

	return rc ? rc : peers_stats_reset(node);
}
