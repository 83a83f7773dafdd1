/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rpc/client/attempt.h"
#include "rpc/client/call.h"
#include "rpc/client/lent.h"
#include "rpc/client/opening.h"
#include "rpc/client/batch.h"
#include "rpc/context/intercept.h"
#include "rpc/control.h"
#include "rpc/keys.h"
#include "rpc/flavour.h"
#include "rpc/sealed.h"
#include "rpc/text.h"
#include "rpc/wire/wire.h"
#include "secure/once.h"
#include "secure/digest.h"

/* An Open that was not answered is sent again after this time. */
#define REPEAT_AFTER (100 * NSEC_PER_MSEC)
/* A call for which there was no memory is tried again after this time. */
#define STALL_PAUSE (10 * NSEC_PER_MSEC)
const struct fsm_state client_states[CLIENT_STATES] = {
	[CLIENT_UNOPENED] = { "unopened", FSM_TO(CLIENT_OPENING) },
	[CLIENT_OPENING] = { "opening",
			     FSM_TO(CLIENT_OPEN) | FSM_TO(CLIENT_UNOPENED) },
	[CLIENT_OPEN] = { "open", FSM_TO(CLIENT_UNOPENED) },
};

static void client_move(struct ulrpc_client *c, enum client_state to)
{
	fsm_move(&c->fsm, client_states, to);
}

/* ---- opening the service ---- */

static void on_open_sent(struct shard *s, uint64_t id, uint64_t tag,
			 const struct ulnet_event *ev)
{
	struct import *imp = import_find(s, id);
	struct ulrpc_client *c;
	bool last = false;

	if (!imp)
		return;
	list_for_each_entry (c, &imp->clients, link)
		if (c->tag == tag) {
			last |= c->open_sending;
			c->open_sending = false;
		}
	/* Is there still a server? An Open that is not the client's last one
	 * may have been sent to another NID, or before the server came back. */
	if (ev->status && last)
		import_suspect(imp, imp->epoch);
}

static void open_send(struct ulrpc_client *c)
{
	struct import *imp = c->imp;
	struct wire_control m = {
		.kind = WIRE_OPEN,
		.open = {
			.connection = imp->connection,
			.client = imp->handle,
			.tag = c->tag,
			.rtt = import_rtt_us(imp),
			.epoch = imp->epoch,
			.flavour = flavour_to_wire(c->least),
			.numbers = true,
		},
	};

	memcpy(m.open.service, c->service, sizeof(m.open.service));
	client_is_private(c);
	imp->sent = shard_now(c->shard);
	c->unknown_rail = false;
	c->open_sending = !control_send_tracked(
		c->shard, imp->sealed, LNET_NID_ANY, import_target(imp), &m,
		on_open_sent, imp->handle, c->tag);
}

/* Sends Open again, unless LNet still has the last one. */
static void open_repeat(struct ulrpc_client *c)
{
	if (!c->open_sending)
		open_send(c);
	shard_arm(c->shard, &c->open_timer, shard_now(c->shard) + REPEAT_AFTER);
}

static void open_begin(struct ulrpc_client *c)
{
	c->open_awaited = true;
	c->tag = shard_random(c->shard, UINT64_MAX);
	c->open_sending = false;
	c->unknown_rail = false;
}

static void open_now(struct ulrpc_client *c)
{
	open_begin(c);
	open_repeat(c);
}

static void open_end(struct ulrpc_client *c)
{
	c->open_awaited = false;
	shard_cancel(c->shard, &c->open_timer);
}

static void on_open_timer(struct ulnet_timer *timer)
{
	struct ulrpc_client *c =
		container_of(timer, struct ulrpc_client, open_timer);

	if (import_is_up(c->imp) && c->ncalls)
		open_repeat(c);
	else if (c->fsm.state == CLIENT_OPENING)
		client_unopen(c);
	else /* no call waits that would use the answer */
		open_end(c);
}

