/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/deadline.h"

#include "rpc/server/cancel.h"
#include "rpc/server/export.h"
#include "rpc/server/extend.h"
#include "rpc/server/request_priv.h"
#include "rpc/server/stall.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

/* A worker takes a request from the queue without a word to the CPT of the
 * request: as long as the request waits, the CPT looks for that this often. */
#define STUCK_LOOKS    4
#define STUCK_LOOK_MIN (10 * NSEC_PER_MSEC)

/* A refusal takes the way back, and turns of the two loops; but that is never
 * more than this part of the time there is. */
#define TURNS	 (5 * NSEC_PER_MSEC)
#define WAY_PART 4

static void deadline_on_timer(struct ulnet_timer *t);

/* ns: when @r is to be looked at to see whether its handler is stuck. */
static uint64_t stuck_at(const struct ulrpc_request *r, uint64_t now)
{
	uint64_t stuck = rpc_ns(r->sc->service->conf.stuck);
	uint64_t started = request_started(r);

	if (r->reported || stuck == TIME_NEVER ||
	    request_state(r) > REQUEST_RUNNING)
		return TIME_NEVER;
	/* The time may have come while a worker is about to begin. */
	if (started)
		return MAX(rpc_at(started, stuck), now + STUCK_LOOK_MIN);
	return rpc_at(now, MAX(stuck / STUCK_LOOKS, STUCK_LOOK_MIN));
}

static void arm_at(struct ulrpc_request *r, uint64_t at)
{
	if (at != TIME_NEVER)
		shard_arm(r->sc->shard, &r->timer, at);
}

/* When a request that is still queued is refused: with its attempt, and so that
 * the caller hears of it before his deadline. */
static uint64_t refuse_at(const struct ulrpc_request *r)
{
	const struct export *e = r->origin->export;
	uint64_t way = (e ? rpc_ns(e->rtt) : 0) + TURNS;

	if (r->deadline == TIME_NEVER)
		return r->expires;
	way = MIN(way, (r->deadline - r->arrival) / WAY_PART);
	return MIN(r->expires, r->deadline - way);
}

/* Arms the timer for what is due first. What was due by @now is done. */
static void deadline_arm(struct ulrpc_request *r, uint64_t now)
{
	uint64_t at = MIN(MIN(stuck_at(r, now), stall_at(r)), extend_at(r));

	if (refuse_at(r) > now && request_state(r) == REQUEST_QUEUED)
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

void deadline_renew(struct ulrpc_request *r, uint64_t timeout)
{
	uint64_t now = shard_now(r->sc->shard);

	extend_renew(r, timeout, now);
	deadline_arm(r, now);
}

void deadline_unwatch(struct ulrpc_request *r)
{
	shard_cancel(r->sc->shard, &r->timer);
	extend_end(r);
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
		 lnet_nid_format(&r->origin->source, text, sizeof(text)), what,
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
		report_handler(r, "reply", now - started);
	}
}

static void look_stalled(struct ulrpc_request *r, uint64_t now)
{
	if (!stall_look(r, now))
		return;
	stat_count(r->sc->shard, RPC_STAT_requests_stalled);
	report_handler(r, "progress", now - request_started(r));
}

static void deadline_on_timer(struct ulnet_timer *t)
{
	struct ulrpc_request *r = container_of(t, struct ulrpc_request, timer);
	uint64_t now = shard_now(r->sc->shard);

	look_stalled(r, now);
	if (extend_at(r) <= now)
		extend_due(r, now);
	if (now >= refuse_at(r) && request_state(r) == REQUEST_QUEUED &&
	    exec_remove(&r->sc->service->exec, &r->item)) {
		request_refuse_queued(r, WIRE_EXPIRED);
		return; /* r is gone */
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
