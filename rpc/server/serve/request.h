/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request that is being served, from its arrival to its reply.
 *
 *	ARRIVED -> RUNNING -> ANSWERING -> REPLIED		inline
 *	ARRIVED -> QUEUED -> RUNNING -> ANSWERING -> REPLIED	by a worker
 *
 * The thread that replies makes the request ANSWERING, and owns it from then
 * on. A request whose body is lent stays ARRIVED, but active, until the body
 * has been got. The CPT leaves the request alone until the reply has
 * come to the CPT, and then makes it REPLIED. If the service stops before the
 * handler replies, the request becomes LOST: then only the handler refers to
 * it, and its reply is dropped.
 *
 * The state is atomic, because the CPT, the worker that took the request from
 * the queue, and the thread that replies all move it. Everything else belongs
 * to the CPT, or does not change while the handler has the request.
 */
#ifndef RPC_REQUEST_H
#define RPC_REQUEST_H

#include <stdatomic.h>
#include "rpc/context/annex.h"
#include "rpc/server/queue/sched.h"
#include "rpc/server/serve/service.h"
#include "rpc/stats/spans.h"
#include "rpc/text.h"

struct durable;
struct export;
struct request_batch;
struct record;
struct scope;
struct transfers;
struct wire_call;
struct wire_reply;
struct reply_message;
struct request_seen;

enum request_state {
	REQUEST_ARRIVED,
	REQUEST_QUEUED,
	REQUEST_RUNNING,   /* the handler has the request */
	REQUEST_ANSWERING, /* the reply is on its way to the CPT */
	REQUEST_REPLIED,   /* the CPT has the reply, which waits for bulk */
	REQUEST_LOST,
	REQUEST_STATES
};

extern const struct fsm_state request_states[REQUEST_STATES];

/* Bytes: bodies up to this length are in the request itself. */
#define REQUEST_ROOM 256

/* What the replies to a batch need: bits of request_batch.wants. */
#define BATCH_WANTS_CHECKSUM 1u /* a checksum of the bodies */
/* a seal, because the message of the batch has one */
#define BATCH_WANTS_SEAL 2u
/* In sealed batches, the bits of wants from this one on are the flavour minus
 * ULRPC_FLAVOUR_AUTH. */
#define BATCH_FLAVOUR 2

/* A message of requests, and where the replies to it go. Exists as long as
 * calls of it are unanswered. Owner: CPT. */
struct request_batch {
	struct service_cpt *sc;
	/* a reference to the client's export; NULL: the client has none. Other
	 * threads that have a request of the batch may read the export, and
	 * what does not change in it, until the request is LOST
	 * (lost_settle() in service.c). */
	struct export *export;
	/* the client's share of the service, or service_cpt.unconnected */
	struct share *share;
	struct ulnet_id client;	 /* the process that sent the message */
	struct ulnet_nid source; /* the NID from which the message came */
	/* the NID of this node to which the message came */
	struct ulnet_nid local;
	uint64_t match;
	uint64_t handle; /* the client's handle of its connection */
	/* ns: the latest deadline of its calls; TIME_NEVER: one has none */
	uint64_t deadline;
	/* Of the call that was read last: how long its caller waits (us; 0:
	 * without limit), and until when (ns). */
	uint64_t remaining, due;
	/* us: the result of export_unknown_for() if there is no export */
	uint64_t unknown_for;
	uint32_t epoch;
	/* bytes of the longest reply that calls take which do not say a limit
	 */
	uint32_t reply_limit;
	/* one reference for each request, and one while the message is being
	 * read */
	uint32_t refs;
	/* calls that still need a reply in a message of this batch */
	uint32_t unanswered;
	/* As long as service_cpt.changes is room_as_of, there is room for a
	 * request of room_length bytes with a reply of room_reply bytes. */
	uint32_t room_as_of;
	uint32_t room_length, room_reply;
	/* the message is still being read: replies are packed, but not sent yet
	 */
	bool reading;
	/* the whole message is refused, because the service stops */
	bool refused;
	uint8_t wants; /* bits BATCH_WANTS_*: what the batch's replies need */
	/* the message that replies are being added to; NULL: none */
	struct reply_message *out;
	struct list link; /* node in service_cpt.flush */
};

