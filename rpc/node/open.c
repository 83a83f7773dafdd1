/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_open(3), ulrpc_shutdown(3), ulrpc_close(3): opens and closes all parts
 * of RPC together. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/misuse.h"
#include "rpc/client/import_control.h"
#include "rpc/client/imports.h"
#include "rpc/client/retry.h"
#include "rpc/client/set.h"
#include "rpc/control.h"
#include "rpc/bulk/seal.h"
#include "rpc/conn_event.h"
#include "rpc/context/intercept.h"
#include "rpc/keys.h"
#include "rpc/munge.h"
#include "rpc/replicas/replicas.h"
#include "rpc/replicas/set.h"
#include "rpc/rpc.h"
#include "ulnet/names.h"
#include "rpc/run.h"
#include "rpc/sealed.h"
#include "rpc/server/set.h"
#include "rpc/server/session/export.h"
#include "rpc/server/session/export_control.h"
#include "rpc/server/session/rails.h"
#include "rpc/server/serve/service.h"
#include "rpc/server/tombstone.h"
#include "rpc/stats/spans.h"
#include "rpc/stats/stats.h"
#include "rpc/stream/set.h"
#include "rpc/stream/streams.h"
#include "rpc/text.h"
#include "rpc/forwarded.h"

/* in us: defaults of struct ulrpc_conf, for fields that are 0 */
#define KEEPALIVE	(10 * UINT64_C(1000000))
#define IDLE		(300 * UINT64_C(1000000))
#define CONNECT_TIMEOUT (5 * UINT64_C(1000000))
#define TIMEOUT_MIN	UINT64_C(50000)
#define TIMEOUT_MAX	UINT64_C(30000000)
#define REPLY_BYTES_MAX (UINT64_C(4) << 30)
#define EXPORTS_MAX	65536
#define CONTROL_BUFFERS 4

/* The parts of RPC, in the order in which they are opened; they are closed in
 * the reverse one. Statistics come first, because all other parts count. */
static const struct rpc_part *const parts[] = {
	&run_part,	 &stat_part,   &span_part,     &conn_event_part,
	&forwarded_part, &munge_part,  &bulk_part,     &sealed_part,
	&import_part,	 &export_part, &service_part,  &tombstone_part,
	&control_part,	 &stream_part, &replicas_part,
};

static void client_set_clients(struct shard *s, struct client_set *set)
{
	clients_set(s, set);
	replicas_set(s, set);
	streams_set_clients(s, set);
}

static int server_set(struct shard *s, struct service_set *set)
{
	int rc;

	streams_tell_service(s, set);
	rc = services_set(s, set);
	if (!rc)
		streams_set_service(s, set);
	return rc;
}

static const struct rpc_side client_side = {
	.control_cpt = import_control_cpt,
	.on_control = import_on_control,
	.handle_cpt = import_handle_cpt,
	.unseal = import_unseal,
	.unsealed = import_unsealed,
	.on_heard = imports_on_sign,
	.on_conn_event = imports_on_end,
	.on_keys = imports_on_keys,
	.set_clients = client_set_clients,
	.streams = streams_of_clients,
	.on_munge = import_on_munge,
};

static void server_on_rules(struct shard *s)
{
	exports_on_rules(s);
	streams_on_rules(s);
}

static const struct rpc_side server_side = {
	.control_cpt = export_control_cpt,
	.on_control = export_on_control,
	.handle_cpt = export_handle_cpt,
	.unseal = export_unseal,
	.unsealed = export_unsealed,
	.on_conn_event = suspects_on_conn_event,
	.on_changed = notifier_begin,
	.on_keys = exports_on_keys,
	.on_rules = server_on_rules,
	.set = server_set,
	.streams = streams_served,
	.on_munge = export_on_munge,
};

/* ---- shards ---- */

/* Calls the function @fn of all parts that are open on the shard @s, in the
 * order in which they are closed. */
#define each_part(fn, s)                                           \
	for (unsigned int i = ARRAY_SIZE(parts); i--;)             \
		if (parts[i]->fn && rpc_part_is_open(parts[i], s)) \
	parts[i]->fn(s)

static void shard_close(struct shard *s)
{
	if (s->closing)
		return;
	s->closing = true;
	each_part(shard_close, s);
}

static void shard_abort(struct shard *s)
{
	if (s->aborted)
		return;
	s->aborted = true;
	each_part(shard_abort, s);
}

