/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers of a service: threads that take waiting requests in the order of
 * sched.h and run them. There are `min` of them. While all are busy and
 * requests wait, more are made, up to `max`; while there are more than `min`,
 * one that has been idle for 10 s ends.
 *
 * If `reserve` is set and max is at least 2, at most max - 1 requests that are
 * not of the high lane run at a time, so that a worker is left for high ones.
 *
 * Admission: a request that cannot be done in time is not begun, so that under
 * overload the server still does useful work at its full capacity. How long a
 * request will take is estimated from earlier ones: how long they occupied a
 * worker, and how long their method took to reply. A request whose turn would
 * come too late is not even queued. If its turn comes too late nevertheless, it
 * is marked `late`, and run() refuses it. Nothing is refused while a worker is
 * free. If nothing else waits, a request whose turn comes before its deadline
 * is run even if the estimate says that it is too late. That keeps the
 * estimates up to date. A sixteenth of a request's time is left for its reply
 * to travel.
 *
 * No client has workers of its own: one client may occupy all workers while
 * nobody else waits. A client that comes later waits until the next worker is
 * free, however much the first client has queued (sched.h).
 *
 * A worker that waits for its request's client (exec_wait_begin()) does nothing
 * for the service meanwhile. There are `max` seats, and a worker has one while
 * it runs a request. As soon as other requests wait for a seat, a worker that
 * waits for a client gives up its own: it is `away`, and another thread, made
 * if none is idle, takes the seat. At most `max` threads are away, so there are
 * no more than 2 * max threads. Each host has its share (base/share.h) of the
 * threads that may be away, so clients that have vanished block only some
 * workers. When its wait is over, the worker goes on at once, with or without a
 * free seat, so that client and server can soon free the memory for that bulk.
 * So more than `max` workers may run for a moment, but none takes another
 * request without a seat.
 *
 * If the host of the client has used up its share, the worker keeps its seat
 * while it waits. If requests of other clients wait for that seat, and the
 * client has answered nothing to any worker for a second or more, the wait is
 * given up.
 *
 * In virtual time workers are threads, too, in lockstep with the loops
 * (ulnet/thread.h); none is made before a request is to be run.
 */
#ifndef RPC_EXEC_H
#define RPC_EXEC_H

#include "rpc/bulk/transfer.h"
#include "rpc/quota.h"
#include "rpc/server/queue/sched.h"
#include "ulnet/thread.h"

struct exec_conf {
	struct lnet *node;
	bool is_virtual; /* is the node's time virtual? */
	/* workers: how many there are always, and how many at most; at least 1
	 */
	unsigned int min, max;
	const struct sched_plan *plan; /* borrowed until exec_free() */
	unsigned int ratio;
	bool reserve;
	uint64_t seed; /* a random number for quotas (quota.h) */
	/* Called on a worker: runs the request @item, or refuses it if
	 * item->late. */
	void (*run)(struct sched_item *item);
	/* Called when all workers have ended: on the last worker, which touches
	 * only its own memory afterwards, or inside of exec_close(). */
	void (*gone)(void *arg);
	void *arg;
};

enum exec_state {
	EXEC_OPEN,
	EXEC_CLOSING, /* workers end when nothing is queued */
};

struct exec {
	struct exec_conf conf;
	pthread_mutex_t lock; /* for all that follows */
	struct ulnet_cond wake;
	struct lanes lanes;
	struct list workers; /* exec_worker.link: the threads that run */
	/* exec_worker.link: threads that are to be joined */
	struct list ended;
	unsigned int nworkers; /* how many are in @workers */
	unsigned int idle;     /* workers with nothing to do */
	/* workers that run a request and are not away */
	unsigned int seated;
	struct quotas away; /* workers that are away, by host */
	/* exec_wait.link: all waits of workers for clients */
	struct list waits;
	unsigned int leaving; /* how many waits are EXEC_WAIT_OVER */
	/* seated workers that run requests which are not of the high lane */
	unsigned int normal;
	uint32_t taken; /* requests taken from the queue so far */
	/* ns: mean of how long a request occupies its worker */
	struct mean worker_time;
	/* ns: when an idle worker asks the gate for more requests; TIME_NEVER:
	 * no worker is going to ask */
	uint64_t again;
	enum exec_state state;
};

/* Opens @e, and starts conf->min workers. Copies @conf. Returns 0; -ENOMEM;
 * -errno: a thread could not be started. */
