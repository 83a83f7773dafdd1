/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC on a node, and its part on each CPT (a shard). What belongs to a shard is
 * touched by the owner of its CPT only (ulnet/loop.h).
 *
 * Each part of RPC (connections of clients, of services, ...) has a table of
 * functions, struct rpc_part, and each of its two sides a struct rpc_side. Only
 * node/ puts them together.
 *
 * End of life: close (refuse), abort (end what is going on), stop (unlink what
 * receives), free (when nobody refers to memory of ours any more).
 */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "base/list.h"
#include "base/guard.h"
#include "base/util.h"
#include "rpc/wait.h"
#include "ulnet/loop.h"
#include "ulnet/rpc.h"

#define RPC_ID_SIZE ULRPC_ID_SIZE

struct end;
struct ulrpc;
struct wire_control;
struct imports;
struct exports;
struct client_ids;
struct import_names;
struct services;
struct control;
struct tombstones;
struct forwards;
struct ends;
struct stats;
struct stat_shard;
struct runs;

/* Owner: its CPT. */
struct shard {
	/* immutable after open */
	struct ulrpc *rpc;
	struct lnet *node;
	unsigned int cpt;
	const uint64_t *late; /* lnet_guard_late() */

	bool closing;	 /* new calls and requests are refused */
	bool aborted;	 /* what was going on has been ended */
	uint64_t work;	 /* calls and requests that have not ended */
	uint64_t holds;	 /* what LNet, works or threads still refer to */
	uint64_t match;	 /* the next match value, without its low 8 bits */
	uint64_t jitter; /* shard_jitter() */

	struct control *control;
	struct imports *imports;
	struct exports *exports;
	struct tombstones *tombstones;
	struct forwards *forwards;
	struct ends *ends;
	atomic_uint far; /* imports and clients whose NIDs other CPTs may own:
			  * any thread */
	struct stat_shard *stats;
	struct runs *runs;

	/* ulrpc_shutdown() */
	struct ulnet_work close_work, abort_work, idle_work;
	bool told; /* that there is no work left */

	/* under rpc->wait.lock: set by shard_settled(), for who waits there */
	bool idle, unused;
};

enum rpc_state { RPC_OPEN, RPC_SHUTTING, RPC_CLOSING, RPC_STATES };

struct ulrpc {
	/* immutable after open */
	struct lnet *node;
	unsigned int ncpts;
	struct ulrpc_conf conf; /* defaults filled in */
	bool is_virtual;
	uint8_t client_id[RPC_ID_SIZE]; /* of this process, as a client */
	uint8_t server_id[RPC_ID_SIZE]; /* and as a server */
	struct shard *shards;		/* ncpts of them */
	struct ulnet_layer layer;
	const struct rpc_side *client, *server;

	/* any thread */
	_Atomic unsigned int state; /* enum rpc_state */
	struct wait
		wait; /* its lock guards what follows; no callback, no call of
			   * LNet while it is held */
	bool shutdown_due; /* somebody is still to be told */
	struct services *services;
	struct client_ids *client_ids; /* of clients; has a lock of its own */
	struct import_names *names;    /* of our imports; has one, too */
	struct stats *stats;
	_Atomic unsigned int posted; /* works given by other threads */
	_Atomic uint64_t lazy;	     /* a bit for each lazy portal */

	/* owner of CPT 0: ulrpc_shutdown() */
	struct {
		unsigned int busy; /* shards */
		int status;
		atomic_bool cut; /* by ulrpc_close() */
		uint64_t until;	 /* ns */
		struct ulnet_timer timer;
		struct ulnet_work work;
		void (*done)(void *arg, int status);
		void *arg;
	} shutdown;
};

/* How a side of RPC, client or server, handles what arrives, on the CPT where
 * it has arrived. NULL: nothing of that kind comes for this side. */
struct rpc_side {
	/* on_control(): a control message for this side has arrived.
	 * control_cpt(), of the client only: the CPT that @m is for. */
	void (*on_control)(struct shard *s, const struct ulnet_event *ev,
			   const struct wire_control *m);
	unsigned int (*control_cpt)(const struct wire_control *m);
	/* What LNet tells of connections (ends.h): they have ended, or are
	 * silent; the node with this NID has sent something new; the rails of
	 * this node have changed. */
	void (*on_end)(struct shard *s, const struct end *end);
	void (*on_sign)(struct shard *s, const struct ulnet_nid *nid);
	void (*on_changed)(struct shard *s);
};

/* A part of RPC. Functions may be NULL. Those of a shard are called by the
 * owner of its CPT. */
struct rpc_part {
	const char *name;
	int (*open)(struct ulrpc *rpc); /* on the opener's thread, first */
	int (*shard_open)(struct shard *s);
	/* The next three also come when not all could be opened: then also
	 * without shard_open, or after it has failed. */
	/* From now on nothing new; what is going on goes on. */
	void (*shard_close)(struct shard *s);
	/* What is going on ends: calls as canceled, requests without a reply,
	 * soon, but not inside of this call. */
	void (*shard_abort)(struct shard *s);
	/* shard->work is 0: unlinks what receives; nothing more is sent. */
	void (*shard_stop)(struct shard *s);
	/* shard->holds is 0: frees all there is. Also when shard_open has
	 * failed, or has not been called. */
	void (*shard_free)(struct shard *s);
	void (*free)(struct ulrpc *rpc); /* at last, on the closer's thread */
};

static inline bool rpc_id_is_set(const uint8_t id[RPC_ID_SIZE])
{
	static const uint8_t none[RPC_ID_SIZE];

	return memcmp(id, none, RPC_ID_SIZE) != 0;
}