/* Sends Open to the server; client_on_opened() gets the answer. */
static void client_open_service(struct ulrpc_client *c)
{
	if (c->fsm.state != CLIENT_UNOPENED || !import_is_up(c->imp))
		return;
	client_move(c, CLIENT_OPENING);
	open_now(c);
}

void client_verify(struct ulrpc_client *c)
{
	if (c->fsm.state == CLIENT_OPEN && !c->open_awaited &&
	    import_is_up(c->imp))
		open_now(c);
}

/* Moves the client to OPENING, and sends Open after a pause. */
static void open_later(struct ulrpc_client *c)
{
	unsigned int n = c->reopened++;

	open_begin(c);
	shard_arm(c->shard, &c->open_timer,
		  rpc_at(shard_now(c->shard),
			 import_pause(c->imp, n ? n - 1 : 0)));
}

void client_reopen(struct ulrpc_client *c)
{
	if (c->fsm.state != CLIENT_OPEN)
		return; /* Open was sent already */
	client_unopen(c);
	if (c->reopened == 0 || !import_is_up(c->imp)) {
		c->reopened++;
		client_open_service(c);
		return;
	}
	client_move(c, CLIENT_OPENING);
	open_later(c);
}

void client_unopen(struct ulrpc_client *c)
{
	open_end(c);
	if (c->fsm.state != CLIENT_UNOPENED)
		client_move(c, CLIENT_UNOPENED);
}

/* Does @call end when there is no server for it? Not if it may have been
 * executed: then it goes on asking. */
static bool call_is_hasty(const struct ulrpc_call *call)
{
	return !retry_rule_waits(call_rule(call)) && !call->unknown;
}

/* Ends queued calls with @cause. @hasty: only those that do not wait for a
 * server. */
static void fail_queued(struct ulrpc_client *c, enum ulrpc_cause cause,
			bool hasty)
{
	struct list *const from[] = { &c->again, &c->stalled, &c->queue };
	struct ulrpc_call *call, *next;
	struct list some;

	list_init(&some);
	for (unsigned int i = 0; i < ARRAY_SIZE(from); i++)
		list_for_each_entry_safe (call, next, from[i], link) {
			if (hasty && !call_is_hasty(call))
				continue;
			list_del(&call->link);
			list_add_tail(&some, &call->link);
		}
	/* Calls that callbacks queue meanwhile are not ended. */
	calls_fail(&some, cause);
}

/* May a service be at @portal? Not at one of RPC's own portals. */
static bool client_portal_ok(uint32_t portal)
{
	return portal && portal < LNET_PORTALS &&
	       portal != ULRPC_PORTAL_CONTROL && portal != ULRPC_PORTAL_REPLY &&
	       portal != ULRPC_PORTAL_BULK;
}

static void client_log_missing(const struct ulrpc_client *c,
			       enum ulrpc_cause cause)
{
	char nid[LNET_NIDSTR_SIZE];

	lnet_log(LNET_LOG_INFO, "rpc", "%s has no %sservice %s: calls wait",
		 lnet_nid_format(&c->imp->nids[c->imp->nid], nid, sizeof(nid)),
		 cause == ULRPC_CAUSE_OVERLOADED ? "room for a client of " : "",
		 c->service);
}

static void client_tell(struct ulrpc_client *c, enum client_news news)
{
	if (c->watch.fn)
		c->watch.fn(c->watch.arg, news);
}

bool client_is_well(const struct ulrpc_client *c)
{
	return c->imp->fsm.state == IMPORT_FULL &&
	       (c->fsm.state == CLIENT_OPEN || !c->refusal);
}

void client_on_doubt(struct ulrpc_client *c)
{
	client_tell(c, client_is_well(c) ? CLIENT_UP : CLIENT_DOWN);
}

/* Called when the server has no such service, or no room for one more client of
 * it. It may have soon: calls wait for that until their deadlines, unless they
 * are not to wait. */
