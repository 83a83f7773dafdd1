/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service: its methods, its workers (exec.h), which serve all CPTs, and what
 * of it is on each CPT.
 *
 * A service is limited to four times queue_max requests and queue_bytes_max
 * bytes. Each host has its share of that, and each client its share of its
 * host's (queue/share.h): a client alone gets half of a half, which is the
 * configured limit.
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

/* UP -> CLOSED -> ABORTED -> STOPPED -> GONE */
enum service_cpt_state {
	SERVICE_CPT_UP,
	SERVICE_CPT_CLOSED,  /* new requests are refused */
	SERVICE_CPT_ABORTED, /* requests under way have ended, or soon will */
	SERVICE_CPT_STOPPED, /* buffers are being unlinked; requests that still
			      * come, from other CPTs, too, are refused */
	SERVICE_CPT_GONE,    /* nobody refers to it */
	SERVICE_CPT_STATES
};

/* A service on a CPT: its inbox, requests and replies. Owner: the CPT. */
struct service_cpt {
	struct ulrpc_service *service;
	struct shard *shard;
	struct list link; /* services.shard[] */
	struct fsm fsm;	  /* enum service_cpt_state */
	struct inbox inbox;
	bool open;    /* the inbox is */
	bool leaving; /* all CPTs are STOPPED: no request comes any more */

	struct pool requests;	    /* struct ulrpc_request */
	struct pool batches;	    /* struct request_batch */
	struct pool messages;	    /* struct reply_message */
	struct slab slab;	    /* bodies of requests, and of replies */
	struct list active;	    /* ulrpc_request.link: under way */
	struct ulrpc_request *lost; /* ulrpc_request.lost_link: LOST ones */
	struct list flush; /* request_batch.link: with replies to be sent */
	struct list replies;	    /* reply_message.link: not delivered yet */
	struct list long_replies;   /* long_reply.link: not fetched yet */
	unsigned int answers;	    /* of both, those that count as work */
	struct ulrpc_request *running; /* the inline handler's that runs */
	struct ulnet_work flush_work;
	bool flush_scheduled;
	/* Requests whose callbacks are to be called: cancel.h. */
	struct list canceled; /* ulrpc_request.cancel_link */
	struct ulnet_work cancel_work;
	bool cancel_scheduled;
	/* Any thread may read: the request whose callback is being called, and
	 * the thread that calls it. */
	_Atomic(struct ulrpc_request *) told;
	_Atomic pthread_t teller;

	/* Written by this CPT, read by all. */
	_Atomic uint32_t under_way;  /* requests */
	_Atomic uint64_t used_bytes; /* charged for these, and for replies */
	uint32_t changes;	     /* how often these two have changed */
	/* Of used_bytes, those of messages that were sent, and are kept. */
	_Atomic uint64_t kept_bytes;
	uint64_t refusals; /* bytes of all messages of refusals */
	/* The share of requests without a connection. As soon as a message is
	 * charged to it they get one of their own, if there is memory. */
	struct share unconnected;
	struct host unconnected_host;

	struct stat_service *stats;	    /* NULL: no memory */
	struct estimate *estimates;	    /* one for each of methods[] */
	uint64_t estimate, estimates_until; /* us: the longest; ns: valid until
					     * then */
	uint64_t log_second;		    /* service_may_log() */
	unsigned int log_lines;
	unsigned int forwards; /* messages that are with other CPTs */
};

extern const struct fsm_state service_cpt_states[SERVICE_CPT_STATES];

/* Something of @sc has ended: makes @sc GONE if nothing is left, and wakes who
 * waits for that. */
void service_cpt_settled(struct service_cpt *sc);

/* May one more warning be logged that peers can cause? */
bool service_may_log(struct service_cpt *sc);

static inline bool service_cpt_ended(const struct service_cpt *sc)
{
	return sc->fsm.state >= SERVICE_CPT_ABORTED;
}

/* Charges so many requests and bytes to @share. Negative: gives them back;
 * @share may be gone afterwards. */
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

/* The same for the bytes of refusals. */
static inline void service_charge_refusal(struct service_cpt *sc,
					  struct share *share, int64_t bytes)
{
	sc->refusals += (uint64_t)bytes;
	share_charge(share, 0, 0, bytes);
}

/* So many more bytes of messages are kept; negative: fewer. */
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

/* The workers of a service that are in ulrpc_request_sleep(3). All of them wake
 * when a request of the service is canceled (cancel.h), and those of other
 * requests sleep on. */
struct sleepers {
	pthread_mutex_t lock;
	struct ulnet_cond woken;
	atomic_uint n;
};

struct ulrpc_method {
	uint32_t number;
	enum ulrpc_priority priority; /* not the default one */
	ulrpc_handler_fn handler;     /* NULL: a free place of the table */
	void *arg;
	enum ulrpc_run run;
	enum ulrpc_semantics semantics;
	const char *name;
	struct mean cost; /* ns: from its start to its reply, without the time
			   * in which bulk is moved; of workers only */
};

