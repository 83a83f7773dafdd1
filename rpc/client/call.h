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
#include "rpc/rpc.h"

struct fetch;
struct batch;
struct wire_reply;

/* For each state: what a call waits for, which list it is in, and which counter
 * counts it. The simulator's campaign checks this.
 *
 * NEW	   On its way to its CPT, by call.work.
 * QUEUED  Waits for the connection, the service, a slot, or room in the window:
 *	   in client.again, .queue or .stalled. Before that, in .summing:
 *	   call.work computes the checksums of its sources, or seals them, or
 *	   sealers do, and a bulk is not idle. Or in .fenced:
 *	   call.work will end it, as it cannot be sent. Counted in
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
 *	   bulks for the attempt before. In client.fenced.
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
	/* Nothing does: there is no deadline, or the call has ended. */
	WATCH_NONE,
	WATCH_DUE,   /* client.due_timer: the call is in client.due */
	WATCH_TIMER, /* call.timer */
};

/* An attempt or query, and the batch where its answer is awaited. */
struct batch_ref {
	struct batch *batch; /* NULL: no answer is awaited */
	uint32_t index;	     /* of batch.entries */
	uint32_t attempt;    /* its number; 0: the first one */
};

/* In call.flags, not on the wire: the call has a trace. */
#define CALL_TRACED 0x80u

struct ulrpc_call {
	/* what sending and answering touch */
	struct ulrpc_client *client;
	struct shard *shard;
	struct list link;  /* one of the client's lists: enum call_state */
	struct list due;   /* WATCH_DUE: client.due */
	struct list order; /* import.calls, while it has a slot */
	struct retry_rule *retry; /* its own; NULL: the client's */
	uint64_t xid;		  /* its number; 0: it was never sent */
	struct batch_ref out;	  /* of the last attempt that is not a query */
	struct batch_ref query;	  /* of the last query */
	uint64_t expected;	  /* SENT, ASKED: ns, when an answer is late */
	uint64_t sent;		  /* ns: the last attempt that is not a query */
	/* All that a message says of the call, except for numbers and body.
	 * Calls with the same header[] are encoded alike. */
	union {
		struct {
			uint64_t deadline; /* ns; TIME_NEVER */
			uint32_t method;
			uint32_t length; /* of the body */
			uint32_t reply_max;
			uint8_t priority, semantics;
			uint8_t nbulks;
			uint8_t flags; /* enum wire_call_flags; CALL_TRACED */
		};
		uint64_t header[3];
	};
	uint64_t began, queued; /* ns */
	struct fsm fsm;
	/* May have a reference of the user, or was made on another thread; its
	 * memory is from malloc(). */
	bool shared;
	bool crashed; /* its node has crashed: the callback never runs */
	/* client_stall() has put it off: goes in a batch of its own */
	bool alone;
	uint8_t watch; /* enum call_watch */
	bool unknown; /* an earlier attempt may have been executed, and the call
		       * was sent again all the same */
	bool bulk_failed; /* the last answer was WIRE_BULK_FAILED, and the
			   * server is asked whether it takes a retry */
	bool orphaned; /* the service has had another store since it was sent */
	/* retries that repeat attempts that were lost, up to UINT8_MAX */
	uint8_t losses;
	uint8_t class; /* slab_class_of() the call with its body */
	uint32_t reply_need; /* bytes that its reply may take */
	/* Number of its slot; SLOT_NONE: it was never sent. */
	uint32_t slot;
	uint32_t attempts; /* messages about it, with queries */
	uint32_t retries;  /* attempts that repeat delivered ones */
	uint32_t queries, extensions;
	uint32_t refusals;   /* answers after which it was to be sent again */
	uint32_t unanswered; /* queries in a row that were not answered */
	_Atomic uint32_t refs;
	ulrpc_done_fn done;
	void *arg;
	/* Bytes of a fetched reply, at most; 0: ULRPC_BODY_MAX. */
	uint32_t reply_limit;
	struct fetch *fetch; /* FETCH */
	ulrpc_progress_fn progress;
	void *progress_arg; /* set if progress is */

	/* ns that it has waited so far: for the connection or the service; for
	 * the window or a slot. */
	uint64_t connecting, window;
	uint32_t paths; /* that LNet tried for earlier attempts */

	/* Rail of the last attempt that has ended. */
	struct ulnet_nid local, target;
	struct ulnet_timer timer; /* WATCH_TIMER */
	struct ulnet_timer pause; /* WAIT */
	struct ulnet_work work;	  /* for NEW, call_sum(), call_fail_later() */
	enum ulrpc_cause cause;	  /* of call_fail_later() */

	/* shared only */
	struct ulnet_work cancel;
	/* The work cancel was given, or must not be given any more. */
	atomic_bool canceling;

	/* nbulks of them, then the body, and TRACE_LENGTH bytes if traced */
	struct ulrpc_bulk *bulks[];
};

_Static_assert(sizeof(((struct ulrpc_call *)0)->header) ==
		       offsetof(struct ulrpc_call, began) -
			       offsetof(struct ulrpc_call, header),
	       "header[] covers the structure, which has no holes");

static inline uint8_t *call_body(struct ulrpc_call *call)
{
	return (uint8_t *)&call->bulks[call->nbulks];
}

static inline uint8_t *call_trace(struct ulrpc_call *call)
{
	return call_body(call) + call->length;
}

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
/* QUEUED -> SENT: @call becomes entry @index of @p. @due: its expected, ns. */
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

/* Is @call in flight? Sent, and not answered: counted in client.inflight. */
static inline bool call_is_out(const struct ulrpc_call *call)
{
	return call->fsm.state == CALL_SENT || call->fsm.state == CALL_ASK ||
	       call->fsm.state == CALL_ASKED;
}
/* Ends a call that was not answered. What is known of its execution follows
 * from its state. */
void call_fail(struct ulrpc_call *call, enum ulrpc_cause cause);
/* Takes @call, whose sources are not all sealed, from the queue until they are.
 */
void call_seal(struct ulrpc_call *call);
/* Says in @text what of @call is too much to be sent. */
void call_excess(const struct ulrpc_call *call, char *text, size_t size);
/* call_fail() for all calls in a list of ulrpc_call.link. */
void calls_fail(struct list *calls, enum ulrpc_cause cause);
/* Schedules call_fail() for @call, which is QUEUED. At most once for a call. */
void call_fail_later(struct ulrpc_call *call, enum ulrpc_cause cause);
/* An answer to an attempt or query has come. @now: ns, when the turn began. */
void call_on_reply(struct ulrpc_call *call, const struct wire_reply *reply,
		   uint64_t now);
/* The deadline has come: ends the call. */
void call_expire(struct ulrpc_call *call);

#endif