static int shard_open(void *arg)
{
	struct shard *s = arg;
	int rc = 0;

	lnet_random(s->node, s->cpt, &s->match, sizeof(s->match));
	lnet_random(s->node, s->cpt, &s->jitter, sizeof(s->jitter));
	s->numa_node = lnet_numa_here(s->node);
	s->near = s->numa_node < 0 ? 0 : LNET_MD_NUMA_NODE;
	s->match &= ~(uint64_t)(LNET_CPTS_MAX - 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(parts) && !rc; i++)
		rc = rpc_part_open(parts[i], s);
	return rc;
}

static int shard_end(void *arg)
{
	struct shard *s = arg;

	shard_close(s);
	if (s->work)
		atomic_store(&s->rpc->shutdown.cut, true);
	shard_abort(s);
	shard_settled(s);
	return 0;
}

static int shard_stop(void *arg)
{
	struct shard *s = arg;

	each_part(shard_stop, s);
	shard_settled(s);
	return 0;
}

static int shard_free(void *arg)
{
	struct shard *s = arg;

	for (unsigned int i = ARRAY_SIZE(parts); i--;)
		rpc_part_close(parts[i], s);
	return 0;
}

/* ---- ulrpc_shutdown() ---- */

static void shutdown_finish(struct ulrpc *rpc)
{
	lnet_timer_cancel(rpc->node, 0, &rpc->shutdown.timer);
	if (!rpc->shutdown.status && atomic_load(&rpc->shutdown.cut))
		rpc->shutdown.status = -ECANCELED;
	if (rpc->shutdown.done && !rpc->layer.mute)
		rpc->shutdown.done(rpc->shutdown.arg, rpc->shutdown.status);
	pthread_mutex_lock(&rpc->wait.lock);
	rpc->shutdown_due = false;
	wait_wake(&rpc->wait);
	pthread_mutex_unlock(&rpc->wait.lock);
}

/* Called on CPT 0 when a shard has no work left. */
static void on_shard_idle(struct ulnet_work *work)
{
	struct shard *s = container_of(work, struct shard, idle_work);
	struct ulrpc *rpc = s->rpc;

	if (--rpc->shutdown.busy == 0 && rpc->shutdown_due)
		shutdown_finish(rpc);
	shard_taken(&rpc->shards[0]);
}

static void on_shard_close(struct ulnet_work *work)
{
	struct shard *s = container_of(work, struct shard, close_work);

	shard_close(s);
	shard_settled(s);
	shard_taken(s);
}

static void on_shard_abort(struct ulnet_work *work)
{
	struct shard *s = container_of(work, struct shard, abort_work);

	shard_close(s);
	shard_abort(s);
	shard_taken(s);
}

static void on_shutdown_late(struct ulnet_timer *timer)
{
	struct ulrpc *rpc = container_of(timer, struct ulrpc, shutdown.timer);

	rpc->shutdown.status = -ETIMEDOUT;
	for (unsigned int i = 0; i < rpc->ncpts; i++)
		shard_give(&rpc->shards[i], &rpc->shards[i].abort_work);
}

/* Called on CPT 0: begins the shutdown. */
static void on_shutdown(struct ulnet_work *work)
{
	struct ulrpc *rpc = container_of(work, struct ulrpc, shutdown.work);

	if (rpc->shutdown.until != TIME_NEVER)
		lnet_timer_arm(rpc->node, 0, &rpc->shutdown.timer,
			       rpc->shutdown.until);
	for (unsigned int i = 0; i < rpc->ncpts; i++)
		shard_give(&rpc->shards[i], &rpc->shards[i].close_work);
	shard_taken(&rpc->shards[0]);
}

int ulrpc_shutdown(struct ulrpc *rpc, uint64_t timeout,
		   void (*done)(void *arg, int status), void *arg)
{
	unsigned int open = RPC_OPEN;

	if (lnet_is_forked(rpc->node))
		return -ESHUTDOWN;
	if (!atomic_compare_exchange_strong(&rpc->state, &open, RPC_SHUTTING))
		return -EALREADY;
	rpc->shutdown.until = rpc_at(lnet_now(rpc->node, 0), rpc_ns(timeout));
	rpc->shutdown.done = done;
	rpc->shutdown.arg = arg;
	pthread_mutex_lock(&rpc->wait.lock);
	rpc->shutdown_due = true;
	pthread_mutex_unlock(&rpc->wait.lock);
	shard_give(&rpc->shards[0], &rpc->shutdown.work);
	return 0;
}

