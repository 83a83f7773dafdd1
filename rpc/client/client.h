/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client: a service of an import's node, with the calls that wait to be sent
 * there. Calls made in one turn travel together at its end, in as few messages
 * as can carry them. When as many calls wait as are under way, they are sent
 * before the turn ends: so messages grow with the queue, and the server is busy
 * with some calls while others are being made.
 * Nothing but their deadlines limits how many calls wait: the memory is that of
 * the program that makes them.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include "rpc/client/call.h"
#include "rpc/client/import.h"
#include "rpc/client/window.h"
#include "rpc/client/timeout.h"
#include "rpc/rpc.h"

struct wire_opened;

/* Queued calls are sent before the turn ends if there are at least so many. */
#define CLIENT_BATCH_MIN 64u

enum client_state {
	CLIENT_UNOPENED, /* the service is not known */
	CLIENT_OPENING,	 /* it is asked for */
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

	/* ulrpc_call.link; enum call_state says which calls are where. Calls
	 * of again and queue wait for something that will have them sent: the
	 * service to be opened, a connection, the import's pause, a call in
	 * flight to end, a slot (import.slots.wanted); or else flush is given.
	 * Those of ask wait for the first three of these. */
	struct list again;   /* were sent before; go first */
	struct list queue;   /* never sent; go after those */
	struct list stalled; /* for want of memory, until stall_timer */
	struct list fenced;  /* for bulks, call.pause or call.work */
	struct list ask;     /* to be asked about */
	struct list fetching;
	uint32_t nqueued, inflight;
	uint32_t ncalls; /* that have not ended */
	uint64_t ready;	 /* ns: since when calls can be sent */

	struct fsm fsm; /* of the service */
	bool asking;	/* Open has been sent; the answer is awaited */
	bool sending;	/* LNet has an Open */
	bool stranger;	/* the server has answered that it does not know us by
			 * the rail that the Open took */
	uint64_t tag;	/* of the last Open */
	struct ulnet_timer open_timer;
	uint32_t portal, request_max, message_max;
	bool said_too_long;	  /* logged, of a request */
	unsigned int reopened;	  /* in a row, in vain */
	enum ulrpc_cause refusal; /* why it is not open: the last answer */
	/* Also from the last answer: the service remembers beyond its own end,
	 * in the store with this id, which calls it has executed. */
	bool durable;
	uint8_t incarnation[RPC_ID_SIZE];

	struct ulnet_timer stall_timer; /* for client.stalled */

	struct window window; /* limits inflight */
	/* Armed while calls are held back by slow start. */
	struct ulnet_timer window_timer;

	/* Calls that have not ended, sorted by their deadlines. A new one
	 * usually belongs at the end, for which no timer has to be armed or
	 * canceled. due_timer comes at due_at, which is not after the first
	 * deadline: the first call may then be due, or not yet. */
	struct list due; /* ulrpc_call.due */
	uint64_t due_at; /* ns; TIME_NEVER: it is not armed */
	struct ulnet_timer due_timer;

	/* Attempts that are under way, by when their answers are expected.
	 * watch_timer comes at watch_at, which is not after the first. */
	struct list watched; /* batch.of_watch */
	uint64_t watch_at;   /* ns; TIME_NEVER: it is not armed */
	struct ulnet_timer watch_timer;
	uint64_t watch_jitter; /* 64 random bits: how much is added in
				* attempt_due(); drawn anew when no attempt is
				* under way */

	struct ulnet_work flush, close_work, free_work;
	bool freeing;
};

static inline const struct retry_rule *call_rule(const struct ulrpc_call *call)
{
	return call->retry ? call->retry : &call->client->retry;
}

/* Does what client_submit() leaves to it: a call has been queued. */
void client_submitted(struct ulrpc_client *c);
/* A call has come to its CPT. */
static inline void client_submit(struct ulrpc_client *c,
				 struct ulrpc_call *call)
{
	list_add_tail(&c->queue, &call->link);
	/* Nearly always the end of this turn will do. */
	if (unlikely(++c->nqueued >= CLIENT_BATCH_MIN || !c->flushing))
		client_submitted(c);
}
/* Makes @call end at its deadline, which it has to have, unless
 * client_unwatch() is called before. */
void client_watch_first(struct ulrpc_client *c, struct ulrpc_call *call);
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
/* Queued calls can perhaps be sent now: tries at the end of this turn. */
void client_kick(struct ulrpc_client *c);
/* Sends what may be sent. */
void client_flush(struct ulrpc_client *c);
/* There is no memory to send the call now: it is sent soon, and by itself. */
void client_stall(struct ulrpc_client *c, struct ulrpc_call *call);
/* A call is to be sent again: before others, and at the end of this turn if it
 * can be. Asks for what is missing. */
void client_queue_again(struct ulrpc_client *c, struct ulrpc_call *call);
/* A call has ended; it was the last one. */
void client_last_ended(struct ulrpc_client *c);
static inline void client_call_ended(struct ulrpc_client *c)
{
	if (--c->ncalls == 0)
		client_last_ended(c);
	/* The call's place among those in flight is free. */
	else if (c->nqueued && !c->flushing)
		client_kick(c);
}
/* The server has answered a call, and says how many it grants; 0: as before. */
void client_on_answer(struct ulrpc_client *c, uint32_t window);
/* Slow start: the server was not too busy for @n calls. */
void client_grow(struct ulrpc_client *c, uint32_t n);
/* The server seems to have lost the service, or moved it to another portal:
 * asks. */
void client_verify(struct ulrpc_client *c);
/* The server certainly has no such service at the known portal: before anything
 * else is sent, asks where the service is, soon, and then ever more seldom. */
void client_reopen(struct ulrpc_client *c);
/* The service has answered a call. */
static inline void client_served(struct ulrpc_client *c)
{
	c->reopened = 0;
}
void client_unopen(struct ulrpc_client *c);

/* Why calls end that wait for a connection. */
enum ulrpc_cause client_down_cause(const struct ulrpc_client *c);

/* The import has a connection (@forgotten: with another server than before, or
 * with one that has forgotten us; client_unopen() came before), has none, or is
 * refused by the server. */
void client_on_connected(struct ulrpc_client *c, bool forgotten);
/* The server knows nothing of us any more, nor holds replies for us.
 * client_unopen() came before. */
void client_forgotten(struct ulrpc_client *c);
/* The server knows us by one more rail. */
void client_on_joined(struct ulrpc_client *c);
void client_on_disconnected(struct ulrpc_client *c);
void client_on_refused(struct ulrpc_client *c);
void client_on_opened(struct ulrpc_client *c, const struct wire_opened *m);

/* Ends all calls. */
void client_cancel_all(struct ulrpc_client *c, enum ulrpc_cause cause);
/* Disarms its timers. */
void client_stop(struct ulrpc_client *c);
/* Nothing of it is left. */
void client_free(struct ulrpc_client *c);

#endif
