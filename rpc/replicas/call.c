/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/replicas/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "rpc/client/attempt.h"
#include "rpc/replicas/verdict.h"
#include "rpc/text.h"

/* ns: how often a call looks whether the memory of its sinks is its own again,
 * after it has left a server */
#define LENT_PAUSE (5 * NSEC_PER_MSEC)
/* ns: how long a call pauses that was at all servers: the shortest and the
 * longest pause, and the pause if no server could be connected to */
#define ROUND_PAUSE_MIN	  (50 * NSEC_PER_MSEC)
#define ROUND_PAUSE_MAX	  (5 * NSEC_PER_SEC)
#define ROUND_UNREACHABLE (100 * NSEC_PER_MSEC)
/* Hedging a call costs HEDGE_PRICE of what its method has saved up, which is at
 * most HEDGES_MAX. */
#define HEDGE_PRICE 1000u
#define HEDGES_MAX  (10 * HEDGE_PRICE)

/* ---- memory ---- */

static void replicas_call_free(struct ulrpc_replicas_call *call)
{
	replicas_context_free(call);
	BUG_ON(call->opening && call->opening->stream);
	free(call->opening);
	free(call);
}

static void call_drop_ref(struct ulrpc_replicas_call *call)
{
	if (atomic_fetch_sub(&call->refs, 1) == 1)
		replicas_call_free(call);
}

void ulrpc_replicas_call_put(struct ulrpc_replicas_call *call)
{
	if (call)
		call_drop_ref(call);
}

static bool is_under_way(const struct ulrpc_replicas_call *call)
{
	return call->attempts[0].at || call->attempts[1].at;
}

/* If @call has ended at all servers, drops the CPT's reference, and frees the
 * set if that was its last call. */
static void call_settle(struct ulrpc_replicas_call *call)
{
	struct ulrpc_replicas *rs = call->all;

	if (!call->ended || is_under_way(call))
		return;
	list_del(&call->link);
	call_drop_ref(call);
	replicas_on_quiet(rs);
}

/* ---- the end ---- */

/* Sets the times: all time before the last attempt counts as connecting,
 * because no server has spent it. */
static void outcome_times(struct ulrpc_outcome *o, uint64_t ns)
{
	uint64_t total = ns / NSEC_PER_USEC;

	if (total <= o->total)
		return;
	o->connecting += total - o->total;
	o->total = total;
}

static void call_finish(struct ulrpc_replicas_call *call, const void *reply,
			size_t length)
{
	struct shard *s = call->shard;
	struct ulrpc_replicas_outcome o = {
		.call = call->last,
		.server = call->server,
		.moves = call->moves,
		.hedged = call->hedged,
	};

	call->ended = true;
	if (o.call.cause == ULRPC_CAUSE_NAME)
		snprintf(o.call.text, sizeof(o.call.text), "%.80s: %s",
			 call->all->target, call->all->why);
	list_del(&call->parked);
	shard_cancel(s, &call->timer);
	for (int i = 0; i < CALL_ATTEMPTS; i++)
		if (call->attempts[i].at)
			ulrpc_cancel(call->attempts[i].handle);
	if (o.call.execution == ULRPC_NOT_EXECUTED &&
	    (call->unknown || is_under_way(call)))
		o.call.execution = ULRPC_EXECUTION_UNKNOWN;
	o.call.bulk_free = replicas_bulks_release(call);
	outcome_times(&o.call, shard_now(s) - call->began);
	atomic_store(&call->canceling, true);
	replicas_context_release(call);
	backlog_left(&call->all->backlog, call->length, --call->all->ncalls, s);
	if (!shard_is_mute(s))
		call->done(call->arg, &o, reply, length);
	shard_work_end(s);
	call_settle(call);
}

void replicas_call_set_last(struct ulrpc_replicas_call *call,
			    enum ulrpc_cause cause, int status)
{
	struct ulrpc_outcome *o = &call->last;

	o->status = status;
	o->cause = cause;
	o->execution = ULRPC_NOT_EXECUTED;
	o->text[0] = '\0';
}

void replicas_call_end(struct ulrpc_replicas_call *call, enum ulrpc_cause cause)
{
	replicas_call_set_last(call, cause, cause_status(cause));
	call_finish(call, NULL, 0);
}

