/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of one CPT: calls and requests, each by service and method and by
 * peer, and counters of the node. Recording never locks, hashes no names, and
 * reads no clock. It allocates only for the first call of a method or peer.
 *
 * Owner, also for reading: the CPT. stats.c reads by lnet_call().
 */
#ifndef RPC_STAT_H
#define RPC_STAT_H

#include <errno.h>
#include "base/hash.h"
#include "base/list.h"
#include "rpc/stats/hist.h"
#include "rpc/stats/slow.h"
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

/* Counters from this one on are never reset. */
#define RPC_STATS_NOW RPC_STAT_slots_noted

enum stat_side {
	STAT_CALLS,    /* calls that this node makes, as a client */
	STAT_REQUESTS, /* requests that this node serves, as a server */
	STAT_SIDES
};

/* The counters that each method has, and each peer: X(name, help). */
#define STAT_COUNTS(X)                                            \
	X(calls, "calls that ended, requests that were answered") \
	X(failed, "calls and requests whose end is not \"ok\"")   \
	X(attempts, "messages that carried the calls")            \
	X(sent_bytes, "bodies sent")                              \
	X(received_bytes, "bodies received")                      \
	X(bulk_sent_bytes, "bulk data that left this node")       \
	X(bulk_received_bytes, "bulk data that came to this node")

/* Times of a call, as in struct ulrpc_outcome. */
#define STAT_CALL_TIMES(X)                                                    \
	X(total, "from the call to its end")                                  \
	X(connecting, "waiting for the connection")                           \
	X(window, "waiting for a place in flight")                            \
	X(wire, "on the wire, both ways; of answered calls")                  \
	X(queue, "at the server, until the handler began; of answered calls") \
	X(service, "in the handler; of answered calls")                       \
	X(throttled,                                                          \
	  "held back by rules of the server; of answered calls that were")    \
	X(fetch,                                                              \
	  "getting a reply that was too long to be sent; of calls with one")

/* Times of a request. */
#define STAT_REQUEST_TIMES(X)                                             \
	X(total, "from its arrival to the reply")                         \
	X(queue, "until its handler began; of requests that were run")    \
	X(service,                                                        \
	  "in the handler, until the reply; of requests that were run")   \
	X(bulk, "while bulk data was being moved; of requests with bulk") \
	X(throttled,                                                      \
	  "held back by rules, before the queue; of requests that were")

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

/* The ends of calls are counted by enum ulrpc_cause, those of requests by enum
 * wire_status. Requests can also end in two ways without a reply:
 * STAT_UNANSWERED: the service was stopped; STAT_CANCELED: nobody waited for
 * the reply any more. */
#define STAT_UNANSWERED	  WIRE_STATUSES
#define STAT_CANCELED	  (WIRE_STATUSES + 1)
#define STAT_REQUEST_ENDS (WIRE_STATUSES + 2)
#define STAT_ENDS_MAX	  24
_Static_assert(ULRPC_CAUSE_COUNT <= STAT_ENDS_MAX &&
		       STAT_REQUEST_ENDS <= STAT_ENDS_MAX,
	       "room for all ends");

/* Gauges: values of now, which are looked up when somebody reads statistics. */
struct stat_method_gauges {
	/* ns that calls take at the server, or that requests take here
	 * (rpc/estimate.h); 0: not known */
	uint64_t estimate;
	/* ns: the time T that attempts of calls get; 0: not known */
	uint64_t timeout;
};

/* Who a peer has proved to be, and how its messages are sealed. */
struct stat_proof {
	struct ulrpc_peer peer;
	const char *cipher;
	/* s since 1970: when the peer's certificate ends; 0: never */
	int64_t until;
	/* how often both sides' keys together were renewed since the handshake
	 */
	uint64_t renewals;
	uint64_t age; /* ns since the handshake */
};

struct stat_peer_gauges {
	const char *state; /* state of the connection; NULL: it has no states */
	/* the proof, to be freed by free(); NULL: the peer has proved nothing
	 */
	struct stat_proof *proof;
	/* ns since the connection was made; 0: there is no connection */
	uint64_t connected;
	/* of requests only: how many were refused by rules, or because of their
	 * flavour */
	uint64_t refused;
	uint64_t rtt; /* ns: round trip; 0: not known */
	/* of calls only: the factor by which attempts have more time than
	 * usual, called "patience" in what users see */
	unsigned int backoff;
	/* calls that may be in flight, for all services together */
	uint64_t window;
	uint32_t slots; /* of calls only: slots that the server grants */
	/* ns since something came from the peer; 0: nothing has */
	uint64_t silent;
	uint64_t under_way; /* calls, or requests, that have not ended */
	/* of calls only: ns since the oldest call under way was made; 0: there
	 * is none */
	uint64_t oldest;
};

