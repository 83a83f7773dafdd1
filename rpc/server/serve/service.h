/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service: its methods, its workers (exec.h), which serve all CPTs, and its
 * state on each CPT.
 *
 * A service is limited to four times queue_max requests and queue_bytes_max
 * bytes. Each host has its share of that, and each client its share of its
 * host's (queue/share.h): a single client, on a single host, gets half of its
 * host's half, which is the configured limit.
 *
 * The bytes that are charged for a request are the memory that it takes: the
 * request, its body, the descriptors of its bulk, and room for the longest
 * reply that it may have. Later the reply is charged, until LNet has sent it
 * and, if it is kept (reply.h), the client has acknowledged it. So a request is
 * refused before it is executed, and there is always room for a reply.
 */
#ifndef RPC_SERVICE_H
#define RPC_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/fsm.h"
#include "base/pool.h"
#include "rpc/give_back.h"
#include "rpc/inbox.h"
#include "rpc/rpc.h"
#include "rpc/server/queue/exec.h"
#include "rpc/server/queue/share.h"
#include "rpc/server/serve/durable.h"
#include "rpc/slab.h"
#include "rpc/stats/stat.h"
#include "ulnet/service.h"
#include "ulnet/thread.h"

struct estimate;
struct run;
struct ulrpc_request;
struct ulrpc_service;

/* ---- on a CPT ---- */

/* How far the end of a service has come on a CPT: UP -> CLOSED -> ABORTED ->
 * STOPPED -> GONE. */
enum service_cpt_state {
	SERVICE_CPT_UP,
	SERVICE_CPT_CLOSED,  /* new requests are refused */
	SERVICE_CPT_ABORTED, /* requests under way have ended, or soon will */
	/* buffers are being unlinked; requests that still come, also by way of
	 * other CPTs, are refused */
	SERVICE_CPT_STOPPED,
	SERVICE_CPT_GONE, /* nobody refers to it */
	SERVICE_CPT_STATES
};

/* A service on a CPT: its inbox, requests and replies. Owner: the CPT. */
struct service_cpt {
	struct ulrpc_service *service;
	struct shard *shard;
	struct list link; /* node in services.shard[] */
	struct fsm fsm;	  /* enum service_cpt_state */
	struct inbox inbox;
	bool open;    /* the inbox is open */
	bool leaving; /* all CPTs are STOPPED, so no request comes any more */

	struct pool requests; /* of struct ulrpc_request */
	struct pool batches;  /* of struct request_batch */
	struct pool messages; /* of struct reply_message */
	struct slab slab;     /* for bodies of requests and of replies */
	struct wire_common common; /* of the last call that has come */
	/* long bodies of requests that are over; charged to their shares, which
	 * are the holders */
	struct give_back bodies;
	struct list active;   /* of ulrpc_request.link: requests under way */
	/* list by ulrpc_request.lost_link: requests that are LOST */
	struct ulrpc_request *lost;
	/* their batches have exports: service_cpt_settled() takes them */
	bool lost_unsettled;
	/* of request_batch.link: batches with replies to be sent */
	struct list flush;
	/* of reply_message.link: messages that are not delivered yet */
	struct list replies;
	/* of long_reply.link: bodies that are not fetched yet */
	struct list long_replies;
	/* how many of @replies and @long_replies ulrpc_shutdown() waits for */
	unsigned int answers;
	/* the request whose inline handler runs now; NULL: none. Since when:
	 * shard_stamp() */
	struct ulrpc_request *running;
	uint64_t running_since;
	struct ulnet_work flush_work;
	bool flush_scheduled;
	/* Requests whose callbacks are to be called (cancel.h). */
	struct list canceled; /* of ulrpc_request.cancel_link */
	struct ulnet_work cancel_work;
	bool cancel_scheduled;
	/* Read by any thread: the request whose callback is being called (NULL:
	 * none), and the thread that calls it. */
	_Atomic(struct ulrpc_request *) told;
	_Atomic pthread_t teller;

	/* written by this CPT, read by all: */
	_Atomic uint32_t under_way; /* requests under way */
	/* those of them whose bodies are being got (serve/request.h) */
	_Atomic uint32_t being_got;
	/* bytes charged for requests under way, and for replies */
	_Atomic uint64_t used_bytes;
	/* counts changes of under_way and used_bytes */
	uint32_t changes;
	/* bytes of messages that are kept after they were sent; a part of
	 * used_bytes */
	_Atomic uint64_t kept_bytes;
	/* calls that service_promise() has allowed clients, and until when (ns)
	 * they count */
	_Atomic uint32_t promised;
	_Atomic uint64_t promised_until;
	uint64_t refusals; /* bytes of messages that contain only refusals */
	/* The share to which requests without a connection are charged.
	 * Messages of refusals have shares of their own, and are charged to
	 * this one only if there was no memory for one. */
	struct share unconnected;
	struct host unconnected_host;

