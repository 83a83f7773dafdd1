/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/naming.h"
#include "rpc/client/imports.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "rpc/bulk/bulk.h"
#include "rpc/client/attempt.h"
#include "rpc/client/client.h"
#include "rpc/client/fetch.h"
#include "rpc/client/import.h"
#include "rpc/client/batch.h"
#include "rpc/client/shake.h"
#include "rpc/control.h"
#include "rpc/conn_event.h"
#include "rpc/keys.h"
#include "rpc/run.h"
#include "rpc/sealed.h"
#include "rpc/wire/wire.h"

/* ---- found by handle ---- */

struct import *import_find(struct shard *s, uint64_t handle)
{
	struct import *imp;

	if (!s->imports)
		return NULL;
	imp = id_slot_obj(&s->imports->handles, (uint32_t)handle);
	return imp && imp->handle == handle ? imp : NULL;
}

/* ---- found by the peer of the NID in use ---- */

static uint64_t nid_hash(const struct imports *x, const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), x->hash_seed);
}

static struct ulnet_nid primary_of(const struct shard *s,
				   const struct ulnet_nid *nid)
{
	struct ulnet_nid primary;

	return lnet_primary(s->node, nid, &primary) ? *nid : primary;
}

static int nid_add(struct import *imp)
{
	struct imports *x = imp->shard->imports;

	imp->primary = primary_of(imp->shard, &imp->nids[imp->nid]);
	return hash_add(&x->by_nid, &imp->by_nid, nid_hash(x, &imp->primary));
}

void imports_use_nid(struct import *imp, unsigned int nid)
{
	hash_del(&imp->shard->imports->by_nid, &imp->by_nid);
	imp->nid = nid;
	/* This needs no memory, because the import was in the table. */
	BUG_ON(nid_add(imp));
}

/* May another CPT own a NID of the server: one that a client has named, that
 * discovery has found, or that has moved? That CPT then tells this one about
 * connections with the NID. */
static bool may_be_on_other_cpt(const struct import *imp)
{
	const struct ulnet_nid *nid = &imp->nids[imp->nid];
	const struct shard *s = imp->shard;

	return imp->nnids > 1 || lnet_is_multi_rail(s->node, nid) ||
	       lnet_cpt_of(s->node, nid) != (int)s->cpt;
}

static void far_set(struct import *imp, bool far)
{
	if (far && !imp->far)
		atomic_fetch_add(&imp->shard->far, 1);
	else if (!far && imp->far)
		atomic_fetch_sub(&imp->shard->far, 1);
	imp->far = far;
}

void imports_renew_nid(struct import *imp)
{
	struct ulnet_nid primary = primary_of(imp->shard, &imp->nids[imp->nid]);

	if (unlikely(!lnet_nid_eq(&primary, &imp->primary)))
		imports_use_nid(imp, imp->nid);
	far_set(imp, may_be_on_other_cpt(imp));
}

/* Visits each import whose NID in use belongs to the peer with the primary NID
 * @nid. */
#define imports_for_each_at(imp, x, nid)                                  \
	hash_for_each_equal (imp, &(x)->by_nid, nid_hash(x, nid), by_nid) \
		if (lnet_nid_eq(&(imp)->primary, nid))

void imports_on_sign(struct shard *s, const struct ulnet_nid *nid)
{
	struct ulnet_nid primary = primary_of(s, nid);
	struct import *imp;

	if (!s->imports)
		return;
	imports_for_each_at (imp, s->imports, &primary)
		import_on_sign(imp);
}

/* ---- ids ---- */

/* The names of imports whose ids outlive the process. */
struct import_names {
	pthread_mutex_t lock;
	struct hash by_target;
};

/* The bytes whose hash is an id. */
struct name_text {
	uint64_t what; /* target_of(), or the import's handle; little-endian */
	uint32_t number;
	uint32_t is_target;
};

/* Returns a hash of pid and NIDs, which does not depend on the order of the
 * NIDs. */
static uint64_t target_of(const struct import *imp)
{
	const uint8_t *key = imp->shard->rpc->client_id;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < imp->nnids; i++) {
		uint8_t out[SIPHASH_SIZE];
		uint64_t part;

		siphash(key, &imp->nids[i], sizeof(imp->nids[i]), out);
		memcpy(&part, out, sizeof(part));
		sum += le64toh(part);
	}
	return sum + imp->pid;
}