static void client_missing(struct ulrpc_client *c, enum ulrpc_cause cause)
{
	if (!c->refusal)
		client_log_missing(c, cause);
	c->refusal = cause;
	client_tell(c, CLIENT_DOWN);
	fail_queued(c, cause, true);
	if (c->fsm.state == CLIENT_OPEN)
		client_reopen(c);
	else
		open_later(c);
}

/* Notes which store the service has. If it is another one than before, ends
 * calls that were to be looked up in the old one. */
static void client_note_store(struct ulrpc_client *c,
			      const struct wire_opened *m)
{
	bool same = !memcmp(c->incarnation, m->incarnation, RPC_ID_SIZE);

	c->durable = m->durable;
	memcpy(c->incarnation, m->incarnation, RPC_ID_SIZE);
	if (!same)
		attempts_orphan(c);
}

/* ---- the answer ---- */

/* Called when the service and this client do not trust each other: ends queued
 * calls. Calls that are made later ask again. */
static void client_distrusts(struct ulrpc_client *c, enum client_distrust why)
{
	c->distrust = why;
	c->refusal = ULRPC_CAUSE_REFUSED;
	client_tell(c, CLIENT_DOWN);
	fail_queued(c, ULRPC_CAUSE_REFUSED, false);
	if (c->fsm.state == CLIENT_OPEN)
		client_reopen(c);
	else
		open_later(c);
}

void client_on_opened(struct ulrpc_client *c, const struct wire_opened *m)
{
	open_end(c);
	c->distrust = CLIENT_TRUSTS;
	if (!client_server_is_right(c)) {
		client_distrusts(c, CLIENT_WRONG_SERVER);
		return;
	}
	if (m->status == WIRE_REFUSED) {
		c->told_flavour = flavour_of_wire(m->flavour);
		client_distrusts(c, CLIENT_NOT_PROVED);
		return;
	}
	if (m->status != WIRE_OK || !client_portal_ok(m->portal)) {
		client_missing(c, m->status == WIRE_SHUTTING_DOWN
					  ? ULRPC_CAUSE_SHUTDOWN
				  : m->status == WIRE_OVERLOADED
					  ? ULRPC_CAUSE_OVERLOADED
					  : ULRPC_CAUSE_NO_SERVICE);
		return;
	}
	if (!client_agrees(c, m)) {
		client_distrusts(c, CLIENT_OTHER_FLAVOUR);
		return;
	}
	c->refusal = ULRPC_CAUSE_OK;
	c->portal = m->portal;
	c->number = m->number;
	c->checked = c->wants_checked || m->checked;
	c->marked = c->checked || c->flavour > ULRPC_FLAVOUR_AUTH || c->number;
	if (c->flavour == ULRPC_FLAVOUR_PRIVACY)
		c->sealed_room = SEAL_HEAD + ONCE_SIZE;
	client_note_store(c, m);
	timeouts_advertised(&c->timeouts, m->estimate);
	c->request_max = m->request_max;
	c->request_limit = m->request_limit;
	atomic_store_explicit(&c->lent_from, lent_from(m),
			      memory_order_relaxed);
	c->message_max = MIN(m->message_max, LNET_MTU);
	if (c->imp->secure)
		c->message_max -= MIN(c->message_max, SEAL_HEAD);
	c->server_window = m->window;
	window_grant(&c->window, MIN(m->window, c->inflight_max));
	window_promised(&c->window, m->begin);
	if (c->fsm.state == CLIENT_OPENING) {
		client_move(c, CLIENT_OPEN);
		c->ready = shard_now(c->shard);
	}
	client_tell(c, CLIENT_UP);
	client_kick(c);
}

/* ---- sending ---- */

/* Returns how many of the queued calls may be sent now. */
static uint32_t client_room(const struct ulrpc_client *c)
{
	if (c->fsm.state != CLIENT_OPEN || !import_is_ready(c->imp) ||
	    c->inflight >= c->window.limit)
		return 0;
	return MIN(c->nqueued, c->window.limit - c->inflight);
}

