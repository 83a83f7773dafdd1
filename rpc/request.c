/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/request.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/mutation.h"
#include "rpc/export.h"
#include "rpc/reply.h"
#include "rpc/transfer.h"
#include "rpc/wire.h"

#define WATCH_MAX_NS NSEC_PER_SEC
#define WATCH_MIN_NS (10 * NSEC_PER_MSEC)

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

static unsigned int state_of(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->state, memory_order_acquire);
}

/* False: somebody else has moved it from @from. */
static bool request_move(struct ulrpc_request *r, enum request_state from,
			 enum request_state to)
{
	uint8_t was = from;

	BUG_ON(!(request_states[from].next & FSM_TO(to)));
	return atomic_compare_exchange_strong(&r->state, &was, to);
}

/* ---- the end ---- */

static void body_drop(struct ulrpc_request *r)
{
	if (r->pin)
		inbox_unpin(r->pin);
	free(r->copy);
	r->pin = NULL;
	r->copy = NULL;
}

static void reply_drop(struct ulrpc_request *r)
{
	if (r->reply != r->room)
		free(r->reply);
	r->reply = NULL;
}

static void watch_arm(struct service_cpt *sc)
{
	uint64_t stuck = rpc_ns(sc->service->conf.stuck);
	uint64_t every = MIN(stuck / 4, WATCH_MAX_NS);

	if (!lnet_timer_armed(&sc->watch))
		shard_arm(sc->shard, &sc->watch,
			  shard_now(sc->shard) + MAX(every, WATCH_MIN_NS));
}

/* The request is not answered at once: it counts as under way from now on. */
static void activate(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;

	r->active = true;
	list_add_tail(&sc->active, &r->link);
	service_held(sc, r->share, 1, (int64_t)r->held);
	shard_work_begin(sc->shard);
	watch_arm(sc);
}

/* @r is not under way any more. What is waiting for that is told last. */
static void deactivate(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;
	struct shard *s = sc->shard;

	list_del(&r->link);
	r->active = false;
	if (!MUTATE(rpc_lose_count) || r->xid % 8)
		service_held(sc, r->share, -1, -(int64_t)r->held);
	if (r->placed)
		exec_done(&sc->service->exec, &r->item, shard_now(s));
	r->placed = false;
	if (list_empty(&sc->active))
		shard_cancel(s, &sc->watch);
	service_cpt_settled(sc);
	shard_work_end(s);
}

/* Gives back what a request holds besides its own memory. */
static void request_drop(struct ulrpc_request *r)
{
	if (r->transfers)
		transfers_free(r->transfers);
	body_drop(r);
}

static void request_end(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;
	struct origin *o = r->origin;

	if (sc->running == r)
		sc->running = NULL;
	if (unlikely(r->transfers || r->pin || r->copy))
		request_drop(r);
	if (r->active)
		deactivate(r);
	pool_put(&sc->requests, r);
	origin_unref(o);
}

static out_of_line void moved(struct ulrpc_request *r, struct wire_reply *reply,
			      struct wire_moved *room)
{
	reply->nbulks = transfer_moved(r->transfers, room, ULRPC_BULKS_MAX);
	reply->bulk = room;
	if (r->status == WIRE_FAILED && transfer_status(r->transfers))
		reply->status = WIRE_BULK_FAILED;
}

