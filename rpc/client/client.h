/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client: one service of an import's server, with the calls to it. Calls made
 * in one turn are sent at its end, in as few messages as can carry them.
 * Earlier only if as many calls wait as are under way: so messages grow with
 * the queue, and the server is busy with some calls while others are being
 * made. Only deadlines limit how many calls wait: their memory is that of the
 * program that makes them.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include "rpc/client/call.h"
#include "rpc/client/import.h"
#include "rpc/rpc.h"

struct run;
struct stat_shard;
struct wire_opened;

/* ---- the window: how many calls may be in flight ---- */

/*
 * Slow start: with a new connection a client begins with a few calls, and the
 * limit doubles as soon as that many were answered, up to what the server
 * grants (rpc/server/queue/share.h) and the user allows. So a server that has
 * just come back gets no more requests than it answers. Refusals because the
 * server is too busy do not count as answers.
 *
 * Calls may wait in their handlers, even for other calls. So the limit also
 * doubles when calls are held back by slow start and nothing is answered for
 * WINDOW_WAIT.
 */
#define WINDOW_BEGIN 2u /* by default */
#define WINDOW_WAIT  (500 * NSEC_PER_MSEC)

/* No member is 0, except for left. */
struct window {
	uint32_t begin;	  /* the limit of a new connection */
	uint32_t granted; /* by the server, within what the user allows */
	uint32_t limit;	  /* calls in flight, now: 1 to granted */
	uint32_t left;	  /* answers until the limit is doubled */
};

static inline bool window_is_slow(const struct window *w)
{
	return w->limit < w->granted;
}

/* A connection begins. */
static inline void window_begin(struct window *w)
{
	w->left = w->limit = MIN(w->begin, w->granted);
}

/* @begin: 0: the default. */
static inline void window_init(struct window *w, uint32_t begin,
			       uint32_t granted)
{
	w->begin = begin ? begin : WINDOW_BEGIN;
	w->granted = granted;
	window_begin(w);
}

static inline void window_grant(struct window *w, uint32_t granted)
{
	w->granted = MAX(granted, 1u);
	w->limit = MIN(w->limit, w->granted);
}

static inline void window_double(struct window *w)
{
	w->limit = w->limit > w->granted / 2 ? w->granted : 2 * w->limit;
	w->left = w->limit;
}

/* @n calls were answered. */
static inline void window_served(struct window *w, uint32_t n)
{
	while (window_is_slow(w) && n >= w->left) {
		n -= w->left;
		window_double(w);
	}
	w->left -= MIN(n, w->left);
}

/* ---- T: how long the server has for an attempt ---- */

/*
 * T is computed from an estimate of the method: what its calls to this server
 * took lately (rpc/estimate.h), or, if there were none, what the server
 * advertises:
 *
 *	T = clamp(1.5 * estimate + grace, timeout_min, timeout_max)
 *	grace = max(20 ms, 4 * the deviation of round trips)
 *
 * but at most half of the time that the call has left, so that there is time to
 * ask what became of the attempt, and for another one. Without an estimate T is
 * a second.
 *
 * Samples are the queue and service times of first attempts, as the server
 * reports them; the rest of their total time is the round trip. They are taken
 * from runs of calls (rpc/run.h), at no cost to a call.
 */
struct timeouts {
	struct list methods; /* method_timeout.link; the last one used first */
	uint64_t advertised; /* ns: what the server says; 0: nothing */
	uint64_t folded;     /* ns: until when runs need not be asked for */
};

/* The server says that a call may take @us; 0: it says nothing. */
static inline void timeouts_advertised(struct timeouts *t, uint64_t us)
{
	if (us)
		t->advertised = rpc_ns(us);
}

/* ns that a call of @method may take at the server; 0: not known. */
uint64_t client_estimate(struct ulrpc_client *c, uint32_t method);
/* T, ns, for an attempt that begins now, of a call that has @remaining ns
 * left. */
uint64_t client_timeout(struct ulrpc_client *c, uint32_t method,
			uint64_t remaining);