static bool shutdown_is_over(void *arg)
{
	return !((struct ulrpc *)arg)->shutdown_due;
}

int ulrpc_shutdown_wait(struct ulrpc *rpc, uint64_t timeout)
{
	int rc = rpc_may_manage(rpc->node)
			 ? ulrpc_shutdown(rpc, timeout, NULL, NULL)
			 : -EDEADLK;

	if (!rc)
		rc = wait_until(&rpc->wait, rpc->node, shutdown_is_over, rpc,
				TIME_NEVER);
	return rc ? rc : rpc->shutdown.status;
}

/* ---- ulrpc_close() ---- */

static int each_shard(struct ulrpc *rpc, int (*fn)(void *shard))
{
	int rc = 0;

	for (unsigned int i = 0; i < rpc->ncpts && !rc; i++)
		rc = lnet_call(rpc->node, i, fn, &rpc->shards[i]);
	return rc;
}

static bool work_is_done(void *arg)
{
	struct ulrpc *rpc = arg;

	for (unsigned int i = 0; i < rpc->ncpts; i++)
		if (!rpc->shards[i].idle)
			return false;
	return !rpc->shutdown_due && atomic_load(&rpc->posted) == 0;
}

static bool is_unused(void *arg)
{
	struct ulrpc *rpc = arg;

	for (unsigned int i = 0; i < rpc->ncpts; i++)
		if (!rpc->shards[i].unused)
			return false;
	return atomic_load(&rpc->posted) == 0;
}

static void chains_free(struct ulrpc *rpc)
{
	call_chain_put(rpc->call_chain);
	request_chain_put(rpc->request_chain);
}

static void parts_free(struct ulrpc *rpc)
{
	for (unsigned int i = ARRAY_SIZE(parts); i--;)
		if (parts[i]->free)
			parts[i]->free(rpc);
	keys_put(rpc->keys);
	ulrpc_rules_put(rpc->rules);
	wait_fini(&rpc->wait);
	chains_free(rpc);
	free(rpc->shards);
	free(rpc);
}

/* Drops the requests that LNet still holds for the portals of services. One of
 * them may be a copy of a request that was executed. If it stayed, a later RPC
 * on this node could take it for a new request. */
static void portals_clear(struct ulrpc *rpc)
{
	uint64_t lazy = atomic_load(&rpc->lazy);

	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		if (lazy & UINT64_C(1) << i)
			(void)LNetClearLazyPortal(rpc->node, i);
}

/* Ends RPC and frees it. Waits for work that is under way and ends by itself.
 * Returns 0, or an error of lnet_call() or wait_until(). */
static int rpc_end(struct ulrpc *rpc)
{
	int rc;

	stats_close(rpc);
	atomic_store(&rpc->state, RPC_CLOSING);
	rc = each_shard(rpc, shard_end);
	if (!rc)
		rc = wait_until(&rpc->wait, rpc->node, work_is_done, rpc,
				TIME_NEVER);
	if (!rc)
		rc = each_shard(rpc, shard_stop);
	if (!rc)
		rc = wait_until(&rpc->wait, rpc->node, is_unused, rpc,
				TIME_NEVER);
	if (rc)
		return rc;
	portals_clear(rpc);
	each_shard(rpc, shard_free);
	lnet_layer_del(rpc->node, &rpc->layer);
	parts_free(rpc);
	return 0;
}

int ulrpc_close(struct ulrpc *rpc)
{
	if (!rpc)
		return 0;
	/* In a child of fork() nothing is freed: what the threads of the parent
	 * were changing may be half changed. */
	if (lnet_is_forked(rpc->node)) {
		spans_forget(rpc);
		free(rpc->shards);
		free(rpc);
		return 0;
	}
	if (!rpc_may_manage(rpc->node))
		return -EDEADLK;
	return rpc_end(rpc);
}

/* ---- lnet_close() ---- */

/* What a shard waits for, for people. */
struct shard_wait {
	struct shard *shard;
	char text[256];
};

static int shard_waits(void *arg)
{
	struct shard_wait *w = arg;
	struct shard *s = w->shard;

	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i]->waits && rpc_part_is_open(parts[i], s) &&
		    parts[i]->waits(s, w->text, sizeof(w->text)))
			return 0;
	if (s->work)
		snprintf(w->text, sizeof(w->text),
			 "%ju calls or requests on CPT %u", (uintmax_t)s->work,
			 s->cpt);
	else if (s->holds)
		snprintf(w->text, sizeof(w->text),
			 "LNet, which has memory of CPT %u", s->cpt);
	return 0;
}