static enum ulrpc_cause cause_of(int status)
{
	switch (status) {
	case -ENOMEM:
		return ULRPC_CAUSE_NO_MEMORY;
	case -ESHUTDOWN:
		return ULRPC_CAUSE_SHUTDOWN;
	case -EAGAIN: /* too many calls of its server have not ended */
		return ULRPC_CAUSE_OVERLOADED;
	case -ECANCELED: /* with the request that its context is under */
		return ULRPC_CAUSE_CANCELED;
	default:
		return ULRPC_CAUSE_BAD_REQUEST;
	}
}

/* ---- waiting for a server ---- */

/* Makes the call wait for @pause (ns), or until a server is found. */
static void call_park(struct ulrpc_replicas_call *call, uint64_t pause)
{
	struct shard *s = call->shard;
	uint64_t at = MIN(rpc_at(shard_now(s), pause), call->deadline);

	list_add_tail(&call->all->parked, &call->parked);
	if (at != TIME_NEVER)
		shard_arm(s, &call->timer, at);
}

static void call_unpark(struct ulrpc_replicas_call *call)
{
	list_del(&call->parked);
	shard_cancel(call->shard, &call->timer);
}

/* Ends the call with its last outcome, but later: never inside of the function
 * that has made the call. */
static void call_give_up(struct ulrpc_replicas_call *call)
{
	call->over = true;
	list_add_tail(&call->all->parked, &call->parked);
	shard_arm(call->shard, &call->timer, shard_now(call->shard));
}

/* Is it worth trying all servers again? The call has ended at all of them. */
static bool is_worth_a_round(const struct ulrpc_replicas_call *call)
{
	if (call->rounds >= call->retries || (call->away && !call->waits))
		return false;
	return call->last.cause == ULRPC_CAUSE_OVERLOADED
		       ? !call->tell_overloaded
		       : call->last.cause != ULRPC_CAUSE_REFUSED;
}

static uint64_t round_pause(struct ulrpc_replicas_call *call)
{
	static const struct backoff_law law = {
		.policy = BACKOFF_FULL,
		.base = ROUND_PAUSE_MIN,
		.cap = ROUND_PAUSE_MAX,
	};
	uint64_t pause = ROUND_UNREACHABLE;

	if (call->last.cause == ULRPC_CAUSE_OVERLOADED)
		pause = rpc_at(
			call->retry_after,
			backoff_pause(&law, call->rounds,
				      shard_random(call->shard, UINT64_MAX)));
	return pause;
}

/* Called when there is no server at which the call was not yet. */
static void call_round_over(struct ulrpc_replicas_call *call)
{
	struct ulrpc_replicas *rs = call->all;

	if (!rs->n) {
		replicas_call_set_last(call, ULRPC_CAUSE_NAME,
				       cause_status(ULRPC_CAUSE_NAME));
		if (rs->answered && !call->waits)
			call_give_up(call);
		else
			call_park(call, TIME_NEVER);
	} else if (!is_worth_a_round(call)) {
		call_give_up(call);
	} else {
		call->rounds++;
		call->away = true;
		memset(&call->tried, 0, sizeof(call->tried));
		call_park(call, round_pause(call));
		call->retry_after = TIME_NEVER;
	}
}

/* ---- attempts ---- */

static void attempt_on_end(void *arg, const struct ulrpc_outcome *o,
			   const void *reply, size_t length);

/* Sets @room to what is free of the set's queue. Returns false if that is so
 * much that no server can hold more. */
static bool queue_room(const struct ulrpc_replicas *rs, struct room *room)
{
	const struct backlog *b = &rs->backlog;

	room->calls = b->calls_max - MIN(rs->ncalls, b->calls_max);
	room->bytes = b->bytes_max - MIN(b->bytes, b->bytes_max);
	return unlikely(rs->ncalls > room->calls || b->bytes > room->bytes);
}

/* Is a new call refused, as the server @r that its key has chosen holds more
 * than its share of the queue? Otherwise calls of one key could use up what
 * those of others need. */
static bool is_refused_for(const struct ulrpc_replicas_call *call,
			   const struct replica *r)
{
	struct room room;

	return call->keyed && !call->moves && !call->rounds &&
	       call->all->n > 1 && queue_room(call->all, &room) &&
	       !replica_has_room(r, &room);
}