	struct stat_service *stats; /* NULL: there was no memory for it */
	struct estimate *estimates; /* one for each of methods[] */
	/* estimate: us, the longest estimate of all methods. estimates_until:
	 * ns: until when it is valid */
	uint64_t estimate, estimates_until;
	/* for service_may_log(): the second to which @log_lines belongs */
	uint64_t log_second;
	unsigned int log_lines;
	/* messages that were forwarded to other CPTs, and are not back yet */
	unsigned int forwards;
};

extern const struct fsm_state service_cpt_states[SERVICE_CPT_STATES];

/* Called when something of @sc has ended: makes @sc GONE if nothing is left,
 * and wakes the threads that wait for that. When no request is under way any
 * more, batches of LOST ones drop their exports: whoever needs the export of
 * such a batch uses it before he calls this. */
void service_cpt_settled(struct service_cpt *sc);

/* May one more warning that peers can cause be logged? */
bool service_may_log(struct service_cpt *sc);

static inline bool service_cpt_ended(const struct service_cpt *sc)
{
	return sc->fsm.state >= SERVICE_CPT_ABORTED;
}

/* Charges @requests and @bytes to @share; negative numbers give back. @share
 * may be freed by this. */
static inline void service_charge(struct service_cpt *sc, struct share *share,
				  int requests, int64_t bytes)
{
	sc->changes++;
	atomic_store_explicit(
		&sc->under_way,
		atomic_load_explicit(&sc->under_way, memory_order_relaxed) +
			(uint32_t)requests,
		memory_order_relaxed);
	atomic_store_explicit(
		&sc->used_bytes,
		atomic_load_explicit(&sc->used_bytes, memory_order_relaxed) +
			(uint64_t)bytes,
		memory_order_relaxed);
	share_charge(share, requests, bytes, 0);
}

/* Charges @bytes of refusals to @share; a negative number gives back. @share
 * may be freed by this. */
static inline void service_charge_refusal(struct service_cpt *sc,
					  struct share *share, int64_t bytes)
{
	sc->refusals += (uint64_t)bytes;
	share_charge(share, 0, 0, bytes);
}

/* Gives back @body of @size bytes, GIVE_BACK_MIN or more, which the slab of @sc
 * has returned. It is charged to @share, in addition to what is charged before,
 * until it has been given back. */
void service_body_put(struct service_cpt *sc, struct share *share, void *body,
		      size_t size);
/* What service_cpt.bodies.gave calls. */
void service_on_given(struct give_back *g, void *share, size_t bytes);

/* Counts @bytes more of messages that are kept; a negative number: fewer. */
static inline void service_count_kept(struct service_cpt *sc, int64_t bytes)
{
	atomic_store_explicit(
		&sc->kept_bytes,
		atomic_load_explicit(&sc->kept_bytes, memory_order_relaxed) +
			(uint64_t)bytes,
		memory_order_relaxed);
	stat_now(sc->shard, RPC_STAT_answers_kept_bytes, bytes);
}

/* ---- the service ---- */

/* The workers of a service that are in ulrpc_request_sleep(3). When a request
 * of the service is canceled (cancel.h), all of them wake up, and those of
 * other requests go back to sleep. */
struct sleepers {
	pthread_mutex_t lock;
	struct ulnet_cond woken;
	atomic_uint n;
};

struct ulrpc_method {
	uint32_t number;
	enum ulrpc_priority priority; /* never ULRPC_PRIORITY_DEFAULT */
	ulrpc_handler_fn handler;     /* NULL: a free place in the table */
	void *arg;
	enum ulrpc_run run;
	enum ulrpc_semantics semantics;
	/* the lowest flavour that the method accepts */
	enum ulrpc_flavour flavour;
	const char *name;
	/* ns: mean of how long a handler takes on a worker to reply, without
	 * the time in which bulk is moved */
	struct mean cost;
};

/* What may change while the service runs (rpc/server/set.h): written on CPT 0,
 * read by all CPTs and workers. */
struct service_limits {
	_Atomic uint32_t queue_max, window, segments, workers_max;
	_Atomic uint32_t request_limit, reply_limit;
	_Atomic uint64_t queue_bytes_max, retry_after;
};

#define service_limit(svc, name) \
	atomic_load_explicit(&(svc)->limits.name, memory_order_relaxed)
#define service_limit_set(svc, name, value)                 \
	atomic_store_explicit(&(svc)->limits.name, (value), \
			      memory_order_relaxed)

