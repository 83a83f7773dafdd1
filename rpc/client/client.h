/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client: one service of one server, and the calls to it.
 *
 * Calls that are made in one turn are sent at the end of the turn, in as few
 * messages as can carry them. They are sent earlier if at least as many calls
 * wait as are in flight. So messages grow with the queue, and the server is
 * busy with some calls while the program makes others. Each takes memory until
 * its deadline at the latest; how many there may be is limited (backlog.h).
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

#include "rpc/client/backlog.h"
#include "rpc/client/call.h"
#include "rpc/client/import.h"
#include "rpc/client/target.h"
#include "rpc/client/timeouts.h"
#include "rpc/client/trust.h"
#include "rpc/rpc.h"
#include "rpc/wire/wire_put.h"

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

/* Numbers of calls. All are at least 1, except for @begin and @left. */
struct window {
	/* the user's limit for a new connection; 0: WINDOW_BEGIN, or what the
	 * server can take at once if that is more */
	uint32_t begin;
	/* the largest limit that the server grants and the user allows */
	uint32_t granted;
	uint32_t limit; /* calls that may be in flight now: 1 to granted */
	/* how many more answers have to come until the limit doubles */
	uint32_t left;
};

static inline bool window_is_slow(const struct window *w)
{
	return w->limit < w->granted;
}

/* Begins slow start, for a new connection. */
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

/* Raises the limit to @n, the number of calls that the server says it can take
 * at once. */
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

/* Counts @n answered calls. */
static inline void window_served(struct window *w, uint32_t n)
{
	while (window_is_slow(w) && n >= w->left) {
		n -= w->left;
		window_double(w);
	}
	w->left -= MIN(n, w->left);
}

/* ---- the client ---- */

/* ulrpc_client_conf.inflight_max, unless the user has set it */
#define CLIENT_INFLIGHT_MAX 1024
/* While fewer calls than this wait, they are sent only at the end of the turn.
 */
#define CLIENT_BATCH_MIN 64u

enum client_state {
	CLIENT_UNOPENED, /* the portal of the service is not known */
	CLIENT_OPENING,	 /* the server is asked for the portal */
	CLIENT_OPEN,
	CLIENT_STATES
};
extern const struct fsm_state client_states[CLIENT_STATES];

/* What the owner of a client, if it is a part of libulrpc, hears about its
 * server. The function is called in a turn of the client's CPT, and must not
 * end calls. */
enum client_news {
	/* calls can be sent, or could be if the service were open */
	CLIENT_UP,
	CLIENT_DOWN, /* calls cannot be sent now */
	/* the server is gone (IMPORT_GONE); told after CLIENT_DOWN, if there
	 * was a connection, and perhaps repeatedly */
	CLIENT_GONE,
};
struct client_watch {
	/* NULL: nobody wants to hear */
	void (*fn)(void *arg, enum client_news news);
	void *arg;
};

/*
 * The fields of a call as they were encoded last, except for its numbers. The
 * next call mostly has the same ones, whether it is in the same message or not,
 * and they are copied. All 0 is the template for calls whose fields are all 0,
 * which are encoded as nothing.
 */
struct call_template {
	/* which calls it suits: those with the same header[1] and header[2],
	 * wire_call.timeout and .remaining (us) */
	uint64_t method_length, others, timeout, remaining;
	struct wire_call_rest rest;
};

enum client_mark {
	CLIENT_CLOSED = 1,  /* the user has closed the client */
	CLIENT_LIMITED = 2, /* reply_limit is set */
};

struct ulrpc_client {
	/* immutable after open: */
	struct ulrpc *rpc;
	struct shard *shard;
	struct call_chain *chain; /* NULL: calls have no interceptors */
	/* Calls open streams, whose users give what follows these bytes of the
	 * body. 0: calls are calls. */
	uint32_t open_head;
	/* of the call whose caller is being told that it has opened a stream;
	 * NULL: of none */
	struct interception *opened;
	bool carries; /* calls carry streams: the service is the carrier */
	/* the streams that calls open or carry, as a name that is only
	 * compared; NULL: none, or of a set. client_streams() */
	_Atomic(const void *) streams;
	uint32_t inflight_max; /* owner: clients_set() changes it */
	uint32_t batch_max;
	/* of calls that do not say one; 0: none. Written by the owner
	 * (clients_set()), read by any thread */
	_Atomic uint32_t reply_limit;
	char service[ULRPC_SERVICE_NAME];
	char *server; /* a pattern: ulrpc_client_conf.server; NULL: any */
	/* array of the NIDs that the user has given; no answer about a name
	 * changes their ports */
	struct ulnet_nid *given;
	unsigned int ngiven;
	/* bytes that a seal, and the digest of a held reply, take in a message
	 * with one reply */
	uint32_t sealed_room;
	/* bytes of the seal in front of the head of a request message */
	uint32_t seal_head;

