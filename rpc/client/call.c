/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rpc/bulk/bulk.h"
#include "rpc/bulk/seal.h"
#include "rpc/bulk/transfer.h"
#include "rpc/client/attempt.h"
#include "rpc/client/bulks.h"
#include "rpc/client/client.h"
#include "rpc/client/fetch.h"
#include "rpc/client/lent.h"
#include "rpc/client/batch.h"
#include "rpc/client/opening.h"
#include "rpc/context/context.h"
#include "rpc/run.h"
#include "rpc/text.h"
#include "rpc/wire/wire.h"
#include "secure/identity.h"

/* Bytes of bulk that the owner sums in one turn for one call, at most. To sum
 * all of a large source would keep the calls of others waiting for 25 ms. */
#define SUM_SLICE ((uint64_t)1 << 20)

const struct fsm_state call_states[CALL_STATES] = {
	[CALL_NEW] = { "new", FSM_TO(CALL_QUEUED) | FSM_TO(CALL_DONE) },
	[CALL_QUEUED] = { "queued", FSM_TO(CALL_SENT) | FSM_TO(CALL_DONE) },
	[CALL_SENT] = { "sent",
			FSM_TO(CALL_ASK) | FSM_TO(CALL_WAIT) |
				FSM_TO(CALL_FETCH) | FSM_TO(CALL_FENCE) |
				FSM_TO(CALL_QUEUED) | FSM_TO(CALL_DONE) },
	[CALL_ASK] = { "ask", FSM_TO(CALL_ASKED) | FSM_TO(CALL_SENT) |
				      FSM_TO(CALL_WAIT) | FSM_TO(CALL_FETCH) |
				      FSM_TO(CALL_FENCE) | FSM_TO(CALL_QUEUED) |
				      FSM_TO(CALL_DONE) },
	[CALL_ASKED] = { "asked",
			 FSM_TO(CALL_ASK) | FSM_TO(CALL_SENT) |
				 FSM_TO(CALL_WAIT) | FSM_TO(CALL_FETCH) |
				 FSM_TO(CALL_FENCE) | FSM_TO(CALL_QUEUED) |
				 FSM_TO(CALL_DONE) },
	[CALL_WAIT] = { "wait", FSM_TO(CALL_FENCE) | FSM_TO(CALL_QUEUED) |
					FSM_TO(CALL_DONE) },
	[CALL_FETCH] = { "fetch", FSM_TO(CALL_QUEUED) | FSM_TO(CALL_FENCE) |
					  FSM_TO(CALL_DONE) },
	[CALL_FENCE] = { "fence", FSM_TO(CALL_QUEUED) | FSM_TO(CALL_DONE) },
	[CALL_DONE] = { "done", 0 },
};

/* ---- memory ---- */

void call_free(struct ulrpc_call *call)
{
	if (unlikely(call->retry)) {
		free(call->retry);
		call_context_free(call);
		if (call->flags & CALL_LENT)
			lent_put(call->lent);
	}
	/* @call is from malloc(). NOLINT(clang-analyzer-unix.Malloc) */
	if (call->shared)
		free(call);
	else
		slab_put_class(&call->shard->imports->slab, call, call->class);
}

void ulrpc_call_put(struct ulrpc_call *call)
{
	if (call)
		call_put(call);
}

/* ---- the end ---- */

/* What bulk_late.fn calls: adds the bytes that were put into bulks, @in, and
 * got from them, @out, to the statistics. */
static void bulk_count(struct shard *s, const struct bulk_late *late,
		       uint64_t in, uint64_t out)
{
	struct import *imp = import_find(s, late->import);
	const struct call_report report = {
		.shard = s,
		.stats = late->stats,
		.peer = imp ? &imp->stats : NULL,
		.method = late->method,
		.bulk_sent = out,
		.bulk_received = in,
	};

	stat_call_late(&report);
}

/* Releases the bulks, and counts the bytes that were moved so far. Bytes that
 * are moved later, or reported later by LNet, are counted when they are.
 * Returns true if all bulks of the user are idle. */
