/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC on a node (struct ulrpc), and its state on each CPT (struct shard), which
 * only the owner of the CPT touches (ulnet/loop.h).
 *
 * Each part of RPC (imports, exports, services, ...) has a table of functions,
 * struct rpc_part; client and server have a struct rpc_side each. node/open.c
 * puts them together.
 *
 * RPC ends in four steps: close (refuses new work), abort (ends the work that
 * is under way), stop (unlinks receive buffers), free (when neither LNet nor
 * any thread refers to memory of RPC any more).
 */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include "base/list.h"
#include "base/guard.h"
#include "base/util.h"
#include "ulnet/loop.h"
#include "ulnet/rpc.h"
#include "ulnet/thread.h"

#define RPC_ID_SIZE ULRPC_ID_SIZE
/* The service of a node that carries the messages of all streams. Anybody may
 * call it: it accepts only what belongs to a stream that its caller was allowed
 * to open (rpc/stream/serve.c). */
#define RPC_STREAM_CARRIER "ulrpc.streams"

struct conn_event;
struct keys;
struct opened;
struct service_set;
struct client_set;
struct ulrpc;
struct wire_control;
struct imports;
struct exports;
struct client_ids;
struct host_queues;
struct import_names;
struct munge_job;
struct munge_jobs;
struct services;
struct control;
struct tombstones;
struct forwards;
struct conn_events;
struct seal_pool;
struct stats;
struct stat_shard;
struct runs;
struct replicas_shard;
struct streams_node;
struct sealers;
struct ulrpc_rules;
struct call_chain;
struct request_chain;

/* ---- waiting ---- */

/*
 * Lets a thread wait for something to happen, whichever thread makes the node's
 * turns: one of the node's, one of the application's, or the waiting thread
 * itself.
 */
struct wait {
	pthread_mutex_t lock; /* guards the state that is waited for */
	struct ulnet_cond changed;
	/* any thread, atomic: how often wait_wake() was called. While it is the
	 * same, a thread that polls leaves the lock alone */
	atomic_uint wakes;
	/* any thread, atomic: the CPT whose turns are likely to end a wait, and
	 * soon: a thread polls before it sleeps, by lnet_cpt_wait();
	 * WAIT_ASLEEP, as wait_init() sets it: it sleeps at once */
	atomic_uint cpt;
};

#define WAIT_ASLEEP UINT_MAX

/* Initializes @w. Returns 0 or -errno. */
int wait_init(struct wait *w) must_check;
void wait_fini(struct wait *w);

/* To be called after a change of the state, or with the lock held before it is
 * released. Ends the polling of who polls, and wakes those who sleep: if nobody
 * does, that takes no system call. Any thread. */
static inline void wait_wake(struct wait *w)
{
	atomic_fetch_add_explicit(&w->wakes, 1, memory_order_release);
	lnet_cond_broadcast(&w->changed);
}

/*
 * Waits until @ready(@arg) returns true, or until @until (ns, on the clock of
 * lnet_now(); TIME_NEVER: no limit). @ready is called with the lock held; the
 * caller must not hold it. If the calling thread is the one that makes the
 * turns of @node, it makes them; else it polls, if @w->cpt and the setting
 * wait_poll let it, and then sleeps.
 * Returns 0; -ETIMEDOUT; -EDEADLK: called in a turn, or, in virtual time,
 * nothing can happen any more; -ECANCELED: the thread is one of
 * lnet_thread_start(), and its node has crashed.
 */
int wait_until(struct wait *w, struct lnet *node, bool (*ready)(void *arg),
	       void *arg, uint64_t until);
/* The part of wait_until() for a thread that makes the turns. Returns -EBUSY if
 * another one does: then the caller has to sleep. */
int wait_turns(struct wait *w, struct lnet *node, bool (*ready)(void *arg),
	       void *arg, uint64_t until);

/* ---- RPC and its shards ---- */

