/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/export_priv.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "rpc/control.h"
#include "rpc/keys.h"
#include "rpc/owner.h"
#include "rpc/rules.h"
#include "rpc/server/session/known.h"
#include "rpc/wire/wire.h"
#include "secure/identity.h"

/* A lease is as long as so many keepalives. */
#define LEASE_KEEPALIVES 3
/* us: the shortest keepalive that a client gets */
#define KEEPALIVE_LEAST UINT64_C(100000)
/* Chunks of records for all clients of a CPT, at most: 130 MiB of memory. */
#define RECORD_CHUNKS_MAX 65536
/* Strangers get one part of so many of what all exports may take. */
#define STRANGERS_PART 8
/* bytes on a CPT of replies that services have left, at most */
#define LEFT_MAX (UINT32_C(16) << 20)

uint64_t export_keepalive(const struct ulrpc *rpc, const struct export *e)
{
	return e && e->keepalive ? e->keepalive : rpc->conf.keepalive;
}

uint64_t export_lease(const struct ulrpc *rpc, const struct export *e)
{
	uint64_t keepalive = export_keepalive(rpc, e);

	return keepalive > TIME_NEVER / LEASE_KEEPALIVES
		       ? TIME_NEVER
		       : keepalive * LEASE_KEEPALIVES;
}

/* ---- life ---- */

void export_hear(struct exports *x, struct export *e,
		 const struct ulnet_nid *source)
{
	struct record_body *body;

	if (rails_hear(&x->rails, e, source))
		list_for_each_entry (body, &e->records.bodies, link)
			x->users->reach(body, source);
}

bool export_is_same_process(const struct exports *x, const struct export *e,
			    const struct ulnet_id *initiator,
			    const struct ulnet_nid *source)
{
	return e->peer.pid == initiator->pid &&
	       (rails_know(e, source) ||
		shard_same_peer(x->shard, &e->peer.nid, &initiator->nid));
}

bool export_is_of(struct exports *x, struct export *e,
		  const struct ulnet_id *initiator,
		  const struct ulnet_nid *source)
{
	if (e->session ? e->session != x->proved
		       : !export_is_same_process(x, e, initiator, source))
		return false;
	export_hear(x, e, source);
	return true;
}

struct share *export_share_get(struct exports *x, struct export *e,
			       unsigned int number)
{
	struct share *share = export_share(x, e, number);
	struct export_pool *pool = export_pool_of(e);
	struct quota *opened;

	if (share)
		return share;
	/* The client may connect again from another NID: all is charged to the
	 * one that its connection is charged to. */
	opened = quota_take(&pool->opened, &e->quota->nid, 1,
			    shard_now(x->shard));
	if (!opened)
		return NULL;
	share = share_join(&x->hosts, &e->shares, e->handle, export_source(e),
			   number);
	if (!share) {
		quota_put(&pool->opened, opened, 1);
		return NULL;
	}
	e->opened = opened;
	e->nopened++;
	share->queue.pid = e->peer.pid;
	return share;
}

/* ---- rules ---- */

void export_judge_anew(struct export *e)
{
	struct share *share;

	list_for_each_entry (share, &e->shares, link)
		share_judge_anew(share);
}

static void judge_anew(struct export *e, void *arg)
{
	(void)arg;
	export_judge_anew(e);
}

void exports_on_rules(struct shard *s)
{
	struct exports *x = s->exports;

	if (!x || x->closing)
		return;
	ulrpc_rules_put(x->rules);
	x->rules = rules_get(s->rpc);
	exports_each(x, judge_anew, NULL);
}

bool owner_is_gone(const struct shard *s, const struct rpc_owner *owner)
{
	const struct export *e =
		id_slot_obj(&s->exports->table, (uint32_t)owner->connection);

	return !e || e->handle != owner->connection;
}

/* ---- leaving ---- */

void export_unref(struct export *e)
{
	BUG_ON(!e->refs);
	if (--e->refs)
		return;
	BUG_ON(!list_empty(&e->extending));
	list_del(&e->extend_link);
	/* If LNet is sending a reply already, it is still sent. */
	shares_drop(&e->shares);
	identity_put(e->who);
	free(e);
}