static bool bulks_release(struct ulrpc_call *call)
{
	const struct bulk_late late = {
		.fn = bulk_count,
		.stats = call->client->stats,
		.import = call->client->imp->handle,
		.method = call->method,
	};
	uint64_t in = 0, out = 0;
	/* Those of the body come last, and their memory is not the user's. */
	unsigned int users = call->nbulks;
	bool idle = true;

	if (call->flags & CALL_LENT)
		users -= lent_bulks(call->client->rpc, call_size(call));
	for (unsigned int i = 0; i < call->nbulks; i++) {
		bulk_bytes(call->bulks[i], &in, &out);
		if (!bulk_idle(call->bulks[i]))
			bulk_on_late(call->bulks[i], &late);
		if (!bulk_release(call->bulks[i]) && i < users)
			idle = false;
	}
	bulk_count(call->shard, &late, in, out);
	return idle;
}

/* Sets the times of the outcome. They add up to the total, even if those that
 * the server reports are longer. */
static in_line void outcome_times(struct ulrpc_outcome *o,
				  const struct ulrpc_call *call, uint64_t now)
{
	uint64_t left = (now - call->began) / NSEC_PER_USEC;

	o->total = left;
	o->connecting = o->window = 0;
	if (unlikely(call->connecting | call->window)) {
		o->connecting = MIN(call->connecting / NSEC_PER_USEC, left);
		left -= o->connecting;
		o->window = MIN(call->window / NSEC_PER_USEC, left);
		left -= o->window;
	}
	if (unlikely(o->server_throttled | o->fetch)) {
		o->fetch = MIN(o->fetch, left);
		left -= o->fetch;
		o->server_throttled = MIN(o->server_throttled, left);
		left -= o->server_throttled;
	}
	o->server_queue = MIN(o->server_queue, left);
	left -= o->server_queue;
	o->service = MIN(o->service, left);
	o->wire = left - o->service;
}

/* Sets the rail of the last attempt, and the numbers of messages. */
static in_line void outcome_rail(struct ulrpc_outcome *o,
				 const struct ulrpc_call *call)
{
	const struct batch *p = call->out.batch;

	o->attempts = call->attempts;
	o->paths = call->paths;
	o->retries = o->queries = o->extensions = o->refusals = 0;
	if (unlikely(call->attempts > 1 || call->extensions)) {
		o->retries = call->retries;
		o->queries = call->queries;
		o->extensions = call->extensions;
		o->refusals = call->refusals;
	}
	if (likely(p)) {
		o->local = p->local;
		o->target = p->target;
		o->paths += p->paths;
	} else if (call->attempts) {
		o->local = call->local;
		o->target = call->target;
	} else {
		o->local = o->target = LNET_NID_ANY;
	}
}

void call_count_waiting(struct ulrpc_call *call, uint64_t now)
{
	struct ulrpc_client *c = call->client;
	uint64_t ready = now;

	if (c->fsm.state == CLIENT_OPEN && import_is_up(c->imp))
		ready = MIN(MAX(c->ready, call->queued), now);
	call->connecting += ready - call->queued;
	call->window += now - ready;
}

static out_of_line void call_detach_rare(struct ulrpc_call *call, uint64_t now)
{
	switch ((enum call_state)call->fsm.state) {
	case CALL_QUEUED:
		call->client->nqueued--;
		call_count_waiting(call, now);
		break;
	case CALL_ASK:
	case CALL_ASKED:
		call->client->inflight--;
		batch_forget_all(call);
		break;
	case CALL_WAIT:
		shard_cancel(call->shard, &call->pause);
		break;
	case CALL_FETCH:
		fetch_drop(call->fetch);
		break;
	default:
		break;
	}
}

/* Takes the call off all lists and out of all counters; frees its slot. */
static in_line void call_detach(struct ulrpc_call *call, uint64_t now)
{
	struct ulrpc_client *c = call->client;

	list_unlink(&call->link);
	client_unwatch(call);
	if (likely(call->slot != SLOT_NONE)) {
		list_unlink(&call->order);
		import_slot_put(c->imp, call->slot);
	}
	if (unlikely(call->fsm.state != CALL_SENT)) {
		call_detach_rare(call, now);
		return;
	}
	c->inflight--;
	batch_forget_all(call);
}

