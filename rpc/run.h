/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs: how statistics and time-outs learn of calls and requests that have
 * ended. A run is a sequence of calls, or of requests, that ended one after
 * another and are alike: of one service, method and peer, with one outcome and
 * the same times. Most calls of a message are alike, as the clock stands within
 * a turn. Recording a call costs little. The rest is done once for each run,
 * when a different call ends, or when somebody reads the statistics: rpc/stats
 * counts the run, and the time-outs of the client or the server learn from it.
 *
 * Owner: the CPT.
 */
#ifndef RPC_RUN_H
#define RPC_RUN_H

#include "rpc/stats/stat.h"

#define STAT_TIMES_MAX 8
_Static_assert((int)STAT_CALL_TIMES_ALL <= STAT_TIMES_MAX &&
		       (int)STAT_REQUEST_TIMES_ALL <= STAT_TIMES_MAX,
	       "room for all times");

struct run {
	uint32_t how;	 /* RUN_...; 0: no run */
	uint32_t number; /* number of the method */
	struct stat_service *service;
	struct stat_peer *peer;
	/* in us for calls, in ns for requests */
	uint64_t times[STAT_TIMES_MAX];
	/* ns: when the calls began; set only if this side has a runs.learn */
	uint64_t began;
	uint64_t counts[STAT_COUNTS_ALL];
	/* with RUN_FINE: by how much the times "total" and "service" of each
	 * request are longer than in @times */
	struct hist_fine fine;
};

struct runs {
	struct run run[STAT_SIDES];
	/* Called for each run that ends: learn first, then count. May be NULL.
	 */
	void (*learn[STAT_SIDES])(struct shard *s, const struct run *run);
	void (*count)(struct shard *s, enum stat_side side,
		      const struct run *run);
	/* Called before count for a run whose end is not "ok". False: its times
	 * "total" are not counted. May be NULL. */
	bool (*failed)(struct shard *s, enum stat_side side,
		       const struct run *run);
};

extern const struct rpc_part run_part;

/* A call that has ended. Borrowed until return. */
struct call_report {
	struct shard *shard;
	/* the client's service; NULL: there was no memory for it */
	struct stat_service *stats;
	struct stat_peer *peer; /* the import's; NULL: there is none */
	uint32_t method;
	size_t sent, received; /* bytes of the bodies */
	/* bytes of bulk, for stat_call_late() */
	uint64_t bulk_sent, bulk_received;
	const struct ulrpc_outcome *outcome;
};

/* Bulk data of a request. */
struct bulk_report {
	uint64_t time;		 /* ns for which bulk was moved */
	uint64_t received, sent; /* bytes of bulk */
};

/* A request that has ended. Times are in ns. */
struct request_report {
	struct stat_service *service; /* NULL: the portal has no service */
	struct stat_peer *peer;	      /* NULL: the client is not connected */
	uint32_t method;
	/* how it ended: enum wire_status, or STAT_UNANSWERED or STAT_CANCELED
	 */
	unsigned int end;
	bool run; /* the request's handler was called, and has replied */
	/* ns, plus 1, in the handler, if that was inline, and took less than
	 * HIST_FINE_END. They are not part of @total and @service_time. 0:
	 * @service_time is all */
	uint32_t fine;
	uint64_t total;
	/* time in the queue, and in the handler; valid if @run */
	uint64_t queue, service_time;
	uint64_t throttled;		/* time in the gate, before the queue */
	uint64_t received, sent;	/* bytes of the bodies */
	const struct bulk_report *bulk; /* NULL: the request had no bulk */
};

/* run.how is the outcome, with a bit for each time that is known, and RUN_GONE
 * if the peer was deleted before the run began. run.peer may then point to the
 * memory of another peer, so no later call belongs to a run with RUN_GONE. */
