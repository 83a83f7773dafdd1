/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service: which methods it has, what of it is on each CPT, and how much it
 * holds. Workers (exec.h) are the service's, for all CPTs. How services begin
 * and end: services.h.
 *
 * What a service holds is limited, to four times queue_max requests and
 * queue_bytes_max bytes. Each host, which is a NID, has its share of that
 * (base/share.h), and each client its share of its host's: a client alone gets
 * half of a half, which is the configured limit. Nobody can make up a host, but
 * a host can have any number of connections; and clients of one host are to be
 * fair to each other, too.
 *
 * Bytes are the memory that is really held for a request: itself, its body, the
 * descriptors of its bulk, and, from the time when it is taken, room for the
 * longest reply that it may have. Later the reply itself counts, until LNet has
 * let go of it, and, if it is kept (reply.h), the client has, too. So a request
 * is refused before it is executed, and no reply is ever without room.
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
struct ulrpc_request;
struct ulrpc_service;

/* ---- on a CPT ---- */

/*
 * What of a service is on a CPT: the inbox, the requests that are being served
 * there, and what is held for these and for their replies.
 *
 *	UP -> CLOSED -> ABORTED -> STOPPED -> GONE
 */
enum service_cpt_state {
	SERVICE_CPT_UP,
	SERVICE_CPT_CLOSED,  /* new requests are refused */
	SERVICE_CPT_ABORTED, /* what was under way has ended, or is about to */
	SERVICE_CPT_STOPPED, /* buffers are being unlinked; what still comes, of
			      * other CPTs, too, is refused */
	SERVICE_CPT_GONE,    /* nobody refers to it */
	SERVICE_CPT_STATES
};

/* Owner: the CPT. */
struct service_cpt {
	struct ulrpc_service *service;
	struct shard *shard;
	struct list link; /* services.shard[] */
	struct fsm fsm;	  /* enum service_cpt_state */
	struct inbox inbox;
	bool open;    /* the inbox is */
	bool leaving; /* STOPPED, as are all others: nothing comes any more */

	struct pool requests;	    /* struct ulrpc_request */
	struct pool origins;	    /* struct origin */
	struct pool messages;	    /* struct reply_message */
	struct slab slab;	    /* bodies of requests, and of replies */
	struct list active;	    /* ulrpc_request.link: under way */
	struct ulrpc_request *lost; /* those that only a handler has any more */
	struct list flush;	    /* origin.link: with replies to be sent */
	struct list replies;	    /* reply_message.link: not delivered yet */
	struct list long_replies;   /* long_reply.link: not fetched yet */
	unsigned int answers;	    /* of both, those that count as work */
	struct ulrpc_request *running; /* inline, now */
	struct ulnet_work flush_work;
	bool flushing; /* flush_work has been given */
	/* Callbacks of requests that are canceled: cancel.h. */
	struct list canceled; /* ulrpc_request.cancel_link */
	struct ulnet_work cancel_work;
	bool telling; /* cancel_work has been given */
	/* any thread may read: whose is called now, and by which thread */
	_Atomic(struct ulrpc_request *) told;
	_Atomic pthread_t teller;

	/* Written here, read by all CPTs. */
	_Atomic uint32_t held;	     /* requests under way */
	_Atomic uint64_t held_bytes; /* that they hold, and replies */
	uint32_t changes;	     /* of both, here */
	/* Of held_bytes, those of messages that are only there for replies that
	 * may be asked for. */
	_Atomic uint64_t kept_bytes;
	uint64_t refusals; /* bytes that they take, of all clients */
	/* For requests without a connection. They get a share of their own when
	 * something is held for them, unless there is no memory for that. */
	struct share unknown;
	struct host strangers;

	struct stat_service *stats; /* NULL: no memory */
	/* estimates.h: as many as service.methods has; the longest, in us, and
	 * until when, in ns, that is new enough. */
	struct estimate *estimates;
	uint64_t estimate, estimates_until;
	uint64_t log_second; /* for what strangers cause */
	unsigned int log_lines;
	unsigned int forwards; /* passed on to other CPTs, now */
};

extern const struct fsm_state service_cpt_states[SERVICE_CPT_STATES];

/* Something of @sc has ended that its end may have waited for. */
void service_cpt_settled(struct service_cpt *sc);

/* May one more line be logged about something that strangers can cause? */
bool service_may_log(struct service_cpt *sc);

static inline bool service_cpt_ended(const struct service_cpt *sc)
{
	return sc->fsm.state >= SERVICE_CPT_ABORTED;
}

/* The client of @share has so many more (or fewer) requests under way, and
 * bytes held. If it has fewer, @share may be gone afterwards. */