static void name_compute(struct import *imp, uint64_t what, bool is_target)
{
	const struct name_text text = {
		.what = htole64(what),
		.number = htole32(imp->name.number),
		.is_target = htole32(is_target),
	};

	_Static_assert(RPC_ID_SIZE == SIPHASH_SIZE, "an id is one result");
	siphash(imp->shard->rpc->client_id, &text, sizeof(text), imp->name.id);
}

/* Is the name taken? The caller holds names->lock. */
static bool is_taken(const struct import_names *names, uint64_t target,
		     uint32_t number)
{
	const struct import_name *name;

	hash_for_each_equal (name, &names->by_target, target, by_target)
		if (name->number == number)
			return true;
	return false;
}

static int name_list(struct import_names *names, struct import_name *name,
		     uint64_t target)
{
	int rc;

	pthread_mutex_lock(&names->lock);
	while (is_taken(names, target, name->number))
		name->number++;
	rc = hash_add(&names->by_target, &name->by_target, target);
	pthread_mutex_unlock(&names->lock);
	name->listed = !rc;
	return rc;
}

/* Computes the id of @imp, which has a handle. Returns 0 or -ENOMEM. */
static int name_assign(struct import *imp)
{
	const struct ulrpc *rpc = imp->shard->rpc;
	uint64_t target;
	int rc;

	if (!rpc_id_is_set(rpc->conf.client_id)) {
		name_compute(imp, imp->handle, false);
		return 0;
	}
	target = target_of(imp);
	rc = name_list(rpc->names, &imp->name, target);
	if (rc)
		return rc;
	name_compute(imp, target, true);
	return 0;
}

/* Takes the name of @imp off the list, if it is there. */
static void name_drop(struct import *imp)
{
	struct import_names *names = imp->shard->rpc->names;

	if (!imp->name.listed)
		return;
	pthread_mutex_lock(&names->lock);
	hash_del(&names->by_target, &imp->name.by_target);
	pthread_mutex_unlock(&names->lock);
	imp->name.listed = false;
}

static int names_open(struct ulrpc *rpc)
{
	rpc->names = malloc(sizeof(*rpc->names));
	if (!rpc->names)
		return -ENOMEM;
	pthread_mutex_init(&rpc->names->lock, NULL);
	hash_init(&rpc->names->by_target);
	return 0;
}

static void names_free(struct ulrpc *rpc)
{
	if (!rpc->names)
		return;
	hash_fini(&rpc->names->by_target);
	pthread_mutex_destroy(&rpc->names->lock);
	free(rpc->names);
	rpc->names = NULL;
}

/* ---- found by all their NIDs ---- */

static bool imports_has_nid(const struct import *imp,
			    const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < imp->nnids; i++)
		if (lnet_nid_eq(&imp->nids[i], nid))
			return true;
	return false;
}

/* Are @a and @b for the same pid and the same NIDs, in whatever order? */
static bool same_target(const struct import *a, const struct import *b)
{
	if (a->pid != b->pid || a->nnids != b->nnids || a->secure != b->secure)
		return false;
	for (unsigned int i = 0; i < a->nnids; i++)
		if (!imports_has_nid(b, &a->nids[i]))
			return false;
	return true;
}

/* Adds @imp to all tables, or to none. Returns 0, -ENOMEM or -ENOSPC. */
static int tables_add(struct imports *x, struct import *imp, uint64_t target)
{
	int rc = id_alloc(&x->handles, imp, &imp->id);

	if (rc)
		return rc;
	rc = hash_add(&x->by_nids, &imp->hash, target);
	if (rc)
		goto free_id;
	rc = nid_add(imp);
	if (rc)
		goto del_hash;
	return 0;

del_hash:
	hash_del(&x->by_nids, &imp->hash);
free_id:
	id_free(&x->handles, imp->id);
	return rc;
}

static void tables_del(struct imports *x, struct import *imp)
{
	id_free(&x->handles, imp->id);
	hash_del(&x->by_nids, &imp->hash);
	hash_del(&x->by_nid, &imp->by_nid);
}

