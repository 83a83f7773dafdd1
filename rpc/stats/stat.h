/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of one CPT: calls and requests, each by service and method and by
 * peer, and counters of the node. Recording never locks, hashes no names, and
 * reads no clock; it allocates for the first call of a method or peer only.
 *
 * Owner, also for reading: the CPT. stats.c reads by lnet_call().
 */
#ifndef RPC_STAT_H
#define RPC_STAT_H

#include <errno.h>
#include "base/hash.h"
#include "base/list.h"
#include "rpc/stats/hist.h"
#include "rpc/rpc.h"
#include "rpc/wire/wire.h"

/* ---- names of all that is counted ---- */

enum rpc_stat {
#define STAT(name, help)     RPC_STAT_##name,
#define STAT_NOW(name, help) RPC_STAT_##name,
#include "rpc/stats/stat.def"
#undef STAT
#undef STAT_NOW
	RPC_STATS
};

/* The first counter that is not reset. */
#define RPC_STATS_NOW RPC_STAT_slots_noted

enum stat_side {
	STAT_CALLS,    /* made here: this node is a client */
	STAT_REQUESTS, /* served here: it is a server */
	STAT_SIDES
};

/* Counters of a method, and of a peer: X(name, help). */
#define STAT_COUNTS(X)                                            \
	X(calls, "calls that ended, requests that were answered") \
	X(failed, "of these, those whose end is not \"ok\"")      \
	X(attempts, "messages that carried them")                 \
	X(sent_bytes, "bodies sent")                              \
	X(received_bytes, "bodies received")                      \
	X(bulk_sent_bytes, "bulk data that left this node")       \
	X(bulk_received_bytes, "bulk data that came to it")

/* Times of a call: as in struct ulrpc_outcome. */
#define STAT_CALL_TIMES(X)                                                    \
	X(total, "from the call to its end")                                  \
	X(connecting, "waiting for the connection")                           \
	X(window, "waiting for a place in flight")                            \
	X(wire, "on the wire, both ways; answered calls only")                \
	X(queue, "at the server, until the handler began; the same")          \
	X(service, "in the handler; the same")                                \
	X(throttled, "held back by rules of the server; the same, if it was") \
	X(fetch, "getting a reply that was too long to be sent; if it was")

/* Times of a request. */
#define STAT_REQUEST_TIMES(X)                                       \
	X(total, "from its arrival to the reply")                   \
	X(queue, "until its handler began; those that were run")    \
	X(service, "in the handler, until the reply; the same")     \
	X(bulk, "while bulk data was being moved; those with bulk") \
	X(throttled, "held back by rules, before the queue; if it was")

#define STAT_ENUM_COUNT(name, help)	   STAT_COUNT_##name,
#define STAT_ENUM_CALL_TIME(name, help)	   STAT_CALL_TIME_##name,
#define STAT_ENUM_REQUEST_TIME(name, help) STAT_REQUEST_TIME_##name,
enum stat_count { STAT_COUNTS(STAT_ENUM_COUNT) STAT_COUNTS_ALL };
enum stat_call_time {
	STAT_CALL_TIMES(STAT_ENUM_CALL_TIME) STAT_CALL_TIMES_ALL
};
enum stat_request_time {
	STAT_REQUEST_TIMES(STAT_ENUM_REQUEST_TIME) STAT_REQUEST_TIMES_ALL
};

/* The ends of calls are enum ulrpc_cause; those of requests enum wire_status,
 * or one of these two, of which nobody is told: the service was stopped; nobody
 * waited any more. */
#define STAT_UNANSWERED	  WIRE_STATUSES
#define STAT_CANCELED	  (WIRE_STATUSES + 1)
#define STAT_REQUEST_ENDS (WIRE_STATUSES + 2)
#define STAT_ENDS_MAX	  20
_Static_assert(ULRPC_CAUSE_COUNT <= STAT_ENDS_MAX &&
		       STAT_REQUEST_ENDS <= STAT_ENDS_MAX,
	       "room for all ends");

