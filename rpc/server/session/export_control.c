/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/session/export_control.h"

#include <errno.h>
#include <string.h>

#include "rpc/control.h"
#include "rpc/flavour.h"
#include "rpc/forwarded.h"
#include "rpc/munge.h"
#include "rpc/server/session/export_priv.h"
#include "rpc/server/session/known.h"
#include "rpc/wire/wire.h"
#include "secure/identity.h"

/* A client whose Connect is refused as overloaded repeats it after this time.
 */
#define RETRY_AFTER_US UINT64_C(1000000)

/* ---- answers ---- */

/* Returns the keys for the answer to the message that is now handled; NULL: the
 * answer is not sealed. */
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

/* ---- Connect ---- */

/* Another process may have a client's id after so many keepalives without a
 * message from the client: then at least one message is missing. */
#define ALIVE_KEEPALIVES 2

static struct export *find_client(struct exports *x,
				  const uint8_t given[RPC_ID_SIZE],
				  const uint8_t id[RPC_ID_SIZE])
{
	unsigned int cpt;
	struct client_id *c = client_ids_find(x->ids, given, id, &cpt);

	return c && cpt == x->shard->cpt ? container_of(c, struct export, id_of)
					 : NULL;
}

/* Returns us until another process may have the id of @e if its client stays
 * silent; 0: now. */
static uint64_t alive_for(const struct exports *x, const struct export *e)
{
	uint64_t now = shard_now(x->shard);
	uint64_t keepalive = rpc_ns(export_keepalive(x->shard->rpc, e));
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
		 lnet_nid_format(export_source(e), has, sizeof(has)),
		 e->peer.pid);
}

/* ---- Connect in a session ---- */

/* Does @c come from the client of the session's handshake? */
static bool is_of_session(const struct session *se,
			  const struct wire_connect *c)
{
	return c->client == se->client && c->epoch == se->epoch &&
	       !memcmp(c->client_id, se->client_id, RPC_ID_SIZE);
}

/* Gives @e the session in which the Connect came. The session before, if any,
 * ends. */
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

/* Handles a Connect with the client's id of @e. Returns the status for the
 * answer. WIRE_OK with *@e_p set: @e goes on. WIRE_OK with *@e_p NULL: @e has
 * been dropped, a new export is to be made, and *@former_p is the client's
 * handle of @e. */
static uint32_t connect_known(struct exports *x, struct export *e,
			      const struct wire_connect *c,
			      const struct ulnet_event *ev, struct export **e_p,
			      struct wire_connected *out, uint64_t *former_p)
{
	bool same = c->client == e->client;

	if (!same && e->used &&
	    !export_is_same_process(x, e, &ev->initiator, &ev->source)) {
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
		e->stats.id =
			(struct ulnet_id){ ev->source, ev->initiator.pid };
		e->returned = true;
		e->since = shard_now(x->shard);
		e->agreed = 0;
		known_drop(x, e);
		stat_count(x->shard, RPC_STAT_clients_returned);
	}
	out->reconnected = e->returned;
	e->epoch = c->epoch;
	e->peer = ev->initiator;
	e->pid = e->session ? EXPORT_NO_PID : e->peer.pid;
	export_judge_anew(e);
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

/* ---- on which CPT ---- */

/*
 * All processes of a host have one NID, and so one CPT. LNet's part of their
 * messages stays there, but most of a call's work is RPC's, and that is done by
 * the CPT of the client's export, which may be another one. Then each message,
 * which is of many calls when there are many, costs a copy and hand-overs
 * between CPTs (forwarded.h). So a client is moved only if its host has several
 * here already, and the other CPT has fewer clients: then nothing is moved as
 * long as the NIDs are spread evenly, and whoever chooses the ids of his
 * clients cannot crowd a CPT.
 */

/* So many clients of a host stay on the CPT of its NID. */
#define CROWD 4

/* Has the host @nid so many clients on this CPT that others may take some? */
static bool is_crowd(const struct exports *x, const struct ulnet_nid *nid)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < EXPORT_CLASSES; i++)
		n += quota_used(&x->pools[i].exports, nid);
	return n >= CROWD;
}

static uint64_t clients_on(const struct shard *s)
{
	return atomic_load_explicit(&s->clients, memory_order_relaxed);
}

/* Returns the CPT for a new client that gives @id, whose message @ev has come
 * to this CPT. */
static unsigned int place_of(const struct exports *x,
			     const struct ulnet_event *ev,
			     const uint8_t id[RPC_ID_SIZE])
{
	const struct ulrpc *rpc = x->shard->rpc;
	unsigned int home = source_cpt(x, ev), other;

	if (likely(rpc->ncpts == 1) || rpc->conf.spread == ULRPC_SPREAD_NIDS)
		return home;
	other = client_ids_cpt(x->ids, id, rpc->ncpts);
	if (rpc->conf.spread == ULRPC_SPREAD_CLIENTS)
		return other;
	if (home != x->shard->cpt || !is_crowd(x, &ev->source))
		return home;
	return clients_on(x->shard) * 4 >= clients_on(&rpc->shards[other]) * 5
		       ? other
		       : home;
}

