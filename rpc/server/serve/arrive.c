/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of requests that arrive: finds the connection and the record of each
 * call, and serves, answers or refuses the call. */
#include <errno.h>
#include <string.h>

#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/durable.h"
#include "rpc/server/serve/permit.h"
#include "rpc/server/session/export.h"
#include "rpc/server/session/export_control.h"
#include "rpc/server/serve/reply.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/flavour.h"
#include "rpc/run.h"
#include "rpc/forwarded.h"
#include "rpc/wire/wire.h"

/* ---- calls ---- */

/* May @c be executed although it may have been executed before? Only if both
 * the caller and the method allow that. Returns true if there is no such
 * method: the call is refused later. */
static bool request_may_repeat(const struct ulrpc_service *svc,
			       const struct wire_call *c)
{
	const struct ulrpc_method *m = service_method(svc, c->method);

	if (!m)
		return true;
	return c->semantics == ULRPC_IDEMPOTENT &&
	       m->semantics == ULRPC_IDEMPOTENT;
}

/* Refuses @c with @status. @again: with WIRE_OVERLOADED, ns until workers may
 * be free; 0: not known. @why: with WIRE_REFUSED and WIRE_BAD_REQUEST. */
static void request_refuse(struct request_batch *b, const struct wire_call *c,
			   uint32_t status, uint64_t now, uint64_t again,
			   const struct denial *why)
{
	struct wire_reply reply = {
		.xid = c->xid,
		.attempt = c->attempt,
		.status = status,
		.error = why->flavour,
		.length = why->length,
	};
	const struct request_report report = {
		.service = b->sc->stats,
		.peer = b->export ? &b->export->stats : NULL,
		.method = c->method,
		.end = status,
		.received = c->length,
	};

	run_request_end(b->sc->shard, &report, NULL, NULL);
	if (status == WIRE_OVERLOADED) {
		stat_count(b->sc->shard, again ? RPC_STAT_requests_hopeless
					       : RPC_STAT_requests_unroomed);
		reply.retry_after = service_retry_after(b->sc->service, again);
	} else if (status == WIRE_NOT_CONNECTED) {
		reply.absent = b->unknown_for;
	}
	request_batch_add_deadline(b, c, now);
	reply_add(b, &reply, why->text, false, NULL);
}

/* Called when the client of @b, which has @share, is not cleared for all
 * methods of the service, or names the service, as @name. Sets the share of @b,
 * and returns what check_connection() returns. */
static out_of_line uint32_t check_closely(struct request_batch *b,
					  struct share *share, uint32_t name)
{
	if (!share || !share->opened)
		return WIRE_NO_SERVICE;
	/* The request was for a service that had the portal before. */
	if (share->marked && name != b->sc->service->mark)
		return WIRE_NO_SERVICE;
	b->share = share;
	return permit_all(b) ? WIRE_OK : STATUS_JUDGE;
}

/* Sets the export and the share of @b. Returns WIRE_OK; STATUS_JUDGE: each call
 * is to be judged; or the status with which all calls of @m are refused. */
static uint32_t check_connection(struct request_batch *b,
				 const struct wire_requests *m, uint64_t now)
{
	struct service_cpt *sc = b->sc;
	struct share *share;
	struct export *e;

	e = export_find(sc->shard->exports, m->connection, m->client,
			&b->client, &b->source, now);
	if (!e) {
		b->unknown_for = export_unknown_for(sc->shard->exports,
						    m->connection, now);
		b->reply_limit = 0;
		return WIRE_NOT_CONNECTED;
	}
	/* From here on calls have records even if they are refused, so that
	 * copies of them are never executed. */
	b->export = export_ref(e);
	b->reply_limit = e->reply_limit;
	records_acked(&e->records, m->acked);
	if (e->epoch != m->epoch)
		return WIRE_STALE_EPOCH;
	b->refused = sc->fsm.state != SERVICE_CPT_UP;
	if (b->refused)
		return WIRE_SHUTTING_DOWN;
	share = export_share(sc->shard->exports, e, sc->service->number);
	if (unlikely(!share || !share->cleared))
		return check_closely(b, share, m->service);
	b->share = share;
	return WIRE_OK;
}

