/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of requests: whose they are, whether they have come before, and who
 * is to serve them. */
#include <errno.h>
#include <string.h>

#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/durable.h"
#include "rpc/server/session/export.h"
#include "rpc/server/serve/reply.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/run.h"
#include "rpc/forwarded.h"
#include "rpc/wire/wire.h"

/* ---- calls ---- */

/* May a call be executed that perhaps has been already? Only if its caller does
 * not mind, and the method allows it. @svc NULL: the service has gone. */
static bool request_may_repeat(const struct ulrpc_service *svc,
			       const struct wire_call *c)
{
	const struct ulrpc_method *m =
		svc ? service_method(svc, c->method) : NULL;

	/* Without a method it is not executed now; whether it was before, its
	 * caller knows. */
	if (!m)
		return true;
	return c->semantics == ULRPC_IDEMPOTENT &&
	       m->semantics == ULRPC_IDEMPOTENT;
}

/* @again: ns until there may be room, if it is overloaded. */
static out_of_line void request_refuse(struct origin *o,
				       const struct wire_call *c,
				       uint32_t status, uint64_t now,
				       uint64_t again)
{
	struct wire_reply reply = {
		.xid = c->xid,
		.attempt = c->attempt,
		.status = status,
	};
	const struct request_report report = {
		.service = o->sc->stats,
		.peer = o->export ? &o->export->stats : NULL,
		.method = c->method,
		.end = status,
		.received = c->length,
	};

	run_request_end(o->sc->shard, &report);
	if (status == WIRE_OVERLOADED) {
		stat_count(o->sc->shard, again ? RPC_STAT_requests_hopeless
					       : RPC_STAT_requests_unroomed);
		reply.retry_after = service_retry_after(o->sc->service, again);
	} else if (status == WIRE_NOT_CONNECTED) {
		reply.absent = o->unknown_for;
	}
	origin_await(o, c, now);
	reply_add(o, &reply, NULL, false, NULL);
}

/* The status for all calls of a message. */
static uint32_t check_connection(struct origin *o,
				 const struct wire_requests *m, uint64_t now)
{
	struct service_cpt *sc = o->sc;
	struct share *share;
	struct export *e;

	/* A handle whose CPT does not exist belongs to no export of this
	 * one. */
	e = export_find(sc->shard->exports, m->connection, m->client,
			&o->client, &o->source, now);
	if (!e) {
		o->unknown_for = export_unknown_for(sc->shard->exports,
						    m->connection, now);
		return WIRE_NOT_CONNECTED;
	}
	/* Calls that are refused from here on are noted, so no copy of these
	 * will be executed later. */
	o->export = export_ref(e);
	records_acked(&e->records, m->acked);
	if (e->epoch != m->epoch)
		return WIRE_STALE_EPOCH;
	o->refused = sc->fsm.state != SERVICE_CPT_UP;
	if (o->refused)
		return WIRE_SHUTTING_DOWN;
	if (!(e->opened & UINT64_C(1) << sc->service->portal))
		return WIRE_NO_SERVICE;
	share = export_share(sc->shard->exports, e, sc->service->portal);
	if (!share)
		return WIRE_OVERLOADED;
	o->share = share;
	return WIRE_OK;
}

static struct origin *origin_new(struct service_cpt *sc,
				 const struct ulnet_event *ev,
				 const struct wire_requests *m)
{
	struct origin *o = pool_get(&sc->origins);

	if (unlikely(!o))
		return NULL;
	o->sc = sc;
	o->export = NULL;
	o->share = &sc->unknown;
	o->client = ev->initiator;
	o->source = ev->source;
	o->local = ev->target.nid;
	o->match = ev->match_bits;
	o->handle = m->client;
	o->deadline = 0;
	o->epoch = m->epoch;
	o->refs = 1;
	o->unanswered = m->ncalls;
	o->room_length = o->room_reply = 0;
	o->room_as_of = sc->changes - 1;
	o->reading = true;
	o->refused = false;
	o->out = NULL;
	list_init(&o->link);
	return o;
}

