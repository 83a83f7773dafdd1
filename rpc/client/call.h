/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call, on the caller's side, from ulrpc_call() to its end.
 *
 *	NEW -> QUEUED -> SENT -> DONE
 *	         ^         |  ^    `--> FETCH ^ (a long reply)
 *	         |         v  |  (still being served)
 *	         |       ASK <-> ASKED	(what became of it?)
 *	         |         |      |
 *	         `- FENCE <+- WAIT<'	(again, in another message)
 *
 * Owner: the CPT of its client's target, except for atomic fields.
 *
 * A call is freed with its last reference. There is one until the call has
 * ended, one for a cancellation under way, one for each batch that sends the
 * body from the call's own memory, and one of the user if he has asked for it.
 * Calls without a reference of the user are made and freed by the owner only.
 */
#ifndef RPC_CALL_H
#define RPC_CALL_H

#include "base/fsm.h"
#include "rpc/client/slots.h"
#include "rpc/context/annex.h"
#include "rpc/context/scope.h"
#include "rpc/rpc.h"
#include "rpc/stats/spans.h"

struct fetch;
struct batch;
struct lent;
struct wire_reply;
struct wire_view;

/* For each state: what a call waits for, which list it is in, and which counter
 * counts it. The simulator's campaign checks this.
 *
 * NEW	   On its way to its CPT, by call.work.
 * QUEUED  Waits for the connection, the service, a slot, or room in the window:
 *	   in client.again, .queue or .stalled. Before that, in .summing:
 *	   call.work computes the checksums of its sources, or seals them; or
 *	   sealers seal a bulk, which is not idle then. Or in .fenced:
 *	   call.work will end the call, which cannot be sent. Counted in
 *	   client.nqueued.
 * SENT	   An attempt is under way, in the batch of call.out. Its reply, or an
 *	   extension, is expected until call.expected.
 * ASK	   As SENT, but the attempt may be lost: the server is to be asked what
 *	   became of it, when there is a connection. In client.ask.
 * ASKED   As SENT, and the server has been asked, in the batch of call.query.
 *	   The answer may come to either batch.
 * WAIT	   To be sent again, at call.pause. In client.fenced.
 * FETCH   Executed; the reply is longer than reply_max and is being fetched
 *	   from the server, by call.fetch. In client.fetching.
 * FENCE   To be sent again, when LNet no longer uses the memory of the call's
 *	   bulks for the attempt before: sinks, and sources with seals.
 *	   bulk_is_fenced(). In client.fenced.
 * DONE	   The callback has run, or will at the end of this turn, when the bulks
 *	   are idle.
 *
 * A call in SENT, ASK or ASKED is in flight: client.inflight counts it, and so
 * does batch.open of each batch where an answer may come.
 *
 * From its first sending until its end, a call has a number and a slot, and is
 * in import.calls, whatever its state. client.ncalls counts it from QUEUED
 * until its callback has run.
 */
enum call_state {
	CALL_NEW,
	CALL_QUEUED,
	CALL_SENT,
	CALL_ASK,
	CALL_ASKED,
	CALL_WAIT,
	CALL_FETCH,
	CALL_FENCE,
	CALL_DONE,
	CALL_STATES
};
extern const struct fsm_state call_states[CALL_STATES];
#define call_move(call, to) fsm_move(&(call)->fsm, call_states, to)

/* What ends a call at its deadline. */
enum call_watch {
	/* nothing, because there is no deadline, or the call has ended */
	WATCH_NONE,
	WATCH_DUE,   /* client.due_timer, because the call is in client.due */
	WATCH_TIMER, /* call.timer, because the call is not in client.due */
};

/* An attempt or a query, and the batch in which its answer is awaited. */
struct batch_ref {
	struct batch *batch; /* NULL: no answer is awaited */
	uint32_t index;	     /* the place of the call in batch.entries */
	/* number of the attempt or query; the first one is 0 */
	uint32_t attempt;
};

#define ERROR_MAX 4095 /* the largest errno that is taken from a server */

/* In call.flags, not on the wire: the call has a trace; it has a context; it
 * has bulks; the last message brought its metadata as call_context.name says
 * (naming.h); its body is lent. */
#define CALL_TRACED  0x80u
#define CALL_CONTEXT 0x40u
#define CALL_BULKS   0x20u
#define CALL_NAMED   0x04u
#define CALL_LENT    0x02u
#define CALL_LOCAL \
	(CALL_TRACED | CALL_CONTEXT | CALL_BULKS | CALL_NAMED | CALL_LENT)

/* In call.priority: reply_limit is set. The server is told, apart
 * from other calls: each may have another one. */
#define CALL_LIMITED 0x80u