static struct request_batch *request_batch_new(struct service_cpt *sc,
					       const struct ulnet_event *ev,
					       const struct wire_requests *m,
					       uint8_t wants)
{
	struct request_batch *b = pool_get(&sc->batches);

	if (unlikely(!b))
		return NULL;
	b->sc = sc;
	b->export = NULL;
	b->share = &sc->unconnected;
	b->client = ev->initiator;
	b->source = ev->source;
	b->local = ev->target.nid;
	b->match = ev->match_bits;
	b->handle = m->client;
	b->deadline = 0;
	b->epoch = m->epoch;
	b->refs = 1;
	b->unanswered = m->ncalls;
	b->room_length = b->room_reply = 0;
	b->room_as_of = sc->changes - 1;
	b->reading = true;
	b->refused = false;
	b->wants = wants;
	b->out = NULL;
	list_init(&b->link);
	return b;
}

/* Gives a call of @b no answer, and counts that as @why. */
static void pass_over(struct request_batch *b, enum rpc_stat why)
{
	b->unanswered--;
	stat_count(b->sc->shard, why);
}

/* Handles @c, another attempt of a call that is being served, or has been.
 * Returns what read_known() returns. */
static uint32_t read_again(struct request_batch *b, const struct wire_call *c,
			   struct record *rec, uint64_t now)
{
	if (rec->state == RECORD_ACTIVE && stall_is_over(rec->request, now)) {
		request_cancel(rec->request);
		return WIRE_STALLED;
	}
	if (rec->state == RECORD_KEPT && reply_again_to(b, rec))
		stat_count(b->sc->shard, RPC_STAT_answers_again);
	else if (rec->state == RECORD_ACTIVE &&
		 request_again(rec->request, b, c, now))
		stat_count(b->sc->shard, RPC_STAT_requests_again);
	else
		pass_over(b, RPC_STAT_requests_repeated);
	return WIRE_STATUSES;
}

/* Called when there is no record for @c. It was then not executed on this
 * connection, and will not be without a later attempt. But if @c was sent
 * before, it may have been executed on another connection, or by another
 * server: then it gets no answer. Returns what read_known() returns. */
static uint32_t read_unnoted(struct request_batch *b, const struct wire_call *c)
{
	export_spare(b->sc->shard->exports, b->export, c);
	if (c->flags & WIRE_CALL_RESENT) {
		pass_over(b, RPC_STAT_requests_unnoted);
		return WIRE_STATUSES;
	}
	stat_count(b->sc->shard, RPC_STAT_requests_unnoted);
	return c->flags & WIRE_CALL_QUERY ? WIRE_UNKNOWN_CALL : WIRE_OVERLOADED;
}

/* Handles a call that record_look() has not found to be new. @all: as of
 * read_call(). Returns WIRE_OK: the call is to be executed, or refused with
 * @all; WIRE_STATUSES: the caller does nothing more; or the status (enum
 * wire_status) with which it is to be refused. */
static out_of_line uint32_t read_known(struct request_batch *b,
				       const struct wire_call *c,
				       struct record *rec,
				       enum record_past past, uint32_t all,
				       uint64_t now)
{
	switch (past) {
	case RECORD_REPEATED:
		if (request_may_repeat(b->sc->service, c) ||
		    durable_knows(b->sc->service, c))
			return WIRE_OK;
		record_end(rec, RECORD_LOST);
		/* fall through */
	case RECORD_DOUBTFUL:
		/* The call is for another service, which the client will find.
		 * If that is durable, its store knows. */
		if (all == WIRE_NO_SERVICE && c->flags & WIRE_CALL_RESENT &&
		    c->semantics == ULRPC_EXACTLY_ONCE)
			return WIRE_OK;
		/* A query is not looked up in the store, but the call itself
		 * is, which the client will send. */
		if (c->flags & WIRE_CALL_RESENT &&
		    durable_knows(b->sc->service, c))
			return c->flags & WIRE_CALL_QUERY ? WIRE_UNKNOWN_CALL
							  : WIRE_OK;
		stat_count(b->sc->shard, RPC_STAT_requests_doubtful);
		return WIRE_DOUBTFUL;
	case RECORD_HOPELESS:
		return WIRE_STALLED;
	case RECORD_UNKNOWN:
		stat_count(b->sc->shard, RPC_STAT_queries_unknown);
		return WIRE_UNKNOWN_CALL;
	case RECORD_BEYOND:
		return WIRE_BAD_REQUEST;
	case RECORD_AGAIN:
	case RECORD_ANSWERED:
		return read_again(b, c, rec, now);
	case RECORD_NO_ROOM:
		return read_unnoted(b, c);
	/* a copy of a call gets no answer: the other copy may be served */
	default:
		pass_over(b, RPC_STAT_requests_repeated);
		return WIRE_STATUSES;
	}
}

