/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a service is on a CPT: the inbox, the requests that are being served
 * there, and what is held for these and for their replies.
 *
 *	UP -> CLOSED -> ABORTED -> STOPPED -> GONE
 *
 * Owner: the CPT.
 */
#ifndef RPC_SERVICE_CPT_H
#define RPC_SERVICE_CPT_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/fsm.h"
#include "base/pool.h"
#include "rpc/inbox.h"
#include "rpc/rpc.h"
#include "rpc/server/share.h"
#include "rpc/slab.h"
#include "rpc/stats/stat.h"

struct estimate;
struct ulrpc_request;
struct ulrpc_service;

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
	struct list oversizes;	    /* oversize.link: not fetched yet */
	unsigned int answers;	    /* of both, those that count as work */
	struct ulrpc_request *running; /* inline, now */
	struct ulnet_work flush_work;
	bool flushing; /* that is under way */
	/* Callbacks of requests that are canceled: cancel.h. */
	struct list canceled; /* ulrpc_request.cancel_link */
	struct ulnet_work cancel_work;
	bool telling; /* that is under way */
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
	/* For requests without a connection, until something is held for them;
	 * after that, too, if there is no memory for a share of their own. */
	struct share unknown;
	struct host strangers;

	struct stat_service *stats; /* NULL: no memory */
	/* estimates.h: as many as service.methods has; the longest, in us, and
	 * until when, in ns, that is new enough. */
	struct estimate *estimates;
	uint64_t estimate, estimates_until;
	uint64_t log_second; /* for what strangers cause */
	unsigned int log_lines;
	unsigned int strays; /* passed on to other CPTs, now */
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

/* There are so many more (or less) requests under way, and bytes held, of
 * @share's client. When they are less, @share may be gone. */
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

#endif