/* Called when nothing is left that can happen, and RPC cannot end. */
static _Noreturn void rpc_stuck(struct ulrpc *rpc)
{
	struct shard_wait w = { .text = "" };

	for (unsigned int i = 0; i < rpc->ncpts && !w.text[0]; i++) {
		w.shard = &rpc->shards[i];
		(void)lnet_call(rpc->node, i, shard_waits, &w);
	}
	misuse("%s: nothing is left that can happen, but RPC waits for %s",
	       rpc->layer.mute ? "lnet_sim_crash()" : "lnet_close()",
	       w.text[0] ? w.text : "work that was posted to a CPT");
}

static void open_on_close(struct ulnet_layer *layer)
{
	struct ulrpc *rpc = container_of(layer, struct ulrpc, layer);
	int rc = rpc_end(rpc);

	if (rc == -EDEADLK)
		rpc_stuck(rpc);
	BUG_ON(rc);
}

/* ---- ulrpc_open() ---- */

void ulrpc_conf_init(struct ulrpc_conf *conf)
{
	*conf = (struct ulrpc_conf){ 0 };
}

static void conf_fill(struct ulrpc_conf *c)
{
	if (!c->keepalive)
		c->keepalive = KEEPALIVE;
	if (!c->idle)
		c->idle = IDLE;
	if (!c->connect_timeout)
		c->connect_timeout = CONNECT_TIMEOUT;
	if (!c->timeout_max)
		c->timeout_max = MAX(TIMEOUT_MAX, c->timeout_min);
	if (!c->timeout_min)
		c->timeout_min = MIN(TIMEOUT_MIN, c->timeout_max);
	if (!c->exports_max)
		c->exports_max = EXPORTS_MAX;
	if (!c->reply_bytes_max)
		c->reply_bytes_max = REPLY_BYTES_MAX;
	if (!c->control_buffers)
		c->control_buffers = CONTROL_BUFFERS;
}

static void shard_init(struct ulrpc *rpc, unsigned int cpt)
{
	struct shard *s = &rpc->shards[cpt];

	s->rpc = rpc;
	s->node = rpc->node;
	s->cpt = cpt;
	s->late = lnet_guard_late(s->node, cpt);
	s->tick_ns = lnet_tick_rate(s->node, cpt);
	s->close_work.fn = on_shard_close;
	s->abort_work.fn = on_shard_abort;
	s->idle_work.fn = on_shard_idle;
}

/* Copies the interceptors that the user has given. */
static int chains_copy(struct ulrpc *rpc)
{
	struct ulrpc_conf *c = &rpc->conf;
	int rc = call_chain_new(c->call_interceptors, c->ncall_interceptors,
				NULL, 0, &rpc->call_chain);

	if (!rc)
		rc = request_chain_new(c->request_interceptors,
				       c->nrequest_interceptors, NULL, 0,
				       &rpc->request_chain);
	if (rc)
		return rc;
	if (rpc->call_chain)
		c->call_interceptors = rpc->call_chain->list;
	if (rpc->request_chain)
		c->request_interceptors = rpc->request_chain->list;
	return 0;
}

static int rpc_alloc(struct lnet *node, const struct ulrpc_conf *conf,
		     struct ulrpc **rpc_p)
{
	struct ulrpc *rpc = lines_calloc(sizeof(*rpc));
	int rc;

	if (!rpc)
		return -ENOMEM;
	rpc->node = node;
	rpc->ncpts = lnet_cpts(node);
	rpc->conf = *conf;
	conf_fill(&rpc->conf);
	rpc->conf.err = NULL;
	if (conf->keys)
		rpc->keys = keys_ref((struct keys *)conf->keys);
	rpc->client = &client_side;
	rpc->server = &server_side;
	rpc->is_virtual = lnet_is_virtual(node);
	rpc->lent_part = ULRPC_BULK_MAX;
	rpc->shards = lines_calloc(rpc->ncpts * sizeof(*rpc->shards));
	rc = rpc->shards ? chains_copy(rpc) : -ENOMEM;
	if (!rc)
		rc = wait_init(&rpc->wait);
	if (rc) {
		keys_put(rpc->keys);
		chains_free(rpc);
		free(rpc->shards);
		free(rpc);
		return rc;
	}
	for (unsigned int i = 0; i < rpc->ncpts; i++)
		shard_init(rpc, i);
	rpc->shutdown.busy = rpc->ncpts;
	rpc->shutdown.work.fn = on_shutdown;
	lnet_timer_init(&rpc->shutdown.timer, on_shutdown_late);
	rpc->layer.close = open_on_close;
	*rpc_p = rpc;
	return 0;
}