/* Returns the flavour of the calls of @b, which their replies and bulk have,
 * too. */
static inline enum ulrpc_flavour batch_flavour(const struct request_batch *b)
{
	if (likely(!(b->wants & BATCH_WANTS_SEAL)))
		return ULRPC_FLAVOUR_NONE;
	return (enum ulrpc_flavour)(ULRPC_FLAVOUR_AUTH +
				    (b->wants >> BATCH_FLAVOUR));
}

/* What few requests have: bits of ulrpc_request.rare. */
enum request_rare {
	REQUEST_DURABLE = 1, /* durable is set */
	REQUEST_ANNEX = 2,   /* it has come with an annex */
	REQUEST_ADDED = 4,   /* the handler has added to its reply */
	REQUEST_SCOPE = 8,   /* as scoped, for the thread that has it */
	REQUEST_SPAN = 16,   /* span is set: the request becomes a span */
	REQUEST_SEEN = 32,   /* seen is set */
	/* its metadata are those of a set that was known (session/known.h); at
	 * first, annex and annex_length are as they came */
	REQUEST_KNOWN = 64,
	REQUEST_LENT = 128, /* its body was lent */
};

struct ulrpc_request {
	/* what has come; does not change: */
	struct service_cpt *sc;
	/* the message with the attempt that is served */
	struct request_batch *batch;
	/* the share that is charged: at first, that of the batch */
	struct share *share;
	struct ulrpc_method *method;
	uint64_t xid;
	uint64_t arrival;  /* ns: when the request came, with all of its body */
	uint64_t deadline; /* ns: the caller's deadline; TIME_NEVER: none */
	/* the number of the attempt that is served; 0: the first one */
	uint32_t attempt;
	uint32_t reply_max; /* bytes of a reply in a message */
	uint32_t length;
	enum ulrpc_priority priority;
	uint8_t semantics; /* enum ulrpc_semantics: what the caller allows */
	const void *body;

	struct request_batch *reply_to; /* the message of the latest attempt */
	/* the record of the call; NULL: the request has none any more */
	struct record *record;
	/* the number of the latest attempt, which the reply is for */
	uint32_t latest;

	/* the fields from here to item are 0 when the request arrives */
	_Atomic uint8_t state;	/* enum request_state */
	_Atomic uint8_t cancel; /* enum cancel_state (cancel.h) */
	/* the request is under way: in service_cpt.active, and counted */
	bool active;
	bool reported; /* the request was logged as stuck */
	bool unwanted; /* nobody waits for the reply */
	/* request_on_bulk_done() will be called when the request's bulk has
	 * ended */
	bool waiting;
	/* the request is to become LOST when its bulk has ended */
	bool losing;
	bool traced; /* the field trace is set */
	/* even if the request becomes LOST, the service's store can tell the
	 * client how it ended */
	bool resent;
	uint8_t rare; /* enum request_rare */
	_Atomic uint8_t scoped; /* scope is set */
	/* threads inside of ulrpc_request_continue() and the like, for which
	 * request_wait_users() waits */
	_Atomic uint32_t users;
	/* the permille that the handler has reported, and the bit
	 * STALL_PROGRESS */
	_Atomic uint32_t progress;
	/* as in struct request_report: time in the handler that is not between
	 * @started and @replied */
	uint32_t fine;
	/* bytes of the longest reply that the caller takes; 0: as
	 * request_batch.reply_limit */
	uint32_t reply_limit;
	/* ns: when the handler was called; 0: it was not */
	_Atomic uint64_t started;
	/* a copy of the body, to be freed; NULL: none */
	void *copy;
	/* the inbox's buffer in which the body lies; NULL: it lies elsewhere */
	struct inbox_buffer *pin;
	struct transfers *transfers;
	struct durable *durable; /* NULL: no record of the request is stored */
	/* the continuation that a worker is to call; NULL: the handler */
	ulrpc_continue_fn next;
	/* the body of the reply, to be freed unless it lies in room */
	void *reply;

