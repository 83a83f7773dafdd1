/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/attempt.h"

#include "base/backoff.h"
#include "rpc/bulk/bulk.h"
#include "rpc/client/bulks.h"
#include "rpc/client/fetch.h"
#include "rpc/client/naming.h"
#include "rpc/conn_event.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

/* ns: an extension is believed for so long, at most. */
#define EXTEND_MAX (300 * NSEC_PER_SEC)

/* Retries double the time of an attempt so often, at most. */
#define TIME_SHIFTS_MAX 6u
/* ns: a round trip in which TCP has lost a segment, and has sent it again after
 * 200 ms. */
#define RTT_LOST (250 * NSEC_PER_MSEC)
/* import.backoff is at most this. */
#define BACKOFF_DOUBLINGS 7u
/* Slack for is_certainly_unexecuted(), because the clock stands still within a
 * turn. */
#define UNKNOWN_SLACK (200 * NSEC_PER_MSEC)

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

/* Doubles @time @n times, up to the limits. A time that was too short once
 * would be too short again. */
static out_of_line uint64_t time_doubled(const struct ulrpc_call *call,
					 uint64_t time, uint64_t left,
					 uint32_t n)
{
	uint64_t most =
		MIN(left / 2, rpc_ns(call->client->rpc->conf.timeout_max));

	for (uint32_t i = MIN(n, TIME_SHIFTS_MAX); i; i--)
		time = MIN(rpc_at(time, time), most);
	return time;
}

uint64_t attempt_time(const struct ulrpc_call *call, uint64_t now)
{
	uint64_t left = attempt_time_left(call, now);
	uint64_t time = client_timeout(call->client, call->method, left);

	if (unlikely(call->retries != call->losses))
		time = time_doubled(call, time, left,
				    call->retries - call->losses);
	return time;
}

/* An attempt is due after T, a round trip, and a random pause, so that clients
 * whose messages were lost at the same moment do not ask at the same moment.
 * The pause is at most half of T and the round trip, because a dead server is
 * to be detected soon. All first attempts of a client have the same jitter:
 * they are due in the order in which they were sent, which keeps client.watched
 * cheap. At least half of what the call has left beyond T remains for a query
 * and another attempt, whatever the caller wants as the least time. */
uint64_t attempt_due(const struct ulrpc_call *call, uint64_t time, uint64_t now)
{
	uint64_t rtt = import_rtt(call->client->imp);
	uint64_t jitter = likely(!call->retries) ? call->client->watch_jitter
						 : shard_jitter(call->shard);
	uint64_t wait = rpc_at(time, rtt), left = attempt_time_left(call, now);
	const struct retry_rule *rule = call_rule(call);
	uint64_t pause = retry_pause(rule, call->retries + 1, time,
				     MIN(rtt, wait / 4), jitter);

	wait = rpc_at(MAX(wait, rule->least), pause);
	wait = import_backed_off(call->client->imp, wait);
	return rpc_at(now, MIN(wait, time + (left - time) / 2));
}

/* Returns when (ns) a query about @call that is sent at @now (ns) counts as
 * late. All calls in a message have the same @random: those that have had the
 * same number of unanswered queries are asked about together again. */
static uint64_t query_due(const struct ulrpc_call *call, uint64_t now,
			  uint64_t random)
{
	const struct import *imp = call->client->imp;
	uint64_t pause = backoff_pause(&query_law, call->unanswered, random);
	uint64_t wait = import_backed_off(
		imp, import_rtt(imp) + IMPORT_QUERY_TIME + pause);

	return rpc_at(now, MIN(wait, MAX(attempt_time_left(call, now) / 2,
					 IMPORT_QUERY_TIME)));
}

static void watch_arm(struct ulrpc_client *c, uint64_t at)
{
	c->watch_at = at;
	shard_arm(c->shard, &c->watch_timer, at);
}

/* Inserts @p into client.watched, which is sorted, from the end. */
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

/* Sets p->due to @due, ns, and moves @p in the list. TIME_NEVER: the batch is
 * no longer watched. */
static void watch_move(struct batch *p, uint64_t due)
{
	list_del(&p->of_watch);
	p->due = due;
	if (due != TIME_NEVER)
		attempt_watch_rare(p->client, p);
}