struct run;
struct call_report;

/* The times "total" of those that have ended in one way that is not "ok". */
struct stat_failed {
	struct stat_failed *next; /* of the same method */
	unsigned int end;
	struct hist total;
};

struct stat_method {
	struct hash_node hash; /* node in stat_service.methods, by number */
	uint32_t number;
	/* the highest gauges of all peers; set only in sums over shards */
	struct stat_method_gauges gauges;
	uint64_t counts[STAT_COUNTS_ALL];
	uint64_t ends[STAT_ENDS_MAX];
	/* one for each way that has occurred, of stat_kinds[side].nends */
	struct stat_failed *failed;
	struct hist times[]; /* one for each of stat_kinds[side].ntimes times */
};

/* A service, by its name. Lives as long as the shard, so pointers to it stay
 * valid. */
struct stat_service {
	struct list link; /* node in stat_shard.services */
	enum stat_side side;
	struct hash methods;
	/* of requests: the service while it is started */
	struct service_cpt *owner;
	/* Ends of requests for methods that the service does not have, by end.
	 */
	uint64_t refused[STAT_ENDS_MAX];
	/* Gauges, set only in sums over shards: calls or requests that have not
	 * ended; and, of these, those that wait: calls to be sent, requests for
	 * a worker. */
	uint64_t under_way, waiting;
	uint64_t streams; /* the same: streams that are open */
	struct slow slow; /* the slowest calls, or requests */
	char name[ULRPC_SERVICE_NAME];
};

/* A member of each import, and of each export. */
struct stat_peer {
	/* node in stat_shard.peers[]; empty: the peer was not added */
	struct list link;
	struct ulnet_id id;
	uint64_t counts[STAT_COUNTS_ALL];
	/* histogram of the times "total"; NULL: no time was recorded yet */
	struct hist_small *times;
};

/* The position of a reader in the list of peers of a shard; it stays valid from
 * turn to turn. */
struct stat_cursor {
	struct list link; /* node in stat_shard.cursors */
	enum stat_side side;
	/* the next peer.link, or the head of stat_shard.peers[side] */
	struct list *next;
};

/* The functions by which a side (client or server) provides its gauges. They
 * are called on the CPT whose gauges are read, and return 0, or -ENOMEM: @sum
 * is incomplete. */
struct stat_gauger {
	/* Adds to @sum the gauges of methods that belong to no peer. */
	int (*methods)(struct shard *s, struct stat_shard *sum);
	/* Sets *@g to the gauges of peer @p, and adds those of its methods to
	 * @sum. */
	int (*peer)(struct shard *s, struct stat_peer *p,
		    struct stat_peer_gauges *g, struct stat_shard *sum);
};

struct stat_shard {
	/* NULL: the side has no gauges */
	const struct stat_gauger *gauger[STAT_SIDES];
	/* NULL: this is a sum over shards */
	struct shard *shard;
	uint64_t counts[RPC_STATS];
	struct list services[STAT_SIDES];
	struct list peers[STAT_SIDES];
	struct list cursors;
	/* Ends of requests for services that this server does not have, by end.
	 */
	uint64_t refused[STAT_ENDS_MAX];
	/* sums over all peers that were removed */
	struct {
		uint64_t peers;
		uint64_t counts[STAT_COUNTS_ALL];
		struct hist times;
	} gone[STAT_SIDES];
};

/* ---- services, methods, peers ---- */

/* Finds the service @name, or makes it. @name is shorter than
 * ULRPC_SERVICE_NAME. Returns NULL if there is no memory: calls of a service
 * that is NULL are counted as "unrecorded". */
struct stat_service *stat_service_get(struct stat_shard *st,
				      enum stat_side side, const char *name);
struct stat_method *stat_method_find(const struct stat_service *sv,
				     uint32_t number);
/* Finds the method, or makes it. Returns NULL if there is no memory. */
struct stat_method *stat_method_get(struct stat_service *sv, uint32_t number);
/* Raises the gauges of a method in @sum to those given, where these are higher.
 * Returns 0 or -ENOMEM. */
int stat_gauge(struct stat_shard *sum, enum stat_side side, const char *service,
	       uint32_t number, const struct stat_method_gauges *g);
