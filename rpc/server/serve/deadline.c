/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/deadline.h"

#include <errno.h>

#include "rpc/bulk/transfer.h"
#include "rpc/control.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/request.h"
#include "rpc/server/session/export.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

/* The CPT looks for progress STALL_LOOKS times in service_conf.stalled. */
#define STALL_LOOKS    4
#define STALL_LOOK_MIN (10 * NSEC_PER_MSEC)

/* Is the body of @r, which is under way, still being got? */
static bool is_being_got(const struct ulrpc_request *r)
{
	return request_state(r) == REQUEST_ARRIVED;
}

/* Returns how long (ns) @r may make no progress. A client that withholds a body
 * may not keep the memory for it longer than it could by being silent. */
static uint64_t stall_time(const struct ulrpc_request *r)
{
	uint64_t time = rpc_ns(r->sc->service->conf.stalled);

	return is_being_got(r)
		       ? MIN(time, rpc_ns(export_lease(r->sc->shard->rpc,
						       r->batch->export)))
		       : time;
}

/* Returns how long (ns) until the CPT looks for progress again; TIME_NEVER: it
 * does not look. */
static uint64_t stall_pause(const struct ulrpc_request *r)
{
	uint64_t time = stall_time(r);

	return time == TIME_NEVER ? TIME_NEVER
				  : MAX(time / STALL_LOOKS, STALL_LOOK_MIN);
}

static void deadline_look_later(struct ulrpc_request *r, uint64_t now)
{
	r->look = rpc_at(now, stall_pause(r));
}

static void stall_begin(struct ulrpc_request *r, uint64_t now)
{
	r->stalled = false;
	r->progressed = 0;
	r->segments = 0;
	deadline_look_later(r, now);
}

/* Returns when (ns) look_stalled() is due; TIME_NEVER: never. */
static uint64_t stall_at(const struct ulrpc_request *r)
{
	return request_state(r) > REQUEST_RUNNING || request_canceled(r)
		       ? TIME_NEVER
		       : r->look;
}

/* Has @r made progress since the last call of this function? */
static bool has_progressed(struct ulrpc_request *r)
{
	uint64_t segments = r->transfers ? transfer_segments(r->transfers) : 0;
	bool moved = segments != r->segments;

	r->segments = segments;
	return (atomic_fetch_and_explicit(&r->progress, ~STALL_PROGRESS,
					  memory_order_relaxed) &
		STALL_PROGRESS) ||
	       moved;
}

/* ---- extensions: deadline.h ---- */

#define MARGIN_MIN  (20 * NSEC_PER_MSEC)
#define MARGIN_PART 10 /* the margin is T / 10, ... */
#define MARGIN_MOST 4  /* ... and at most T / 4 */
#define RTTS	    2  /* or two round trips, if that is more, ... */
#define RTTS_MOST   2  /* ... but those at most T / 2 */
/* due times are multiples of a power of two, at most T / 8 */
#define GRAIN_PART 8
#define STEPS_MAX  32 /* the step is doubled at most so often */
#define STEP_MAX   (240 * NSEC_PER_SEC)
/* a T longer than this counts as this for margin and grain */
#define EARLY_MAX (60 * NSEC_PER_SEC)

/* Returns ns that the handler of @r still needs, if it takes as long as those
 * before. */
static uint64_t handler_left(const struct ulrpc_request *r, uint64_t now)
{
	uint64_t cost = mean_upto(&r->method->cost, 2);
	uint64_t started = request_started(r);
	uint64_t since = started && now > started ? now - started : 0;

	return cost > since ? cost - since : 0;
}

/* Returns an estimate of the time (ns) until the handler of @r replies. */
static uint64_t time_to_go(const struct ulrpc_request *r, uint64_t now)
{
	uint64_t left = handler_left(r, now);
	struct exec_place place;

	if (request_state(r) == REQUEST_QUEUED &&
	    exec_find(&r->sc->service->exec, &r->item, now, &place))
		left += place.wait;
	return left;
}

/* Returns how long (ns) before r->expires an Extend is sent, so that it reaches
 * the client in time. */