/* RPC on one CPT. Owner: the CPT's. */
struct shard {
	/* immutable after open: */
	_Alignas(CACHE_LINE) struct ulrpc *rpc;
	struct lnet *node;
	unsigned int cpt;
	const uint64_t *late;	 /* lnet_guard_late() */
	const uint64_t *tick_ns; /* lnet_tick_rate() */
	/* options for MDs of memory that this CPT has made: LNET_MD_NUMA_NODE
	 * and the NUMA node, if that is known */
	uint32_t near;
	int numa_node;

	bool closing;  /* new calls and requests are refused */
	bool aborted;  /* the work that was under way has been ended */
	uint64_t work; /* calls and requests that have not ended */
	/* how many calls of shard_hold() wait for their shard_release() */
	uint64_t holds;
	/* the counter from which shard_match_alloc() makes match values */
	uint64_t match;
	uint64_t jitter; /* the state of shard_jitter() */
	/* ns: when the last handler ended that took the time of this CPT, and
	 * not only a moment of it (serve/request.h) */
	uint64_t busy_until;

	struct control *control;
	struct imports *imports;
	struct exports *exports;
	struct tombstones *tombstones;
	struct forwards *forwards;
	struct conn_events *conn_events;
	struct replicas_shard *replicas;
	struct bulk_pool *bulk_pool;
	struct seal_pool *seal_pool;
	/* read by any thread: how many imports, and NIDs of clients, may also
	 * belong to other CPTs */
	atomic_uint far;
	atomic_uint clients; /* how many exports there are; read by any CPT */
	struct stat_shard *stats;
	struct runs *runs;
	struct spans_ring *spans; /* NULL: no spans are wanted */
	/* some calls without a trace are sampled: spans_lot(). Read by any
	 * thread */
	atomic_bool samples;

	struct ulnet_work keys_work; /* posted by ulrpc_use_keys() */
	atomic_bool keys_posted;     /* is keys_work posted? Any thread */

	/* posted for ulrpc_shutdown() */
	struct ulnet_work close_work, abort_work, idle_work;
	bool told; /* was idle_work posted? */

	/* Guarded by rpc->wait.lock, set by shard_settled(). idle: @work has
	 * become 0. unused: @holds has become 0. */
	bool idle, unused;
};

enum rpc_state { RPC_OPEN, RPC_SHUTTING, RPC_CLOSING, RPC_STATES };

struct ulrpc {
	/* immutable after open: */
	struct lnet *node;
	unsigned int ncpts;
	struct ulrpc_conf conf; /* the configuration, with defaults filled in */
	/* what conf.call_interceptors and .request_interceptors point into */
	struct call_chain *call_chain;
	struct request_chain *request_chain;
	bool is_virtual;
	uint8_t client_id[RPC_ID_SIZE]; /* the id of this process as a client */
	uint8_t server_id[RPC_ID_SIZE]; /* the id of this process as a server */
	/* the seed of hash tables whose keys others choose: random and secret,
	 * so that nobody can choose keys that hash to one bucket */
	uint64_t seed;
	uint64_t
		lent_part; /* bytes of a bulk of a body that is lent, at most */
	/* For rpc/stats/spans.h. seed and share are set before on and
	 * shard.samples. */
	struct {
		atomic_bool taken;	/* somebody has started spans */
		atomic_bool on;		/* sampled calls become spans */
		_Atomic uint32_t share; /* calls of a million */
		_Atomic uint64_t n;	/* numbers given */
		uint64_t seed;
		/* NULL: there are none; for who starts, stops, and closes */
		struct ulrpc_spans *spans;
	} sampling;
	struct shard *shards; /* an array of @ncpts */
	struct ulnet_layer layer;
	const struct rpc_side *client, *server;

