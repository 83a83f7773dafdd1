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

/* 0: @since has never been. It may be later than the beginning of the turn,
 * when other threads make calls. */
static uint64_t age(uint64_t now, uint64_t since)
{
	return since && since < now ? now - since : 0;
}

/* Of the first call that was sent; those after it are younger, or nearly. */
static uint64_t oldest_sent(const struct import *imp, uint64_t now)
{
	const struct ulrpc_call *call;

	if (list_empty(&imp->calls))
		return 0;
	call = list_first(&imp->calls, struct ulrpc_call, order);
	return age(now, call->began);
}

/* Of those that wait to be sent for the first time. */
static uint64_t oldest_queued(const struct ulrpc_client *c, uint64_t now)
{
	const struct ulrpc_call *call;

	if (list_empty(&c->queue))
		return 0;
	call = list_first(&c->queue, struct ulrpc_call, link);
	return age(now, call->began);
}

static int import_gauges(struct shard *s, struct stat_peer *p,
			 struct stat_peer_gauges *g, struct stat_shard *sum)
{
	struct import *imp = container_of(p, struct import, stats);
	struct ulrpc_client *c;
	uint64_t now = shard_now(s);
	int rc = 0;

	*g = (struct stat_peer_gauges){
		.state = fsm_name(&imp->fsm, import_states),
		.rtt = import_rtt(imp),
		.patience = 1u << imp->patience,
		.slots = imp->slots.granted,
		.silent = age(now, imp->heard),
		.oldest = oldest_sent(imp, now),
	};
	list_for_each_entry (c, &imp->clients, link) {
		g->window += c->window.limit;
		g->under_way += c->ncalls;
		g->oldest = MAX(g->oldest, oldest_queued(c, now));
		if (!rc)
			rc = timeouts_gauge(c, sum);
	}
	return rc;
}

const struct stat_gauger import_gauger = {
	.methods = no_methods,
	.peer = import_gauges,
};
