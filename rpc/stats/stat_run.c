/* SPDX-License-Identifier: BSD-3-Clause */
/* What has ended, recorded: struct stat_run. */
#include <string.h>

#include "rpc/stats/stat_run.h"

/* Any end but 0 is a failure; the first time is the one that peers have. */
_Static_assert((int)ULRPC_CAUSE_OK == 0 && (int)WIRE_OK == 0 &&
		       (int)STAT_CALL_TIME_total == 0 &&
		       (int)STAT_REQUEST_TIME_total == 0,
	       "what folding goes by");

/* ---- folding ---- */

static uint64_t run_time(const struct stat_run *run, enum stat_side side,
			 unsigned int time)
{
	return side == STAT_CALLS ? rpc_ns(run->times[time]) : run->times[time];
}

static void fold_peer(struct stat_shard *st, enum stat_side side,
		      const struct stat_run *run, uint32_t n)
{
	uint64_t total = run_time(run, side, 0);
	struct stat_peer *p = run->peer;

	if (run->how & RUN_GONE) {
		stat_counts_add(st->gone[side].counts, run->counts);
		hist_add(&st->gone[side].times, total, n);
		return;
	}
	stat_counts_add(p->counts, run->counts);
	if (unlikely(!p->times))
		p->times = calloc(1, sizeof(*p->times));
	if (unlikely(!p->times || !hist_small_add(p->times, total, n)))
		st->counts[RPC_STAT_unrecorded] += n;
}

static void fold_method(enum stat_side side, const struct stat_run *run,
			uint32_t n)
{
	struct stat_method *m = run->method;

	stat_counts_add(m->counts, run->counts);
	m->ends[run->how & RUN_END] += n;
	for (unsigned int i = 0; run->how >= RUN_TIME(i); i++)
		if (run->how & RUN_TIME(i))
			hist_add(&m->times[i], run_time(run, side, i), n);
}

/* Calls have no place when there is no memory for it, and requests when their
 * service or method is not there. */
static void fold_elsewhere(struct stat_shard *st, enum stat_side side,
			   const struct stat_run *run, uint32_t n)
{
	if (side == STAT_CALLS)
		st->counts[RPC_STAT_unrecorded] += n;
	else if (run->service)
		run->service->refused[run->how & RUN_END] += n;
	else
		st->refused[run->how & RUN_END] += n;
}

void stat_run_fold(struct stat_shard *st, enum stat_side side)
{
	struct stat_run *run = &st->run[side];
	uint32_t n = (uint32_t)run->counts[STAT_COUNT_calls];

	if (run->how == RUN_NONE)
		return;
	if (run->how & RUN_END)
		run->counts[STAT_COUNT_failed] = n;
	if (st->learn[side])
		st->learn[side](st->shard, run);
	if (run->peer)
		fold_peer(st, side, run, n);
	if (likely(run->method))
		fold_method(side, run, n);
	else
		fold_elsewhere(st, side, run, n);
	run->how = RUN_NONE;
}

void stat_fold(struct stat_shard *st)
{
	for (enum stat_side side = 0; side < STAT_SIDES; side++)
		stat_run_fold(st, side);
}

/* ---- recording ---- */

/* Begins the run of a call or a request that is not like those before it. */
static struct stat_run *run_begin(struct stat_shard *st, enum stat_side side,
				  uint32_t how, struct stat_peer *peer)
{
	struct stat_run *run = &st->run[side];

	stat_run_fold(st, side);
	memset(run->counts, 0, sizeof(run->counts));
	run->how = how;
	if (unlikely(peer && !peer->link.next))
		run->how |= RUN_GONE;
	run->peer = peer;
	if (st->learn[side])
		run->began = shard_now(st->shard);
	return run;
}

/* A time that few have: each of these is a run of its own, and the time is
 * asked for in no other. */
static void run_rare(struct stat_run *run, unsigned int time, uint64_t took)
{
	run->how |= RUN_TIME(time);
	run->times[time] = took;
}

void stat_call_begin(struct stat_shard *st, struct stat_service *sv,
		     struct stat_peer *peer, uint32_t method,
		     const struct ulrpc_outcome *o)
{
	struct stat_run *run = run_begin(st, STAT_CALLS, call_how(o), peer);

	run->number = method;
	run->service = sv;
	run->method = sv ? stat_method_get(sv, method) : NULL;
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

void stat_call_late(const struct call_report *r)
{
	const uint64_t counts[STAT_COUNTS_ALL] = {
		[STAT_COUNT_bulk_sent_bytes] = r->bulk_sent,
		[STAT_COUNT_bulk_received_bytes] = r->bulk_received,
	};
	struct stat_method *m =
		r->stats ? stat_method_find(r->stats, r->method) : NULL;
	bool there = r->peer && r->peer->link.next;

	stat_counts_add(there ? r->peer->counts
			      : r->shard->stats->gone[STAT_CALLS].counts,
			counts);
	if (m)
		stat_counts_add(m->counts, counts);
}

void stat_request_begin(struct stat_shard *st, const struct request_report *r)
{
	struct stat_run *run =
		run_begin(st, STAT_REQUESTS, request_how(r), r->peer);

	run->number = r->method;
	run->service = r->service;
	run->method =
		r->service ? stat_method_find(r->service, r->method) : NULL;
	run->times[STAT_REQUEST_TIME_total] = r->total;
	run->times[STAT_REQUEST_TIME_queue] = r->queue;
	run->times[STAT_REQUEST_TIME_service] = r->service_time;
	if (unlikely(r->throttled))
		run_rare(run, STAT_REQUEST_TIME_throttled, r->throttled);
	run->times[STAT_REQUEST_TIME_bulk] = r->bulk ? r->bulk->time : 0;
}
