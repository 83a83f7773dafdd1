/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the services of a node by name, starts and stops them.
 *
 * A service ends by ulrpc_service_stop(), or with RPC. Each CPT closes (refuses
 * new requests), aborts (ends the requests under way without a reply), and
 * stops (unlinks the buffers). Then the service is freed; if handlers still
 * have requests of it, only when they have answered the last one.
 */
#include "rpc/server/serve/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "rpc/keys.h"
#include "rpc/run.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/intercept.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/server/session/export.h"
#include "rpc/server/serve/reply.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/gauges.h"
#include "rpc/server/open.h"
#include "rpc/server/portals.h"
#include "rpc/server/service_conf.h"
#include "rpc/server/tombstone.h"
#include "rpc/flavour.h"
#include "rpc/streaming.h"
#include "rpc/text.h"

/* ns: how long the end of a service waits for LNet to send the last replies. */
#define LINGER_NS NSEC_PER_SEC

/* ---- on a CPT ---- */

static void service_cpt_init(struct service_cpt *sc, struct ulrpc_service *svc,
			     unsigned int cpt)
{
	sc->service = svc;
	sc->shard = &svc->rpc->shards[cpt];
	pool_init(&sc->requests, sizeof(struct ulrpc_request), 0);
	pool_init(&sc->batches, sizeof(struct request_batch), 0);
	slab_init(&sc->slab, sc->shard);
	give_back_init(&sc->bodies, sc->shard, service_on_given);
	replies_init(sc);
	list_init(&sc->long_replies);
	sc->unconnected.host = &sc->unconnected_host;
	list_init(&sc->link);
	list_init(&sc->active);
	list_init(&sc->flush);
	list_init(&sc->canceled);
	sc->flush_work.fn = replies_flush;
	sc->cancel_work.fn = requests_tell;
}

/* If there is no memory for statistics, requests are not counted by method. */
static void stats_begin(struct service_cpt *sc)
{
	const struct ulrpc_service *svc = sc->service;

	sc->stats =
		stat_service_get(sc->shard->stats, STAT_REQUESTS, svc->name);
	if (sc->stats)
		sc->stats->owner = sc;
	for (uint32_t i = 0; i <= svc->methods_mask; i++)
		if (svc->methods[i].handler)
			(void)stat_method_add(sc->stats,
					      svc->methods[i].number);
}

/* Returns 0, or what inbox_open() returns. */
static int receive(struct service_cpt *sc)
{
	const struct ulrpc_service *svc = sc->service;
	struct shard *s = sc->shard;
	int rc;

	if (svc->number != svc->portal)
		return 0;
	sc->inbox = (struct inbox){
		.shard = s,
		.portal = svc->portal,
		.buffers = svc->conf.buffers,
		.buffer_size = svc->conf.buffer_size,
		.message_max = svc->message_max,
		.fn = svc->shared ? request_on_shared : request_on_message,
		.arg = sc,
	};
	rc = inbox_open(&sc->inbox);
	if (rc)
		return rc;
	sc->open = true;
	tombstone_close(s, svc->portal);
	return 0;
}

/* Begins to receive requests; from then on clients can find the service by its
 * name. Returns 0; -ESHUTDOWN; or what inbox_open() returns. */
static int service_cpt_start(void *arg)
{
	struct service_cpt *sc = arg;
	struct ulrpc_service *svc = sc->service;
	struct shard *s = sc->shard;
	int rc;

	if (s->closing)
		return -ESHUTDOWN;
	rc = receive(sc);
	if (rc)
		return rc;
	s->rpc->services->numbered[s->cpt][svc->number] = sc;
	/* CPT 0 comes first */
	if (s->cpt == 0) {
		portals_use(svc);
		durables_draw(&svc->durables, s);
	}
	list_add_tail(services_of(s), &sc->link);
	if (!svc->shared)
		stats_begin(sc);
	return 0;
}

/* The functions that end a service on a CPT, step by step: each also does the
 * steps of those before it, and has no effect when called again. All return 0.
 */

static int service_cpt_close(void *arg)
{
	struct service_cpt *sc = arg;

	if (sc->fsm.state != SERVICE_CPT_UP)
		return 0;
	fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_CLOSED);
	service_cpt_settled(sc);
	return 0;
}