	/* used by any thread: */
	_Atomic unsigned int state; /* enum rpc_state */
	/* wait.lock guards the fields below that are not atomic. A thread that
	 * holds it calls neither LNet nor a user's function. */
	struct wait wait;
	bool shutdown_due; /* shutdown.done is still to be called */
	/* keys for the next handshakes; NULL: this node never has any */
	struct keys *keys;
	/* the rules of this node's services; NULL: there are none */
	struct ulrpc_rules *rules;
	struct services *services;
	/* the ids of clients that have exports; has its own lock */
	struct client_ids *client_ids;
	/* the hosts in queues of services; has its own lock */
	struct host_queues *host_queues;
	/* the names under which servers know imports; has its own lock */
	struct import_names *names;
	struct stats *stats;
	/* see rpc/stream/streams.h; has its own lock */
	struct streams_node *streams;
	struct sealers *sealers;  /* has its own lock */
	struct munge_jobs *munge; /* has its own lock */
	/* how many works of shard_give() have not run yet; in a cache line of
	 * its own, as all CPTs write it (tests/cache_lines.sh) */
	_Alignas(CACHE_LINE) _Atomic unsigned int posted;
	_Alignas(CACHE_LINE) _Atomic uint64_t
		lazy; /* mask: bit i is set if portal i is lazy */

	/* for ulrpc_shutdown(); owner: CPT 0 */
	struct {
		unsigned int busy; /* how many shards have work */
		int status;
		atomic_bool cut; /* has ulrpc_close() ended the work? */
		uint64_t until;	 /* ns: until when ulrpc_shutdown() waits */
		struct ulnet_timer timer;
		struct ulnet_work work;
		void (*done)(void *arg, int status);
		void *arg;
	} shutdown;
};

typedef void (*rpc_streams_fn)(void *arg, const char *service, uint64_t n);

/* What the client or the server does with messages and events of a CPT. A
 * function may be NULL: then this side is not told. */
struct rpc_side {
	/* Returns the CPT that the control message @m, which has arrived on
	 * @s, is for. If there is no such CPT, @s handles @m. */
	unsigned int (*control_cpt)(const struct shard *s,
				    const struct ulnet_event *ev,
				    const struct wire_control *m);
	/* Called when a control message has come to the CPT that it is for. */
	void (*on_control)(struct shard *s, const struct ulnet_event *ev,
			   const struct wire_control *m);
	/* Returns the CPT that has the connection with @handle, which a sealed
	 * message names. If the handle is not of this side, returns a number
	 * that no CPT has. */
	unsigned int (*handle_cpt)(uint64_t handle);
	/* Opens a sealed message for the connection @handle. Returns 0 with @o
	 * set, or -errno. Until unsealed() is called, which is after the
	 * message was handled, this side knows which connection has sent it. */
	int (*unseal)(struct shard *s, uint64_t handle,
		      const struct ulnet_event *ev, void *record, size_t length,
		      struct opened *o);
	void (*unsealed)(struct shard *s);
	/* Called on CONN_LOST or CONN_SILENT (conn_event.h). */
	void (*on_conn_event)(struct shard *s, const struct conn_event *event);
	/* Called on CONN_HEARD of @nid. */
	void (*on_heard)(struct shard *s, const struct ulnet_nid *nid);
	/* Called when the node's NIs, or their states, have changed. */
	void (*on_changed)(struct shard *s);
	/* Called when the node has got other keys: ends the connections with
	 * peers whom @keys do not believe. */
	void (*on_keys)(struct shard *s, const struct keys *keys);
	/* Called after ulrpc_use_rules(). */
	void (*on_rules)(struct shard *s);
	/* Changes a service; server only: services_set(),
	 * streams_set_service(). */
	int (*set)(struct shard *s, struct service_set *set);
	/* Changes the clients of a service, and its sets of servers; client
	 * only: clients_set(), replicas_set(), streams_set_clients(). */
	void (*set_clients)(struct shard *s, struct client_set *set);
	/* Calls @fn with how many streams of a service are open, perhaps more
	 * than once for a service: those of the clients on this CPT; or, for
	 * CPT 0, those that this node serves. */
	void (*streams)(struct shard *s, rpc_streams_fn fn, void *arg);
	/* Called when munged has answered a question of a handshake:
	 * @j->answer. */
	void (*on_munge)(struct shard *s, struct munge_job *j);
};