void export_leave_session(struct exports *x, struct export *e)
{
	if (!e->session)
		return;
	if (x->proved == e->session)
		x->proved = NULL;
	session_drop(&x->sessions, e->session);
	e->session = NULL;
	e->pid = e->peer.pid;
}

/* Takes @e out of all tables. Requests of @e that are being served still refer
 * to it. */
static void export_drop(struct exports *x, struct export *e)
{
	BUG_ON(!e->known);
	e->known = false;
	records_fini(&e->records);
	known_drop(x, e);
	suspect_end(e);
	rails_drop(&x->rails, e);
	quota_put(&export_pool_of(e)->exports, e->quota, 1);
	/* Shares to which something is charged remain until it is over. */
	if (e->nopened)
		quota_put(&export_pool_of(e)->opened, e->opened, e->nopened);
	export_leave_session(x, e);
	id_free(&x->table, e->id);
	client_ids_del(x->ids, &e->id_of);
	atomic_fetch_sub_explicit(&x->shard->clients, 1, memory_order_relaxed);
	list_del(&e->link);
	stat_peer_del(x->shard->stats, STAT_REQUESTS, &e->stats);
	export_unref(e);
}

void export_lost(struct exports *x, struct export *e)
{
	x->dropped = shard_now(x->shard);
	if (e->refs > 1)
		x->users->forget(&e->shares);
	export_drop(x, e);
}

void export_dead(struct exports *x, struct export *e)
{
	export_ref(e);
	export_lost(x, e);
	x->users->gone(x->shard, e);
	export_unref(e);
}

/* Returns the index of the list in x->silent[] that @e belongs to. The exports
 * in list i are looked at every 2^i ns, which is between half a keepalive and
 * one. */
static unsigned int clock_of(const struct exports *x, const struct export *e)
{
	uint64_t ns = rpc_ns(export_keepalive(x->shard->rpc, e));

	return 63 - (unsigned int)__builtin_clzll(ns | 1);
}

static void exports_arm(struct exports *x)
{
	uint64_t at = TIME_NEVER;

	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++) {
		const struct export *e;

		if (list_empty(&x->silent[i]))
			continue;
		e = list_first(&x->silent[i], struct export, link);
		if (rpc_ns(export_lease(x->shard->rpc, e)) != TIME_NEVER)
			at = MIN(at, rpc_at(e->looked, UINT64_C(1) << i));
	}
	if (at != TIME_NEVER)
		shard_arm(x->shard, &x->timer, at);
}

static void export_looked(struct exports *x, struct export *e, uint64_t now)
{
	e->looked = now;
	list_del(&e->link);
	list_add_tail(&x->silent[clock_of(x, e)], &e->link);
}

void export_keepalive_set(struct exports *x, struct export *e, uint64_t asked)
{
	uint64_t agreed = MIN(MAX(asked, KEEPALIVE_LEAST), UINT32_MAX);

	if (!asked || agreed >= x->shard->rpc->conf.keepalive)
		agreed = 0;
	if (agreed == e->keepalive && !list_empty(&e->link))
		return;
	e->keepalive = (uint32_t)agreed;
	export_looked(x, e, shard_now(x->shard));
	if (!lnet_timer_armed(&x->timer) || agreed)
		exports_arm(x);
}

void export_noted(struct records *rs, int slots)
{
	const struct export *e = container_of(rs, struct export, records);

	stat_now(export_pool_of(e)->shard, RPC_STAT_slots_noted, slots);
}

const uint8_t *export_id(const struct exports *x, const struct wire_connect *c)
{
	return x->proved ? x->proved->own_id : c->client_id;
}

/* ---- whose share it is ---- */