static int service_cpt_abort(void *arg)
{
	struct service_cpt *sc = arg;

	service_cpt_close(sc);
	if (sc->fsm.state != SERVICE_CPT_CLOSED)
		return 0;
	fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_ABORTED);
	requests_abort(sc);
	replies_abort(sc);
	replies_lose(sc);
	long_replies_abort(sc);
	service_cpt_settled(sc);
	return 0;
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

/* The client has to open the service that has this number next. */
static void service_forget(struct export *e, void *arg)
{
	const struct service_cpt *sc = arg;
	struct share *share =
		export_share(sc->shard->exports, e, sc->service->number);

	if (!share)
		return;
	share->opened = false;
	share_judge_anew(share);
}

static int service_cpt_stop(void *arg)
{
	struct service_cpt *sc = arg;
	struct service_cpt **numbered =
		&sc->shard->rpc->services
			 ->numbered[sc->shard->cpt][sc->service->number];

	service_cpt_abort(sc);
	if (sc->fsm.state != SERVICE_CPT_ABORTED)
		return 0;
	fsm_move(&sc->fsm, service_cpt_states, SERVICE_CPT_STOPPED);
	list_del(&sc->link);
	if (sc->stats)
		sc->stats->owner = NULL;
	if (*numbered == sc)
		*numbered = NULL;
	exports_each(sc->shard->exports, service_forget, sc);
	workers_end(sc->service);
	if (sc->shard->aborted)
		replies_stop(sc);
	if (sc->open)
		inbox_close(&sc->inbox, on_inbox_closed, sc);
	service_cpt_settled(sc);
	return 0;
}

static void service_cpt_fini(struct service_cpt *sc)
{
	requests_lost_free(sc);
	estimates_fini(sc);
	slab_fini(&sc->slab);
	pool_fini(&sc->messages);
	pool_fini(&sc->requests);
	pool_fini(&sc->batches);
}

/* ---- memory ---- */

static void service_free(struct ulrpc_service *svc)
{
	if (svc->started && svc->conf.ended)
		svc->conf.ended(svc->conf.ended_arg);
	for (unsigned int i = 0; i < svc->ncpts; i++)
		service_cpt_fini(&svc->cpt[i]);
	sched_plan_free(&svc->plan);
	free(svc->policy);
	sleepers_fini(&svc->sleepers);
	free(svc->cpt);
	free(svc->methods);
	request_chain_put(svc->chain);
	free(svc->intercepted);
	free(svc->order);
	free(svc->names);
	free(svc);
}

/* ---- workers ---- */

/* Called when all workers have ended: releases the shard of CPT 0, which
 * service_cpt_hold() has kept. */
static void on_workers_gone(struct ulnet_work *w)
{
	struct ulrpc_service *svc =
		container_of(w, struct ulrpc_service, exec_work);
	struct shard *s = &svc->rpc->shards[0];
	struct wait *wait = &svc->rpc->wait;

	pthread_mutex_lock(&wait->lock);
	svc->workers = false;
	wait_wake(wait);
	pthread_mutex_unlock(&wait->lock);
	/* the service may be gone */
	shard_release(s);
	shard_taken(s);
}

static void workers_gone(void *arg)
{
	struct ulrpc_service *svc = arg;

	shard_give(&svc->rpc->shards[0], &svc->exec_work);
}

static bool reserves(const struct ulrpc_service *svc)
{
	for (uint32_t i = 0; i <= svc->methods_mask; i++)
		if (svc->methods[i].handler &&
		    svc->methods[i].priority == ULRPC_PRIORITY_HIGH)
			return true;
	return false;
}

static int workers_start(struct ulrpc_service *svc)
{
	struct exec_conf conf = {
		.node = svc->rpc->node,
		.is_virtual = svc->rpc->is_virtual,
		.min = svc->conf.workers_min,
		.max = svc->conf.workers_max,
		.plan = &svc->plan,
		.ratio = svc->conf.high_ratio,
		.reserve = reserves(svc),
		.seed = svc->rpc->shards[0].exports->hosts.seed,
		.run = request_run,
		.gone = workers_gone,
		.arg = svc,
	};
	int rc;

	if (!svc->has_exec)
		return 0;
	svc->exec_work.fn = on_workers_gone;
	rc = exec_open(&svc->exec, &conf);
	if (rc)
		svc->has_exec = false;
	return rc;
}

/* ---- methods ---- */

static bool wants_workers(const struct ulrpc_service_conf *conf)
{
	for (unsigned int i = 0; i < conf->nmethods; i++)
		if (conf->methods[i].run != ULRPC_RUN_INLINE)
			return true;
	return false;
}