struct ulrpc_call {
	/* what sending and answering touch: */
	struct ulrpc_client *client;
	struct shard *shard;
	/* node in the list of the client that enum call_state says */
	struct list link;
	struct list due;   /* node in client.due, with WATCH_DUE */
	struct list order; /* node in import.calls, while the call has a slot */
	/* the retry rule of this call; NULL: that of the client */
	struct retry_rule *retry;
	uint64_t xid;		/* the call's number; 0: it was never sent */
	struct batch_ref out;	/* the last attempt that is not a query */
	struct batch_ref query; /* the last query */
	/* ns: from when on an answer is late; valid in SENT and ASKED */
	uint64_t expected;
	/* ns: when the last attempt that is not a query was sent */
	uint64_t sent;
	/* All that a message says of the call, except for numbers and body.
	 * In one message, calls with the same header[] are encoded alike. */
	union {
		struct {
			uint64_t deadline; /* ns; TIME_NEVER: no deadline */
			uint32_t method;
			/* bytes of the body; 0: it is lent */
			uint32_t length;
			uint32_t reply_max;
			/* enum ulrpc_priority, and CALL_LIMITED */
			uint8_t priority;
			uint8_t semantics;
			uint8_t nbulks;
			/* enum wire_call_flags, and CALL_LOCAL */
			uint8_t flags;
		};
		uint64_t header[3];
	};
	/* ns: when the call was made, and when it was last queued */
	uint64_t began, queued;
	struct fsm fsm;
	/* The call's memory is from malloc(), because the user may have a
	 * reference, or because the call was made on another thread. */
	bool shared;
	/* the call's node has crashed, so the callback never runs */
	bool crashed;
	/* client_stall() has put the call off: it is sent in a batch of its own
	 */
	bool alone;
	uint8_t watch; /* enum call_watch */
	/* the call was sent again although an earlier attempt may have been
	 * executed */
	bool unknown;
	/* the last answer was WIRE_BULK_FAILED, and the server was asked
	 * whether the call may be tried again */
	bool bulk_failed;
	/* the service has another store now than when the call was sent */
	bool orphaned;
	/* how many lost attempts were repeated, at most UINT8_MAX */
	uint8_t losses;
	/* slab_class_of() of the size of the call with its body */
	uint8_t class;
	uint32_t reply_need; /* bytes that the reply may take in a message */
	/* number of the call's slot; SLOT_NONE: it was never sent */
	uint32_t slot;
	uint32_t attempts; /* messages about the call, including queries */
	uint32_t retries;  /* how many attempts repeated delivered ones */
	uint32_t queries, extensions;
	/* how many answers said that the call was to be sent again */
	uint32_t refusals;
	uint32_t unanswered; /* queries in a row that were not answered */
	_Atomic uint32_t refs;
	ulrpc_done_fn done;
	void *arg;
	/* bytes of a fetched reply, at most, as the caller or the client has
	 * said; 0: neither has (fetch_limit()) */
	uint32_t reply_limit;
	struct fetch *fetch; /* the fetch of the reply, in FETCH */
	struct lent *lent;   /* the body, with CALL_LENT */
	ulrpc_progress_fn progress;
	void *progress_arg; /* valid if @progress is set */

	/* ns that the call has waited so far. connecting: for the connection or
	 * the service. window: for the window or a slot */
	uint64_t connecting, window;
	/* how many paths LNet has tried for the attempts before */
	uint32_t paths;

	/* rail of the last attempt that has ended: NIDs of this node and of the
	 * peer */
	struct ulnet_nid local, target;
	struct ulnet_timer timer; /* fires at the deadline, with WATCH_TIMER */
	/* fires when the call is to be sent again, in WAIT */
	struct ulnet_timer pause;
	/* brings the call to its CPT, computes a slice of checksums or seals,
	 * or ends the call: see call_state */
	struct ulnet_work work;
	/* the cause that call_fail_later() was given */
	enum ulrpc_cause cause;

	/* used only if @shared: */
	struct ulnet_work cancel;
	/* the work @cancel was posted, or must not be posted any more */
	atomic_bool canceling;

	/* nbulks of them, then the body, unless it is lent, and CALL_TRACE
	 * bytes if traced: the trace, and SPAN_ROOM bytes. At the end, aligned,
	 * a call_context if there is a context. */
	struct ulrpc_bulk *bulks[];
};

_Static_assert(sizeof(((struct ulrpc_call *)0)->header) ==
		       offsetof(struct ulrpc_call, began) -
			       offsetof(struct ulrpc_call, header),
	       "header[] covers the structure, which has no holes");

#define CALL_TRACE (SCOPE_TRACE + SPAN_ROOM)

static inline uint8_t *call_body(struct ulrpc_call *call)
{
	return (uint8_t *)&call->bulks[call->nbulks];
}

uint8_t *lent_trace(struct ulrpc_call *call);
static inline uint8_t *call_trace(struct ulrpc_call *call)
{
	if (unlikely(call->flags & CALL_LENT))
		return lent_trace(call);
	return call_body(call) + call->length;
}

/* Of a call with a context. */
struct call_context {
	struct ulrpc_call *call;
	struct ulrpc_context *context; /* a reference */
	struct scope_link in; /* the scope of the request that it is for */
	bool taken;		       /* it is not released yet */
	struct annex_name name;	       /* if CALL_NAMED */
	/* what the user has given as call.done and call.arg */
	ulrpc_done_fn done;
	void *arg;
};