	struct sched_item item;
	/* Valid while @reply is given. proof: of a reply that is long; NULL: it
	 * is not proved. kept: refers to its body, which whoever takes it makes
	 * NULL. */
	struct reply_proof *proof;
	void **kept;
	/* valid while @active: */
	struct list link;	  /* node in service_cpt.active */
	struct list share_link;	  /* node in share.active */
	struct ulnet_timer timer; /* does what deadline.h says */
	uint64_t charged;	  /* bytes that were charged to @share */
	struct list cancel_link;  /* node in service_cpt.canceled */
	struct list extend_link;  /* node in export.extending */
	/* for deadline.h: */
	uint64_t timeout; /* ns: T of the latest attempt; 0: it has none */
	/* ns: when T ends, with all extensions; at most deadline */
	uint64_t expires;
	uint64_t look;	     /* ns: when to look for progress again */
	uint64_t progressed; /* ns: when progress was last seen; 0: never */
	/* segments of bulk that had been moved when the CPT last looked */
	uint64_t segments;
	bool stalled;
	uint32_t slot;
	uint32_t extensions;
	ulrpc_cancel_fn on_cancel;
	void *on_cancel_arg;
	/* the next request of service_cpt.lost */
	struct ulrpc_request *lost_link;
	struct ulnet_work work; /* calls request_on_replied() */
	void *next_arg;
	/* the reply, while it is on its way to the CPT: */
	uint32_t status; /* enum wire_status */
	uint32_t error;
	uint32_t reply_length;
	uint64_t replied; /* ns: when the handler replied */
	/* if scoped: of the calls that are made for it */
	struct scope *scope;
	/* REQUEST_ANNEX, from when the handler is called: annex, for
	 * annex_pair(), and the bytes that come before the body, with it; until
	 * then 0 */
	struct wire_view annex;
	uint32_t annex_length;
	/* REQUEST_ADDED: what goes with the reply, and the body that is made of
	 * both; NULL: it is not made yet */
	struct annex added;
	void *annexed;
	/* if REQUEST_SEEN, from when its interceptors are called */
	struct request_seen *seen;
	uint8_t trace[TRACE_LENGTH];
	uint8_t span[SPAN_ROOM]; /* spans_begin() */
	_Alignas(uint64_t) uint8_t room[REQUEST_ROOM];
};

/* What inbox.fn calls: a message has come to the portal of @sc. */
void request_on_message(void *sc, const struct ulnet_event *ev,
			const void *payload, size_t length);
/* The same for the portal that services share. Bodies are copied, and never pin
 * a buffer, so that no service can take the buffers from the others. */
void request_on_shared(void *sc, const struct ulnet_event *ev,
		       const void *payload, size_t length);
/* Serves the call @c of @b, which has the record @rec. @may_pin: the body lies
 * in the inbox, and may stay there. Returns WIRE_OK, or the status with which
 * the call is to be refused (enum wire_status). If workers are too busy, sets
 * *@again_p to the ns after which they may be free. */
uint32_t request_arrive(struct request_batch *b, const struct wire_call *c,
			struct record *rec, bool may_pin, uint64_t now,
			uint64_t *again_p);
/* Called when a later attempt of @r's call has come as @c of @b: the reply will
 * go to that attempt. Returns false if the attempt is for another service, or
 * lends other memory. */
bool request_again(struct ulrpc_request *r, struct request_batch *b,
		   const struct wire_call *c, uint64_t now);
