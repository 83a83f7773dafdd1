/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/request.h"

#include <errno.h>
#include <string.h>

#include "rpc/bulk/transfer.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/server/serve/durable.h"
#include "rpc/server/session/export.h"
#include "rpc/server/session/record.h"
#include "rpc/server/serve/reply.h"
#include "rpc/wire/wire.h"

const struct fsm_state request_states[REQUEST_STATES] = {
	[REQUEST_ARRIVED] = { "arrived", FSM_TO(REQUEST_QUEUED) |
						 FSM_TO(REQUEST_RUNNING) },
	[REQUEST_QUEUED] = { "queued", FSM_TO(REQUEST_RUNNING) |
					       FSM_TO(REQUEST_ANSWERING) |
					       FSM_TO(REQUEST_LOST) },
	[REQUEST_RUNNING] = { "running", FSM_TO(REQUEST_ANSWERING) |
						 FSM_TO(REQUEST_LOST) },
	[REQUEST_ANSWERING] = { "answering", FSM_TO(REQUEST_REPLIED) },
	[REQUEST_REPLIED] = { "replied", 0 },
	[REQUEST_LOST] = { "lost", 0 },
};

/* ---- running ---- */

static in_line void request_call_handler(struct ulrpc_request *r)
{
	const struct ulrpc_method *m = r->method;

	if (unlikely(r->durable) && durable_answers(r))
		return;
	m->handler(m->arg, r, r->body, r->length);
	/* r may be gone */
}

static void request_start(struct ulrpc_request *r, uint64_t now)
{
	atomic_store_explicit(&r->started, now, memory_order_relaxed);
	if (unlikely(!request_move(r, REQUEST_QUEUED, REQUEST_RUNNING)))
		request_lost_end(r);
	else
		request_call_handler(r);
}

/* Why a request that is too late is not run. */
static uint32_t status_late(const struct ulrpc_request *r, uint64_t now)
{
	return now >= r->deadline ? WIRE_EXPIRED : WIRE_OVERLOADED;
}

/* ---- what is left to do ---- */

static enum sched_lane request_lane_of(const struct ulrpc_request *r)
{
	switch (r->priority) {
	case ULRPC_PRIORITY_HIGH:
		return LANE_HIGH;
	case ULRPC_PRIORITY_BACKGROUND:
		return LANE_BACKGROUND;
	default:
		return LANE_NORMAL;
	}
}

static void call_next(struct ulrpc_request *r)
{
	ulrpc_continue_fn next = r->next;

	r->next = NULL;
	next(r->next_arg, r);
	/* r may be gone */
}

/* Queues a continuation. False: there are no workers any more. A request that
 * was run inline has no lane yet. */
static bool queue_next(struct ulrpc_request *r)
{
	r->item.lane = (uint8_t)request_lane_of(r);
	r->item.client = &r->share->queue;
	r->item.cost = NULL;
	return exec_add_again(&r->sc->service->exec, &r->item,
			      shard_now(r->sc->shard));
}

int ulrpc_request_continue(struct ulrpc_request *request, ulrpc_continue_fn fn,
			   void *arg)
{
	bool queued = false;

	if (!request->sc->service->has_exec)
		return -EOPNOTSUPP;
	request->next = fn;
	request->next_arg = arg;
	/* See request_wait_users(). */
	atomic_fetch_add(&request->users, 1);
	if (atomic_load(&request->state) != REQUEST_LOST)
		queued = queue_next(request);
	atomic_fetch_sub(&request->users, 1);
	if (!queued)
		call_next(request);
	return 0;
}

/* ---- workers ---- */

/* Requests that are too late, or canceled, are not run. */
void request_run(struct sched_item *item)
{
	struct ulrpc_request *r =
		container_of(item, struct ulrpc_request, item);
	struct shard *s = r->sc->shard;
	uint64_t now = shard_now(s);

	if (shard_is_mute(s))
		return;
	if (unlikely(r->next)) {
		/* The thread that queued the continuation may still be inside
		 * of ulrpc_request_continue(). */
		request_wait_users(r);
		call_next(r);
		return;
	}
	if (likely(now < r->deadline && !r->item.late &&
		   !request_canceled(r))) {
		request_start(r, now);
		return;
	}
	if (!request_move(r, REQUEST_QUEUED, REQUEST_ANSWERING)) {
		request_lost_end(r);
		return;
	}
	request_answer_nothing(r, status_late(r, now));
	r->reply = r->room;
	r->work.fn = request_on_replied;
	shard_give(s, &r->work);
}

/* Bytes of memory for a request, from now until its reply is gone. */
static uint64_t request_size(const struct wire_call *c)
{
	uint64_t size = sizeof(struct ulrpc_request) +
			reply_size(MIN(c->reply_max, ULRPC_BODY_MAX));

	if (unlikely(c->bulks.n))
		size += transfers_size(c);
	return c->length > REQUEST_ROOM ? size + c->length : size;
}

