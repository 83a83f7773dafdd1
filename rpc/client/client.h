/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client: one service of one server, and the calls to it.
 *
 * Calls that are made in one turn are sent at the end of the turn, in as few
 * messages as can carry them. They are sent earlier if at least as many calls
 * wait as are in flight. So messages grow with the queue, and the server is
 * busy with some calls while the program makes others. How many calls wait is
 * not limited: each takes memory until its deadline at the latest.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include "rpc/client/call.h"
#include "rpc/client/import.h"
#include "rpc/client/target.h"
#include "rpc/client/timeouts.h"
#include "rpc/client/trust.h"
#include "rpc/rpc.h"

struct wire_opened;

/* ---- the window: how many calls may be in flight ---- */

/*
 * Slow start: a new connection begins with as many calls as the server can take
 * at once (service_promise()), or with a few if it can take none, or does not
 * say. The limit doubles when that many calls were answered, up to what the
 * server grants (rpc/server/queue/share.h) and the user allows. So a server
 * that has just come back gets no more requests than it answers. Refusals
 * because the server is too busy do not count as answers.
 *
 * Handlers may wait, even for calls that slow start holds back. So the limit
 * also doubles when calls were held back, and nothing was answered, for
 * WINDOW_WAIT.
 */
#define WINDOW_BEGIN 2u
#define WINDOW_WAIT  (500 * NSEC_PER_MSEC)

/* All members count calls. None is 0, except for begin and left. */
struct window {
	/* the limit of a new connection, as the user says; 0: WINDOW_BEGIN, or
	 * what the server can take if that is more */
	uint32_t begin;
	uint32_t granted; /* what the server grants and the user allows */
	uint32_t limit;	  /* calls that may be in flight now: 1 to granted */
	/* answers that are missing until the limit doubles */
	uint32_t left;
};

static inline bool window_is_slow(const struct window *w)
{
	return w->limit < w->granted;
}

/* A connection was made: slow start begins. */
static inline void window_begin(struct window *w)
{
	w->left = w->limit =
		MIN(w->begin ? w->begin : WINDOW_BEGIN, w->granted);
}

static inline void window_init(struct window *w, uint32_t begin,
			       uint32_t granted)
{
	w->begin = begin;
	w->granted = granted;
	window_begin(w);
}

static inline void window_grant(struct window *w, uint32_t granted)
{
	w->granted = MAX(granted, 1u);
	w->limit = MIN(w->limit, w->granted);
}