int exec_open(struct exec *e, const struct exec_conf *conf) must_check;
/* Queues @item, in item->lane. @now: ns. Any thread. Returns false if @item
 * would not be done in time: then it is not queued, and there may be room in
 * item->again ns. */
bool exec_add(struct exec *e, struct sched_item *item, uint64_t now) must_check;
/* Queues an item that was run before, and that run() is to continue. It is
 * never too late. Returns false if the workers have ended, or are about to. Any
 * thread. */
bool exec_add_again(struct exec *e, struct sched_item *item,
		    uint64_t now) must_check;
/* From now on @item counts for the client @to, because its own client may be
 * freed. Any thread. */
void exec_hand_over(struct exec *e, struct sched_item *item,
		    struct sched_client *to, uint64_t now);
/* What may be changed while workers run, as in struct exec_conf. */
struct exec_limits {
	unsigned int min, max, ratio;
};
/* Any thread. Threads beyond the new limits end when they have been idle for a
 * while; until then at most `max` of them run requests. */
void exec_limits(struct exec *e, struct exec_limits *to);
void exec_set_limits(struct exec *e, const struct exec_limits *to);
/* Changes order and rules to @plan, which is borrowed until exec_free(), or the
 * next change. What waits is queued anew: what was in the gate in a new one, if
 * there is one, with full buckets. @plan replaces the one before it, which is
 * not used any more after that. Any thread. Returns 0 or -ENOMEM. */
int exec_set_plan(struct exec *e, const struct sched_plan *plan,
		  unsigned int ratio) must_check;
/* Returns how many items wait for a worker, without those in the gate. Any
 * thread. */
unsigned int exec_waiting(struct exec *e);
/* Returns how many workers run a request, or wait for the client of one. Any
 * thread. */
unsigned int exec_running(struct exec *e);
/* The place of an item in the queue, estimated. */
struct exec_place {
	bool throttled;	    /* the item is in the gate, and not in the queue */
	unsigned int ahead; /* how many requests are served before it */
	uint64_t wait;	    /* ns until a worker has it */
};
/* Estimates the place of @item. Returns false if @item is not queued. Any
 * thread. */
bool exec_find(struct exec *e, const struct sched_item *item, uint64_t now,
	       struct exec_place *place);
/* Takes @item out of the queue. Returns false if it was not queued. Any thread.
 */
bool exec_remove(struct exec *e, struct sched_item *item);
/* Is the calling thread a worker of @e? */
bool exec_is_mine(const struct exec *e);

enum exec_wait_state {
	EXEC_WAIT_SEATED, /* the worker waits, and has a seat */
	EXEC_WAIT_AWAY,
	EXEC_WAIT_OVER, /* the wait is given up; the worker has a seat */
};

/* A wait of a worker for a client. */
struct exec_wait {
	/* set by the worker before exec_wait_begin(): */
	/* borrowed; exec_hand_over() replaces it */
	struct sched_client *client;
	const struct sched_item *item; /* the request whose handler waits */
	const struct ulnet_nid *host;  /* the NID of the client; borrowed */
	/* progress of the bulk that the handler waits for; borrowed */
	const struct bulk_progress *progress;
	/* Called with exec.lock held, on any thread: makes the worker call
	 * exec_wait_look(). */
	void (*wake)(struct exec_wait *w);
	/* guarded by exec.lock: */
	struct list link; /* node in exec.waits */
	struct exec_worker *worker;
	enum exec_wait_state state;
	/* wake() was called, or need not be called, because the worker will
	 * soon call exec_wait_look() anyway */
	bool woken;
	/* where the worker is charged in exec.away while EXEC_WAIT_AWAY */
	struct quota *quota;
	uint64_t began; /* ns: when the wait began */
};

/* Says that the calling thread is going to wait. Returns false if the thread is
 * not a worker of @e; then the caller does not call exec_wait_end(). */
bool exec_wait_begin(struct exec *e, struct exec_wait *w) must_check;
/* Returns what has become of the wait. Called by the worker. Sets *@until to
 * the time (ns) at which to call this again, unless wake() is called before. */
enum exec_wait_state exec_wait_look(struct exec *e, struct exec_wait *w,
				    uint64_t *until);
void exec_wait_end(struct exec *e, struct exec_wait *w);

/* Makes the workers end as soon as nothing is queued. To be called once. Any
 * thread. */
void exec_close(struct exec *e);
/* To be called after conf.gone: joins the threads, and frees what they used. */
void exec_free(struct exec *e);

#endif