int import_attach(struct import *fresh, struct import **imp_p)
{
	struct imports *x = fresh->shard->imports;
	uint64_t h = target_of(fresh);
	struct import *imp;
	int rc;

	hash_for_each_equal (imp, &x->by_nids, h, hash) {
		if (!same_target(imp, fresh))
			continue;
		import_free(fresh);
		*imp_p = imp;
		return 0;
	}
	rc = tables_add(x, fresh, h);
	if (rc)
		return rc;
	fresh->handle = shard_handle(fresh->shard, fresh->id);
	rc = name_assign(fresh);
	if (rc) {
		tables_del(x, fresh);
		return rc;
	}
	fresh->xid = x->xid;
	list_add_tail(&x->all, &fresh->link);
	far_set(fresh, may_be_on_other_cpt(fresh));
	stat_peer_add(fresh->shard->stats, STAT_CALLS, &fresh->stats,
		      import_target(fresh));
	*imp_p = fresh;
	return 0;
}

static void import_detach(struct import *imp)
{
	struct imports *x = imp->shard->imports;

	list_del(&imp->link);
	if (imp->nameless)
		return;
	x->xid = MAX(x->xid, imp->xid);
	far_set(imp, false);
	tables_del(x, imp);
	stat_peer_del(imp->shard->stats, STAT_CALLS, &imp->stats);
}

void import_free(struct import *imp)
{
	name_drop(imp);
	shake_end(imp);
	sealed_free(imp->sealed);
	sealed_past_clear(&imp->past);
	ticket_drop(&imp->ticket);
	identity_put(imp->who);
	slots_fini(&imp->slots);
	list_del(&imp->cancels.link);
	free(imp->cancels.list);
	naming_free(imp);
	free(imp);
}

void import_close(struct import *imp)
{
	import_end(imp);
	import_detach(imp);
	import_free(imp);
}

/* ---- cancels ---- */

static void cancels_send(struct import *imp)
{
	const struct wire_control m = {
		.kind = WIRE_CANCEL,
		.cancel = { .connection = imp->connection,
			    .client = imp->handle,
			    .epoch = imp->epoch,
			    .gone = { .n = imp->cancels.n,
				      .list = imp->cancels.list } },
	};
	struct ulnet_id to = { imp->join.to, imp->pid };

	/* Sent over the rail of the connection, which the server certainly
	 * knows: the message has no answer that would tell if it did not. */
	if (import_is_up(imp) &&
	    !control_send(imp->shard, imp->sealed, imp->join.made, to, &m))
		stat_count(imp->shard, RPC_STAT_cancels_sent);
	imp->cancels.n = 0;
}

static void imports_cancel(struct ulnet_work *w)
{
	struct imports *x = container_of(w, struct imports, cancel_work);
	struct shard *s = x->shard;
	struct import *imp;

	x->cancel_given = false;
	while ((imp = list_pop(&x->canceling, struct import, cancels.link)))
		cancels_send(imp);
	shard_release(s);
}

void cancel_call(const struct ulrpc_call *call)
{
	struct import *imp = call->client->imp;
	struct imports *x = imp->shard->imports;
	struct cancels *c = &imp->cancels;

	if (!import_is_up(imp))
		return;
	if (!c->list)
		c->list = malloc(WIRE_ENTRIES_MAX * sizeof(c->list[0]));
	if (!c->list)
		return;
	if (c->n == WIRE_ENTRIES_MAX)
		cancels_send(imp);
	c->list[c->n++] =
		(struct wire_gone){ .xid = call->xid, .slot = call->slot };
	if (!list_empty(&c->link))
		return;
	list_add_tail(&x->canceling, &c->link);
	if (x->cancel_given)
		return;
	x->cancel_given = true;
	shard_hold(imp->shard);
	shard_defer(imp->shard, &x->cancel_work);
}

/* ---- the loss of connections ---- */

/* ns between two times at which an import asks about calls, at least. */
#define ASK_EACH (10 * NSEC_PER_MSEC)

static void on_time_to_ask(struct ulnet_timer *timer)
{
	struct import *imp =
		container_of(timer, struct import, conn_loss.timer);

	if (!import_is_up(imp))
		return;
	imp->conn_loss.asked = shard_now(imp->shard);
	attempts_ask(imp, &imp->conn_loss.last);
	fetches_on_conn_loss(imp, &imp->conn_loss.last);
}

/* Called when a connection of the LND was lost. @peer: as in struct conn_event.
 */