/* Makes the export for @c. If another CPT has just made it for a copy of @c
 * that came by another rail, or was sent on to another place, it has the only
 * one. Returns what connect_status() returns. */
static uint32_t connect_new(struct exports *x, const struct wire_connect *c,
			    const struct ulnet_event *ev, struct export **e_p)
{
	switch (export_new(x, c, ev, e_p)) {
	case 0:
		return WIRE_OK;
	case -EEXIST:
		return WIRE_STATUSES;
	default:
		return WIRE_OVERLOADED;
	}
}

/* Returns the status for the answer; WIRE_OK: *@e_p is the export;
 * WIRE_STATUSES: no answer, because another CPT is to make the export, or has
 * it. @placed: it is to be made here. */
static uint32_t connect_status(struct exports *x, const struct wire_connect *c,
			       const struct ulnet_event *ev, bool placed,
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
	e = find_client(x, c->client_id, export_id(x, c));
	if (e)
		status = connect_known(x, e, c, ev, e_p, out, &former);
	if (status || *e_p)
		return status;
	if (!placed && !x->proved &&
	    unlikely(place_of(x, ev, c->client_id) != x->shard->cpt))
		return WIRE_STATUSES;
	status = connect_new(x, c, ev, e_p);
	if (!status)
		(*e_p)->former = former;
	return status;
}

/* Bytes of a long reply to a client of an earlier release, which has not said a
 * limit, nor that it would. */
#define REPLY_UNTOLD (UINT32_C(16) << 20)

/* Returns the limit of replies to calls that do not say one. */
static uint32_t reply_limit(const struct wire_connect *c)
{
	if (c->reply_limit)
		return c->reply_limit;
	return c->limits ? ULRPC_BODY_MAX : REPLY_UNTOLD;
}

/* Returns for how many us, at least, this server has not known the connection
 * that the client of @e, which is new, had before; 0: not known. Another CPT
 * may have had it. */
static uint64_t absent(const struct exports *x, const struct export *e,
		       const struct wire_connect *c)
{
	if (!c->former || id_tag(c->former) != id_tag(e->handle))
		return 0;
	return export_unknown_for(x, c->former, shard_now(x->shard));
}

static void connect_here(struct exports *x, const struct ulnet_event *ev,
			 const struct wire_connect *c, bool placed);

/* ---- a connection without a proof ---- */

/* The Connect of a client that has proved who it is waits until the CPT that
 * has a connection of the client without a proof has dropped it. */
struct replacing {
	struct wire_connect connect;
	uint64_t session; /* the one that the Connect came in */
};

/* Drops the client's connection without a proof, if it is the same process's.
 */
static void drop_unproved(struct exports *x, const struct wire_connect *c)
{
	struct export *e = find_client(x, c->client_id, c->client_id);

	if (e && e->client == c->client)
		export_dead(x, e);
}

static void drop_unproved_there(struct forwarded *forwarded)
{
	const struct replacing *r = (const void *)forwarded->payload;

	if (forwarded->to->exports)
		drop_unproved(forwarded->to->exports, &r->connect);
}

static void drop_unproved_back(struct forwarded *forwarded)
{
	const struct replacing *r = (const void *)forwarded->payload;
	struct exports *x = forwarded->from->exports;

	x->proved = session_find(&x->sessions, r->session);
	if (x->proved)
		connect_here(x, &forwarded->ev, &r->connect, true);
	x->proved = NULL;
}

/* Called when a client that has proved who it is says @c: if it had connected
 * before without a proof, that connection is dropped. Returns false if another
 * CPT has it: @c goes on when that CPT has dropped it. */
static bool leave_unproved(struct exports *x, const struct ulnet_event *ev,
			   const struct wire_connect *c)
{
	struct forwarded *forwarded;
	struct replacing *r;
	unsigned int cpt;

	if (!client_ids_find(x->ids, c->client_id, c->client_id, &cpt))
		return true;
	if (cpt == x->shard->cpt) {
		drop_unproved(x, c);
		return true;
	}
	forwarded = forwarded_new(x->shard, cpt, ev, NULL, sizeof(*r), false);
	if (!forwarded) /* the client repeats its Connect */
		return false;
	r = (struct replacing *)forwarded->payload;
	r->connect = *c;
	r->session = x->proved->handle;
	forwarded_send(forwarded, drop_unproved_there, drop_unproved_back,
		       NULL);
	return false;
}

/* ---- to other CPTs ---- */

static void connect_there(const struct forwarded *forwarded, bool placed)
{
	struct exports *x = forwarded->to->exports;

	if (x) /* NULL: RPC is still being opened */
		connect_here(x, &forwarded->ev,
			     (const struct wire_connect *)forwarded->payload,
			     placed);
}

static void connect_to_owner(struct forwarded *forwarded)
{
	connect_there(forwarded, false);
}

static void connect_to_place(struct forwarded *forwarded)
{
	connect_there(forwarded, true);
}

/* Returns the CPT that is to make the export for @c, or has made it: as
 * *@placed_p says; or the one that owns the NID of the sender, and so knows the
 * place. */