/* Gauges: values that are looked up when somebody reads statistics. */
struct stat_method_gauges {
	uint64_t estimate; /* ns that calls may take at the server, or requests
			    * here: rpc/estimate.h; 0: not known */
	uint64_t timeout;  /* ns that attempts of calls have; 0: not known */
};

struct stat_peer_gauges {
	const char *state;     /* of the connection; NULL: it has none */
	uint64_t rtt;	       /* ns; 0: not known */
	unsigned int backoff;  /* the factor of the time that attempts have;
				* calls only, as are slots; "patience" in what
				* users see */
	uint64_t window;       /* calls that may be in flight, all services */
	uint32_t slots;	       /* granted */
	uint64_t silent;       /* ns since something came from it; 0: never */
	uint64_t under_way;    /* calls, or requests, that have not ended */
	uint64_t oldest;       /* ns since the first of these calls was made;
				* 0: there is none; calls only */
};

struct run;
struct call_report;

struct stat_method {
	struct hash_node hash; /* stat_service.methods, by number */
	uint32_t number;
	struct stat_method_gauges gauges; /* in a sum only: the maxima */
	uint64_t counts[STAT_COUNTS_ALL];
	uint64_t ends[STAT_ENDS_MAX];
	struct hist times[]; /* as many as its side has */
};

/* A service by its name. Lives as long as the shard, so pointers to it stay
 * valid. */
struct stat_service {
	struct list link; /* stat_shard.services */
	enum stat_side side;
	struct hash methods;
	uint64_t refused[STAT_ENDS_MAX]; /* requests without a known method */
	char name[ULRPC_SERVICE_NAME];
};

/* A member of each import, and of each export. */
struct stat_peer {
	struct list link; /* stat_shard.peers; empty: not added */
	struct ulnet_id id;
	uint64_t counts[STAT_COUNTS_ALL];
	struct hist_small *times; /* "total"; NULL until the first one */
};

/* The position of a reader of peers, which lasts over several turns. */
struct stat_cursor {
	struct list link; /* stat_shard.cursors */
	enum stat_side side;
	struct list *next; /* of stat_shard.peers[side], or its head */
};

/* The functions by which a side provides its gauges, called on the CPT whose
 * gauges are read. -ENOMEM: a part is missing in @sum. */
struct stat_gauger {
	/* Adds to @sum the gauges of methods that belong to no peer. */
	int (*methods)(struct shard *s, struct stat_shard *sum);
	/* Sets *@g to the gauges of peer @p, and adds those of its methods to
	 * @sum. */
	int (*peer)(struct shard *s, struct stat_peer *p,
		    struct stat_peer_gauges *g, struct stat_shard *sum);
};

struct stat_shard {
	const struct stat_gauger *gauger[STAT_SIDES]; /* NULL: none */
	struct shard *shard;			      /* NULL: a sum */
	uint64_t counts[RPC_STATS];
	struct list services[STAT_SIDES];
	struct list peers[STAT_SIDES];
	struct list cursors;
	uint64_t refused[STAT_ENDS_MAX]; /* requests without a known service */
	/* The sum of all peers that are gone. */
	struct {
		uint64_t peers;
		uint64_t counts[STAT_COUNTS_ALL];
		struct hist times;
	} gone[STAT_SIDES];
};

/* ---- services, methods, peers ---- */

/* Finds the service, or makes it. NULL: no memory; calls that are recorded with
 * NULL count as unrecorded. @name: shorter than ULRPC_SERVICE_NAME. */
struct stat_service *stat_service_get(struct stat_shard *st,
				      enum stat_side side, const char *name);
struct stat_method *stat_method_find(const struct stat_service *sv,
				     uint32_t number);
/* Finds the method, or makes it. NULL: no memory. */
struct stat_method *stat_method_get(struct stat_service *sv, uint32_t number);
/* Adds gauges of a method to @sum, in which they become the maxima. -ENOMEM. */
int stat_gauge(struct stat_shard *sum, enum stat_side side, const char *service,
	       uint32_t number, const struct stat_method_gauges *g);