/* The server can take @n calls at once. */
static inline void window_promised(struct window *w, uint32_t n)
{
	n = MIN(n, w->granted);
	if (!w->begin && n > w->limit)
		w->left = w->limit = n;
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

/* ---- the client ---- */

/* Fewer calls than this always wait for the end of the turn. */
#define CLIENT_BATCH_MIN 64u

enum client_state {
	CLIENT_UNOPENED, /* the portal of the service is not known */
	CLIENT_OPENING,	 /* the server is asked for the portal */
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
	char *server; /* a pattern: ulrpc_client_conf.server; NULL: any */
	/* array: the NIDs that the user has given, for which no name changes
	 * the port */
	struct ulnet_nid *given;
	unsigned int ngiven;
	/* bytes of a message with one reply that a seal, and the digest of a
	 * held reply, take */
	uint32_t sealed_room;
	uint32_t seal_head; /* bytes of a request message before its head */

	struct stat_service *stats; /* NULL: there was no memory for it */
	struct timeouts timeouts;
	struct retry_rule retry; /* the rule for calls without their own */
	struct import *imp;
	struct list link; /* import.clients */
	struct client_target *target; /* NULL: NIDs were given */
	bool closed;	  /* by its user */
	/* client_last_ended() has to do something: it is closed, or its target
	 * waits for that */
	bool heeds_quiet;
	bool flushing;	  /* the work flush has been given */
	/* Bodies have checksums, because the user wants that (@wants_checked),
	 * or the service, by the last answer to Open. */
	bool checked, wants_checked;
	/* The head of requests has more in it than is usual: a checksum, or a
	 * flavour above ULRPC_FLAVOUR_AUTH. */
	bool marked;
	/* The least that is good enough for the user; what is used, by the last
	 * answer to Open; and what that answer named, if nothing came of it. */
	enum ulrpc_flavour least, flavour, told_flavour;

	/* Lists of calls, by ulrpc_call.link; enum call_state says when a call
	 * is in which. Calls in again and queue are sent by the work flush,
	 * which is given when one of these happens: the service is opened, a
	 * connection is made, the import's pause ends, a call in flight ends, a
	 * slot becomes free (import.slots.wanted). Calls in ask wait for one of
	 * the first three. */
	struct list again;   /* to be sent again: these go first */
	struct list queue;   /* never sent */
	struct list summing; /* before queue: their sources are being summed */
	struct list stalled; /* lacked memory, or a bulk; until stall_timer */
	struct list fenced;  /* wait for bulks, call.pause or call.work */
	struct list ask;     /* the server is to be asked about them */
	struct list fetching;
	/* of calls that have been answered, and whose sinks are being opened:
	 * struct opening */
	struct list opening;
	uint32_t nqueued, inflight;
	uint32_t ncalls; /* calls that have not ended */
	uint64_t ready;	 /* ns: since when calls can be sent */

	struct fsm fsm;	   /* enum client_state */
	bool open_awaited; /* Open was sent, and is not answered */
	bool open_sending; /* LNet is still sending an Open */
	/* The server has answered the last Open, saying that it does not know
	 * the rail of the Open. */
	bool unknown_rail;
	uint64_t tag; /* names the last Open; its answer has the same */
	struct ulnet_timer open_timer;
	uint32_t portal, request_max, message_max;
	bool logged_too_long; /* a request that is too long */
	/* Opens in a row, without a call answered between. */
	unsigned int reopened;
	/* Why the service is not open, by the last answer to Open;
	 * ULRPC_CAUSE_OK: no answer has said so. */
	enum ulrpc_cause refusal;
	/* why the service is refused to this client, or by it */
	enum client_distrust distrust;
	/* Also from the last answer to Open: whether the service has a store,
	 * which remembers what was executed, and the id of the store. */
	bool durable;
	uint8_t incarnation[RPC_ID_SIZE];

	struct ulnet_timer stall_timer; /* for client.stalled */

	struct window window; /* limits inflight */
	/* Armed while calls are held back by slow start. */
	struct ulnet_timer window_timer;

	/* Calls with a deadline, sorted by it. A new call usually goes to the
	 * end; if it cannot, it has a timer of its own instead (WATCH_TIMER).
	 * due_timer is armed for due_at, which is at or before the first
	 * deadline. */
	struct list due; /* ulrpc_call.due */
	uint64_t due_at; /* ns; TIME_NEVER: not armed */
	struct ulnet_timer due_timer;

	/* Batches whose answers are awaited, sorted by batch.due. watch_timer
	 * is armed for watch_at, which is at or before the first batch.due. */
	struct list watched; /* batch.of_watch */
	uint64_t watch_at;   /* ns; TIME_NEVER: not armed */
	struct ulnet_timer watch_timer;
	/* 64 random bits for attempt_due(), drawn anew when no attempt is under
	 * way. */
	uint64_t watch_jitter;

	struct ulnet_work flush, close_work, free_work;
	bool freeing;
};

static inline const struct retry_rule *call_rule(const struct ulrpc_call *call)
{
	return call->retry ? call->retry : &call->client->retry;
}

/* The slow path of client_submit(): sends calls now if enough wait. Otherwise
 * gives the work flush, or connects and opens the service first. */
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
/* The slow path of client_watch(): client.due is empty, or ends with a later
 * deadline than that of @call. */
void client_watch_first(struct ulrpc_client *c, struct ulrpc_call *call);
/* Ends @call at its deadline, which it must have, unless client_unwatch() comes
 * first. */
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
/* Something has changed that calls may have waited for: if any can be sent now,
 * gives the work flush, which sends them at the end of this turn. */
void client_kick(struct ulrpc_client *c);
/* Sends the calls and queries that can be sent now. */
void client_flush(struct ulrpc_client *c);
/* @call cannot be sent now, for want of memory, or because a bulk of it is
 * still in use. Sends it after a pause, alone in a message. */
void client_stall(struct ulrpc_client *c, struct ulrpc_call *call);
/* Queues a call to be sent again, before those that were never sent. Connects,
 * or opens the service, if that is needed first. */
void client_queue_again(struct ulrpc_client *c, struct ulrpc_call *call);
/* The last call has ended. */
void client_last_ended(struct ulrpc_client *c);
/* A call has ended, and is in no list any more. */
static inline void client_call_ended(struct ulrpc_client *c)
{
	if (--c->ncalls == 0)
		client_last_ended(c);
	else if (c->nqueued && !c->flushing)
		client_kick(c);
}
/* The server has answered a call, and lets @window calls be in flight; 0: as
 * many as before. */
void client_on_answer(struct ulrpc_client *c, uint32_t window);
/* Slow start: the server has answered @n calls, not counting answers that it is
 * too busy. */
void client_grow(struct ulrpc_client *c, uint32_t n);
/* The server may have lost the service, or moved it to another portal: asks for
 * the portal, and goes on with calls meanwhile. */
void client_verify(struct ulrpc_client *c);
/* The service is certainly not at the known portal: asks for it before anything
 * else is sent, at once and then at growing intervals. */
void client_reopen(struct ulrpc_client *c);
/* The portal of the service is not known any more. */
void client_unopen(struct ulrpc_client *c);

/* Why there is no connection: with this cause calls end whose deadlines come
 * while they wait for one. */
enum ulrpc_cause client_down_cause(const struct ulrpc_client *c);

/* The import has connected. @forgotten: the server has restarted, or has
 * forgotten this client, and client_unopen() was called for that. */
void client_on_connected(struct ulrpc_client *c, bool forgotten);
/* The server has forgotten the calls of @c, and holds no replies to them. The
 * caller has called client_unopen() before. */
void client_forgotten(struct ulrpc_client *c);
/* The server knows this node by one more rail: repeats an Open that was refused
 * because of its rail. */
void client_on_joined(struct ulrpc_client *c);
/* The connection was lost, or could not be made. */
void client_on_disconnected(struct ulrpc_client *c);
/* No NID of the server can be reached, as LNet says: ends the queued calls
 * whose retry rules allow no retries. */
void client_on_unreachable(struct ulrpc_client *c);
/* The server has refused the connection for good: ends the queued calls. */
void client_on_refused(struct ulrpc_client *c);
/* Writes why the target's name has no address. */
void client_no_name(const struct ulrpc_client *c, char *text, size_t size);
/* The server has answered Open. */
void client_on_opened(struct ulrpc_client *c, const struct wire_opened *m);

/* For client_open.c. client_init() fills @c, which is all 0, from @conf, except
 * for import, target and server; client_attach() is for lnet_call(), on the
 * client's CPT. Until then client_memory_free() frees it. */
extern const struct target_ops client_target_ops;
void client_init(struct ulrpc_client *c, struct shard *s,
		 const struct ulrpc_client_conf *conf);
int client_attach(void *arg);
void client_memory_free(struct ulrpc_client *c);
/* Ends all calls. */
void client_cancel_all(struct ulrpc_client *c, enum ulrpc_cause cause);
/* Disarms the timers. */
void client_stop(struct ulrpc_client *c);
/* Frees a client without calls, after client_stop(). */
void client_free(struct ulrpc_client *c);

#endif
