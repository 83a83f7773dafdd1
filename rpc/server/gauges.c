/* SPDX-License-Identifier: BSD-3-Clause */
/* What statistics show of services and of their clients beside what is counted:
 * how it is now. */
#include "rpc/server/gauges.h"

#include <errno.h>

#include "rpc/keys.h"
#include "rpc/server/serve/service.h"
#include "rpc/server/session/export.h"

static int service_gauges(struct shard *s, struct stat_shard *sum)
{
	struct service_cpt *sc;
	int rc = 0;

	if (s->exports)
		sum->counts[RPC_STAT_clients_connected] +=
			s->exports->table.used;
	list_for_each_entry (sc, services_of(s), link) {
		struct ulrpc_service *svc = sc->service;
		uint64_t under_way = atomic_load_explicit(&sc->under_way,
							  memory_order_relaxed);
		uint64_t waiting = 0;

		if (svc->shared)
			continue;
		sum->counts[RPC_STAT_requests_under_way] += under_way;
		/* one queue for all CPTs */
		if (s->cpt == 0 && svc->has_exec)
			waiting = exec_waiting(&svc->exec);
		if (!rc)
			rc = stat_service_gauge(sum, STAT_REQUESTS, svc->name,
						under_way, waiting);
		if (!rc)
			rc = estimates_gauge(sc, sum);
	}
	return rc;
}

/* Returns how many calls the client of @share may have in flight at its
 * service; 0: the service has ended. */
static uint32_t window_of(const struct shard *s, const struct share *share)
{
	const struct service_cpt *sc =
		share->number < SERVICE_NUMBERS
			? s->rpc->services->numbered[s->cpt][share->number]
			: NULL;

	return sc && share->opened
		       ? grant_of(&share->grant,
				  service_limit(sc->service, window))
		       : 0;
}

static int export_gauges(struct shard *s, struct stat_peer *p,
			 struct stat_peer_gauges *g, struct stat_shard *sum)
{
	const struct export *e = container_of(p, struct export, stats);
	const struct share *share;

	const struct sealed *sd = export_seal(e);
	uint64_t now = shard_now(s);

	(void)sum;
	*g = (struct stat_peer_gauges){
		.rtt = e->rtt,
		.silent = now - e->heard,
		.connected = now - e->since,
		.refused = e->refused,
	};
	if (sd)
		g->proof = sealed_proof(sd, MAX(e->agreed, ULRPC_FLAVOUR_AUTH),
					now);
	list_for_each_entry (share, &e->shares, link) {
		g->window += window_of(s, share);
		g->under_way += share->used.requests;
	}
	return sd && !g->proof ? -ENOMEM : 0;
}

const struct stat_gauger service_gauger = {
	.methods = service_gauges,
	.peer = export_gauges,
};