	struct stat_service *stats; /* NULL: there was no memory for it */
	struct timeouts timeouts;
	/* retry rule of calls that have none of their own */
	struct retry_rule retry;
	struct import *imp;
	struct list link; /* node in import.clients */
	/* how the server's name leads to NIDs; NULL: the user has given NIDs */
	struct client_target *target;
	struct client_watch watch;
	/* owner: a set of servers has it for one of them, and limits the calls
	 * that have not ended itself */
	bool of_set;
	/* enum client_mark: what calls look at first. The owner writes it, any
	 * thread reads it: client_marks(), client_mark() */
	_Atomic uint8_t marks;
	/* when the last call has ended, client_last_ended() has something to
	 * do, because the client is closed, or its target waits for that */
	bool heeds_quiet;
	bool flushing; /* is the work `flush` posted? */
	/* checked: bodies have checksums, because the user wants them
	 * (wants_checked), or because the service does, as its last answer to
	 * Open says */
	bool checked, wants_checked;
	/* the head of requests has a rare field: a checksum, a flavour above
	 * ULRPC_FLAVOUR_AUTH, or a number */
	bool marked;
	/* least: the lowest flavour that the user accepts. flavour: the one in
	 * use, as the last answer to Open says. told_flavour: the one that this
	 * answer has named, if it could not be used */
	enum ulrpc_flavour least, flavour, told_flavour;
	struct call_template template; /* owner */

	/* Lists of calls, by ulrpc_call.link; enum call_state says when a call
	 * is in which list. The work `flush` sends the calls in @again and
	 * @queue. It is posted when one of these happens: the service is
	 * opened, a connection is made, the import's pause ends, a call in
	 * flight ends, a slot becomes free (import.slots.wanted). Calls in @ask
	 * wait for one of the first three. */
	struct list again; /* calls to be sent again; they go first */
	struct list queue; /* calls that were never sent */
	/* calls that come to @queue when checksums or seals of their sources
	 * are computed */
	struct list summing;
	/* calls for which there was no memory, or whose bulk was in use; they
	 * wait for @stall_timer */
	struct list stalled;
	/* calls that wait for bulks, for call.pause or for call.work */
	struct list fenced;
	struct list ask; /* calls about which the server is to be asked */
	struct list fetching;
	/* of struct opening: calls that are answered, and whose sinks are being
	 * opened */
	struct list opening;
	uint32_t nqueued, inflight;
	uint32_t ncalls; /* calls that have not ended */
	/* looked at for each call if none can be sent, or if CLIENT_BATCH_MIN
	 * wait, and at the end of turns in which calls are sent */
	struct backlog backlog;
	uint64_t ready;	 /* ns: since when calls can be sent */

	struct fsm fsm;	   /* enum client_state */
	bool open_awaited; /* Open was sent, and is not answered */
	bool open_sending; /* is LNet still sending an Open? */
	/* the server has answered the last Open, but did not know the rail by
	 * which it came */
	bool unknown_rail;
	uint64_t tag; /* number of the last Open, which is also in its answer */
	struct ulnet_timer open_timer;
	/* number: which of the services that share the portal; 0: it is the
	 * service's own */
	uint32_t portal, number, request_max, request_limit, message_max;
	/* Bytes: a longer body is lent from the beginning (lent.h). Any thread
	 * reads it. */
	_Atomic uint32_t lent_from;
	bool logged_too_long; /* a request that is too long was logged */
	/* how many Opens were sent since a call was last answered */
	unsigned int reopened;
	/* why the service is not open, as the last answer to Open says;
	 * ULRPC_CAUSE_OK: no answer has said why */
	enum ulrpc_cause refusal;
	/* why the service is refused to this client, or by it */
	enum client_distrust distrust;
	/* Also from the last answer to Open: has the service a store, which
	 * remembers what was executed, and what is the store's id? */
	bool durable;
	uint8_t incarnation[RPC_ID_SIZE];

	/* ends the wait of the calls in @stalled */
	struct ulnet_timer stall_timer;