/* Notes @call as one of the slowest of its service. */
static void call_note_slow(struct ulrpc_call *call,
			   const struct ulrpc_outcome *o)
{
	const struct import *imp = call->client->imp;
	struct slow_entry e = {
		.ended = call->began + rpc_ns(o->total),
		.times = { [STAT_CALL_TIME_total] = rpc_ns(o->total),
			   [STAT_CALL_TIME_connecting] = rpc_ns(o->connecting),
			   [STAT_CALL_TIME_window] = rpc_ns(o->window),
			   [STAT_CALL_TIME_wire] = rpc_ns(o->wire),
			   [STAT_CALL_TIME_queue] = rpc_ns(o->server_queue),
			   [STAT_CALL_TIME_service] = rpc_ns(o->service),
			   [STAT_CALL_TIME_throttled] =
				   rpc_ns(o->server_throttled),
			   [STAT_CALL_TIME_fetch] = rpc_ns(o->fetch) },
		.known = (1u << STAT_CALL_TIMES_ALL) - 1,
		.method = call->method,
		.end = o->cause,
		.attempts = o->attempts,
		.retries = o->retries,
		.refusals = o->refusals,
		.peer = imp->stats.id,
		.traced = call->flags & CALL_TRACED,
	};

	if (e.traced)
		memcpy(e.trace, call_trace(call), sizeof(e.trace));
	if (imp->who)
		text_copy(e.name, sizeof(e.name), imp->who->name);
	slow_add(&call->client->stats->slow, &e);
}

/* Called if @arg, a call that ends, is not like the one before it. */
static out_of_line void call_begins_run(void *arg,
					const struct ulrpc_outcome *o)
{
	struct ulrpc_call *call = arg;
	const struct stat_service *sv = call->client->stats;
	uint64_t total = rpc_ns(o->total);

	if (sv && slow_enters(&sv->slow, total, call->began + total))
		call_note_slow(call, o);
}

/* Adds the span of @call, which has a trace, if there is to be one. */
static void call_span(struct ulrpc_call *call, const struct ulrpc_outcome *o)
{
	const struct ulrpc_client *c = call->client;
	const uint8_t *trace = call_trace(call);
	const uint8_t *room = trace + TRACE_LENGTH;
	struct rpc_span span = {
		.begin = call->began,
		.end = shard_now(call->shard),
		.local = o->local,
		.peer = o->target,
		.failed = o->cause != ULRPC_CAUSE_OK,
		.status = ulrpc_status_name(ulrpc_status_of(o)),
		.cause = ulrpc_cause_name(o->cause),
		.execution = ulrpc_execution_name(o->execution),
		.attempts = o->attempts,
		.number = call->method,
	};

	if (!room[SPAN_ID])
		return;
	memcpy(span.trace, trace, TRACE_LENGTH);
	memcpy(span.parent, room, SPAN_ID);
	text_copy(span.service, sizeof(span.service), c->service);
	spans_add(call->shard, &span);
}

/* Does what few calls need when they end. Returns true if all bulks of the
 * user are idle. */
static out_of_line bool call_end_rare(struct ulrpc_call *call,
				      const struct ulrpc_outcome *o)
{
	if (call->flags & CALL_TRACED)
		call_span(call, o);
	if (call->flags & CALL_LENT)
		call->client->backlog.bytes -= call_size(call);
	return call->nbulks ? bulks_release(call) : true;
}

/* Counts the call, and calls its callback, which may do anything. */
static in_line void call_tell(struct ulrpc_call *call, struct ulrpc_outcome *o,
			      const void *body, size_t length)
{
	struct ulrpc_client *c = call->client;
	struct shard *s = call->shard;
	const struct call_report report = {
		.shard = s,
		.stats = c->stats,
		.peer = &c->imp->stats,
		.method = call->method,
		.sent = o->attempts ? call->length : 0,
		.received = length,
		.outcome = o,
	};

	run_call_end(&report, call_begins_run, call);
	o->bulk_free = true;
	if (unlikely(call->flags & (CALL_TRACED | CALL_BULKS)))
		o->bulk_free = call_end_rare(call, o);
	if (call->shared)
		atomic_store(&call->canceling, true);
	backlog_left(&c->backlog, call->length, c->ncalls - 1, s);
	if (shard_is_mute(s))
		call->crashed = true;
	else
		call->done(call->arg, o, body, length);
	if (unlikely(shard_guard_is_late(s)))
		lnet_guard_end(
			s->node, s->cpt,
			"what is called at the end of calls of service %s",
			c->service);
	client_call_ended(c);
	shard_work_end(s);
	call_put(call);
}