/* Threads look at the clock at different times. */
static uint64_t ns_between(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static out_of_line void record_with_bulk(const struct ulrpc_request *r,
					 struct request_report *report)
{
	struct bulk_report bulk = { .time = transfer_time(r->transfers) };

	transfer_bytes(r->transfers, &bulk.received, &bulk.sent);
	report->bulk = &bulk;
	stat_request_end(r->sc->shard->stats, report);
}

/* It ends in this way, now. @started: 0: it was not run, or has not replied. */
static void request_record(const struct ulrpc_request *r, unsigned int end,
			   uint64_t started, uint64_t now)
{
	const struct origin *o = r->origin;
	struct request_report report = {
		.service = r->sc->stats,
		.peer = o->export ? &o->export->stats : NULL,
		.method = r->method->number,
		.end = end,
		.total = ns_between(r->arrival, now),
		.received = r->length,
	};

	if (likely(started)) {
		report.run = true;
		report.queue = ns_between(r->arrival, started);
		report.service_time = ns_between(started, r->replied);
		report.sent = end == WIRE_TOO_LONG ? 0 : r->reply_length;
	}
	if (unlikely(r->transfers))
		record_with_bulk(r, &report);
	else
		stat_request_end(r->sc->shard->stats, &report);
}

/* What the next ones of its method will take. Those that the handler refused say
 * nothing of that. */
static void learn_cost(const struct ulrpc_request *r, uint64_t started)
{
	uint64_t bulk = r->transfers ? transfer_time(r->transfers) : 0;

	if (r->status != WIRE_OVERLOADED && r->status != WIRE_BAD_REQUEST)
		estimate_add(&r->method->cost,
			     ns_between(started + bulk, r->replied));
}

static void request_finish(struct ulrpc_request *r, const void *body,
			   uint64_t now)
{
	uint64_t started =
		atomic_load_explicit(&r->started, memory_order_relaxed);
	struct wire_moved room[ULRPC_BULKS_MAX];
	struct wire_reply reply;

	wire_reply_clear(&reply);
	reply.xid = r->xid;
	reply.attempt = r->attempt;
	reply.status = r->status;
	reply.error = r->error;
	if (likely(started)) {
		reply.queue = ns_between(r->arrival, started) / NSEC_PER_USEC;
		reply.service = ns_between(started, r->replied) / NSEC_PER_USEC;
		if (r->method->run == ULRPC_RUN_WORKER)
			learn_cost(r, started);
	}
	if (unlikely(r->status == WIRE_TOO_LONG))
		reply.needed = r->reply_length;
	else
		reply.length = r->reply_length;
	if (unlikely(r->status == WIRE_OVERLOADED))
		reply.retry_after =
			service_retry_after(r->sc->service, r->item.again);
	if (unlikely(r->transfers))
		moved(r, &reply, room);
	request_record(r, reply.status, started, now);
	reply_add(r->origin, &reply, body, true);
	request_end(r);
}

static void finish_kept(struct ulrpc_request *r)
{
	void *reply = r->reply;
	bool own = reply != r->room;

	request_finish(r, reply, shard_now(r->sc->shard));
	if (own)
		free(reply);
}

/* ---- requests that are lost ---- */

/* Only the handler has had it. Any thread; the memory goes with the service. */
static void lost_end(struct ulrpc_request *r)
{
	struct ulrpc_service *svc = r->sc->service;

	if (r->transfers)
		transfers_free(r->transfers);
	if (r->pin)
		inbox_kept_put(r->pin);
	free(r->copy);
	service_unref(svc);
}

/* Handlers' threads may be about to use what ends with RPC on the node: those
 * that have come after @r was lost do not, and those before are soon through. */
static void wait_users(const struct ulrpc_request *r)
{
	while (atomic_load(&r->users) ||
	       (r->transfers && transfers_used(r->transfers)))
		sched_yield();
}

/* False: it is not in state @from any more, but replied, or being run. */
static bool request_lose(struct ulrpc_request *r, enum request_state from)
{
	struct service_cpt *sc = r->sc;
	struct inbox_buffer *pin = r->pin;

	/* A lost request belongs to whoever replies, and may be answered at
	 * once; request_lost() still looks at its bulk after that. */
	atomic_fetch_add(&sc->service->refs, 1);
	if (pin)
		inbox_pin_keep(pin);
	if (r->transfers)
		transfers_get(r->transfers);
	if (!request_move(r, from, REQUEST_LOST)) {
		if (r->transfers)
			transfers_free(r->transfers);
		if (pin) {
			r->pin = NULL;
			inbox_kept_put(pin);
		}
		service_unref(sc->service);
		return false;
	}
	wait_users(r);
	/* A continuation that is queued is called all the same. */
	if (sc->service->has_exec)
		exec_hand_over(&sc->service->exec, &r->item, &sc->service->lost,
			       shard_now(sc->shard));
	r->lost_link = sc->lost;
	sc->lost = r;
	return true;
}

static void request_lost(struct ulrpc_request *r, unsigned int end)
{
	struct origin *o = r->origin;

	request_record(r, end, 0, shard_now(r->sc->shard));
	/* Bulk that was asked for, and has not begun, does not begin. */
	transfer_abort(r->transfers, -ESHUTDOWN);
	if (r->transfers)
		transfers_free(r->transfers);
	if (o->export)
		export_unref(o->export);
	o->export = NULL;
	o->share = &r->sc->unknown;
	if (r->active)
		deactivate(r);
}

/* ---- the reply ---- */

/* Also in the done of the last transfer: it is told after that. */
static bool bulk_is_awaited(const struct ulrpc_request *r)
{
	return r->transfers && (r->waiting || transfer_busy(r->transfers));
}

static void on_bulk_done(void *arg);

static void wait_bulk(struct ulrpc_request *r)
{
	if (r->waiting)
		return;
	r->waiting = true;
	transfer_on_done(r->transfers, on_bulk_done, r);
}

/* The bulk of a request has ended after its handler replied, on the assumption
 * that all of it would be moved. */
static void finish_late(struct ulrpc_request *r)
{
	if (unlikely(bulk_is_awaited(r))) {
		wait_bulk(r);
		return;
	}
	if (r->status == WIRE_OK && transfer_status(r->transfers)) {
		r->status = WIRE_BULK_FAILED;
		r->reply_length = 0;
	}
	finish_kept(r);
}

/* Bulk has ended, of a request that is replied, or to be lost. A reply that is
 * still on its way ends it when it comes. */
static void on_bulk_done(void *arg)
{
	struct ulrpc_request *r = arg;

	r->waiting = false;
	if (state_of(r) == REQUEST_REPLIED)
		finish_late(r);
	else if (r->losing && request_lose(r, REQUEST_RUNNING))
		request_lost(r, STAT_UNANSWERED);
}

static void finish_or_wait(struct ulrpc_request *r)
{
	if (unlikely(bulk_is_awaited(r)))
		wait_bulk(r);
	else
		finish_kept(r);
}

/* The reply of a request has arrived on the CPT of the request. */
static void reply_come(struct ulrpc_request *r)
{
	BUG_ON(!request_move(r, REQUEST_ANSWERING, REQUEST_REPLIED));
	finish_or_wait(r);
}

static void on_replied(struct ulnet_work *w)
{
	struct ulrpc_request *r = container_of(w, struct ulrpc_request, work);
	struct shard *s = r->sc->shard;

	if (!s->crashed)
		reply_come(r);
	shard_taken(s);
}

static void keep_reply(struct ulrpc_request *r, const void *body)
{
	size_t length = r->status == WIRE_TOO_LONG ? 0 : r->reply_length;

	r->reply = length <= REQUEST_ROOM ? r->room : malloc(length);
	if (r->reply && length) {
		memmove(r->reply, body, length);
	} else if (!r->reply) {
		r->reply = r->room;
		r->reply_length = 0;
		r->status = WIRE_FAILED;
		r->error = ENOMEM;
	}
}

static void request_answer(struct ulrpc_request *r, uint32_t status,
			   uint32_t error, const void *body, size_t length)
{
	struct shard *s;
	bool owned;

	/* It is ours alone, until its CPT has got what is written here. */
	if (unlikely(!request_move(r, REQUEST_RUNNING, REQUEST_ANSWERING))) {
		/* Else it is a second reply. */
		BUG_ON(state_of(r) != REQUEST_LOST);
		lost_end(r);
		return;
	}
	s = r->sc->shard;
	r->status = length > r->reply_max ? WIRE_TOO_LONG : status;
	if (MUTATE(rpc_refused_runs) && service_is_full(r->sc, r->share, 0))
		r->status = WIRE_OVERLOADED;
	r->error = error;
	r->reply_length = (uint32_t)MIN(length, UINT32_MAX);
	r->replied = shard_now(s);
	owned = shard_owned(s);
	if (likely(owned) && likely(!bulk_is_awaited(r))) {
		request_finish(r, body, r->replied);
		return;
	}
	keep_reply(r, body);
	if (owned) {
		reply_come(r);
		return;
	}
	r->work.fn = on_replied;
	shard_give(s, &r->work);
}

void ulrpc_reply(struct ulrpc_request *request, const void *body, size_t length)
{
	BUG_ON(length && !body);
	request_answer(request, WIRE_OK, 0, body, length);
}

void ulrpc_fail(struct ulrpc_request *request, int status)
{
	BUG_ON(status >= 0);
	request_answer(request, WIRE_FAILED, (uint32_t)-status, NULL, 0);
}

void ulrpc_refuse(struct ulrpc_request *request)
{
	request_answer(request, WIRE_BAD_REQUEST, 0, NULL, 0);
}

void ulrpc_overloaded(struct ulrpc_request *request)
{
	request_answer(request, WIRE_OVERLOADED, 0, NULL, 0);
}

/* ---- running ---- */

static void answer_nothing(struct ulrpc_request *r, uint32_t status)
{
	r->status = status;
	r->error = 0;
	r->reply_length = 0;
}

/* Refuses a queued request, whose deadline has passed or whose service stops:
 * the request has not run, and will not. On its CPT; nobody else has the
 * request. */
static void refuse_queued(struct ulrpc_request *r, uint32_t status)
{
	BUG_ON(!request_move(r, REQUEST_QUEUED, REQUEST_ANSWERING));
	answer_nothing(r, status);
	request_finish(r, NULL, shard_now(r->sc->shard));
}

static void call_handler(struct ulrpc_request *r)
{
	const struct ulrpc_method *m = r->method;

	m->handler(m->arg, r, r->body, r->length);
	/* r may be gone */
}

static void request_start(struct ulrpc_request *r, uint64_t now)
{
	atomic_store_explicit(&r->started, now, memory_order_relaxed);
	if (unlikely(!request_move(r, REQUEST_QUEUED, REQUEST_RUNNING)))
		lost_end(r);
	else
		call_handler(r);
}

/* ---- what is left to do ---- */

static enum sched_lane lane_of(const struct ulrpc_request *r)
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

/* On virtual time, on its CPT: it has its place still. */
static void on_next(struct ulnet_work *w)
{
	struct ulrpc_request *r = container_of(w, struct ulrpc_request, work);
	struct shard *s = r->sc->shard;

	if (!s->crashed)
		call_next(r);
	shard_taken(s);
}

/* False: there are no workers any more. What was run inline has no lane yet. */
static bool queue_next(struct ulrpc_request *r)
{
	struct shard *s = r->sc->shard;

	if (s->rpc->is_virtual) {
		r->work.fn = on_next;
		shard_give(s, &r->work);
		return true;
	}
	r->item.lane = (uint8_t)lane_of(r);
	r->item.client = &r->share->queue;
	r->item.cost = NULL;
	return exec_add_again(&r->sc->service->exec, &r->item, shard_now(s));
}

int ulrpc_request_continue(struct ulrpc_request *request, ulrpc_continue_fn fn,
			   void *arg)
{
	bool queued = false;

	if (!request->sc->service->has_exec)
		return -EOPNOTSUPP;
	request->next = fn;
	request->next_arg = arg;
	/* See wait_users(). */
	atomic_fetch_add(&request->users, 1);
	if (atomic_load(&request->state) != REQUEST_LOST)
		queued = queue_next(request);
	atomic_fetch_sub(&request->users, 1);
	if (!queued)
		call_next(request);
	return 0;
}

/* Why a request that is too late is not run. */
static uint32_t status_late(const struct ulrpc_request *r, uint64_t now)
{
	return now >= r->deadline ? WIRE_EXPIRED : WIRE_OVERLOADED;
}

/* On a worker's thread. What is too late is not run. */
static void run_threaded(struct ulrpc_request *r)
{
	struct shard *s = r->sc->shard;
	uint64_t now = shard_now(s);

	if (unlikely(r->next)) {
		/* The thread that queued the continuation may still be inside of
		 * ulrpc_request_continue(). */
		wait_users(r);
		call_next(r);
		return;
	}
	if (likely(now < r->deadline && !r->item.late)) {
		request_start(r, now);
		return;
	}
	if (!request_move(r, REQUEST_QUEUED, REQUEST_ANSWERING)) {
		lost_end(r);
		return;
	}
	answer_nothing(r, status_late(r, now));
	r->reply = r->room;
	r->work.fn = on_replied;
	shard_give(s, &r->work);
}

/* On virtual time, on its CPT. */
static void run_placed(struct ulnet_work *w)
{
	struct ulrpc_request *r = container_of(w, struct ulrpc_request, work);
	struct shard *s = r->sc->shard;
	uint64_t now = shard_now(s);

	if (s->crashed)
		;
	else if (state_of(r) == REQUEST_LOST)
		lost_end(r);
	else if (now >= r->deadline || r->item.late)
		refuse_queued(r, status_late(r, now));
	else
		request_start(r, now);
	shard_taken(s);
}

void request_run(struct sched_item *item)
{
	struct ulrpc_request *r =
		container_of(item, struct ulrpc_request, item);
	struct shard *s = r->sc->shard;

	if (!s->rpc->is_virtual) {
		run_threaded(r);
		return;
	}
	r->placed = true;
	r->work.fn = run_placed;
	shard_give(s, &r->work);
}

static void run_inline(struct ulrpc_request *r)
{
	const struct ulrpc_method *m = r->method;
	struct service_cpt *sc = r->sc;
	uint64_t begun;

	atomic_store_explicit(&r->started, r->arrival, memory_order_relaxed);
	atomic_store_explicit(&r->state, REQUEST_RUNNING, memory_order_relaxed);
	sc->running = r;
	begun = shard_guard_begin(sc->shard);
	call_handler(r);
	if (unlikely(begun))
		lnet_guard_end(sc->shard->node, sc->shard->cpt, begun,
			       "method %s of service %s, which is run inline,",
			       m->name, sc->service->name);
	/* If it has been replied to in the handler, it is gone, and not this
	 * one any more. */
	if (unlikely(sc->running == r)) {
		sc->running = NULL;
		activate(r);
	}
}

/* False: it would not be run in time. */
static bool queue(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;

	atomic_store_explicit(&r->state, REQUEST_QUEUED, memory_order_relaxed);
	r->item.lane = (uint8_t)lane_of(r);
	r->item.arrival = r->arrival;
	r->item.deadline = r->deadline;
	r->item.client = &r->share->queue;
	r->item.cost = &r->method->cost;
	r->item.method = r->method->number;
	r->item.bytes = r->length;
	if (!exec_add(&sc->service->exec, &r->item, r->arrival))
		return false;
	/* A worker may have it already. Its reply comes to this CPT in a later
	 * turn. */
	activate(r);
	return true;
}

/* ---- arrival ---- */

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
		to = r->copy = malloc(c->length);
		if (!to)
			return -ENOMEM;
	}
	r->body = memcpy(to, c->body, c->length);
	return 0;
}