static int ids_make(void *arg)
{
	struct ulrpc *rpc = arg;

	memcpy(rpc->client_id, rpc->conf.client_id, RPC_ID_SIZE);
	if (!rpc_id_is_set(rpc->client_id))
		lnet_random(rpc->node, 0, rpc->client_id, RPC_ID_SIZE);
	lnet_random(rpc->node, 0, rpc->server_id, sizeof(rpc->server_id));
	lnet_random(rpc->node, 0, &rpc->seed, sizeof(rpc->seed));
	return 0;
}

static int parts_open(struct ulrpc *rpc)
{
	int rc = lnet_call(rpc->node, 0, ids_make, rpc);

	for (unsigned int i = 0; i < ARRAY_SIZE(parts) && !rc; i++)
		if (parts[i]->open)
			rc = parts[i]->open(rpc);
	if (!rc)
		rc = each_shard(rpc, shard_open);
	return rc;
}

static int conf_check(struct ulrpc_conf *c)
{
	const struct conf_owner rpc = { "RPC", NULL, c->err };
	int rc = retry_force(&c->force_policy, rpc);

	if (rc)
		return rc;
	if (c->control_buffers == 1 || c->control_buffers > ULRPC_BUFFERS_MAX)
		return conf_refuse(rpc, -EINVAL,
				   "control_buffers: %u is not from 2 to %d",
				   c->control_buffers, ULRPC_BUFFERS_MAX);
	if ((unsigned int)c->force_policy > ULRPC_BACKOFF_NONE)
		return conf_refuse(rpc, -EINVAL,
				   "force_policy: %u is no policy",
				   (unsigned int)c->force_policy);
	if ((unsigned int)c->spread > ULRPC_SPREAD_CLIENTS)
		return conf_refuse(rpc, -EINVAL,
				   "spread: %u is no way to spread clients",
				   (unsigned int)c->spread);
	if (rpc_id_is_set(c->client_id) && !c->client_generation)
		return conf_refuse(
			rpc, -EINVAL,
			"client_generation: with a client_id it must "
			"not be 0");
	if (!rpc_id_is_set(c->client_id) && c->client_generation)
		return conf_refuse(rpc, -EINVAL,
				   "client_id: client_generation is %u, but "
				   "there is no id",
				   c->client_generation);
	rc = call_interceptors_check(c->call_interceptors,
				     c->ncall_interceptors, "call_interceptors",
				     rpc);
	if (!rc)
		rc = request_interceptors_check(c->request_interceptors,
						c->nrequest_interceptors,
						"request_interceptors", rpc);
	if (rc)
		return rc;
	if (c->timeout_max && c->timeout_min > c->timeout_max)
		return conf_refuse(rpc, -EINVAL,
				   "timeout_min: %ju is more than timeout_max, "
				   "%ju",
				   (uintmax_t)c->timeout_min,
				   (uintmax_t)c->timeout_max);
	return 0;
}

int ulrpc_open(struct lnet *node, const struct ulrpc_conf *conf,
	       struct ulrpc **rpc_p)
{
	struct ulrpc_conf own;
	struct ulrpc *rpc;
	int rc;

	if (lnet_is_forked(node))
		return -ESHUTDOWN;
	if (!rpc_may_manage(node))
		return -EDEADLK;
	ulrpc_conf_init(&own);
	if (conf)
		own = *conf;
	rc = conf_check(&own);
	if (rc)
		return rc;
	if (lnet_layer_find(node, open_on_close))
		return -EBUSY;
	/* Names are opened first and closed last, because RPC uses names until
	 * its end. */
	rc = lnet_names_open(node);
	if (!rc)
		rc = rpc_alloc(node, &own, &rpc);
	if (rc)
		return rc;
	lnet_layer_add(node, &rpc->layer);
	rc = parts_open(rpc);
	if (rc) {
		BUG_ON(rpc_end(rpc));
		return rc;
	}
	*rpc_p = rpc;
	return 0;
}