/* A part of RPC. Functions may be NULL. Functions with a shard are called by
 * the owner of its CPT, if the part's state on the shard could be allocated.
 * shard_close() to shard_free() are called even if shard_open() has failed. */
struct rpc_part {
	/* RPC_PART_STATE() */
	size_t state_size, state_offset;
	/* called first, on the thread that opens RPC */
	int (*open)(struct ulrpc *rpc);
	/* Opens the part on @s. Its state there is all zero at first. */
	int (*shard_open)(struct shard *s);
	/* Refuses new work from now on. */
	void (*shard_close)(struct shard *s);
	/* Ends the work under way soon, but not inside this call: calls end as
	 * canceled, requests without a reply. */
	void (*shard_abort)(struct shard *s);
	/* Called after shard_abort() when nothing can happen any more: does the
	 * end of RPC still wait for something of this part on @s? Then writes
	 * to @text what that is. */
	bool (*waits)(struct shard *s, char *text, size_t size);
	/* Called when shard.work is 0: unlinks receive buffers, and sends
	 * nothing any more. */
	void (*shard_stop)(struct shard *s);
	/* Called when shard.holds is 0: frees what the state refers to. */
	void (*shard_free)(struct shard *s);
	/* called last, on the thread that closes RPC */
	void (*free)(struct ulrpc *rpc);
};

/* Used for state_size and state_offset: the part has a @type on each shard, to
 * which shard.@member points. */
#define RPC_PART_STATE(type, member) \
	.state_size = sizeof(type),  \
	.state_offset = offsetof(struct shard, member)

/* Allocates the state of @part on @s and calls shard_open. Returns 0 or -errno;
 * rpc_part_close() is to be called after an error, too. Owner. */
int rpc_part_open(const struct rpc_part *part, struct shard *s);
/* Does @part have its state on @s, or does it need none? */
bool rpc_part_is_open(const struct rpc_part *part, const struct shard *s);
/* Calls shard_free and frees the state, if there is one. Owner. */
void rpc_part_close(const struct rpc_part *part, struct shard *s);

static inline bool rpc_id_is_set(const uint8_t id[RPC_ID_SIZE])
{
	static const uint8_t none[RPC_ID_SIZE];

	return memcmp(id, none, RPC_ID_SIZE) != 0;
}

/* Has the node crashed? Then no function of a user is called any more. */
static inline bool shard_is_mute(const struct shard *s)
{
	return unlikely(s->rpc->layer.mute);
}

/* May the calling thread act for @s at once, without shard_give()? With several
 * CPTs it may not do so outside of turns: in virtual time it may then own
 * several CPTs, and an MD that it binds may get to any of them. */
static inline bool shard_owned(const struct shard *s)
{
	return lnet_cpt_owned(s->node, s->cpt) &&
	       (s->rpc->ncpts == 1 || lnet_in_turn());
}

/* May the caller begin or end services, or RPC? To do so it has to wait, and a
 * crash of the node meanwhile would leave things half done. So a turn may not
 * do it, and in virtual time no thread of lnet_thread_start(), because such
 * threads crash with the node. */
static inline bool rpc_may_manage(struct lnet *node)
{
	return !lnet_in_turn() &&
	       (!lnet_is_virtual(node) || lnet_cpt_current(node) >= 0);
}

/* Called after a function of the user: did it take so long that
 * lnet_guard_end() is to be called? */
static inline bool shard_guard_is_late(const struct shard *s)
{
	return tick_now() > *s->late;
}

/* Begins to measure how long something takes within a turn, which the time of
 * the turn does not tell. Returns what shard_took() needs. Owner, in a turn. */
static inline uint64_t shard_stamp(const struct shard *s)
{
	return likely(*s->tick_ns) ? tick_now() : lnet_clock(s->node, s->cpt);
}

/* Returns ns since shard_stamp() returned @stamp in this turn; UINT64_MAX: some
 * ms or more, for which clocks are good enough. The tick counters of two
 * processors may differ, so a long time is to be compared with clocks. */
