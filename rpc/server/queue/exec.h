/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workers of a service: threads that take waiting requests in the order of
 * sched.h and run them. There are `min` of them. While all are busy and
 * requests wait, more are made, up to `max`; those above `min` end when they
 * have been idle for a while.
 *
 * If `reserve` is set and max is at least 2, at most max - 1 requests that are
 * not of the high lane run at a time, so that a worker is left for high ones.
 *
 * Admission: a request that cannot be done in time is not begun, so that under
 * overload the server still does useful work at its full capacity. How long a
 * request will take is estimated from earlier ones: how long they occupied a
 * worker, and how long their method took to reply. A request whose turn would
 * come too late is not even queued; one whose turn has come too late is marked
 * `late` when it is run. Nothing is refused while a worker is free. If nothing
 * else waits, a request that is taken before its deadline is run even if it
 * seems too late, which keeps the estimates up to date. A sixteenth of a
 * request's time is left for its reply to travel.
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
 * no more than 2 * max. Each host has its share (base/share.h) of the threads
 * that may be away, so clients that have vanished block only some workers. When
 * its wait is over, the worker goes on at once, with or without a free seat, so
 * that the memory that both sides have set aside is freed soon. So more than
 * `max` may run for a moment; none of them takes another request without a
 * seat.
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
	bool is_virtual;	       /* time */
	unsigned int min, max;	       /* at least 1 */
	const struct sched_plan *plan; /* borrowed as long as the exec */
	unsigned int ratio;
	bool reserve;
	uint64_t seed; /* random: quota.h */
	/* On a worker: runs a request, or, if item->late, refuses it. */
	void (*run)(struct sched_item *item);
	/* All workers have ended. Called on the last worker, which touches only
	 * its own memory afterwards; or inside of exec_close(). */
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
	struct list workers;	 /* exec_worker.link */
	struct list ended;	 /* the same; to be joined */
	unsigned int nworkers;	 /* in workers */
	unsigned int idle;	 /* of these, with nothing to do */
	unsigned int seated;	 /* of these, running a request and not away */
	struct quotas away;	 /* of these, away: by host */
	struct list waits;	 /* exec_wait.link, seated or away */
	unsigned int leaving;	 /* waits that are EXEC_WAIT_OVER */
	unsigned int normal;	 /* seated, with requests that are not high */
	uint32_t taken;		 /* requests from the queue, in all */
	struct mean worker_time; /* ns: how long a request has its worker */
	/* ns: when an idle worker asks the gate for more; TIME_NEVER: no worker
	 * does. */
	uint64_t again;
	enum exec_state state;
};

/* 0, -ENOMEM, -errno of making threads. */
int exec_open(struct exec *e, const struct exec_conf *conf) must_check;
/* Queues @item, in item->lane. Any thread. @now: ns. False: @item would not be
 * done in time, and is not queued; item->again ns from now there may be
 * room. */
bool exec_add(struct exec *e, struct sched_item *item, uint64_t now) must_check;
/* Queues an item that was run before, and that run() continues. It is never too
 * late. False: the workers have ended, or are about to. */
bool exec_add_again(struct exec *e, struct sched_item *item,
		    uint64_t now) must_check;
/* Makes @item the client @to's, because its own client may be freed. Any
 * thread. */
void exec_hand_over(struct exec *e, struct sched_item *item,
		    struct sched_client *to, uint64_t now);
/* About where an item is in the queue. */
struct exec_place {
	bool throttled;	    /* it is in the gate */
	unsigned int ahead; /* how many are served before it */
	uint64_t wait;	    /* ns until a worker has it */
};
/* False: @item is not queued. Any thread. */
bool exec_find(struct exec *e, const struct sched_item *item, uint64_t now,
	       struct exec_place *place);
/* Takes @item out of the queue. False: it is not queued. Any thread. */
bool exec_remove(struct exec *e, struct sched_item *item);
/* Is the calling thread a worker of @e? */
bool exec_is_mine(const struct exec *e);

enum exec_wait_state {
	EXEC_WAIT_SEATED, /* its worker has a seat */
	EXEC_WAIT_AWAY,
	EXEC_WAIT_OVER, /* it is given up; its worker has a seat */
};

/* A wait of a worker for a client. */
struct exec_wait {
	/* the worker's, before the beginning */
	struct sched_client *client;   /* borrowed; exec_hand_over() */
	const struct sched_item *item; /* whose handler waits */
	const struct ulnet_nid *host;  /* the client's; borrowed */
	/* Of the bulk that is waited for; borrowed. */
	const struct bulk_progress *progress;
	/* Called under the exec's lock, on any thread: exec_wait_look() is to
	 * be called. */
	void (*wake)(struct exec_wait *w);
	/* exec.lock's */
	struct list link; /* exec.waits */
	struct exec_worker *worker;
	enum exec_wait_state state;
	bool woken; /* wake() was called, or need not be: its worker calls
		     * exec_wait_look() in time by itself */
	struct quota *quota; /* of exec.away, while EXEC_WAIT_AWAY */
	uint64_t began;	     /* ns */
};

/* The calling thread is going to wait. False: it is not a worker of @e, and
 * exec_wait_end() is not to be called. */
bool exec_wait_begin(struct exec *e, struct exec_wait *w) must_check;
/* Returns what has become of the wait. *@until: ns, when to call this again
 * unless wake() is called before. By the worker. */
enum exec_wait_state exec_wait_look(struct exec *e, struct exec_wait *w,
				    uint64_t *until);
void exec_wait_end(struct exec *e, struct exec_wait *w);

/* Makes the workers end as soon as nothing is queued. Once. Any thread. */
void exec_close(struct exec *e);
/* After conf.gone: joins the threads and frees what they used. */
void exec_free(struct exec *e);

#endif