/* Server: makes a method that the service has. Requests for other numbers,
 * which clients may make up, are counted in stat_service.refused. @sv may be
 * NULL. -ENOMEM. */
int stat_method_add(struct stat_service *sv, uint32_t number);

/* @p: zeroed by the caller, borrowed until stat_peer_del(). */
void stat_peer_add(struct stat_shard *st, enum stat_side side,
		   struct stat_peer *p, struct ulnet_id id);
/* Removes a peer, if it was added. What was recorded for it, and will be, goes
 * to the sum of all peers that are gone. */
void stat_peer_del(struct stat_shard *st, enum stat_side side,
		   struct stat_peer *p);

/* ---- recording ---- */

static inline void stat_count(struct shard *s, enum rpc_stat stat)
{
	s->stats->counts[stat]++;
}

/* Adds @n, which may be negative, to a counter that is a STAT_NOW(). */
static inline void stat_now(struct shard *s, enum rpc_stat stat, int64_t n)
{
	s->stats->counts[stat] += (uint64_t)n;
}

#define STAT_IN_A_ROW(what)                                               \
	_Static_assert((int)RPC_STAT_##what##_damaged ==                  \
				       RPC_STAT_##what##_malformed + 1 && \
			       (int)RPC_STAT_##what##_unversioned ==      \
				       RPC_STAT_##what##_malformed + 2,   \
		       "stat_of_bad() goes by this order")
STAT_IN_A_ROW(control);
STAT_IN_A_ROW(replies);
STAT_IN_A_ROW(requests);

/* What to add to a counter *_malformed for the one that counts messages with
 * the error @rc of decoding: *_damaged and *_unversioned follow it. */
static inline enum rpc_stat stat_of_bad(int rc)
{
	return rc == -EBADMSG ? 1 : rc == -EPROTONOSUPPORT ? 2 : 0;
}

/* Records bulk that was moved for a call after run_call_end(). The call's peer
 * may have gone since, or be NULL. */
void stat_call_late(const struct call_report *r);

static inline void stat_counts_add(uint64_t *to, const uint64_t *counts)
{
	for (unsigned int i = 0; i < STAT_COUNTS_ALL; i++)
		to[i] += counts[i];
}

/* ---- reading ---- */

/* Counts the calls and requests that have ended and are only noted in runs
 * (rpc/run.h). To be called before a method or a peer is read. */
void stat_fold(struct stat_shard *st);
/* Counts one run; is runs.count. */
void stat_on_run(struct shard *s, enum stat_side side, const struct run *run);

/* The ends and times of a side, and their names. */
struct stat_kind {
	unsigned int nends, ntimes;
	unsigned int counts; /* a bit for each enum stat_count */
	const char *const *times;
	const char *(*end)(unsigned int end);
};
extern const struct stat_kind stat_kinds[STAT_SIDES];
extern const char *const stat_count_names[STAT_COUNTS_ALL];
extern const char *const rpc_stat_names[RPC_STATS];

void stat_shard_init(struct stat_shard *st);
/* All peers have been removed before. */
void stat_shard_fini(struct stat_shard *st);
/* Adds all of @from but its peers. -ENOMEM: a part is missing. */
int stat_shard_merge(struct stat_shard *to, struct stat_shard *from);
/* Sets everything but the peers to 0. */
void stat_shard_reset(struct stat_shard *st);
/* Sets the counters of one peer to 0, and frees its times. */
void stat_peer_reset(struct stat_peer *p);

/* The method after @m. Begin with *@bucket = 0 and @m = NULL. NULL: no more. */
struct stat_method *stat_method_walk(const struct stat_service *sv,
				     uint32_t *bucket,
				     const struct stat_method *m);

/* A cursor before the first peer; freed by stat_cursor_end(), or with the
 * shard. NULL: no memory. */
struct stat_cursor *stat_cursor_new(struct stat_shard *st, enum stat_side side);
/* The next peer. NULL: there was none left. */
struct stat_peer *stat_cursor_next(struct stat_shard *st,
				   struct stat_cursor *c);
void stat_cursor_end(struct stat_cursor *c);

#endif