static void export_pool_init(struct exports *x, enum export_class class,
			     uint32_t exports, uint32_t chunks, uint32_t opened,
			     uint64_t seed)
{
	struct export_pool *pool = &x->pools[class];
	bool stranger = class == EXPORT_STRANGER;

	pool->shard = x->shard;
	quotas_init(&pool->exports,
		    stranger ? "connections of clients that are not proven"
			     : "connections of clients",
		    exports, seed);
	quotas_init(&pool->chunks,
		    stranger ? "blocks of 64 slots for requests of clients "
			       "that are not proven"
			     : "blocks of 64 slots for requests",
		    chunks, seed);
	quotas_init(&pool->opened,
		    stranger ? "services that clients which are not proven "
			       "have opened"
			     : "services that clients have opened",
		    opened, seed);
}

/* Each class gets something, even if there is very little. */
static void export_pools_init(struct exports *x, uint64_t seed)
{
	const struct ulrpc *rpc = x->shard->rpc;
	uint32_t exports = 0, chunks = 0, all = rpc->conf.exports_max;
	uint32_t open = 0, open_all = MAX(OPENED_MAX, MIN(all, 1u << 29) * 4);

	if (rpc_has_keys(rpc)) {
		exports = MAX(all / STRANGERS_PART, 1);
		chunks = RECORD_CHUNKS_MAX / STRANGERS_PART;
		open = open_all / STRANGERS_PART;
	}
	export_pool_init(x, EXPORT_STRANGER, exports, chunks, open, seed);
	export_pool_init(x, EXPORT_PROVED, all > exports ? all - exports : 1,
			 RECORD_CHUNKS_MAX - chunks, open_all - open, seed);
}

/* Returns the pool for the sender of the message that is now handled. */
static struct export_pool *export_pool_now(struct exports *x)
{
	bool stranger = !x->proved && rpc_has_keys(x->shard->rpc);

	return &x->pools[stranger ? EXPORT_STRANGER : EXPORT_PROVED];
}

void export_spare(struct exports *x, struct export *e,
		  const struct wire_call *c)
{
	if (export_pool_of(e) == &x->pools[EXPORT_STRANGER])
		records_spare(&e->records, c->slot);
}

/* ---- new ---- */

int export_new(struct exports *x, const struct wire_connect *c,
	       const struct ulnet_event *ev, struct export **e_p)
{
	struct export_pool *pool = export_pool_now(x);
	struct export *e;
	int rc;

	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	rc = -ENOSPC;
	e->quota =
		quota_take(&pool->exports, &ev->source, 1, shard_now(x->shard));
	if (!e->quota)
		goto err_free;
	rc = id_alloc(&x->table, e, &e->id);
	if (rc)
		goto err_quota;
	memcpy(e->id_of.id, export_id(x, c), RPC_ID_SIZE);
	e->id_of.proved = x->proved;
	e->id_of.cpt = x->shard->cpt;
	rc = client_ids_add(x->ids, &e->id_of, c->client_id,
			    x->proved ? &x->proved->place : NULL);
	if (rc)
		goto err_id;
	e->handle = shard_handle(x->shard, e->id);
	e->client = c->client;
	e->epoch = c->epoch;
	e->peer = ev->initiator;
	e->pid = e->session ? EXPORT_NO_PID : e->peer.pid;
	e->refs = 1;
	e->known = true;
	e->since = e->heard = x->heard = shard_now(x->shard);
	records_init(&e->records, &x->users->record_ops, &pool->chunks);
	list_init(&e->rails);
	list_init(&e->shares);
	list_init(&e->bulk);
	list_init(&e->suspect_link);
	list_init(&e->extending);
	list_init(&e->extend_link);
	list_init(&e->link);
	(void)rails_hear(&x->rails, e, &ev->source);
	atomic_fetch_add_explicit(&x->shard->clients, 1, memory_order_relaxed);
	stat_count(x->shard, RPC_STAT_clients_accepted);
	stat_peer_add(x->shard->stats, STAT_REQUESTS, &e->stats,
		      (struct ulnet_id){ ev->source, ev->initiator.pid });
	export_keepalive_set(x, e, c->keepalive);
	*e_p = e;
	return 0;

err_id:
	id_free(&x->table, e->id);
err_quota:
	quota_put(&pool->exports, e->quota, 1);
err_free:
	free(e);
	return rc;
}