/* The server is another one than before: forgets all estimates. */
void client_forget_times(struct ulrpc_client *c);
/* Adds the estimates of the methods of @c to @sum. -ENOMEM. */
int timeouts_gauge(struct ulrpc_client *c, struct stat_shard *sum);
/* runs.learn, of calls: takes samples from @run. */
void timeouts_learn(struct shard *s, const struct run *run);

/* ---- the client ---- */

/* At least so many calls are sent before the turn ends. */
#define CLIENT_BATCH_MIN 64u

enum client_state {
	CLIENT_UNOPENED, /* the portal of the service is not known */
	CLIENT_OPENING,	 /* the server is asked for it */
	CLIENT_OPEN,
	CLIENT_STATES
};
extern const struct fsm_state client_states[CLIENT_STATES];

struct ulrpc_client {
	/* immutable after open */
	struct ulrpc *rpc;
	struct shard *shard;
	uint32_t inflight_max, batch_max;
	char service[ULRPC_SERVICE_NAME];

	struct stat_service *stats; /* NULL: no memory */
	struct timeouts timeouts;
	struct retry_rule retry; /* of calls that have none of their own */
	struct import *imp;
	struct list link; /* import.clients */
	bool closed;	  /* by its user */
	bool flushing;	  /* client.flush has been given */

	/* ulrpc_call.link; enum call_state says which calls are where. Calls in
	 * again and queue wait for something that will have them sent: the
	 * service to be opened, a connection, the end of the import's pause,
	 * the end of a call in flight, a slot (import.slots.wanted); or else
	 * flush is given. Calls in ask wait for one of the first three. */
	struct list again;   /* were sent before, and go first */
	struct list queue;   /* never sent */
	struct list stalled; /* for want of memory, until stall_timer */
	struct list fenced;  /* wait for bulks, call.pause or call.work */
	struct list ask;     /* to be asked about */
	struct list fetching;
	uint32_t nqueued, inflight;
	uint32_t ncalls; /* that have not ended */
	uint64_t ready;	 /* ns: since when calls can be sent */

	struct fsm fsm;	   /* of the service */
	bool open_awaited; /* Open was sent, and is not answered */
	bool open_sending; /* LNet has an Open */
	bool unknown_rail; /* the answer to Open was that the server does not
			    * know us by the Open's rail */
	uint64_t tag;	   /* of the last Open */
	struct ulnet_timer open_timer;
	uint32_t portal, request_max, message_max;
	bool logged_too_long;	  /* a request that is too long */
	unsigned int reopened;	  /* Opens in a row without an answered call */
	enum ulrpc_cause refusal; /* why it is not open: the last answer */
	/* Also from the last answer: the service has a store, which remembers
	 * what was executed, and the store's id. */
	bool durable;
	uint8_t incarnation[RPC_ID_SIZE];

	struct ulnet_timer stall_timer; /* for client.stalled */

	struct window window; /* limits inflight */
	/* Armed while calls are held back by slow start. */
	struct ulnet_timer window_timer;

	/* Calls that have not ended, sorted by deadline. A new call usually
	 * goes to the end, without a timer of its own. due_timer is armed for
	 * due_at, which is at or before the first deadline. */
	struct list due; /* ulrpc_call.due */
	uint64_t due_at; /* ns; TIME_NEVER: not armed */
	struct ulnet_timer due_timer;

	/* Batches whose answers are awaited, by batch.due. watch_timer is armed
	 * for watch_at, which is at or before the first. */
	struct list watched; /* batch.of_watch */
	uint64_t watch_at;   /* ns; TIME_NEVER: not armed */
	struct ulnet_timer watch_timer;
	uint64_t watch_jitter; /* 64 random bits of attempt_due(), drawn anew
				* when no attempt is under way */

	struct ulnet_work flush, close_work, free_work;
	bool freeing;
};

static inline const struct retry_rule *call_rule(const struct ulrpc_call *call)
{
	return call->retry ? call->retry : &call->client->retry;
}