static uint64_t extend_margin(const struct ulrpc_request *r, uint64_t timeout)
{
	uint64_t margin = MAX(timeout / MARGIN_PART, MARGIN_MIN);
	uint64_t rtt = rpc_ns(r->batch->export->rtt);

	margin = MIN(margin, timeout / MARGIN_MOST);
	return MAX(margin, MIN(rtt, timeout / RTTS_MOST / RTTS) * RTTS);
}

/* Returns when (ns) the client of @r is to be sent an Extend; TIME_NEVER:
 * never. */
static uint64_t extend_at(const struct ulrpc_request *r)
{
	uint64_t timeout = MIN(r->timeout, EARLY_MAX);
	uint64_t grain = UINT64_C(1)
			 << (63 - __builtin_clzll(timeout | GRAIN_PART));

	if (r->expires >= r->deadline || !r->timeout || !r->batch->export ||
	    r->stalled || request_canceled(r))
		return TIME_NEVER;
	grain /= GRAIN_PART;
	return (r->expires - extend_margin(r, timeout)) & ~(grain - 1);
}

/* Moves r->expires on by the next step, and to at least twice @left from now.
 * @left: time_to_go(). */
static void extend_by_step(struct ulrpc_request *r, uint64_t now, uint64_t left)
{
	uint64_t least = rpc_at(now, MIN(2 * left, STEP_MAX));
	uint64_t step = r->timeout / 2 << r->extensions;

	if (step >> r->extensions != r->timeout / 2 || step > STEP_MAX)
		step = STEP_MAX;
	if (r->extensions < STEPS_MAX)
		r->extensions++;
	least = MAX(least, rpc_at(MAX(r->expires, now), step));
	r->expires = MAX(r->expires, least);
	r->expires = MIN(r->expires, r->deadline);
}

void extend_now(struct ulrpc_request *r)
{
	struct export *e = r->batch->export;
	struct exports *x = r->sc->shard->exports;

	if (!e || !e->known || !list_empty(&r->extend_link))
		return;
	list_add_tail(&e->extending, &r->extend_link);
	if (!list_empty(&e->extend_link))
		return;
	list_add_tail(&x->extending, &e->extend_link);
	if (x->extend_scheduled)
		return;
	x->extend_scheduled = true;
	shard_hold(x->shard);
	shard_defer(x->shard, &x->extend_work);
}

static enum wire_extension_state deadline_state_of(
	const struct ulrpc_request *r)
{
	if (request_state(r) == REQUEST_QUEUED)
		return WIRE_QUEUED;
	return r->transfers && transfer_busy(r->transfers) ? WIRE_BULK
							   : WIRE_RUNNING;
}

static void extension_of(const struct ulrpc_request *r, uint64_t now,
			 struct wire_extension *out)
{
	struct exec_place place;

	*out = (struct wire_extension){
		.xid = r->xid,
		.slot = r->slot,
		.attempt = r->latest,
		.state = deadline_state_of(r),
		.progress = atomic_load_explicit(&r->progress,
						 memory_order_relaxed) &
			    ~STALL_PROGRESS,
	};
	if (out->state == WIRE_QUEUED &&
	    exec_find(&r->sc->service->exec, &r->item, now, &place)) {
		out->state = place.throttled ? WIRE_THROTTLED : WIRE_QUEUED;
		out->position = place.ahead;
	}
	if (r->expires > now)
		out->extend =
			(MIN(r->expires, r->deadline) - now) / NSEC_PER_USEC;
}

/* Sends the client of @e one message with as many extensions as fit. */
static void extend_send(struct exports *x, struct export *e, uint64_t now)
{
	struct ulnet_id to = { e->rail, e->peer.pid };
	struct wire_extension entries[WIRE_ENTRIES_MAX];
	struct wire_control m = {
		.kind = WIRE_EXTEND,
		.extend = { .client = e->client, .epoch = e->epoch },
	};
	struct ulnet_nid self = LNET_NID_ANY;
	uint32_t n = 0;

	while (n < WIRE_ENTRIES_MAX && !list_empty(&e->extending)) {
		struct ulrpc_request *r = list_first(
			&e->extending, struct ulrpc_request, extend_link);

		list_del(&r->extend_link);
		self = r->reply_to->local;
		to.nid = r->reply_to->source;
		extension_of(r, now, &entries[n++]);
	}
	if (!n)
		return;
	m.extend.extensions.n = n;
	m.extend.extensions.list = entries;
	/* If the message cannot be sent, the client asks by itself. */
	if (control_send(x->shard, export_seal(e), self, to, &m))
		return;
	stat_count(x->shard, RPC_STAT_extends_sent);
	x->shard->stats->counts[RPC_STAT_extensions_sent] += n;
}