/* Bytes that a call_context takes, at most. */
#define CALL_CONTEXT_SIZE \
	(sizeof(struct call_context) + _Alignof(struct call_context))

/* Of @call, which has CALL_CONTEXT. */
struct call_context *call_context(struct ulrpc_call *call);
/* Returns the bytes of its body that a message of @call has. */
static inline uint32_t call_sent_length(struct ulrpc_call *call)
{
	const struct annex_name *name;

	if (likely(!(call->flags & CALL_NAMED)))
		return call->length;
	name = &call_context(call)->name;
	return call->length - name->skip + name->length;
}

/* Gives @call, which call_trace() was set for, the context @c. Returns 0 or
 * -EBUSY. */
int call_context_take(struct ulrpc_call *call, struct ulrpc_context *c);
/* If @call is made for a request, from now on it is canceled when the request
 * is: by @cancel, with call_context.in. Called on the CPT of @call, in the turn
 * in which the call leaves NEW. Returns 0; -ECANCELED: the request is canceled.
 */
int call_context_enter(struct ulrpc_call *call,
		       void (*cancel)(struct scope_link *l));
/* @call is being freed. */
void call_context_free(struct ulrpc_call *call);
/* Takes the annex of the reply *@body to @call off, and notes it. Sets cause,
 * status and text of @o by it, and returns whether the call went well. */
bool call_context_said(struct ulrpc_call *call, struct wire_view *body,
		       struct ulrpc_outcome *o);

/* Does what ulrpc_call() does, for a client with interceptors. */
int call_begin_intercepted(struct ulrpc_client *client, uint32_t method,
			   const void *body, size_t length,
			   const struct ulrpc_call_conf *conf,
			   ulrpc_done_fn done, void *arg,
			   struct ulrpc_call **call_p);
/* Makes the call as ulrpc_call() does for one without interceptors. @conf has a
 * context; if it is refused, the call ends as ULRPC_CAUSE_INTERCEPTED, and is
 * not sent. */
int call_begin_checked(struct ulrpc_client *client, uint32_t method,
		       const void *body, size_t length,
		       const struct ulrpc_call_conf *conf, ulrpc_done_fn done,
		       void *arg, struct ulrpc_call **call_p);

static inline void call_get(struct ulrpc_call *call)
{
	if (call->shared)
		atomic_fetch_add(&call->refs, 1);
	else
		atomic_store_explicit(
			&call->refs,
			atomic_load_explicit(&call->refs,
					     memory_order_relaxed) +
				1,
			memory_order_relaxed);
}

void call_free(struct ulrpc_call *call);
static inline void call_put(struct ulrpc_call *call)
{
	uint32_t refs;

	if (call->shared) {
		refs = atomic_fetch_sub(&call->refs, 1) - 1;
	} else {
		refs = atomic_load_explicit(&call->refs, memory_order_relaxed) -
		       1;
		atomic_store_explicit(&call->refs, refs, memory_order_relaxed);
	}
	if (!refs)
		call_free(call);
}

/* Adds the time since @call was queued to call.connecting and call.window. */
void call_count_waiting(struct ulrpc_call *call, uint64_t now);
/* Moves @call from QUEUED to SENT, and makes it entry @index of @p. @due:
 * call.expected, ns. */
static inline void call_on_packed(struct ulrpc_call *call, struct batch *p,
				  uint32_t index, uint64_t due, uint64_t now)
{
	if (now != call->queued)
		call_count_waiting(call, now);
	call->out = (struct batch_ref){ p, index, call->attempts++ };
	call->expected = due;
	call->sent = now;
	call->alone = false;
	call_move(call, CALL_SENT);
}

/* Is @call in flight: sent, not answered, and so counted in client.inflight? */
static inline bool call_is_out(const struct ulrpc_call *call)
{
	return call->fsm.state == CALL_SENT || call->fsm.state == CALL_ASK ||
	       call->fsm.state == CALL_ASKED;
}
/* Ends a call that was not answered. The state of the call tells whether it may
 * have been executed. */
void call_fail(struct ulrpc_call *call, enum ulrpc_cause cause);
/* Queues @call, which is QUEUED but in no queue, when the checksums or seals of
 * its sources are computed: a slice now, and one slice in each later turn. */
void call_sum(struct ulrpc_call *call);
/* Takes @call out of the queue until all its sources are sealed. */
void call_seal(struct ulrpc_call *call);
/* Writes to @text which part of @call is too long to be sent. */
void call_excess(const struct ulrpc_call *call, char *text, size_t size);
/* Calls call_fail() for all calls in a list of ulrpc_call.link. */
void calls_fail(struct list *calls, enum ulrpc_cause cause);
/* Schedules call_fail() for @call, which is QUEUED. Called at most once for a
 * call. */
void call_fail_later(struct ulrpc_call *call, enum ulrpc_cause cause);
/* Called when an answer to an attempt or query has come. @now: ns, when the
 * turn began. */
void call_on_reply(struct ulrpc_call *call, const struct wire_reply *reply,
		   uint64_t now);
/* Ends @call, because its deadline has come. */
void call_expire(struct ulrpc_call *call);

#endif