static inline uint64_t shard_took(const struct shard *s, uint64_t stamp)
{
	uint64_t rate = *s->tick_ns, ticks;

	if (unlikely(!rate))
		return lnet_clock(s->node, s->cpt) - stamp;
	ticks = tick_now() - stamp;
	return likely(ticks < TICK_WINDOW / 4) ? ticks * rate >> 32
					       : UINT64_MAX;
}

/* Returns the time of this turn, ns. Owner. */
static inline uint64_t shard_now(const struct shard *s)
{
	return lnet_now(s->node, s->cpt);
}

/* Are @a and @b NIDs of one peer, as far as this node knows? Any thread. */
bool shard_same_peer(const struct shard *s, const struct ulnet_nid *a,
		     const struct ulnet_nid *b);

/* Returns a match value. Neither it nor the 255 values after it were ever used
 * before. */
static inline uint64_t shard_match_alloc(struct shard *s)
{
	s->match += LNET_CPTS_MAX;
	return (s->match | s->cpt) << 8;
}

/* Makes a handle for the wire of an object with this @id: with the same slot
 * (base/id.h) and CPT, and a random upper half, so that nobody can guess one
 * handle from another, and handles from before a restart are invalid. Never 0.
 * Owner. */
uint64_t shard_handle(struct shard *s, uint64_t id);
/* Returns a random number, uniform in [0, @max]. Owner. */
uint64_t shard_random(struct shard *s, uint64_t max);
/* Returns 64 bits, for the lengths of pauses only: the high bits are random
 * enough for that, but can be predicted. Cheap enough for each message. Owner.
 */
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

/* Posts @w to the CPT of @s. Any thread. */
static inline void shard_post(struct shard *s, struct ulnet_work *w)
{
	lnet_post(s->node, s->cpt, w);
}

/* Does what shard_post() does. In addition, ulrpc_close() waits until @w has
 * run, so the caller need not keep the shard by other means. The function of @w
 * has to call shard_taken() at its end. */
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

/* Called when shard.work or shard.holds has become 0: wakes the thread that
 * closes RPC, and ulrpc_shutdown(). */
void shard_settled(struct shard *s);

/* Called when a call or a request begins that ulrpc_shutdown() waits for.
 * Owner. */
static inline void shard_work_begin(struct shard *s)
{
	s->work++;
}

static inline void shard_work_end(struct shard *s)
{
	if (--s->work == 0 && unlikely(s->closing))
		shard_settled(s);
}

/* Called when something outside of the shard begins to refer to the shard's
 * memory: LNet by a linked MD, a work that is posted, a handler that runs.
 * ulrpc_close() waits for shard_release(). Owner. */
static inline void shard_hold(struct shard *s)
{
	s->holds++;
}

static inline void shard_release(struct shard *s)
{
	if (--s->holds == 0 && unlikely(s->closing))
		shard_settled(s);
}

/* Converts us to ns, at most TIME_NEVER. */
static inline uint64_t rpc_ns(uint64_t us)
{
	return us > TIME_NEVER / NSEC_PER_USEC ? TIME_NEVER
					       : us * NSEC_PER_USEC;
}

/* Limits a log line to once a minute: returns whether it may be logged now, and
 * if so sets *@logged_at, the time (ns) when it was last logged, to @now.
 * *@logged_at is 0 at first. */
static inline bool rpc_may_log(uint64_t *logged_at, uint64_t now)
{
	if (*logged_at && now - *logged_at < 60 * NSEC_PER_SEC)
		return false;
	*logged_at = MAX(now, 1);
	return true;
}

/* Does @rc mean that this node is short of something, such as memory, for a
 * while? */
static inline bool rpc_is_short(int rc)
{
	return rc == -ENOMEM || rc == -ENOSPC || rc == -ENOBUFS;
}

/* Returns @now + @ns, at most TIME_NEVER. */
static inline uint64_t rpc_at(uint64_t now, uint64_t ns)
{
	return ns > TIME_NEVER - now ? TIME_NEVER : now + ns;
}

#endif
