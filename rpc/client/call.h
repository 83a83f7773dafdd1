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
 * Owner: the CPT of its client's target, but for what is said to be atomic.
 *
 * Memory: with the last reference. There is one until the call ended, one for
 * a cancellation under way, one of each batch that is being sent from the
 * call's own memory, and the user's if he wanted one. Calls that the user has
 * no reference to are made and freed by the owner only.
 */
#ifndef RPC_CALL_H
#define RPC_CALL_H

#include "base/fsm.h"
#include "rpc/client/slots.h"
#include "rpc/rpc.h"

struct fetch;
struct batch;
struct stat_peer;
struct stat_service;
struct wire_reply;

/* For each state: what a call waits for, which list it is in, and which counter
 * counts it. The simulator's campaign checks that.
 *
 * NEW	   Given to its CPT by call.work; its client does not know it.
 * QUEUED  Waits for a connection, its service, or a place in flight: in
 *	   client.again, .queue or .stalled; or, when it cannot be sent and
 *	   call.work will end it, in .fenced. Counted in client.nqueued.
 * SENT	   An attempt is under way, in the batch of call.out. Its reply, or an
 *	   extension, is expected until call.expected.
 * ASK	   As SENT, but the attempt may be lost: the server is to be asked what
 *	   became of it, when there is a connection. In client.ask.
 * ASKED   As SENT, and the server has been asked: also in the batch of
 *	   call.query. The answer may come to either of them.
 * WAIT	   To be sent again, at call.pause.
 * FETCH   Executed; its reply is longer than reply_max, and being got from the
 *	   server: in client.fetching, with call.fetch.
 * FENCE   To be sent again, when nobody moves data from or to its bulks for
 *	   the attempt before: in client.fenced.
 * DONE	   Its callback has run; or will at the end of this turn, when its bulks
 *	   are free.
 *
 * SENT, ASK and ASKED are "out": counted in client.inflight, and each of their
 * places in batch.open.
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

/* Who ends a call at its deadline. */
enum call_watch {
	WATCH_NONE,  /* nobody: it has none, or has ended */
	WATCH_DUE,   /* client.due_timer: the call is in client.due */
	WATCH_TIMER, /* call.timer */
};

/* Where an answer to an attempt lands. */
struct place {
	struct batch *batch; /* NULL: nowhere */
	uint32_t index;	     /* of batch.entries */
	uint32_t attempt;    /* 0: the first one */
};

/* Not on the wire: the call has a trace. */
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
	struct place out;	  /* of the last attempt that is not a query */
	struct place query;	  /* of the last one that is */
	uint64_t expected;	  /* SENT, ASKED: ns; the server is asked if it
				* has said nothing until then */
	uint64_t sent;		  /* ns: the last attempt that is not a query */
	/* All that a message says of the call, besides numbers and body. Calls
	 * with the same said[] have the same bytes there. */
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
		uint64_t said[3];
	};
	uint64_t began, queued; /* ns */
	struct fsm fsm;
	bool shared; /* the user may have a reference: a malloc of its own */
	bool gone;   /* with its node, which crashed: it never ends */
	bool alone;  /* could not be sent for want of memory: goes by itself */
	uint8_t watch; /* enum call_watch */
	bool unknown;  /* an attempt before the last one may have been executed:
		       * only of calls that may be repeated, or looked up */
	bool bulk_failed; /* the answer to the last attempt says so: the server
			   * is asked whether there may be another one */
	bool forsaken; /* its service has had another store since it was sent */
	uint8_t class; /* slab_class_of() this, with what follows */
	uint32_t reply_need; /* bytes that its reply may take */
	uint32_t slot;	     /* of the import; SLOT_NONE: it was never sent */
	uint32_t attempts;   /* with queries */
	uint32_t retries;    /* of these, repetitions of what was delivered */
	uint32_t queries, extensions;
	uint32_t refusals; /* after which it was to be sent again */
	uint32_t asks;	   /* queries in a row that were not answered */
	_Atomic uint32_t refs;
	ulrpc_done_fn done;
	void *arg;
	uint32_t reply_limit; /* of what is fetched; 0: ULRPC_BODY_MAX */
	struct fetch *fetch;  /* FETCH */
	ulrpc_progress_fn progress;
	void *progress_arg; /* if there is progress */

	uint64_t connecting, window; /* ns spent so far */
	uint32_t paths;		     /* of the attempts before this one */

	/* Rail of the attempt before, once there was one. */
	struct ulnet_nid local, target;
	struct ulnet_timer timer; /* WATCH_TIMER */
	struct ulnet_timer pause; /* WAIT */
	struct ulnet_work work;	  /* it comes to its CPT; or ends, later */
	enum ulrpc_cause cause;	  /* of the end that work will bring */

	/* shared only */
	struct ulnet_work cancel;
	atomic_bool canceling; /* cancel is given, or will not be any more */

	/* nbulks of them, then the body, and TRACE_LENGTH bytes if traced */
	struct ulrpc_bulk *bulks[];
};

_Static_assert(sizeof(((struct ulrpc_call *)0)->said) ==
		       offsetof(struct ulrpc_call, began) -
			       offsetof(struct ulrpc_call, said),
	       "all of it, and no holes");

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

/* Adds the time since the call was queued to call.connecting and
 * call.window. */
void call_count_waiting(struct ulrpc_call *call, uint64_t now);
/* QUEUED -> SENT, as number @index in @p, which is being made. */
static inline void call_on_packed(struct ulrpc_call *call, struct batch *p,
				  uint32_t index, uint64_t due, uint64_t now)
{
	if (now != call->queued)
		call_count_waiting(call, now);
	call->out = (struct place){ p, index, call->attempts++ };
	call->expected = due;
	call->sent = now;
	call->alone = false;
	call_move(call, CALL_SENT);
}

static inline bool call_is_out(const struct ulrpc_call *call)
{
	return call->fsm.state == CALL_SENT || call->fsm.state == CALL_ASK ||
	       call->fsm.state == CALL_ASKED;
}
/* Ends a call that was not answered: what is known of its execution follows
 * from the state of the call. */
void call_fail(struct ulrpc_call *call, enum ulrpc_cause cause);
/* As call_fail(), but later, by work. Once for each call. */
void call_fail_later(struct ulrpc_call *call, enum ulrpc_cause cause);
/* An answer to its attempt has come, in a turn that began at @now. */
void call_on_reply(struct ulrpc_call *call, const struct wire_reply *reply,
		   uint64_t now);
/* Its deadline has come. */
void call_expire(struct ulrpc_call *call);

#endif