uint64_t request_deadline(const struct wire_call *c, uint64_t now)
{
	uint64_t us = c->timeout ? c->timeout : c->remaining;

	if (c->remaining)
		us = MIN(us, c->remaining);
	return us ? rpc_at(now, rpc_ns(us)) : TIME_NEVER;
}

static int keep_bulk(struct ulrpc_request *r, const struct wire_call *c)
{
	struct origin *o = r->origin;
	struct transfers_conf conf = {
		.shard = r->sc->shard,
		.self = o->local,
		.peer = { o->source, o->client.pid },
		.deadline = r->deadline,
		.patience = rpc_ns(export_lease(r->sc->shard->rpc)),
		.window = r->sc->service->conf.segments,
	};

	return transfers_new(&conf, c, &r->transfers);
}

/* Bytes of memory for a request, from now until its reply is gone. */
static uint64_t request_size(const struct wire_call *c)
{
	uint64_t size = sizeof(struct ulrpc_request) +
			reply_size(MIN(c->reply_max, ULRPC_BODY_MAX));

	if (unlikely(c->nbulks))
		size += transfers_size(c);
	return c->length > REQUEST_ROOM ? size + c->length : size;
}

/* Is there room for one more of @o, which takes @size bytes? For the calls of a
 * message this is looked for again only when what is held has changed since, and
 * for those that take more. */