static bool client_may_ask(const struct ulrpc_client *c)
{
	return !list_empty(&c->ask) && c->fsm.state == CLIENT_OPEN &&
	       import_is_ready(c->imp);
}

static bool client_is_ready(const struct ulrpc_client *c)
{
	return c->fsm.state == CLIENT_OPEN && import_is_up(c->imp);
}

/* Called when no call can be sent yet: connects, or opens the service. */
static void client_want(struct ulrpc_client *c)
{
	import_want(c->imp);
	client_open_service(c);
}

/* Called when the target's name has no address: ends the queued calls that do
 * not wait for a server. */
static void client_on_no_address(struct ulrpc_client *c)
{
	if (c->imp->nameless)
		fail_queued(c, ULRPC_CAUSE_NAME, true);
}

/* Is it known already that there is no server? The name has no address, or the
 * pause after a failed attempt to connect is not over. */
static bool client_is_nowhere(const struct ulrpc_client *c)
{
	if (c->imp->nameless)
		return c->target->no_address;
	return c->imp->unreached && c->imp->fsm.state == IMPORT_DISCONN &&
	       !(c->target && target_has_more(c->target));
}

static void client_on_flush(struct ulnet_work *work)
{
	struct ulrpc_client *c = container_of(work, struct ulrpc_client, flush);

	c->flushing = false;
	if ((c->nqueued || !list_empty(&c->ask)) && !client_is_ready(c)) {
		if (client_is_nowhere(c))
			fail_queued(c, client_down_cause(c), true);
		client_want(c);
	} else {
		client_flush(c);
	}
	backlog_look(&c->backlog, c->ncalls, c->shard);
	shard_release(c->shard);
}

/* Arms window_timer if calls may be held back by slow start. */
static void window_watch(struct ulrpc_client *c)
{
	if (c->nqueued && client_is_ready(c) &&
	    c->inflight >= c->window.limit &&
	    !lnet_timer_armed(&c->window_timer))
		shard_arm(c->shard, &c->window_timer,
			  shard_now(c->shard) + WINDOW_WAIT);
}

static void stall_arm(struct ulrpc_client *c)
{
	if (!lnet_timer_armed(&c->stall_timer))
		shard_arm(c->shard, &c->stall_timer,
			  shard_now(c->shard) + STALL_PAUSE);
}

void client_flush(struct ulrpc_client *c)
{
	uint32_t n;

	while (unlikely(client_may_ask(c)))
		if (!batch_query(c)) {
			stall_arm(c);
			break;
		}
	while ((n = client_room(c)))
		if (!batch_send(c, MIN(n, c->batch_max)))
			break;
	if (unlikely(window_is_slow(&c->window)))
		window_watch(c);
}

static void flush_later(struct ulrpc_client *c)
{
	c->flushing = true;
	shard_hold(c->shard);
	shard_defer(c->shard, &c->flush);
}

void client_kick(struct ulrpc_client *c)
{
	if (c->flushing)
		return;
	if (!(client_room(c) || client_may_ask(c))) {
		if (unlikely(window_is_slow(&c->window)))
			window_watch(c);
		return;
	}
	flush_later(c);
}

enum ulrpc_cause client_down_cause(const struct ulrpc_client *c)
{
	if (c->imp->nameless)
		return ULRPC_CAUSE_NAME;
	return c->imp->away ? c->imp->away : ULRPC_CAUSE_UNREACHABLE;
}

void client_queue_again(struct ulrpc_client *c, struct ulrpc_call *call)
{
	list_add_tail(&c->again, &call->link);
	c->nqueued++;
	if (unlikely(c->heeds_quiet) && c->target)
		target_on_quiet(c->target);
	if (client_is_ready(c))
		client_kick(c);
	else
		client_want(c);
}