/* Returns the server to go to next; NULL: there is none. @left: chooses among
 * the servers that are not in use now. */
static struct replica *call_choose(const struct ulrpc_replicas_call *call,
				   bool left)
{
	const struct ulrpc_replicas *rs = call->all;
	struct room room;
	const struct choice c = {
		.choice = rs->choice,
		.keyed = call->keyed,
		.key = call->key,
		.tried = &call->tried,
		.room = queue_room(rs, &room) ? &room : NULL,
		.left = left,
		.now = shard_now(call->shard),
		.random = rs->choice == ULRPC_CHOOSE_LEAST && !call->keyed
				  ? shard_random(call->shard, UINT64_MAX)
				  : 0,
	};

	return replica_choose(rs->all, rs->n, &c);
}

/* What ulrpc_call() calls: of a call that has ended, the user hears nothing
 * more, although it is still under way at the slower one of two servers. */
static void attempt_on_progress(void *arg,
				const struct ulrpc_call_progress *progress)
{
	const struct attempt *a = arg;
	const struct ulrpc_replicas_call *call = a->of;

	if (!call->ended)
		call->conf.progress(call->conf.progress_arg, progress);
}

uint64_t replicas_time_left(uint64_t deadline, uint64_t now)
{
	if (deadline == TIME_NEVER)
		return ULRPC_NEVER;
	return (deadline - MIN(now, deadline)) / NSEC_PER_USEC;
}

/* 0: that is not enough for an attempt. */
static uint64_t time_left(const struct ulrpc_replicas_call *call, uint64_t now)
{
	return replicas_time_left(call->deadline, now);
}

/* Calls ulrpc_call() with @conf, and with the bulks as they are lent now. */
static int attempt_call(struct attempt *a, struct replica *r,
			struct ulrpc_call_conf *conf)
{
	const struct ulrpc_replicas_call *call = a->of;
	struct ulrpc_bulk *lent[ULRPC_BULKS_MAX];
	int rc = replicas_context_lend(a);

	if (!rc)
		rc = replicas_bulks_lend(call, lent);
	if (rc)
		return rc;
	conf->context = a->context;
	conf->bulks = lent;
	rc = ulrpc_call(r->client, call->method, call->body, call->length, conf,
			attempt_on_end, a, &a->handle);
	replicas_bulks_lent(lent, conf->nbulks);
	return rc;
}

/* Makes the call at @r. Returns 0, an error of ulrpc_call(), or -ETIMEDOUT: no
 * time is left. */
static int attempt_begin(struct attempt *a, struct replica *r)
{
	struct ulrpc_replicas_call *call = a->of;
	struct ulrpc_call_conf conf = call->conf;
	uint64_t now = shard_now(call->shard);
	int rc;

	conf.deadline = time_left(call, now);
	if (!conf.deadline)
		return -ETIMEDOUT;
	if (conf.progress) {
		conf.progress = attempt_on_progress;
		conf.progress_arg = a;
	}
	rc = call->opening ? replicas_stream_begin(call, r) : 0;
	if (rc)
		return rc;
	rc = attempt_call(a, r, &conf);
	if (rc && call->opening)
		replicas_stream_failed(call, rc);
	if (rc)
		return rc;
	a->at = r;
	a->began = now;
	a->trial = replica_is_due(r, now);
	replica_try(r, now);
	list_add_tail(&r->attempts, &a->of_replica);
	r->under_way++;
	r->bytes += call->length;
	replica_set_add(&call->tried, r->number);
	if (!client_is_well(r->client))
		replicas_attempt_wait(a);
	return 0;
}

static void attempt_take_off(struct attempt *a)
{
	list_del(&a->of_replica);
	list_del(&a->waiting);
	a->at->under_way--;
	a->at->bytes -= a->of->length;
	a->at = NULL;
	ulrpc_call_put(a->handle);
	a->handle = NULL;
}

static void hedge_watch(struct ulrpc_replicas_call *call);

int replicas_call_go(struct ulrpc_replicas_call *call)
{
	struct attempt *a = &call->attempts[call->attempts[0].at != NULL];
	struct replica *r = call_choose(call, false);
	int rc;

	if (!r)
		r = call_choose(call, true);
	if (!r) {
		call_round_over(call);
		return 0;
	}
	if (is_refused_for(call, r)) {
		stat_now(call->shard, RPC_STAT_calls_unqueued, 1);
		return -EAGAIN;
	}
	rc = attempt_begin(a, r);
	if (rc == -ETIMEDOUT) {
		call_give_up(call);
		return 0;
	}
	if (!rc)
		hedge_watch(call);
	return rc;
}