/* Judges @c if @status is STATUS_JUDGE. Refuses @c, unless it may be executed.
 */
static out_of_line void read_closely(struct request_batch *b,
				     const struct wire_call *c,
				     struct record *rec, bool may_pin,
				     uint32_t status, uint64_t again)
{
	uint64_t now = shard_now(b->sc->shard);
	struct denial why = { .length = 0 };

	if (status == STATUS_JUDGE) {
		status = permit_call(b, c, &why);
		if (!status)
			status =
				request_arrive(b, c, rec, may_pin, now, &again);
	}
	if (!status)
		return;
	/* A client that may not call here at all leaves no record that takes
	 * memory. */
	if (b->export && (status == WIRE_NO_SERVICE || status == WIRE_REFUSED))
		export_spare(b->sc->shard->exports, b->export, c);
	if (status == WIRE_BAD_REQUEST)
		why.length = lent_excess(b->sc, c, why.text, sizeof(why.text));
	request_refuse(b, c, status, now, again, &why);
}

/* Reads the call @c of a message. @all: WIRE_OK; the status with which all
 * calls of the message are refused; or STATUS_JUDGE: each call is to be judged.
 */
static inline void read_call(struct request_batch *b, const struct wire_call *c,
			     uint32_t all, bool may_pin, uint64_t now)
{
	enum record_past past = RECORD_NEW;
	struct export *e = b->export;
	struct record *rec = NULL;
	uint32_t status = WIRE_OK;
	uint64_t again = 0;

	if (likely(e))
		past = record_look(&e->records, c, export_source(e), now, &rec);
	if (unlikely(past != RECORD_NEW))
		status = read_known(b, c, rec, past, all, now);
	if (unlikely(status == WIRE_STATUSES))
		return;
	if (likely(!status))
		status = all;
	if (likely(!status))
		status = request_arrive(b, c, rec, may_pin, now, &again);
	if (unlikely(status))
		read_closely(b, c, rec, may_pin, status, again);
}

/* How a message is read: bits of @how. */
#define READ_MAY_PIN 1u /* the buffer that the message is in may be pinned */
#define READ_SEALED  BATCH_WANTS_SEAL
/* from this bit on: the message's flavour, as in request_batch.wants */
#define READ_FLAVOUR BATCH_FLAVOUR

/* Returns the service that @m, a message to @sc, is for. If services share the
 * portal, that is the one with its number, or, if there is none, @sc, which
 * nobody can have opened and so refuses the calls. */
static struct service_cpt *addressee(struct service_cpt *sc,
				     const struct wire_requests *m)
{
	struct service_cpt *to = NULL;

	unsigned int number = m->service % SERVICE_NUMBERS;

	/* Lesser numbers are those of services with portals of their own. */
	if (sc->service->shared && number >= LNET_PORTALS)
		to = sc->shard->rpc->services->numbered[sc->shard->cpt][number];
	return to && to->service->mark == m->service ? to : sc;
}

/* Reads the calls of a message. @how: READ_*. @refused: WIRE_OK, or a status
 * with which all of them are refused, if check_connection() finds no other. */