static unsigned int connect_next(const struct exports *x,
				 const struct ulnet_event *ev,
				 const struct wire_connect *c, bool *placed_p)
{
	unsigned int owner = source_cpt(x, ev), cpt;

	*placed_p = true;
	if (client_ids_find(x->ids, c->client_id, c->client_id, &cpt))
		return cpt;
	*placed_p = owner == x->shard->cpt;
	return *placed_p ? place_of(x, ev, c->client_id) : owner;
}

/* Passes @c, whose client has proved nothing, on to another CPT. */
static void connect_pass_on(struct exports *x, const struct ulnet_event *ev,
			    const struct wire_connect *c)
{
	bool placed;
	unsigned int to = connect_next(x, ev, c, &placed);
	struct forwarded *forwarded =
		forwarded_new(x->shard, to, ev, c, sizeof(*c), false);

	if (forwarded) /* without memory, the client repeats its Connect */
		forwarded_send(forwarded,
			       placed ? connect_to_place : connect_to_owner,
			       NULL, NULL);
}

/* Called when another CPT is to make the export for @c, or has made it. Of a
 * client that has proved who it is, the session is here: it makes another
 * handshake, which is led to the export. */
static void connect_elsewhere(struct exports *x, const struct ulnet_event *ev,
			      const struct wire_connect *c)
{
	struct session *se = x->proved;

	if (!se) {
		connect_pass_on(x, ev, c);
		return;
	}
	x->proved = NULL;
	session_mislead(&x->sessions, se, ev);
}

/* Returns how many clients the node has. */
static uint32_t clients_of(const struct exports *x)
{
	const struct ulrpc *rpc = x->shard->rpc;
	uint64_t n = 0;

	for (unsigned int i = 0; i < rpc->ncpts; i++)
		n += clients_on(&rpc->shards[i]);
	return (uint32_t)n;
}

static void connect_here(struct exports *x, const struct ulnet_event *ev,
			 const struct wire_connect *c, bool placed)
{
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

	if (x->proved && !placed && is_of_session(x->proved, c) &&
	    !leave_unproved(x, ev, c))
		return;
	out->status = connect_status(x, c, ev, placed, &e, out);
	if (unlikely(out->status == WIRE_STATUSES)) {
		connect_elsewhere(x, ev, c);
		return;
	}
	memcpy(out->server_id, rpc->server_id, RPC_ID_SIZE);
	out->clients = clients_of(x);
	if (e && x->proved)
		export_take_session(x, e);
	if (e) {
		out->connection = e->handle;
		out->slots = RECORD_SLOTS;
		out->annexes = true;
		out->sets = KNOWN_SETS;
		if (!out->reconnected)
			out->absent = absent(x, e, c);
		e->annexes = c->annexes;
		e->reply_limit = reply_limit(c);
		out->keepalive = export_keepalive(rpc, e);
		out->lease = export_lease(rpc, e);
		export_welcome(x->shard, ev, &m, e);
		return;
	}
	stat_count(x->shard, RPC_STAT_clients_refused);
	if (out->status == WIRE_OVERLOADED)
		out->retry_after = RETRY_AFTER_US;
	export_answer(x->shard, ev, &m);
}

static void export_on_connect(struct exports *x, const struct ulnet_event *ev,
			      const struct wire_control *in)
{
	connect_here(x, ev, &in->connect, false);
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

static void export_opened(struct export *e, const struct wire_opened *m)
{
	enum ulrpc_flavour flavour = flavour_of_wire(m->flavour);

	e->agreed = MAX(e->agreed, (uint8_t)flavour);
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
		x->users->opened(x->shard, o, e, &m.opened);
	export_rtt(e, o->rtt);
	if (e && m.opened.status == WIRE_OK)
		export_opened(e, &m.opened);
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

/* Called when the call @gone is over for its client. Looks the call up as if
 * the highest possible attempt had come, so that all attempts that still come
 * are copies. */
static void call_gone(struct exports *x, struct export *e,
		      const struct wire_gone *gone)
{
	const struct wire_call last = { .xid = gone->xid,
					.slot = gone->slot,
					.attempt = UINT32_MAX,
					.flags = WIRE_CALL_QUERY };
	struct record *rec;

	switch (record_look(&e->records, &last, export_source(e),
			    shard_now(x->shard), &rec)) {
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

/* By kind of message: the function that handles it, and the offset in struct
 * wire_control of the handle of its connection; 0: the message names no
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
	if (m->kind == WIRE_SHAKE)
		return client_ids_guess(
			s->exports->ids, m->shake.client_id, &ev->initiator,
			place_of(s->exports, ev, m->shake.client_id));
	if (client_ids_find(s->exports->ids, m->connect.client_id,
			    m->connect.client_id, &cpt))
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

void export_on_munge(struct shard *s, struct munge_job *j)
{
	session_on_munge(&s->exports->sessions, j);
}

void export_on_control(struct shard *s, const struct ulnet_event *ev,
		       const struct wire_control *m)
{
	if (s->exports) /* NULL: RPC is still being opened */
		export_kinds[m->kind].on(s->exports, ev, m);
}