static bool request_fits(struct origin *o, uint64_t size)
{
	const struct service_cpt *sc = o->sc;

	if (likely(o->held_as_of == sc->changes && size <= o->room))
		return true;
	if (service_is_full(sc, o->share, size))
		return false;
	o->held_as_of = sc->changes;
	o->room = size;
	return true;
}

/* Fills in all that there is to know of it, but for its body. */
static void request_init(struct ulrpc_request *r, struct origin *o,
			 struct ulrpc_method *m, const struct wire_call *c,
			 uint64_t now)
{
	size_t from = offsetof(struct ulrpc_request, state);

	memset((char *)r + from, 0,
	       offsetof(struct ulrpc_request, item) - from);
	r->item.queued = r->item.late = false;
	r->item.again = 0;
	r->sc = o->sc;
	r->origin = o;
	r->share = o->share;
	r->method = m;
	r->xid = c->xid;
	r->arrival = now;
	r->deadline = request_deadline(c, now);
	r->attempt = c->attempt;
	r->reply_max = MIN(c->reply_max, ULRPC_BODY_MAX);
	r->length = c->length;
	r->priority = m->priority;
	if (unlikely(c->priority) && c->priority <= ULRPC_PRIORITY_BACKGROUND)
		r->priority = (enum ulrpc_priority)c->priority;
}