void client_look(struct ulrpc_client *c)
{
	if (unlikely(backlog_look(&c->backlog, c->ncalls, c->shard)) &&
	    !c->flushing)
		/* A call whose callback has made the last one is counted still:
		 * looks again when it has ended. */
		flush_later(c);
}

void client_submitted(struct ulrpc_client *c)
{
	/* So many calls make a message that is worth sending at once. */
	uint32_t enough = MIN(MAX(CLIENT_BATCH_MIN, c->inflight), c->batch_max);

	if (unlikely(!client_is_ready(c))) {
		client_want(c);
		/* The call need not wait for the next time that the name is
		 * looked up, or for the next attempt. */
		if (client_is_nowhere(c) && !c->flushing)
			flush_later(c);
	} else if (c->nqueued < enough || client_room(c) < enough) {
		client_kick(c);
	} else {
		batch_send(c, enough);
	}
	/* else when calls are sent, at the end of this turn */
	if (!c->flushing || c->nqueued >= CLIENT_BATCH_MIN)
		client_look(c);
}

static void on_stall(struct ulnet_timer *timer)
{
	struct ulrpc_client *c =
		container_of(timer, struct ulrpc_client, stall_timer);

	list_splice_tail(&c->again, &c->stalled);
	client_kick(c);
}

void client_stall(struct ulrpc_client *c, struct ulrpc_call *call)
{
	call->alone = true;
	list_del(&call->link);
	list_add_tail(&c->stalled, &call->link);
	stall_arm(c);
}

static void on_window_timer(struct ulnet_timer *timer)
{
	struct ulrpc_client *c =
		container_of(timer, struct ulrpc_client, window_timer);

	window_double(&c->window);
	client_kick(c);
}

void client_grow(struct ulrpc_client *c, uint32_t n)
{
	if (!n)
		return;
	window_served(&c->window, n);
	shard_cancel(c->shard, &c->window_timer);
}

void client_on_answer(struct ulrpc_client *c, uint32_t window)
{
	if (window) {
		c->server_window = window;
		window_grant(&c->window, MIN(window, c->inflight_max));
	}
	if (unlikely(c->imp->failures))
		import_served(c->imp);
	if (c->nqueued)
		client_kick(c);
}

/* ---- deadlines ---- */

static void due_arm(struct ulrpc_client *c, uint64_t at)
{
	c->due_at = at;
	shard_arm(c->shard, &c->due_timer, at);
}

static void on_deadline(struct ulnet_timer *timer)
{
	call_expire(container_of(timer, struct ulrpc_call, timer));
}

/* If client.due is empty, makes @call the first call there. Otherwise @call has
 * an earlier deadline than the last call there, and gets a timer of its own. */
void client_watch_first(struct ulrpc_client *c, struct ulrpc_call *call)
{
	if (!list_empty(&c->due)) {
		call->watch = WATCH_TIMER;
		lnet_timer_init(&call->timer, on_deadline);
		shard_arm(c->shard, &call->timer, call->deadline);
		return;
	}
	call->watch = WATCH_DUE;
	list_add_tail(&c->due, &call->due);
	if (call->deadline < c->due_at)
		due_arm(c, call->deadline);
}

static void on_due(struct ulnet_timer *timer)
{
	struct ulrpc_client *c =
		container_of(timer, struct ulrpc_client, due_timer);
	uint64_t now = shard_now(c->shard);

	c->due_at = TIME_NEVER;
	while (!list_empty(&c->due)) {
		struct ulrpc_call *call =
			list_first(&c->due, struct ulrpc_call, due);

		if (call->deadline > now) {
			due_arm(c, call->deadline);
			return;
		}
		call_expire(call);
	}
}

/* ---- the connection ---- */

void client_forgotten(struct ulrpc_client *c)
{
	while (!list_empty(&c->fetching))
		call_fetch_lost(
			list_first(&c->fetching, struct ulrpc_call, link),
			import_forgotten_cause(c->imp));
	attempts_on_forgotten(c);
}

