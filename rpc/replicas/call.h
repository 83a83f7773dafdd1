/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call to one of several servers. It is made at one server after another
 * (each time is an attempt), until one has answered, and sometimes at two at a
 * time.
 *
 * A call goes on to another server if it was certainly not executed at any
 * server so far, or if it may be executed more than once. It leaves a server
 * that cannot be connected to, or that is not connected to after a while,
 * before the attempt there has ended by itself. When it was at all servers, it
 * begins anew after a pause.
 *
 * Owner: the CPT of the set, except for atomic fields.
 */
#ifndef RPC_REPLICAS_CALL_H
#define RPC_REPLICAS_CALL_H

#include "rpc/context/scope.h"
#include "rpc/replicas/replicas.h"

struct attempt {
	struct ulrpc_replicas_call *of;
	struct replica *at; /* the server; NULL: no attempt is under way */
	struct ulrpc_call *handle;
	/* sends what the user's context sends; NULL: that is not needed yet */
	struct ulrpc_context *context;
	uint64_t began; /* ns: when the attempt began */
	/* ns: since when it waits for a connection; valid in the list @waiting
	 */
	uint64_t waits_since;
	/* the server was left, and this attempt tries it */
	bool trial;
	struct list of_replica; /* node in replica.attempts */
	/* node in ulrpc_replicas.waiting, if the attempt waits for a connection
	 */
	struct list waiting;
};

/* A call has one attempt at a time, in [0] or [1], whichever is free. A second
 * one is under way only while the call is hedged. */
#define CALL_ATTEMPTS 2

struct ulrpc_replicas_call {
	struct ulrpc_replicas *all;
	struct shard *shard;
	struct list link; /* node in ulrpc_replicas.calls */
	/* node in ulrpc_replicas.parked, if the call waits for a server */
	struct list parked;
	struct attempt attempts[CALL_ATTEMPTS];
	uint64_t began, deadline; /* ns: points in time */
	/* while the call is parked: ends the pause; else: hedges the call */
	struct ulnet_timer timer;
	struct ulnet_work work; /* brings the call to its CPT */
	struct ulnet_work cancel;
	/* true: ulrpc_replicas_cancel() has nothing to do, because @cancel was
	 * posted, or the call has ended */
	atomic_bool canceling;
	/* references: one of the CPT, one of the user, one of @cancel */
	atomic_uint refs;

	ulrpc_replicas_done_fn done;
	void *arg;
	bool ended;    /* @done was called */
	bool over;     /* the timer is about to end the call with @last */
	bool canceled; /* somebody has canceled the call */
	/* one of the attempts that have ended may have been executed */
	bool unknown;
	bool hedged;
	bool keyed;
	uint64_t key;
	uint32_t moves;
	/* how many rounds are over: in each, the call was at all servers */
	unsigned int rounds;
	struct replica_set tried;
	/* ns: after which time a server without room has asked the call to
	 * come again: the least of this round; TIME_NEVER: none has */
	uint64_t retry_after;
	/* the server of the last attempt that has ended; LNET_NID_ANY: none has
	 */
	struct ulnet_nid server;
	struct ulrpc_outcome last; /* the outcome if the call had to end now */

	uint32_t method;
	size_t length;
	struct ulrpc_call_conf conf;
	/* The user's context, which the call has from its beginning to its end,
	 * so that nobody else uses it between two attempts; NULL: none. Each
	 * attempt has one of its own. */
	struct ulrpc_context *context;
	bool has_context; /* until the end of the call */
	/* that of the attempt that has ended last; NULL: none has */
	struct ulrpc_context *answered;
	struct scope_link in; /* of the context's request, if it has one */
	/* the call opens a stream; NULL: it does not */
	struct stream_opening *opening;
	/* what conf refers to */
	struct ulrpc_bulk *bulks[ULRPC_BULKS_MAX]; /* which the call claims */
	unsigned int nbulks; /* 0 when the call has ended */
	char trace[ULRPC_TRACE_SIZE];
	struct ulrpc_retry retry;
	uint32_t retries; /* how many rounds there may be after the first one */
	bool tell_overloaded;
	bool waits; /* the call waits for a server if all are away */
	/* all servers where the call was in this round are away */
	bool away;
	uint8_t body[];
};

/* ---- contexts: context.c ---- */

/* Gives the user's context @c to @call, also for its deadline. Returns 0;
 * -EBUSY: another call has it; -ENOMEM. Any thread. */
int replicas_context_take(struct ulrpc_replicas_call *call,
			  struct ulrpc_context *c);
/* Makes sure that @a has a context to give to ulrpc_call(), if its call has
 * one. Returns 0 or -ENOMEM. */
int replicas_context_lend(struct attempt *a);
/* From now on the call is canceled with the request for which it is made.
 * Returns 0; -ECANCELED: that has happened. */
int replicas_context_enter(struct ulrpc_replicas_call *call);
/* Gives the context back, with what the last answer has said. A second call has
 * no effect. */
void replicas_context_release(struct ulrpc_replicas_call *call);
void replicas_context_free(struct ulrpc_replicas_call *call);

/* ---- memory that is lent: bulks.c ---- */

/* Claims the bulks of @conf for the call. Returns 0; -EBUSY: one is in use;
 * -EINVAL: one is of another node. Any thread. */