static inline struct shard *rpc_shard_of(struct ulrpc *rpc, unsigned int cpt)
{
	return &rpc->shards[cpt];
}

/* The node has crashed: no function of a user is called any more. */
static inline bool shard_is_mute(const struct shard *s)
{
	return unlikely(s->rpc->layer.mute);
}

/* May the caller act for @s at once? Outside of all turns a thread may own
 * several CPTs (virtual time), and an MD that it binds may get to any of them:
 * there the caller has to give work, as other threads do. */
static inline bool shard_owned(const struct shard *s)
{
	return lnet_cpt_owned(s->node, s->cpt) &&
	       (s->rpc->ncpts == 1 || lnet_in_turn());
}

/* May the caller begin or end services, or RPC? That waits with things half
 * done, and the node must not crash meanwhile. So it is forbidden in a turn,
 * and, on virtual time, on a thread of lnet_thread_start(), which crashes with
 * the node. */
static inline bool rpc_may_manage(struct lnet *node)
{
	return !lnet_in_turn() &&
	       (!lnet_is_virtual(node) || lnet_cpt_current(node) >= 0);
}

/* After a user's function has been called in a turn: did it take so long that
 * lnet_guard_end() has something to do? */
static inline bool shard_guard_is_late(const struct shard *s)
{
	return tick_now() > *s->late;
}

/* ns, of this turn. Owner. */
static inline uint64_t shard_now(const struct shard *s)
{
	return lnet_now(s->node, s->cpt);
}

/* Are these NIDs of one peer, as far as is known by now? Any thread. */
bool shard_same_peer(const struct shard *s, const struct ulnet_nid *a,
		     const struct ulnet_nid *b);

/* A match value that was never used before, and the 255 after it. */
static inline uint64_t shard_match_alloc(struct shard *s)
{
	s->match += LNET_CPTS_MAX;
	return (s->match | s->cpt) << 8;
}

/* The handle by which the wire names an object with this @id. It has the same
 * slot (base/id.h) and CPT, but a random upper half, so that whoever has one
 * handle cannot guess another, and handles from before a restart mean nothing.
 * Never 0. Owner. */
uint64_t shard_handle(struct shard *s, uint64_t id);
/* Uniform in [0, below]. Owner. */
uint64_t shard_random(struct shard *s, uint64_t below);
/* 64 bits. The high ones are random enough for the length of a pause, but for
 * nothing else: whoever sees some can guess the next. Cheap enough for each
 * message. Owner. */
static inline uint64_t shard_jitter(struct shard *s)
{
	s->jitter = s->jitter * UINT64_C(6364136223846793005) +
		    UINT64_C(1442695040888963407);
	return s->jitter;
}

/* Deferred work and timers, on the CPT of @s. Owner. */
static inline void shard_defer(struct shard *s, struct ulnet_work *w)
{
	lnet_defer(s->node, s->cpt, w);
}

static inline void shard_arm(struct shard *s, struct ulnet_timer *t,
			     uint64_t at)
{
	lnet_timer_arm(s->node, s->cpt, t, at);
}

static inline void shard_cancel(struct shard *s, struct ulnet_timer *t)
{
	lnet_timer_cancel(s->node, s->cpt, t);
}

/* Any thread. */
static inline void shard_post(struct shard *s, struct ulnet_work *w)
{
	lnet_post(s->node, s->cpt, w);
}

/* As shard_post(), for callers who hold nothing that keeps the shard:
 * ulrpc_close() waits until @w has run. The function of @w begins with
 * shard_taken(). */
static inline void shard_give(struct shard *s, struct ulnet_work *w)
{
	atomic_fetch_add(&s->rpc->posted, 1);
	lnet_post(s->node, s->cpt, w);
}

void shard_taken_last(struct shard *s);
static inline void shard_taken(struct shard *s)
{
	if (atomic_fetch_sub(&s->rpc->posted, 1) == 1 && unlikely(s->closing))
		shard_taken_last(s);
}

/* Something became 0 that somebody may wait for. */
void shard_settled(struct shard *s);

/* A call or a request that ulrpc_shutdown() waits for. Owner. */
static inline void shard_work_begin(struct shard *s)
{
	s->work++;
}

static inline void shard_work_end(struct shard *s)
{
	if (--s->work == 0 && unlikely(s->closing))
		shard_settled(s);
}

/* Memory that others may refer to (MDs that are linked, works that are given,
 * handlers that run): ulrpc_close() waits until it is let go. Owner. */
static inline void shard_hold(struct shard *s)
{
	s->holds++;
}

static inline void shard_release(struct shard *s)
{
	if (--s->holds == 0 && unlikely(s->closing))
		shard_settled(s);
}

/* Microseconds to nanoseconds; what is too long is never. */
static inline uint64_t rpc_ns(uint64_t us)
{
	return us > TIME_NEVER / NSEC_PER_USEC ? TIME_NEVER
					       : us * NSEC_PER_USEC;
}

/* May a line that is limited to once a minute be logged now? *@said: ns, when
 * it was logged last; 0: never. */
static inline bool rpc_says(uint64_t *said, uint64_t now)
{
	if (*said && now - *said < 60 * NSEC_PER_SEC)
		return false;
	*said = MAX(now, 1);
	return true;
}

/* Does @rc say that there is no memory here, or not enough of something else
 * that comes back by itself? */
static inline bool rpc_is_short(int rc)
{
	return rc == -ENOMEM || rc == -ENOSPC || rc == -ENOBUFS;
}

/* @now + @ns, at most never. */
static inline uint64_t rpc_at(uint64_t now, uint64_t ns)
{
	return ns > TIME_NEVER - now ? TIME_NEVER : now + ns;
}

#endif