/* What it needs besides its own memory; then it waits for a worker, if it is to. */
static int request_begin(struct ulrpc_request *r, const struct wire_call *c,
			 bool may_pin, uint64_t *again_p)
{
	int rc = keep_body(r, c, may_pin);

	if (likely(!rc) && unlikely(c->nbulks))
		rc = keep_bulk(r, c);
	if (rc || r->method->run == ULRPC_RUN_INLINE || queue(r))
		return rc;
	*again_p = r->item.again;
	return -EBUSY;
}

uint32_t request_arrive(struct origin *o, const struct wire_call *c,
			bool may_pin, uint64_t now, uint64_t *again_p)
{
	struct service_cpt *sc = o->sc;
	struct ulrpc_method *m = service_method(sc->service, c->method);
	uint64_t size = request_size(c);
	struct ulrpc_request *r;
	int rc;

	if (unlikely(!m))
		return WIRE_NO_METHOD;
	if (unlikely(!c->xid || c->length > sc->service->conf.request_max))
		return WIRE_BAD_REQUEST;
	if (unlikely(!request_fits(o, size)))
		return WIRE_OVERLOADED;
	r = pool_get(&sc->requests);
	if (unlikely(!r))
		return WIRE_OVERLOADED;
	request_init(r, o, m, c, now);
	r->held = size;
	rc = request_begin(r, c, may_pin, again_p);
	if (unlikely(rc)) {
		request_drop(r);
		pool_put(&sc->requests, r);
		return rc == -EPROTO ? WIRE_BAD_REQUEST : WIRE_OVERLOADED;
	}
	o->refs++;
	o->deadline = MAX(o->deadline, r->deadline);
	if (m->run == ULRPC_RUN_INLINE)
		run_inline(r);
	return WIRE_OK;
}