/* Queues @r for the workers. False: it would not be run in time. */
static bool request_queue(struct ulrpc_request *r, const struct wire_call *c)
{
	struct service_cpt *sc = r->sc;

	atomic_store_explicit(&r->state, REQUEST_QUEUED, memory_order_relaxed);
	r->item.lane = (uint8_t)request_lane_of(r);
	r->item.arrival = r->arrival;
	r->item.deadline = r->deadline;
	r->item.client = &r->share->queue;
	r->item.cost = &r->method->cost;
	r->item.method = r->method->number;
	r->item.bytes = r->length;
	r->item.released = 0;
	r->item.flow = NULL;
	r->item.goes_on = false;
	if (!exec_add(&sc->service->exec, &r->item, r->arrival))
		return false;
	/* A worker may have it already. Its reply comes to this CPT in a later
	 * turn. */
	request_activate(r, c, request_size(c));
	return true;
}

/* ---- arrival ---- */

static void run_inline(struct ulrpc_request *r, const struct wire_call *c)
{
	const struct ulrpc_method *m = r->method;
	struct service_cpt *sc = r->sc;

	atomic_store_explicit(&r->started, r->arrival, memory_order_relaxed);
	atomic_store_explicit(&r->state, REQUEST_RUNNING, memory_order_relaxed);
	sc->running = r;
	request_call_handler(r);
	if (unlikely(shard_guard_is_late(sc->shard)))
		lnet_guard_end(sc->shard->node, sc->shard->cpt,
			       "method %s of service %s, which is run inline,",
			       m->name, sc->service->name);
	/* If it has been replied to in the handler, it is gone, and not this
	 * one any more. */
	if (unlikely(sc->running == r)) {
		sc->running = NULL;
		request_activate(r, c, request_size(c));
	}
}

static int keep_body(struct ulrpc_request *r, const struct wire_call *c,
		     bool may_pin)
{
	void *to = r->room;

	if (unlikely(c->length > REQUEST_ROOM)) {
		if (may_pin && r->method->run == ULRPC_RUN_INLINE)
			r->pin = inbox_pin(&r->sc->inbox);
		r->body = c->body;
		if (r->pin)
			return 0;
		to = r->copy = slab_get(&r->sc->slab, c->length);
		if (!to)
			return -ENOMEM;
	}
	r->body = memcpy(to, c->body, c->length);
	return 0;
}

/* ns; TIME_NEVER. */
static uint64_t due_of(const struct wire_call *c, uint64_t now)
{
	return likely(c->remaining) ? rpc_at(now, rpc_ns(c->remaining))
				    : TIME_NEVER;
}

void origin_await(struct origin *o, const struct wire_call *c, uint64_t now)
{
	o->remaining = c->remaining;
	o->due = due_of(c, now);
	o->deadline = MAX(o->deadline, o->due);
}

/* The configuration of transfers for the attempt that has come with @o. */
static struct transfers_conf bulk_conf(const struct ulrpc_request *r,
				       const struct origin *o)
{
	return (struct transfers_conf){
		.shard = r->sc->shard,
		.self = o->local,
		.peer = { o->source, o->client.pid },
		.deadline = r->deadline,
		.retry_time =
			rpc_ns(export_lease(r->sc->shard->rpc, o->export)),
		.window = r->sc->service->conf.segments,
		.heard = o->export ? &o->export->heard : NULL,
		.busy = o->export ? &o->export->bulk : NULL,
	};
}

static int keep_bulk(struct ulrpc_request *r, const struct wire_call *c)
{
	struct transfers_conf conf = bulk_conf(r, r->origin);

	return transfers_new(&conf, c, &r->transfers);
}

/* There is no room for a call of @o: is there room once its client's replies
 * that nobody will ask for are gone? */
static out_of_line bool fits_now(const struct origin *o,
				 const struct wire_call *c)
{
	struct records *rs = &o->export->records;

	records_trim(rs, shard_now(o->sc->shard));
	return !service_is_full(o->sc, o->share, request_size(c));
}

/* Is there room for one more call of @o? Within a message that is found out
 * again only when what is held has changed, or a call takes more. */
static bool request_fits(struct origin *o, const struct wire_call *c)
{
	const struct service_cpt *sc = o->sc;

	if (likely(o->room_as_of == sc->changes &&
		   c->length <= o->room_length &&
		   c->reply_max <= o->room_reply && !c->bulks.n))
		return true;
	if (service_is_full(sc, o->share, request_size(c)) && !fits_now(o, c))
		return false;
	o->room_as_of = sc->changes;
	o->room_length = c->length;
	o->room_reply = c->reply_max;
	return true;
}

/* Keeps the trace, unless it is none, or of a later version, which nobody here
 * could read. */