/* ---- which rail loses messages ---- */

/* Tells LNet, once for each batch, that the rail of @p has lost @p or its
 * answer. */
static void batch_suspect(struct batch *p)
{
	const struct ulnet_id peer = { p->target, p->peer.pid };

	if (!p->suspect && p->sending)
		conn_event_suspect_send(p->shard, p->send_md, &p->peer.nid);
	else if (!p->suspect)
		conn_event_suspect(p->shard, &p->local, &peer, &p->hop);
	p->suspect = true;
}

static bool is_other_rail(const struct batch *a, const struct batch *b)
{
	return !lnet_nid_eq(&a->hop, &b->hop) ||
	       !lnet_nid_eq(&a->local, &b->local);
}

void attempt_judge_rail(const struct ulrpc_call *call,
			const struct wire_reply *r)
{
	struct batch *out = call->out.batch, *query = call->query.batch;
	uint64_t us = r->throttled + r->queue + r->service;
	uint64_t rtt = import_rtt(call->client->imp);

	if (!query || r->attempt == call->out.attempt ||
	    rpc_at(rpc_at(call->sent, rpc_ns(us)), rtt) >= query->sent)
		/* perhaps the attempt is only slow, and nothing was lost */
		return;
	if (is_other_rail(out, query))
		batch_suspect(out);
}

/* ---- what is not answered in time ---- */

/* Called when a query about @call was not answered in time. Increases the
 * back-off, but only once for all queries that were under way at the same time.
 * Reduces it instead if the server is not slow, because then the query or its
 * answer was lost. */
static void backoff_adapt(struct import *imp, const struct ulrpc_call *call,
			  uint64_t now)
{
	if (now < imp->backoff_until)
		return;
	if (imp->prompt > call->query.batch->sent) {
		imp->backoff -= imp->backoff > 0;
		return;
	}
	imp->backoff = MIN(imp->backoff + 1, BACKOFF_DOUBLINGS);
	imp->backoff_until = rpc_at(
		now, import_backed_off(imp, rpc_at(attempt_time(call, now),
						   import_rtt(imp))));
}

void attempt_on_prompt(const struct ulrpc_call *call,
		       const struct wire_reply *r, uint64_t now)
{
	struct import *imp = call->client->imp;
	const struct batch *query = call->query.batch;

	if (!call->queries || (query && r->attempt == call->query.attempt &&
			       import_is_prompt(imp, query->sent, now)))
		imp->backoff--;
}

/* Called when no answer about @call has come in time: asks the server. */
static void call_missed(struct ulrpc_call *call, uint64_t now)
{
	struct import *imp = call->client->imp;

	if (call->fsm.state == CALL_ASKED) {
		call->unanswered++;
		batch_suspect(call->query.batch);
		backoff_adapt(imp, call, now);
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
	watch_move(p, next);
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

/* Links the bulks of @call for the NID that @p was sent to, because the server
 * moves bulk over the rail on which it was asked last. */
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
	call->query = (struct batch_ref){ p, index, call->attempts++ };
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
		     import_backed_off(c->imp, rpc_at(time, rtt)));
}

/* Lets @server, the NID from which the server answers, move the bulk of the
 * call. The server moves bulk from another NID than the call was sent to if it
 * has lost that one. If the bulk did not admit the other NID, the server would
 * send extensions and wait for bulk until the deadline. */
static void bulks_admit(struct ulrpc_call *call, struct ulnet_id server)
{
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_admit(call->bulks[i], server);
}

/* Called when the server has said that the call may take until @until (ns).
 * @server: the NID and pid that have said so. */
static void call_extend(struct ulrpc_call *call, struct ulnet_id server,
			uint64_t until)
{
	struct batch *p = call->out.batch;

	bulks_admit(call, server);
	call->extensions++;
	call->unanswered = 0;
	until = MIN(until, call->deadline);
	call->expected = MAX(call->expected, until);
	if (call->fsm.state == CALL_ASK)
		list_del(&call->link);
	if (call->fsm.state != CALL_SENT)
		call_move(call, CALL_SENT);
	if (p->due > call->expected)
		watch_move(p, call->expected);
}