static void read_calls(struct service_cpt *sc, const struct ulnet_event *ev,
		       const struct wire_requests *m,
		       const struct wire_call *calls, unsigned int how,
		       uint32_t refused)
{
	uint64_t now = shard_now(sc->shard);
	uint8_t wants = m->checked | (uint8_t)(how & ~READ_MAY_PIN);
	struct request_batch *b;
	uint32_t all;

	if (unlikely(m->service)) {
		sc = addressee(sc, m);
		/* A client that is not marked names no service. */
		if (m->service != sc->service->mark && !refused)
			refused = WIRE_NO_SERVICE;
	}
	b = request_batch_new(sc, ev, m, wants);
	if (unlikely(!b)) {
		stat_count(sc->shard, RPC_STAT_requests_dropped);
		return;
	}
	all = check_connection(b, m, now);
	if (likely(!all) || (all == STATUS_JUDGE && refused))
		all = refused;
	if (likely(m->ncalls))
		request_batch_add_deadline(b, &calls[0], now);
	for (uint32_t i = 0; i < m->ncalls; i++)
		read_call(b, &calls[i], all, how & READ_MAY_PIN, now);
	b->reading = false;
	reply_flush(b);
	request_batch_unref(b);
}

static void unreadable(struct service_cpt *sc, const struct ulnet_event *ev,
		       int rc)
{
	char text[LNET_NIDSTR_SIZE];

	stat_count(sc->shard, RPC_STAT_requests_malformed + stat_of_bad(rc));
	if (service_may_log(sc))
		lnet_log(LNET_LOG_WARN, "rpc",
			 "service %s: a message of %s cannot be read: %s",
			 sc->service->name,
			 lnet_nid_format(&ev->source, text, sizeof(text)),
			 strerror(-rc));
}

/* Reads the calls of a message that was sealed. A client that names a flavour
 * which the service does not take, or this release does not know, has not
 * opened the service as it is now. */
static void read_sealed(struct service_cpt *sc, const struct ulnet_event *ev,
			const struct wire_requests *m,
			const struct wire_call *calls, bool private,
			unsigned int how)
{
	enum ulrpc_flavour f =
		MAX(flavour_of_wire(m->flavour), ULRPC_FLAVOUR_AUTH);
	uint32_t status = WIRE_OK;

	sc = addressee(sc, m);
	if (f == ULRPC_FLAVOUR_PRIVACY && !private)
		f = ULRPC_FLAVOUR_INTEGRITY;
	if (f < sc->service->least || f > FLAVOUR_MAX) {
		status = WIRE_NO_SERVICE;
		f = ULRPC_FLAVOUR_AUTH;
	}
	how |= READ_SEALED | (unsigned int)(f - ULRPC_FLAVOUR_AUTH)
				     << READ_FLAVOUR;
	read_calls(sc, ev, m, calls, how, status);
}

/* Reads a sealed message, on the CPT that has its session. */
static void requests_open(struct service_cpt *sc, const struct ulnet_event *ev,
			  void *record, size_t length, unsigned int how)
{
	struct shard *s = sc->shard;
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;
	struct opened o;
	int rc;

	if (export_unseal(s, unseal_handle(record, length), ev, record, length,
			  &o))
		return;
	rc = wire_requests_decode(&m, calls, &sc->common, o.hdr_data, o.payload,
				  o.length);
	if (rc)
		unreadable(sc, ev, rc);
	else if (!export_is_proved(s->exports, m.connection))
		stat_count(s, RPC_STAT_seals_broken);
	else
		read_sealed(sc, ev, &m, calls, o.private, how);
	export_unsealed(s);
}

/* ---- messages that came to another CPT than their connection's ---- */

static struct service_cpt *forwarded_to(const struct forwarded *forwarded)
{
	const struct service_cpt *from = forwarded->arg;

	return &from->service->cpt[forwarded->to->cpt];
}

static void request_forwarded_back(struct forwarded *forwarded)
{
	struct service_cpt *from = forwarded->arg;

	from->forwards--;
	service_cpt_settled(from);
}

static void request_forwarded_there(struct forwarded *forwarded)
{
	struct service_cpt *to = forwarded_to(forwarded);
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;

	if (forwarded->to->aborted)
		return;
	if (wire_is_sealed(forwarded->ev.hdr_data))
		requests_open(to, &forwarded->ev, forwarded->payload,
			      forwarded->length, 0);
	else if (!wire_requests_decode(&m, calls, &to->common,
				       forwarded->ev.hdr_data,
				       forwarded->payload, forwarded->length))
		read_calls(to, &forwarded->ev, &m, calls, 0, WIRE_OK);
}