/* ---- looking after what is under way ---- */

static void report_stuck(struct ulrpc_request *r, uint64_t since)
{
	char text[LNET_NIDSTR_SIZE];

	r->reported = true;
	stat_count(r->sc->shard, RPC_STAT_requests_stuck);
	lnet_log(LNET_LOG_WARN, "rpc",
		 "service %s, method %s: request %llu of %s: no reply after "
		 "%llu ms in its handler",
		 r->sc->service->name, r->method->name,
		 (unsigned long long)r->xid,
		 lnet_nid_format(&r->origin->source, text, sizeof(text)),
		 (unsigned long long)(since / NSEC_PER_MSEC));
}

void requests_watch(struct ulnet_timer *t)
{
	struct service_cpt *sc = container_of(t, struct service_cpt, watch);
	uint64_t stuck = rpc_ns(sc->service->conf.stuck);
	uint64_t now = shard_now(sc->shard);
	struct ulrpc_request *r, *next;

	watch_arm(sc);
	list_for_each_entry_safe (r, next, &sc->active, link) {
		uint64_t started =
			atomic_load_explicit(&r->started, memory_order_relaxed);

		if (now >= r->deadline && state_of(r) == REQUEST_QUEUED &&
		    exec_remove(&sc->service->exec, &r->item))
			refuse_queued(r, WIRE_EXPIRED);
		else if (started && !r->reported && now > started &&
			 now - started >= stuck &&
			 state_of(r) == REQUEST_RUNNING)
			report_stuck(r, now - started);
	}
}

/* ---- the end of a connection ---- */

void requests_forget(struct service_cpt *sc, const struct export *e)
{
	struct ulrpc_request *r, *next;

	list_for_each_entry_safe (r, next, &sc->active, link) {
		if (r->origin->export != e)
			continue;
		if (state_of(r) == REQUEST_QUEUED &&
		    exec_remove(&sc->service->exec, &r->item))
			refuse_queued(r, WIRE_STALE_EPOCH);
		else
			transfer_abort(r->transfers, -ECONNRESET);
	}
}

/* ---- the end of the service ---- */

static void abort_queued(struct service_cpt *sc)
{
	struct ulrpc_request *r, *next;

	list_for_each_entry_safe (r, next, &sc->active, link)
		if (state_of(r) == REQUEST_QUEUED &&
		    exec_remove(&sc->service->exec, &r->item))
			refuse_queued(r, WIRE_SHUTTING_DOWN);
}