/* What record_ops calls. */
void request_give_up(struct ulrpc_request *r);
void request_forget(struct ulrpc_request *r);
/* Sets b->remaining and b->due by @c, and raises b->deadline to b->due if it is
 * lower. @now: ns. */
void request_batch_add_deadline(struct request_batch *b,
				const struct wire_call *c, uint64_t now);
/* What exec_conf.run calls. */
void request_run(struct sched_item *item);
/* Refuses queued requests, and makes the requests LOST that handlers have,
 * because the service stops. */
void requests_abort(struct service_cpt *sc);
/* Called when the connection with @shares (share.link) ends: refuses queued
 * requests, and those whose bodies are being got, as STALE_EPOCH, because they
 * were certainly not executed, and cancels running ones. */
void requests_forget(const struct list *shares);
/* Frees the LOST requests of @sc, to which nobody refers any more. */
void requests_lost_free(struct service_cpt *sc);

void request_batch_free(struct request_batch *b);
static inline void request_batch_unref(struct request_batch *b)
{
	BUG_ON(!b->refs);
	if (unlikely(--b->refs == 0))
		request_batch_free(b);
}

/* ---- among the files of requests ---- */

/* Any thread. Returns how long the reply to @r may be, for its caller. */
static inline uint32_t request_reply_limit(const struct ulrpc_request *r)
{
	return r->reply_limit ? r->reply_limit : r->batch->reply_limit;
}

static inline unsigned int request_state(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->state, memory_order_acquire);
}

/* Is this process a child of fork()? The request belongs to the parent. If @r
 * is LOST, its node may be gone. */
static inline bool request_is_forked(struct ulrpc_request *r)
{
	bool forked;

	/* request_wait_users() waits for this count. */
	atomic_fetch_add(&r->users, 1);
	forked = atomic_load(&r->state) != REQUEST_LOST &&
		 lnet_is_forked(r->sc->shard->node);
	atomic_fetch_sub(&r->users, 1);
	return unlikely(forked);
}

/* Sets *@now_p to the time, ns. Returns false if @r is LOST, so that its node
 * may be gone. Any thread that has @r. */
bool request_now(struct ulrpc_request *r, uint64_t *now_p);

/* Returns ns: when the handler of @r was called; 0: it has not been called. */
static inline uint64_t request_started(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->started, memory_order_relaxed);
}

/* Moves @r from the state @from to @to. Returns false if @r is not in @from any
 * more, because another thread has moved it. */
static inline bool request_move(struct ulrpc_request *r,
				enum request_state from, enum request_state to)
{
	uint8_t was = from;

	BUG_ON(!(request_states[from].next & FSM_TO(to)));
	return atomic_compare_exchange_strong(&r->state, &was, to);
}

/* Drops the reference that r->reply_to holds. The caller then sets another one,
 * or frees @r. */
static inline void request_reply_to_put(struct ulrpc_request *r)
{
	if (unlikely(r->reply_to != r->batch))
		request_batch_unref(r->reply_to);
}

/* Statuses of requests whose handler was not called, or has refused: a bit for
 * each. */
#define REQUEST_NOT_EXECUTED                                 \
	(1u << WIRE_OVERLOADED | 1u << WIRE_EXPIRED |        \
	 1u << WIRE_SHUTTING_DOWN | 1u << WIRE_STALE_EPOCH | \
	 1u << WIRE_BAD_REQUEST)

/* Adds the span of @r, which ends as @end: a status of wire.h, or
 * STAT_UNANSWERED. Only with REQUEST_SPAN. Owner. */
void request_span(const struct ulrpc_request *r, uint32_t end);
/* Frees the body and the transfers of @r. */
void request_drop(struct ulrpc_request *r);
/* What ulrpc_request.work calls: the reply has come to the CPT of its request.
 */
void request_on_replied(struct ulnet_work *w);
/* Called when the handler replies. Takes @r; borrows @body until return. Any
 * thread. */
void request_answer(struct ulrpc_request *r, uint32_t status, uint32_t error,
		    const void *body, size_t length);
