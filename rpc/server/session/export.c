/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/export.h"

#include <errno.h>
#include <string.h>

#include "rpc/control.h"
#include "rpc/forwarded.h"
#include "rpc/wire/wire.h"
#include "secure/identity.h"

/* A lease is this many keepalives. */
#define LEASE_KEEPALIVES 3
/* us: the shortest keepalive that a client gets */
#define KEEPALIVE_LEAST UINT64_C(100000)
#define RETRY_AFTER_US	UINT64_C(1000000)
/* Chunks of records for all clients of a CPT: 130 MiB of memory. */
#define RECORD_CHUNKS_MAX 65536
/* bytes on a CPT: replies of services that have ended */
#define LEFT_MAX (UINT32_C(16) << 20)

/* Returns us: the keepalive of @e; NULL: of the node. */
static uint64_t keepalive_of(const struct ulrpc *rpc, const struct export *e)
{
	return e && e->keepalive ? e->keepalive : rpc->conf.keepalive;
}

uint64_t export_lease(const struct ulrpc *rpc, const struct export *e)
{
	uint64_t keepalive = keepalive_of(rpc, e);

	return keepalive > TIME_NEVER / LEASE_KEEPALIVES
		       ? TIME_NEVER
		       : keepalive * LEASE_KEEPALIVES;
}

/* ---- the ids of clients ---- */

/*
 * The ids of a node's clients, and for each the CPT on which its export is: the
 * next Connect of a client may come from another NID, and so to another CPT. An
 * id has one export at a time. Any thread.
 */
struct client_ids {
	pthread_mutex_t lock; /* for by_id */
	struct hash by_id;
	uint64_t seed;
};

static uint64_t id_hash(const struct client_ids *ids,
			const uint8_t id[RPC_ID_SIZE])
{
	return hash_bytes(id, RPC_ID_SIZE, ids->seed);
}

/* Called with the lock held. */
static struct client_id *id_find(const struct client_ids *ids,
				 const uint8_t id[RPC_ID_SIZE])
{
	struct client_id *c;

	hash_for_each_equal (c, &ids->by_id, id_hash(ids, id), by_id)
		if (!memcmp(c->id, id, RPC_ID_SIZE))
			return c;
	return NULL;
}

/* Returns 0; -EEXIST: there is an export with that id already; -ENOMEM. */
static int client_ids_add(struct client_ids *ids, struct client_id *c)
{
	int rc = -EEXIST;

	pthread_mutex_lock(&ids->lock);
	if (!id_find(ids, c->id))
		rc = hash_add(&ids->by_id, &c->by_id, id_hash(ids, c->id));
	pthread_mutex_unlock(&ids->lock);
	return rc;
}

static void client_ids_del(struct client_ids *ids, struct client_id *c)
{
	pthread_mutex_lock(&ids->lock);
	hash_del(&ids->by_id, &c->by_id);
	pthread_mutex_unlock(&ids->lock);
}

/* Returns the entry of @id, which only the owner of the CPT *@cpt_p may use;
 * NULL: no export has that id. */
static struct client_id *client_ids_find(struct client_ids *ids,
					 const uint8_t id[RPC_ID_SIZE],
					 unsigned int *cpt_p)
{
	struct client_id *c;

	pthread_mutex_lock(&ids->lock);
	c = id_find(ids, id);
	if (c)
		*cpt_p = c->cpt;
	pthread_mutex_unlock(&ids->lock);
	return c;
}

/* ---- life ---- */

static void export_hear(struct exports *x, struct export *e,
			const struct ulnet_nid *source)
{
	struct record_body *body;

	if (rails_hear(&x->rails, e, source))
		list_for_each_entry (body, &e->records.bodies, link)
			x->users->reach(body, source);
}

/* Is the process of @e the one that @initiator and @source name? */
static bool is_same_process(const struct exports *x, const struct export *e,
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
		       : !is_same_process(x, e, initiator, source))
		return false;
	export_hear(x, e, source);
	return true;
}