/* A worker has it in its hands, and has not begun. */
static bool lose_taken(struct ulrpc_request *r)
{
	struct wire_reply reply = {
		.xid = r->xid,
		.attempt = r->attempt,
		.status = WIRE_SHUTTING_DOWN,
	};
	struct origin *o = r->origin;

	if (!request_lose(r, REQUEST_QUEUED))
		return false;
	reply_add(o, &reply, NULL, true);
	request_lost(r, WIRE_SHUTTING_DOWN);
	return true;
}

void requests_abort(struct service_cpt *sc)
{
	struct ulrpc_request *r, *next;

	abort_queued(sc);
	list_for_each_entry_safe (r, next, &sc->active, link) {
		if (r->transfers && transfer_busy(r->transfers)) {
			r->losing = true;
			wait_bulk(r);
			transfer_abort(r->transfers, -ESHUTDOWN);
		} else if (lose_taken(r)) {
			continue;
		} else if (request_lose(r, REQUEST_RUNNING)) {
			request_lost(r, STAT_UNANSWERED);
		}
		/* else its reply is on the way */
	}
}

void requests_crash(struct service_cpt *sc)
{
	struct ulrpc_request *r;

	list_for_each_entry (r, &sc->active, link)
		if (r->transfers)
			transfer_crash(r->transfers);
}

static void request_gone(struct ulrpc_request *r)
{
	struct origin *o = r->origin;

	if (r->item.queued)
		exec_remove(&r->sc->service->exec, &r->item);
	list_del(&r->link);
	service_held(r->sc, r->share, -1, -(int64_t)r->held);
	if (r->transfers)
		transfers_free(r->transfers);
	r->pin = NULL;
	reply_drop(r);
	body_drop(r);
	pool_put(&r->sc->requests, r);
	origin_unref(o);
}

void requests_gone(struct service_cpt *sc)
{
	while (!list_empty(&sc->flush)) {
		struct origin *o = list_first(&sc->flush, struct origin, link);

		list_del(&o->link);
		o->out = NULL; /* among sc->replies */
		origin_unref(o);
	}
	while (!list_empty(&sc->active))
		request_gone(
			list_first(&sc->active, struct ulrpc_request, link));
}

void requests_lost_free(struct service_cpt *sc)
{
	while (sc->lost) {
		struct ulrpc_request *r = sc->lost;

		sc->lost = r->lost_link;
		origin_unref(r->origin);
		pool_put(&sc->requests, r);
	}
}

/* ---- what handlers ask ---- */

struct transfers *request_transfers(const struct ulrpc_request *request)
{
	return state_of(request) == REQUEST_LOST ? NULL : request->transfers;
}

struct transfers *request_transfers_use(const struct ulrpc_request *r)
{
	struct transfers *t = r->transfers;

	if (!t)
		return NULL;
	transfers_use(t);
	if (atomic_load(&r->state) != REQUEST_LOST)
		return t;
	transfers_unuse(t);
	return NULL;
}

static uint64_t time_left(struct ulrpc_request *r)
{
	uint64_t now = TIME_NEVER;

	/* See wait_users(). */
	atomic_fetch_add(&r->users, 1);
	if (atomic_load(&r->state) != REQUEST_LOST)
		now = shard_now(r->sc->shard);
	atomic_fetch_sub(&r->users, 1);
	if (now != TIME_NEVER && r->deadline == TIME_NEVER)
		return ULRPC_NEVER;
	return now < r->deadline ? (r->deadline - now) / NSEC_PER_USEC : 0;
}

void ulrpc_request_info(const struct ulrpc_request *request,
			struct ulrpc_request_info *info)
{
	const struct origin *o = request->origin;

	*info = (struct ulrpc_request_info){
		.client = o->client,
		.source = o->source,
		.local = o->local,
		.xid = request->xid,
		.attempt = request->attempt + 1,
		.method = request->method->number,
		.reply_max = request->reply_max,
		.time_left = time_left((struct ulrpc_request *)request),
		.priority = request->priority,
		.nbulks = transfers_count(request->transfers),
		.service = request->sc->service->name,
		.method_name = request->method->name,
	};
}

struct ulrpc *ulrpc_request_rpc(const struct ulrpc_request *request)
{
	return request->sc->service->rpc;
}

unsigned int ulrpc_request_cpt(const struct ulrpc_request *request)
{
	const struct service_cpt *sc = request->sc;

	return (unsigned int)(sc - sc->service->cpt);
}
