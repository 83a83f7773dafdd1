/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/request.h"

#include <errno.h>
#include <string.h>
#include <stdio.h>

#include "rpc/bulk/transfer.h"
#include "rpc/flavour.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/server/serve/durable.h"
#include "rpc/server/session/export.h"
#include "rpc/server/session/known.h"
#include "rpc/server/session/record.h"
#include "rpc/server/serve/reply.h"
#include "rpc/wire/wire.h"
#include "rpc/stats/stat.h"

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

	if (unlikely(r->rare) && request_prepare(r))
		return;
	m->handler(m->arg, r, r->body, r->length);
	/* the request may be gone */
}

static void request_start(struct ulrpc_request *r, uint64_t now)
{
	atomic_store_explicit(&r->started, now, memory_order_relaxed);
	if (unlikely(!request_move(r, REQUEST_QUEUED, REQUEST_RUNNING)))
		request_lost_end(r);
	else
		request_call_handler(r);
}

/* Returns the status with which @r, which is too late, is refused. */
static uint32_t status_late(const struct ulrpc_request *r, uint64_t now)
{
	return now >= r->deadline ? WIRE_EXPIRED : WIRE_OVERLOADED;
}

/* ---- continuations ---- */

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
	/* the request may be gone */
}

/* Queues the continuation of @r. Returns false if there are no workers any
 * more. */
static bool queue_next(struct ulrpc_request *r)
{
	/* A request that was run inline has no lane yet. */
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
	if (request_is_forked(request))
		return -ESHUTDOWN;
	request->next = fn;
	request->next_arg = arg;
	/* request_wait_users() waits for this count. */
	atomic_fetch_add(&request->users, 1);
	if (atomic_load(&request->state) != REQUEST_LOST)
		queued = queue_next(request);
	atomic_fetch_sub(&request->users, 1);
	if (!queued)
		call_next(request);
	return 0;
}

/* ---- workers ---- */

/* Runs the request on a worker, or refuses it if it is too late or canceled. */
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
	r->replied = now;
	r->reply = r->room;
	r->work.fn = request_on_replied;
	shard_give(s, &r->work);
}

/* Returns how many bytes are charged for a request with a body of @length bytes
 * in its message, until its reply is sent. */
static in_line uint64_t size_of(const struct wire_call *c, uint32_t length)
{
	uint64_t size = sizeof(struct ulrpc_request) +
			reply_size(MIN(c->reply_max, ULRPC_BODY_MAX));

	if (unlikely(c->bulks.n))
		size += transfers_size(c) + transfers_body_length(c);
	return length > REQUEST_ROOM ? size + length : size;
}

uint64_t request_size(const struct wire_call *c)
{
	return size_of(c, c->length);
}

static in_line bool queue_now(struct ulrpc_request *r)
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
	return exec_add(&sc->service->exec, &r->item, r->arrival);
}

bool request_queue(struct ulrpc_request *r)
{
	return queue_now(r);
}

/* ---- arrival ---- */

/* Does what request_run_inline() does. @c: NULL: @r is active. */
static in_line void run_inline(struct ulrpc_request *r,
			       const struct wire_call *c)
{
	const struct ulrpc_method *m = r->method;
	struct service_cpt *sc = r->sc;
	/* with metadata, which the call takes off */
	uint32_t length = r->length;

	atomic_store_explicit(&r->started,
			      MAX(r->arrival, sc->shard->busy_until),
			      memory_order_relaxed);
	atomic_store_explicit(&r->state, REQUEST_RUNNING, memory_order_relaxed);
	sc->running = r;
	sc->running_since = shard_stamp(sc->shard);
	request_call_handler(r);
	if (unlikely(shard_guard_is_late(sc->shard)))
		lnet_guard_end(sc->shard->node, sc->shard->cpt,
			       "method %s of service %s, which is run inline,",
			       m->name, sc->service->name);
	/* The request is still there if its handler has not replied; otherwise
	 * @r may have been freed. */
	if (unlikely(sc->running == r)) {
		sc->running = NULL;
		if (likely(c))
			request_activate(r, c, size_of(c, length));
	}
}