void replicas_call_go_on(struct ulrpc_replicas_call *call)
{
	int rc;

	if (!time_left(call, shard_now(call->shard)) ||
	    !replicas_are_open(call->all)) {
		call_finish(call, NULL, 0);
		return;
	}
	rc = replicas_call_go(call);
	if (!rc)
		return;
	if (rc == -EBUSY && call->nbulks) {
		call_park(call, LENT_PAUSE);
		return;
	}
	if (!call->moves || rc == -ECANCELED)
		replicas_call_set_last(call, cause_of(rc), rc);
	call_finish(call, NULL, 0);
}

/* ---- hedging ---- */

static bool may_hedge(const struct ulrpc_replicas_call *call)
{
	return call->all->hedge && !call->hedged &&
	       call->conf.semantics == ULRPC_IDEMPOTENT &&
	       replicas_bulks_are_sources(call);
}

/* Arms the timer for the time within which 19 of 20 calls end: a call that
 * takes longer is hedged. */
static void hedge_watch(struct ulrpc_replicas_call *call)
{
	struct ulrpc_replicas *rs = call->all;
	uint64_t most;

	if (!may_hedge(call))
		return;
	most = times_most(&rs->times, call->method);
	if (most != TIME_NEVER)
		shard_arm(call->shard, &call->timer,
			  rpc_at(shard_now(call->shard), most));
}

void replicas_hedge_earn(const struct ulrpc_replicas_call *call)
{
	struct ulrpc_replicas *rs = call->all;
	unsigned int *hedges;

	if (!may_hedge(call))
		return;
	hedges = times_hedges(&rs->times, call->method);
	if (hedges)
		*hedges = MIN(*hedges + rs->hedge, HEDGES_MAX);
}

static void hedge_begin(struct ulrpc_replicas_call *call)
{
	struct ulrpc_replicas *rs = call->all;
	struct attempt *a = &call->attempts[call->attempts[0].at != NULL];
	unsigned int *hedges = times_hedges(&rs->times, call->method);
	struct replica *r;

	if (a->at || !hedges || *hedges < HEDGE_PRICE || !replicas_are_open(rs))
		return;
	r = call_choose(call, false);
	if (!r || !replica_is_used(r) || attempt_begin(a, r))
		return;
	*hedges -= HEDGE_PRICE;
	call->hedged = true;
}

void replicas_call_on_timer(struct ulnet_timer *timer)
{
	struct ulrpc_replicas_call *call =
		container_of(timer, struct ulrpc_replicas_call, timer);

	if (list_empty(&call->parked)) {
		hedge_begin(call);
		return;
	}
	call_unpark(call);
	if (call->over)
		call_finish(call, NULL, 0);
	else
		replicas_call_go_on(call);
}

/* ---- the end of an attempt ---- */

/* May a call that has ended with @o at one server be made at another one? */
static bool may_move(const struct ulrpc_replicas_call *call,
		     const struct ulrpc_outcome *o)
{
	if (call->canceled || !replicas_are_open(call->all) ||
	    verdict_of(o->cause) < VERDICT_BUSY)
		return false;
	return o->execution == ULRPC_NOT_EXECUTED ||
	       call->conf.semantics == ULRPC_IDEMPOTENT;
}

/* Does @cause say that there is no server? */
static bool is_away(enum ulrpc_cause cause)
{
	return cause == ULRPC_CAUSE_UNREACHABLE ||
	       cause == ULRPC_CAUSE_NO_SERVICE || cause == ULRPC_CAUSE_SHUTDOWN;
}

/* Makes the outcome of an attempt at the server @nid that of the call, and adds
 * up the counters. */
static void call_note(struct ulrpc_replicas_call *call,
		      const struct ulrpc_outcome *o,
		      const struct ulnet_nid *nid)
{
	const struct ulrpc_outcome before = call->last;

	call->last = *o;
	call->server = *nid;
	call->away &= is_away(o->cause);
	if (o->cause == ULRPC_CAUSE_OVERLOADED)
		call->retry_after =
			MIN(call->retry_after, retry_after_ns(o->retry_after));
	call->last.attempts += before.attempts;
	call->last.paths += before.paths;
	call->last.retries += before.retries;
	call->last.queries += before.queries;
	call->last.extensions += before.extensions;
	call->last.refusals += before.refusals;
}