static inline void service_held(struct service_cpt *sc, struct share *share,
				int requests, int64_t bytes)
{
	sc->changes++;
	atomic_store_explicit(
		&sc->held,
		atomic_load_explicit(&sc->held, memory_order_relaxed) +
			(uint32_t)requests,
		memory_order_relaxed);
	atomic_store_explicit(
		&sc->held_bytes,
		atomic_load_explicit(&sc->held_bytes, memory_order_relaxed) +
			(uint64_t)bytes,
		memory_order_relaxed);
	share_held(share, requests, bytes, 0);
}

/* As above, for the bytes of refusals. */
static inline void service_refused(struct service_cpt *sc, struct share *share,
				   int64_t bytes)
{
	sc->refusals += (uint64_t)bytes;
	share_held(share, 0, 0, bytes);
}

static inline void service_kept(struct service_cpt *sc, int64_t bytes)
{
	atomic_store_explicit(
		&sc->kept_bytes,
		atomic_load_explicit(&sc->kept_bytes, memory_order_relaxed) +
			(uint64_t)bytes,
		memory_order_relaxed);
	stat_now(sc->shard, RPC_STAT_answers_kept_bytes, bytes);
}

/* ---- the service ---- */

/*
 * The workers of a service that sleep for a request (ulrpc_request_sleep(3)),
 * until a time or until the request is canceled. They wake together when any
 * request of the service is canceled (cancel.h), and go on sleeping if it is
 * not theirs.
 */
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
	struct mean cost; /* of a worker's: from its start to its reply,
			   * without the time in which bulk is moved, which
			   * is the caller's */
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
	/* The client that continuations of lost requests count for. */
	struct sched_client lost;
	struct sched_host lost_host;
	_Atomic bool exec_closed; /* exec_close() has been called */
	struct ulnet_work exec_work;
	_Atomic unsigned int refs; /* its own, and requests that are lost */

	/* rpc->wait.lock */
	struct list link; /* services.all */
	uint32_t idle;	  /* a bit for each CPT with nothing under way */
	uint32_t shut;	  /* for each that nothing comes to any more */
	uint32_t gone;	  /* and for each that is GONE */
	bool workers;	  /* there are some */

	bool started; /* completely: who asked for that hears of the end */
};

struct services {
	struct durable_keys *durable_keys;
	struct list all;	  /* ulrpc_service.link; rpc->wait.lock */
	unsigned int next_portal; /* the same */
	/* Whose it was last, of what nobody has now; the same. */
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

/* What is held of a service on all CPTs, as far as this one has heard. */
struct service_sum {
	uint64_t requests; /* under way */
	uint64_t bytes;
	uint64_t kept; /* bytes of these: of calls that are over */
};

static inline struct service_sum service_sum(const struct ulrpc_service *svc)
{
	struct service_sum sum = { 0 };

	for (unsigned int i = 0; i < svc->ncpts; i++) {
		const struct service_cpt *sc = &svc->cpt[i];

		sum.requests +=
			atomic_load_explicit(&sc->held, memory_order_relaxed);
		sum.bytes += atomic_load_explicit(&sc->held_bytes,
						  memory_order_relaxed);
		sum.kept += atomic_load_explicit(&sc->kept_bytes,
						 memory_order_relaxed);
	}
	return sum;
}

/* Shares are taken of this many times the configured limits, so that one client
 * alone, on one host alone, has the configured limit. */
#define SERVICE_LIMITS 4

/* Is there room for so many bytes more of @share's client? */
static inline bool service_has_bytes(const struct service_cpt *sc,
				     const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;

	return shares_allow(share->held.bytes, share->host->held.bytes,
			    service_sum(svc).bytes,
			    SERVICE_LIMITS * svc->conf.queue_bytes_max, bytes);
}

/* Is there no room for one more request, with @bytes, of @share's client? A
 * request that exceeds the whole limit is taken when nothing is under way, and
 * its client has acknowledged all replies. */
static inline bool service_is_full(const struct service_cpt *sc,
				   const struct share *share, uint64_t bytes)
{
	const struct ulrpc_service *svc = sc->service;
	const struct held *mine = &share->held, *host = &share->host->held;
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
 * be room; 0: not known, so the time in which half of what is under way may be
 * done. */
static inline uint64_t service_retry_after(const struct ulrpc_service *svc,
					   uint64_t again)
{
	if (!again && svc->has_exec)
		again = mean_value(&svc->exec.hold) *
			service_sum(svc).requests / svc->conf.workers_max / 2;
	return MAX(svc->conf.retry_after, again / NSEC_PER_USEC);
}

/* A lost request was answered. Any thread; may free @svc. */
static inline void service_unref(struct ulrpc_service *svc)
{
	if (atomic_fetch_sub(&svc->refs, 1) == 1)
		svc->free(svc);
}

#endif
