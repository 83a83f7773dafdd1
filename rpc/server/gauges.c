/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/gauges.h"

#include "rpc/server/estimates.h"
#include "rpc/server/export.h"
#include "rpc/server/service.h"

static struct list *services_of(const struct shard *s)
{
	return &s->rpc->services->shard[s->cpt];
}

static int service_gauges(struct shard *s, struct stat_shard *sum)
{
	struct service_cpt *sc;
	int rc = 0;

	list_for_each_entry (sc, services_of(s), link)
		if (!rc)
			rc = estimates_gauge(sc, sum);
	return rc;
}

/* Of the service on the portal of @share; 0: it has gone. */
static uint32_t window_of(const struct shard *s, const struct share *share)
{
	const struct service_cpt *sc;

	list_for_each_entry (sc, services_of(s), link)
		if (sc->service->portal == share->portal)
			return grant_of(&share->grant,
					sc->service->conf.window);
	return 0;
}

static int export_gauges(struct shard *s, struct stat_peer *p,
			 struct stat_peer_gauges *g, struct stat_shard *sum)
{
	const struct export *e = container_of(p, struct export, stats);
	const struct share *share;

	(void)sum;
	*g = (struct stat_peer_gauges){
		.rtt = e->rtt,
		.silent = shard_now(s) - e->heard,
	};
	list_for_each_entry (share, &e->shares, link) {
		g->window += window_of(s, share);
		g->under_way += share->held.requests;
	}
	return 0;
}

const struct stat_gauger export_gauger = {
	.methods = service_gauges,
	.peer = export_gauges,
};