void exports_extend(struct ulnet_work *w)
{
	struct exports *x = container_of(w, struct exports, extend_work);
	uint64_t now = shard_now(x->shard);

	x->extend_scheduled = false;
	while (!list_empty(&x->extending)) {
		struct export *e =
			list_first(&x->extending, struct export, extend_link);

		list_del(&e->extend_link);
		while (!list_empty(&e->extending))
			extend_send(x, e, now);
	}
	shard_release(x->shard);
}

/* Called when an attempt of @r has come that has @timeout us; 0: it has all the
 * time until its caller's deadline. */
static void extend_renew(struct ulrpc_request *r, uint64_t timeout,
			 uint64_t now)
{
	r->timeout = rpc_ns(timeout);
	r->expires =
		MAX(r->expires, timeout ? rpc_at(now, r->timeout) : TIME_NEVER);
	r->expires = MIN(r->expires, r->deadline);
}

static void extend_begin(struct ulrpc_request *r, const struct wire_call *c,
			 uint64_t now)
{
	uint64_t left;

	list_init(&r->extend_link);
	r->slot = c->slot;
	r->extensions = 0;
	r->expires = 0;
	extend_renew(r, c->timeout, now);
	if (extend_at(r) == TIME_NEVER || r->method->run == ULRPC_RUN_INLINE)
		return;
	left = r->item.wait + handler_left(r, now);
	if (left > r->timeout) {
		extend_by_step(r, now, left);
		extend_now(r);
	}
}

void ulrpc_progress(struct ulrpc_request *request, uint32_t permille)
{
	atomic_store_explicit(&request->progress,
			      MIN(permille, 1000) | STALL_PROGRESS,
			      memory_order_relaxed);
}

/* ---- the timer ---- */

/* Workers do not tell the CPT when they take a request. So while a request
 * waits, the CPT looks STUCK_LOOKS times in service_conf.stuck whether it has
 * been taken. */
#define STUCK_LOOKS    4
#define STUCK_LOOK_MIN (10 * NSEC_PER_MSEC)

/* A refusal needs time to reach the caller: a round trip, and TURNS for the
 * turns of two loops, but at most one part in WAY_PART of the caller's time. */
#define TURNS	 (5 * NSEC_PER_MSEC)
#define WAY_PART 4

static void deadline_on_timer(struct ulnet_timer *t);

/* Returns when (ns) to look whether the handler of @r is stuck; TIME_NEVER:
 * never. */
static uint64_t stuck_at(const struct ulrpc_request *r, uint64_t now)
{
	uint64_t stuck = rpc_ns(r->sc->service->conf.stuck);
	uint64_t started = request_started(r);

	if (r->reported || stuck == TIME_NEVER ||
	    request_state(r) > REQUEST_RUNNING)
		return TIME_NEVER;
	if (started)
		return MAX(rpc_at(started, stuck), now + STUCK_LOOK_MIN);
	return rpc_at(now, MAX(stuck / STUCK_LOOKS, STUCK_LOOK_MIN));
}

static void arm_at(struct ulrpc_request *r, uint64_t at)
{
	if (at != TIME_NEVER)
		shard_arm(r->sc->shard, &r->timer, at);
}

/* Returns when (ns) @r is refused if it is still queued. */
static uint64_t refuse_at(const struct ulrpc_request *r)
{
	const struct export *e = r->batch->export;
	uint64_t way = (e ? rpc_ns(e->rtt) : 0) + TURNS;

	if (r->deadline == TIME_NEVER)
		return r->expires;
	way = MIN(way, (r->deadline - r->arrival) / WAY_PART);
	return MIN(r->expires, r->deadline - way);
}

/* Arms the timer for what is due next, after @now. */
static void deadline_arm(struct ulrpc_request *r, uint64_t now)
{
	uint64_t at = MIN(MIN(stuck_at(r, now), stall_at(r)), extend_at(r));

	if (refuse_at(r) > now && request_state(r) <= REQUEST_QUEUED)
		at = MIN(at, refuse_at(r));
	if (!request_canceled(r))
		at = MIN(at, r->deadline);
	arm_at(r, at);
}