/* Returns the call that an extension is for; NULL: the call does not wait any
 * more, or a later attempt of it was sent. */
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
		/* The progress function may do anything, also cancel a call:
		 * that call then ends later. */
		if (call->progress)
			extension_tell(call, &e);
	}
}

/* Was the last message about @call perhaps lost with the connection? Not if
 * LNet is still sending it. */
static bool attempt_is_lost(const struct ulrpc_call *call,
			    const struct conn_loss *s)
{
	const struct batch *p =
		call->query.batch ? call->query.batch : call->out.batch;

	return !p->sending && conn_loss_covers(s, p->sent, &p->target);
}

void attempts_ask(struct import *imp, const struct conn_loss *s)
{
	struct ulrpc_call *call;

	list_for_each_entry (call, &imp->calls, order) {
		if (!call_is_out(call) || (s && !attempt_is_lost(call, s)))
			continue;
		call->unanswered = 0;
		call_ask(call);
	}
}

void attempts_overtaken(struct import *imp, uint64_t sent,
			const struct ulnet_nid *local,
			const struct ulnet_nid *hop)
{
	uint64_t before = sent - MIN(import_rtt(imp), sent);
	struct ulrpc_call *call;

	list_for_each_entry (call, &imp->calls, order) {
		struct batch *p = call->query.batch;

		if (call->fsm.state != CALL_ASKED || p->sending ||
		    p->sent >= before)
			continue;
		if (!lnet_nid_eq(&p->local, local) ||
		    !lnet_nid_eq(&p->hop, hop))
			batch_suspect(p);
		call_ask(call);
	}
}

/* ---- another attempt ---- */

static void attempt_on_fenced(void *arg);

/* If a bulk of @call cannot be lent again yet, sees to it that
 * attempt_on_fenced() is called when the bulk is idle, and returns true.
 * Returns false if all can. */
static bool bulks_fence(struct ulrpc_call *call)
{
	struct ulrpc_bulk *fenced = bulks_fenced(call);

	if (fenced)
		bulk_on_idle(fenced, attempt_on_fenced, call);
	return fenced;
}

