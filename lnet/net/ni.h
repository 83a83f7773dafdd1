/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local interfaces (NIs).
 *
 * The control side creates an NI. It is freed when each CPT has let it go,
 * which a CPT does once the LND has stopped there and none of its messages uses
 * the NI. Members are immutable, atomic, or split by CPT (struct ni_cpt).
 */
#ifndef LNET_NI_H
#define LNET_NI_H

#include <stdatomic.h>
#include "base/fsm.h"
#include "lnd/lnd.h"
#include "lnet/core/stat.h"
#include "lnet/nid/nid.h"
#include "ulnet/path.h"

struct lnet_cpt;
struct msg_out;

enum ni_state { NI_INIT, NI_ACTIVE, NI_DELETING, NI_STATES };
extern const struct fsm_state ni_states[NI_STATES];

/* What policies say of a local NI (path/verdict.h). */
struct ni_verdict {
	uint64_t as_of; /* valid while cpt.rules has this value */
	uint32_t priority, net_priority;
};

/* The part of an NI that a CPT owns. */
struct ni_cpt {
	uint32_t refs; /* messages that use it, and 1 until the LND stops */
	int32_t credits_max;
	_Atomic int32_t credits; /* one writer; negative: so many queued */
	_Atomic int32_t credits_min;
	/* of msg_out.link: messages that wait for credits, .first before: */
	struct list first, queue;
	uint64_t use; /* number of the choice that took it last */
	struct ni_verdict verdict;
	uint64_t lost_in;	/* turn of the last loss of health; 0: none */
	_Atomic uint64_t heard; /* ns: last message received; one writer */
	stat_t failed[LNET_CAUSE_COUNT]; /* sends, by cause */
	bool stopped;
	struct work shutdown; /* node/nis.c: shuts a deleted NI down */
	struct list leaving;  /* in whole_cpt.leaving until then */
	struct lnet_ni *ni;
	struct lnet_cpt *on;
	int32_t counted; /* sim/check.c */
	struct traffic_stats traffic;
};

struct lnet_ni {
	struct lnd_ni lnd; /* the part that its LND sees */
	struct lnet *node;
	uint32_t segment; /* lnet/nid/nid.h */
	uint64_t bit; /* in lnet_peer_ni.connecting_from and connected_from; the
		       * same for NIs that were started 64 apart */
	uint32_t credits_max;
	uint32_t peer_credits;
	uint32_t peer_buffer_credits; /* of a router: how many buffers a peer NI
				       * may use for messages that it sends */
	int32_t peer_timeout;		     /* s; < 0: never */
	int64_t tunables[LNET_TUNABLES_MAX]; /* values, for lnd.tunables */
	struct fsm fsm;			     /* control side */
	bool *gone;	/* NULL, or for node_set_gone() when it is freed */
	atomic_bool up; /* no hard failure */
	_Atomic int32_t health; /* 0 .. LNET_HEALTH_MAX */
	/* discovery/recovery.c: */
	atomic_bool recovering;	     /* a CPT sends recovery pings */
	atomic_uint recovery_silent; /* those without an answer, in a row */
	atomic_bool deaf; /* nothing is received: routers report it as down */
	_Atomic uint64_t recovery_next; /* ns: of the next ping; 0: none */
	atomic_uint live;		/* CPTs that have not let it go */
	struct ni_cpt *cpt;	/* by CPT index */
};

static inline struct lnet_ni *ni_of(struct lnd_ni *lnd)
{
	return container_of(lnd, struct lnet_ni, lnd);
}

static inline bool ni_is_lo(const struct lnet_ni *ni)
{
	return lnet_nid_is_lo(&ni->lnd.nid);
}

static inline bool ni_is_up(const struct lnet_ni *ni)
{
	return atomic_load_explicit(&ni->up, memory_order_relaxed);
}

static inline int32_t ni_health(const struct lnet_ni *ni)
{
	return atomic_load_explicit(&ni->health, memory_order_relaxed);
}

static inline void ni_heard(struct ni_cpt *nc, uint64_t now)
{
	atomic_store_explicit(&nc->heard, now, memory_order_relaxed);
}

static inline void credits_set(_Atomic int32_t *c, int32_t v)
{
	atomic_store_explicit(c, v, memory_order_relaxed);
}

static inline int32_t credits_get(const _Atomic int32_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/* Creates an NI and finds its NID; does not start its LND. For ni_free().
 * Control side. */
int ni_make(struct lnet *node, const struct lnd *lnd,
	    const struct ulnet_ni_conf *conf, struct lnet_ni **ni_p) must_check;
/* Starts the LND of an NI that is not used yet. On error nothing has
 * changed. */
int ni_start(struct lnet_ni *ni) must_check;
/* Frees an NI that was not started, or that every CPT has let go. */
void ni_free(struct lnet_ni *ni);

/* Sets whether @ni is up, and logs a change, with @why it is down. Returns true
 * if it was a change. Any thread. */
bool ni_set_up(struct lnet_ni *ni, bool up, const char *why);

/* As lnet_ni_info(3). The caller must keep @ni from being freed. Any thread. */
void ni_info(const struct lnet_ni *ni, struct ulnet_ni_info *info);
/* Resets the counters of @cpt's part. Thread: @cpt's. */
void ni_stats_reset(struct lnet_ni *ni, const struct lnet_cpt *cpt);

/* As in lnd_upcalls. */
void upcall_ni_stopped(struct lnd_ni *lnd, unsigned int cpt);
unsigned int upcall_ni_cpt_of(const struct lnd_ni *lnd,
			      const struct ulnet_nid *nid);
bool upcall_large_nids(const struct lnd_ni *lnd);
uint64_t upcall_lnd_timeout(const struct lnd_ni *lnd);

/* The calling CPT does not use the NI any more. */
void ni_let_go(struct lnet_ni *ni);

/* A message on @cpt begins to use the NI; ends. */
static inline void ni_ref(struct lnet_ni *ni, unsigned int cpt)
{
	ni->cpt[cpt].refs++;
}

static inline void ni_unref(struct lnet_ni *ni, unsigned int cpt)
{
	struct ni_cpt *nc = &ni->cpt[cpt];

	BUG_ON(nc->refs == 0);
	if (--nc->refs == 0)
		ni_let_go(ni);
}

#endif