/* Does what call_tell() does, but is not inlined, for calls that are rare. */
static out_of_line void call_tell_late(struct ulrpc_call *call,
				       struct ulrpc_outcome *o,
				       const void *body, size_t length)
{
	call_tell(call, o, body, length);
}

/* The end of a call with bulks. The callback runs when the bulks are idle, at
 * the earliest at the end of this turn. */
struct ending {
	struct ulnet_work work;
	struct ulrpc_call *call;
	struct ulrpc_outcome outcome;
	/* points into the batch or fetch, whose memory is freed after the
	 * callback */
	const void *body;
	size_t length;
};

static void on_ending(struct ulnet_work *work)
{
	struct ending *e = container_of(work, struct ending, work);
	struct ulrpc_call *call = e->call;

	call_tell_late(call, &e->outcome, e->body, e->length);
	free(e);
}

/* Does everything at the end of a call except telling its caller. */
static in_line void call_settle(struct ulrpc_call *call,
				struct ulrpc_outcome *o, uint64_t now)
{
	outcome_rail(o, call);
	call_detach(call, now);
	outcome_times(o, call, now);
	call_move(call, CALL_DONE);
}

/* Does what call_end() does, for a call with bulks. Detaches the bulks. If they
 * are idle then, or if there is no memory for waiting, the callback runs now.
 */
static out_of_line void call_end_bulks(struct ulrpc_call *call,
				       struct ulrpc_outcome *o,
				       const void *body, size_t length,
				       uint64_t now)
{
	bool owes = o->cause == ULRPC_CAUSE_OK && bulks_owe_open(call);
	bool idle = bulks_detach(call);
	struct ending *e = owes || idle ? NULL : malloc(sizeof(*e));

	if (e) {
		/* This work has to run before the memory of the body is freed,
		 * which is later in the turn. */
		e->work.fn = on_ending;
		shard_defer(call->shard, &e->work);
	}
	call_settle(call, o, now);
	if (owes) {
		/* One call less is in flight: another one may be sent. */
		client_kick(call->client);
		opening_begin(call, o, body, length, call_tell_late);
	} else if (!e) {
		call_tell_late(call, o, body, length);
	} else {
		/* One call less is in flight: another one may be sent. */
		client_kick(call->client);
		e->call = call;
		e->outcome = *o;
		e->body = body;
		e->length = length;
	}
}

/* Ends the call. The caller has set what the server says: status, cause,
 * execution, server_throttled, server_queue, service, fetch, retry_after and
 * reply_needed of @o. The other fields are set here. */
static in_line void call_end(struct ulrpc_call *call, struct ulrpc_outcome *o,
			     const void *body, size_t length, uint64_t now)
{
	if (unlikely(call->nbulks)) {
		call_end_bulks(call, o, body, length, now);
		return;
	}
	call_settle(call, o, now);
	call_tell(call, o, body, length);
}

/* Sets what is known of the end of a call in FETCH: it was executed. */
static void outcome_of_fetched(struct ulrpc_outcome *o, const struct fetch *f)
{
	o->execution = ULRPC_EXECUTED;
	o->server_queue = f->queue;
	o->service = f->service;
	o->fetch = (shard_now(f->shard) - f->since) / NSEC_PER_USEC;
}

void call_excess(const struct ulrpc_call *call, char *text, size_t size)
{
	const struct ulrpc_client *c = call->client;
	unsigned int sealed = bulks_sealed(call);

	if (sealed > TRANSFERS_SEALED_MAX)
		snprintf(text, size,
			 "bulk of %u segments is too much: with seals a call "
			 "may have up to %u",
			 sealed, TRANSFERS_SEALED_MAX);
	else if (call->flags & WIRE_CALL_ANNEX && !c->imp->annexes)
		snprintf(text, size,
			 "the server is of a release that takes no metadata");
	else if (c->request_limit > c->request_max)
		snprintf(text, size,
			 "a request of %u bytes is too long: the service takes "
			 "up to %u",
			 call_size(call), c->request_limit);
	else
		snprintf(text, size,
			 "a request of %u bytes is too long: the service takes "
			 "up to %u, in messages of up to %u bytes",
			 call_size(call), c->request_max, c->message_max);
}