static bool request_pass_on(struct service_cpt *from, unsigned int cpt,
			    const struct ulnet_event *ev, const void *payload,
			    size_t length)
{
	struct forwarded *forwarded;

	if (service_cpt_ended(from))
		return false;
	forwarded = forwarded_new(from->shard, cpt, ev, payload, length, true);
	if (!forwarded)
		return false;
	from->forwards++;
	forwarded_send(forwarded, request_forwarded_there,
		       request_forwarded_back, from);
	return true;
}

/* A message without its bodies, forwarded because there is no room to forward
 * the whole message. The CPT that has the connection refuses the calls, because
 * only that CPT knows whether copies of them are under way. */
struct refusal {
	struct wire_requests m;
	struct wire_call calls[];
};

static void refusal_there(struct forwarded *forwarded)
{
	const struct refusal *x = (const struct refusal *)forwarded->payload;

	if (!forwarded->to->aborted)
		read_calls(forwarded_to(forwarded), &forwarded->ev, &x->m,
			   x->calls, 0, WIRE_OVERLOADED);
}

/* Copies @c without the pointers into the message, which will be gone. A later
 * attempt of a call with bulk then seems to lend no memory, and is passed over.
 */
static void keep_head(struct wire_call *to, const struct wire_call *c)
{
	*to = *c;
	to->bulks = (struct wire_entries){ 0 };
	to->trace = (struct wire_view){ NULL, NULL };
	to->body = NULL;
}

/* Forwards @m as a refusal. If there is no room for that either, @m is
 * dropped. */
static void refuse_all(struct service_cpt *from, unsigned int cpt,
		       const struct ulnet_event *ev,
		       const struct wire_requests *m,
		       const struct wire_call *calls)
{
	size_t size = m->ncalls * sizeof(calls[0]);
	struct refusal *x;
	struct forwarded *forwarded = forwarded_new(from->shard, cpt, ev, NULL,
						    sizeof(*x) + size, false);

	if (!forwarded) {
		stat_count(from->shard, RPC_STAT_requests_dropped);
		return;
	}
	x = (struct refusal *)forwarded->payload;
	x->m = *m;
	for (unsigned int i = 0; i < m->ncalls; i++)
		keep_head(&x->calls[i], &calls[i]);
	from->forwards++;
	forwarded_send(forwarded, refusal_there, request_forwarded_back, from);
}

/* Forwards a sealed message to the CPT of its session. Hosts are made to wait
 * before there is no room (forwarded.h). If there is none all the same, drops
 * the message, since only that CPT can read it: the client will ask about its
 * calls. */
static void on_sealed(struct service_cpt *sc, const struct ulnet_event *ev,
		      void *record, size_t length, unsigned int how)
{
	unsigned int cpt = export_handle_cpt(unseal_handle(record, length));

	if (likely(cpt == sc->shard->cpt || cpt >= sc->shard->rpc->ncpts))
		requests_open(sc, ev, record, length, how);
	else if (!request_pass_on(sc, cpt, ev, record, length))
		stat_count(sc->shard, RPC_STAT_requests_dropped);
}

static inline void on_message(struct service_cpt *sc,
			      const struct ulnet_event *ev, const void *payload,
			      size_t length, unsigned int how)
{
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;
	unsigned int cpt;
	int rc;

	stat_count(sc->shard, RPC_STAT_requests_received);
	rc = wire_requests_decode(&m, calls, &sc->common, ev->hdr_data, payload,
				  length);
	if (unlikely(rc)) {
		if (wire_is_sealed(ev->hdr_data))
			on_sealed(sc, ev, (void *)payload, length, how);
		else
			unreadable(sc, ev, rc);
		return;
	}
	cpt = export_cpt(m.connection);
	if (likely(cpt == sc->shard->cpt || cpt >= sc->shard->rpc->ncpts))
		read_calls(sc, ev, &m, calls, how, WIRE_OK);
	else if (!request_pass_on(sc, cpt, ev, payload, length))
		refuse_all(sc, cpt, ev, &m, calls);
}

void request_on_message(void *arg, const struct ulnet_event *ev,
			const void *payload, size_t length)
{
	on_message(arg, ev, payload, length, READ_MAY_PIN);
}

void request_on_shared(void *arg, const struct ulnet_event *ev,
		       const void *payload, size_t length)
{
	on_message(arg, ev, payload, length, 0);
}
