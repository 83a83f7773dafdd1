/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests end that are answered: replies of handlers, and refusals. */
#include "rpc/server/serve/request.h"

#include <errno.h>
#include <string.h>
#include <sched.h>

#include "base/misuse.h"
#include "rpc/bulk/transfer.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/server/serve/durable.h"
#include "rpc/server/serve/intercept.h"
#include "rpc/server/serve/reply.h"
#include "rpc/server/session/export.h"
#include "rpc/server/session/record.h"
#include "rpc/run.h"
#include "rpc/text.h"
#include "rpc/wire/wire.h"
#include "secure/identity.h"
#include "ulnet/context.h"

/* ns: if queue_target is not set, the target of grants is at least this. */
#define TARGET_MIN (5 * NSEC_PER_MSEC)

/* ---- memory ---- */

static in_line void deactivate(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;
	struct shard *s = sc->shard;

	deadline_unwatch(r);
	list_del(&r->link);
	list_del(&r->share_link);
	/* The callback of a LOST request is still called, so that its handler
	 * learns of the end. */
	if (request_state(r) != REQUEST_LOST)
		list_del(&r->cancel_link);
	r->active = false;
	service_charge(sc, r->share, -1, -(int64_t)r->charged);
	service_cpt_settled(sc);
	shard_work_end(s);
}

void request_deactivate(struct ulrpc_request *r)
{
	deactivate(r);
}

/* Frees the body of @r. One that nothing has been written to yet is not in
 * memory, so that it takes no time. */
static in_line void copy_put(struct ulrpc_request *r)
{
	size_t size = r->rare & REQUEST_ANNEX ? r->annex_length + r->length
					      : r->length;

	if (unlikely(size >= GIVE_BACK_MIN) && r->active)
		service_body_put(r->sc, r->share, r->copy, size);
	else
		slab_put(&r->sc->slab, r->copy, size);
}

void request_drop(struct ulrpc_request *r)
{
	if (r->transfers)
		transfers_free(r->transfers);
	if (r->pin)
		inbox_unpin(r->pin);
	if (r->copy)
		copy_put(r);
	r->pin = NULL;
	r->copy = NULL;
}

static out_of_line void request_free_rare(struct ulrpc_request *r)
{
	if (r->durable)
		durable_finish(r);
	request_added_free(r);
}

static void request_free(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;
	struct request_batch *b = r->batch;

	if (sc->running == r)
		sc->running = NULL;
	if (unlikely(r->body != r->room || r->transfers))
		request_drop(r);
	if (unlikely(r->rare))
		request_free_rare(r);
	if (r->active)
		deactivate(r);
	request_reply_to_put(r);
	pool_put(&sc->requests, r);
	request_batch_unref(b);
}

/* ---- the record of a request ---- */

static bool may_run_again(const struct ulrpc_request *r)
{
	return r->semantics == ULRPC_IDEMPOTENT &&
	       r->method->semantics == ULRPC_IDEMPOTENT;
}

/* Returns the state for the record of @r, which ends with @status and without a
 * kept reply. */
static enum record_state record_after(const struct ulrpc_request *r,
				      uint32_t status)
{
	if (1u << status & REQUEST_NOT_EXECUTED)
		return RECORD_NONE;
	/* The client may not have heard that the request is stalled: it then
	 * asks again, and has to get that answer. */
	if (unlikely(r->unwanted && r->stalled))
		return RECORD_STALLED;
	return may_run_again(r) ? RECORD_DONE : RECORD_LOST;
}

/* Ends the record of @r, whose reply is not kept. */
static out_of_line void request_record_end(struct ulrpc_request *r,
					   uint32_t status)
{
	record_end(r->record, record_after(r, status));
}

/* Is the reply of @r, which ends with @status, to be kept? */
static inline bool request_keeps(const struct ulrpc_request *r, uint32_t status)
{
	if (unlikely(status) && 1u << status & REQUEST_NOT_EXECUTED)
		return false;
	if (may_run_again(r))
		return unlikely(status == WIRE_HELD ||
				status == WIRE_HELD_ANNEXED);
	return !service_cpt_ended(r->sc);
}