#define RUN_END	       0x7fu
#define RUN_FINE       0x80u /* struct run has fine times */
#define RUN_GONE       0x100u
#define RUN_TIME(time) (0x200u << (time))
/* the value of run.how if there is no run; every run has a bit for its total
 * time */
#define RUN_NONE 0
_Static_assert(STAT_ENDS_MAX <= RUN_END, "an end has seven bits");

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

/* Ends the run of @side, if there is one: calls runs->learn and runs->count. */
void run_fold(struct shard *s, enum stat_side side);
/* Ends the runs of both sides. */
void runs_fold(struct shard *s);

static inline void run_count(struct shard *s, enum stat_side side,
			     uint64_t sent, uint64_t received)
{
	struct run *run = &s->runs->run[side];

	run->counts[STAT_COUNT_sent_bytes] += sent;
	run->counts[STAT_COUNT_received_bytes] += received;
	/* A histogram adds at most UINT32_MAX samples at a time. */
	if (unlikely(++run->counts[STAT_COUNT_calls] == UINT32_MAX))
		run_fold(s, side);
}

static inline uint32_t call_how(const struct ulrpc_outcome *o)
{
	return (uint32_t)o->cause | RUN_CALL |
	       (o->execution == ULRPC_EXECUTED ? RUN_CALL_EXECUTED : 0);
}

static inline bool call_is_like(const struct run *run,
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

/* Begins a run. @sv, @peer: as in struct call_report. */
void run_call_begin(struct shard *s, struct stat_service *sv,
		    struct stat_peer *peer, uint32_t method,
		    const struct ulrpc_outcome *o);

/* Called when a call has ended. stat_call_late() counts its bulk data. @begins,
 * unless it is NULL, is called with @of and the outcome if the call has begun a
 * run. */
static in_line void run_call_end(const struct call_report *r,
				 void (*begins)(void *of,
						const struct ulrpc_outcome *o),
				 void *of)
{
	struct shard *s = r->shard;
	struct run *run = &s->runs->run[STAT_CALLS];

	if (unlikely(!call_is_like(run, r))) {
		run_call_begin(s, r->stats, r->peer, r->method, r->outcome);
		if (begins)
			begins(of, r->outcome);
	}
	run->counts[STAT_COUNT_attempts] += r->outcome->attempts;
	run_count(s, STAT_CALLS, r->sent, r->received);
}

static inline uint32_t request_how(const struct request_report *r)
{
	uint32_t how = r->end | RUN_TIME(STAT_REQUEST_TIME_total);

	if (likely(r->run))
		how |= RUN_REQUEST_RUN;
	if (r->fine)
		how |= RUN_FINE;
	if (unlikely(r->bulk))
		how |= RUN_TIME(STAT_REQUEST_TIME_bulk);
	return how;
}

static inline bool request_is_like(const struct run *run,
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

/* Begins a run. */
void run_request_begin(struct shard *s, const struct request_report *r);

/* Called when a request has ended. @begins, unless it is NULL, is called with
 * @of and the report if the request has begun a run. */
static in_line void run_request_end(
	struct shard *s, const struct request_report *r,
	void (*begins)(const void *of, const struct request_report *r),
	const void *of)
{
	struct run *run = &s->runs->run[STAT_REQUESTS];

	if (unlikely(!request_is_like(run, r))) {
		/* The copy lets *r itself stay in registers. */
		struct request_report copy = *r;

		run_request_begin(s, &copy);
		if (begins)
			begins(of, &copy);
	}
	if (unlikely(r->bulk)) {
		run->counts[STAT_COUNT_bulk_sent_bytes] += r->bulk->sent;
		run->counts[STAT_COUNT_bulk_received_bytes] +=
			r->bulk->received;
	}
	run_count(s, STAT_REQUESTS, r->sent, r->received);
	/* run_count() has not ended this run, as it never becomes that long. */
	if (r->fine && unlikely(!hist_fine_add(&run->fine, r->fine - 1)))
		run_fold(s, STAT_REQUESTS);
}

#endif