void client_on_connected(struct ulrpc_client *c, bool forgotten)
{
	window_begin(&c->window);
	c->ready = shard_now(c->shard);
	/* The connection may lead to another server than the one that was
	 * asked. */
	if (!client_server_is_right(c))
		client_unopen(c);
	if (forgotten)
		client_forgotten(c);
	if (c->target)
		target_on_up(c->target);
	client_tell(c, CLIENT_UP);
	if (c->ncalls)
		client_open_service(c);
	/* The service is still open: the answer is used to learn how many calls
	 * it can take at once. */
	if (c->nqueued)
		client_verify(c);
	client_kick(c);
}

void client_on_joined(struct ulrpc_client *c)
{
	if (c->open_awaited && c->unknown_rail)
		open_repeat(c);
}

void client_on_disconnected(struct ulrpc_client *c)
{
	open_end(c);
	if (c->fsm.state == CLIENT_OPENING)
		client_move(c, CLIENT_UNOPENED);
	if (c->target)
		target_on_down(c->target);
	client_tell(c, CLIENT_DOWN);
}

void client_on_unreachable(struct ulrpc_client *c)
{
	if (!c->target || !target_has_more(c->target))
		fail_queued(c, client_down_cause(c), true);
}

void client_on_refused(struct ulrpc_client *c)
{
	fail_queued(c, ULRPC_CAUSE_REFUSED, false);
}

/* ---- a server that has a name ---- */

void client_no_name(const struct ulrpc_client *c, char *text, size_t size)
{
	snprintf(text, size, "%.80s: %s", c->target->text, c->target->why);
}

void client_no_room(const struct ulrpc_client *c, char *text, size_t size)
{
	const struct import *imp = c->imp;
	char nid[LNET_NIDSTR_SIZE];

	if (c->refusal == ULRPC_CAUSE_OVERLOADED)
		snprintf(
			text, size,
			"%s has no room for one more client of service %s",
			lnet_nid_format(&imp->nids[imp->nid], nid, sizeof(nid)),
			c->service);
}

/* Called when @imp has lost a client. */
static void import_left(struct import *imp)
{
	if (list_empty(&imp->clients))
		import_close(imp);
}

/* Takes back calls that were sent, but certainly not executed: they give up
 * their slots, and go to the front of the queue, as if they had not been sent.
 */
static void calls_unsend(struct ulrpc_client *c)
{
	while (!list_empty(&c->again)) {
		struct ulrpc_call *call =
			list_entry(c->again.prev, struct ulrpc_call, link);

		list_del(&call->link);
		list_add(&c->queue, &call->link);
		list_del(&call->order);
		import_slot_put(c->imp, call->slot);
		call->slot = SLOT_NONE;
		call->xid = 0;
	}
}

/* Makes the server of @imp the client's server from now on. */
static void client_move_to(struct ulrpc_client *c, struct import *imp)
{
	struct import *before = c->imp;

	client_unopen(c);
	calls_unsend(c);
	shard_cancel(c->shard, &c->window_timer);
	window_begin(&c->window);
	c->reopened = 0;
	c->refusal = ULRPC_CAUSE_OK;
	c->distrust = CLIENT_TRUSTS;
	list_del(&c->link);
	list_add_tail(&imp->clients, &c->link);
	c->imp = imp;
	import_left(before);
	if (c->nqueued)
		client_want(c);
}

/* What target_ops.go calls: moves the client, of which all calls that were sent
 * have ended. */
static int client_go(struct ulrpc_client *c, const struct ulnet_nid *nid,
		     uint32_t pid)
{
	struct import *imp = import_new(c->shard, nid, 1, pid, c->imp->secure);
	int rc = imp ? import_attach(imp, &imp) : -ENOMEM;

	if (rc && imp)
		import_free(imp);
	if (!rc && imp != c->imp)
		client_move_to(c, imp);
	return rc;
}