static int method_add(struct ulrpc_service *svc,
		      const struct ulrpc_service_conf *conf,
		      const struct ulrpc_method_conf *mc, char **names)
{
	uint32_t number = ulrpc_method(mc->name);
	uint32_t i = number & svc->methods_mask;

	for (; svc->methods[i].handler; i = (i + 1) & svc->methods_mask)
		if (svc->methods[i].number == number)
			return service_refuse(conf, -EEXIST,
					      "methods: '%.64s' has the same "
					      "number as '%.64s'",
					      mc->name, svc->methods[i].name);
	svc->methods[i] = (struct ulrpc_method){
		.number = number,
		.priority = mc->priority ? mc->priority : ULRPC_PRIORITY_NORMAL,
		.handler = mc->handler,
		.arg = mc->arg,
		.run = mc->run,
		.semantics = mc->semantics,
		.flavour = flavour_meant(mc->flavour, false),
		.name = *names,
	};
	svc->most = MAX(svc->most, svc->methods[i].flavour);
	*names = stpcpy(*names, mc->name) + 1;
	return ulrpc_method_declare(svc->rpc, mc->name);
}

static int methods_make(struct ulrpc_service *svc,
			const struct ulrpc_service_conf *conf)
{
	size_t size = 0, places = 4;
	char *names;
	int rc = 0;

	for (unsigned int i = 0; i < conf->nmethods; i++) {
		rc = service_method_check(conf, &conf->methods[i]);
		if (rc)
			return rc;
		size += strlen(conf->methods[i].name) + 1;
	}
	while (places < 2 * (size_t)conf->nmethods)
		places *= 2;
	svc->names = names = malloc(MAX(size, 1));
	svc->methods = calloc(places, sizeof(*svc->methods));
	svc->order = calloc((size_t)conf->nmethods + 1, sizeof(*svc->order));
	svc->methods_mask = (uint32_t)places - 1;
	if (!svc->names || !svc->methods || !svc->order)
		return -ENOMEM;
	for (unsigned int i = 0; i < conf->nmethods && !rc; i++) {
		svc->order[i] = names;
		rc = method_add(svc, conf, &conf->methods[i], &names);
	}
	return rc;
}

/* ---- start ---- */

void ulrpc_service_conf_init(struct ulrpc_service_conf *conf)
{
	*conf = (struct ulrpc_service_conf){ 0 };
}

static bool has_method(const void *svc, uint32_t number)
{
	return service_method(svc, number) != NULL;
}

static int policy_read(struct ulrpc_service *svc,
		       const struct ulrpc_service_conf *c)
{
	struct ulnet_text_error err = { .what = "no memory" };
	int rc = sched_plan_parse(c->policy, &svc->plan, &err);

	svc->conf.policy = NULL;
	svc->policy = strdup(c->policy ? c->policy : "fair");
	if (!rc && !svc->policy)
		rc = -ENOMEM;
	if (!rc)
		rc = sched_plan_check(&svc->plan, c->policy, has_method, svc,
				      &err);
	if (rc)
		service_refuse(c, rc, "policy: '%.100s', at byte %zu: %s",
			       c->policy, err.offset, err.what);
	return rc;
}

/* Sets the limits to what the configuration says. */
static void limits_begin(struct ulrpc_service *svc)
{
	const struct ulrpc_service_conf *c = &svc->conf;

	service_limit_set(svc, queue_max, c->queue_max);
	service_limit_set(svc, request_limit, c->request_limit);
	service_limit_set(svc, reply_limit, c->reply_limit);
	service_limit_set(svc, window, c->window);
	service_limit_set(svc, segments, c->segments);
	service_limit_set(svc, workers_max, c->workers_max);
	service_limit_set(svc, queue_bytes_max, c->queue_bytes_max);
	service_limit_set(svc, retry_after, c->retry_after);
}

static int service_new(struct ulrpc *rpc, const struct ulrpc_service_conf *conf,
		       struct ulrpc_service **svc_p)
{
	struct ulrpc_service *svc = calloc(1, sizeof(*svc));
	int rc = -ENOMEM;

