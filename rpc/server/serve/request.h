/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request that is being served, from its arrival to its reply.
 *
 *	ARRIVED -> RUNNING -> ANSWERING -> REPLIED		inline
 *	ARRIVED -> QUEUED -> RUNNING -> ANSWERING -> REPLIED	by a worker
 *
 * The thread that replies makes the request ANSWERING, and owns it then: the
 * CPT leaves it alone until the reply has come to the CPT, and makes it
 * REPLIED. A request whose service stops before its handler replies is LOST:
 * only the handler has it, and its reply is dropped.
 *
 * The state is atomic, because the CPT, the worker that took the request from
 * the queue, and the thread that replies all move it. Everything else belongs
 * to the CPT, or does not change while the handler has the request.
 */
#ifndef RPC_REQUEST_H
#define RPC_REQUEST_H

#include <stdatomic.h>
#include "rpc/server/queue/sched.h"
#include "rpc/server/serve/service.h"
#include "rpc/text.h"

struct durable;
struct export;
struct request_batch;
struct record;
struct transfers;
struct wire_call;
struct reply_message;

enum request_state {
	REQUEST_ARRIVED,
	REQUEST_QUEUED,
	REQUEST_RUNNING,   /* its handler has it */
	REQUEST_ANSWERING, /* the reply is on its way to the CPT */
	REQUEST_REPLIED,   /* the CPT has the reply, which waits for bulk */
	REQUEST_LOST,
	REQUEST_STATES
};

extern const struct fsm_state request_states[REQUEST_STATES];

/* Bodies up to this size live in the request itself. */
#define REQUEST_ROOM 256

/* A message of requests: where its replies go. Exists as long as calls of it
 * are unanswered. Owner: CPT. */
struct request_batch {
	struct service_cpt *sc;
	struct export *export;	 /* a reference; NULL: none, or not any more */
	struct share *share;	 /* of the export, or service_cpt.unconnected */
	struct ulnet_id client;	 /* process that sent it */
	struct ulnet_nid source; /* NID it came from */
	struct ulnet_nid local;	 /* NID of ours that it came to */
	uint64_t match;
	uint64_t handle;   /* the client's */
	uint64_t deadline; /* ns: the latest of its calls; TIME_NEVER: none */
	/* Of the call that was read last: us that its caller waits, and its
	 * deadline, ns. */
	uint64_t remaining, due;
	uint64_t unknown_for; /* us: export_unknown_for(), without an export */
	uint32_t epoch;
	uint32_t refs;	     /* requests, and the message while it is read */
	uint32_t unanswered; /* calls whose replies go to this batch */
	/* When service_cpt.changes was room_as_of, there was room for a request
	 * of room_length bytes with a reply of room_reply bytes. */
	uint32_t room_as_of;
	uint32_t room_length, room_reply;
	bool reading;		   /* the message is; replies are only packed */
	bool refused;		   /* the whole message: the service stops */
	struct reply_message *out; /* being packed */
	struct list link;	   /* service_cpt.flush */
};

struct ulrpc_request {
	/* what has come; immutable */
	struct service_cpt *sc;
	struct request_batch *batch; /* of the attempt that is served */
	struct share *share;	     /* the batch's, at first */
	struct ulrpc_method *method;
	uint64_t xid;
	uint64_t arrival;  /* ns */
	uint64_t deadline; /* ns: the caller's; TIME_NEVER: none */
	uint32_t attempt;  /* the one that is served; 0 for the first */
	uint32_t reply_max;
	uint32_t length;
	enum ulrpc_priority priority;
	uint8_t semantics; /* the caller's: enum ulrpc_semantics */
	const void *body;

	/* the CPT's */
	struct request_batch *reply_to; /* of the latest attempt */
	struct record *record;		/* NULL: there is none any more */
	uint32_t latest;		/* the attempt that the reply is for */

	/* from here to item all is 0 at its arrival */
	_Atomic uint8_t state;	/* enum request_state */
	_Atomic uint8_t cancel; /* enum cancel_state: cancel.h */
	bool active;		/* in service_cpt.active, and counted */
	bool reported;		/* as stuck */
	bool unwanted;		/* nobody waits for its reply */
	bool waiting;		/* for its bulk to end: on_bulk_done() */
	bool losing;		/* it is to be lost when its bulk has ended */
	bool traced;		/* trace is set */
	bool resent;		/* a durable service's store tells its client
				 * of it, even if it is lost */
	_Atomic uint32_t users; /* request_wait_users() */
	_Atomic uint32_t progress; /* permille, and STALL_PROGRESS */
	_Atomic uint64_t started;  /* ns; 0: not yet */
	void *copy;		   /* of the body, to be freed; or NULL */
	struct inbox_buffer *pin;  /* that the body lies in; or NULL */
	struct transfers *transfers;
	struct durable *durable; /* NULL: nothing is stored of it */
	/* The continuation that a worker is to call; NULL: the handler. */
	ulrpc_continue_fn next;
	void *reply; /* to be freed, unless it is room */

