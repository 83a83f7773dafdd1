/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/stall.h"

#include "rpc/bulk/transfer.h"
#include "rpc/server/cancel.h"
#include "rpc/server/request_priv.h"

#define STALL_LOOK_MIN (10 * NSEC_PER_MSEC)

static uint64_t stall_time(const struct ulrpc_request *r)
{
	return rpc_ns(r->sc->service->conf.stalled);
}

static void look_later(struct ulrpc_request *r, uint64_t now)
{
	uint64_t time = stall_time(r);

	r->look =
		time == TIME_NEVER
			? TIME_NEVER
			: rpc_at(now, MAX(time / STALL_LOOKS, STALL_LOOK_MIN));
}

void stall_begin(struct ulrpc_request *r, uint64_t now)
{
	r->stalled = false;
	r->progressed = 0;
	r->segments = 0;
	look_later(r, now);
}

uint64_t stall_at(const struct ulrpc_request *r)
{
	return request_state(r) > REQUEST_RUNNING || request_canceled(r)
		       ? TIME_NEVER
		       : r->look;
}

/* Since this was called before. */
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

bool stall_look(struct ulrpc_request *r, uint64_t now)
{
	uint64_t since = request_started(r);
	bool was = r->stalled;

	if (now < r->look || stall_at(r) == TIME_NEVER)
		return false;
	look_later(r, now);
	if (has_progressed(r))
		r->progressed = now;
	since = MAX(since, r->progressed);
	r->stalled = since && now >= rpc_at(since, stall_time(r));
	return r->stalled && !was;
}
