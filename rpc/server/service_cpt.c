/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/service_cpt.h"

#include <errno.h>

#include "rpc/server/cancel.h"
#include "rpc/server/estimates.h"
#include "rpc/server/export.h"
#include "rpc/server/oversize.h"
#include "rpc/server/reply.h"
#include "rpc/server/request.h"
#include "rpc/server/service.h"
#include "rpc/server/vacant.h"

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

/* ---- the beginning ---- */

void service_cpt_init(struct service_cpt *sc, struct ulrpc_service *svc,
		      unsigned int cpt)
{
	sc->service = svc;
	sc->shard = rpc_shard_of(svc->rpc, cpt);
	pool_init(&sc->requests, sizeof(struct ulrpc_request), 0);
	pool_init(&sc->origins, sizeof(struct origin), 0);
	slab_init(&sc->slab, sc->shard);
	replies_init(sc);
	list_init(&sc->oversizes);
	sc->unknown.host = &sc->strangers;
	list_init(&sc->link);
	list_init(&sc->active);
	list_init(&sc->flush);
	list_init(&sc->canceled);
	sc->flush_work.fn = replies_flush;
	sc->cancel_work.fn = requests_tell;
}

/* Without memory its requests are not counted by method. */
static void stats_begin(struct service_cpt *sc)
{
	const struct ulrpc_service *svc = sc->service;

	sc->stats =
		stat_service_get(sc->shard->stats, STAT_REQUESTS, svc->name);
	for (uint32_t i = 0; i <= svc->methods_mask; i++)
		if (svc->methods[i].handler)
			(void)stat_method_add(sc->stats,
					      svc->methods[i].number);
}

int service_cpt_start(struct service_cpt *sc)
{
	struct ulrpc_service *svc = sc->service;
	struct shard *s = sc->shard;
	int rc;

	if (s->closing)
		return -ESHUTDOWN;
	rc = inbox_open(&sc->inbox, s, svc->portal, svc->conf.buffers,
			svc->conf.buffer_size, svc->message_max,
			request_on_message, sc);
	if (rc)
		return rc;
	sc->open = true;
	if (s->cpt == 0)
		durables_draw(&svc->durables, s);
	vacant_close(s, svc->portal);
	list_add_tail(&s->rpc->services->shard[s->cpt], &sc->link);
	stats_begin(sc);
	return 0;
}

/* ---- the end ---- */

/* Refusals are not waited for: as long as clients go on, there may always be
 * some. */
static bool cpt_is_idle(const struct service_cpt *sc)
{
	return list_empty(&sc->active) && list_empty(&sc->flush) &&
	       (service_cpt_ended(sc) || (!sc->strays && !sc->answers));
}

static bool cpt_is_shut(const struct service_cpt *sc)
{
	return sc->fsm.state >= SERVICE_CPT_STOPPED && !sc->open && !sc->strays;
}

static bool cpt_is_gone(const struct service_cpt *sc)
{
	return sc->fsm.state == SERVICE_CPT_STOPPED && cpt_is_shut(sc) &&
	       (sc->leaving || sc->shard->aborted) && cpt_is_idle(sc) &&
	       list_empty(&sc->replies) && list_empty(&sc->oversizes);
}

void service_cpt_settled(struct service_cpt *sc)
{
	struct ulrpc_service *svc = sc->service;
	uint32_t bit = UINT32_C(1) << sc->shard->cpt;
	struct wait *wait = &svc->rpc->wait;

	if (likely(sc->fsm.state == SERVICE_CPT_UP) || sc->shard->crashed)
		return;
	if (cpt_is_gone(sc)) {
		fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_GONE);
		slab_stop(&sc->slab);
	}
	pthread_mutex_lock(&wait->lock);
	if (cpt_is_idle(sc))
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

void service_cpt_close(struct service_cpt *sc)
{
	if (sc->fsm.state != SERVICE_CPT_UP)
		return;
	fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_CLOSED);
	service_cpt_settled(sc);
}

void service_cpt_abort(struct service_cpt *sc)
{
	service_cpt_close(sc);
	if (sc->fsm.state != SERVICE_CPT_CLOSED)
		return;
	fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_ABORTED);
	requests_abort(sc);
	replies_abort(sc);
	replies_lose(sc);
	oversizes_abort(sc);
	service_cpt_settled(sc);
}

static void on_inbox_closed(void *arg)
{
	struct service_cpt *sc = arg;

	sc->open = false;
	service_cpt_settled(sc);
}

static void workers_end(struct ulrpc_service *svc)
{
	if (svc->has_exec && !atomic_exchange(&svc->exec_closed, true))
		exec_close(&svc->exec);
}

void service_cpt_stop(struct service_cpt *sc)
{
	service_cpt_abort(sc);
	if (sc->fsm.state != SERVICE_CPT_ABORTED)
		return;
	fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_STOPPED);
	list_del(&sc->link);
	exports_forget_portal(sc->shard, sc->service->portal);
	workers_end(sc->service);
	if (sc->shard->aborted)
		replies_stop(sc);
	if (sc->open)
		inbox_close(&sc->inbox, on_inbox_closed, sc);
	service_cpt_settled(sc);
}

void service_cpt_fini(struct service_cpt *sc)
{
	requests_lost_free(sc);
	estimates_fini(sc);
	slab_fini(&sc->slab);
	pool_fini(&sc->messages);
	pool_fini(&sc->requests);
	pool_fini(&sc->origins);
}

/* ---- after a crash ---- */

void service_cpt_crash(struct service_cpt *sc)
{
	if (sc->open)
		inbox_crash(&sc->inbox);
	if (sc->service->has_exec)
		exec_crash(&sc->service->exec);
	requests_crash(sc);
	replies_crash(sc);
	oversizes_crash(sc);
	slab_stop(&sc->slab);
}

void service_cpt_gone(struct service_cpt *sc)
{
	if (sc->open)
		inbox_gone(&sc->inbox);
	sc->open = false;
	requests_gone(sc);
	replies_gone(sc);
	oversizes_gone(sc);
}