static void import_conn_loss(struct import *imp, const struct ulnet_id *peer)
{
	struct import_conn_loss *s = &imp->conn_loss;
	uint64_t now = shard_now(imp->shard), pause;
	bool armed = lnet_timer_armed(&s->timer);

	if ((peer->pid != imp->pid && peer->pid != LNET_PID_ANY) ||
	    !import_is_up(imp) || list_empty(&imp->calls))
		return;
	conn_loss_note(&s->last, &peer->nid, now, armed);
	if (armed)
		return;
	lnet_timer_init(&s->timer, on_time_to_ask);
	pause = conn_loss_pause(import_rtt(imp), import_jitter(imp),
				++imp->failures,
				shard_random(imp->shard, UINT64_MAX));
	shard_arm(imp->shard, &s->timer,
		  MAX(rpc_at(now, pause), s->asked + ASK_EACH));
}

void imports_on_end(struct shard *s, const struct conn_event *end)
{
	const struct ulnet_id *peer = &end->peer;
	struct ulnet_nid primary;
	struct import *imp;

	if (!s->imports)
		return;
	if (lnet_nid_is_any(&peer->nid)) {
		list_for_each_entry (imp, &s->imports->all, link)
			if (imp->far)
				import_conn_loss(imp, peer);
		return;
	}
	primary = primary_of(s, &peer->nid);
	imports_for_each_at (imp, s->imports, &primary)
		import_conn_loss(imp, peer);
}

/* A connection with a server that is not believed any more is made again, which
 * fails with the reason. A server that has come back by a ticket has not shown
 * its authority, and has to do so. Handshakes under way look at the new keys
 * when they end: shake_on_answer(). */
void imports_on_keys(struct shard *s, const struct keys *keys)
{
	struct import *imp, *next;

	if (!s->imports)
		return;
	list_for_each_entry_safe (imp, next, &s->imports->all, link) {
		const char *why = NULL;

		if (imp->sealed)
			why = keys_doubt(keys, imp->sealed->who);
		if (why)
			import_doubted(imp, why);
	}
}

/* ---- gauges ---- */

/* stat_gauger.methods: counts what the CPT has of clients. The gauges of
 * methods are added by import_gauges(), for the clients of each import. */
static int imports_gauges(struct shard *s, struct stat_shard *sum)
{
	const struct ulrpc_client *c;
	const struct import *imp;
	int rc = 0;

	if (!s->imports)
		return 0;
	list_for_each_entry (imp, &s->imports->all, link) {
		sum->counts[RPC_STAT_servers_known] += !imp->nameless;
		list_for_each_entry (c, &imp->clients, link) {
			sum->counts[RPC_STAT_clients_open]++;
			sum->counts[RPC_STAT_calls_under_way] += c->ncalls;
			if (!rc)
				rc = stat_service_gauge(sum, STAT_CALLS,
							c->service, c->ncalls,
							c->nqueued);
		}
	}
	return rc;
}

/* Returns the ns from @since to @now; 0 if @since is 0 (never), or later than
 * the turn's clock, as it may be for calls of other threads. */
static uint64_t age(uint64_t now, uint64_t since)
{
	return since && since < now ? now - since : 0;
}

/* Returns the highest flavour that the import's clients have agreed on with
 * their services. */
static enum ulrpc_flavour import_flavour(const struct import *imp)
{
	enum ulrpc_flavour most = ULRPC_FLAVOUR_AUTH;
	const struct ulrpc_client *c;

	list_for_each_entry (c, &imp->clients, link)
		if (c->fsm.state == CLIENT_OPEN)
			most = MAX(most, c->flavour);
	return most;
}

/* Returns the age, in ns, of the call that was sent first, among those that
 * have not ended. */
static uint64_t oldest_sent(const struct import *imp, uint64_t now)
{
	const struct ulrpc_call *call;

	if (list_empty(&imp->calls))
		return 0;
	call = list_first(&imp->calls, struct ulrpc_call, order);
	return age(now, call->began);
}

/* Returns the age, in ns, of the call that was queued first, among those that
 * were never sent. */
static uint64_t oldest_queued(const struct ulrpc_client *c, uint64_t now)
{
	const struct ulrpc_call *call;

	if (list_empty(&c->queue))
		return 0;
	call = list_first(&c->queue, struct ulrpc_call, link);
	return age(now, call->began);
}

static int import_gauges(struct shard *s, struct stat_peer *p,
			 struct stat_peer_gauges *g, struct stat_shard *sum)
{
	struct import *imp = container_of(p, struct import, stats);
	struct ulrpc_client *c;
	uint64_t now = shard_now(s);
	int rc = 0;