	struct sched_item item;
	/* active: */
	struct list link;	  /* service_cpt.active */
	struct list share_link;	  /* share.active */
	struct ulnet_timer timer; /* deadline.h */
	uint64_t charged;	  /* bytes, to its share */
	struct list cancel_link;  /* service_cpt.canceled */
	struct list extend_link;  /* export.extending */
	/* deadline.h */
	uint64_t timeout;    /* ns: of the attempt; 0: none */
	uint64_t expires;    /* ns: its end, with extensions; <= deadline */
	uint64_t look;	     /* ns: when to look for progress again */
	uint64_t progressed; /* ns: when there was progress last; 0: never */
	uint64_t segments;   /* of bulk, moved until then */
	bool stalled;
	uint32_t slot;
	uint32_t extensions;
	ulrpc_cancel_fn on_cancel;
	void *on_cancel_arg;
	struct ulrpc_request *lost_link; /* service_cpt.lost */
	struct ulnet_work work;		 /* request_on_replied() */
	void *next_arg;
	/* the reply, on its way to the CPT */
	uint32_t status; /* enum wire_status */
	uint32_t error;
	uint32_t reply_length;
	uint64_t replied; /* ns */
	uint8_t trace[TRACE_LENGTH];
	_Alignas(uint64_t) uint8_t room[REQUEST_ROOM];
};

/* inbox.fn: a message has come to the portal of @sc. */
void request_on_message(void *sc, const struct ulnet_event *ev,
			const void *payload, size_t length);
/* Serves the call @c of @b, which has the record @rec. WIRE_OK, or why it is
 * refused (enum wire_status); *@again_p: ns until workers may be free, if they
 * are too busy. @may_pin: the body lies in the inbox. */
uint32_t request_arrive(struct request_batch *b, const struct wire_call *c,
			struct record *rec, bool may_pin, uint64_t now,
			uint64_t *again_p);
/* A later attempt of @r's call has come as @c of @b: the reply is for that
 * attempt. False: the attempt is for another service, or lends other memory. */
bool request_again(struct ulrpc_request *r, struct request_batch *b,
		   const struct wire_call *c, uint64_t now);
/* record_ops */
void request_give_up(struct ulrpc_request *r);
void request_forget(struct ulrpc_request *r);
/* Sets b->due to the deadline of @c, and makes b->deadline the latest. */
void request_batch_add_deadline(struct request_batch *b,
				const struct wire_call *c, uint64_t now);
/* exec_conf.run */
void request_run(struct sched_item *item);
/* The service stops: refuses queued requests, and makes those that handlers
 * have LOST. */
void requests_abort(struct service_cpt *sc);
/* The connection that has @shares ends: refuses queued requests as STALE_EPOCH,
 * since they were certainly not executed, and cancels running ones. */
void requests_forget(const struct list *shares);
/* Frees the requests that were lost. Nobody refers to @sc any more. */
void requests_lost_free(struct service_cpt *sc);

void request_batch_free(struct request_batch *b);
static inline void request_batch_unref(struct request_batch *b)
{
	BUG_ON(!b->refs);
	if (unlikely(--b->refs == 0))
		request_batch_free(b);
}

/* ---- among the files of requests ---- */

static inline unsigned int request_state(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->state, memory_order_acquire);
}

/* Any thread that has @r: sets *@now_p to the time, ns. False: @r is LOST, and
 * its node may be gone. */
bool request_now(struct ulrpc_request *r, uint64_t *now_p);

/* ns: when the handler of @r was called; 0: not yet. */
static inline uint64_t request_started(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->started, memory_order_relaxed);
}

/* False: another thread has moved @r from @from. */
static inline bool request_move(struct ulrpc_request *r,
				enum request_state from, enum request_state to)
{
	uint8_t was = from;

	BUG_ON(!(request_states[from].next & FSM_TO(to)));
	return atomic_compare_exchange_strong(&r->state, &was, to);
}

/* Drops the reference in r->reply_to. The caller sets another one, or frees
 * @r. */
static inline void request_reply_to_put(struct ulrpc_request *r)
{
	if (unlikely(r->reply_to != r->batch))
		request_batch_unref(r->reply_to);
}

/* Frees the body and the transfers of @r. */
void request_drop(struct ulrpc_request *r);
/* ulrpc_request.work: the reply has come to the CPT of its request. */
void request_on_replied(struct ulnet_work *w);
/* The handler replies: takes @r. Any thread. */
void request_answer(struct ulrpc_request *r, uint32_t status, uint32_t error,
		    const void *body, size_t length);
/* Makes the reply of @r, which is ANSWERING, nothing but @status. */
void request_answer_nothing(struct ulrpc_request *r, uint32_t status);
/* Refuses @r, which was queued, has not run, and is not in the queue any more.
 * On its CPT. */
void request_refuse_queued(struct ulrpc_request *r, uint32_t status);

/* @r, which has come as @c, is not answered at once: it counts as under way
 * from now on, and is charged for @bytes of memory. */
void request_activate(struct ulrpc_request *r, const struct wire_call *c,
		      uint64_t bytes);
/* Any thread: the handler of @r, which is LOST, has replied. Frees what @r
 * refers to; its own memory is freed with the service. */
void request_lost_end(struct ulrpc_request *r);
/* Waits until no thread looks at the shard of @r (ulrpc_request.users), which
 * may be freed then. That is short: threads that come after @r was lost see
 * that, and do not look. */
void request_wait_users(const struct ulrpc_request *r);

#endif