void deadline_watch(struct ulrpc_request *r, const struct wire_call *c)
{
	lnet_timer_init(&r->timer, deadline_on_timer);
	stall_begin(r, r->arrival);
	extend_begin(r, c, r->arrival);
	deadline_arm(r, r->arrival);
}

void deadline_go_on(struct ulrpc_request *r)
{
	uint64_t now = shard_now(r->sc->shard);

	r->extensions =
		0; /* extensions count from r->arrival, which was moved */
	stall_begin(r, now);
	deadline_arm(r, now);
}

void deadline_renew(struct ulrpc_request *r, uint64_t timeout)
{
	uint64_t now = shard_now(r->sc->shard);

	extend_renew(r, timeout, now);
	deadline_arm(r, now);
}

void deadline_unwatch(struct ulrpc_request *r)
{
	shard_cancel(r->sc->shard, &r->timer);
	list_del(&r->extend_link);
}

static void report_handler(struct ulrpc_request *r, const char *what,
			   uint64_t since)
{
	char text[LNET_NIDSTR_SIZE], trace[ULRPC_TRACE_SIZE] = "";

	if (!service_may_log(r->sc))
		return;
	if (r->traced)
		trace_format(r->trace, trace);
	lnet_log(LNET_LOG_WARN, "rpc",
		 "service %s, method %s: request %llu of %s: no %s after "
		 "%llu ms in its handler%s%s",
		 r->sc->service->name, r->method->name,
		 (unsigned long long)r->xid,
		 lnet_nid_format(&r->batch->source, text, sizeof(text)), what,
		 (unsigned long long)(since / NSEC_PER_MSEC),
		 r->traced ? "; trace " : "", trace);
}

static void look_stuck(struct ulrpc_request *r, uint64_t now)
{
	uint64_t started = request_started(r);

	if (started && !r->reported && request_state(r) == REQUEST_RUNNING &&
	    now >= rpc_at(started, rpc_ns(r->sc->service->conf.stuck))) {
		r->reported = true;
		stat_count(r->sc->shard, RPC_STAT_requests_stuck);
		report_handler(r,
			       deadline_state_of(r) == WIRE_BULK
				       ? "end of its bulk"
				       : "reply",
			       now - started);
	}
}

/* Looks whether @r has made progress, if that is due. Only a node that did not
 * run looks a whole pause late: then its handlers did not run either, and their
 * time begins anew. */
static void look_stalled(struct ulrpc_request *r, uint64_t now)
{
	uint64_t since = is_being_got(r) ? r->arrival : request_started(r);
	bool slept, was = r->stalled;

	if (now < r->look || stall_at(r) == TIME_NEVER)
		return;
	slept = now > rpc_at(r->look, stall_pause(r));
	deadline_look_later(r, now);
	if (has_progressed(r) || slept)
		r->progressed = now;
	since = MAX(since, r->progressed);
	r->stalled = since && now >= rpc_at(since, stall_time(r));
	if (!r->stalled || was || is_being_got(r))
		return;
	stat_count(r->sc->shard, RPC_STAT_requests_stalled);
	report_handler(r, "progress", now - request_started(r));
}

static void deadline_on_timer(struct ulnet_timer *t)
{
	struct ulrpc_request *r = container_of(t, struct ulrpc_request, timer);
	uint64_t now = shard_now(r->sc->shard);

	look_stalled(r, now);
	if (extend_at(r) <= now) {
		extend_by_step(r, now, time_to_go(r, now));
		extend_now(r);
	}
	if (now >= refuse_at(r) && request_state(r) == REQUEST_QUEUED &&
	    exec_remove(&r->sc->service->exec, &r->item)) {
		request_refuse_queued(r, WIRE_EXPIRED);
		return; /* r is gone */
	}
	if ((r->stalled || now >= refuse_at(r)) && is_being_got(r)) {
		transfer_abort(r->transfers, -ETIMEDOUT);
		return; /* r may be gone */
	}
	look_stuck(r, now);
	if (now < r->deadline || request_canceled(r)) {
		deadline_arm(r, now);
		return;
	}
	arm_at(r, stuck_at(r, now));
	request_cancel(r);
	/* r may be gone */
}