/* Returns the record that is to keep the reply of @r, which ends with @status.
 * If the reply is not to be kept, ends the record and returns NULL. */
static inline struct record *record_for(struct ulrpc_request *r,
					uint32_t status)
{
	if (likely(r->record) && !request_keeps(r, status)) {
		request_record_end(r, status);
		return NULL;
	}
	return r->record;
}

void request_forget(struct ulrpc_request *r)
{
	r->record = NULL;
}

void request_give_up(struct ulrpc_request *r)
{
	r->record = NULL;
	request_cancel(r);
}

/* ---- finishing a request that was replied to ---- */

/* Adds to @reply what was put to the caller's sinks. @reply borrows @room for
 * that. */
static out_of_line void reply_moved(struct ulrpc_request *r,
				    struct wire_reply *reply,
				    struct wire_moved *room)
{
	const struct durable *x = r->durable;

	reply->bulks.n = x && x->replayed ? stored_moved(x->value, room)
					  : transfer_moved(r->transfers, room,
							   ULRPC_BULKS_MAX);
	reply->bulks.list = room;
	if (r->status == WIRE_FAILED && transfer_status(r->transfers))
		reply->status = WIRE_BULK_FAILED;
}

/* Returns ns from @from to @to; 0 if @to is earlier, as threads read the clock
 * at different times. */
