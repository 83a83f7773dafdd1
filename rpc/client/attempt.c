/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/attempt.h"

#include "base/backoff.h"
#include "rpc/bulk/bulk.h"
#include "rpc/client/fetch.h"
#include "rpc/ends.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

/* Nobody is believed to work on a call for longer than this without saying so
 * again. */
#define EXTEND_MAX (300 * NSEC_PER_SEC)

/* How often the time of an attempt is doubled by retries. */
#define TIME_SHIFTS_MAX 6u
/* A round trip of which TCP has lost a segment: it waits for 200 ms before it
 * repeats one. */
#define RTT_LOST (250 * NSEC_PER_MSEC)
/* The answer to a query takes no longer than the way there and back, and a turn
 * of the server. */
#define QUERY_TIME (20 * NSEC_PER_MSEC)
/* How often the time of all attempts and queries is doubled. */
#define PATIENCE_MAX 7u
/* See is_executed_by_nobody(). */
#define ABSENT_SLACK (200 * NSEC_PER_MSEC)

/* Pauses between queries that are not answered. */
static const struct backoff_law query_law = {
	.policy = BACKOFF_FULL,
	.max = BACKOFF_NO_MAX,
	.base = 20 * NSEC_PER_MSEC,
	.cap = NSEC_PER_SEC,
};

/* ---- time ---- */

static uint64_t attempt_time_left(const struct ulrpc_call *call, uint64_t now)
{
	return call->deadline - MIN(now, call->deadline);
}

uint64_t attempt_time(const struct ulrpc_call *call, uint64_t now)
{
	uint64_t left = attempt_time_left(call, now);
	uint64_t time = client_timeout(call->client, call->method, left);
	uint64_t most =
		MIN(left / 2, rpc_ns(call->client->rpc->conf.timeout_max));

	/* A time that was too short once would be so again. */
	for (uint32_t i = MIN(call->retries, TIME_SHIFTS_MAX); i; i--)
		time = MIN(rpc_at(time, time), most);
	return time;
}

/* Clients whose messages were lost at the same moment do not ask at the same
 * moment. Messages of one client are due in the order in which they were sent,
 * or each would have to find its place among all that are under way. The pause
 * is at most half of the time before it, for a dead server is to be known soon.
 * However long round trips used to be, half of what the call has beyond T is
 * left to find out what became of the attempt, and to make another one. */
uint64_t attempt_due(const struct ulrpc_call *call, uint64_t time, uint64_t now)
{
	uint64_t rtt = import_rtt(call->client->imp);
	uint64_t jitter = likely(!call->retries) ? call->client->watch_jitter
						 : shard_jitter(call->shard);
	uint64_t wait = rpc_at(time, rtt), left = attempt_time_left(call, now);

	wait = rpc_at(wait, retry_pause(call_rule(call), call->retries + 1,
					time, MIN(rtt, wait / 4), jitter));
	wait = import_patiently(call->client->imp, wait);
	return rpc_at(now, MIN(wait, time + (left - time) / 2));
}

/* A query is not repeated at shorter intervals than QUERY_TIME. @random is the
 * same for all calls of a query, so that those that were asked about as often
 * are asked about together again. */
static uint64_t query_due(const struct ulrpc_call *call, uint64_t now,
			  uint64_t random)
{
	const struct import *imp = call->client->imp;
	uint64_t pause = backoff_pause(&query_law, call->asks, random);
	uint64_t wait =
		import_patiently(imp, import_rtt(imp) + QUERY_TIME + pause);

	return rpc_at(now, MIN(wait, MAX(attempt_time_left(call, now) / 2,
					 QUERY_TIME)));
}

static void watch_arm(struct ulrpc_client *c, uint64_t at)
{
	c->watch_at = at;
	shard_arm(c->shard, &c->watch_timer, at);
}

/* Usually each is due after all others. */
void attempt_watch_rare(struct ulrpc_client *c, struct batch *p)
{
	struct list *at = c->watched.prev;

	if (list_empty(&c->watched))
		c->watch_jitter = shard_jitter(c->shard);
	while (at != &c->watched &&
	       list_entry(at, struct batch, of_watch)->due > p->due)
		at = at->prev;
	list_add(at, &p->of_watch);
	if (p->due < c->watch_at)
		watch_arm(c, p->due);
}

