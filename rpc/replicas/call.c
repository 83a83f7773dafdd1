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

/* ns: a call leaves a server that is not connected for so long */
#define PATIENCE (100 * NSEC_PER_MSEC)
/* ns: how often a call looks whether the memory of its sinks is its own again,
 * after it has left a server */
#define LENT_PAUSE (5 * NSEC_PER_MSEC)
/* ns: how long a call pauses that was at all servers: the shortest and the
 * longest pause, and the pause if no server could be connected to */
#define ROUND_PAUSE_MIN	  (50 * NSEC_PER_MSEC)
#define ROUND_PAUSE_MAX	  (5 * NSEC_PER_SEC)
#define ROUND_UNREACHABLE (100 * NSEC_PER_MSEC)
/* Hedging a call costs HEDGE_PRICE of ulrpc_replicas.hedges, which is at most
 * HEDGES_MAX. */
#define HEDGE_PRICE 1000u
#define HEDGES_MAX  (10 * HEDGE_PRICE)

/* ---- memory ---- */

static void replicas_call_free(struct ulrpc_replicas_call *call)
{
	replicas_context_free(call);
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

/* Makes @cause the outcome with which the call ends: a reason that no server
 * has given. */
static void call_set_last(struct ulrpc_replicas_call *call,
			  enum ulrpc_cause cause, int status)
{
	struct ulrpc_outcome *o = &call->last;

	o->status = status;
	o->cause = cause;
	o->execution = ULRPC_NOT_EXECUTED;
	o->text[0] = '\0';
}

static void call_end(struct ulrpc_replicas_call *call, enum ulrpc_cause cause)
{
	call_set_last(call, cause, cause_status(cause));
	call_finish(call, NULL, 0);
}

static enum ulrpc_cause cause_of(int status)
{
	switch (status) {
	case -ENOMEM:
		return ULRPC_CAUSE_NO_MEMORY;
	case -ESHUTDOWN:
		return ULRPC_CAUSE_SHUTDOWN;
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
		call_set_last(call, ULRPC_CAUSE_NAME,
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

/* Returns the server to go to next; NULL: there is none. @left: chooses among
 * the servers that are not in use now. */
static struct replica *call_choose(const struct ulrpc_replicas_call *call,
				   bool left)
{
	const struct ulrpc_replicas *rs = call->all;
	const struct choice c = {
		.choice = rs->choice,
		.keyed = call->keyed,
		.key = call->key,
		.tried = &call->tried,
		.left = left,
		.now = shard_now(call->shard),
		.random = rs->choice == ULRPC_CHOOSE_LEAST && !call->keyed
				  ? shard_random(call->shard, UINT64_MAX)
				  : 0,
	};

	return replica_choose(rs->all, rs->n, &c);
}

/* Is there a server beside that of the attempt? */
static bool attempt_has_others(const struct attempt *a)
{
	return a->of->all->n > list_empty(&a->at->gone);
}

/* Called when the attempt cannot be sent yet: if that lasts too long, the call
 * goes elsewhere, as soon as there are other servers. */
static void attempt_wait(struct attempt *a)
{
	struct ulrpc_replicas *rs = a->of->all;

	if (!list_empty(&a->waiting))
		return;
	a->waits_since = shard_now(rs->shard);
	list_add_tail(&rs->waiting, &a->waiting);
	if (attempt_has_others(a) && !lnet_timer_armed(&rs->waiting_timer))
		shard_arm(rs->shard, &rs->waiting_timer,
			  rpc_at(a->waits_since, PATIENCE));
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

/* Returns how much time (us) the call has from @now on, which may be behind its
 * deadline: the CPT may be late. 0: that is not enough for an attempt. */
static uint64_t time_left(const struct ulrpc_replicas_call *call, uint64_t now)
{
	if (call->deadline == TIME_NEVER)
		return ULRPC_NEVER;
	return (call->deadline - MIN(now, call->deadline)) / NSEC_PER_USEC;
}

/* Calls ulrpc_call() with @conf, and with the bulks as they are lent now. */
static int attempt_call(struct attempt *a, struct replica *r,
			struct ulrpc_call_conf *conf)
{
	const struct ulrpc_replicas_call *call = a->of;
	struct ulrpc_bulk *lent[ULRPC_BULKS_MAX];
	int rc = replicas_bulks_lend(call, lent);

	if (rc)
		return rc;
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
	rc = call->opening ? replicas_stream_begin(call, r, conf.deadline) : 0;
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
	replica_set_add(&call->tried, r->number);
	if (!client_is_well(r->client))
		attempt_wait(a);
	return 0;
}

static void attempt_take_off(struct attempt *a)
{
	list_del(&a->of_replica);
	list_del(&a->waiting);
	a->at->under_way--;
	a->at = NULL;
	ulrpc_call_put(a->handle);
	a->handle = NULL;
}

static void hedge_watch(struct ulrpc_replicas_call *call);

/* Makes the call at a server at which it was not yet, or waits for one. Returns
 * 0, or an error of ulrpc_call(). */
static int call_go(struct ulrpc_replicas_call *call)
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
	rc = attempt_begin(a, r);
	if (rc == -ETIMEDOUT) {
		call_give_up(call);
		return 0;
	}
	if (!rc)
		hedge_watch(call);
	return rc;
}

/* Does what call_go() does, for a call that was at a server, or has waited,
 * before. */
static void call_go_on(struct ulrpc_replicas_call *call)
{
	int rc;

	if (!time_left(call, shard_now(call->shard)) ||
	    !replicas_are_open(call->all)) {
		call_finish(call, NULL, 0);
		return;
	}
	rc = call_go(call);
	if (!rc)
		return;
	if (rc == -EBUSY && call->nbulks) {
		call_park(call, LENT_PAUSE);
		return;
	}
	if (!call->moves || rc == -ECANCELED)
		call_set_last(call, cause_of(rc), rc);
	call_finish(call, NULL, 0);
}

/* ---- hedging ---- */

static bool may_hedge(const struct ulrpc_replicas_call *call)
{
	return call->all->hedge && !call->hedged && !call->conf.nbulks &&
	       !call->conf.context && call->conf.semantics == ULRPC_IDEMPOTENT;
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

/* Adds the share of a new call to what may be hedged. */
static void hedge_earn(const struct ulrpc_replicas_call *call)
{
	struct ulrpc_replicas *rs = call->all;

	if (may_hedge(call))
		rs->hedges = MIN(rs->hedges + rs->hedge, HEDGES_MAX);
}

static void hedge_begin(struct ulrpc_replicas_call *call)
{
	struct ulrpc_replicas *rs = call->all;
	struct attempt *a = &call->attempts[call->attempts[0].at != NULL];
	struct replica *r;

	if (a->at || rs->hedges < HEDGE_PRICE || !replicas_are_open(rs))
		return;
	r = call_choose(call, false);
	if (!r || !replica_is_used(r) || attempt_begin(a, r))
		return;
	rs->hedges -= HEDGE_PRICE;
	call->hedged = true;
}

static void call_on_timer(struct ulnet_timer *timer)
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
		call_go_on(call);
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
	call_go_on(call);
}

/* Called by ulrpc_call()'s client when an attempt has ended. */
static void attempt_on_end(void *arg, const struct ulrpc_outcome *o,
			   const void *reply, size_t length)
{
	struct attempt *a = arg;
	struct ulrpc_replicas_call *call = a->of;
	struct replica *r = a->at;
	bool last = verdict_is_last(a, o->cause);

	verdict_take(a, o);
	if (call->opening)
		replicas_stream_end(call, o, reply, length);
	attempt_take_off(a);
	if (!call->ended)
		call_note(call, o, &r->address.nid);
	replica_on_idle(r);
	if (call->ended)
		call_settle(call);
	else
		call_on_end(call, o, reply, length, last);
}

/* ---- away from a server ---- */

static enum ulrpc_cause down_cause(const struct ulrpc_client *c)
{
	if (c->imp->fsm.state != IMPORT_FULL)
		return client_down_cause(c);
	return c->refusal ? c->refusal : ULRPC_CAUSE_UNREACHABLE;
}

/* Ends the attempt, so that the call goes on elsewhere, if it was not sent;
 * with @sent, also if it was, provided that the call may be executed twice.
 * Returns whether it has. */
static bool attempt_withdraw(const struct attempt *a, bool sent)
{
	const struct ulrpc_call_conf *conf = &a->of->conf;
	const struct ulrpc_client *c = a->at->client;

	/* That there is no connection yet does not say that there is no server.
	 */
	if (!c->refusal && !c->imp->unreached)
		a->of->away = false;
	sent = sent && conf->semantics == ULRPC_IDEMPOTENT;
	return call_withdraw(a->handle, sent, down_cause(c));
}

static bool has_others(const struct ulrpc_replicas *rs, const struct replica *r)
{
	for (unsigned int i = 0; i < rs->n; i++)
		if (rs->all[i] != r && replica_is_used(rs->all[i]))
			return true;
	return false;
}

void calls_leave(struct replica *r)
{
	bool others = has_others(r->all, r);
	struct list attempts;

	list_init(&attempts);
	list_splice_tail(&attempts, &r->attempts);
	while (!list_empty(&attempts)) {
		struct attempt *a =
			list_first(&attempts, struct attempt, of_replica);

		list_del(&a->of_replica);
		list_add_tail(&r->attempts, &a->of_replica);
		if (a->of->ended)
			continue;
		if (!others || !attempt_withdraw(a, true))
			attempt_wait(a);
	}
}

/* Makes attempts that have waited since @since, or longer, go elsewhere. @left:
 * only those at servers that are left. */
static void waiting_leave(struct ulrpc_replicas *rs, uint64_t since, bool left)
{
	struct list waiting;

	list_init(&waiting);
	list_splice_tail(&waiting, &rs->waiting);
	while (!list_empty(&waiting)) {
		struct attempt *a =
			list_first(&waiting, struct attempt, waiting);
		struct replica *r = a->at;

		list_del(&a->waiting);
		if (a->waits_since > since ||
		    (left && r->fsm.state != REPLICA_LEFT)) {
			list_add_tail(&rs->waiting, &a->waiting);
			continue;
		}
		if (client_is_well(r->client) || a->of->ended)
			continue;
		if (!attempt_has_others(a)) {
			list_add_tail(&rs->waiting, &a->waiting);
			continue;
		}
		if (list_empty(&r->gone))
			replica_give_up(r, false);
		(void)attempt_withdraw(a, false);
	}
}

/* Arms the timer for the first attempt that may go elsewhere. */
static void waiting_arm(struct ulrpc_replicas *rs)
{
	struct attempt *a;

	if (lnet_timer_armed(&rs->waiting_timer))
		return;
	list_for_each_entry (a, &rs->waiting, waiting)
		if (attempt_has_others(a)) {
			shard_arm(rs->shard, &rs->waiting_timer,
				  rpc_at(a->waits_since, PATIENCE));
			return;
		}
}

void calls_on_waiting(struct ulnet_timer *timer)
{
	struct ulrpc_replicas *rs =
		container_of(timer, struct ulrpc_replicas, waiting_timer);

	rs->busy++;
	waiting_leave(rs, shard_now(rs->shard) - PATIENCE, false);
	waiting_arm(rs);
	rs->busy--;
	replicas_on_quiet(rs);
}

void calls_on_server(struct ulrpc_replicas *rs)
{
	struct list parked;

	list_init(&parked);
	list_splice_tail(&parked, &rs->parked);
	while (!list_empty(&parked)) {
		struct ulrpc_replicas_call *call =
			list_first(&parked, struct ulrpc_replicas_call, parked);

		list_del(&call->parked);
		if (call->over || call->last.cause == ULRPC_CAUSE_OVERLOADED) {
			list_add_tail(&rs->parked, &call->parked);
			continue;
		}
		shard_cancel(rs->shard, &call->timer);
		call_go_on(call);
	}
	if (has_others(rs, NULL))
		waiting_leave(rs, TIME_NEVER, true);
	waiting_arm(rs); /* some may have had no other server before */
}

void calls_on_no_address(struct ulrpc_replicas *rs)
{
	struct ulrpc_replicas_call *call, *next;
	struct list some;

	if (rs->n)
		return;
	list_init(&some);
	list_for_each_entry_safe (call, next, &rs->parked, parked)
		if (!call->waits && !call->over) {
			list_del(&call->parked);
			list_add_tail(&some, &call->parked);
		}
	while (!list_empty(&some)) {
		call = list_first(&some, struct ulrpc_replicas_call, parked);
		call_unpark(call);
		call_end(call, ULRPC_CAUSE_NAME);
	}
}

/* ---- cancel ---- */

static void call_cancel(struct ulrpc_replicas_call *call)
{
	if (call->ended)
		return;
	call->canceled = true;
	if (!list_empty(&call->parked)) {
		call_end(call, ULRPC_CAUSE_CANCELED);
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

static void call_on_cancel(struct ulnet_work *work)
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

/* ---- the user's side ---- */

void ulrpc_replicas_call_conf_init(struct ulrpc_replicas_call_conf *conf)
{
	*conf = (struct ulrpc_replicas_call_conf){ 0 };
}

/* Checks what has to be right before the call can be copied; ulrpc_call()
 * checks the rest. Returns 0 or -EINVAL. */
static int call_check(const struct ulrpc_replicas_call_conf *conf,
		      size_t length, ulrpc_replicas_done_fn done)
{
	if (!conf || !done || !conf->call.deadline ||
	    conf->call.nbulks > ULRPC_BULKS_MAX ||
	    (conf->call.nbulks && !conf->call.bulks) ||
	    (conf->call.trace &&
	     strlen(conf->call.trace) >= ULRPC_TRACE_SIZE) ||
	    (unsigned int)conf->call.wait_for_ready > ULRPC_WAIT_NOT ||
	    retry_check(conf->call.retry))
		return -EINVAL;
	return length > ULRPC_BODY_MAX ? -EMSGSIZE : 0;
}

/* Does a call with @conf wait for a server if all are away? */
static bool conf_waits(const struct ulrpc_replicas *rs,
		       const struct ulrpc_call_conf *conf)
{
	const struct ulrpc_retry *retry =
		conf->retry ? conf->retry : &rs->retry;
	enum ulrpc_wait wait = conf->wait_for_ready ? conf->wait_for_ready
						    : rs->conf.wait_for_ready;

	return wait ? wait == ULRPC_WAIT_READY : retry->max != 0;
}

/* Copies what the user's configuration refers to, and claims its bulks. Returns
 * 0, -EBUSY, -EINVAL or -ENOMEM. */
static int call_take_conf(struct ulrpc_replicas_call *call,
			  const struct ulrpc_replicas_call_conf *conf)
{
	const struct ulrpc_retry *retry = conf->call.retry;
	struct ulrpc_call_conf *own = &call->conf;
	int rc;

	*own = conf->call;
	if (own->trace) {
		strcpy(call->trace, own->trace);
		own->trace = call->trace;
	}
	call->retries = retry ? retry->max : call->all->retry.max;
	call->waits = conf_waits(call->all, &conf->call);
	call->away = true;
	call->tell_overloaded =
		retry ? retry->tell_overloaded : call->all->tell_overloaded;
	if (retry) {
		call->retry = *retry;
		call->retry.tell_overloaded = true;
		own->retry = &call->retry;
	}
	call->keyed = conf->key != NULL;
	if (conf->key)
		call->key = replica_key(conf->key, conf->key_length);
	rc = replicas_bulks_take(call, &conf->call);
	if (!rc && own->context)
		rc = replicas_context_take(call, own->context);
	if (rc)
		(void)replicas_bulks_release(call);
	return rc;
}

static void call_enter(struct ulrpc_replicas_call *call)
{
	list_add_tail(&call->all->calls, &call->link);
	call->all->backlog.bytes += call->length;
	backlog_look(&call->all->backlog, ++call->all->ncalls, call->shard);
	hedge_earn(call);
	shard_work_begin(call->shard);
}

/* Called when a call that another thread has made comes to its CPT. */
static void call_on_arrival(struct ulnet_work *work)
{
	struct ulrpc_replicas_call *call =
		container_of(work, struct ulrpc_replicas_call, work);
	struct shard *s = call->shard;

	/* The clock of the thread that made the call may be ahead of this one.
	 */
	call->began = MIN(call->began, shard_now(s));
	call_enter(call);
	if (replicas_are_open(call->all) && !replicas_context_enter(call))
		call_go_on(call);
	else
		call_end(call, ULRPC_CAUSE_CANCELED);
	shard_taken(s);
}

static int call_new(struct ulrpc_replicas *rs, uint32_t method,
		    const void *body, size_t length,
		    const struct ulrpc_replicas_call_conf *conf,
		    struct ulrpc_replicas_call **call_p)
{
	struct ulrpc_replicas_call *call = malloc(sizeof(*call) + length);
	int rc;

	if (!call)
		return -ENOMEM;
	memset(call, 0, sizeof(*call));
	call->all = rs;
	call->shard = rs->shard;
	list_init(&call->link);
	list_init(&call->parked);
	for (int i = 0; i < CALL_ATTEMPTS; i++) {
		call->attempts[i].of = call;
		list_init(&call->attempts[i].of_replica);
		list_init(&call->attempts[i].waiting);
	}
	call->began = shard_now(rs->shard);
	call->deadline = rpc_at(call->began, rpc_ns(conf->call.deadline));
	call->retry_after = TIME_NEVER;
	lnet_timer_init(&call->timer, call_on_timer);
	call->work.fn = call_on_arrival;
	call->cancel.fn = call_on_cancel;
	call->server = call->last.local = call->last.target = LNET_NID_ANY;
	/* for a call whose deadline passes before it was at any server */
	call_set_last(call, ULRPC_CAUSE_DEADLINE,
		      cause_status(ULRPC_CAUSE_DEADLINE));
	call->method = method;
	call->length = length;
	if (length)
		memcpy(call->body, body, length);
	rc = call_take_conf(call, conf);
	if (rc)
		free(call);
	else
		*call_p = call;
	return rc;
}

/* Begins the call. Called by the owner. Returns 0, or -errno: then the call is
 * over, and nobody has a reference but those who are canceling it. */
static int call_begin(struct ulrpc_replicas_call *call)
{
	int rc;

	call_enter(call);
	rc = replicas_context_enter(call);
	if (!rc)
		rc = call_go(call);
	if (!rc)
		return 0;
	call->ended = true;
	call->opening = NULL; /* it stays the caller's */
	replicas_context_release(call);
	(void)replicas_bulks_release(call);
	backlog_left(&call->all->backlog, call->length, --call->all->ncalls,
		     call->shard);
	list_del(&call->link);
	shard_work_end(call->shard);
	call_drop_ref(call);
	return rc;
}

int replicas_call_make(struct ulrpc_replicas *rs, uint32_t method,
		       const void *body, size_t length,
		       const struct ulrpc_replicas_call_conf *conf,
		       struct stream_opening *opening,
		       ulrpc_replicas_done_fn done, void *arg,
		       struct ulrpc_replicas_call **call_p)
{
	struct shard *s = rs->shard;
	struct ulrpc_replicas_call *call;
	int rc = call_check(conf, length, done);

	if (rc)
		return rc;
	if (atomic_load(&rs->rpc->state) != RPC_OPEN ||
	    lnet_is_forked(s->node) || (shard_owned(s) && rs->closed))
		return -ESHUTDOWN;
	if (backlog_is_full(&rs->backlog))
		return backlog_refuse(&rs->backlog);
	rc = call_new(rs, method, body, length, conf, &call);
	if (rc)
		return rc;
	call->done = done;
	call->arg = arg;
	call->opening = opening;
	atomic_init(&call->refs, call_p ? 2 : 1);
	if (shard_owned(s)) {
		rc = call_begin(call);
		if (call_p && !rc)
			*call_p = call;
		else if (call_p)
			call_drop_ref(call);
		return rc;
	}
	/* Sets *call_p before the call can end. */
	if (call_p)
		*call_p = call;
	shard_give(s, &call->work);
	return 0;
}

int ulrpc_replicas_call(struct ulrpc_replicas *rs, uint32_t method,
			const void *body, size_t length,
			const struct ulrpc_replicas_call_conf *conf,
			ulrpc_replicas_done_fn done, void *arg,
			struct ulrpc_replicas_call **call_p)
{
	return replicas_call_make(rs, method, body, length, conf, NULL, done,
				  arg, call_p);
}
