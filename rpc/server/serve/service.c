/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/service.h"

#include "rpc/estimate.h"
#include "rpc/run.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/session/export.h"

#define LOG_LINES 10 /* log lines per second, at most (service_may_log()) */
/* ns: how old the estimate that clients are told may be */
#define RENEW_EACH (100 * NSEC_PER_MSEC)
/* ns: within this time a client has sent the calls that it was promised, and
 * they count as requests */
#define PROMISE_FOR (100 * NSEC_PER_MSEC)

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

	if (!lnet_log_on_for(LNET_LOG_WARN, "rpc"))
		return false;
	if (sc->log_second != second) {
		sc->log_second = second;
		sc->log_lines = 0;
	}
	return sc->log_lines++ < LOG_LINES;
}

/* ---- what clients may send at once ---- */

/* Returns how many requests the service takes at once: two for each worker, so
 * that none waits for a message; without workers, as many as may wait. */
static uint64_t service_takes(const struct ulrpc_service *svc)
{
	return svc->has_exec ? 2 * (uint64_t)service_limit(svc, workers_max)
			     : service_limit(svc, queue_max);
}

/* Returns how many requests there are of those that service_takes() counts. */
static uint64_t service_used(const struct ulrpc_service *svc)
{
	return svc->has_exec ? service_work(svc) : service_sum(svc).requests;
}

/* Returns how many calls clients may still send by what all CPTs have promised
 * them. */
static uint64_t service_promised(const struct ulrpc_service *svc, uint64_t now)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < svc->ncpts; i++)
		if (atomic_load(&svc->cpt[i].promised_until) > now)
			n += atomic_load(&svc->cpt[i].promised);
	return n;
}

uint32_t service_promise(struct service_cpt *sc, uint64_t now)
{
	const struct ulrpc_service *svc = sc->service;
	uint64_t all = service_takes(svc);
	uint64_t used = service_used(svc) + service_promised(svc, now);
	uint64_t n =
		MIN((all - MIN(used, all)) / 2, service_limit(svc, window));

	if (atomic_load(&sc->promised_until) <= now) {
		atomic_store(&sc->promised, 0);
		atomic_store(&sc->promised_until, rpc_at(now, PROMISE_FOR));
	}
	atomic_fetch_add(&sc->promised, (uint32_t)n);
	return (uint32_t)n;
}

/* ---- the end ---- */

/* Are no requests and replies under way? Refusals do not count: as long as
 * clients send requests, there may always be some. */
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
	       list_empty(&sc->replies) && list_empty(&sc->long_replies) &&
	       give_back_is_over(&sc->bodies);
}

/* No request of @sc is under way any more: the batches of LOST requests, which
 * outlive the CPT if their handlers do, drop their exports. Not before, because
 * other requests of such a batch, whose handlers still run or whose bulk is
 * being moved, use the export, too. */
static void lost_settle(struct service_cpt *sc)
{
	sc->lost_unsettled = false;
	for (struct ulrpc_request *r = sc->lost; r; r = r->lost_link) {
		struct request_batch *b = r->batch;

		if (b->export)
			export_unref(b->export);
		b->export = NULL;
		b->share = &sc->unconnected;
	}
}

void service_cpt_settled(struct service_cpt *sc)
{
	struct ulrpc_service *svc = sc->service;
	uint32_t bit = UINT32_C(1) << sc->shard->cpt;
	struct wait *wait = &svc->rpc->wait;

	if (likely(sc->fsm.state == SERVICE_CPT_UP))
		return;
	if (unlikely(sc->lost_unsettled) && service_cpt_is_idle(sc))
		lost_settle(sc);
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

/* ---- long bodies ---- */

void service_on_given(struct give_back *g, void *share, size_t bytes)
{
	struct service_cpt *sc = container_of(g, struct service_cpt, bodies);

	service_charge(sc, share, 0, -(int64_t)bytes);
	service_cpt_settled(sc);
}

void service_body_put(struct service_cpt *sc, struct share *share, void *body,
		      size_t size)
{
	slab_disown(&sc->slab);
	service_charge(sc, share, 0, (int64_t)size);
	give_back(&sc->bodies, body, size, share);
}

/* ---- estimates ---- */

int estimates_init(struct service_cpt *sc)
{
	uint32_t n = sc->service->methods_mask + 1;

	sc->estimates = calloc(n, sizeof(*sc->estimates));
	return sc->estimates ? 0 : -ENOMEM;
}

void estimates_fini(struct service_cpt *sc)
{
	free(sc->estimates);
	sc->estimates = NULL;
}

static struct estimate *estimate_of(const struct service_cpt *sc,
				    const struct ulrpc_method *m)
{
	return &sc->estimates[m - sc->service->methods];
}

/* Does @run consist of requests that show how long others will take? Requests
 * that did not run, or that the handler refused, do not show that. */
static bool is_sample(const struct run *run)
{
	unsigned int end = run->how & RUN_END;

	return (run->how & RUN_REQUEST_RUN) == RUN_REQUEST_RUN &&
	       end != WIRE_OVERLOADED && end != WIRE_BAD_REQUEST;
}

void estimates_learn(struct shard *s, const struct run *run)
{
	uint32_t n = (uint32_t)run->counts[STAT_COUNT_calls];
	uint64_t took = run->times[STAT_REQUEST_TIME_queue] +
			run->times[STAT_REQUEST_TIME_service];
	struct service_cpt *sc = run->service ? run->service->owner : NULL;
	const struct ulrpc_method *m;

	(void)s;
	if (!sc || !is_sample(run))
		return;
	if (run->how & RUN_FINE)
		took += run->fine.sum / n;
	m = service_method(sc->service, run->number);
	if (m)
		estimate_add(estimate_of(sc, m), took, n, run->began);
}

void estimates_renew(struct service_cpt *sc, uint64_t now)
{
	const struct ulrpc_service *svc = sc->service;
	uint64_t longest = 0;

	run_fold(sc->shard, STAT_REQUESTS);
	for (uint32_t i = 0; i <= svc->methods_mask; i++) {
		uint64_t ns = estimate_read(&sc->estimates[i], now);

		longest = MAX(longest, ns);
	}
	/* Rounds up, as 0 would say that no estimate is known. */
	sc->estimate = (longest + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
	sc->estimates_until = now + RENEW_EACH;
}

int estimates_gauge(struct service_cpt *sc, struct stat_shard *sum)
{
	const struct ulrpc_service *svc = sc->service;
	uint64_t now = shard_now(sc->shard);
	int rc = 0;

	for (uint32_t i = 0; i <= svc->methods_mask && !rc; i++) {
		const struct ulrpc_method *m = &svc->methods[i];
		struct stat_method_gauges g = { 0 };

		if (!m->handler)
			continue;
		g.estimate = estimate_read(estimate_of(sc, m), now);
		rc = stat_gauge(sum, STAT_REQUESTS, svc->name, m->number, &g);
	}
	return rc;
}