/* ---- silence ---- */

uint64_t export_silent_since(const struct exports *x, const struct export *e)
{
	return MAX(e->heard, x->woke[clock_of(x, e)]);
}

/* Returns ns of silence after which @e is forgotten: its lease; or twice the
 * lease if no client at all has been heard for a keepalive, because then this
 * node may be cut off. */
static uint64_t export_silence_max(const struct exports *x,
				   const struct export *e, uint64_t now)
{
	const struct ulrpc *rpc = x->shard->rpc;
	uint64_t lease = rpc_ns(export_lease(rpc, e));
	bool cut_off = now - x->heard > rpc_ns(export_keepalive(rpc, e));

	return cut_off ? rpc_at(lease, lease) : lease;
}

static void export_forget(struct exports *x, struct export *e, const char *why)
{
	char text[LNET_NIDSTR_SIZE];

	stat_count(x->shard, RPC_STAT_clients_lost);
	if (lnet_log_on_for(LNET_LOG_INFO, "rpc"))
		lnet_log(LNET_LOG_INFO, "rpc", "client %s: %s, forgotten",
			 lnet_nid_format(&e->peer.nid, text, sizeof(text)),
			 why);
	export_dead(x, e);
}

void export_vanished(struct exports *x, struct export *e)
{
	stat_count(x->shard, RPC_STAT_clients_vanished);
	export_forget(x, e,
		      "its connection was lost, and it cannot be reached");
}

/* Forgets @e, because the keys of the client or of this node do not prove any
 * more who the client is. */
static void export_cut(struct exports *x, struct export *e, const char *why)
{
	stat_count(x->shard, RPC_STAT_clients_cut);
	export_forget(x, e, why);
}

static const char *export_doubt(const struct export *e, const struct keys *keys)
{
	const struct sealed *sd = export_seal(e);

	return sd ? keys_doubt(keys, sd->who) : NULL;
}

void exports_on_keys(struct shard *s, const struct keys *keys)
{
	struct exports *x = s->exports;
	struct export *e, *next;

	if (!x || x->closing)
		return;
	sessions_on_keys(&x->sessions, keys);
	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++)
		list_for_each_entry_safe (e, next, &x->silent[i], link) {
			const char *why = export_doubt(e, keys);

			if (why)
				export_cut(x, e, why);
		}
}

/* Has the certificate of the client ended? */
static bool export_has_ended(const struct export *e)
{
	const struct sealed *sd = export_seal(e);

	return sd && sd->who->until && sd->who->until <= time(NULL);
}

static void exports_look_at(struct exports *x, unsigned int clock, uint64_t now)
{
	struct list *silent = &x->silent[clock];
	uint64_t due;

	if (list_empty(silent))
		return;
	/* A look that is a whole period late shows that this node did not run.
	 */
	due = rpc_at(list_first(silent, struct export, link)->looked,
		     UINT64_C(1) << clock);
	if (now > rpc_at(due, UINT64_C(1) << clock))
		x->woke[clock] = now;
	while (!list_empty(silent)) {
		struct export *e = list_first(silent, struct export, link);

		if (rpc_at(e->looked, UINT64_C(1) << clock) > now)
			break;
		if (now - export_silent_since(x, e) >
		    export_silence_max(x, e, now)) {
			export_forget(x, e, "silent for its lease");
			continue;
		}
		if (export_has_ended(e)) {
			export_cut(x, e, "its certificate has ended");
			continue;
		}
		records_trim(&e->records, now);
		rails_look(&x->rails, e);
		export_looked(x, e, now);
	}
}

/* Looks at each export at least once per keepalive. So a client that is silent
 * is forgotten after its lease, and before another keepalive has passed. */
static void exports_look(struct ulnet_timer *t)
{
	struct exports *x = container_of(t, struct exports, timer);
	uint64_t now = shard_now(x->shard);

	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++)
		exports_look_at(x, i, now);
	exports_arm(x);
}