	if (!svc)
		return -ENOMEM;
	durables_init(&svc->durables, conf->durable);
	rc = sleepers_init(&svc->sleepers);
	if (rc) {
		free(svc);
		return rc;
	}
	rc = -ENOMEM;
	svc->rpc = rpc;
	svc->free = service_free;
	svc->refs = 1;
	svc->lost.host = &svc->lost_host;
	svc->conf = *conf;
	text_copy(svc->name, sizeof(svc->name), conf->name);
	svc->has_exec = wants_workers(conf);
	svc->least = flavour_meant(conf->flavour, rpc_has_keys(rpc));
	service_conf_fill(&svc->conf, svc->has_exec);
	limits_begin(svc);
	svc->conf.name = svc->name;
	svc->conf.methods = NULL;
	svc->conf.interceptors = NULL;
	svc->conf.durable = NULL;
	svc->conf.err = NULL;
	svc->message_max = (uint32_t)MIN(
		LNET_MTU, (uint64_t)svc->conf.request_max + WIRE_HEAD_MAX);
	list_init(&svc->link);
	svc->cpt = calloc(rpc->ncpts, sizeof(*svc->cpt));
	if (!svc->cpt)
		goto err;
	svc->ncpts = rpc->ncpts;
	for (unsigned int i = 0; i < rpc->ncpts; i++)
		service_cpt_init(&svc->cpt[i], svc, i);
	rc = service_conf_fits(&svc->conf, svc->message_max, conf);
	if (!rc)
		rc = methods_make(svc, conf);
	for (unsigned int i = 0; i < rpc->ncpts && !rc; i++)
		rc = estimates_init(&svc->cpt[i]);
	if (!rc)
		rc = policy_read(svc, conf);
	if (rc)
		goto err;
	*svc_p = svc;
	return 0;

err:
	service_unref(svc);
	return rc;
}

/* Calls @fn on each CPT in turn, until one call fails. Returns 0 or that error.
 */
static int on_each(struct ulrpc_service *svc, int (*fn)(void *sc))
{
	int rc = 0;

	for (unsigned int i = 0; i < svc->ncpts && !rc; i++)
		rc = lnet_call(svc->rpc->node, i, fn, &svc->cpt[i]);
	return rc;
}

/* ---- functions for on_each() ---- */

/* Called when no CPT receives requests any more. */
static int service_cpt_leave(void *arg)
{
	struct service_cpt *sc = arg;

	sc->leaving = true;
	service_cpt_settled(sc);
	return 0;
}

/* Called when LNet has had LINGER_NS for the last replies. */
static int service_cpt_cut(void *arg)
{
	replies_stop(arg);
	return 0;
}

static int service_cpt_open_tombstone(void *arg)
{
	const struct service_cpt *sc = arg;

	return tombstone_open(sc->shard, sc->service->portal);
}

static int service_cpt_close_tombstone(void *arg)
{
	const struct service_cpt *sc = arg;

	tombstone_close(sc->shard, sc->service->portal);
	return 0;
}

/* Keeps the shard until the workers of the service have ended. */
static int service_cpt_hold(void *arg)
{
	struct service_cpt *sc = arg;

	if (sc->shard->closing)
		return -ESHUTDOWN;
	shard_hold(sc->shard);
	return 0;
}

static int service_cpt_release(void *arg)
{
	struct service_cpt *sc = arg;

	shard_release(sc->shard);
	return 0;
}

/* ---- what wait_until() waits for ---- */

static bool is_all(const struct ulrpc_service *svc, uint32_t cpts)
{
	return cpts == (UINT32_C(1) << svc->ncpts) - 1;
}

static bool all_shut(void *svc)
{
	return is_all(svc, ((struct ulrpc_service *)svc)->shut);
}

/* Is @svc GONE on all CPTs? Workers may still run. */
static bool cpts_gone(void *svc)
{
	return is_all(svc, ((struct ulrpc_service *)svc)->gone);
}

static bool all_gone(void *svc)
{
	return cpts_gone(svc) && !((struct ulrpc_service *)svc)->workers;
}

static bool all_idle(void *svc)
{
	return is_all(svc, ((struct ulrpc_service *)svc)->idle);
}

/* Puts a tombstone on the service's portal on each CPT. It also answers the
 * requests that LNet has queued meanwhile. If a tombstone cannot be made, these
 * requests are dropped. A portal that services share needs none. */
static void service_open_tombstones(struct ulrpc_service *svc)
{
	if (svc->number != svc->portal)
		return;
	if (svc->started && !on_each(svc, service_cpt_open_tombstone))
		return;
	(void)on_each(svc, service_cpt_close_tombstone);
	(void)LNetClearLazyPortal(svc->rpc->node, svc->portal);
}