struct ulrpc_service {
	/* immutable after the start: */
	struct ulrpc *rpc;
	void (*free)(struct ulrpc_service *svc); /* called when refs is 0 */
	/* a copy, without its names and methods; of what is in @limits, only
	 * what it was at first */
	struct ulrpc_service_conf conf;
	char name[ULRPC_SERVICE_NAME];
	unsigned int portal;
	/* What tells the service from others of the node: its portal if it has
	 * that to itself, else a number from LNET_PORTALS on, which requests
	 * have. */
	unsigned int number;
	/* What its clients name it by in requests: the number, and how often
	 * that had gone to another service before, times SERVICE_NUMBERS. 0:
	 * they name none, because no other service has had its portal. */
	uint32_t mark;
	/* This is no service of the user: it has the portal that services
	 * share, gives their requests to them, and refuses all others. */
	bool shared;
	uint32_t message_max;
	/* the lowest flavour that the service accepts */
	enum ulrpc_flavour least;
	enum ulrpc_flavour most;      /* the highest `flavour` of its methods */
	struct ulrpc_method *methods; /* hash table by the method's number */
	uint32_t methods_mask;
	/* NULL: requests have no interceptors */
	struct request_chain *chain;
	struct intercepted *intercepted; /* a place for each method */
	char *names;
	const char **order; /* of the methods, as given, up to NULL; in names */
	struct durables durables;
	unsigned int ncpts;
	bool has_exec;
	struct service_cpt *cpt; /* an array of rpc->ncpts */

	struct service_limits limits;
	struct exec exec;
	/* what the policy says, and its text; owner: CPT 0 */
	struct sched_plan plan;
	char *policy;
	struct sleepers sleepers; /* used by any thread */
	/* The client that continuations of LOST requests are queued for, and
	 * its host. */
	struct sched_client lost;
	struct sched_host lost_host;
	_Atomic bool exec_closed; /* exec_close() has been called */
	struct ulnet_work exec_work;
	/* one reference of its own, and one for each LOST request */
	_Atomic unsigned int refs;

	/* guarded by rpc->wait.lock; in the masks, bit i is for CPT i: */
	struct list link; /* node in services.all */
	/* mask of CPTs on which the service has no requests under way */
	uint32_t idle;
	/* mask of CPTs on which the service receives no requests any more */
	uint32_t shut;
	uint32_t gone; /* mask of CPTs on which the service is GONE */
	bool workers;  /* workers were started, and not all have ended */

	bool started; /* ulrpc_service_start() has succeeded */
	/* any thread: enum ulrpc_health; UNKNOWN until it is started */
	atomic_int health;
};

/* The numbers of services (ulrpc_service.number) are less than this. */
#define SERVICE_NUMBERS 1024

struct services {
	struct durable_keys *durable_keys;
	/* guarded by rpc->wait.lock: */
	struct list all; /* of ulrpc_service.link */
	/* The service that has the portal which services share; NULL: all have
	 * portals of their own. shared_up: it has been started. */
	struct ulrpc_service *shared;
	bool shared_up;
	/* where to look for a portal, and for a number, that is free */
	unsigned int next_portal, next_number;
	/* former[i]: name of the service that had the number i last, if none
	 * has it now */
	char former[SERVICE_NUMBERS][ULRPC_SERVICE_NAME];
	/* had[i]: CRC32C of the name of the service that had the number i last,
	 * or has it, 0: none had it; and how often it went to a service with
	 * another name */
	struct number_had {
		uint32_t name, times;
	} had[SERVICE_NUMBERS];

	/* owner: the CPT. For each CPT, a list of service_cpt.link; and the
	 * same services by their numbers. */
	struct list *shard;
	struct service_cpt *(*numbered)[SERVICE_NUMBERS];
};

/* The services on the CPT of @s: a list of service_cpt.link. */
static inline struct list *services_of(const struct shard *s)
{
	return &s->rpc->services->shard[s->cpt];
}

static inline struct ulrpc_method *service_method(
	const struct ulrpc_service *svc, uint32_t number)
{
	uint32_t i = number & svc->methods_mask;

	while (svc->methods[i].handler && svc->methods[i].number != number)
		i = (i + 1) & svc->methods_mask;
	return svc->methods[i].handler ? &svc->methods[i] : NULL;
}

/* What all CPTs together use of a service. Other CPTs may change it while it is
 * added up. */
struct service_sum {
	uint64_t requests; /* requests under way */
	uint64_t bytes;
	uint64_t kept; /* sum of service_cpt.kept_bytes; a part of @bytes */
};

static inline struct service_sum service_sum(const struct ulrpc_service *svc)
{
	const struct service_cpt *end = svc->cpt + svc->ncpts;
	struct service_sum sum = { 0 };

	for (const struct service_cpt *sc = svc->cpt; sc < end; sc++) {
		sum.requests += atomic_load_explicit(&sc->under_way,
						     memory_order_relaxed);
		sum.bytes += atomic_load_explicit(&sc->used_bytes,
						  memory_order_relaxed);
		sum.kept += atomic_load_explicit(&sc->kept_bytes,
						 memory_order_relaxed);
	}
	return sum;
}