/* The call gets no answer now. */
static void pass_over(struct origin *o, enum rpc_stat why)
{
	o->unanswered--;
	stat_count(o->sc->shard, why);
}

/* Another attempt of a call that is served, or has been: as read_known(). */
static uint32_t read_again(struct origin *o, const struct wire_call *c,
			   struct record *rec, uint64_t now)
{
	if (rec->state == RECORD_ACTIVE && stall_is_over(rec->request, now)) {
		request_cancel(rec->request);
		return WIRE_STALLED;
	}
	if (rec->state == RECORD_KEPT && reply_again_to(o, rec))
		stat_count(o->sc->shard, RPC_STAT_answers_again);
	else if (rec->state == RECORD_ACTIVE &&
		 request_again(rec->request, o, c, now))
		stat_count(o->sc->shard, RPC_STAT_requests_again);
	else
		pass_over(o, RPC_STAT_requests_repeated);
	return WIRE_STATUSES;
}

/* There is no record for the call: it was not executed on this connection, nor
 * will be without a later attempt. On another connection, or by another server,
 * it may have been: in that case it gets no answer, which might be wrong. */
static uint32_t read_unnoted(struct origin *o, const struct wire_call *c)
{
	if (c->flags & WIRE_CALL_RESENT) {
		pass_over(o, RPC_STAT_requests_unnoted);
		return WIRE_STATUSES;
	}
	stat_count(o->sc->shard, RPC_STAT_requests_unnoted);
	return c->flags & WIRE_CALL_QUERY ? WIRE_UNKNOWN_CALL : WIRE_OVERLOADED;
}

/* Handles a call that is not simply new. Returns why it is not executed (enum
 * wire_status); WIRE_STATUSES: it needs no answer here. */
static out_of_line uint32_t read_known(struct origin *o,
				       const struct wire_call *c,
				       struct record *rec,
				       enum record_past past, uint64_t now)
{
	switch (past) {
	case RECORD_REPEATED:
		if (request_may_repeat(o->sc->service, c) ||
		    durable_knows(o->sc->service, c))
			return WIRE_OK;
		record_end(rec, RECORD_LOST);
		/* fall through */
	case RECORD_DOUBTFUL:
		/* Only the attempt after a query is looked up. */
		if (c->flags & WIRE_CALL_RESENT &&
		    durable_knows(o->sc->service, c))
			return c->flags & WIRE_CALL_QUERY ? WIRE_UNKNOWN_CALL
							  : WIRE_OK;
		stat_count(o->sc->shard, RPC_STAT_requests_doubtful);
		return WIRE_DOUBTFUL;
	case RECORD_HOPELESS:
		return WIRE_STALLED;
	case RECORD_UNKNOWN:
		stat_count(o->sc->shard, RPC_STAT_queries_unknown);
		return WIRE_UNKNOWN_CALL;
	case RECORD_BEYOND:
		return WIRE_BAD_REQUEST;
	case RECORD_AGAIN:
	case RECORD_ANSWERED:
		return read_again(o, c, rec, now);
	case RECORD_NO_ROOM:
		return read_unnoted(o, c);
	default: /* a copy is not refused: the other one may be under way */
		pass_over(o, RPC_STAT_requests_repeated);
		return WIRE_STATUSES;
	}
}

/* A call of a message: @all is WIRE_OK, or why the whole message is refused. */
static inline void read_call(struct origin *o, const struct wire_call *c,
			     uint32_t all, bool may_pin, uint64_t now)
{
	enum record_past past = RECORD_NEW;
	struct export *e = o->export;
	struct record *rec = NULL;
	uint32_t status = WIRE_OK;
	uint64_t again = 0;

	if (likely(e))
		past = record_look(&e->records, c, &e->source, now, &rec);
	if (unlikely(past != RECORD_NEW))
		status = read_known(o, c, rec, past, now);
	if (unlikely(status == WIRE_STATUSES))
		return;
	if (likely(!status))
		status = all;
	if (likely(!status))
		status = request_arrive(o, c, rec, may_pin, now, &again);
	if (unlikely(status))
		request_refuse(o, c, status, now, again);
}