void request_run_inline(struct ulrpc_request *r)
{
	run_inline(r, NULL);
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

/* Does what keep_body() does for a request whose metadata are a set that is
 * known: puts these in front of the body. As they count as if they had come,
 * looks again at whether @r is too long, and whether there is room for it.
 * Returns also -ESRCH: @r refers to a set that is not known; -EMSGSIZE. */
static out_of_line int keep_known(struct ulrpc_request *r,
				  const struct wire_call *c)
{
	const uint8_t *rest = c->body + r->annex_length;
	size_t length = view_length(r->annex);
	uint8_t *to = r->room, *end;

	if (!r->annex.p)
		return -ESRCH;
	r->length = (uint32_t)length + c->length - r->annex_length;
	if (r->length > r->sc->service->conf.request_max)
		return -EMSGSIZE;
	if (service_is_full(r->sc, r->share, size_of(c, r->length)))
		return -ENOMEM;
	if (r->length > REQUEST_ROOM)
		to = r->copy = slab_get(&r->sc->slab, r->length);
	if (!to)
		return -ENOMEM;
	end = mempcpy(to, r->annex.p, length);
	memcpy(end, rest, c->length - r->annex_length);
	r->body = to;
	r->annex = (struct wire_view){ to, end };
	r->annex_length = 0;
	return 0;
}

/* Returns when (ns) the caller of @c stops waiting; TIME_NEVER: never. */
static uint64_t due_of(const struct wire_call *c, uint64_t now)
{
	return likely(c->remaining) ? rpc_at(now, rpc_ns(c->remaining))
				    : TIME_NEVER;
}

void request_batch_add_deadline(struct request_batch *b,
				const struct wire_call *c, uint64_t now)
{
	b->remaining = c->remaining;
	b->due = due_of(c, now);
	b->deadline = MAX(b->deadline, b->due);
}

/* What transfers_conf.other calls. The NID from which the client has connected
 * has precedence: from others somebody else may have delivered what he has
 * withheld. */
static bool other_rail(const void *caller, struct ulnet_nid *nid)
{
	const struct export *e = caller;
	const struct ulnet_nid *home = export_source(e);

	if (lnet_nid_eq(home, nid) || !rails_know(e, home))
		return rails_other(e, nid);
	*nid = *home;
	return true;
}

/* Returns the configuration of transfers for the attempt of @r that has come
 * with @b. */
static struct transfers_conf bulk_conf(const struct ulrpc_request *r,
				       const struct request_batch *b)
{
	const struct sealed *sd = b->export ? export_seal(b->export) : NULL;

	return (struct transfers_conf){
		.shard = r->sc->shard,
		.self = b->local,
		.peer = { b->source, b->client.pid },
		.deadline = r->deadline,
		.retry_time =
			rpc_ns(export_lease(r->sc->shard->rpc, b->export)),
		.window = service_limit(r->sc->service, segments),
		.heard = b->export ? &b->export->heard : NULL,
		.busy = b->export ? &b->export->bulk : NULL,
		.pace = b->export ? &b->export->bulk_pace : NULL,
		.other = b->export ? other_rail : NULL,
		.caller = b->export,
		.protection = flavour_protection(batch_flavour(b)),
		.seals = sd ? sd->bulk_out : NULL,
		.opens = sd ? sd->bulk_in : NULL,
	};
}

/* Returns 0; LENT_BODY: the body is to be got first; or -errno. */
static int keep_bulk(struct ulrpc_request *r, const struct wire_call *c)
{
	struct transfers_conf conf = bulk_conf(r, r->batch);
	int rc = transfers_new(&conf, c, &r->transfers);

	return rc ? rc : lent_keep(r, c);
}

/* Frees kept replies that the client of @b will not ask for any more. Returns
 * whether there is room for @c after that. */
static out_of_line bool fits_now(const struct request_batch *b,
				 const struct wire_call *c)
{
	struct records *rs = &b->export->records;

	records_trim(rs, shard_now(b->sc->shard));
	return !service_is_full(b->sc, b->share, size_of(c, c->length));
}

/* Is there room for @c, a call of @b? Usage is not looked at again if an
 * earlier call of the batch had room, @c takes no more than that call, and
 * usage has not changed since. */
static bool request_fits(struct request_batch *b, const struct wire_call *c)
{
	const struct service_cpt *sc = b->sc;

	if (likely(b->room_as_of == sc->changes &&
		   c->length <= b->room_length &&
		   c->reply_max <= b->room_reply && !c->bulks.n))
		return true;
	/* What is too long is refused for that. */
	if (service_is_full(sc, b->share, size_of(c, c->length)) &&
	    !fits_now(b, c))
		return c->bulks.n && lent_is_too_long(sc, c);
	b->room_as_of = sc->changes;
	b->room_length = c->length;
	b->room_reply = c->reply_max;
	return true;
}

/* Keeps the trace of @c, unless it cannot be read, or is of a later version. */
static void keep_trace(struct ulrpc_request *r, const struct wire_call *c)
{
	r->traced = trace_is_good(c->trace.p,
				  (uint32_t)(c->trace.end - c->trace.p));
	if (!r->traced)
		return;
	memcpy(r->trace, c->trace.p, TRACE_LENGTH);
	if (spans_begin(r->sc->shard, r->trace, r->span))
		r->rare |= REQUEST_SPAN;
}

/* If @c, whose body is not taken yet, defines a set of metadata, remembers it;
 * if it refers to one, looks it up for keep_known(). */
static void request_named(struct ulrpc_request *r, const struct wire_call *c)
{
	struct wire_view body = { c->body, c->body + c->length }, whole = body;
	struct exports *x = r->sc->shard->exports;
	struct export *e = r->batch->export;
	struct annex_named named;
	struct wire_view annex;

	/* What is not well-formed is answered in the turn of the request. */
	if (!annex_named_read(body, &named) || !named.number)
		return;
	if (!named.refers) {
		if (annex_split(&whole, &annex))
			known_add(x, e, named.number, named.pairs);
		return;
	}
	r->rare |= REQUEST_KNOWN;
	r->annex_length = (uint32_t)(named.pairs.end - c->body);
	if (!known_find(e, named.number, &r->annex))
		r->annex = (struct wire_view){ NULL, NULL };
	stat_count(r->sc->shard, r->annex.p ? RPC_STAT_metadata_known
					    : RPC_STAT_metadata_unknown);
}

/* Adds to @r what few calls have. */
static out_of_line void request_init_rare(struct ulrpc_request *r,
					  const struct wire_call *c)
{
	r->reply_limit = c->reply_limit;
	if (c->trace.p)
		keep_trace(r, c);
	if (c->priority && c->priority <= ULRPC_PRIORITY_BACKGROUND)
		r->priority = (enum ulrpc_priority)c->priority;
	if (c->flags & WIRE_CALL_ANNEX) {
		r->rare |= REQUEST_ANNEX;
		r->annex = (struct wire_view){ NULL, NULL };
		r->annex_length = 0;
		request_named(r, c);
	}
}

/* Fills in all of @r but its body and its bulk. */
static void request_init(struct ulrpc_request *r, struct request_batch *b,
			 struct ulrpc_method *m, const struct wire_call *c,
			 struct record *rec, uint64_t now)
{
	size_t from = offsetof(struct ulrpc_request, state);

	memset((char *)r + from, 0,
	       offsetof(struct ulrpc_request, item) - from);
	r->item.queued = r->item.late = false;
	r->item.again = 0;
	r->sc = b->sc;
	r->batch = r->reply_to = b;
	r->record = rec;
	r->share = b->share;
	r->method = m;
	r->xid = c->xid;
	r->arrival = now;
	/* Most calls of a message have the same deadline. */
	if (unlikely(c->remaining != b->remaining))
		request_batch_add_deadline(b, c, now);
	r->deadline = b->due;
	r->attempt = r->latest = c->attempt;
	r->reply_max = MIN(c->reply_max, ULRPC_BODY_MAX);
	r->length = c->length;
	r->semantics = (uint8_t)c->semantics;
	r->priority = m->priority;
	if (unlikely((uintptr_t)c->trace.p | c->flags | c->priority |
		     c->reply_limit))
		request_init_rare(r, c);
}

/* Prepares the body, the bulk and the store's key of @r. Then queues @r, unless
 * its method is run inline, or its body is to be got first. Returns 0 or
 * -errno.
 * -EBUSY: a worker would take it too late; *@again_p is then set to ns after
 * which it may be in time. */
static int request_begin(struct ulrpc_request *r, const struct wire_call *c,
			 bool may_pin, uint64_t *again_p)
{
	int rc = unlikely(r->rare & REQUEST_KNOWN) ? keep_known(r, c)
						   : keep_body(r, c, may_pin);
	uint64_t size;

	if (likely(!rc) && unlikely(c->bulks.n))
		rc = keep_bulk(r, c);
	if (likely(rc >= 0) && r->method->semantics == ULRPC_EXACTLY_ONCE) {
		int durable = durable_begin(r, c, &r->batch->export->id_of);

		rc = durable ? durable : rc;
	}
	if (rc || r->method->run == ULRPC_RUN_INLINE)
		return rc;
	/* Of what has metadata, a worker changes the length. */
	size = size_of(c, r->length);
	if (unlikely(!queue_now(r))) {
		*again_p = r->item.again;
		return -EBUSY;
	}
	/* A worker may have @r already. But its reply comes to this CPT in a
	 * later turn. */
	request_activate(r, c, size);
	return 0;
}

/* Adapts the bulk of @r to @c, which has come with @b. If @c is another
 * attempt, bulk is moved under the match values of @c from now on. If @c is a
 * query, bulk is moved over the rail that the query came by. Returns false if
 * @c lends other memory than the attempts before. */
static bool bulk_again(struct ulrpc_request *r, const struct request_batch *b,
		       const struct wire_call *c)
{
	struct transfers_conf conf;

	if (likely(!r->transfers))
		return true;
	conf = bulk_conf(r, b);
	if (c->flags & WIRE_CALL_QUERY) {
		transfers_follow(r->transfers, &conf);
		return true;
	}
	return !transfers_refresh(r->transfers, &conf, c);
}

bool request_again(struct ulrpc_request *r, struct request_batch *b,
		   const struct wire_call *c, uint64_t now)
{
	if (r->sc != b->sc || !bulk_again(r, b, c))
		return false;
	r->reply_to->unanswered--;
	if (b != r->reply_to) {
		b->refs++;
		request_reply_to_put(r);
		r->reply_to = b;
	}
	r->latest = c->attempt;
	durable_again(r, c);
	/* In a query c->remaining is how long the query's answer is waited for,
	 * not the call's. */
	request_batch_add_deadline(b, c, now);
	b->deadline = MAX(b->deadline, r->deadline);
	if (likely(r->active)) {
		/* A query's time-out is not an attempt's: it is shorter. */
		if (!(c->flags & WIRE_CALL_QUERY))
			deadline_renew(r, c->timeout);
		extend_now(r);
	}
	return true;
}

/* Called when request_begin() has returned @rc, not 0, for @r, which has come
 * as @c. Returns what request_arrive() returns. */
static out_of_line uint32_t request_unready(struct ulrpc_request *r,
					    const struct wire_call *c,
					    struct record *rec, int rc)
{
	struct service_cpt *sc = r->sc;

	if (rc == LENT_BODY)
		rc = lent_begin(r, c);
	if (!rc) {
		record_begin(rec, r);
		r->batch->refs++;
		return WIRE_OK;
	}
	if (r->durable)
		durable_end(r);
	request_drop(r);
	pool_put(&sc->requests, r);
	return rc == -EPROTO || rc == -EMSGSIZE ? WIRE_BAD_REQUEST
	       : rc == -ESRCH			? WIRE_UNKNOWN_SET
						: WIRE_OVERLOADED;
}

uint32_t request_arrive(struct request_batch *b, const struct wire_call *c,
			struct record *rec, bool may_pin, uint64_t now,
			uint64_t *again_p)
{
	struct service_cpt *sc = b->sc;
	struct ulrpc_method *m = service_method(sc->service, c->method);
	struct ulrpc_request *r;
	int rc;

	if (unlikely(!m))
		return WIRE_NO_METHOD;
	if (unlikely(c->length > sc->service->conf.request_max))
		return WIRE_BAD_REQUEST;
	if (unlikely(!request_fits(b, c)))
		return WIRE_OVERLOADED;
	r = pool_get(&sc->requests);
	if (unlikely(!r))
		return WIRE_OVERLOADED;
	request_init(r, b, m, c, rec, now);
	rc = request_begin(r, c, may_pin, again_p);
	if (unlikely(rc))
		return request_unready(r, c, rec, rc);
	record_begin(rec, r);
	b->refs++;
	if (m->run == ULRPC_RUN_INLINE)
		run_inline(r, c);
	return WIRE_OK;
}

/* ---- bodies that are lent ---- */

/*
 * A body that is longer than a message is lent by its caller, as bulk, and got
 * before the request is served as any other. Until then the request is ARRIVED,
 * and active: its client is told to wait on, and the bytes of the body are
 * charged to the client's share, whether they have come or not.
 */

bool lent_is_too_long(const struct service_cpt *sc, const struct wire_call *c)
{
	return transfers_body_length(c) >
	       service_limit(sc->service, request_limit);
}

uint32_t lent_excess(const struct service_cpt *sc, const struct wire_call *c,
		     char *text, size_t size)
{
	const struct ulrpc_service *svc = sc->service;
	uint64_t lent = transfers_body_length(c);
	uint32_t most = lent ? service_limit(svc, request_limit)
			     : svc->conf.request_max;
	uint64_t length = MAX(lent, (uint64_t)c->length);

	if (length <= most)
		return 0;
	snprintf(text, size,
		 "a request of %ju bytes is too long: the service takes up to "
		 "%u",
		 (uintmax_t)length, most);
	return text_fit(text, MIN(size, c->reply_max));
}

int lent_keep(struct ulrpc_request *r, const struct wire_call *c)
{
	uint64_t length = transfers_body_length(c);

	if (!length)
		return 0;
	if (c->length || lent_is_too_long(r->sc, c))
		return -EPROTO;
	r->copy = slab_get(&r->sc->slab, length);
	if (!r->copy)
		return -ENOMEM;
	r->body = r->copy;
	r->length = (uint32_t)length;
	r->rare |= REQUEST_LENT;
	return LENT_BODY;
}

int lent_begin(struct ulrpc_request *r, const struct wire_call *c)
{
	int rc = transfers_get_body(r->transfers, r->copy);

	if (rc)
		return rc;
	stat_count(r->sc->shard, RPC_STAT_requests_lent);
	r->item.wait = 0;
	service_count_got(r->sc, 1);
	request_activate(r, c, request_size(c));
	request_wait_bulk(r);
	return 0;
}

/* Returns the status with which @r is refused; WIRE_OK: it can be served. */
static uint32_t lent_status(const struct ulrpc_request *r)
{
	int status = transfer_status(r->transfers);

	if (r->losing || status == -ESHUTDOWN || shard_is_mute(r->sc->shard))
		return WIRE_SHUTTING_DOWN;
	/* requests_forget() has ended the transfer. */
	if (status == -ESTALE)
		return WIRE_STALE_EPOCH;
	if (request_canceled(r) || status == -ETIMEDOUT)
		return WIRE_EXPIRED;
	/* The caller lends less than it has said. */
	if (status == -EPROTO)
		return WIRE_BAD_REQUEST;
	return status ? WIRE_OVERLOADED : WIRE_OK;
}

void lent_on_end(struct ulrpc_request *r)
{
	uint32_t status = lent_status(r);

	service_count_got(r->sc, -1);
	transfers_have_body(r->transfers);
	if (status) {
		stat_count(r->sc->shard, RPC_STAT_requests_not_lent);
		atomic_store_explicit(&r->state, REQUEST_QUEUED,
				      memory_order_relaxed);
		r->item.again = 0;
		request_refuse_queued(r, status);
		return;
	}
	r->arrival = shard_now(r->sc->shard);
	if (r->method->run == ULRPC_RUN_INLINE) {
		deadline_go_on(r);
		request_run_inline(r);
	} else if (request_queue(r)) {
		deadline_go_on(r);
	} else {
		request_refuse_queued(r, WIRE_OVERLOADED);
	}
}
