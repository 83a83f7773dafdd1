/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local interfaces (NIs).
 *
 * The control side creates an NI. Each CPT lets the NI go when the LND has
 * stopped on that CPT and none of its messages uses the NI any more; then the
 * NI is freed. Members are immutable, atomic, or split by CPT (struct ni_cpt).
 */
#ifndef LNET_NI_H
#define LNET_NI_H

#include <pthread.h>

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

/* What policies say about a local NI (path/verdict.h). */
struct ni_verdict {
	/* the verdict is valid while cpt.rules has this value */
	uint64_t as_of;
	uint32_t priority, net_priority;
};

/* The CPT's own part of an NI. */
struct ni_cpt {
	/* number of messages that use the NI, and 1 until the LND has stopped
	 */
	uint32_t refs;
	int32_t credits_max;
	/* free credits, written by the CPT only; if negative, the number of
	 * messages that wait for one */
	_Atomic int32_t credits;
	_Atomic int32_t credits_min;
	/* of msg_out.link: messages that wait for a credit; those in .first get
	 * theirs before those in .queue */
	struct list first, queue;
	/* number of the last choice that took the NI; 0: none has */
	uint64_t use;
	struct ni_verdict verdict;
	/* turn in which the NI lost health last; 0: never */
	uint64_t lost_in;
	/* ns: when the last message was received; written by the CPT only */
	_Atomic uint64_t heard;
	stat_t failed[LNET_CAUSE_COUNT]; /* failed sends, by cause */
	bool stopped;
	struct work shutdown; /* shuts a deleted NI down: node/nis.c */
	struct list leaving;  /* in whole_cpt.leaving until .shutdown is done */
	struct lnet_ni *ni;
	struct lnet_cpt *on;
	int32_t counted; /* scratch space of sim/check.c */
	struct traffic_stats traffic;
};

struct lnet_ni {
	struct lnd_ni lnd; /* the part that the LND sees */
	/* protects lnd.interface, which may change: ni_rename() */
	pthread_mutex_t name_lock;
	struct lnet *node;
	uint32_t segment; /* number of the segment: lnet/nid/nid.h */
	/* the bit of this NI in lnet_peer_ni.connecting_from and
	 * connected_from; NIs that were started 64 starts apart share a bit */
	uint64_t bit;
	uint32_t credits_max;
	uint32_t peer_credits;
	/* for a router: number of its buffers that messages from one peer NI
	 * may use */
	uint32_t peer_buffer_credits;
	/* s of silence after which a router asks whether a peer is alive; < 0:
	 * it never asks */
	int32_t peer_timeout;
	/* the values to which lnd.tunables points */
	int64_t tunables[LNET_TUNABLES_MAX];
	struct fsm fsm; /* state of the NI, for the control side */
	/* NULL, or what node_set_gone() sets when the NI is freed */
	bool *gone;
	bool chosen;	/* added by lnet_ni_reach() */
	atomic_bool up; /* there is no hard failure */
	/* how often @up became false, and true; any thread adds */
	stat_t downs, ups;
	_Atomic int32_t health; /* 0 to LNET_HEALTH_MAX */
	/* For discovery/recovery.c: */
	atomic_bool recovering; /* a CPT sends recovery pings */
	/* recovery pings in a row that were not answered */
	atomic_uint recovery_silent;
	/* the NI receives nothing, so a router reports it as down */
	atomic_bool deaf;
	/* ns: when the next ping is due; 0: no ping is planned */
	_Atomic uint64_t recovery_next;
	/* number of CPTs that have not let the NI go */
	atomic_uint live;
	struct ni_cpt *cpt; /* array, indexed by CPT */
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

/* Is @nid in the IP network of @ni? False if that is not known. */
bool ni_is_neighbour(const struct lnet_ni *ni, const struct ulnet_nid *nid);

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

/* Creates an NI and finds its NID, but does not start its LND. To be freed with
 * ni_free(). Control side. */
int ni_make(struct lnet *node, const struct lnd *lnd,
	    const struct ulnet_ni_conf *conf, struct lnet_ni **ni_p) must_check;
/* Starts the LND of an NI that is not in use yet. On error nothing has changed.
 */
int ni_start(struct lnet_ni *ni) must_check;
/* Frees an NI that was not started, or that every CPT has let go. */
void ni_free(struct lnet_ni *ni);

/* Sets the name of the interface, for users. Any thread. */
void ni_rename(struct lnet_ni *ni, const char *name);

/* Sets whether @ni is up. If that is a change, logs it, with @why if the NI is
 * down, and returns true. Any thread. */
bool ni_set_up(struct lnet_ni *ni, bool up, const char *why);

/* Fills @info as lnet_ni_info(3) does. The caller must keep @ni from being
 * freed. Any thread. */
void ni_info(struct lnet_ni *ni, struct ulnet_ni_info *info);
/* Resets the counters in @cpt's part of the NI. Thread: @cpt's. */
void ni_stats_reset(struct lnet_ni *ni, const struct lnet_cpt *cpt);

/* As in lnd_upcalls. */
void upcall_ni_stopped(struct lnd_ni *lnd, unsigned int cpt);
unsigned int upcall_ni_cpt_of(const struct lnd_ni *lnd,
			      const struct ulnet_nid *nid);
bool upcall_large_nids(const struct lnd_ni *lnd);
uint64_t upcall_lnd_timeout(const struct lnd_ni *lnd);

/* To be called when refs has become 0: the calling CPT does not use the NI any
 * more. */
void ni_let_go(struct lnet_ni *ni);

/* Count a message on @cpt that begins to use the NI, or ends. */
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