static out_of_line void keep_trace(struct ulrpc_request *r,
				   const struct wire_call *c)
{
	r->traced = trace_is_good(c->trace.p,
				  (uint32_t)(c->trace.end - c->trace.p));
	if (r->traced)
		memcpy(r->trace, c->trace.p, TRACE_LENGTH);
}

/* Fills in all that is known of the request, but for its body. */
static void request_init(struct ulrpc_request *r, struct origin *o,
			 struct ulrpc_method *m, const struct wire_call *c,
			 struct record *rec, uint64_t now)
{
	size_t from = offsetof(struct ulrpc_request, state);

	memset((char *)r + from, 0,
	       offsetof(struct ulrpc_request, item) - from);
	r->item.queued = r->item.late = false;
	r->item.again = 0;
	r->sc = o->sc;
	r->origin = r->answer = o;
	r->record = rec;
	r->share = o->share;
	r->method = m;
	r->xid = c->xid;
	r->arrival = now;
	/* The calls of a message are alike, mostly. */
	if (unlikely(c->remaining != o->remaining))
		origin_await(o, c, now);
	r->deadline = o->due;
	r->attempt = r->latest = c->attempt;
	r->reply_max = MIN(c->reply_max, ULRPC_BODY_MAX);
	r->length = c->length;
	r->semantics = (uint8_t)c->semantics;
	r->priority = m->priority;
	if (unlikely(c->trace.p != c->trace.end))
		keep_trace(r, c);
	if (unlikely(c->priority) && c->priority <= ULRPC_PRIORITY_BACKGROUND)
		r->priority = (enum ulrpc_priority)c->priority;
}

/* Gets what the request needs besides its own memory; then queues it, unless it
 * is inline. */
static int request_begin(struct ulrpc_request *r, const struct wire_call *c,
			 bool may_pin, uint64_t *again_p)
{
	int rc = keep_body(r, c, may_pin);

	if (likely(!rc) && unlikely(c->bulks.n))
		rc = keep_bulk(r, c);
	if (likely(!rc) && r->method->semantics == ULRPC_EXACTLY_ONCE)
		rc = durable_begin(r, c, r->origin->export->id_of.id);
	if (rc || r->method->run == ULRPC_RUN_INLINE || request_queue(r, c))
		return rc;
	*again_p = r->item.again;
	return -EBUSY;
}

/* The latest attempt lends the same memory as the first, under new match
 * values; a query only names another rail: uses these from now on. */
static bool bulk_again(struct ulrpc_request *r, const struct origin *o,
		       const struct wire_call *c)
{
	struct transfers_conf conf;

	if (likely(!r->transfers))
		return true;
	conf = bulk_conf(r, o);
	if (c->flags & WIRE_CALL_QUERY) {
		transfers_follow(r->transfers, &conf);
		return true;
	}
	return !transfers_refresh(r->transfers, &conf, c);
}

bool request_again(struct ulrpc_request *r, struct origin *o,
		   const struct wire_call *c, uint64_t now)
{
	if (r->sc != o->sc || !bulk_again(r, o, c))
		return false;
	r->answer->unanswered--;
	if (o != r->answer) {
		o->refs++;
		request_answer_put(r);
		r->answer = o;
	}
	r->latest = c->attempt;
	durable_again(r, c);
	/* A query says how long it waits, and not how long its caller does. */
	origin_await(o, c, now);
	o->deadline = MAX(o->deadline, r->deadline);
	if (likely(r->active)) {
		/* A query has less time than what it asks for. */
		if (!(c->flags & WIRE_CALL_QUERY))
			deadline_renew(r, c->timeout);
		extend_now(r);
	}
	return true;
}

uint32_t request_arrive(struct origin *o, const struct wire_call *c,
			struct record *rec, bool may_pin, uint64_t now,
			uint64_t *again_p)
{
	struct service_cpt *sc = o->sc;
	struct ulrpc_method *m = service_method(sc->service, c->method);
	struct ulrpc_request *r;
	int rc;

	if (unlikely(!m))
		return WIRE_NO_METHOD;
	if (unlikely(c->length > sc->service->conf.request_max))
		return WIRE_BAD_REQUEST;
	if (unlikely(!request_fits(o, c)))
		return WIRE_OVERLOADED;
	r = pool_get(&sc->requests);
	if (unlikely(!r))
		return WIRE_OVERLOADED;
	request_init(r, o, m, c, rec, now);
	rc = request_begin(r, c, may_pin, again_p);
	if (unlikely(rc)) {
		if (r->durable)
			durable_end(r);
		request_drop(r);
		pool_put(&sc->requests, r);
		return rc == -EPROTO ? WIRE_BAD_REQUEST : WIRE_OVERLOADED;
	}
	record_begin(rec, r);
	o->refs++;
	if (m->run == ULRPC_RUN_INLINE)
		run_inline(r, c);
	return WIRE_OK;
}