/* Ends the service, except for requests that handlers still have. Returns 0, or
 * what wait_until() and lnet_call() return. */
static int service_end(struct ulrpc_service *svc)
{
	struct ulrpc *rpc = svc->rpc;
	int rc = on_each(svc, service_cpt_stop);

	if (!rc)
		rc = wait_until(&rpc->wait, rpc->node, all_shut, svc,
				TIME_NEVER);
	if (!rc)
		rc = on_each(svc, service_cpt_leave);
	if (!rc && wait_until(&rpc->wait, rpc->node, cpts_gone, svc,
			      lnet_now(rpc->node, 0) + LINGER_NS))
		rc = on_each(svc, service_cpt_cut);
	if (!rc)
		rc = wait_until(&rpc->wait, rpc->node, all_gone, svc,
				TIME_NEVER);
	if (rc)
		return rc;
	service_open_tombstones(svc);
	if (svc->has_exec)
		exec_free(&svc->exec);
	portals_release(svc);
	service_unref(svc);
	return 0;
}

/* Starts the workers, and the service on all CPTs. Returns 0 or -errno: then
 * @svc has been freed. */
static int start_all(struct ulrpc_service *svc)
{
	struct lnet *node = svc->rpc->node;
	int rc = lnet_call(node, 0, service_cpt_hold, &svc->cpt[0]);

	if (rc)
		goto err_claim;
	rc = workers_start(svc);
	svc->workers = svc->has_exec;
	if (!svc->has_exec)
		lnet_call(node, 0, service_cpt_release, &svc->cpt[0]);
	if (rc)
		goto err_claim;
	rc = on_each(svc, service_cpt_start);
	if (rc)
		BUG_ON(service_end(svc));
	return rc;

err_claim:
	portals_release(svc);
	service_unref(svc);
	return rc;
}

/* Does what start_all() does, and tells @conf why if the portal is in use. */
static int start_all_for(struct ulrpc_service *svc,
			 const struct ulrpc_service_conf *conf)
{
	unsigned int portal = svc->portal;
	int rc = start_all(svc);

	if (rc == -EPERM)
		service_refuse(conf, rc,
			       "portal: %u is used for unique match entries",
			       portal);
	return rc;
}

/* ---- the portal that services share ---- */

/* Buffers of the shared portal: as messages for any service have to fit, two of
 * the longest messages fit into each. */
#define SHARED_BUFFERS	   8
#define SHARED_BUFFER_SIZE (2 * (uint32_t)LNET_MTU)

static bool shared_is_settled(void *arg)
{
	const struct services *all = arg;

	return !all->shared || all->shared_up;
}

/* Starts what receives on the shared portal, or waits until another thread has
 * done so. Returns 0 or -errno. */
static int shared_start(struct ulrpc *rpc,
			const struct ulrpc_service_conf *for_whom)
{
	static const struct ulrpc_service_conf conf = {
		.name = "(shared portal)",
		.request_max = ULRPC_BODY_MAX,
		.buffers = SHARED_BUFFERS,
		.buffer_size = SHARED_BUFFER_SIZE,
	};
	struct services *all = rpc->services;
	struct ulrpc_service *svc;
	bool mine;
	int rc = service_new(rpc, &conf, &svc);

	if (rc)
		return rc;
	svc->shared = true;
	pthread_mutex_lock(&rpc->wait.lock);
	mine = !all->shared;
	if (mine)
		rc = portals_share(all, svc, for_whom);
	pthread_mutex_unlock(&rpc->wait.lock);
	if (!mine || rc) {
		service_unref(svc);
		return rc ? rc
			  : wait_until(&rpc->wait, rpc->node, shared_is_settled,
				       all, TIME_NEVER);
	}
	/* If it fails, portals_release() was called. */
	rc = start_all_for(svc, for_whom);
	if (rc)
		return rc;
	pthread_mutex_lock(&rpc->wait.lock);
	all->shared_up = true;
	wait_wake(&rpc->wait);
	pthread_mutex_unlock(&rpc->wait.lock);
	return 0;
}

/* Calls portals_claim(), and makes the shared portal if that is needed. */
static int service_claim(struct ulrpc_service *svc,
			 const struct ulrpc_service_conf *conf)
{
	struct ulrpc *rpc = svc->rpc;
	int rc;

	do {
		pthread_mutex_lock(&rpc->wait.lock);
		rc = portals_claim(rpc->services, svc, conf);
		pthread_mutex_unlock(&rpc->wait.lock);
		if (rc != -EAGAIN)
			return rc;
		rc = shared_start(rpc, conf);
	} while (!rc);
	return rc;
}