int replicas_bulks_take(struct ulrpc_replicas_call *call,
			const struct ulrpc_call_conf *conf);
/* Do servers only read what the call lends? */
bool replicas_bulks_are_sources(const struct ulrpc_replicas_call *call);
/* Gives the claims up. Returns whether nothing uses the memory any more. A
 * second call has no effect. */
bool replicas_bulks_release(struct ulrpc_replicas_call *call);
/* Sets @lent to what an attempt that begins lends. Returns 0, and then the
 * caller calls replicas_bulks_lent(); -ENOMEM; or -EBUSY: the attempt has to
 * wait until an earlier one leaves the memory alone. */
int replicas_bulks_lend(const struct ulrpc_replicas_call *call,
			struct ulrpc_bulk **lent) must_check;
/* Called when ulrpc_call() has taken the @n bulks, or has failed. */
void replicas_bulks_lent(struct ulrpc_bulk *const *lent, unsigned int n);

/* ---- streams: opening.c ---- */

struct stream_opening {
	/* ns: that of the stream, which may end earlier with its context's
	 * request. The call may have an earlier one from the set's patience */
	uint64_t deadline;
	/* of the attempt that is under way, or has just ended; NULL: none */
	struct ulrpc_stream *stream;
	bool started; /* the service has got @stream */
	bool told;    /* @fn was called */
	struct ulrpc_stream_events events;
	ulrpc_replicas_stream_fn fn;
	void *arg;
};

/* Makes a stream at @r for an attempt that begins. Returns 0 or -errno. */
int replicas_stream_begin(struct ulrpc_replicas_call *call, struct replica *r);
/* Called when the attempt has ended with @o: makes that say what has become of
 * the stream, of which the server's answer may be that it has forgotten the
 * channel. */
void replicas_stream_judge(const struct ulrpc_replicas_call *call,
			   struct ulrpc_outcome *o);
/* Called when the attempt has ended, or (with @rc) cannot be made. */
void replicas_stream_end(struct ulrpc_replicas_call *call,
			 const struct ulrpc_outcome *o, const void *reply,
			 size_t length);
void replicas_stream_failed(struct ulrpc_replicas_call *call, int rc);
/* Called when the node has crashed. */
void replicas_stream_drop(struct ulrpc_replicas_call *call);

/* ---- what becomes of a call: call.c ---- */

/* Makes @cause the outcome with which the call ends: a reason that no server
 * has given. */
void replicas_call_set_last(struct ulrpc_replicas_call *call,
			    enum ulrpc_cause cause, int status);
/* Ends the call, for such a reason. */
void replicas_call_end(struct ulrpc_replicas_call *call,
		       enum ulrpc_cause cause);
/* Makes the call at a server at which it was not yet, or waits for one. Returns
 * 0, or an error of ulrpc_call(). */
int replicas_call_go(struct ulrpc_replicas_call *call);
/* Returns how much time (us) is left from @now on until @deadline, which may be
 * over: the CPT may be late. */
uint64_t replicas_time_left(uint64_t deadline, uint64_t now);
/* Does what replicas_call_go() does, for a call that was at a server, or has
 * waited, before. */
void replicas_call_go_on(struct ulrpc_replicas_call *call);
/* Adds the share of a new call to what its method may have hedged. */
void replicas_hedge_earn(const struct ulrpc_replicas_call *call);
/* What call.timer and call.cancel call. */
void replicas_call_on_timer(struct ulnet_timer *timer);
void replicas_call_on_cancel(struct ulnet_work *work);
/* Ends all calls of the set as canceled. */
void calls_cancel(struct ulrpc_replicas *rs);
/* Frees the calls of a node that has crashed. Tells nobody that they have
 * ended. */
void calls_drop(struct ulrpc_replicas *rs);

/* ---- away from a server: call_leave.c ---- */

/* Called when the attempt cannot be sent yet: if that lasts too long, the call
 * goes elsewhere, as soon as there are other servers. */
void replicas_attempt_wait(struct attempt *a);
/* Called when a server has been found: makes calls that wait go there. */
void calls_on_server(struct ulrpc_replicas *rs);
/* Called when @r cannot be connected to any more, or is taken out of the set:
 * makes its calls go to other servers, if there are any and as far as the calls
 * may. */
void calls_leave(struct replica *r);
/* Called when @r is gone: ends openings of streams that may have been executed
 * there. The streams are lost with their server. */
void openings_lose(struct replica *r);
/* Called when the name has no address: ends the calls that do not wait for
 * one. */
void calls_on_no_address(struct ulrpc_replicas *rs);
/* What ulrpc_replicas.waiting_timer calls. */
void calls_on_waiting(struct ulnet_timer *timer);

/* ---- the user's side: call_begin.c ---- */

/* Makes the call of ulrpc_replicas_call(), which opens a stream if @opening,
 * from malloc(), is not NULL; takes that, unless the call cannot be made. */
int replicas_call_make(struct ulrpc_replicas *rs, uint32_t method,
		       const void *body, size_t length,
		       const struct ulrpc_replicas_call_conf *conf,
		       struct stream_opening *opening,
		       ulrpc_replicas_done_fn done, void *arg,
		       struct ulrpc_replicas_call **call_p);

#endif
