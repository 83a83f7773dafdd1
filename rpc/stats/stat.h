/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is counted on a CPT: calls by service and method, requests by service
 * and method, both by peer, and what belongs to none of these. Recording
 * neither locks nor allocates (but for the first of a kind), hashes no names,
 * and reads no clock.
 *
 * Both sides count in the same shape, struct stat_method, each with its own
 * counters, ends and times: the lists below.
 *
 * Owner of all of it, also for reading: the CPT. stats.c reads, by lnet_call().
 */
#ifndef RPC_STAT_H
#define RPC_STAT_H

#include <errno.h>
#include "base/hash.h"
#include "base/list.h"
#include "rpc/stats/hist.h"
#include "rpc/rpc.h"
#include "rpc/wire/wire.h"

/* ---- what is counted ---- */

enum rpc_stat {
#define STAT(name, help)     RPC_STAT_##name,
#define STAT_NOW(name, help) RPC_STAT_##name,
#include "rpc/stats/stat.def"
#undef STAT
#undef STAT_NOW
	RPC_STATS
};

/* The first one that is not reset. */
#define RPC_STATS_NOW RPC_STAT_slots_noted

enum stat_side {
	STAT_CALLS,    /* made here: this node is a client */
	STAT_REQUESTS, /* served here: it is a server */
	STAT_SIDES
};

/* Of a method, and of a peer. X(name, help) */
#define STAT_COUNTS(X)                                            \
	X(calls, "calls that ended, requests that were answered") \
	X(failed, "of these, those whose end is not \"ok\"")      \
	X(attempts, "messages that carried them")                 \
	X(sent_bytes, "bodies sent")                              \
	X(received_bytes, "bodies received")                      \
	X(bulk_sent_bytes, "bulk data that left this node")       \
	X(bulk_received_bytes, "bulk data that came to it")

/* Of a call: as in struct ulrpc_outcome. */
#define STAT_CALL_TIMES(X)                                                    \
	X(total, "from the call to its end")                                  \
	X(connecting, "waiting for the connection")                           \
	X(window, "waiting for a place in flight")                            \
	X(wire, "on the wire, both ways; answered calls only")                \
	X(queue, "at the server, until the handler began; the same")          \
	X(service, "in the handler; the same")                                \
	X(throttled, "held back by rules of the server; the same, if it was") \
	X(fetch, "getting a reply that was too long to be sent; if it was")

/* Of a request. */
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

/* How they end: calls by enum ulrpc_cause, requests by enum wire_status, or in
 * these ways, when nobody is told: the service stopped; nobody waits. */
#define STAT_UNANSWERED	  WIRE_STATUSES
#define STAT_CANCELED	  (WIRE_STATUSES + 1)
#define STAT_REQUEST_ENDS (WIRE_STATUSES + 2)
#define STAT_ENDS_MAX	  20
_Static_assert(ULRPC_CAUSE_COUNT <= STAT_ENDS_MAX &&
		       STAT_REQUEST_ENDS <= STAT_ENDS_MAX,
	       "room for all ends");

/* Gauges: what is not counted, but known when somebody looks. */
struct stat_method_gauges {
	uint64_t estimate; /* ns that calls may take at the server, or requests
			    * here: rpc/estimate.h; 0: not known */
	uint64_t timeout;  /* ns that attempts of calls have; 0: not known */
};

struct stat_peer_gauges {
	const char *state;     /* of the connection; NULL: it has none */
	uint64_t rtt;	       /* ns; 0: not known */
	unsigned int patience; /* attempts have so many times their usual time;
				* calls only, as are slots */
	uint64_t window;       /* calls that may be in flight, all services */
	uint32_t slots;	       /* granted */
	uint64_t silent;       /* ns since something came from it; 0: never */
	uint64_t under_way;    /* calls, requests that have not ended */
	uint64_t oldest;       /* ns since the first of these calls was made;
				* 0: there is none; calls only */
};

struct run;
struct call_report;