/* The rest of client_submit(): calls may have to be sent now, or are to be sent
 * at the end of this turn. */
void client_submitted(struct ulrpc_client *c);
/* Queues a new call. */
static inline void client_submit(struct ulrpc_client *c,
				 struct ulrpc_call *call)
{
	list_add_tail(&c->queue, &call->link);
	/* Nearly always the end of this turn is soon enough. */
	if (unlikely(++c->nqueued >= CLIENT_BATCH_MIN || !c->flushing))
		client_submitted(c);
}
/* The rest of client_watch(): the call does not go to the end of a list. */
void client_watch_first(struct ulrpc_client *c, struct ulrpc_call *call);
/* Has @call, which has a deadline, end by then, until client_unwatch(). */
static inline void client_watch(struct ulrpc_client *c, struct ulrpc_call *call)
{
	if (unlikely(list_empty(&c->due) ||
		     list_entry(c->due.prev, struct ulrpc_call, due)->deadline >
			     call->deadline)) {
		client_watch_first(c, call);
		return;
	}
	call->watch = WATCH_DUE;
	list_add_tail(&c->due, &call->due);
}

static inline void client_unwatch(struct ulrpc_call *call)
{
	if (likely(call->watch == WATCH_DUE))
		list_del(&call->due);
	else if (call->watch == WATCH_TIMER)
		shard_cancel(call->shard, &call->timer);
	call->watch = WATCH_NONE;
}
/* Something changed that calls may have waited for: sends what may go at the
 * end of this turn. */
void client_kick(struct ulrpc_client *c);
/* Sends what may go now. */
void client_flush(struct ulrpc_client *c);
/* There is no memory to send the call now: it is sent soon, alone. */
void client_stall(struct ulrpc_client *c, struct ulrpc_call *call);
/* Queues a call to be sent again, before others. Connects, or opens the
 * service, if that is needed first. */
void client_queue_again(struct ulrpc_client *c, struct ulrpc_call *call);
/* The last call has ended. */
void client_last_ended(struct ulrpc_client *c);
static inline void client_call_ended(struct ulrpc_client *c)
{
	if (--c->ncalls == 0)
		client_last_ended(c);
	else if (c->nqueued && !c->flushing)
		client_kick(c);
}
/* The server has answered a call, and grants @window calls; 0: as before. */
void client_on_answer(struct ulrpc_client *c, uint32_t window);
/* Slow start: the server has answered @n calls, and was not too busy. */
void client_grow(struct ulrpc_client *c, uint32_t n);
/* The server may have lost the service, or moved it to another portal: asks,
 * while calls go on. */
void client_verify(struct ulrpc_client *c);
/* The service is certainly not at the known portal: asks for it before anything
 * else is sent, at once and then at growing intervals. */
void client_reopen(struct ulrpc_client *c);
/* The portal of the service is not known any more. */
void client_unopen(struct ulrpc_client *c);

/* The cause with which calls end that have waited for a connection. */
enum ulrpc_cause client_down_cause(const struct ulrpc_client *c);

/* The import has connected. @forgotten: to another server than before, or one
 * that has forgotten us; client_unopen() came before. */
void client_on_connected(struct ulrpc_client *c, bool forgotten);
/* The server has forgotten our calls, and holds no replies for us.
 * client_unopen() came before. */
void client_forgotten(struct ulrpc_client *c);
/* The server knows us by one more rail. */
void client_on_joined(struct ulrpc_client *c);
void client_on_disconnected(struct ulrpc_client *c);
/* The server has refused the connection for good. */
void client_on_refused(struct ulrpc_client *c);
/* The server has answered Open. */
void client_on_opened(struct ulrpc_client *c, const struct wire_opened *m);

/* Ends all calls. */
void client_cancel_all(struct ulrpc_client *c, enum ulrpc_cause cause);
/* Disarms the timers. */
void client_stop(struct ulrpc_client *c);
/* Frees a client without calls, after client_stop(). */
void client_free(struct ulrpc_client *c);

#endif
