/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/service.h"

#include "rpc/server/serve/request.h"

#define LOG_LINES 10 /* a second, of what strangers can cause */

const struct fsm_state service_cpt_states[SERVICE_CPT_STATES] = {
	[SERVICE_CPT_UP] = { "up", FSM_TO(SERVICE_CPT_CLOSED) },
	[SERVICE_CPT_CLOSED] = { "closed", FSM_TO(SERVICE_CPT_ABORTED) },
	[SERVICE_CPT_ABORTED] = { "aborted", FSM_TO(SERVICE_CPT_STOPPED) },
	[SERVICE_CPT_STOPPED] = { "stopped", FSM_TO(SERVICE_CPT_GONE) },
	[SERVICE_CPT_GONE] = { "gone", 0 },
};

bool service_may_log(struct service_cpt *sc)
{
	uint64_t second = shard_now(sc->shard) / NSEC_PER_SEC;

	if (!lnet_log_on(LNET_LOG_WARN))
		return false;
	if (sc->log_second != second) {
		sc->log_second = second;
		sc->log_lines = 0;
	}
	return sc->log_lines++ < LOG_LINES;
}

/* ---- the end ---- */

/* Refusals are not waited for: as long as clients go on, there may always be
 * some. */
static bool service_cpt_is_idle(const struct service_cpt *sc)
{
	return list_empty(&sc->active) && list_empty(&sc->flush) &&
	       (service_cpt_ended(sc) || (!sc->forwards && !sc->answers));
}

static bool cpt_is_shut(const struct service_cpt *sc)
{
	return sc->fsm.state >= SERVICE_CPT_STOPPED && !sc->open &&
	       !sc->forwards;
}

static bool cpt_is_gone(const struct service_cpt *sc)
{
	return sc->fsm.state == SERVICE_CPT_STOPPED && cpt_is_shut(sc) &&
	       (sc->leaving || sc->shard->aborted) && service_cpt_is_idle(sc) &&
	       list_empty(&sc->replies) && list_empty(&sc->long_replies);
}

void service_cpt_settled(struct service_cpt *sc)
{
	struct ulrpc_service *svc = sc->service;
	uint32_t bit = UINT32_C(1) << sc->shard->cpt;
	struct wait *wait = &svc->rpc->wait;

	if (likely(sc->fsm.state == SERVICE_CPT_UP))
		return;
	if (cpt_is_gone(sc)) {
		fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_GONE);
		slab_stop(&sc->slab);
	}
	pthread_mutex_lock(&wait->lock);
	if (service_cpt_is_idle(sc))
		svc->idle |= bit;
	else
		svc->idle &= ~bit;
	if (cpt_is_shut(sc))
		svc->shut |= bit;
	if (sc->fsm.state == SERVICE_CPT_GONE)
		svc->gone |= bit;
	wait_wake(wait);
	pthread_mutex_unlock(&wait->lock);
}