struct share *export_share(struct exports *x, struct export *e,
			   unsigned int portal)
{
	struct share *share;

	list_for_each_entry (share, &e->shares, link)
		if (likely(share->portal == portal))
			return share;
	share = share_new(&x->hosts, &e->source, portal, false);
	if (!share)
		return NULL;
	share->queue.id = e->handle;
	share->queue.pid = e->peer.pid;
	list_add_tail(&e->shares, &share->link);
	return share;
}

void export_unref(struct export *e)
{
	BUG_ON(!e->refs);
	if (--e->refs)
		return;
	BUG_ON(!list_empty(&e->extending));
	list_del(&e->extend_link);
	/* Replies that LNet already has are still sent. */
	shares_drop(&e->shares);
	identity_put(e->who);
	free(e);
}

/* Also ends that the session is known to have sent the message that is handled,
 * if it has: it is gone. */
static void export_leave_session(struct exports *x, struct export *e)
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
	suspect_end(e);
	rails_drop(&x->rails, e);
	quota_put(&x->quotas, e->quota, 1);
	export_leave_session(x, e);
	id_free(&x->table, e->id);
	client_ids_del(x->ids, &e->id_of);
	list_del(&e->link);
	stat_peer_del(x->shard->stats, STAT_REQUESTS, &e->stats);
	export_unref(e);
}

/* The connection has ended: drops @e and cancels its requests. Nobody waits for
 * their replies any more, or lends memory to them. */
static void export_lost(struct exports *x, struct export *e)
{
	x->dropped = shard_now(x->shard);
	if (e->refs > 1)
		x->users->forget(&e->shares);
	export_drop(x, e);
}

/* For a connection that ends without a Disconnect: does as export_lost(), and
 * also tells the services that the client has opened. */
static void export_dead(struct exports *x, struct export *e)
{
	struct ulnet_id client = e->peer;
	uint64_t opened = e->opened;

	export_lost(x, e);
	x->users->gone(x->shard, &client, opened);
}

/* Returns the index of the list in x->silent[] that @e belongs to. The exports
 * in list i are looked at every 2^i ns, which is between half a keepalive and
 * one. */
static unsigned int clock_of(const struct exports *x, const struct export *e)
{
	uint64_t ns = rpc_ns(keepalive_of(x->shard->rpc, e));

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

/* Sets the keepalive of @e, whose client has asked for @asked us; 0: it has not
 * asked, and gets the node's. */
static void export_keepalive_set(struct exports *x, struct export *e,
				 uint64_t asked)
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
	struct exports *x = container_of(rs->quotas, struct exports, chunks);

	stat_now(x->shard, RPC_STAT_slots_noted, slots);
}

static int export_new(struct exports *x, const struct wire_connect *c,
		      const struct ulnet_event *ev, struct export **e_p)
{
	struct export *e;
	int rc;

	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	rc = -ENOSPC;
	e->quota = quota_take(&x->quotas, &ev->source, 1, shard_now(x->shard));
	if (!e->quota)
		goto err_free;
	rc = id_alloc(&x->table, e, &e->id);
	if (rc)
		goto err_quota;
	memcpy(e->id_of.id, c->client_id, RPC_ID_SIZE);
	e->id_of.cpt = x->shard->cpt;
	rc = client_ids_add(x->ids, &e->id_of);
	if (rc)
		goto err_id;
	e->handle = shard_handle(x->shard, e->id);
	e->client = c->client;
	e->epoch = c->epoch;
	e->peer = ev->initiator;
	e->pid = e->session ? EXPORT_NO_PID : e->peer.pid;
	e->source = ev->source;
	e->refs = 1;
	e->known = true;
	e->heard = x->heard = shard_now(x->shard);
	records_init(&e->records, &x->users->record_ops, &x->chunks);
	list_init(&e->rails);
	list_init(&e->shares);
	list_init(&e->bulk);
	list_init(&e->suspect_link);
	list_init(&e->extending);
	list_init(&e->extend_link);
	list_init(&e->link);
	(void)rails_hear(&x->rails, e, &ev->source);
	stat_count(x->shard, RPC_STAT_clients_accepted);
	stat_peer_add(x->shard->stats, STAT_REQUESTS, &e->stats,
		      (struct ulnet_id){ ev->source, ev->initiator.pid });
	export_keepalive_set(x, e, c->keepalive);
	*e_p = e;
	return 0;

err_id:
	id_free(&x->table, e->id);
err_quota:
	quota_put(&x->quotas, e->quota, 1);
err_free:
	free(e);
	return rc;
}

