/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers of a service: threads, which take waiting requests in the order of
 * sched.h and run them. There are `min` of them. While all are busy and
 * something waits, more are made, up to `max`; those above `min` end when they
 * have been idle for a while.
 *
 * If `reserve` is set and max is at least 2, at most max - 1 requests that are
 * not of the high lane run at a time: a high one always finds, or gets, a
 * worker.
 *
 * What cannot be done in time is not begun, so that under overload the server
 * still does useful work at its full capacity. The time that a request will
 * take is estimated from earlier requests: how long they have held a worker,
 * and how long their method has taken to reply. A request whose turn would come
 * too late is not even queued; one whose turn has come too late (others came
 * before it, or were slower) is marked `late` when it is run. Nothing is
 * refused while a worker is free. A request that a worker has taken before its
 * deadline is not refused either if nothing else waits: there is nothing better
 * to do then, and the measured times stay up to date. A sixteenth of a
 * request's time is left for its reply to travel.
 *
 * No client has workers of its own: while nobody else waits, one client may
 * occupy all workers. A client that comes later waits until the next worker is
 * free, however much the first client has queued: the policy (sched.h) decides
 * whose turn it is.
 *
 * A worker that waits for the client of what it runs (exec_wait_begin()) does
 * nothing for the service meanwhile. As soon as other requests wait for a
 * worker it is `away`: it has given up its seat, of which there are `max`, and
 * another thread is made, if none is idle, to sit there. At most `max` threads
 * are away, so there are no more than 2 * max in all. Each host has its share
 * (base/share.h) of the threads that may be away, so a client that has vanished
 * can block only a bounded number of workers. A worker whose wait is over goes
 * on at once, whether there is a seat for it or not: to wait for a seat would
 * hold up the client, and the memory that both sides have set aside, for
 * nothing. So more than `max` may be running for a moment; none of them takes
 * another request until there is a seat for it.
 *
 * If there is no share left for the host of the client that is waited for, the
 * worker keeps its seat while it waits. The wait is given up when other
 * requests have waited for a seat in vain, and the client has answered nothing
 * that workers have asked it for in at least a second.
 *
 * On virtual time workers are threads, too, in lockstep with the loops
 * (ulnet/thread.h), and so block as they do elsewhere. None is made before
 * something is to be run.
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
	struct list workers;   /* exec_worker.link */
	struct list ended;     /* to be joined */
	unsigned int nworkers; /* that run */
	unsigned int idle;     /* of these, with nothing to do */
	unsigned int seated;   /* of these, running something and not away */
	struct quotas away;    /* of these, away: by host */
	struct list waits;     /* exec_wait.link, seated or away */
	unsigned int leaving;  /* waits that are EXEC_WAIT_OVER */
	unsigned int normal;   /* seated, with requests that are not high */
	uint32_t taken;	       /* from the queue, in all */
	struct mean hold;      /* how long a request has its worker */
	uint64_t again; /* ns: when an idle worker asks what the gate has let
			 * through; TIME_NEVER: no worker does */
	enum exec_state state;
};

/* 0, -ENOMEM, -errno of making threads. */
int exec_open(struct exec *e, const struct exec_conf *conf) must_check;
/* Queues @item, in item->lane. Any thread. @now: ns. False: it would not be
 * done in time, and is not queued; item->again ns from now there may be
 * room. */
bool exec_add(struct exec *e, struct sched_item *item, uint64_t now) must_check;
/* The same for an item that was run before, and that run() continues: it is
 * never refused as too late. False: the workers have ended, or are about to. */
bool exec_add_again(struct exec *e, struct sched_item *item,
		    uint64_t now) must_check;
/* Moves @item, if it is queued, to the client @to, because the client that it
 * belonged to may be freed. Any thread. */
void exec_hand_over(struct exec *e, struct sched_item *item,
		    struct sched_client *to, uint64_t now);
/* Where an item is, about. */
struct exec_place {
	bool held;	    /* in the gate */
	unsigned int ahead; /* how many are served before it */
	uint64_t wait;	    /* ns until a worker has it */
};
/* False: it is not queued. Any thread. */
bool exec_find(struct exec *e, const struct sched_item *item, uint64_t now,
	       struct exec_place *place);
/* Takes @item out, if it is still queued. Any thread. */
bool exec_remove(struct exec *e, struct sched_item *item);
/* Is the calling thread one of its workers? */
bool exec_is_mine(const struct exec *e);

enum exec_wait_state {
	EXEC_WAIT_SEATED, /* its worker has a seat, which it would give up */
	EXEC_WAIT_AWAY,
	EXEC_WAIT_OVER, /* it is to end, for the sake of others */
};

/* A wait of a worker for a client. */
struct exec_wait {
	/* the worker's, before the beginning */
	struct sched_client *client;   /* borrowed; exec_hand_over() */
	const struct sched_item *item; /* whose handler waits */
	const struct ulnet_nid *host;  /* the client's; borrowed */
	/* Of the bulk that is waited for; borrowed. */
	const struct bulk_progress *progress;
	/* exec_wait_look() has news: called with the exec's lock held, on any
	 * thread. */
	void (*wake)(struct exec_wait *w);
	/* exec.lock's */
	struct list link; /* exec.waits */
	struct exec_worker *worker;
	enum exec_wait_state state;
	bool woken; /* others wait for its seat: it looks again by itself */
	struct quota *quota; /* away */
	uint64_t began;	     /* ns */
};

/* The calling thread is going to wait. False: it is not a worker of @e: there
 * is nothing to do. */
bool exec_wait_begin(struct exec *e, struct exec_wait *w) must_check;
/* What has become of the wait. *@until: ns, when to ask again, unless it is
 * woken before. By its worker. */
enum exec_wait_state exec_wait_look(struct exec *e, struct exec_wait *w,
				    uint64_t *until);
void exec_wait_end(struct exec *e, struct exec_wait *w);

/* Workers end when nothing is queued. Once. Any thread. */
void exec_close(struct exec *e);
/* After conf.gone; nothing is queued. Joins threads that have nothing left to
 * do. */
void exec_free(struct exec *e);

#endif