static void call_requeue(struct ulrpc_call *call)
{
	struct ulrpc_client *c = call->client;

	call_move(call, CALL_QUEUED);
	call->queued = shard_now(call->shard);
	/* The store that the service has now does not know the call. */
	if (unlikely(call->orphaned && call->flags & WIRE_CALL_RESENT)) {
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

	if (bulks_fence(call))
		return;
	list_del(&call->link);
	call_requeue(call);
}

static void call_fence_or_requeue(struct ulrpc_call *call)
{
	if (!bulks_fence(call)) {
		call_requeue(call);
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
	call->unanswered = 0;
	call->bulk_failed = false;
	list_del(&call->link);
	call->client->inflight--;
	batch_forget_all(call);
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_detach(call->bulks[i]);
	client_kick(call->client);
}

/* Sends the call again, after an attempt that was certainly not executed and
 * never will be. */
static void call_again(struct ulrpc_call *call)
{
	attempt_end(call);
	call_fence_or_requeue(call);
}

static void count_repetition(struct ulrpc_call *call)
{
	call->retries++;
	stat_count(call->shard, RPC_STAT_calls_repeated);
}

/* Sends the call again, after an attempt that was delivered, and counts a
 * retry. */
static void call_repeat(struct ulrpc_call *call)
{
	count_repetition(call);
	call_again(call);
}

/* Counts an answer by which the server has refused the attempt, while the call
 * goes on. */
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

/* May the call be sent again although an attempt may have been executed? Yes if
 * the method is idempotent, or if the service looks the call up in its store.
 */
static bool may_be_doubtful(const struct ulrpc_call *call)
{
	return call->semantics == ULRPC_IDEMPOTENT ||
	       (call->semantics == ULRPC_EXACTLY_ONCE &&
		call->client->durable && !call->orphaned);
}

void call_on_forgotten(struct ulrpc_call *call, enum ulrpc_cause cause)
{
	if (!may_be_doubtful(call) || !may_repeat(call)) {
		call_fail(call, cause);
		return;
	}
	call->unknown = true;
	call->flags |= WIRE_CALL_RESENT;
	call_repeat(call);
}

void call_fetch_lost(struct ulrpc_call *call, enum ulrpc_cause cause)
{
	if (call->semantics != ULRPC_IDEMPOTENT || !may_repeat(call)) {
		call_fail(call, cause);
		return;
	}
	fetch_drop(call->fetch);
	list_del(&call->link);
	call->unknown = true;
	call->flags |= WIRE_CALL_RESENT;
	count_repetition(call);
	for (unsigned int i = 0; i < call->nbulks; i++)
		bulk_detach(call->bulks[i]);
	call_fence_or_requeue(call);
}

static void attempt_on_pause_over(struct ulnet_timer *timer)
{
	struct ulrpc_call *call = container_of(timer, struct ulrpc_call, pause);

	list_del(&call->link);
	call_fence_or_requeue(call);
}

/* Decides whether the call is to be sent again. If so, sets *@at_p to when
 * (ns). @least: the least pause (ns). @lost: the server does not know the
 * attempt. */
static enum backoff_verdict retry_verdict(struct ulrpc_call *call,
					  uint64_t least, bool lost,
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
		.lost = lost,
		.random = shard_random(s, UINT64_MAX),
	};

	return retry_next(&c, at_p);
}

/* Ends the attempt, and moves the call to the state WAIT. */
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

/* Sends the call, whose attempt the server has refused, again after at least
 * @least ns. Returns false if that would be too late or too often. */
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

/* Called when the server does not know the connection, and has not known it for
 * @absent ns, at least: was the attempt certainly not executed? It, or a copy
 * of it, may have been executed earlier, by this server or by its predecessor.
 * That is impossible if the server has not known the connection for longer than
 * the attempt has been under way, with some slack for clocks. */
static bool is_certainly_unexecuted(const struct ulrpc_call *call,
				    uint64_t absent)
{
	uint64_t age = shard_now(call->shard) - call->sent;

	return absent >= rpc_at(age + age / 1024, UNKNOWN_SLACK);
}

/* Called when the answer to a query is that the server knows no attempt of the
 * call. It will execute none that comes late, but may have executed an
 * idempotent call and forgotten it. Sends the call again, or ends it. */
static void on_unknown_call(struct ulrpc_call *call)
{
	bool bulk_failed = call->bulk_failed;
	uint64_t at;

	if (call->query.batch &&
	    is_other_rail(call->out.batch, call->query.batch))
		batch_suspect(call->out.batch);
	if (call->semantics == ULRPC_IDEMPOTENT)
		call->unknown = true;
	if (retry_verdict(call, 0, !bulk_failed, &at) != BACKOFF_RETRY) {
		attempt_wait(call);
		call_fail(call,
			  bulk_failed ? ULRPC_CAUSE_BULK : ULRPC_CAUSE_LOST);
	} else if (at > shard_now(call->shard)) {
		retry_at(call, at);
	} else {
		call->losses += call->losses < UINT8_MAX;
		call_repeat(call);
	}
}

/* Called when the handler has failed because bulk could not be moved. If the
 * caller has said that the call is idempotent, the server is asked about the
 * call first, and true is returned. If the method is idempotent, too, the
 * server has forgotten the call, and it is sent again. Otherwise the server
 * repeats its answer, and the call ends. */
static bool on_bulk_failed(struct ulrpc_call *call, const struct wire_reply *r)
{
	if (call->semantics != ULRPC_IDEMPOTENT || !call->nbulks ||
	    !may_repeat(call))
		return false;
	/* a copy of the first answer is ignored: a query about the call is
	 * under way */
	if (call->bulk_failed)
		return call->fsm.state == CALL_ASK ||
		       r->attempt == call->out.attempt;
	call->bulk_failed = true;
	call_ask(call);
	return true;
}

/* Called when the server has not looked at the attempt or query, because it
 * does not accept the connection or the portal that the message named. */
static void on_stale(struct ulrpc_call *call, const struct wire_reply *r)
{
	if (r->attempt == call->out.attempt)
		call_again(call);
	else
		call_ask(call);
}

/* Called when the server does not know the metadata that the attempt has only
 * named: sends the call again, with its metadata. Returns false if the attempt
 * has named none, so that the answer makes no sense. */
static out_of_line bool on_unknown_set(struct ulrpc_call *call)
{
	const struct call_context *x;

	if (!(call->flags & CALL_NAMED))
		return false;
	x = call_context(call);
	if (!x->name.refers)
		return false;
	naming_unknown(call->client->imp, x);
	count_refusal(call);
	call_again(call);
	return true;
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
		/* If r->absent is 0, the server may know the connection, but
		 * not the rail. If it does not know the connection, the answer
		 * to the next Connect tells whether it still knows the call. */
		if (r->absent)
			import_lost(c->imp, epoch);
		else
			import_unknown(c->imp, epoch, &p->local, &p->target);
		if (is_certainly_unexecuted(call, rpc_ns(r->absent)))
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
		/* The service does not use this portal any more. It may have
		 * another one, or come back soon. */
		if (!query)
			count_refusal(call);
		on_stale(call, r);
		client_reopen(c);
		return true;
	case WIRE_REFUSED:
		/* The method, or a rule, demands a higher flavour than the
		 * service does. */
		if (!client_raise(c, r->error))
			return false;
		on_stale(call, r);
		client_reopen(c);
		return true;
	case WIRE_UNKNOWN_CALL:
		if (!query)
			return false;
		on_unknown_call(call);
		return true;
	case WIRE_UNKNOWN_SET:
		return !query && on_unknown_set(call);
	case WIRE_BULK_FAILED:
		return on_bulk_failed(call, r);
	case WIRE_EXPIRED:
		/* Is there no time for another attempt? Then the call ends. */
		return attempt_time_left(call, now) >
			       import_rtt(c->imp) + IMPORT_QUERY_TIME &&
		       call_retry(call, 0);
	case WIRE_OVERLOADED:
		return !call_rule(call)->tell_overloaded &&
		       call_retry(call, retry_after_ns(r->retry_after));
	default:
		return false;
	}
}