const struct target_ops client_target_ops = {
	.go = client_go,
	.no_address = client_on_no_address,
};

/* ---- the end of calls ---- */

static void client_on_quiet(struct ulrpc_client *c)
{
	if (!(client_marks(c) & CLIENT_CLOSED)) {
		target_on_quiet(c->target);
	} else if (!c->freeing) {
		c->freeing = true;
		shard_hold(c->shard);
		shard_defer(c->shard, &c->free_work);
	}
}

void client_last_ended(struct ulrpc_client *c)
{
	import_used(c->imp);
	if (unlikely(c->heeds_quiet))
		client_on_quiet(c);
}

void client_cancel_all(struct ulrpc_client *c, enum ulrpc_cause cause)
{
	struct list sent;

	fail_queued(c, cause, false);
	calls_fail(&c->summing, cause);
	calls_fail(&c->fenced, cause);
	calls_fail(&c->fetching, cause);
	openings_abort(&c->opening, cause);
	list_init(&sent);
	attempts_list(c, &sent);
	calls_fail(&sent, cause);
}

/* Ends calls that may have been executed. */
static void fail_sent(struct ulrpc_client *c, enum ulrpc_cause cause)
{
	struct ulrpc_call *call, *next;
	struct list sent;

	list_init(&sent);
	attempts_list(c, &sent);
	list_for_each_entry_safe (call, next, &c->again, link)
		if (call->unknown) {
			list_del(&call->link);
			list_add_tail(&sent, &call->link);
		}
	calls_fail(&sent, cause);
	calls_fail(&c->fetching, cause);
}

/* Are streams that @c has opened lost with the server? Then so is the channel
 * in which the calls of @c are to open others. */
static bool loses_streams(const struct ulrpc_client *c)
{
	const struct ulrpc_client *other;

	/* A client stays at a server because of streams that are there. */
	if (c->target && target_is_pinned(c->target))
		return true;
	list_for_each_entry (other, &c->imp->clients, link)
		if (other->carries && other->ncalls &&
		    client_streams(other) == client_streams(c))
			return true;
	return false;
}

void client_on_gone(struct ulrpc_client *c)
{
	client_tell(c, CLIENT_GONE);
	if (!c->ncalls || !(c->carries || client_streams(c)))
		return;
	if (c->carries || loses_streams(c))
		client_cancel_all(c, ULRPC_CAUSE_UNREACHABLE);
	else
		fail_sent(c, ULRPC_CAUSE_UNREACHABLE);
}

/* ---- life ---- */

void client_memory_free(struct ulrpc_client *c)
{
	target_free(c->target);
	for (unsigned int i = 0; i < c->ngiven; i++)
		lnet_peer_port_release(c->rpc->node, &c->given[i],
				       LNET_PORT_GIVEN);
	free(c->given);
	free(c->server);
	call_chain_put(c->chain);
	free(c);
}

void client_free(struct ulrpc_client *c)
{
	list_del(&c->link);
	timeouts_free(&c->timeouts);
	client_memory_free(c);
}

/* Frees a client without calls, and its import if the client was the last one.
 */
static void on_free(struct ulnet_work *work)
{
	struct ulrpc_client *c =
		container_of(work, struct ulrpc_client, free_work);
	struct import *imp = c->imp;
	struct shard *s = c->shard;

	/* Works run in the order in which they were posted, so the flush has
	 * run before this one. */
	BUG_ON(c->ncalls || c->flushing);
	client_stop(c);
	client_free(c);
	import_left(imp);
	shard_release(s);
}

void client_stop(struct ulrpc_client *c)
{
	shard_cancel(c->shard, &c->open_timer);
	shard_cancel(c->shard, &c->stall_timer);
	shard_cancel(c->shard, &c->window_timer);
	shard_cancel(c->shard, &c->due_timer);
	shard_cancel(c->shard, &c->watch_timer);
	if (c->target)
		target_stop(c->target);
}

