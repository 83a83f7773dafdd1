/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Without the bit of its total time a run is counted without it: what has
 * failed is in the times of all and in those of its end, or in neither. */
static void run_failed(struct shard *s, const struct runs *runs,
		       enum stat_side side, struct run *run)
{
	run->counts[STAT_COUNT_failed] = run->counts[STAT_COUNT_calls];
	if (runs->failed && !runs->failed(s, side, run))
		run->how &= ~RUN_TIME(0);
}

static in_line void fold(struct shard *s, struct runs *runs,
			 enum stat_side side)
{
	struct run *run = &runs->run[side];

	if (run->how == RUN_NONE)
		return;
	if (unlikely(run->how & RUN_END))
		run_failed(s, runs, side, run);
	if (runs->learn[side])
		runs->learn[side](s, run);
	if (runs->count)
		runs->count(s, side, run);
	run->how = RUN_NONE;
}

void run_fold(struct shard *s, enum stat_side side)
{
	fold(s, s->runs, side);
}

void runs_fold(struct shard *s)
{
	for (enum stat_side side = 0; side < STAT_SIDES; side++)
		run_fold(s, side);
}

static in_line struct run *run_begin(struct shard *s, enum stat_side side,
				     uint32_t how, struct stat_peer *peer)
{
	struct runs *runs = s->runs;
	struct run *run = &runs->run[side];

	fold(s, runs, side);
	memset(run->counts, 0, sizeof(run->counts));
	run->how = how;
	if (unlikely(peer && !peer->link.next))
		run->how |= RUN_GONE;
	run->peer = peer;
	if (runs->learn[side])
		run->began = shard_now(s);
	return run;
}

/* Sets a time that few calls have. call_is_like() and request_is_like() do not
 * compare it: each call that has such a time is a run of its own. */
static void run_rare(struct run *run, unsigned int time, uint64_t took)
{
	run->how |= RUN_TIME(time);
	run->times[time] = took;
}

void run_call_begin(struct shard *s, struct stat_service *sv,
		    struct stat_peer *peer, uint32_t method,
		    const struct ulrpc_outcome *o)
{
	struct run *run = run_begin(s, STAT_CALLS, call_how(o), peer);

	run->number = method;
	run->service = sv;
	run->times[STAT_CALL_TIME_total] = o->total;
	run->times[STAT_CALL_TIME_connecting] = o->connecting;
	run->times[STAT_CALL_TIME_window] = o->window;
	run->times[STAT_CALL_TIME_wire] = o->wire;
	run->times[STAT_CALL_TIME_queue] = o->server_queue;
	run->times[STAT_CALL_TIME_service] = o->service;
	if (unlikely(o->server_throttled))
		run_rare(run, STAT_CALL_TIME_throttled, o->server_throttled);
	if (unlikely(o->fetch))
		run_rare(run, STAT_CALL_TIME_fetch, o->fetch);
}

void run_request_begin(struct shard *s, const struct request_report *r)
{
	struct run *run = run_begin(s, STAT_REQUESTS, request_how(r), r->peer);

	run->number = r->method;
	run->service = r->service;
	run->times[STAT_REQUEST_TIME_total] = r->total;
	run->times[STAT_REQUEST_TIME_queue] = r->queue;
	run->times[STAT_REQUEST_TIME_service] = r->service_time;
	if (unlikely(r->throttled))
		run_rare(run, STAT_REQUEST_TIME_throttled, r->throttled);
	run->times[STAT_REQUEST_TIME_bulk] = r->bulk ? r->bulk->time : 0;
	if (r->fine)
		run->fine = (struct hist_fine){ 0 };
}

const struct rpc_part run_part = { RPC_PART_STATE(struct runs, runs) };
