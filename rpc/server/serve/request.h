/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request that is being served, from its arrival to its reply.
 *
 *	ARRIVED -> RUNNING -> ANSWERING -> REPLIED		inline
 *	ARRIVED -> QUEUED -> RUNNING -> ANSWERING -> REPLIED	by a worker
 *
 * A thread that replies makes the request ANSWERING, and so owns it: the CPT
 * leaves the request alone until the reply has come, and then makes it REPLIED.
 *
 * A request whose service stops before its handler answers is LOST: only the
 * handler has it, and its reply goes nowhere.
 *
 * The state is moved by whoever has the request: its CPT, or the worker that
 * took it from the queue, or who replies. So it is atomic; everything else
 * belongs to the CPT, or does not change while the handler has it.
 */
#ifndef RPC_REQUEST_H
#define RPC_REQUEST_H

#include <stdatomic.h>
#include "rpc/server/queue/sched.h"
#include "rpc/server/serve/service.h"
#include "rpc/trace.h"

struct durable;
struct export;
struct origin;
struct record;
struct transfers;
struct wire_call;
struct reply_message;

enum request_state {
	REQUEST_ARRIVED,
	REQUEST_QUEUED,
	REQUEST_RUNNING,   /* its handler has it */
	REQUEST_ANSWERING, /* the reply is written, and on its way to the CPT */
	REQUEST_REPLIED,   /* the reply is on the CPT, and waits for bulk */
	REQUEST_LOST,
	REQUEST_STATES
};

extern const struct fsm_state request_states[REQUEST_STATES];

/* Bodies up to this size live in the request itself. */
#define REQUEST_ROOM 256

/* A message of requests, as long as calls of it are unanswered. Owner: CPT. */
struct origin {
	struct service_cpt *sc;
	struct export *export;	 /* a reference; NULL: none, or not any more */
	struct share *share;	 /* of the export, or service_cpt.unknown */
	struct ulnet_id client;	 /* process that sent it */
	struct ulnet_nid source; /* NID it came from */
	struct ulnet_nid local;	 /* NID of ours that it came to */
	uint64_t match;
	uint64_t handle;   /* the client's */
	uint64_t deadline; /* ns: the latest of its calls; TIME_NEVER: none */
	/* The last call that was read: us that its caller waits, and so when
	 * the call is due, ns. */
	uint64_t remaining, due;
	uint64_t
		unknown_for; /* us, without an export: export_unknown_for() */
	uint32_t epoch;
	uint32_t refs;	     /* requests, and the message while it is read */
	uint32_t unanswered; /* calls to be answered to this address */
	/* When service_cpt.changes was room_as_of, there was room for one more
	 * request of up to room_length with a reply of up to room_reply; as
	 * long as it has not changed, that need not be found out again. */
	uint32_t room_as_of;
	uint32_t room_length, room_reply;
	bool reading;		   /* the message; replies wait for its end */
	bool refused;		   /* all of it: the service stops */
	struct reply_message *out; /* being packed */
	struct list link;	   /* service_cpt.flush */
};

struct ulrpc_request {
	/* what has come; immutable */
	struct service_cpt *sc;
	struct origin *origin; /* of the attempt that is served */
	struct share *share;   /* the origin's, at first */
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
	struct origin *answer; /* of the latest attempt: where the reply goes */
	struct record *record; /* NULL: there is none any more */
	uint32_t latest;       /* the attempt that the reply is for */

	/* what becomes of it; up to item all is 0 at its arrival */
	_Atomic uint8_t state;	/* enum request_state */
	_Atomic uint8_t cancel; /* enum cancel_state: cancel.h */
	bool active;		/* in service_cpt.active, and counted */
	bool reported;		/* as stuck */
	bool unwanted;		/* nobody waits for its reply */
	bool waiting;		/* to be told when bulk has ended */
	bool losing;		/* and then it is lost */
	bool traced;		/* trace is given */
	bool resent;		/* if it is lost, its client looks for it in a
				 * store */
	_Atomic uint32_t
		users; /* threads that look at its shard, unless lost */
	_Atomic uint32_t progress; /* permille, and STALL_PROGRESS */
	_Atomic uint64_t started;  /* ns; 0: not yet */
	void *copy;		   /* of the body, to be freed */
	struct inbox_buffer *pin;  /* or what it lies in */
	struct transfers *transfers;
	struct durable *durable; /* NULL: nothing is stored of it */
	ulrpc_continue_fn
		next; /* to be called by a worker; NULL: the handler */
	void *reply;  /* to be freed, unless it is room */

	struct sched_item item;
	/* active: */
	struct list link;	  /* service_cpt.active */
	struct list share_link;	  /* share.active */
	struct ulnet_timer timer; /* deadline.h */
	uint64_t held;		  /* bytes, as struct share counts them */
	struct list cancel_link;  /* service_cpt.canceled */
	struct list extend_link;  /* export.extending */
	uint64_t timeout;	  /* ns: of the attempt; 0: none */
	uint64_t expires; /* ns: that, with extensions; at most deadline */
	uint64_t look;	  /* deadline.h: ns, when to look for progress again */
	uint64_t progressed; /* ns: when there was some; 0: not yet */
	uint64_t segments;   /* of bulk, moved until then */
	bool stalled;
	uint32_t slot;
	uint32_t extensions;
	ulrpc_cancel_fn on_cancel;
	void *on_cancel_arg;
	struct ulrpc_request *lost_link; /* service_cpt.lost */
	struct ulnet_work work;		 /* brings the reply */
	void *next_arg;
	/* the reply, on its way */
	uint32_t status; /* enum wire_status */
	uint32_t error;
	uint32_t reply_length;
	uint64_t replied; /* ns */
	uint8_t trace[TRACE_LENGTH];
	_Alignas(uint64_t) uint8_t room[REQUEST_ROOM];
};