	*g = (struct stat_peer_gauges){
		.state = fsm_name(&imp->fsm, import_states),
		.rtt = import_rtt(imp),
		.backoff = 1u << imp->backoff,
		.slots = imp->slots.granted,
		.silent = age(now, imp->heard),
		.oldest = oldest_sent(imp, now),
	};
	if (import_is_up(imp))
		g->connected = age(now, imp->since);
	if (imp->sealed) {
		g->proof = sealed_proof(imp->sealed, import_flavour(imp), now);
		rc = g->proof ? 0 : -ENOMEM;
	}
	list_for_each_entry (c, &imp->clients, link) {
		g->window += c->window.limit;
		g->under_way += c->ncalls;
		g->oldest = MAX(g->oldest, oldest_queued(c, now));
		if (!rc)
			rc = timeouts_gauge(c, sum);
	}
	return rc;
}

static const struct stat_gauger import_gauger = {
	.methods = imports_gauges,
	.peer = import_gauges,
};

/* ---- opening and closing ---- */

static int imports_open(struct shard *s)
{
	struct imports *x = s->imports;

	x->xid = (uint64_t)s->rpc->conf.client_generation << 32;
	id_table_init(&x->handles, (uint8_t)(IMPORT_TAG + s->cpt));
	hash_init(&x->by_nids);
	hash_init(&x->by_nid);
	x->shard = s;
	list_init(&x->canceling);
	x->cancel_work.fn = imports_cancel;
	list_init(&x->batches);
	list_init(&x->fetches);
	list_init(&x->reply_room.waiting);
	x->reply_room.max = s->rpc->conf.reply_bytes_max;
	give_back_init(&x->reply_room.bodies, s, fetch_on_given);
	list_init(&x->all);
	x->reply_buf_users = &batch_reply_users;
	slab_init(&x->slab, s);
	lnet_random(s->node, s->cpt, &x->hash_seed, sizeof(x->hash_seed));
	s->runs->learn[STAT_CALLS] = timeouts_learn;
	s->stats->gauger[STAT_CALLS] = &import_gauger;
	return 0;
}

static void imports_each(struct shard *s, void (*fn)(struct ulrpc_client *c))
{
	struct import *imp;

	list_for_each_entry (imp, &s->imports->all, link)
		import_each_client(imp, fn);
}

static void client_abort(struct ulrpc_client *c)
{
	client_cancel_all(c, ULRPC_CAUSE_CANCELED);
}

static void imports_abort(struct shard *s)
{
	imports_each(s, client_abort);
}

/* Has @c a call that has not ended? If so, writes to @text whose that is. */
static bool client_waits(const struct ulrpc_client *c, char *text, size_t size)
{
	const struct import *imp = c->imp;
	char nid[LNET_NIDSTR_SIZE];

	if (!c->ncalls)
		return false;
	if (imp->nameless)
		snprintf(text, size,
			 "a call to service %s, whose server is not known",
			 c->service);
	else
		snprintf(text, size, "a call to service %s at %s", c->service,
			 lnet_nid_format(&imp->nids[imp->nid], nid,
					 sizeof(nid)));
	return true;
}

/* The function for rpc_part.waits. */
static bool imports_wait(struct shard *s, char *text, size_t size)
{
	const struct ulrpc_client *c;
	const struct import *imp;

	list_for_each_entry (imp, &s->imports->all, link)
		list_for_each_entry (c, &imp->clients, link)
			if (client_waits(c, text, size))
				return true;
	return false;
}

/* Called when all calls have ended: disconnects all imports. */
static void imports_stop(struct shard *s)
{
	struct import *imp;

	list_for_each_entry (imp, &s->imports->all, link)
		import_end(imp);
	imports_each(s, client_stop);
}

static void imports_free(struct shard *s)
{
	struct imports *x = s->imports;

	while (!list_empty(&x->all)) {
		struct import *imp = list_first(&x->all, struct import, link);

		while (!list_empty(&imp->clients))
			client_free(list_first(&imp->clients,
					       struct ulrpc_client, link));
		import_detach(imp);
		import_free(imp);
	}
	slab_stop(&x->slab);
	slab_fini(&x->slab);
	hash_fini(&x->by_nids);
	hash_fini(&x->by_nid);
	id_table_fini(&x->handles);
}

const struct rpc_part import_part = {
	RPC_PART_STATE(struct imports, imports),
	.open = names_open,
	.shard_open = imports_open,
	.shard_abort = imports_abort,
	.waits = imports_wait,
	.shard_stop = imports_stop,
	.shard_free = imports_free,
	.free = names_free,
};