/* Makes the reply of @r, which is ANSWERING, consist of @status only. */
void request_answer_nothing(struct ulrpc_request *r, uint32_t status);
/* Refuses @r, which was queued, has not run, and has left the queue. Called on
 * its CPT. */
void request_refuse_queued(struct ulrpc_request *r, uint32_t status);

/* Returns how many bytes are charged for a request until its reply is sent. */
uint64_t request_size(const struct wire_call *c);
/* Queues @r for the workers. Returns false if it would be too late. */
bool request_queue(struct ulrpc_request *r);
/* Calls the handler of @r, which is active, and whose method is run inline. */
void request_run_inline(struct ulrpc_request *r);
/* Has request_on_bulk_done() called when the bulk of @r, of which some is being
 * moved, has ended. */
void request_wait_bulk(struct ulrpc_request *r);
/* Called when the bulk of @r has ended. If the reply is still on its way to the
 * CPT, does nothing: the request is finished when the reply comes. */
void request_on_bulk_done(struct ulrpc_request *r);

/* ---- bodies that are lent ---- */

/* What lent_keep() returns. */
#define LENT_BODY 1
/* Is the body of @c longer than @sc takes, which reads it from the caller's
 * memory? */
bool lent_is_too_long(const struct service_cpt *sc, const struct wire_call *c);
/* If @c is too long for @sc, whether it is lent or not, says so in @text, and
 * returns the length of the text; otherwise returns 0. */
uint32_t lent_excess(const struct service_cpt *sc, const struct wire_call *c,
		     char *text, size_t size);
/* Takes memory for the body of @r, if @c lends it. Returns LENT_BODY: it does;
 * 0: it does not; -EPROTO: the body is too long, or @c has another one;
 * -ENOMEM. */
int lent_keep(struct ulrpc_request *r, const struct wire_call *c) must_check;
/* Begins to get the body of @r, after LENT_BODY. Returns 0, and @r is active;
 * or -errno. */
int lent_begin(struct ulrpc_request *r, const struct wire_call *c) must_check;
/* Called when the bulk of @r has ended, which is ARRIVED: serves @r, or refuses
 * it. */
void lent_on_end(struct ulrpc_request *r);

/* Called when @r, which has come as @c, is not answered at once: counts it as
 * under way from now on, and charges @bytes of memory to its share. */
void request_activate(struct ulrpc_request *r, const struct wire_call *c,
		      uint64_t bytes);
/* Prepares @r, which has some of enum request_rare, for its handler. Returns
 * whether @r was answered instead. */
bool request_prepare(struct ulrpc_request *r);
/* Frees what the handler of @r has added to its reply, and what interceptors
 * know of it, and drops its scope. */
void request_added_free(struct ulrpc_request *r);
/* If the handler of @r has added to the reply @reply, whose body is *@body,
 * makes a body of both. If the client cannot read such a body, takes it apart.
 * Returns WIRE_OK or WIRE_FAILED: how the request ended, for statistics; or
 * another status, which @reply has. CPT. */
uint32_t request_annex(struct ulrpc_request *r, struct wire_reply *reply,
		       const void **body);
/* Called when the handler of @r, which is LOST, has replied. Frees what @r
 * refers to; @r itself is freed with the service. Any thread. */
void request_lost_end(struct ulrpc_request *r);
/* Counts @r, which is LOST, as having ended as @end, and ends its record
 * likewise. */
void request_report_lost(struct ulrpc_request *r, unsigned int end);
/* Called when @r is not under way any more: takes it out of all lists, and
 * gives back what it was charged. This may free the service and end the shard.
 */
void request_deactivate(struct ulrpc_request *r);
/* Waits until no thread uses the shard of @r (ulrpc_request.users), so that the
 * shard may be freed. The wait is short: a thread that comes after @r has
 * become LOST sees that, and does not use the shard. */
void request_wait_users(const struct ulrpc_request *r);

#endif