/* ---- silence ---- */

/* Returns since when, ns, the client of @e is silent. What it sent while this
 * node slept is not read yet, so silence counts anew from when the node woke.
 */
static uint64_t export_silent_since(const struct exports *x,
				    const struct export *e)
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
	bool cut_off = now - x->heard > rpc_ns(keepalive_of(rpc, e));

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

static void exports_look_at(struct exports *x, unsigned int clock, uint64_t now)
{
	struct list *silent = &x->silent[clock];
	uint64_t due;

	if (list_empty(silent))
		return;
	/* Only a node that did not run looks a whole period late. */
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

/* ---- answers ---- */

/* What the answer to the message that is handled is sealed with. */
static struct sealed *answer_seal(const struct exports *x)
{
	return x->proved ? x->proved->sealed : NULL;
}

static void export_answer(struct shard *s, const struct ulnet_event *ev,
			  const struct wire_control *m)
{
	struct ulnet_id to = { ev->source, ev->initiator.pid };

	/* If the answer cannot be sent, the client repeats its message. */
	(void)control_send(s, answer_seal(s->exports), ev->target.nid, to, m);
}

/* The Connected has been sent to the NID ev->path_peer of the client. The
 * client may now send from there, too: accepts messages from that NID. */
static void on_answer_sent(struct shard *s, uint64_t handle, uint64_t tag,
			   const struct ulnet_event *ev)
{
	struct exports *x = s->exports;
	struct export *e = id_slot_obj(&x->table, (uint32_t)handle);

	(void)tag;
	if (e && e->handle == handle && !ev->status &&
	    /* ANY: the client is on this node */
	    !lnet_nid_is_any(&ev->path_peer))
		export_hear(x, e, &ev->path_peer);
}

static void export_welcome(struct shard *s, const struct ulnet_event *ev,
			   const struct wire_control *m, const struct export *e)
{
	struct ulnet_id to = { ev->source, ev->initiator.pid };

	(void)control_send_tracked(s, answer_seal(s->exports), ev->target.nid,
				   to, m, on_answer_sent, e->handle, 0);
}

/* Tells the client that the server ends. If the message is lost, the client
 * finds out by itself. */
static void export_goodbye(struct exports *x, const struct export *e)
{
	struct ulnet_id to = { e->rail, e->peer.pid };
	const struct wire_control m = {
		.kind = WIRE_GOODBYE,
		.goodbye = { .client = e->client,
			     .connection = e->handle,
			     .epoch = e->epoch,
			     .status = WIRE_SHUTTING_DOWN },
	};

	(void)control_send(x->shard, export_seal(e), LNET_NID_ANY, to, &m);
}

/* ---- Connect ---- */

/* After so many keepalives without a message from a client, another process may
 * have its id: at least one message is missing then. */
#define ALIVE_KEEPALIVES 2

static struct export *find_client(struct exports *x,
				  const uint8_t id[RPC_ID_SIZE])
{
	unsigned int cpt;
	struct client_id *c = client_ids_find(x->ids, id, &cpt);

	return c && cpt == x->shard->cpt ? container_of(c, struct export, id_of)
					 : NULL;
}

/* Returns us until another process may have the id of @e if its client stays
 * silent; 0: now. */
static uint64_t alive_for(const struct exports *x, const struct export *e)
{
	uint64_t now = shard_now(x->shard);
	uint64_t keepalive = rpc_ns(keepalive_of(x->shard->rpc, e));
	uint64_t until = export_silent_since(x, e);

	for (unsigned int i = 0; i < ALIVE_KEEPALIVES; i++)
		until = rpc_at(until, keepalive);
	return until > now ? (until - now) / NSEC_PER_USEC + 1 : 0;
}

static void log_taken(struct exports *x, const struct export *e,
		      const struct ulnet_event *ev)
{
	char has[LNET_NIDSTR_SIZE], wants[LNET_NIDSTR_SIZE];

	if (!rpc_may_log(&x->logged_at, shard_now(x->shard)))
		return;
	lnet_log(LNET_LOG_WARN, "rpc",
		 "client %s, pid %u: refused: its id is that of %s, pid %u, "
		 "which is already connected",
		 lnet_nid_format(&ev->source, wants, sizeof(wants)),
		 ev->initiator.pid,
		 lnet_nid_format(&e->source, has, sizeof(has)), e->peer.pid);
}

/* ---- Connect in a session ---- */

/* Has the client, in the session of the message that is handled, proved to be
 * the one of @e? */
static bool is_same_identity(const struct exports *x, const struct export *e)
{
	return identity_same(x->proved ? x->proved->sealed->who : NULL, e->who);
}

/* Is @c of the client that the session's handshake was with? */
static bool is_of_session(const struct session *se,
			  const struct wire_connect *c)
{
	return c->client == se->client && c->epoch == se->epoch &&
	       !memcmp(c->client_id, se->client_id, RPC_ID_SIZE);
}

/* @e belongs to the session that the Connect came in, and not any more to the
 * one before. */
static void export_take_session(struct exports *x, struct export *e)
{
	struct session *se = x->proved;

	if (e->session == se)
		return;
	export_leave_session(x, e);
	session_give(&x->sessions, se, e);
	e->session = se;
	e->pid = EXPORT_NO_PID;
	if (!e->who)
		e->who = identity_ref(se->sealed->who);
}

/* A Connect has come with the client's id of @e. Returns the status for the
 * answer. WIRE_OK with *@e_p set: @e goes on. WIRE_OK with *@e_p NULL: @e has
 * been dropped, a new export is to be made, and *@former_p is the client's
 * handle of @e. */
static uint32_t connect_known(struct exports *x, struct export *e,
			      const struct wire_connect *c,
			      const struct ulnet_event *ev, struct export **e_p,
			      struct wire_connected *out, uint64_t *former_p)
{
	bool same = c->client == e->client;

	if (x->proved && !e->who) {
		/* Whoever it was, this is the one who can prove it. */
		export_dead(x, e);
		return WIRE_OK;
	}
	if (!is_same_identity(x, e)) {
		log_taken(x, e, ev);
		return WIRE_REFUSED;
	}
	if (!same && e->used &&
	    !is_same_process(x, e, &ev->initiator, &ev->source)) {
		out->retry_after = alive_for(x, e);
		if (out->retry_after) {
			log_taken(x, e, ev);
			return WIRE_REFUSED;
		}
	}
	if (same ? c->epoch < e->epoch : e->used && c->client == e->former)
		return WIRE_STALE_EPOCH;
	if (!same) {
		*former_p = e->client;
		export_dead(x, e);
		return WIRE_OK;
	}
	if (c->epoch > e->epoch) {
		e->source = ev->source;
		e->returned = true;
		stat_count(x->shard, RPC_STAT_clients_returned);
	}
	out->reconnected = e->returned;
	e->epoch = c->epoch;
	e->peer = ev->initiator;
	e->pid = e->session ? EXPORT_NO_PID : e->peer.pid;
	suspect_end(e);
	export_hear(x, e, &ev->source);
	e->heard = x->heard = shard_now(x->shard);
	export_keepalive_set(x, e, c->keepalive);
	*e_p = e;
	return WIRE_OK;
}

/* Returns the CPT that owns the NID of the sender. */
static unsigned int source_cpt(const struct exports *x,
			       const struct ulnet_event *ev)
{
	int cpt = lnet_cpt_of(x->shard->node, &ev->source);

	return cpt < 0 ? x->shard->cpt : (unsigned int)cpt;
}

/* Returns the status for the answer; WIRE_OK: *@e_p is the export;
 * WIRE_STATUSES: no answer, because another CPT is to make the export. */
static uint32_t connect_status(struct exports *x, const struct wire_connect *c,
			       const struct ulnet_event *ev,
			       struct export **e_p, struct wire_connected *out)
{
	struct export *e;
	uint32_t status = WIRE_OK;
	uint64_t former = 0;

	if (x->closing)
		return WIRE_SHUTTING_DOWN;
	if (c->version_min > WIRE_VERSION || c->version_max < WIRE_VERSION)
		return WIRE_VERSION_UNKNOWN;
	if (!rpc_id_is_set(c->client_id) ||
	    (x->proved && !is_of_session(x->proved, c)))
		return WIRE_BAD_REQUEST;
	e = find_client(x, c->client_id);
	if (e)
		status = connect_known(x, e, c, ev, e_p, out, &former);
	if (status || *e_p)
		return status;
	if (unlikely(source_cpt(x, ev) != x->shard->cpt) && !x->proved)
		return WIRE_STATUSES;
	if (export_new(x, c, ev, e_p))
		return WIRE_OVERLOADED;
	(*e_p)->former = former;
	return WIRE_OK;
}

static void connect_forwarded_there(struct forwarded *forwarded)
{
	const struct wire_control in = {
		.kind = WIRE_CONNECT,
		.connect = *(const struct wire_connect *)forwarded->payload,
	};

	export_on_control(forwarded->to, &forwarded->ev, &in);
}

static void connect_pass_on(struct exports *x, const struct ulnet_event *ev,
			    const struct wire_connect *c)
{
	struct forwarded *forwarded = forwarded_new(x->shard, source_cpt(x, ev),
						    ev, c, sizeof(*c), false);

	if (forwarded) /* if NULL, the client repeats its Connect */
		forwarded_send(forwarded, connect_forwarded_there, NULL, NULL);
}

/* Estimates how many clients the node has, as if all CPTs had as many as this
 * one. */
static uint32_t clients_of(const struct exports *x)
{
	return x->table.used * x->shard->rpc->ncpts;
}

static void export_on_connect(struct exports *x, const struct ulnet_event *ev,
			      const struct wire_control *in)
{
	const struct wire_connect *c = &in->connect;
	const struct ulrpc *rpc = x->shard->rpc;
	struct wire_control m = {
		.kind = WIRE_CONNECTED,
		.connected = {
			.client = c->client,
			.epoch = c->epoch,
			.version = WIRE_VERSION,
		},
	};
	struct wire_connected *out = &m.connected;
	struct export *e = NULL;

	out->status = connect_status(x, c, ev, &e, out);
	if (unlikely(out->status == WIRE_STATUSES)) {
		connect_pass_on(x, ev, c);
		return;
	}
	memcpy(out->server_id, rpc->server_id, RPC_ID_SIZE);
	out->clients = clients_of(x);
	if (e && x->proved)
		export_take_session(x, e);
	if (e) {
		out->connection = e->handle;
		out->slots = RECORD_SLOTS;
		out->keepalive = keepalive_of(rpc, e);
		out->lease = export_lease(rpc, e);
		export_welcome(x->shard, ev, &m, e);
		return;
	}
	stat_count(x->shard, RPC_STAT_clients_refused);
	if (out->status == WIRE_OVERLOADED)
		out->retry_after = RETRY_AFTER_US;
	export_answer(x->shard, ev, &m);
}

/* ---- Open, Disconnect, Keepalive, Cancel ---- */

static uint32_t export_check(struct exports *x, const struct ulnet_event *ev,
			     uint64_t connection, uint64_t client,
			     uint32_t epoch, struct export **e_p)
{
	struct export *e = export_find(x, connection, client, &ev->initiator,
				       &ev->source, shard_now(x->shard));

	if (!e || (x->proved && x->proved->export != e))
		return WIRE_NOT_CONNECTED;
	if (e->epoch != epoch)
		return WIRE_STALE_EPOCH;
	*e_p = e;
	return WIRE_OK;
}

/* The client of @e has measured round trips of @us; 0: it has measured none. @e
 * may be NULL. */
static void export_rtt(struct export *e, uint64_t us)
{
	if (e && us)
		e->rtt = (uint32_t)MIN(us, UINT32_MAX);
}

static void export_on_open(struct exports *x, const struct ulnet_event *ev,
			   const struct wire_control *in)
{
	const struct wire_open *o = &in->open;
	struct wire_control m = {
		.kind = WIRE_OPENED,
		.opened = { .client = o->client,
			    .epoch = o->epoch,
			    .tag = o->tag,
			    .flavour = o->flavour },
	};
	struct export *e = NULL;

	m.opened.status =
		export_check(x, ev, o->connection, o->client, o->epoch, &e);
	if (e)
		x->users->opened(x->shard, o->service, e, &m.opened);
	export_rtt(e, o->rtt);
	if (e && m.opened.status == WIRE_OK)
		e->opened |= UINT64_C(1) << m.opened.portal;
	export_answer(x->shard, ev, &m);
}

static void export_on_disconnect(struct exports *x,
				 const struct ulnet_event *ev,
				 const struct wire_control *in)
{
	const struct wire_disconnect *d = &in->disconnect;
	struct wire_control m = {
		.kind = WIRE_DISCONNECTED,
		.disconnected = { .client = d->client, .epoch = d->epoch },
	};
	struct export *e = NULL;

	/* On an error there is no connection with this epoch any more. */
	if (!export_check(x, ev, d->connection, d->client, d->epoch, &e)) {
		stat_count(x->shard, RPC_STAT_clients_left);
		export_lost(x, e);
	}
	export_answer(x->shard, ev, &m);
}

static void export_on_keepalive(struct exports *x, const struct ulnet_event *ev,
				const struct wire_control *in)
{
	const struct wire_keepalive *k = &in->keepalive;
	struct wire_control m = {
		.kind = WIRE_ALIVE,
		.alive = { .client = k->client,
			   .epoch = k->epoch,
			   .sequence = k->sequence },
	};
	struct export *e = NULL;

	m.alive.status =
		export_check(x, ev, k->connection, k->client, k->epoch, &e);
	if (e) {
		records_acked(&e->records, k->acked);
		m.alive.clients = clients_of(x);
	}
	export_rtt(e, k->rtt);
	export_answer(x->shard, ev, &m);
}

/* The call is over for its client. Looks the call up as if the highest possible
 * attempt had come, so that all attempts that still come are copies. */
static void call_gone(struct exports *x, struct export *e,
		      const struct wire_gone *gone)
{
	const struct wire_call last = { .xid = gone->xid,
					.slot = gone->slot,
					.attempt = UINT32_MAX,
					.flags = WIRE_CALL_QUERY };
	struct record *rec;

	switch (record_look(&e->records, &last, &e->source, shard_now(x->shard),
			    &rec)) {
	case RECORD_AGAIN:
		x->users->cancel(rec->request);
		break;
	case RECORD_ANSWERED:
		record_drop(&e->records, rec);
		break;
	default: /* nothing is under way or kept for the call */
		break;
	}
}

/* Does not compare the epoch, because the xid of a call is unique over all
 * epochs. */
static void export_on_cancel(struct exports *x, const struct ulnet_event *ev,
			     const struct wire_control *in)
{
	const struct wire_cancel *c = &in->cancel;
	struct export *e =
		export_find(x, c->connection, c->client, &ev->initiator,
			    &ev->source, shard_now(x->shard));
	struct wire_view view = c->gone.view; /* empty if gone.n is 0 */
	struct wire_gone gone;

	if (!e)
		return;
	for (uint32_t i = 0; i < c->gone.n; i++)
		if (wire_gone_next(&view, &gone))
			call_gone(x, e, &gone);
}

static void export_on_shake(struct exports *x, const struct ulnet_event *ev,
			    const struct wire_control *in)
{
	if (!x->proved) /* a handshake has no keys yet */
		session_on_shake(&x->sessions, ev, &in->shake);
}

/* By kind of message: the function that handles it, and the offset of its
 * connection's handle in struct wire_control; 0: the message names no
 * connection yet. */
static const struct export_kind {
	void (*on)(struct exports *x, const struct ulnet_event *ev,
		   const struct wire_control *in);
	size_t connection;
} export_kinds[] = {
	[WIRE_CONNECT] = { export_on_connect, 0 },
	[WIRE_SHAKE] = { export_on_shake, 0 },
	[WIRE_OPEN] = { export_on_open,
			offsetof(struct wire_control, open.connection) },
	[WIRE_DISCONNECT] = { export_on_disconnect,
			      offsetof(struct wire_control,
				       disconnect.connection) },
	[WIRE_KEEPALIVE] = { export_on_keepalive,
			     offsetof(struct wire_control,
				      keepalive.connection) },
	[WIRE_CANCEL] = { export_on_cancel,
			  offsetof(struct wire_control, cancel.connection) },
};

unsigned int export_control_cpt(const struct shard *s,
				const struct ulnet_event *ev,
				const struct wire_control *m)
{
	size_t connection = export_kinds[m->kind].connection;
	unsigned int cpt;

	if (connection)
		return export_cpt(
			*(const uint64_t *)((const char *)m + connection));
	if (m->kind == WIRE_SHAKE && m->shake.session)
		return export_handle_cpt(m->shake.session);
	if (client_ids_find(s->exports->ids,
			    m->kind == WIRE_SHAKE ? m->shake.client_id
						  : m->connect.client_id,
			    &cpt))
		return cpt;
	return source_cpt(s->exports, ev);
}

unsigned int export_handle_cpt(uint64_t handle)
{
	return (uint8_t)(id_tag(handle) - SESSION_TAG);
}

int export_unseal(struct shard *s, uint64_t handle,
		  const struct ulnet_event *ev, void *record, size_t length,
		  struct opened *o)
{
	struct exports *x = s->exports;
	struct session *se = x ? session_find(&x->sessions, handle) : NULL;
	int rc;

	if (!se) {
		session_lost(s, ev, handle);
		return -ENOENT;
	}
	rc = session_open(&x->sessions, se, ev, record, length, o);
	if (!rc)
		x->proved = se;
	return rc;
}

void export_unsealed(struct shard *s)
{
	s->exports->proved = NULL;
}

void export_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m)
{
	if (s->exports) /* NULL: RPC is still being opened */
		export_kinds[m->kind].on(s->exports, ev, m);
}