/* ---- another server ---- */

bool call_withdraw(struct ulrpc_call *call, bool sent, enum ulrpc_cause cause)
{
	if (call->fsm.state == CALL_DONE || call->fsm.state == CALL_FETCH ||
	    (!sent && (call_is_out(call) || call->unknown)))
		return false;
	call_fail(call, cause);
	return true;
}

void call_lose(struct ulrpc_call *call, enum ulrpc_cause cause)
{
	if (call->fsm.state == CALL_FETCH ||
	    (call->fsm.state != CALL_DONE &&
	     (call_is_out(call) || call->unknown)))
		call_fail(call, cause);
}

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
	calls_fail(&over, ULRPC_CAUSE_RESTARTED);
}

/* Is the call waiting to be sent to a service that looks it up in its store? */
static bool is_to_be_looked_up(const struct ulrpc_call *call)
{
	return call->semantics == ULRPC_EXACTLY_ONCE &&
	       call->flags & WIRE_CALL_RESENT && !call_is_out(call) &&
	       call->fsm.state != CALL_FETCH && call->fsm.state != CALL_DONE;
}

void attempts_orphan(struct ulrpc_client *c)
{
	struct ulrpc_call *call;
	struct list over;

	list_init(&over);
	list_for_each_entry (call, &c->imp->calls, order) {
		if (call->client == c && call->semantics == ULRPC_EXACTLY_ONCE)
			call->orphaned |= call_is_out(call);
		if (call->client != c || !is_to_be_looked_up(call))
			continue;
		list_del(&call->link);
		list_add_tail(&over, &call->link);
	}
	calls_fail(&over, ULRPC_CAUSE_RESTARTED);
}

/* Was the attempt too late for a server that has ended, or has forgotten the
 * client? */
static bool is_unread(const struct ulrpc_call *call)
{
	const struct import *imp = call->client->imp;

	return (imp->unexecuted && call->xid >= imp->unexecuted) ||
	       is_certainly_unexecuted(call, imp->absent);
}

/* Sends the call again, whose attempt came too late. */
static void call_unread(struct ulrpc_call *call)
{
	count_refusal(call);
	call_again(call);
}

void attempts_on_forgotten(struct ulrpc_client *c)
{
	struct ulrpc_call *call;
	struct list out;

	list_init(&out);
	attempts_list(c, &out);
	while ((call = list_pop(&out, struct ulrpc_call, link))) {
		if (is_unread(call))
			call_unread(call);
		else
			call_on_forgotten(call, import_forgotten_cause(c->imp));
	}
}
