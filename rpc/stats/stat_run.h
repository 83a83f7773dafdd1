/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recording calls and requests that have ended: what is like the one that ended
 * before it is only counted (struct stat_run). Inline, as ends are many.
 */
#ifndef RPC_STAT_RUN_H
#define RPC_STAT_RUN_H

#include "rpc/stats/stat.h"

/* stat_run.how: the end; whether the peer had gone before, for then run.peer
 * may be the memory of another peer by now, and nothing is like that run; and a
 * bit for each of the times that there is. */
#define RUN_END	       0xffu
#define RUN_GONE       0x100u
#define RUN_TIME(time) (0x200u << (time))
#define RUN_NONE       0 /* empty: each has a total time */
_Static_assert(STAT_ENDS_MAX <= RUN_END, "an end has eight bits");

#define RUN_CALL                               \
	(RUN_TIME(STAT_CALL_TIME_total) |      \
	 RUN_TIME(STAT_CALL_TIME_connecting) | \
	 RUN_TIME(STAT_CALL_TIME_window))
#define RUN_CALL_EXECUTED                                                 \
	(RUN_TIME(STAT_CALL_TIME_wire) | RUN_TIME(STAT_CALL_TIME_queue) | \
	 RUN_TIME(STAT_CALL_TIME_service))

#define RUN_REQUEST_RUN                      \
	(RUN_TIME(STAT_REQUEST_TIME_queue) | \
	 RUN_TIME(STAT_REQUEST_TIME_service))

/* Folds what there is, and has it learned from. */
void stat_run_fold(struct stat_shard *st, enum stat_side side);

static inline void run_count(struct stat_shard *st, enum stat_side side,
			     uint64_t sent, uint64_t received)
{
	struct stat_run *run = &st->run[side];

	run->counts[STAT_COUNT_sent_bytes] += sent;
	run->counts[STAT_COUNT_received_bytes] += received;
	/* Histograms add no more at a time. */
	if (unlikely(++run->counts[STAT_COUNT_calls] == UINT32_MAX))
		stat_run_fold(st, side);
}

static inline uint32_t call_how(const struct ulrpc_outcome *o)
{
	return (uint32_t)o->cause | RUN_CALL |
	       (o->execution == ULRPC_EXECUTED ? RUN_CALL_EXECUTED : 0);
}

static inline bool call_is_like(const struct stat_run *run,
				const struct call_report *r)
{
	const struct ulrpc_outcome *o = r->outcome;

	return run->how == call_how(o) && run->number == r->method &&
	       run->service == r->stats && run->peer == r->peer &&
	       run->times[STAT_CALL_TIME_total] == o->total &&
	       run->times[STAT_CALL_TIME_connecting] == o->connecting &&
	       run->times[STAT_CALL_TIME_window] == o->window &&
	       run->times[STAT_CALL_TIME_wire] == o->wire &&
	       run->times[STAT_CALL_TIME_queue] == o->server_queue &&
	       run->times[STAT_CALL_TIME_service] == o->service &&
	       likely(!(o->server_throttled | o->fetch));
}

/* Begins the run of a call that is not like those before it. @sv, @peer: as in
 * struct call_report. */
void stat_call_begin(struct stat_shard *st, struct stat_service *sv,
		     struct stat_peer *peer, uint32_t method,
		     const struct ulrpc_outcome *o);

/* A call has ended, in any way. Its bulk data is for stat_call_late(). */
static in_line void stat_call_end(const struct call_report *r)
{
	struct stat_shard *st = r->shard->stats;
	struct stat_run *run = &st->run[STAT_CALLS];

	if (unlikely(!call_is_like(run, r)))
		stat_call_begin(st, r->stats, r->peer, r->method, r->outcome);
	run->counts[STAT_COUNT_attempts] += r->outcome->attempts;
	run_count(st, STAT_CALLS, r->sent, r->received);
}

static inline uint32_t request_how(const struct request_report *r)
{
	uint32_t how = r->end | RUN_TIME(STAT_REQUEST_TIME_total);

	if (likely(r->run))
		how |= RUN_REQUEST_RUN;
	if (unlikely(r->bulk))
		how |= RUN_TIME(STAT_REQUEST_TIME_bulk);
	return how;
}

static inline bool request_is_like(const struct stat_run *run,
				   const struct request_report *r)
{
	const uint64_t *times = run->times;

	return run->how == request_how(r) && run->number == r->method &&
	       run->service == r->service && run->peer == r->peer &&
	       times[STAT_REQUEST_TIME_total] == r->total &&
	       times[STAT_REQUEST_TIME_queue] == r->queue &&
	       times[STAT_REQUEST_TIME_service] == r->service_time &&
	       (likely(!r->bulk) ||
		times[STAT_REQUEST_TIME_bulk] == r->bulk->time) &&
	       likely(!r->throttled);
}

/* Begins the run of a request that is not like those before it. */
void stat_request_begin(struct stat_shard *st, const struct request_report *r);

/* A request that was read has ended. */
static in_line void stat_request_end(struct stat_shard *st,
				     const struct request_report *r)
{
	struct stat_run *run = &st->run[STAT_REQUESTS];

	if (unlikely(!request_is_like(run, r))) {
		/* So that *r need not be in memory. */
		struct request_report copy = *r;

		stat_request_begin(st, &copy);
	}
	if (unlikely(r->bulk)) {
		run->counts[STAT_COUNT_bulk_sent_bytes] += r->bulk->sent;
		run->counts[STAT_COUNT_bulk_received_bytes] +=
			r->bulk->received;
	}
	run_count(st, STAT_REQUESTS, r->sent, r->received);
}

#endif