/* ---- the part ---- */

static int ids_init(void *arg)
{
	struct ulrpc *rpc = arg;
	struct client_ids *ids = rpc->client_ids;

	pthread_mutex_init(&ids->lock, NULL);
	hash_init(&ids->by_id);
	lnet_random(rpc->node, 0, &ids->seed, sizeof(ids->seed));
	return 0;
}

static int export_open(struct ulrpc *rpc)
{
	rpc->client_ids = malloc(sizeof(*rpc->client_ids));
	if (!rpc->client_ids)
		return -ENOMEM;
	return lnet_call(rpc->node, 0, ids_init, rpc);
}

static void export_free(struct ulrpc *rpc)
{
	if (!rpc->client_ids)
		return;
	hash_fini(&rpc->client_ids->by_id);
	pthread_mutex_destroy(&rpc->client_ids->lock);
	free(rpc->client_ids);
	rpc->client_ids = NULL;
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
	hosts_init(&x->hosts, shard_random(s, UINT64_MAX));
	rails_init(&x->rails, s, shard_random(s, UINT64_MAX));
	sessions_init(&x->sessions, s, seed);
	list_init(&x->suspects);
	lnet_timer_init(&x->suspect_timer, suspects_look);
	quotas_init(&x->quotas, "connections of clients",
		    s->rpc->conf.exports_max, seed);
	quotas_init(&x->chunks, "blocks of 64 slots for requests",
		    RECORD_CHUNKS_MAX, seed);
	quotas_init(&x->left, "bytes of replies of services that have ended",
		    LEFT_MAX, seed);
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
	quotas_fini(&x->chunks);
	quotas_fini(&x->quotas);
	hosts_fini(&x->hosts);
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