/* Says that there is no memory for a reply of @needed bytes. */
static void say_no_memory(uint32_t needed, struct ulrpc_outcome *o)
{
	o->reply_needed = needed;
	snprintf(o->text, sizeof(o->text),
		 "the reply has %u bytes, and the caller's process gets no "
		 "memory for it",
		 needed);
}

void call_fail(struct ulrpc_call *call, enum ulrpc_cause cause)
{
	struct ulrpc_outcome o = {
		.status = cause_status(cause),
		.cause = cause,
		.execution = call_is_out(call) || call->unknown
				     ? ULRPC_EXECUTION_UNKNOWN
				     : ULRPC_NOT_EXECUTED,
	};

	if (call->fsm.state == CALL_FETCH)
		outcome_of_fetched(&o, call->fetch);
	if (cause == ULRPC_CAUSE_BAD_REQUEST)
		call_excess(call, o.text, sizeof(o.text));
	if (cause == ULRPC_CAUSE_REFUSED)
		client_refusal(call->client, o.text, sizeof(o.text));
	if (cause == ULRPC_CAUSE_NAME)
		client_no_name(call->client, o.text, sizeof(o.text));
	if (cause == ULRPC_CAUSE_OVERLOADED)
		client_no_room(call->client, o.text, sizeof(o.text));
	if (cause == ULRPC_CAUSE_UNREACHABLE)
		import_no_server(call->client->imp, o.text, sizeof(o.text));
	if (cause == ULRPC_CAUSE_DEADLINE)
		import_gone_for(call->client->imp, o.text, sizeof(o.text));
	if (call->slot != SLOT_NONE)
		cancel_call(call);
	call_end(call, &o, NULL, 0, shard_now(call->shard));
}

void calls_fail(struct list *calls, enum ulrpc_cause cause)
{
	while (!list_empty(calls))
		call_fail(list_first(calls, struct ulrpc_call, link), cause);
}

static void on_fail_later(struct ulnet_work *work)
{
	struct ulrpc_call *call = container_of(work, struct ulrpc_call, work);
	struct shard *s = call->shard;

	if (call->fsm.state == CALL_QUEUED)
		call_fail(call, call->cause);
	call_put(call);
	shard_release(s);
}

void call_fail_later(struct ulrpc_call *call, enum ulrpc_cause cause)
{
	call->cause = cause;
	call->work.fn = on_fail_later;
	call_get(call);
	shard_hold(call->shard);
	shard_defer(call->shard, &call->work);
}

void call_expire(struct ulrpc_call *call)
{
	struct ulrpc_client *c = call->client;
	enum ulrpc_cause cause = ULRPC_CAUSE_DEADLINE;

	if (call->fsm.state == CALL_QUEUED && !import_is_up(c->imp))
		cause = client_down_cause(c);
	else if (call->fsm.state == CALL_QUEUED && c->refusal)
		cause = c->refusal;
	else if (call->fsm.state == CALL_QUEUED && call->alone)
		cause = ULRPC_CAUSE_NO_MEMORY;
	/* The server may have lost the service. */
	if (call_is_out(call))
		client_verify(c);
	call_fail(call, cause);
}

/* ---- an answer ---- */

static const struct {
	enum ulrpc_cause cause;
	enum ulrpc_execution execution;
} answers[] = {
	[WIRE_OK] = { ULRPC_CAUSE_OK, ULRPC_EXECUTED },
	[WIRE_FAILED] = { ULRPC_CAUSE_HANDLER, ULRPC_EXECUTED },
	[WIRE_NO_METHOD] = { ULRPC_CAUSE_NO_METHOD, ULRPC_NOT_EXECUTED },
	[WIRE_OVERLOADED] = { ULRPC_CAUSE_OVERLOADED, ULRPC_NOT_EXECUTED },
	[WIRE_EXPIRED] = { ULRPC_CAUSE_EXPIRED, ULRPC_NOT_EXECUTED },
	[WIRE_SHUTTING_DOWN] = { ULRPC_CAUSE_SHUTDOWN, ULRPC_NOT_EXECUTED },
	[WIRE_BAD_REQUEST] = { ULRPC_CAUSE_BAD_REQUEST, ULRPC_NOT_EXECUTED },
	[WIRE_REFUSED] = { ULRPC_CAUSE_REFUSED, ULRPC_NOT_EXECUTED },
	[WIRE_TOO_LONG] = { ULRPC_CAUSE_TOO_LONG, ULRPC_EXECUTED },
	[WIRE_BULK_FAILED] = { ULRPC_CAUSE_BULK, ULRPC_EXECUTED },
	[WIRE_VERSION_UNKNOWN] = { ULRPC_CAUSE_BAD_REQUEST,
				   ULRPC_NOT_EXECUTED },
	[WIRE_DOUBTFUL] = { ULRPC_CAUSE_RESTARTED, ULRPC_EXECUTION_UNKNOWN },
	/* A server gives this answer only to queries. */
	[WIRE_UNKNOWN_CALL] = { ULRPC_CAUSE_BAD_REPLY,
				ULRPC_EXECUTION_UNKNOWN },
	[WIRE_STALLED] = { ULRPC_CAUSE_STALLED, ULRPC_EXECUTION_UNKNOWN },
};