/* Makes the watch of @p due at @due instead. */
static void watch_again(struct batch *p, uint64_t due)
{
	list_del(&p->of_watch);
	p->due = due;
	if (due != TIME_NEVER)
		attempt_watch_rare(p->client, p);
}

/* ---- which rail loses messages ---- */

/* Tells LNet that the rail of @p has lost @p, or its answer. */
static void batch_suspect(struct batch *p)
{
	const struct ulnet_id peer = { p->target, p->peer.pid };

	if (!p->suspect && !p->sending)
		ends_suspect(p->shard, &p->local, &peer, &p->hop);
	p->suspect = true;
}

static bool is_by_another(const struct batch *a, const struct batch *b)
{
	return !lnet_nid_eq(&a->hop, &b->hop) ||
	       !lnet_nid_eq(&a->local, &b->local);
}

void attempt_look_back(const struct ulrpc_call *call,
		       const struct wire_reply *r)
{
	struct batch *out = call->out.batch, *query = call->query.batch;
	uint64_t us = r->throttled + r->queue + r->service;
	uint64_t rtt = import_rtt(call->client->imp);

	if (!query || r->attempt == call->out.attempt ||
	    rpc_at(rpc_at(call->sent, rpc_ns(us)), rtt) >= query->sent)
		return; /* it has been answered no later than it could be */
	if (is_by_another(out, query))
		batch_suspect(out);
}

/* ---- what is not answered in time ---- */

/* A query about the call has not been answered in its time. Unanswered queries
 * about other calls, under way at the same time, prove nothing more. */
static void grow_patience(struct import *imp, const struct ulrpc_call *call,
			  uint64_t now)
{
	if (now < imp->patient_until)
		return;
	imp->patience = MIN(imp->patience + 1, PATIENCE_MAX);
	imp->patient_until = rpc_at(
		now, import_patiently(imp, rpc_at(attempt_time(call, now),
						  import_rtt(imp))));
}

/* Nothing was heard of the call in time. */
static void call_missed(struct ulrpc_call *call, uint64_t now)
{
	struct import *imp = call->client->imp;

	if (call->fsm.state == CALL_ASKED) {
		call->asks++;
		batch_suspect(call->query.batch);
		grow_patience(imp, call, now);
	}
	call_ask(call);
}

static void batch_missed(struct batch *p, uint64_t now)
{
	uint64_t next = TIME_NEVER;

	for (unsigned int i = 0; i < p->n; i++) {
		struct ulrpc_call *call = p->entries[i].call;

		if (!call || call->fsm.state == CALL_ASK)
			continue;
		if (call->expected > now)
			next = MIN(next, call->expected);
		else
			call_missed(call, now);
	}
	watch_again(p, next);
}

void attempt_on_watch(struct ulnet_timer *timer)
{
	struct ulrpc_client *c =
		container_of(timer, struct ulrpc_client, watch_timer);
	uint64_t now = shard_now(c->shard);

	c->watch_at = TIME_NEVER;
	while (!list_empty(&c->watched)) {
		struct batch *p =
			list_first(&c->watched, struct batch, of_watch);

		if (p->due > now) {
			if (p->due < c->watch_at)
				watch_arm(c, p->due);
			return;
		}
		batch_missed(p, now);
	}
}

/* ---- asking ---- */

void call_ask(struct ulrpc_call *call)
{
	struct ulrpc_client *c = call->client;

	if (call->fsm.state == CALL_ASK)
		return;
	call_move(call, CALL_ASK);
	list_add_tail(&c->ask, &call->link);
	client_kick(c);
}

/* The server moves bulk by the rail on which it was asked last: bulks
 * follow. */
static void bulks_follow(struct ulrpc_call *call, const struct batch *p)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_follow(call->bulks[i], p->peer);
}

void attempt_on_asked(struct ulrpc_call *call, struct batch *p, uint32_t index,
		      uint64_t random)
{
	if (call->query.batch)
		batch_forget(call, &call->query);
	list_del(&call->link);
	call->query = (struct place){ p, index, call->attempts++ };
	call->queries++;
	bulks_follow(call, p);
	stat_count(call->shard, RPC_STAT_queries_sent);
	call->expected = query_due(call, p->sent, random);
	p->due = MIN(p->due, call->expected);
	call_move(call, CALL_ASKED);
}