int service_start_streams(struct ulrpc *rpc,
			  const struct ulrpc_service_conf *conf,
			  unsigned int nstreams, uint32_t head,
			  struct ulrpc_service **service_p)
{
	struct ulrpc_service *svc;
	int rc = service_conf_check(conf);

	if (rc)
		return rc;
	if (!rpc_may_manage(rpc->node))
		return -EDEADLK;
	if (atomic_load(&rpc->state) != RPC_OPEN || lnet_is_forked(rpc->node))
		return -ESHUTDOWN;
	if (conf->flavour > ULRPC_FLAVOUR_NONE && !rpc_has_keys(rpc))
		return service_refuse(conf, -ENOKEY,
				      "flavour: RPC was opened without keys");
	rc = service_new(rpc, conf, &svc);
	if (rc)
		return rc;
	rc = service_intercept(svc, conf, nstreams, head);
	if (rc) {
		service_unref(svc);
		return rc;
	}
	rc = service_claim(svc, conf);
	if (rc) {
		service_unref(svc);
		return rc;
	}
	rc = start_all_for(svc, conf);
	if (rc)
		return rc;
	svc->started = true;
	atomic_store(&svc->health, ULRPC_HEALTH_SERVING);
	if (service_p)
		*service_p = svc;
	return 0;
}

int ulrpc_service_start(struct ulrpc *rpc,
			const struct ulrpc_service_conf *conf,
			struct ulrpc_service **service_p)
{
	return service_start_streams(rpc, conf, 0, 0, service_p);
}

unsigned int ulrpc_service_portal(const struct ulrpc_service *service)
{
	return service->portal;
}

/* ---- what runs ---- */

void ulrpc_service_health(struct ulrpc_service *service,
			  enum ulrpc_health health)
{
	atomic_store(&service->health, (int)health);
}

void ulrpc_services(struct ulrpc *rpc, ulrpc_service_fn fn, void *arg)
{
	bool open = atomic_load(&rpc->state) == RPC_OPEN;
	struct ulrpc_service *svc;

	pthread_mutex_lock(&rpc->wait.lock);
	list_for_each_entry (svc, &rpc->services->all, link) {
		struct ulrpc_service_info info = {
			.name = svc->name,
			.portal = svc->portal,
			.health = (enum ulrpc_health)atomic_load(&svc->health),
			.descriptor = svc->conf.descriptor,
			.streaming = svc->conf.streaming,
			.methods = svc->order,
		};

		if (info.health == ULRPC_HEALTH_UNKNOWN)
			continue; /* not started yet */
		if (!open)
			info.health = ULRPC_HEALTH_NOT_SERVING;
		fn(arg, &info);
	}
	pthread_mutex_unlock(&rpc->wait.lock);
}

/* ---- stop ---- */

int ulrpc_service_stop(struct ulrpc_service *service, uint64_t timeout)
{
	struct ulrpc *rpc = service->rpc;
	uint64_t until;
	int rc, late;

	/* In a child of fork(), does what ulrpc_close() does. */
	if (lnet_is_forked(rpc->node)) {
		free(service->cpt);
		free(service);
		return 0;
	}
	if (!rpc_may_manage(rpc->node) ||
	    (service->has_exec && exec_is_mine(&service->exec)))
		return -EDEADLK;
	until = rpc_at(lnet_now(rpc->node, 0), rpc_ns(timeout));
	ulrpc_service_health(service, ULRPC_HEALTH_NOT_SERVING);
	rc = on_each(service, service_cpt_close);
	if (rc)
		return rc;
	/* In virtual time -EDEADLK counts as a time-out: nothing will end the
	 * wait. */
	late = wait_until(&rpc->wait, rpc->node, all_idle, service, until);
	rc = on_each(service, service_cpt_abort);
	if (!rc)
		rc = wait_until(&rpc->wait, rpc->node, all_idle, service,
				TIME_NEVER);
	if (!rc)
		rc = service_end(service);
	return rc ? rc : late ? -ETIMEDOUT : 0;
}

/* ---- the part ---- */

