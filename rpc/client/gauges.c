/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/gauges.h"

#include "rpc/client/client.h"

/* Imports know of methods, and nobody else does. */
static int no_methods(struct shard *s, struct stat_shard *sum)
{
	(void)s;
	(void)sum;
	return 0;
}

static int import_gauges(struct shard *s, struct stat_peer *p,
			 struct stat_peer_gauges *g, struct stat_shard *sum)
{
	struct import *imp = container_of(p, struct import, stats);
	struct ulrpc_client *c;
	int rc = 0;

	(void)s;
	*g = (struct stat_peer_gauges){
		.state = fsm_name(&imp->fsm, import_states),
		.rtt = import_rtt(imp),
		.patience = 1u << imp->patience,
		.slots = imp->slots.granted,
	};
	list_for_each_entry (c, &imp->clients, link) {
		g->window += c->window.limit;
		if (!rc)
			rc = timeouts_gauge(c, sum);
	}
	return rc;
}

const struct stat_gauger import_gauger = {
	.methods = no_methods,
	.peer = import_gauges,
};