void attempts_asked(const struct ulrpc_call *call, const struct batch *p)
{
	struct ulrpc_client *c = call->client;
	uint64_t time = client_timeout(c, call->method, TIME_NEVER);
	uint64_t rtt = MAX(import_rtt(c->imp), RTT_LOST);

	import_asked(c->imp, p->epoch,
		     import_patiently(c->imp, rpc_at(time, rtt)));
}

/* Lets @server move the bulk of the call. The NID that the call was sent to may
 * not be the server's any more: then bulk comes from another NID. If that were
 * refused, the server would wait for bulk, send extensions, and nobody would
 * ask about the call. */
static void bulks_admit(struct ulrpc_call *call, struct ulnet_id server)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_admit(call->bulks[i], server);
}

/* The server is serving the call, and needs until @until, ns. @server: one of
 * its NIDs, which has said so, and its pid. */
static void call_extend(struct ulrpc_call *call, struct ulnet_id server,
			uint64_t until)
{
	struct batch *p = call->out.batch;

	bulks_admit(call, server);
	call->extensions++;
	call->asks = 0;
	until = MIN(until, call->deadline);
	call->expected = MAX(call->expected, until);
	if (call->fsm.state == CALL_ASK)
		list_del(&call->link);
	if (call->fsm.state != CALL_SENT)
		call_move(call, CALL_SENT);
	if (p->due > call->expected)
		watch_again(p, call->expected);
}

/* The call that an extension is about, if it still waits. NULL if the extension
 * is about an earlier attempt than the last one that is not a query, or about
 * one that was answered. */
static struct ulrpc_call *extension_find(const struct import *imp,
					 const struct wire_extension *e)
{
	struct ulrpc_call *call = slots_find(&imp->slots, e->slot);

	if (!call || call->xid != e->xid || !call_is_out(call) ||
	    call->bulk_failed || e->attempt < call->out.attempt ||
	    e->attempt >= call->attempts)
		return NULL;
	return call;
}

static void extension_tell(const struct ulrpc_call *call,
			   const struct wire_extension *e)
{
	static const enum ulrpc_stage stages[] = {
		[WIRE_QUEUED] = ULRPC_STAGE_QUEUED,
		[WIRE_THROTTLED] = ULRPC_STAGE_THROTTLED,
		[WIRE_RUNNING] = ULRPC_STAGE_RUNNING,
		[WIRE_BULK] = ULRPC_STAGE_BULK,
	};
	const struct ulrpc_call_progress progress = {
		.stage = e->state < ARRAY_SIZE(stages) ? stages[e->state]
						       : ULRPC_STAGE_RUNNING,
		.position = e->state == WIRE_QUEUED ? e->position : 0,
		.permille = MIN(e->progress, 1000),
	};

	call->progress(call->progress_arg, &progress);
}

void attempts_on_extend(struct import *imp, const struct ulnet_event *ev,
			const struct wire_extend *m)
{
	const struct ulnet_id server = { ev->source, imp->pid };
	uint64_t now = shard_now(imp->shard);
	struct wire_view view = m->extensions.view;
	struct wire_extension e;

	import_heard(imp, now);
	for (uint32_t i = 0; i < m->extensions.n; i++) {
		struct ulrpc_call *call;

		if (!wire_extension_next(&view, &e))
			return;
		call = extension_find(imp, &e);
		if (!call) {
			stat_count(imp->shard, RPC_STAT_extensions_late);
			continue;
		}
		stat_count(imp->shard, RPC_STAT_extensions_received);
		call_extend(call, server,
			    rpc_at(now, MIN(rpc_ns(e.extend), EXTEND_MAX)));
		/* May do anything, but ends no call before its return. */
		if (call->progress)
			extension_tell(call, &e);
	}
}

/* Was the last message about the call sent by that rail until it failed, and
 * has LNet nothing more to say about it? */
static bool attempt_is_severed(const struct ulrpc_call *call,
			       const struct severed *s)
{
	const struct batch *p =
		call->query.batch ? call->query.batch : call->out.batch;

	return !p->sending && severed_has(s, p->sent, &p->target);
}

void attempts_ask(struct import *imp, const struct severed *s)
{
	struct ulrpc_call *call;

	list_for_each_entry (call, &imp->calls, order) {
		if (!call_is_out(call) || (s && !attempt_is_severed(call, s)))
			continue;
		call->asks = 0;
		call_ask(call);
	}
}

