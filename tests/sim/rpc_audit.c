/* SPDX-License-Identifier: BSD-3-Clause */
/* RPC from the inside: what is left when no call is under way. */
#include "rpc/client.h"
#include "rpc/import.h"
#include "rpc/service.h"
#include "tests/sim/rpc_run.h"

static const char *client_busy(const struct ulrpc_client *c)
{
	if (c->ncalls || c->nqueued || c->inflight)
		return "a client counts calls";
	if (!list_empty(&c->again) || !list_empty(&c->queue) ||
	    !list_empty(&c->fenced))
		return "a client has calls";
	return NULL;
}

static const char *imports_busy(const struct imports *x)
{
	const char *what = NULL;
	struct import *imp;
	struct ulrpc_client *c;

	if (!list_empty(&x->parcels))
		return "parcels";
	list_for_each_entry (imp, &x->all, link) {
		if (!list_empty(&imp->unreplied) || !list_empty(&imp->parcels))
			return "a connection has calls";
		list_for_each_entry (c, &imp->clients, link)
			what = what ? what : client_busy(c);
	}
	return what;
}

static const char *service_busy(const struct service_cpt *sc)
{
	if (sc->held || sc->held_bytes)
		return "a service counts requests";
	if (!list_empty(&sc->active) || !list_empty(&sc->flush) ||
	    !list_empty(&sc->replies))
		return "a service has requests";
	if (sc->strays || sc->inbox.pinned)
		return "a service has messages";
	return NULL;
}

static const char *shard_busy(struct shard *s)
{
	const char *what = s->work ? "work" : imports_busy(s->imports);
	struct service_cpt *sc;

	list_for_each_entry (sc, &s->rpc->services->shard[s->cpt], link)
		what = what ? what : service_busy(sc);
	return what;
}

bool audit_rpc(struct member *m, bool say)
{
	struct ulrpc *rpc = m->rpc;
	const char *what = NULL;

	for (unsigned int i = 0; rpc && i < rpc->ncpts && !what; i++)
		what = shard_busy(&rpc->shards[i]);
	if (what && say)
		lnet_sim_fail(m->run->sim,
			      "node %u: no call is under way, but there is "
			      "left: %s",
			      m->index, what);
	return !what;
}