struct stat_method {
	struct hash_node hash; /* stat_service.methods, by number */
	uint32_t number;
	struct stat_method_gauges gauges; /* of a sum only: the longest */
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

/* Of an import, or an export, which it is a part of. */
struct stat_peer {
	struct list link; /* stat_shard.peers; empty: not added */
	struct ulnet_id id;
	uint64_t counts[STAT_COUNTS_ALL];
	struct hist_small *times; /* "total"; NULL until the first one */
};

/* Where a reader of peers is, between two turns. */
struct stat_cursor {
	struct list link; /* stat_shard.cursors */
	enum stat_side side;
	struct list *next; /* of stat_shard.peers[side], or its head */
};

/* Where a side's gauges come from: functions that the side provides, called on
 * the CPT whose gauges are read. -ENOMEM: a part is missing in @sum. */
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
	/* Peers that are no more. */
	struct {
		uint64_t peers;
		uint64_t counts[STAT_COUNTS_ALL];
		struct hist times;
	} gone[STAT_SIDES];
};

/* ---- places to count in ---- */

/* NULL: no memory; then what is recorded without it counts as unrecorded.
 * @name: shorter than ULRPC_SERVICE_NAME. */
struct stat_service *stat_service_get(struct stat_shard *st,
				      enum stat_side side, const char *name);
struct stat_method *stat_method_find(const struct stat_service *sv,
				     uint32_t number);
/* Finds it, or makes it. NULL: no memory. */
struct stat_method *stat_method_get(struct stat_service *sv, uint32_t number);
/* The same, of a sum: something is known of the method. -ENOMEM. */
int stat_gauge(struct stat_shard *sum, enum stat_side side, const char *service,
	       uint32_t number, const struct stat_method_gauges *g);
/* Server: a method that there is, before its first request. Others are counted
 * in stat_service.refused, for strangers choose their numbers. @sv NULL is
 * fine. -ENOMEM. */
int stat_method_add(struct stat_service *sv, uint32_t number);

/* @p is zeroed memory. */
void stat_peer_add(struct stat_shard *st, enum stat_side side,
		   struct stat_peer *p, struct ulnet_id id);
/* Takes a peer away. What it counted, and what is recorded with it later, is
 * added to the sum of all peers that are gone. No effect if the peer was not
 * added. */
void stat_peer_del(struct stat_shard *st, enum stat_side side,
		   struct stat_peer *p);

/* ---- recording ---- */

static inline void stat_count(struct shard *s, enum rpc_stat stat)
{
	s->stats->counts[stat]++;
}

/* A counter that goes up and down, a STAT_NOW(), grows by @n, or shrinks. */
static inline void stat_now(struct shard *s, enum rpc_stat stat, int64_t n)
{
	s->stats->counts[stat] += (uint64_t)n;
}

/* The counters *_malformed, *_damaged and *_unversioned stand in a row: which
 * of them, counted from the first, is that of a message that cannot be read for
 * the reason @rc? */
static inline enum rpc_stat stat_of_bad(int rc)
{
	return rc == -EBADMSG ? 1 : rc == -EPROTONOSUPPORT ? 2 : 0;
}

/* Bulk was moved for a call that run_call_end() has recorded; the call's peer,
 * or NULL, may have gone since. */
void stat_call_late(const struct call_report *r);

static inline void stat_counts_add(uint64_t *to, const uint64_t *counts)
{
	for (unsigned int i = 0; i < STAT_COUNTS_ALL; i++)
		to[i] += counts[i];
}

/* ---- reading ---- */

/* To be called before a method or a peer is read: what has ended is counted. */
void stat_fold(struct stat_shard *st);
/* runs.count */
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
/* To be called when the shard has no peers any more. */
void stat_shard_fini(struct stat_shard *st);
/* Adds all of @from but its peers. -ENOMEM: a part is missing. */
int stat_shard_merge(struct stat_shard *to, struct stat_shard *from);
/* Everything but its peers becomes 0. */
void stat_shard_reset(struct stat_shard *st);
/* Sets the counters of one peer to 0, and gives the memory of its times
 * back. */
void stat_peer_reset(struct stat_peer *p);

/* All methods: start with *@bucket = 0 and NULL; NULL ends. */
struct stat_method *stat_method_walk(const struct stat_service *sv,
				     uint32_t *bucket,
				     const struct stat_method *m);

/* Readers that need more than one turn; freed by stat_cursor_end(), or with the
 * shard. NULL: no memory. */
struct stat_cursor *stat_cursor_new(struct stat_shard *st, enum stat_side side);
/* NULL: that was the last one. */
struct stat_peer *stat_cursor_next(struct stat_shard *st,
				   struct stat_cursor *c);
void stat_cursor_end(struct stat_cursor *c);

#endif