/* ---- another attempt ---- */

static void attempt_on_fenced(void *arg);

/* Waits for the next bulk of the call that is still in use; false: there is
 * none. */
static bool fence(struct ulrpc_call *call)
{
	for (unsigned int i = 0; i < call->nbulks; i++) {
		if (bulk_idle(call->bulks[i]))
			continue;
		bulk_on_idle(call->bulks[i], attempt_on_fenced, call);
		return true;
	}
	return false;
}

static void requeue(struct ulrpc_call *call)
{
	struct ulrpc_client *c = call->client;

	call_move(call, CALL_QUEUED);
	call->queued = shard_now(call->shard);
	/* The call would be looked up in a store that does not know it. */
	if (unlikely(call->forsaken && call->flags & WIRE_CALL_RESENT)) {
		c->nqueued++;
		list_add_tail(&c->fenced, &call->link);
		call_fail_later(call, ULRPC_CAUSE_RESTARTED);
		return;
	}
	client_queue_again(c, call);
}

static void attempt_on_fenced(void *arg)
{
	struct ulrpc_call *call = arg;

	if (fence(call))
		return;
	list_del(&call->link);
	requeue(call);
}

static void fence_or_requeue(struct ulrpc_call *call)
{
	if (!fence(call)) {
		requeue(call);
		return;
	}
	call_move(call, CALL_FENCE);
	list_add_tail(&call->client->fenced, &call->link);
}

void attempt_end(struct ulrpc_call *call)
{
	const struct batch *p = call->out.batch;

	call->local = p->local;
	call->target = p->target;
	call->paths += p->paths;
	call->asks = 0;
	call->bulk_failed = false;
	list_del(&call->link);
	call->client->inflight--;
	batch_forget_all(call);
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_detach(call->bulks[i]);
	/* Its place among the calls in flight is free. */
	client_kick(call->client);
}

/* This attempt was certainly not executed, nor will be. */
static void call_again(struct ulrpc_call *call)
{
	attempt_end(call);
	fence_or_requeue(call);
}

static void count_repetition(struct ulrpc_call *call)
{
	call->retries++;
	stat_count(call->shard, RPC_STAT_calls_repeated);
}

/* As call_again(), for an attempt that was delivered. */
static void call_repeat(struct ulrpc_call *call)
{
	count_repetition(call);
	call_again(call);
}

/* The server has not executed the attempt, and the call is to be sent again. */
static void count_refusal(struct ulrpc_call *call)
{
	call->refusals++;
	stat_count(call->shard, RPC_STAT_calls_refused);
}

static bool may_repeat(const struct ulrpc_call *call)
{
	uint32_t max = call_rule(call)->law.max;

	return max == BACKOFF_NO_MAX || call->retries < max;
}

/* May the call be sent again though perhaps it was executed: can that be looked
 * up, or does it not matter? */
static bool may_be_doubtful(const struct ulrpc_call *call)
{
	return call->semantics == ULRPC_IDEMPOTENT ||
	       (call->semantics == ULRPC_EXACTLY_ONCE &&
		call->client->durable && !call->forsaken);
}

void call_unsettle(struct ulrpc_call *call)
{
	if (!may_be_doubtful(call) || !may_repeat(call)) {
		call_fail(call, ULRPC_CAUSE_RESTARTED);
		return;
	}
	call->unknown = true;
	call->flags |= WIRE_CALL_RESENT;
	call_repeat(call);
}

void call_fetch_lost(struct ulrpc_call *call)
{
	if (call->semantics != ULRPC_IDEMPOTENT || !may_repeat(call)) {
		call_fail(call, ULRPC_CAUSE_RESTARTED);
		return;
	}
	fetch_drop(call->fetch);
	list_del(&call->link);
	call->unknown = true;
	call->flags |= WIRE_CALL_RESENT;
	count_repetition(call);
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_detach(call->bulks[i]);
	fence_or_requeue(call);
}

static void attempt_on_pause_over(struct ulnet_timer *timer)
{
	struct ulrpc_call *call = container_of(timer, struct ulrpc_call, pause);

	list_del(&call->link);
	fence_or_requeue(call);
}

/* Is the call to be sent again, and when? @paused: it has waited for longer
 * than its attempt was to take. */