	uint32_t server_window; /* what the server grants; 0: not known yet */
	struct window window; /* how many calls may be in flight */
	/* armed while slow start holds back calls */
	struct ulnet_timer window_timer;

	/* Calls with a deadline, sorted by it. A new call usually goes to the
	 * end; if it cannot, it has a timer of its own instead (WATCH_TIMER).
	 * due_timer is armed for due_at, which is not later than the first
	 * deadline. */
	struct list due; /* of ulrpc_call.due */
	uint64_t due_at; /* ns; TIME_NEVER: the timer is not armed */
	struct ulnet_timer due_timer;

	/* Batches whose answers are awaited, sorted by batch.due. watch_timer
	 * is armed for watch_at, which is not later than the first batch.due.
	 */
	struct list watched; /* of batch.of_watch */
	uint64_t watch_at;   /* ns; TIME_NEVER: the timer is not armed */
	struct ulnet_timer watch_timer;
	/* 64 random bits for attempt_due(); new ones when no attempt is under
	 * way */
	uint64_t watch_jitter;

	struct ulnet_work flush, close_work, free_work;
	bool freeing;
};

/* Any thread. */
static inline const void *client_streams(const struct ulrpc_client *c)
{
	return atomic_load_explicit(&c->streams, memory_order_relaxed);
}

static inline const struct retry_rule *call_rule(const struct ulrpc_call *call)
{
	return call->retry ? call->retry : &call->client->retry;
}

/* The slow path of client_submit(): sends calls now if enough wait. Otherwise
 * posts the work `flush`, or connects and opens the service first. */
void client_submitted(struct ulrpc_client *c);
/* Called when @c has got a call, or more bytes of calls: looks whether it takes
 * further ones (backlog.h). */
void client_look(struct ulrpc_client *c);
/* Queues a new call. */
static inline void client_submit(struct ulrpc_client *c,
				 struct ulrpc_call *call)
{
	list_add_tail(&c->queue, &call->link);
	/* Nearly always the end of this turn is soon enough. */
	if (unlikely(++c->nqueued >= CLIENT_BATCH_MIN || !c->flushing))
		client_submitted(c);
}
/* The slow path of client_watch(), for when client.due is empty, or ends with a
 * later deadline than that of @call. */
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
/* Returns what of enum client_mark is set. Any thread. */
static inline unsigned int client_marks(const struct ulrpc_client *c)
{
	return atomic_load_explicit(&c->marks, memory_order_relaxed);
}
/* Sets @mark, or unsets it. Owner. */
static inline void client_mark(struct ulrpc_client *c, enum client_mark mark,
			       bool on)
{
	unsigned int marks = client_marks(c) & ~(unsigned int)mark;

	atomic_store_explicit(&c->marks, (uint8_t)(on ? marks | mark : marks),
			      memory_order_relaxed);
}
/* Returns the limit of replies to calls of @c that have @limit; 0: none. What
 * carries streams brings no more than a message, which its servers know without
 * being told. */
static inline uint32_t client_limit(const struct ulrpc_client *c,
				    uint32_t limit)
{
	return c->carries ? ULRPC_BODY_MAX : limit;
}

/* From now on @limit is the reply_limit of calls that have none; 0: they have
 * none. Owner. */
static inline void client_limit_replies(struct ulrpc_client *c, uint32_t limit)
{
	atomic_store_explicit(&c->reply_limit, limit, memory_order_relaxed);
	client_mark(c, CLIENT_LIMITED, limit);
}

/* Called when something has changed that calls may have waited for. If a call
 * can be sent now, posts the work `flush`, which sends calls at the end of this
 * turn. */
void client_kick(struct ulrpc_client *c);
/* Sends the calls and queries that can be sent now. */
void client_flush(struct ulrpc_client *c);
/* @call cannot be sent now, for want of memory, or because a bulk of it is
 * still in use. Sends it after a pause, alone in a message. */
void client_stall(struct ulrpc_client *c, struct ulrpc_call *call);
/* Queues a call to be sent again, before those that were never sent. Connects,
 * or opens the service, if that is needed first. */
void client_queue_again(struct ulrpc_client *c, struct ulrpc_call *call);
/* Called when the last call has ended. */
void client_last_ended(struct ulrpc_client *c);
/* Called when a call has ended and has left all lists. */
static inline void client_call_ended(struct ulrpc_client *c)
{
	if (--c->ncalls == 0)
		client_last_ended(c);
	else if (c->nqueued && !c->flushing)
		client_kick(c);
}
/* Called when the server has answered a call. @window: how many calls may be in
 * flight from now on; 0: as many as before. */