/* @last: no other server would do better. */
static void call_on_end(struct ulrpc_replicas_call *call,
			const struct ulrpc_outcome *o, const void *reply,
			size_t length, bool last)
{
	if (last || !may_move(call, o)) {
		call_finish(call, reply, length);
		return;
	}
	call->unknown |= o->execution != ULRPC_NOT_EXECUTED;
	if (is_under_way(call)) /* the other attempt goes on */
		return;
	shard_cancel(call->shard, &call->timer);
	call->moves++;
	replicas_call_go_on(call);
}

/* Called by ulrpc_call()'s client when an attempt has ended. */
static void attempt_on_end(void *arg, const struct ulrpc_outcome *o,
			   const void *reply, size_t length)
{
	struct attempt *a = arg;
	struct ulrpc_replicas_call *call = a->of;
	struct replica *r = a->at;
	bool last = verdict_is_last(a, o->cause);
	struct ulrpc_outcome own;

	verdict_take(a, o);
	if (call->opening) {
		own = *o;
		replicas_stream_judge(call, &own);
		replicas_stream_end(call, o, reply, length);
		o = &own;
	}
	attempt_take_off(a);
	if (!call->ended) {
		call_note(call, o, &r->address.nid);
		call->answered = a->context;
	}
	replica_on_idle(r);
	if (call->ended)
		call_settle(call);
	else
		call_on_end(call, o, reply, length, last);
}

/* ---- cancel ---- */

static void call_cancel(struct ulrpc_replicas_call *call)
{
	if (call->ended)
		return;
	call->canceled = true;
	if (!list_empty(&call->parked)) {
		replicas_call_end(call, ULRPC_CAUSE_CANCELED);
		return;
	}
	for (int i = 0; i < CALL_ATTEMPTS; i++) {
		struct ulrpc_call *handle = call->attempts[i].handle;

		if (!handle)
			continue;
		/* When this attempt ends, the call ends the other one, too. */
		if (!call_withdraw(handle, true, ULRPC_CAUSE_CANCELED))
			ulrpc_cancel(handle);
		return;
	}
}

void calls_cancel(struct ulrpc_replicas *rs)
{
	struct list calls;

	list_init(&calls);
	list_splice_tail(&calls, &rs->calls);
	while (!list_empty(&calls)) {
		struct ulrpc_replicas_call *call =
			list_first(&calls, struct ulrpc_replicas_call, link);

		list_del(&call->link);
		list_add_tail(&rs->calls, &call->link);
		call_cancel(call);
	}
}

void replicas_call_on_cancel(struct ulnet_work *work)
{
	struct ulrpc_replicas_call *call =
		container_of(work, struct ulrpc_replicas_call, cancel);
	struct shard *s = call->shard;

	call_cancel(call);
	call_drop_ref(call);
	shard_taken(s);
}

void ulrpc_replicas_cancel(struct ulrpc_replicas_call *call)
{
	/* Posts the work once, and not after the end of the call, when the
	 * shard may be gone. */
	if (atomic_exchange(&call->canceling, true) ||
	    unlikely(lnet_is_forked(call->shard->node)))
		return;
	atomic_fetch_add(&call->refs, 1);
	shard_give(call->shard, &call->cancel);
}

void calls_drop(struct ulrpc_replicas *rs)
{
	struct ulrpc_replicas_call *call;

	while ((call = list_pop(&rs->calls, struct ulrpc_replicas_call,
				link))) {
		shard_cancel(rs->shard, &call->timer);
		for (int i = 0; i < CALL_ATTEMPTS; i++)
			if (call->attempts[i].at)
				attempt_take_off(&call->attempts[i]);
		atomic_store(&call->canceling, true);
		replicas_context_release(call);
		(void)replicas_bulks_release(call);
		if (call->opening)
			replicas_stream_drop(call);
		list_del(&call->parked);
		if (!call->ended)
			shard_work_end(rs->shard);
		call_drop_ref(call);
	}
}