static enum backoff_verdict retry_verdict(struct ulrpc_call *call,
					  uint64_t least, bool paused,
					  uint64_t *at_p)
{
	struct import *imp = call->client->imp;
	struct shard *s = call->shard;
	const struct retry_case c = {
		.rule = call_rule(call),
		.budget = &imp->budget,
		.burst = imp->slots.made,
		.calls = imp->xid,
		.retries = call->retries,
		.now = shard_now(s),
		.began = call->began,
		.deadline = call->deadline,
		.timeout =
			client_timeout(call->client, call->method, TIME_NEVER),
		.rtt = import_rtt(imp),
		.answer = mean_value(&imp->rtt),
		.least = least,
		.paused = paused,
		.random = shard_random(s, UINT64_MAX),
	};

	return retry_next(&c, at_p);
}

/* The attempt is over, and the next one has not begun: moves the call to
 * WAIT. */
static void attempt_wait(struct ulrpc_call *call)
{
	attempt_end(call);
	call_move(call, CALL_WAIT);
	list_add_tail(&call->client->fenced, &call->link);
	lnet_timer_init(&call->pause, attempt_on_pause_over);
}

static void retry_at(struct ulrpc_call *call, uint64_t at)
{
	count_repetition(call);
	attempt_wait(call);
	shard_arm(call->shard, &call->pause, at);
}

/* The server has refused the attempt: sends the call again, but not before
 * @least ns have passed. False: then it would be too late. */
static bool call_retry(struct ulrpc_call *call, uint64_t least)
{
	uint64_t at;

	if (retry_verdict(call, least, false, &at) != BACKOFF_RETRY)
		return false;
	count_refusal(call);
	retry_at(call, at);
	return true;
}

void attempt_undelivered(struct ulrpc_call *call, const struct batch *p)
{
	if (call->out.batch == p) {
		call_again(call);
		return;
	}
	batch_forget(call, &call->query);
	if (call->fsm.state == CALL_ASKED)
		call_ask(call);
}

/* ---- answers that end attempts only ---- */

/* The server does not know the connection. A copy of the attempt may have come
 * there before, or to the server's predecessor; but not if the server has not
 * known the connection for longer than the attempt has been under way. The
 * slack is for turns, in which clocks stand, and for clocks that do not run
 * alike. */
static bool is_executed_by_nobody(const struct ulrpc_call *call,
				  const struct wire_reply *r)
{
	uint64_t age = shard_now(call->shard) - call->sent;

	return rpc_ns(r->absent) >= rpc_at(age + age / 1024, ABSENT_SLACK);
}

/* The server knows of no attempt, and will execute none that comes late. It may
 * have executed an idempotent call, and forgotten it. Without another attempt
 * the call ends now: there is nothing to wait for. */
static void on_unknown_call(struct ulrpc_call *call)
{
	bool bulk_failed = call->bulk_failed;
	uint64_t at;

	if (call->query.batch &&
	    is_by_another(call->out.batch, call->query.batch))
		batch_suspect(call->out.batch);
	if (call->semantics == ULRPC_IDEMPOTENT)
		call->unknown = true;
	if (retry_verdict(call, 0, !bulk_failed, &at) != BACKOFF_RETRY) {
		attempt_wait(call);
		call_fail(call,
			  bulk_failed ? ULRPC_CAUSE_BULK : ULRPC_CAUSE_EXPIRED);
	} else if (at > shard_now(call->shard)) {
		retry_at(call, at);
	} else {
		call_repeat(call);
	}
}

/* The handler has failed, for want of bulk data. May the call be executed once
 * more? The caller has said so. Whether its method allows it, too, the server
 * shows when it is asked about the call: if the method is idempotent, the
 * server does not know the call any more; otherwise it gives the same answer
 * again. Its first answer may belong to an earlier query, as the handler
 * answers the last attempt. */
static bool on_bulk_failed(struct ulrpc_call *call, const struct wire_reply *r)
{
	if (call->semantics != ULRPC_IDEMPOTENT || !call->nbulks ||
	    !may_repeat(call))
		return false;
	if (call->bulk_failed) /* is it a copy of that answer? */
		return call->fsm.state == CALL_ASK ||
		       r->attempt == call->out.attempt;
	call->bulk_failed = true;
	call_ask(call);
	return true;
}

/* The attempt named a connection that is not the last one, or is not known:
 * that says nothing of the call. If the server had looked at a query, it would
 * have answered differently. */