static uint64_t ns_between(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* Notes @r, which ends as @report says, as one of the slowest of its service.
 */
static void note_slow(const struct ulrpc_request *r,
		      const struct request_report *report)
{
	const struct export *exp = r->batch->export;
	struct slow_entry e = {
		.ended = r->arrival + report->total,
		.times = { [STAT_REQUEST_TIME_total] = report->total,
			   [STAT_REQUEST_TIME_queue] = report->queue,
			   [STAT_REQUEST_TIME_service] = report->service_time,
			   [STAT_REQUEST_TIME_throttled] = report->throttled },
		.known = 1u << STAT_REQUEST_TIME_total,
		.method = report->method,
		.end = report->end,
		.peer = r->batch->client,
		.traced = r->traced,
	};

	if (report->run)
		e.known |= 1u << STAT_REQUEST_TIME_queue |
			   1u << STAT_REQUEST_TIME_service |
			   1u << STAT_REQUEST_TIME_throttled;
	if (report->fine) {
		e.times[STAT_REQUEST_TIME_total] += report->fine - 1;
		e.times[STAT_REQUEST_TIME_service] += report->fine - 1;
	}
	if (r->transfers) {
		e.known |= 1u << STAT_REQUEST_TIME_bulk;
		e.times[STAT_REQUEST_TIME_bulk] = transfer_time(r->transfers);
	}
	if (e.traced)
		memcpy(e.trace, r->trace, sizeof(e.trace));
	if (exp && exp->who)
		text_copy(e.name, sizeof(e.name), exp->who->name);
	slow_add(&report->service->slow, &e);
}

/* Called if @of, a request that ends, is not like the one before it. */
static out_of_line void request_begins_run(const void *of,
					   const struct request_report *report)
{
	const struct ulrpc_request *r = of;
	const struct stat_service *sv = report->service;

	if (sv &&
	    slow_enters(&sv->slow, report->total, r->arrival + report->total))
		note_slow(r, report);
}

static out_of_line void report_with_bulk(const struct ulrpc_request *r,
					 struct request_report report)
{
	struct bulk_report bulk = { .time = transfer_time(r->transfers) };

	transfer_bytes(r->transfers, &bulk.received, &bulk.sent);
	if (r->rare & REQUEST_LENT)
		report.received = 0; /* the body counts as bulk */
	report.bulk = &bulk;
	run_request_end(r->sc->shard, &report, request_begins_run, r);
}

static in_line void report_end(const struct ulrpc_request *r,
			       const struct request_report *report)
{
	if (unlikely(r->transfers))
		report_with_bulk(r, *report);
	else
		run_request_end(r->sc->shard, report, request_begins_run, r);
}

/* Returns the report of @r, as if it ended at @now without having run. The
 * caller sets report.end, and, if @r has run, its times. */
static in_line struct request_report report_of(const struct ulrpc_request *r,
					       uint64_t now)
{
	const struct request_batch *b = r->batch;

	return (struct request_report){
		.service = r->sc->stats,
		.peer = b->export ? &b->export->stats : NULL,
		.method = r->method->number,
		.total = ns_between(r->arrival, now),
		.received = r->length,
	};
}

/* Uses @r to estimate how long requests of its method take, unless the handler
 * has refused @r, or @r was canceled. */
static void learn_cost(const struct ulrpc_request *r, uint64_t started)
{
	uint64_t bulk =
		r->transfers ? transfer_time_of_handler(r->transfers) : 0;

	if (r->status != WIRE_OVERLOADED && r->status != WIRE_BAD_REQUEST &&
	    !request_canceled(r))
		mean_add(&r->method->cost,
			 ns_between(started + bulk, r->replied));
}

/* Ends @r, which nobody waits for, without a reply. */
static out_of_line void request_skip(struct ulrpc_request *r,
				     struct request_report report)
{
	if (r->record)
		request_record_end(r, r->status);
	report.end = STAT_CANCELED;
	report.sent = 0;
	report_end(r, &report);
	reply_skip(r->reply_to);
}

/* Tells the client's grant that a worker has taken @r after @delay ns in the
 * queue. */
static void learn_delay(const struct ulrpc_request *r, uint64_t delay)
{
	struct service_cpt *sc = r->sc;
	const struct ulrpc_service *svc = sc->service;
	uint64_t target = rpc_ns(svc->conf.queue_target);

	if (!target)
		target =
			MAX(TARGET_MIN, 2 * mean_value(&svc->exec.worker_time));
	if (grant_sample(&r->share->grant, delay, target,
			 service_limit(svc, window), r->share->used.requests,
			 shard_now(sc->shard)))
		stat_count(sc->shard, RPC_STAT_windows_shrunk);
}

/* Adds to @report and @reply the times of a request that a worker has run. Time
 * in the gate is not part of the time in the queue. */
static in_line void report_worker(const struct ulrpc_request *r,
				  uint64_t started,
				  struct request_report *report,
				  struct wire_reply *reply)
{
	uint64_t released = r->item.released;

	if (unlikely(released)) {
		report->throttled = ns_between(r->arrival, released);
		report->queue = ns_between(released, started);
		reply->throttled = report->throttled / NSEC_PER_USEC;
	}
	learn_delay(r, report->queue);
	learn_cost(r, started);
}

/* If @r has not been run because its turn came too late, counts it. */
static void report_not_run(const struct ulrpc_request *r, uint64_t now)
{
	if (!r->item.late)
		return;
	stat_count(r->sc->shard, RPC_STAT_requests_overdue);
	learn_delay(r, ns_between(MAX(r->item.released, r->arrival), now));
}

/* Says to the caller why a reply of @length bytes is too long for the service.
 */
static void say_too_long(const struct ulrpc_request *r, uint32_t length,
			 struct held_reply *held)
{
	int n = snprintf(held->text, sizeof(held->text),
			 "the reply has %u bytes, and the service's replies "
			 "may have up to %u",
			 length, service_limit(r->sc->service, reply_limit));

	held->n = (uint32_t)n <= r->reply_max ? (uint32_t)n : 0;
}

/* Holds the body for the client, if its length is within all limits. Returns
 * false if it is not held. */
static bool hold(struct ulrpc_request *r, const void *body, uint32_t length,
		 struct held_reply *held)
{
	return length <= service_limit(r->sc->service, reply_limit) &&
	       length <= request_reply_limit(r) &&
	       long_reply_hold(r, body, length, record_after(r, WIRE_OK), held);
}

/* Makes @reply a failure without text. Returns true. */
static bool reply_failed_only(const struct ulrpc_request *r,
			      struct wire_reply *reply)
{
	reply->needed = 0;
	reply->status = WIRE_FAILED;
	reply->error = r->error;
	return true;
}

/* Called when the caller has no room for the reply. Holds the body for the
 * caller to fetch, and returns true. If the body cannot be held, tells the
 * caller only its length. The body of the reply itself is then that of @held.
 * If the call turns out to be over, @r has no record afterwards. */
static out_of_line bool reply_oversized(struct ulrpc_request *r,
					struct wire_reply *reply,
					const void *body,
					struct held_reply *held)
{
	bool annexed = reply->status == WIRE_ANNEXED;
	bool holds;

	reply->needed = reply->length;
	reply->length = 0;
	holds = (annexed || r->status == WIRE_OK) &&
		hold(r, body, reply->needed, held);
	if (holds) {
		reply->held = held->match;
		reply->checksum = held->checksum;
		reply->length = held->n;
		reply->status = annexed ? WIRE_HELD_ANNEXED : WIRE_HELD;
		return true;
	}
	if (annexed && r->status == WIRE_FAILED)
		/* The failure itself is not too long. */
		return reply_failed_only(r, reply);
	reply->status = WIRE_TOO_LONG;
	if (reply->needed > service_limit(r->sc->service, reply_limit)) {
		say_too_long(r, reply->needed, held);
		reply->length = held->n;
	}
	return false;
}

/* Adds to @reply what few requests have. Returns how the request ended, for
 * statistics. */
static out_of_line uint32_t finish_rare(struct ulrpc_request *r,
					struct wire_reply *reply,
					const void **body)
{
	uint32_t end;

	if (r->rare & REQUEST_SEEN)
		request_seen_finish(r, reply->status);
	if (r->durable)
		reply->unexecuted = r->durable->proven &&
				    1u << r->status & REQUEST_NOT_EXECUTED;
	end = r->unwanted ? reply->status : request_annex(r, reply, body);
	if (r->rare & REQUEST_SPAN)
		request_span(r, end);
	return end;
}

/* Ends @r, which was replied to with r->reply_length bytes of @body: updates
 * statistics and estimates, packs the reply, and frees @r. */
static in_line void request_finish(struct ulrpc_request *r, const void *body,
				   uint64_t now)
{
	uint64_t started =
		atomic_load_explicit(&r->started, memory_order_relaxed);
	struct wire_moved room[ULRPC_BULKS_MAX];
	struct request_report report = report_of(r, now);
	struct wire_reply reply;
	struct held_reply held;

	wire_clear(&reply, offsetof(struct wire_reply, body));
	reply.xid = r->xid;
	reply.attempt = r->latest;
	reply.status = r->status;
	reply.error = r->error;
	reply.length = r->reply_length;
	if (unlikely(r->status == WIRE_OVERLOADED))
		reply.retry_after =
			service_retry_after(r->sc->service, r->item.again);
	if (unlikely(r->transfers))
		reply_moved(r, &reply, room);
	report.end = reply.status;
	if (unlikely(r->rare))
		report.end = finish_rare(r, &reply, &body);
	if (likely(started)) {
		report.run = true;
		report.queue = ns_between(r->arrival, started);
		if (r->method->run == ULRPC_RUN_WORKER)
			report_worker(r, started, &report, &reply);
		report.service_time = ns_between(started, r->replied);
		report.fine = r->fine;
		report.sent = reply.length;
		reply.queue = report.queue / NSEC_PER_USEC;
		/* Fine times are 1 ns too long, which does not matter here. */
		reply.service =
			(report.service_time + report.fine) / NSEC_PER_USEC;
	} else {
		report_not_run(r, now);
	}
	if (unlikely(r->unwanted)) {
		request_skip(r, report);
	} else {
		if (unlikely(reply.length > r->reply_max)) {
			if (!reply_oversized(r, &reply, body, &held)) {
				report.end = WIRE_TOO_LONG;
				report.sent = 0;
			}
			body = held.bytes;
		}
		report_end(r, &report);
		reply_add(r->reply_to, &reply, body, true,
			  record_for(r, reply.status));
	}
	request_free(r);
}

/* Does what request_finish() does, but is not inlined. */
static out_of_line void request_finish_later(struct ulrpc_request *r,
					     const void *body, uint64_t now)
{
	request_finish(r, body, now);
}

static void finish_kept(struct ulrpc_request *r)
{
	void *reply = r->reply;
	void *own = reply != r->room ? reply : NULL;

	// cppcheck-suppress autoVariables ; @r ends before this function does
	r->kept = &own;
	/* The handler may have taken longer than the time of the turn tells. */
	request_finish_later(r, reply,
			     MAX(shard_now(r->sc->shard), r->replied));
	free(own);
}

/* Does what finish_kept() does, but what is long has its proof made before.
 */
static void finish_proved(struct ulrpc_request *r)
{
	r->proof = NULL;
	if (likely(r->reply_length <= ULRPC_BODY_MAX) || r->reply == r->room ||
	    !long_reply_prove(r, finish_kept))
		finish_kept(r);
}

/* ---- bulk that is still being moved ---- */

/* Is bulk of @r being moved? If request_wait_bulk() was called, this is true
 * until request_on_bulk_done(), which comes after the callback of the last
 * transfer. */
static bool bulk_is_pending(const struct ulrpc_request *r)
{
	return unlikely(r->transfers) &&
	       (r->waiting || transfer_busy(r->transfers));
}

static void on_bulk_done(void *r)
{
	request_on_bulk_done(r);
}

void request_wait_bulk(struct ulrpc_request *r)
{
	if (r->waiting)
		return;
	r->waiting = true;
	transfer_on_done(r->transfers, on_bulk_done, r);
}

/* Called when the bulk of @r has ended and the handler has replied before. The
 * handler has replied as if all of the bulk would be moved: sends that reply,
 * or an error if bulk has failed. */
static void finish_late(struct ulrpc_request *r)
{
	if (unlikely(bulk_is_pending(r))) {
		request_wait_bulk(r);
		return;
	}
	if (r->status == WIRE_OK && transfer_status(r->transfers)) {
		r->status = WIRE_BULK_FAILED;
		r->error = (uint32_t)-transfer_status(r->transfers);
		r->reply_length = 0;
	}
	finish_proved(r);
}

void request_on_bulk_done(struct ulrpc_request *r)
{
	r->waiting = false;
	if (request_state(r) == REQUEST_ARRIVED)
		lent_on_end(r);
	else if (request_state(r) == REQUEST_REPLIED)
		finish_late(r);
}

/* ---- the reply ---- */

/* Called on the CPT of @r when the reply of @r has arrived there. */
static void reply_come(struct ulrpc_request *r)
{
	BUG_ON(!request_move(r, REQUEST_ANSWERING, REQUEST_REPLIED));
	if (unlikely(bulk_is_pending(r)))
		request_wait_bulk(r);
	else
		finish_proved(r);
}

void request_on_replied(struct ulnet_work *w)
{
	struct ulrpc_request *r = container_of(w, struct ulrpc_request, work);
	struct shard *s = r->sc->shard;

	reply_come(r);
	shard_taken(s);
}

static void keep_reply(struct ulrpc_request *r, const void *body)
{
	size_t length = r->status == WIRE_TOO_LONG ? 0 : r->reply_length;

	r->reply = length <= REQUEST_ROOM ? r->room : malloc(length);
	if (r->reply && length) {
		memmove(r->reply, body, length);
	} else if (!r->reply) {
		r->reply = r->room;
		r->reply_length = 0;
		r->status = WIRE_FAILED;
		r->error = ENOMEM;
	}
}

/* Sets the length of a long reply to @r. If it is too long for whatever its
 * caller may take, that is the answer: then it is not even copied. */
static out_of_line void note_long(struct ulrpc_request *r, size_t length)
{
	uint32_t most = MIN(request_reply_limit(r),
			    service_limit(r->sc->service, reply_limit));

	r->reply_length = (uint32_t)MIN(length, UINT32_MAX);
	if (length > most)
		r->status = WIRE_TOO_LONG;
}

/* Called when a handler has replied a second time, with @status: ends the
 * process. If @r has been freed, its service may be gone, too, and the pool has
 * overwritten r->sc. */
_Noreturn static out_of_line void replied_twice(const struct ulrpc_request *r,
						uint32_t status)
{
	const char *fn = status == WIRE_OK	     ? "ulrpc_reply"
			 : status == WIRE_FAILED     ? "ulrpc_fail"
			 : status == WIRE_OVERLOADED ? "ulrpc_overloaded"
						     : "ulrpc_refuse";

	misuse("%s(): the request of method %s has been replied to before", fn,
	       r->method->name);
}

/* The inline handler of @r has taken @took ns, so long that it is worth reading
 * the clock: sets the times of @r. Those that are run after @r in this turn
 * have waited for it. */
static out_of_line void inline_was_long(struct ulrpc_request *r, uint64_t took)
{
	struct shard *s = r->sc->shard;
	uint64_t now = lnet_clock(s->node, s->cpt);
	uint64_t from = atomic_load_explicit(&r->started, memory_order_relaxed);

	took = MIN(took, ns_between(from, now));
	atomic_store_explicit(&r->started, now - took, memory_order_relaxed);
	r->replied = now;
	s->busy_until = now;
}

/* @r was replied to on its CPT: sets when. The time of the turn does not tell
 * how long an inline handler takes. But a time of its own for each request
 * would make a run of each (run.h), which costs more than most such handlers:
 * so what takes less than HIST_FINE_END is counted apart, and takes no time as
 * far as others are concerned. */
static in_line void request_replied(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;
	uint64_t took;

	if (unlikely(sc->running != r)) {
		r->replied = shard_now(sc->shard);
		return;
	}
	took = shard_took(sc->shard, sc->running_since);
	if (unlikely(took >= HIST_FINE_END)) {
		inline_was_long(r, took);
		return;
	}
	r->fine = (uint32_t)took + 1;
	r->replied = atomic_load_explicit(&r->started, memory_order_relaxed);
}

/* Keeps the reply to @r, which cannot go at once. @owned: this thread is that
 * of the CPT. */
static out_of_line void answer_later(struct ulrpc_request *r, const void *body,
				     bool owned)
{
	struct shard *s = r->sc->shard;

	if (owned)
		request_replied(r);
	else
		r->replied = shard_now(s);
	keep_reply(r, body);
	if (owned) {
		reply_come(r);
		return;
	}
	r->work.fn = request_on_replied;
	shard_give(s, &r->work);
}

void request_answer(struct ulrpc_request *r, uint32_t status, uint32_t error,
		    const void *body, size_t length)
{
	struct shard *s;
	bool owned, at_once = true;

	/* If the request could be moved, it belongs to this thread until the
	 * CPT has the reply. */
	if (unlikely(!request_move(r, REQUEST_RUNNING, REQUEST_ANSWERING))) {
		if (request_state(r) != REQUEST_LOST)
			replied_twice(r, status);
		request_cancel_end(r);
		/* Interceptors have no other way to hear of it. */
		if (r->rare & REQUEST_SEEN)
			request_seen_end(r, STAT_UNANSWERED, 0, 0, 0);
		request_lost_end(r);
		return;
	}
	s = r->sc->shard;
	owned = shard_owned(s);
	if (unlikely(!owned)) {
		/* In a child of fork(), the parent answers. */
		if (lnet_is_forked(s->node))
			return;
		request_cancel_end(r);
	}
	r->status = status;
	r->error = error;
	r->reply_length = (uint32_t)length;
	if (unlikely(length > ULRPC_BODY_MAX)) {
		note_long(r, length);
		at_once = r->status == WIRE_TOO_LONG;
	}
	if (likely(owned) && likely(at_once) && likely(!bulk_is_pending(r))) {
		request_replied(r);
		request_finish(r, body, r->replied);
		return;
	}
	answer_later(r, body, owned);
}

void request_answer_nothing(struct ulrpc_request *r, uint32_t status)
{
	r->status = status;
	r->error = 0;
	r->reply_length = 0;
}

void request_refuse_queued(struct ulrpc_request *r, uint32_t status)
{
	BUG_ON(!request_move(r, REQUEST_QUEUED, REQUEST_ANSWERING));
	request_answer_nothing(r, status);
	request_finish_later(r, NULL, shard_now(r->sc->shard));
}

void ulrpc_reply(struct ulrpc_request *request, const void *body, size_t length)
{
	MISUSE_IF(length && !body,
		  "ulrpc_reply(): a reply of %zu bytes to method %s of service "
		  "%s, whose body is NULL",
		  length, request->method->name, request->sc->service->name);
	request_answer(request, WIRE_OK, 0, body, length);
}

static void check_status(const struct ulrpc_request *r, const char *fn,
			 int status)
{
	MISUSE_IF(status >= 0,
		  "%s(): method %s of service %s failed with status %d, which "
		  "is not negative",
		  fn, r->method->name, r->sc->service->name, status);
}

void ulrpc_fail(struct ulrpc_request *request, int status)
{
	check_status(request, "ulrpc_fail", status);
	request_answer(request, WIRE_FAILED, (uint32_t)-status, NULL, 0);
}

void ulrpc_fail_text(struct ulrpc_request *request, int status,
		     const char *text)
{
	size_t length = text_fit(
		text, MIN(request->reply_max, (uint32_t)ULRPC_TEXT_MAX - 1));

	check_status(request, "ulrpc_fail_text", status);
	request_answer(request, WIRE_FAILED, (uint32_t)-status, text, length);
}

void ulrpc_refuse(struct ulrpc_request *request)
{
	request_answer(request, WIRE_BAD_REQUEST, 0, NULL, 0);
}

void ulrpc_overloaded(struct ulrpc_request *request)
{
	request_answer(request, WIRE_OVERLOADED, 0, NULL, 0);
}

void request_report_lost(struct ulrpc_request *r, unsigned int end)
{
	struct request_report report = report_of(r, shard_now(r->sc->shard));

	report.end = end;
	if (r->record)
		request_record_end(r, end);
	r->record = NULL;
	report_end(r, &report);
	if (r->rare & REQUEST_SPAN)
		request_span(r, end);
}

/* ---- under way ---- */

void request_activate(struct ulrpc_request *r, const struct wire_call *c,
		      uint64_t bytes)
{
	struct service_cpt *sc = r->sc;

	r->active = true;
	r->charged = bytes;
	list_add_tail(&sc->active, &r->link);
	list_add_tail(&r->share->active, &r->share_link);
	list_init(&r->cancel_link);
	service_charge(sc, r->share, 1, (int64_t)r->charged);
	shard_work_begin(sc->shard);
	deadline_watch(r, c);
}

/* ---- requests that are lost: request_lost.c ---- */

void request_lost_end(struct ulrpc_request *r)
{
	struct ulrpc_service *svc = r->sc->service;

	if (r->transfers)
		transfers_free(r->transfers);
	if (r->pin)
		inbox_kept_put(r->pin);
	free(r->copy);
	if (r->durable)
		durable_end(r);
	request_added_free(r);
	service_unref(svc);
}

void request_wait_users(const struct ulrpc_request *r)
{
	while (atomic_load(&r->users) ||
	       (r->transfers && transfers_used(r->transfers)))
		sched_yield();
}