/* Counts one more request of @sc whose body is being got; @n is -1: one fewer.
 */
static inline void service_count_got(struct service_cpt *sc, int n)
{
	atomic_store_explicit(
		&sc->being_got,
		atomic_load_explicit(&sc->being_got, memory_order_relaxed) +
			(uint32_t)n,
		memory_order_relaxed);
}

/* Returns how many requests wait for workers, or have them. Those whose bodies
 * are being got do neither yet, and may take long. */
static inline uint64_t service_work(const struct ulrpc_service *svc)
{
	uint64_t n = service_sum(svc).requests;

	for (unsigned int i = 0; i < svc->ncpts; i++) {
		uint64_t got = atomic_load_explicit(&svc->cpt[i].being_got,
						    memory_order_relaxed);

		n -= MIN(n, got);
	}
	return n;
}

/* Clients get shares of this many times the configured limits, so that a single
 * client, on a single host, gets the configured limit. */
#define SERVICE_LIMITS 4

/* May @bytes more be charged to @share? */
static inline bool service_has_bytes(const struct service_cpt *sc,
				     const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;

	return shares_allow(
		share->used.bytes, share->host->used.bytes,
		service_sum(svc).bytes,
		SERVICE_LIMITS * service_limit(svc, queue_bytes_max), bytes);
}

/* Is there no room for one more request, with @bytes, of the client of @share?
 * A request that exceeds the whole limit is taken if its client has nothing
 * charged, and all that others have charged is kept replies. */
static inline bool service_is_full(const struct service_cpt *sc,
				   const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;
	const struct usage *mine = &share->used, *host = &share->host->used;
	struct service_sum all = service_sum(svc);

	return !shares_allow(mine->requests + 1, host->requests, all.requests,
			     SERVICE_LIMITS *
				     (uint64_t)service_limit(svc, queue_max),
			     1) ||
	       (!shares_allow(mine->bytes, host->bytes, all.bytes,
			      SERVICE_LIMITS *
				      service_limit(svc, queue_bytes_max),
			      bytes) &&
		(mine->bytes || all.bytes > all.kept));
}

/* Called when a client opens the service: returns how many calls it may send at
 * once. That is half of what the service can take and has not promised to other
 * clients in the last 100 ms; what was promised earlier has been sent by now.
 * So a client that comes alone can occupy all workers at once, and many clients
 * that come together, for instance after a restart, do not send more than can
 * be taken. 0: nothing is left. */
uint32_t service_promise(struct service_cpt *sc, uint64_t now);

/* Returns for how long (us) a client is to wait before it sends a refused
 * request again. @again: ns until there may be room; 0: not known, so half of
 * the estimated time of the requests that workers have, or are to have, is
 * used. */
static inline uint64_t service_retry_after(const struct ulrpc_service *svc,
					   uint64_t again)
{
	if (!again && svc->has_exec)
		again = mean_value(&svc->exec.worker_time) * service_work(svc) /
			service_limit(svc, workers_max) / 2;
	return MAX(service_limit(svc, retry_after), again / NSEC_PER_USEC);
}

/* Drops a reference, and frees @svc if that was the last one. Any thread. */
static inline void service_unref(struct ulrpc_service *svc)
{
	if (atomic_fetch_sub(&svc->refs, 1) == 1)
		svc->free(svc);
}

/* ---- estimates ---- */

/*
 * How long requests take on a CPT, by method, from what they took lately
 * (rpc/estimate.h): in the queue and in the handler, but not in the gate.
 * Clients are told the longest estimate of all methods when they open the
 * service, and with replies, and use it for methods that they have not called
 * lately. Requests are observed in runs (rpc/run.h), so a single one costs
 * nothing here. Owner: the CPT.
 */

/* Allocates sc->estimates. Returns 0 or -ENOMEM. */
int estimates_init(struct service_cpt *sc) must_check;
void estimates_fini(struct service_cpt *sc);
/* Adds the estimates of all methods to @sum. Returns 0 or -ENOMEM. */
int estimates_gauge(struct service_cpt *sc, struct stat_shard *sum);
/* What runs.learn[STAT_REQUESTS] calls. */
void estimates_learn(struct shard *s, const struct run *run);
/* Computes sc->estimate anew, from all methods. @now: ns. */
void estimates_renew(struct service_cpt *sc, uint64_t now);

/* Returns us: the longest estimate of all methods, at most 100 ms old; 0: none
 * is known. */
static inline uint64_t estimates_told(struct service_cpt *sc, uint64_t now)
{
	if (unlikely(now >= sc->estimates_until))
		estimates_renew(sc, now);
	return sc->estimate;
}

/* How services begin and end: rpc/server/services.c. */
extern const struct rpc_part service_part;

#endif