void client_on_answer(struct ulrpc_client *c, uint32_t window);
/* Called when the server has answered @n calls, not counting refusals because
 * it is too busy: goes on with slow start. */
void client_grow(struct ulrpc_client *c, uint32_t n);
/* Asks the server for the portal, because it may have lost the service or moved
 * it. Calls go on meanwhile. */
void client_verify(struct ulrpc_client *c);
/* Called when the service is certainly not at the known portal: asks the server
 * for the portal before anything else is sent, at once and then at growing
 * intervals. */
void client_reopen(struct ulrpc_client *c);
/* Forgets the portal of the service. */
void client_unopen(struct ulrpc_client *c);

/* Called when the connection is suspected to be dead, or is not suspected any
 * more. */
void client_on_doubt(struct ulrpc_client *c);
/* Is there a connection to the server, not suspected to be dead, by which the
 * service is open, or at least was not refused? */
bool client_is_well(const struct ulrpc_client *c);
/* Opens a client for conf->nids. It belongs to @cpt: either the caller is in a
 * turn of that CPT, or in no turn. @given: the user has given the NIDs, so no
 * answer about a name changes their ports. Returns 0 or -errno. */
int client_open_at(struct ulrpc *rpc, unsigned int cpt,
		   const struct ulrpc_client_conf *conf, bool given,
		   struct ulrpc_client **client_p) must_check;
/* Checks @conf, except for target and NIDs. Returns 0, -EINVAL or -ENOKEY. */
int client_conf_check(const struct ulrpc *rpc,
		      const struct ulrpc_client_conf *conf) must_check;
/* Chooses the CPT for calls to the servers of conf->target, and makes this node
 * reach one of them. If the name has no address so far, that is no error: calls
 * tell their callers so, unless it has one by then. Returns 0 or -errno;
 * -EDEADLK: called where it must not wait. */
int client_name_cpt(struct ulrpc *rpc, const struct ulrpc_client_conf *conf,
		    unsigned int *cpt_p) must_check;
/* Makes this node reach one of conf->nids. Returns what client_name_cpt()
 * returns. */
int client_reach(const struct ulrpc *rpc,
		 const struct ulrpc_client_conf *conf) must_check;

/* Returns why there is no connection: the cause with which a call ends whose
 * deadline comes while it waits for one. */
enum ulrpc_cause client_down_cause(const struct ulrpc_client *c);

/* Called when the import has connected. @forgotten: the server has restarted or
 * has forgotten this client, and client_unopen() was called before. */
void client_on_connected(struct ulrpc_client *c, bool forgotten);
/* Called when the server has forgotten the calls of @c, and holds no replies to
 * them. The caller has called client_unopen() before. */
void client_forgotten(struct ulrpc_client *c);
/* Called when the server knows this node by one more rail: repeats an Open that
 * was refused because of its rail. */
void client_on_joined(struct ulrpc_client *c);
/* Called when the connection was lost, or could not be made. */
void client_on_disconnected(struct ulrpc_client *c);
/* Called when an attempt to connect has failed, by all NIDs of the server: ends
 * the queued calls that do not wait for a server, unless the target's name has
 * other servers that were not tried. */
void client_on_unreachable(struct ulrpc_client *c);
/* Called, perhaps repeatedly, when the server is gone (IMPORT_GONE). Streams
 * are lost with their server, so calls that carry some end. Calls that open
 * some end if they were sent: they may have opened streams that are lost; or if
 * other streams of the same client are lost. */
void client_on_gone(struct ulrpc_client *c);
/* Called when the server has refused the connection for good: ends the queued
 * calls. */
void client_on_refused(struct ulrpc_client *c);
/* Writes to @text why the target's name has no address. */
void client_no_name(const struct ulrpc_client *c, char *text, size_t size);
/* Writes to @text that the server has no room for one more client of the
 * service; "" if the server has not said so. */
void client_no_room(const struct ulrpc_client *c, char *text, size_t size);
/* Called when the server has answered Open. */
void client_on_opened(struct ulrpc_client *c, const struct wire_opened *m);

/* For client_open.c only. client_init() fills in @c, which is all 0, from
 * @conf, except for import, target and server. client_memory_free() frees what
 * client_init() has allocated, as long as client_attach() was not called.
 * client_attach() is a function for lnet_call() on the client's CPT. */
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