/* Has @r a body that proves which reply the server holds (fetch.proof)? The
 * caller needs no room for such a body. */
static bool is_proof(const struct ulrpc_call *call, const struct wire_reply *r)
{
	return (r->status == WIRE_HELD || r->status == WIRE_HELD_ANNEXED) &&
	       call->client->imp->secure &&
	       (r->length == DIGEST_SIZE || r->length == ONCE_SIZE);
}

/* Checks the answer of a call that was executed. Returns ULRPC_CAUSE_OK, or
 * what is wrong with it. */
static in_line enum ulrpc_cause answer_check(struct ulrpc_call *call,
					     const struct wire_reply *r)
{
	int rc;

	if (unlikely(r->length > call->reply_max && !is_proof(call, r)))
		return ULRPC_CAUSE_BAD_REPLY;
	if (likely(!(r->bulks.n | call->nbulks)))
		return ULRPC_CAUSE_OK;
	rc = bulks_check(call, r);
	if (!rc)
		return ULRPC_CAUSE_OK;
	return rc == -EBADMSG ? ULRPC_CAUSE_CHECKSUM : ULRPC_CAUSE_BAD_REPLY;
}

#define NO_ROOM "the service refuses the call, and there was no room to say why"

/* Returns how long a reply to @call may be, in bytes. */
static uint32_t reply_limit(const struct ulrpc_call *call)
{
	return fetch_limit(call->client->rpc,
			   client_limit(call->client, call->reply_limit));
}

/* Says why a reply of @needed bytes is too long. */
static void say_too_long(const struct ulrpc_call *call, uint32_t needed,
			 struct ulrpc_outcome *o)
{
	o->reply_needed = needed;
	if (needed > reply_limit(call))
		snprintf(
			o->text, sizeof(o->text),
			"the reply has %u bytes, and the caller takes up to %u",
			needed, reply_limit(call));
	else
		snprintf(o->text, sizeof(o->text),
			 "the reply has %u bytes, and the service has no room "
			 "to "
			 "hold it for the caller",
			 needed);
}

/* Sets cause and execution for a reply that is not WIRE_OK. */
static void answer_bad(struct ulrpc_call *call, const struct wire_reply *r,
		       struct ulrpc_outcome *o)
{
	o->cause = ULRPC_CAUSE_BAD_REPLY;
	o->execution = ULRPC_EXECUTION_UNKNOWN;
	if (r->status < ARRAY_SIZE(answers)) {
		o->cause = answers[r->status].cause;
		o->execution = answers[r->status].execution;
	}
	if (o->execution == ULRPC_NOT_EXECUTED && call->unknown)
		o->execution = ULRPC_EXECUTION_UNKNOWN;
	/* The call was sent again because the server had forgotten it, or
	 * had restarted. */
	if (r->status == WIRE_DOUBTFUL)
		o->cause = import_forgotten_cause(call->client->imp);
	if (o->cause == ULRPC_CAUSE_TOO_LONG)
		say_too_long(call, r->needed, o);
	/* The service may know better why. */
	if (o->cause != ULRPC_CAUSE_TOO_LONG ||
	    (r->length && r->needed <= reply_limit(call)))
		text_take(o->text, r->body, r->length);
	if (r->status == WIRE_REFUSED && !r->length)
		text_copy(o->text, sizeof(o->text), NO_ROOM);
}

/* ---- a reply that the server holds ---- */

