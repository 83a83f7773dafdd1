/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Local interfaces.
 *
 * An NI is made by the control side, and lives until each CPT has let it go:
 * the CPT's part goes when the LND has stopped there and no message on that CPT
 * uses the NI. What CPTs share is immutable, atomic, or split by CPT.
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

/* What policies say of it (path/ruling.h). */
struct ni_ruling {
	uint64_t in; /* cpt.rules; another number: nothing any more */
	uint32_t priority, net_priority;
};

/* An NI's share on one CPT. Owner: that CPT. */
struct ni_cpt {
	uint32_t refs; /* messages that use it, +1 while the LND runs here */
	int32_t credits_max;
	_Atomic int32_t credits; /* one writer; negative: messages queued */
	_Atomic int32_t credits_min;
	struct list first; /* of msg_out.link, waiting for a credit, before: */
	struct list queue;
	uint64_t use; /* when last chosen: a sequence number */
	struct ni_ruling ruling; /* path/ruling.c's */
	uint64_t lost_in; /* health.c's: turn of the last loss; 0: none */
	_Atomic uint64_t heard; /* ns: when a message came last; one writer */
	stat_t failed[LNET_CAUSE_COUNT]; /* sends, by cause */
	bool stopped;
	struct work shutdown; /* it was deleted: nis.c's */
	struct list leaving;  /* ... whole_cpt.leaving */
	struct lnet_ni *ni;
	struct lnet_cpt *on;
	int32_t counted; /* node_check()'s */
	struct traffic_stats traffic;
};

struct lnet_ni {
	struct lnd_ni lnd; /* what its LND sees */
	struct lnet *node;
	uint32_t segment; /* lnet/nid/nid.h */
	uint64_t bit; /* it in lnet_peer_ni.connecting_from and connected_from:
		       * another one's, too, if 64 have come since */
	uint32_t credits_max;
	uint32_t peer_credits;
	uint32_t peer_buffer_credits;
	int32_t peer_timeout;		     /* s; < 0: never */
	int64_t tunables[LNET_TUNABLES_MAX]; /* as lnd.tunables */
	struct fsm fsm;			     /* control side */
	bool *gone;	/* NULL, or set when it is freed (node_set_gone) */
	atomic_bool up; /* no hard failure */
	_Atomic int32_t health; /* 0 .. LNET_HEALTH_MAX */
	atomic_bool recovering; /* a CPT takes care of that (recovery.c): */
	atomic_uint recovery_silent;	/* pings in a row without an answer */
	atomic_bool deaf; /* nobody answers, nor is heard: a router says that it
			   * is down (recovery.c) */
	_Atomic uint64_t recovery_next; /* ns: then comes the next; 0: none */
	atomic_uint live;	/* CPTs that have not let go */
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

static inline uint32_t ni_segment(const struct lnet_ni *ni)
{
	return ni->segment;
}

/* Of a router's buffers, what one peer NI may have that sends through it. */
static inline uint32_t ni_buffer_credits(const struct lnet_ni *ni)
{
	return ni->peer_buffer_credits ? ni->peer_buffer_credits
				       : ni->peer_credits;
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

/* Control side: makes an NI, whose NID is known from now on; its LND is not
 * started. ni_free() undoes it. */
int ni_make(struct lnet *node, const struct lnd *lnd,
	    const struct ulnet_ni_conf *conf, struct lnet_ni **ni_p) must_check;
/* Starts its LND; it is not in use yet. On error it is as before. */
int ni_start(struct lnet_ni *ni) must_check;
/* Frees an NI that was not started, or that every CPT has let go of. */
void ni_free(struct lnet_ni *ni);

/* Any thread: notes the state, and says it in the log. Was it another one? */
bool ni_set_up(struct lnet_ni *ni, bool up, const char *why);

/* As lnet_ni_info(3). The caller keeps @ni alive; any thread. */
void ni_info(const struct lnet_ni *ni, struct ulnet_ni_info *info);
/* CPT: what has been counted here becomes 0. */
void ni_stats_reset(struct lnet_ni *ni, const struct lnet_cpt *cpt);

/* As lnd_upcalls has them. */
void upcall_ni_stopped(struct lnd_ni *lnd, unsigned int cpt);
unsigned int upcall_ni_cpt_of(const struct lnd_ni *lnd,
			      const struct ulnet_nid *nid);
bool upcall_large_nids(const struct lnd_ni *lnd);
uint64_t upcall_lnd_timeout(const struct lnd_ni *lnd);

/* A CPT does not use the NI any more. */
void ni_let_go(struct lnet_ni *ni);

/* CPT @cpt: a message takes the NI in use, and lets it go. */
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