static int part_open(struct ulrpc *rpc)
{
	struct services *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->shard = calloc(rpc->ncpts, sizeof(*all->shard));
	all->numbered = calloc(rpc->ncpts, sizeof(*all->numbered));
	all->durable_keys = durable_keys_new(rpc->seed);
	if (!all->shard || !all->numbered || !all->durable_keys) {
		durable_keys_put(all->durable_keys);
		free(all->numbered);
		free(all->shard);
		free(all);
		return -ENOMEM;
	}
	list_init(&all->all);
	for (unsigned int i = 0; i < rpc->ncpts; i++)
		list_init(&all->shard[i]);
	rpc->services = all;
	return 0;
}

/* What export_users.gone calls. */
static void services_gone(struct shard *s, struct export *e)
{
	const struct share *share;
	struct service_cpt *sc;

	list_for_each_entry (sc, services_of(s), link) {
		const struct ulrpc_service_conf *conf = &sc->service->conf;

		if (!conf->gone || shard_is_mute(s))
			continue;
		share = export_share(s->exports, e, sc->service->number);
		if (!share || !share->opened)
			continue;
		conf->gone(conf->gone_arg, &e->peer);
		if (unlikely(shard_guard_is_late(s)))
			lnet_guard_end(s->node, s->cpt,
				       "service %s, told of a client that is "
				       "gone,",
				       sc->service->name);
	}
}

static const struct export_users export_users = {
	.record_ops = { .noted = export_noted,
			.give_up = request_give_up,
			.forget = request_forget,
			.let_go = reply_let_go,
			.body_let_go = long_reply_let_go },
	.opened = service_opened,
	.gone = services_gone,
	.forget = requests_forget,
	.cancel = request_cancel,
	.reach = long_reply_reach,
};

static int service_shard_open(struct shard *s)
{
	s->exports->users = &export_users;
	s->exports->extend_work.fn = exports_extend;
	s->runs->learn[STAT_REQUESTS] = estimates_learn;
	s->stats->gauger[STAT_REQUESTS] = &service_gauger;
	return 0;
}

static void each_of_shard(struct shard *s, int (*fn)(void *sc))
{
	struct service_cpt *sc, *next;

	if (!s->rpc->services)
		return;
	list_for_each_entry_safe (sc, next, services_of(s), link)
		(void)fn(sc);
}

static void service_shard_close(struct shard *s)
{
	each_of_shard(s, service_cpt_close);
}

static void service_shard_abort(struct shard *s)
{
	each_of_shard(s, service_cpt_abort);
}

static void service_shard_stop(struct shard *s)
{
	each_of_shard(s, service_cpt_stop);
}

/* Does the end of RPC wait for a request to @svc? If so, writes to @text what
 * it is. */
static bool service_waits(struct ulrpc_service *svc, const struct shard *s,
			  char *text, size_t size)
{
	if (svc->has_exec && exec_running(&svc->exec))
		snprintf(text, size,
			 "a handler of service %s that runs on a worker",
			 svc->name);
	else if (!list_empty(&svc->cpt[s->cpt].active))
		snprintf(text, size, "a request to service %s", svc->name);
	else
		return false;
	return true;
}

/* The function for rpc_part.waits. */
static bool services_wait(struct shard *s, char *text, size_t size)
{
	struct ulrpc *rpc = s->rpc;
	struct ulrpc_service *svc;
	bool waits = false;

	if (!rpc->services)
		return false;
	pthread_mutex_lock(&rpc->wait.lock);
	list_for_each_entry (svc, &rpc->services->all, link)
		if (!waits)
			waits = service_waits(svc, s, text, size);
	pthread_mutex_unlock(&rpc->wait.lock);
	return waits;
}

static void service_drop(struct ulrpc_service *svc)
{
	if (svc->has_exec)
		exec_free(&svc->exec);
	list_del(&svc->link);
	service_unref(svc);
}

static void part_free(struct ulrpc *rpc)
{
	struct services *all = rpc->services;

	if (!all)
		return;
	while (!list_empty(&all->all))
		service_drop(list_first(&all->all, struct ulrpc_service, link));
	durable_keys_put(all->durable_keys);
	free(all->numbered);
	free(all->shard);
	free(all);
	rpc->services = NULL;
}

const struct rpc_part service_part = {
	.open = part_open,
	.shard_open = service_shard_open,
	.shard_close = service_shard_close,
	.shard_abort = service_shard_abort,
	.waits = services_wait,
	.shard_stop = service_shard_stop,
	.free = part_free,
};
