/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers clients that want to call a service: whether they may, and how. */
#include "rpc/server/open.h"

#include <string.h>

#include "rpc/flavour.h"
#include "rpc/server/serve/service.h"
#include "rpc/server/session/export.h"

static struct service_cpt *services_find_name(struct shard *s, const char *name)
{
	struct service_cpt *sc;

	list_for_each_entry (sc, services_of(s), link)
		if (!sc->service->shared && !strcmp(sc->service->name, name))
			return sc;
	return NULL;
}

/* Sets out->flavour, which is what the client offers, to the flavour to use.
 * Returns false if the client offers less than the service accepts. A client of
 * an earlier release knows nothing above ULRPC_FLAVOUR_AUTH. */
static bool service_agrees(const struct ulrpc_service *svc,
			   const struct export *e, struct wire_opened *out)
{
	enum ulrpc_flavour offered = flavour_of_wire(out->flavour);
	enum ulrpc_flavour most = ULRPC_FLAVOUR_NONE;

	if (e->who)
		most = out->flavour ? FLAVOUR_MAX : ULRPC_FLAVOUR_AUTH;
	if (svc->least > most)
		return false;
	out->flavour = flavour_to_wire(MIN(MAX(offered, svc->least), most));
	return true;
}

/* Can the client that has sent @in call @svc? Clients of earlier releases only
 * call services that have portals of their own. */
static bool service_is_in_reach(struct service_cpt *sc, const struct export *e,
				const struct wire_open *in)
{
	char nid[LNET_NIDSTR_SIZE];

	if (sc->service->number == sc->service->portal || in->numbers)
		return true;
	if (service_may_log(sc))
		lnet_log(LNET_LOG_WARN, "rpc",
			 "service %s: %s is of an earlier release, and cannot "
			 "call services that share a portal",
			 sc->service->name,
			 lnet_nid_format(export_source(e), nid, sizeof(nid)));
	return false;
}

void service_opened(struct shard *s, const struct wire_open *in,
			   struct export *e, struct wire_opened *out)
{
	struct service_cpt *sc = services_find_name(s, in->service);
	const struct ulrpc_service *svc;
	struct share *share;

	if (!sc || !service_is_in_reach(sc, e, in)) {
		out->status = s->closing ? WIRE_SHUTTING_DOWN : WIRE_NO_SERVICE;
		return;
	}
	if (sc->fsm.state != SERVICE_CPT_UP) {
		out->status = WIRE_SHUTTING_DOWN;
		return;
	}
	svc = sc->service;
	if (!service_agrees(svc, e, out)) {
		stat_count(s, RPC_STAT_clients_refused);
		out->status = WIRE_REFUSED;
		out->flavour = flavour_to_wire(svc->least);
		return;
	}
	share = export_share_get(s->exports, e, svc->number);
	if (!share) {
		stat_count(s, RPC_STAT_clients_refused);
		out->status = WIRE_OVERLOADED;
		return;
	}
	share->opened = true;
	share->marked = in->numbers && svc->mark;
	out->status = WIRE_OK;
	out->portal = svc->portal;
	if (share->marked)
		out->number = svc->mark;
	out->request_max = svc->conf.request_max;
	out->request_limit = service_limit(svc, request_limit);
	out->window = service_limit(svc, window);
	out->begin = service_promise(sc, shard_now(s));
	out->message_max = svc->message_max;
	out->estimate = estimates_told(sc, shard_now(s));
	out->checked = svc->conf.checksum;
	durables_tell(&svc->durables, out);
}