/* Adds to the gauges of a service in @sum. Returns 0 or -ENOMEM. */
int stat_service_gauge(struct stat_shard *sum, enum stat_side side,
		       const char *service, uint64_t under_way,
		       uint64_t waiting);
int stat_service_streams(struct stat_shard *sum, enum stat_side side,
			 const char *service, uint64_t streams);
/* Called by servers for each method that a service has, and makes it. Requests
 * for other numbers, which clients may make up, are counted in
 * stat_service.refused. @sv may be NULL. Returns 0 or -ENOMEM. */
int stat_method_add(struct stat_service *sv, uint32_t number);

/* Adds a peer. @p was zeroed by the caller, and is borrowed until
 * stat_peer_del(). */
void stat_peer_add(struct stat_shard *st, enum stat_side side,
		   struct stat_peer *p, struct ulnet_id id);
/* Removes a peer, if it was added. What was recorded for it, and what is
 * recorded for it later, goes to the sum of all removed peers. */
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

/* Returns which of three counters is for messages that could not be decoded, by
 * the error @rc: 0 for *_malformed, 1 for *_damaged, 2 for *_unversioned. The
 * caller adds it to *_malformed. */
static inline enum rpc_stat stat_of_bad(int rc)
{
	return rc == -EBADMSG ? 1 : rc == -EPROTONOSUPPORT ? 2 : 0;
}

/* Records bulk that was moved for a call after its run_call_end(). The call's
 * peer may have been removed meanwhile, or may be NULL. */
void stat_call_late(const struct call_report *r);

static inline void stat_counts_add(uint64_t *to, const uint64_t *counts)
{
	for (unsigned int i = 0; i < STAT_COUNTS_ALL; i++)
		to[i] += counts[i];
}

/* ---- reading ---- */

/* Counts the calls and requests that have ended and are so far only noted in
 * runs (rpc/run.h). To be called before a method or a peer is read. */
void stat_fold(struct stat_shard *st);
/* What runs.count calls: counts one run. */
void stat_on_run(struct shard *s, enum stat_side side, const struct run *run);
/* What runs.failed calls: adds the times "total" to those of this end. Returns
 * false if there is no memory for them. */
bool stat_on_failed_run(struct shard *s, enum stat_side side,
			const struct run *run);

/* What the statistics of a side (calls or requests) consist of: ends, counters
 * and times, with their names. */
struct stat_kind {
	unsigned int nends, ntimes;
	/* which counters there are: a bit for each enum stat_count */
	unsigned int counts;
	const char *const *times;
	const char *(*end)(unsigned int end);
};
extern const struct stat_kind stat_kinds[STAT_SIDES];
extern const char *const stat_count_names[STAT_COUNTS_ALL];
extern const char *const rpc_stat_names[RPC_STATS];

void stat_shard_init(struct stat_shard *st);
/* Frees @st. The caller has removed all peers before. */
void stat_shard_fini(struct stat_shard *st);
/* Adds everything in @from to @to, except for peers. @now: ns. Returns 0, or
 * -ENOMEM: @to is incomplete. */
int stat_shard_merge(struct stat_shard *to, struct stat_shard *from,
		     uint64_t now);
/* Sets everything to 0, except for peers, and counters that are STAT_NOW(). */
void stat_shard_reset(struct stat_shard *st);
/* Sets the counters of one peer to 0, and frees its times. */
void stat_peer_reset(struct stat_peer *p);

/* Returns the times of calls, or requests, that have ended so, which is not
 * "ok"; NULL: there were none. */
const struct hist *stat_failed_times(const struct stat_method *m,
				     unsigned int end);
/* Sets the buckets and the sum of *@h to those of calls, or requests, that have
 * ended as "ok", but not its smallest and largest value. */
void stat_ok_times(const struct stat_method *m, struct hist *h);

/* Returns the method after @m; NULL: @m was the last one. To get the first
 * method, set @m to NULL and *@bucket to 0. */
struct stat_method *stat_method_walk(const struct stat_service *sv,
				     uint32_t *bucket,
				     const struct stat_method *m);

/* Returns a cursor in front of the first peer; NULL: no memory.
 * stat_cursor_end() frees it, or else stat_shard_fini(). */
struct stat_cursor *stat_cursor_new(struct stat_shard *st, enum stat_side side);
/* Returns the next peer; NULL: there are no more. */
struct stat_peer *stat_cursor_next(struct stat_shard *st,
				   struct stat_cursor *c);
void stat_cursor_end(struct stat_cursor *c);

#endif