/* Returns the server that holds the reply to @call. */
static struct holder call_holder(const struct ulrpc_call *call)
{
	const struct batch *query = call->query.batch;
	const struct batch *p = query ? query : call->out.batch;
	struct holder h = { p->peer, LNET_NID_ANY };

	if (lnet_nid_is_any(&p->local) || lnet_nid_is_any(&p->target))
		return h;
	h.self = p->local;
	h.peer.nid = p->target;
	return h;
}

/* What fetch_users.fetched calls. */
static void call_on_fetched(struct ulrpc_call *call, int status);

/* What fetch_users.lost calls. */
static void call_on_unfetched(struct ulrpc_call *call)
{
	call_fetch_lost(call, ULRPC_CAUSE_FORGOTTEN);
}

/* What fetch_users.no_memory calls. */
static void call_without_memory(struct ulrpc_call *call)
{
	struct ulrpc_outcome o = {
		.status = cause_status(ULRPC_CAUSE_NO_MEMORY),
		.cause = ULRPC_CAUSE_NO_MEMORY,
	};

	outcome_of_fetched(&o, call->fetch);
	say_no_memory(call->fetch->length, &o);
	if (call->slot != SLOT_NONE)
		cancel_call(call);
	call_end(call, &o, NULL, 0, shard_now(call->shard));
}

static const struct fetch_users fetch_users = {
	.fetched = call_on_fetched,
	.lost = call_on_unfetched,
	.no_memory = call_without_memory,
};

/* Starts to fetch the reply. Returns ULRPC_CAUSE_OK, or why it cannot be
 * fetched. */
static enum ulrpc_cause fetch_begin(struct ulrpc_call *call,
				    const struct wire_reply *r,
				    const struct holder *from)
{
	enum ulrpc_cause cause = answer_check(call, r);

	if (cause)
		return cause;
	if (!r->held || !r->needed ||
	    (call->client->imp->secure && !is_proof(call, r)))
		return ULRPC_CAUSE_BAD_REPLY;
	if (r->needed > reply_limit(call))
		return ULRPC_CAUSE_TOO_LONG;
	if (fetch_start(call, from, r, &fetch_users))
		return ULRPC_CAUSE_NO_MEMORY;
	return ULRPC_CAUSE_OK;
}

/* Moves @call, which is in flight, to FETCH. Returns false with *@o set if the
 * reply cannot be fetched. */
static out_of_line bool call_fetch(struct ulrpc_call *call,
				   const struct wire_reply *r,
				   struct ulrpc_outcome *o)
{
	struct holder from = call_holder(call);

	o->cause = fetch_begin(call, r, &from);
	if (o->cause) {
		fetch_release(call->shard, &from, r->held);
		if (o->cause == ULRPC_CAUSE_TOO_LONG)
			say_too_long(call, r->needed, o);
		if (o->cause == ULRPC_CAUSE_NO_MEMORY)
			say_no_memory(r->needed, o);
		return false;
	}
	attempt_end(call);
	call_move(call, CALL_FETCH);
	list_add_tail(&call->client->fetching, &call->link);
	return true;
}

/* Ends @call, which was answered with a body that has an annex. The caller has
 * set @o as for call_end(). */
static out_of_line void call_end_annexed(struct ulrpc_call *call,
					 struct ulrpc_outcome *o,
					 const uint8_t *bytes, size_t length,
					 uint64_t now)
{
	struct wire_view body = { bytes, bytes + length };
	bool good = call_context_said(call, &body, o);

	call_end(call, o, good ? body.p : NULL, good ? view_length(body) : 0,
		 now);
}

static void call_on_fetched(struct ulrpc_call *call, int status)
{
	struct imports *x = call->shard->imports;
	const struct fetch *f = call->fetch;
	enum ulrpc_cause cause =
		status ? ULRPC_CAUSE_BAD_REPLY : ULRPC_CAUSE_OK;
	struct ulrpc_outcome o = {
		.status = cause_status(cause),
		.cause = cause,
	};

	outcome_of_fetched(&o, f);
	if (f->annexed && !status) {
		call_end_annexed(call, &o, f->body, f->length,
				 shard_now(call->shard));
		return;
	}
	/* The fetch stays until the end of the turn. */
	x->told = call->fetch;
	call_end(call, &o, status ? NULL : f->body, status ? 0 : f->length,
		 shard_now(call->shard));
	x->told = NULL;
}