/* @refused: WIRE_OK, or the status with which all calls are refused at
 * least. */
static void read_calls(struct service_cpt *sc, const struct ulnet_event *ev,
		       const struct wire_requests *m,
		       const struct wire_call *calls, bool may_pin,
		       uint32_t refused)
{
	uint64_t now = shard_now(sc->shard);
	struct origin *o = origin_new(sc, ev, m);
	uint32_t all;

	if (unlikely(!o)) {
		stat_count(sc->shard, RPC_STAT_requests_dropped);
		return;
	}
	all = check_connection(o, m, now);
	if (likely(!all))
		all = refused;
	if (likely(m->ncalls))
		origin_await(o, &calls[0], now);
	for (uint32_t i = 0; i < m->ncalls; i++)
		read_call(o, &calls[i], all, may_pin, now);
	o->reading = false;
	reply_flush(o);
	origin_unref(o);
}

/* ---- what came to another CPT than its connection's ---- */

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

	if (!forwarded->to->aborted &&
	    !wire_requests_decode(&m, calls, forwarded->ev.hdr_data,
				  forwarded->payload, forwarded->length))
		read_calls(to, &forwarded->ev, &m, calls, false, WIRE_OK);
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

/* A message that there is no room for, without its bodies. The CPT that knows
 * its connection refuses it, because a copy of it may be under way there. */
struct refusal {
	struct wire_requests m;
	struct wire_call calls[];
};

static void refusal_there(struct forwarded *forwarded)
{
	const struct refusal *x = (const struct refusal *)forwarded->payload;

	if (!forwarded->to->aborted)
		read_calls(forwarded_to(forwarded), &forwarded->ev, &x->m,
			   x->calls, false, WIRE_OVERLOADED);
}

/* The message is gone when the other CPT looks at what is known of its calls.
 * So a later attempt of a call with bulk has no bulk that could replace what
 * was lent before, and is passed over. */
static void keep_head(struct wire_call *to, const struct wire_call *c)
{
	*to = *c;
	to->bulks = (struct wire_entries){ 0 };
	to->trace = (struct wire_view){ NULL, NULL };
	to->body = NULL;
}

/* The message cannot be passed on as it is. When its sender has too many even
 * of refusals, nobody is told. */
static void refuse_all(struct service_cpt *from, unsigned int cpt,
		       const struct ulnet_event *ev,
		       const struct wire_requests *m,
		       const struct wire_call *calls)
{
	size_t size = m->ncalls * sizeof(calls[0]);
	struct forwarded *forwarded = NULL;
	struct refusal *x;

	if (!from->shard->aborted)
		forwarded = forwarded_new(from->shard, cpt, ev, NULL,
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

void request_on_message(void *arg, const struct ulnet_event *ev,
			const void *payload, size_t length)
{
	struct service_cpt *sc = arg;
	struct wire_call calls[WIRE_CALLS_MAX];
	struct wire_requests m;
	unsigned int cpt;
	int rc;

	stat_count(sc->shard, RPC_STAT_requests_received);
	rc = wire_requests_decode(&m, calls, ev->hdr_data, payload, length);
	if (unlikely(rc)) {
		unreadable(sc, ev, rc);
		return;
	}
	cpt = export_cpt(m.connection);
	if (likely(cpt == sc->shard->cpt || cpt >= sc->shard->rpc->ncpts))
		read_calls(sc, ev, &m, calls, true, WIRE_OK);
	else if (!request_pass_on(sc, cpt, ev, payload, length))
		refuse_all(sc, cpt, ev, &m, calls);
}