static int client_attach_target(struct ulrpc_client *c)
{
	int rc;

	c->imp = import_new_nameless(c->shard, c->least != ULRPC_FLAVOUR_NONE);
	if (!c->imp)
		return -ENOMEM;
	rc = target_open(c->target);
	if (rc)
		import_close(c->imp);
	return rc;
}

int client_attach(void *arg)
{
	struct ulrpc_client *c = arg;
	int rc = c->target ? client_attach_target(c)
			   : import_attach(c->imp, &c->imp);

	if (rc)
		return rc;
	list_add_tail(&c->imp->clients, &c->link);
	c->watch_jitter = shard_jitter(c->shard);
	c->stats = stat_service_get(c->shard->stats, STAT_CALLS, c->service);
	return 0;
}

static void client_on_close(struct ulnet_work *work)
{
	struct ulrpc_client *c =
		container_of(work, struct ulrpc_client, close_work);
	struct shard *s = c->shard;

	client_mark(c, CLIENT_CLOSED, true);
	c->heeds_quiet = true;
	/* Counted as a call, so that the client stays until all others have
	 * ended. */
	c->ncalls++;
	client_cancel_all(c, ULRPC_CAUSE_CANCELED);
	client_call_ended(c);
	shard_taken(s);
}

void ulrpc_client_close(struct ulrpc_client *client)
{
	if (!client)
		return;
	/* In a child of fork() no other thread uses the client. */
	if (unlikely(lnet_is_forked(client->shard->node)))
		client_memory_free(client);
	else
		shard_give(client->shard, &client->close_work);
}

struct ulrpc *ulrpc_client_rpc(struct ulrpc_client *client)
{
	return client->rpc;
}

unsigned int ulrpc_client_cpt(const struct ulrpc_client *client)
{
	return client->shard->cpt;
}

void client_init(struct ulrpc_client *c, struct shard *s,
		 const struct ulrpc_client_conf *conf)
{
	c->rpc = s->rpc;
	c->shard = s;
	c->inflight_max =
		conf->inflight_max ? conf->inflight_max : CLIENT_INFLIGHT_MAX;
	window_init(&c->window, conf->inflight_begin, c->inflight_max);
	backlog_init(&c->backlog, conf->queue_max, conf->queue_bytes);
	atomic_init(&c->lent_from, ULRPC_BODY_MAX);
	c->batch_max = conf->batch_max ? conf->batch_max : ULRPC_BATCH_MAX;
	client_limit_replies(c, conf->reply_limit);
	c->checked = c->wants_checked = conf->checksum;
	c->least = c->flavour =
		flavour_meant(conf->flavour, rpc_has_keys(s->rpc));
	text_copy(c->service, sizeof(c->service), conf->service);
	list_init(&c->link);
	list_init(&c->again);
	list_init(&c->stalled);
	list_init(&c->queue);
	list_init(&c->summing);
	list_init(&c->fenced);
	list_init(&c->fetching);
	list_init(&c->opening);
	list_init(&c->ask);
	list_init(&c->due);
	list_init(&c->watched);
	c->watch_at = TIME_NEVER;
	c->due_at = TIME_NEVER;
	c->fsm.state = CLIENT_UNOPENED;
	list_init(&c->timeouts.methods);
	retry_rule_init(&c->retry, conf->retry, s->rpc->conf.force_policy);
	c->retry.wait = conf->wait_for_ready;
	lnet_timer_init(&c->open_timer, on_open_timer);
	lnet_timer_init(&c->stall_timer, on_stall);
	lnet_timer_init(&c->window_timer, on_window_timer);
	lnet_timer_init(&c->due_timer, on_due);
	lnet_timer_init(&c->watch_timer, attempt_on_watch);
	c->flush.fn = client_on_flush;
	c->close_work.fn = client_on_close;
	c->free_work.fn = on_free;
}