void exports_each(struct exports *x, void (*fn)(struct export *e, void *arg),
		  void *arg)
{
	struct export *e;

	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++)
		list_for_each_entry (e, &x->silent[i], link)
			fn(e, arg);
}

/* ---- goodbye ---- */

/* Tells the client that the server ends, and which calls it has not executed:
 * those that it has not read are among them, and the client may make them again
 * at whoever comes next. If the message is lost, the client finds out by itself
 * that the server has gone, but not that. */
static void export_goodbye(struct exports *x, const struct export *e)
{
	struct ulnet_id to = { e->rail, e->peer.pid };
	const struct wire_control m = {
		.kind = WIRE_GOODBYE,
		.goodbye = { .client = e->client,
			     .connection = e->handle,
			     .epoch = e->epoch,
			     .status = WIRE_SHUTTING_DOWN,
			     .unexecuted = records_executed(&e->records) + 1 },
	};

	(void)control_send(x->shard, export_seal(e), LNET_NID_ANY, to, &m);
}

/* ---- the part ---- */

static int export_open(struct ulrpc *rpc)
{
	rpc->host_queues = host_queues_new(rpc->seed);
	return rpc->host_queues ? client_ids_open(rpc) : -ENOMEM;
}

static void export_free(struct ulrpc *rpc)
{
	client_ids_free(rpc);
	host_queues_free(rpc->host_queues);
	rpc->host_queues = NULL;
}

static int export_shard_open(struct shard *s)
{
	struct exports *x = s->exports;
	uint64_t seed = shard_random(s, UINT64_MAX);

	x->shard = s;
	x->dropped = shard_now(s);
	id_table_init(&x->table, (uint8_t)s->cpt);
	x->ids = s->rpc->client_ids;
	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++)
		list_init(&x->silent[i]);
	lnet_timer_init(&x->timer, exports_look);
	list_init(&x->extending);
	hosts_init(&x->hosts, s->rpc->host_queues, shard_random(s, UINT64_MAX));
	rails_init(&x->rails, s, shard_random(s, UINT64_MAX));
	sessions_init(&x->sessions, s, seed);
	list_init(&x->suspects);
	lnet_timer_init(&x->suspect_timer, suspects_look);
	export_pools_init(x, seed);
	quotas_init(&x->left, "bytes of replies of services that have ended",
		    LEFT_MAX, seed);
	quotas_init(&x->sets, "bytes of metadata that clients have named",
		    KNOWN_MAX, seed);
	return 0;
}

static void export_shard_close(struct shard *s)
{
	s->exports->closing = true;
}

static struct export *exports_first(struct exports *x)
{
	for (unsigned int i = 0; i < EXPORT_CLOCKS; i++)
		if (!list_empty(&x->silent[i]))
			return list_first(&x->silent[i], struct export, link);
	return NULL;
}

static void export_shard_stop(struct shard *s)
{
	struct exports *x = s->exports;
	struct export *e;

	shard_cancel(s, &x->timer);
	shard_cancel(s, &x->suspect_timer);
	shard_cancel(s, &x->rails.notifier);
	while ((e = exports_first(x))) {
		export_goodbye(x, e);
		export_drop(x, e);
	}
}

static void export_shard_free(struct shard *s)
{
	struct exports *x = s->exports;

	id_table_fini(&x->table);
	sessions_fini(&x->sessions);
	rails_fini(&x->rails);
	quotas_fini(&x->left);
	quotas_fini(&x->sets);
	for (unsigned int i = 0; i < EXPORT_CLASSES; i++) {
		quotas_fini(&x->pools[i].chunks);
		quotas_fini(&x->pools[i].exports);
		quotas_fini(&x->pools[i].opened);
	}
	hosts_fini(&x->hosts);
	ulrpc_rules_put(x->rules);
}

const struct rpc_part export_part = {
	RPC_PART_STATE(struct exports, exports),
	.open = export_open,
	.shard_open = export_shard_open,
	.shard_close = export_shard_close,
	.shard_stop = export_shard_stop,
	.shard_free = export_shard_free,
	.free = export_free,
};