/* Does the server no longer know whether it executed the call? An attempt that
 * was marked as sent again is not forgotten: there it is the method that cannot
 * tell. */
static bool is_forgotten(const struct ulrpc_call *call,
			 const struct wire_reply *r)
{
	return r->status == WIRE_DOUBTFUL && !(call->flags & WIRE_CALL_RESENT);
}

/* Handles an answer that is not OK. @o: as for call_end(). Returns whether that
 * ended the call, or it goes on; otherwise *@o says why it is to end. */
static out_of_line bool call_answered(struct ulrpc_call *call,
				      const struct wire_reply *r,
				      struct ulrpc_outcome *o, uint64_t now)
{
	switch (r->status) {
	case WIRE_ANNEXED:
		o->cause = answer_check(call, r);
		if (o->cause)
			return false;
		call_end_annexed(call, o, r->body, r->length, now);
		return true;
	case WIRE_HELD:
	case WIRE_HELD_ANNEXED:
		return call_fetch(call, r, o);
	default:
		answer_bad(call, r, o);
		return false;
	}
}

void call_on_reply(struct ulrpc_call *call, const struct wire_reply *r,
		   uint64_t now)
{
	struct ulrpc_outcome o;
	const void *body = NULL;
	size_t length = 0;

	if (unlikely(r->status) && attempt_is_refused(call, r))
		return;
	if (unlikely(call->queries))
		attempt_judge_rail(call, r);
	call->client->reopened = 0;
	if (unlikely(r->status) && is_forgotten(call, r)) {
		/* the service, if not the server, has restarted */
		call_on_forgotten(call, ULRPC_CAUSE_RESTARTED);
		return;
	}
	o.execution = ULRPC_EXECUTED;
	o.server_throttled = r->throttled;
	o.server_queue = r->queue;
	o.service = r->service;
	o.fetch = 0;
	o.retry_after = r->retry_after;
	o.reply_needed = 0;
	o.text[0] = '\0';
	if (likely(r->status == WIRE_OK))
		o.cause = answer_check(call, r);
	else if (call_answered(call, r, &o, now))
		return;
	o.status = cause_status(o.cause);
	if (likely(o.cause == ULRPC_CAUSE_OK)) {
		body = r->body;
		length = r->length;
	} else if ((o.cause == ULRPC_CAUSE_HANDLER ||
		    o.cause == ULRPC_CAUSE_BULK) &&
		   r->error && r->error <= ERROR_MAX) {
		o.status = -(int)r->error;
	}
	call_end(call, &o, body, length, now);
}

/* ---- checksums and seals of what the call lends ---- */

static void on_sum(struct ulnet_work *work)
{
	struct ulrpc_call *call = container_of(work, struct ulrpc_call, work);
	struct shard *s = call->shard;

	if (call->fsm.state == CALL_QUEUED) {
		list_del(&call->link);
		call->client->nqueued--;
		call_sum(call);
	}
	call_put(call);
	shard_release(s);
}

/* Called when sealers have finished what they were given of a bulk of @arg, a
 * call. */
static void on_sealed(void *arg)
{
	struct ulrpc_call *call = arg;

	list_del(&call->link);
	call->client->nqueued--;
	call_sum(call);
}

/* Continues the checksums or seals of @call in the next turn, or when a sealer
 * is done. */
static void call_sum_later(struct ulrpc_call *call)
{
	struct ulrpc_bulk *busy = bulks_busy(call);

	call->client->nqueued++;
	list_add_tail(&call->client->summing, &call->link);
	if (busy) {
		bulk_on_idle(busy, on_sealed, call);
		return;
	}
	call->work.fn = on_sum;
	call_get(call);
	shard_hold(call->shard);
	shard_post(call->shard, &call->work);
}

void call_sum(struct ulrpc_call *call)
{
	if (bulks_busy(call) || !bulks_sum(call, SUM_SLICE) ||
	    !bulks_seal(call, SEAL_SLICE))
		call_sum_later(call);
	else if (call->slot == SLOT_NONE)
		client_submit(call->client, call);
	else
		client_queue_again(call->client, call);
}

void call_seal(struct ulrpc_call *call)
{
	list_del(&call->link);
	call->client->nqueued--;
	call_sum_later(call);
}
