/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/extend.h"

#include "rpc/bulk/transfer.h"
#include "rpc/control.h"
#include "rpc/server/cancel.h"
#include "rpc/server/export.h"
#include "rpc/server/request_priv.h"
#include "rpc/server/stall.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

#define MARGIN_MIN  (20 * NSEC_PER_MSEC)
#define MARGIN_PART 10 /* of T */
#define MARGIN_MOST 4  /* at most that part of it */
#define RTTS	    2  /* but at least as many round trips, ... */
#define RTTS_MOST   2  /* ... up to that part of it */
#define GRAIN_PART  8  /* due times are multiples of up to that part */
#define STEPS_MAX   32 /* doublings */
/* Clients believe no more than five minutes at once. */
#define STEP_MAX  (240 * NSEC_PER_SEC)
#define EARLY_MAX (60 * NSEC_PER_SEC) /* of T, for margin and grain */

/* ---- what is known of the time that is left ---- */

/* ns that its handler will take, if it takes as long as others did. */
static uint64_t handler_left(const struct ulrpc_request *r, uint64_t now)
{
	uint64_t cost = mean_upto(&r->method->cost, 2);
	uint64_t started = request_started(r);
	uint64_t since = started && now > started ? now - started : 0;

	return cost > since ? cost - since : 0;
}

static uint64_t time_to_go(const struct ulrpc_request *r, uint64_t now)
{
	uint64_t left = handler_left(r, now);
	struct exec_place place;

	if (request_state(r) == REQUEST_QUEUED &&
	    exec_find(&r->sc->service->exec, &r->item, now, &place))
		left += place.wait;
	return left;
}

/* ---- deadlines ---- */

/* For the way to the client, before its attempt would be over. */
static uint64_t extend_margin(const struct ulrpc_request *r, uint64_t timeout)
{
	uint64_t margin = MAX(timeout / MARGIN_PART, MARGIN_MIN);
	uint64_t rtt = rpc_ns(r->origin->export->rtt);

	margin = MIN(margin, timeout / MARGIN_MOST);
	return MAX(margin, MIN(rtt, timeout / RTTS_MOST / RTTS) * RTTS);
}

uint64_t extend_at(const struct ulrpc_request *r)
{
	uint64_t timeout = MIN(r->timeout, EARLY_MAX);
	uint64_t grain = UINT64_C(1)
			 << (63 - __builtin_clzll(timeout | GRAIN_PART));

	/* The caller waits no longer anyway, or there is nobody to be told, or
	 * nothing to wait for. */
	if (r->expires >= r->deadline || !r->timeout || !r->origin->export ||
	    r->stalled || request_canceled(r))
		return TIME_NEVER;
	grain /= GRAIN_PART;
	return (r->expires - extend_margin(r, timeout)) & ~(grain - 1);
}

/* Moves `expires` on: by the next step, and for at least twice @left, what is
 * left to do. */
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

/* ---- messages ---- */

void extend_now(struct ulrpc_request *r)
{
	struct export *e = r->origin->export;
	struct exports *x = r->sc->shard->exports;

	if (!e || !e->known || !list_empty(&r->extend_link))
		return;
	list_add_tail(&e->extending, &r->extend_link);
	if (!list_empty(&e->extend_link))
		return;
	list_add_tail(&x->extending, &e->extend_link);
	if (x->telling)
		return;
	x->telling = true;
	shard_hold(x->shard);
	shard_defer(x->shard, &x->extend_work);
}

static enum wire_extension_state state_of(const struct ulrpc_request *r)
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
		.state = state_of(r),
		.progress = atomic_load_explicit(&r->progress,
						 memory_order_relaxed) &
			    ~STALL_PROGRESS,
	};
	if (out->state == WIRE_QUEUED &&
	    exec_find(&r->sc->service->exec, &r->item, now, &place)) {
		out->state = place.held ? WIRE_THROTTLED : WIRE_QUEUED;
		out->position = place.ahead;
	}
	if (r->expires > now)
		out->extend =
			(MIN(r->expires, r->deadline) - now) / NSEC_PER_USEC;
}

/* As many as one message takes. */
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
		self = r->answer->local;
		to.nid = r->answer->source;
		extension_of(r, now, &entries[n++]);
	}
	if (!n)
		return;
	m.extend.extensions.n = n;
	m.extend.extensions.list = entries;
	/* One that cannot be sent is as if it were lost: the client asks. */
	if (control_send(x->shard, self, to, &m))
		return;
	stat_count(x->shard, RPC_STAT_extends_sent);
	x->shard->stats->counts[RPC_STAT_extensions_sent] += n;
}

void exports_extend(struct ulnet_work *w)
{
	struct exports *x = container_of(w, struct exports, extend_work);
	uint64_t now;

	x->telling = false;
	if (x->shard->crashed)
		return;
	now = shard_now(x->shard);
	while (!list_empty(&x->extending)) {
		struct export *e =
			list_first(&x->extending, struct export, extend_link);

		list_del(&e->extend_link);
		while (!list_empty(&e->extending))
			extend_send(x, e, now);
	}
	shard_release(x->shard);
}

/* ---- life ---- */

void extend_begin(struct ulrpc_request *r, const struct wire_call *c,
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

void extend_renew(struct ulrpc_request *r, uint64_t timeout, uint64_t now)
{
	r->timeout = rpc_ns(timeout);
	r->expires =
		MAX(r->expires, timeout ? rpc_at(now, r->timeout) : TIME_NEVER);
	r->expires = MIN(r->expires, r->deadline);
}

void extend_end(struct ulrpc_request *r)
{
	list_del(&r->extend_link);
}

void extend_due(struct ulrpc_request *r, uint64_t now)
{
	extend_by_step(r, now, time_to_go(r, now));
	extend_now(r);
}

/* ---- any thread ---- */

void ulrpc_progress(struct ulrpc_request *request, uint32_t permille)
{
	atomic_store_explicit(&request->progress,
			      MIN(permille, 1000) | STALL_PROGRESS,
			      memory_order_relaxed);
}