struct ulrpc_service {
	/* immutable after start */
	struct ulrpc *rpc;
	void (*free)(struct ulrpc_service *svc); /* refs is 0 */
	struct ulrpc_service_conf conf;		 /* without names and methods */
	char name[ULRPC_SERVICE_NAME];
	unsigned int portal;
	uint32_t message_max;
	struct ulrpc_method *methods; /* a table by number */
	uint32_t methods_mask;
	char *names;
	struct durables durables;
	unsigned int ncpts;
	bool has_exec;
	struct service_cpt *cpt; /* rpc->ncpts of them */

	struct exec exec;
	struct sched_plan plan;	  /* conf.policy */
	struct sleepers sleepers; /* workers; any thread */
	/* Whose the continuations of lost requests are. */
	struct sched_client lost;
	struct sched_host lost_host;
	_Atomic bool exec_closed; /* exec_close() has been called */
	struct ulnet_work exec_work;
	_Atomic unsigned int refs; /* its own, and requests that are lost */

	/* rpc->wait.lock; a bit for each CPT */
	struct list link; /* services.all */
	uint32_t idle;	  /* has no requests under way */
	uint32_t shut;	  /* receives no requests any more */
	uint32_t gone;	  /* is GONE */
	bool workers;	  /* there are some */

	bool started; /* ulrpc_service_start() has succeeded */
};

struct services {
	struct durable_keys *durable_keys;
	struct list all;	  /* ulrpc_service.link; rpc->wait.lock */
	unsigned int next_portal; /* the same */
	/* The last service of each portal that has none now; the same. */
	char former[LNET_PORTALS][ULRPC_SERVICE_NAME];
	struct list *shard; /* of service_cpt.link; by CPT, its owner's */
};

static inline struct ulrpc_method *service_method(
	const struct ulrpc_service *svc, uint32_t number)
{
	uint32_t i = number & svc->methods_mask;

	while (svc->methods[i].handler && svc->methods[i].number != number)
		i = (i + 1) & svc->methods_mask;
	return svc->methods[i].handler ? &svc->methods[i] : NULL;
}

/* What all CPTs together use of a service, as far as this one knows. */
struct service_sum {
	uint64_t requests; /* under way */
	uint64_t bytes;
	uint64_t kept; /* of bytes: service_cpt.kept_bytes */
};

static inline struct service_sum service_sum(const struct ulrpc_service *svc)
{
	struct service_sum sum = { 0 };

	for (unsigned int i = 0; i < svc->ncpts; i++) {
		const struct service_cpt *sc = &svc->cpt[i];

		sum.requests += atomic_load_explicit(&sc->under_way,
						     memory_order_relaxed);
		sum.bytes += atomic_load_explicit(&sc->used_bytes,
						  memory_order_relaxed);
		sum.kept += atomic_load_explicit(&sc->kept_bytes,
						 memory_order_relaxed);
	}
	return sum;
}

/* Shares are of this many times the configured limits, so that one client
 * alone, on one host alone, has the configured limit. */
#define SERVICE_LIMITS 4

/* Is there room for @bytes more of @share's client? */
static inline bool service_has_bytes(const struct service_cpt *sc,
				     const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;

	return shares_allow(share->used.bytes, share->host->used.bytes,
			    service_sum(svc).bytes,
			    SERVICE_LIMITS * svc->conf.queue_bytes_max, bytes);
}

/* Is there no room for one more request, with @bytes, of @share's client? A
 * request that exceeds the whole limit is taken when no other is under way, and
 * its client has acknowledged all replies. */
static inline bool service_is_full(const struct service_cpt *sc,
				   const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;
	const struct usage *mine = &share->used, *host = &share->host->used;
	struct service_sum all = service_sum(svc);

	return !shares_allow(mine->requests + 1, host->requests, all.requests,
			     SERVICE_LIMITS * (uint64_t)svc->conf.queue_max,
			     1) ||
	       (!shares_allow(mine->bytes, host->bytes, all.bytes,
			      SERVICE_LIMITS * svc->conf.queue_bytes_max,
			      bytes) &&
		(mine->bytes || all.bytes > all.kept));
}

/* us after which a refused request is to come again. @again: ns until there may
 * be room; 0: not known: then half of the time that the requests under way may
 * take. */
static inline uint64_t service_retry_after(const struct ulrpc_service *svc,
					   uint64_t again)
{
	if (!again && svc->has_exec)
		again = mean_value(&svc->exec.worker_time) *
			service_sum(svc).requests / svc->conf.workers_max / 2;
	return MAX(svc->conf.retry_after, again / NSEC_PER_USEC);
}

/* Any thread; may free @svc. */
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

/* -ENOMEM. */
int estimates_init(struct service_cpt *sc) must_check;
void estimates_fini(struct service_cpt *sc);
/* Adds the estimates of all methods to @sum. -ENOMEM. */
int estimates_gauge(struct service_cpt *sc, struct stat_shard *sum);
/* runs.learn, of requests. */
void estimates_learn(struct shard *s, const struct run *run);
/* Brings sc->estimate up to date. */
void estimates_renew(struct service_cpt *sc, uint64_t now);

/* us: the longest estimate of all methods; 0: none is known. */
static inline uint64_t estimates_told(struct service_cpt *sc, uint64_t now)
{
	if (unlikely(now >= sc->estimates_until))
		estimates_renew(sc, now);
	return sc->estimate;
}

/* How services begin and end: rpc/server/services.c. */
extern const struct rpc_part service_part;

#endif