static void on_stale(struct ulrpc_call *call, const struct wire_reply *r)
{
	if (r->attempt == call->out.attempt)
		call_again(call);
	else
		call_ask(call);
}

bool attempt_is_refused(struct ulrpc_call *call, const struct wire_reply *r)
{
	struct ulrpc_client *c = call->client;
	bool query = r->attempt != call->out.attempt;
	const struct batch *p = query ? call->query.batch : call->out.batch;
	uint32_t epoch = p->epoch;
	uint64_t now = shard_now(call->shard);

	if (unlikely(r->unexecuted))
		call->unknown = false;
	switch (r->status) {
	case WIRE_NOT_CONNECTED:
		/* If not, the next connection tells whether the server has
		 * forgotten us, or still knows the call. */
		if (r->absent)
			import_lost(c->imp, epoch);
		else
			import_unknown(c->imp, epoch, &p->local, &p->target);
		if (is_executed_by_nobody(call, r))
			call_again(call);
		else
			call_ask(call);
		return true;
	case WIRE_STALE_EPOCH:
		import_lost(c->imp, epoch);
		on_stale(call, r);
		return true;
	case WIRE_NO_SERVICE:
	case WIRE_SHUTTING_DOWN:
		/* The service leaves that portal, or has left it. It may be at
		 * another portal, or come back soon: the client asks for it. */
		if (!query)
			count_refusal(call);
		on_stale(call, r);
		client_reopen(c);
		return true;
	case WIRE_UNKNOWN_CALL:
		if (!query)
			return false;
		on_unknown_call(call);
		return true;
	case WIRE_BULK_FAILED:
		return on_bulk_failed(call, r);
	case WIRE_EXPIRED:
		/* The attempt has expired. Or the call will soon, and the
		 * server says so just in time: another attempt would be told
		 * the same. */
		return attempt_time_left(call, now) >
			       import_rtt(c->imp) + QUERY_TIME &&
		       call_retry(call, 0);
	case WIRE_OVERLOADED:
		return !call_rule(call)->tell_overloaded &&
		       call_retry(call, retry_after_ns(r->retry_after));
	default:
		return false;
	}
}

/* ---- another server ---- */

void attempts_list(const struct ulrpc_client *c, struct list *calls)
{
	struct ulrpc_call *call;

	list_for_each_entry (call, &c->imp->calls, order) {
		if (call->client != c || !call_is_out(call))
			continue;
		list_del(&call->link);
		list_add_tail(calls, &call->link);
	}
}

/* Ends calls of which nobody can tell any more what became of them. */
static void end_as_restarted(struct list *calls)
{
	while (!list_empty(calls))
		call_fail(list_first(calls, struct ulrpc_call, link),
			  ULRPC_CAUSE_RESTARTED);
}

void attempts_without_slot(struct import *imp)
{
	struct ulrpc_call *call;
	struct list over;

	list_init(&over);
	list_for_each_entry (call, &imp->calls, order) {
		if (call->slot < imp->slots.granted)
			continue;
		list_del(&call->link);
		list_add_tail(&over, &call->link);
	}
	end_as_restarted(&over);
}

/* Does the call wait to be sent, to a service that is to look it up? */
static bool is_to_be_looked_up(const struct ulrpc_call *call)
{
	return call->semantics == ULRPC_EXACTLY_ONCE &&
	       call->flags & WIRE_CALL_RESENT && !call_is_out(call) &&
	       call->fsm.state != CALL_FETCH && call->fsm.state != CALL_DONE;
}

void attempts_forsake(struct ulrpc_client *c)
{
	struct ulrpc_call *call;
	struct list over;

	list_init(&over);
	list_for_each_entry (call, &c->imp->calls, order) {
		if (call->client == c && call->semantics == ULRPC_EXACTLY_ONCE)
			call->forsaken |= call_is_out(call);
		if (call->client != c || !is_to_be_looked_up(call))
			continue;
		list_del(&call->link);
		list_add_tail(&over, &call->link);
	}
	end_as_restarted(&over);
}

void attempts_unsettle(struct ulrpc_client *c)
{
	struct ulrpc_call *call;
	struct list out;

	list_init(&out);
	attempts_list(c, &out);
	while ((call = list_pop(&out, struct ulrpc_call, link)))
		call_unsettle(call);
}