/* A message has come to the portal of @sc. */
void request_on_message(void *sc, const struct ulnet_event *ev,
			const void *payload, size_t length);
/* A call of @o has come, and has got the record @rec. WIRE_OK: it is served, or
 * will be; else why not (enum wire_status). If workers are too busy for it,
 * *@again_p is the ns until they may not be. @may_pin: the body lies in the
 * inbox. */
uint32_t request_arrive(struct origin *o, const struct wire_call *c,
			struct record *rec, bool may_pin, uint64_t now,
			uint64_t *again_p);
/* A later attempt of @r's call has come with @o: @r answers that one from now
 * on. False: the attempt is for another service, or lends other memory. */
bool request_again(struct ulrpc_request *r, struct origin *o,
		   const struct wire_call *c, uint64_t now);
/* record_ops: nobody waits for the reply any more; the record is gone. */
void request_give_up(struct ulrpc_request *r);
void request_forget(struct ulrpc_request *r);
/* The replies of @o may be for @c, too; o->due is when that is due. */
void origin_await(struct origin *o, const struct wire_call *c, uint64_t now);
/* exec_conf.run */
void request_run(struct sched_item *item);
/* Ends all that is under way: refuses queued requests, and makes those that
 * handlers have LOST. */
void requests_abort(struct service_cpt *sc);
/* The connection that has @shares ends: queued requests are refused as
 * STALE_EPOCH, since they were certainly not executed; running ones are
 * canceled. */
void requests_forget(const struct list *shares);
/* Nobody refers to @sc: frees requests that were lost and answered. */
void requests_lost_free(struct service_cpt *sc);

void origin_free(struct origin *o);
static inline void origin_unref(struct origin *o)
{
	BUG_ON(!o->refs);
	if (unlikely(--o->refs == 0))
		origin_free(o);
}

/* ---- among the files of requests ---- */

static inline unsigned int request_state(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->state, memory_order_acquire);
}

/* ns: when its handler was called; 0: not yet. */
static inline uint64_t request_started(const struct ulrpc_request *r)
{
	return atomic_load_explicit(&r->started, memory_order_relaxed);
}

/* False: somebody else has moved it from @from. */
static inline bool request_move(struct ulrpc_request *r,
				enum request_state from, enum request_state to)
{
	uint8_t was = from;

	BUG_ON(!(request_states[from].next & FSM_TO(to)));
	return atomic_compare_exchange_strong(&r->state, &was, to);
}

/* Gives back @r's reference to where its reply goes; the caller sets another
 * one, or frees @r. */
static inline void request_answer_put(struct ulrpc_request *r)
{
	if (unlikely(r->answer != r->origin))
		origin_unref(r->answer);
}

/* Gives back what a request holds besides its own memory. */
void request_drop(struct ulrpc_request *r);
/* Waits until the bulk of @r has ended; then @r is finished, or lost. */
void request_wait_bulk(struct ulrpc_request *r);
/* ulrpc_request.work: a reply has come to the CPT of its request. */
void request_on_replied(struct ulnet_work *w);
/* The answer of the handler: takes @r, on any thread. */
void request_answer(struct ulrpc_request *r, uint32_t status, uint32_t error,
		    const void *body, size_t length);
/* As request_answer(), with nothing in the reply but @status. */
void request_answer_nothing(struct ulrpc_request *r, uint32_t status);
/* Refuses a queued request, whose deadline has passed or whose service stops:
 * the request has not run, and will not. On its CPT; nobody else has the
 * request. */
void request_refuse_queued(struct ulrpc_request *r, uint32_t status);
/* @r, which is lost, counts as having ended as @end; its record does, too. */
void request_record_lost(struct ulrpc_request *r, unsigned int end);

/* The request, which has come as @c, is not answered at once: it counts as
 * under way from now on, with @held bytes. */
void request_activate(struct ulrpc_request *r, const struct wire_call *c,
		      uint64_t held);
/* @r is not under way any more. Tells whoever waits for that, at the end. */
void request_deactivate(struct ulrpc_request *r);
/* False: it is not in state @from any more, but replied, or being run. */
bool request_lose(struct ulrpc_request *r, enum request_state from);
/* @r is lost, and counts as having ended as @end. Its caller is told so: for
 * STAT_UNANSWERED WIRE_DOUBTFUL, or, if r->resent, WIRE_SHUTTING_DOWN. */
void request_lost(struct ulrpc_request *r, unsigned int end);
/* Its handler is done with it. Any thread; the memory goes with the service. */
void request_lost_end(struct ulrpc_request *r);
/* Waits for the threads that are looking at @r's shard (ulrpc_request.users),
 * before the shard is freed. It is short: those that come after @r was lost see
 * that, and do not look. */
void request_wait_users(const struct ulrpc_request *r);

#endif
