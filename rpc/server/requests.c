/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that are not answered at once: those that are under way on a CPT,
 * and those that are lost. */
#include "rpc/server/request_priv.h"

#include <errno.h>
#include <sched.h>

#include "rpc/bulk/transfer.h"
#include "rpc/server/cancel.h"
#include "rpc/server/deadline.h"
#include "rpc/server/export.h"
#include "rpc/server/reply.h"
#include "rpc/wire/wire.h"

/* ---- under way ---- */

void request_activate(struct ulrpc_request *r, const struct wire_call *c,
		      uint64_t held)
{
	struct service_cpt *sc = r->sc;

	r->active = true;
	r->held = held;
	list_add_tail(&sc->active, &r->link);
	list_add_tail(&r->share->active, &r->share_link);
	list_init(&r->cancel_link);
	service_held(sc, r->share, 1, (int64_t)r->held);
	shard_work_begin(sc->shard);
	deadline_watch(r, c);
}

void request_deactivate(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;
	struct shard *s = sc->shard;

	deadline_unwatch(r);
	list_del(&r->link);
	list_del(&r->share_link);
	/* Its callback has not been called, and will not be. A lost one is the
	 * handler's, who has to be told. */
	if (request_state(r) != REQUEST_LOST)
		list_del(&r->cancel_link);
	r->active = false;
	service_held(sc, r->share, -1, -(int64_t)r->held);
	service_cpt_settled(sc);
	shard_work_end(s);
}

/* ---- lost ---- */

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
	service_unref(svc);
}

void request_wait_users(const struct ulrpc_request *r)
{
	while (atomic_load(&r->users) ||
	       (r->transfers && transfers_used(r->transfers)))
		sched_yield();
}

bool request_lose(struct ulrpc_request *r, enum request_state from)
{
	struct service_cpt *sc = r->sc;
	struct inbox_buffer *pin = r->pin;
	bool copied = r->copy;

	/* A lost request belongs to whoever replies, and may be answered at
	 * once; request_lost() still looks at its bulk after that. */
	atomic_fetch_add(&sc->service->refs, 1);
	if (pin)
		inbox_pin_keep(pin);
	if (r->transfers)
		transfers_get(r->transfers);
	if (!request_move(r, from, REQUEST_LOST)) {
		if (r->transfers)
			transfers_free(r->transfers);
		if (pin) {
			r->pin = NULL;
			inbox_kept_put(pin);
		}
		service_unref(sc->service);
		return false;
	}
	if (copied)
		slab_disown(&sc->slab);
	request_wait_users(r);
	/* A continuation that is queued is called all the same. */
	if (sc->service->has_exec)
		exec_hand_over(&sc->service->exec, &r->item, &sc->service->lost,
			       shard_now(sc->shard));
	r->lost_link = sc->lost;
	sc->lost = r;
	return true;
}

/* Whoever waits is not left to find out. */
static void lost_tell(const struct ulrpc_request *r, uint32_t status)
{
	struct wire_reply reply = {
		.xid = r->xid,
		.attempt = r->latest,
		.status = status,
	};

	if (r->unwanted)
		reply_skip(r->answer);
	else
		reply_add(r->answer, &reply, NULL, true, NULL);
}

/* The end of a call that is sent again already, because it may have been
 * executed, is in the store: its client waits until that is back. */
static uint32_t lost_status(const struct ulrpc_request *r, unsigned int end)
{
	if (end != STAT_UNANSWERED)
		return end;
	return r->resent ? WIRE_SHUTTING_DOWN : WIRE_DOUBTFUL;
}

void request_lost(struct ulrpc_request *r, unsigned int end)
{
	struct origin *o = r->origin;

	lost_tell(r, lost_status(r, end));
	request_record_lost(r, end);
	if (r->active)
		deadline_unwatch(r);
	/* Bulk that was asked for, and has not begun, does not begin. */
	transfer_abort(r->transfers, -ESHUTDOWN);
	if (r->transfers)
		transfers_free(r->transfers);
	request_answer_put(r);
	r->answer = o;
	if (o->export)
		export_unref(o->export);
	o->export = NULL;
	o->share = &r->sc->unknown;
	if (r->active)
		request_deactivate(r);
}

/* ---- the end of a connection ---- */

static void share_forget(struct share *share)
{
	struct ulrpc_request *r, *next;

	list_for_each_entry_safe (r, next, &share->active, share_link) {
		if (request_state(r) == REQUEST_QUEUED &&
		    exec_remove(&r->sc->service->exec, &r->item))
			request_refuse_queued(r, WIRE_STALE_EPOCH);
		else
			request_cancel(r);
	}
}

/* So the end of many clients costs as much as they have under way, and not that
 * for each of them. */
void requests_forget(const struct list *shares)
{
	struct share *share;

	list_for_each_entry (share, shares, link)
		share_forget(share);
}

/* ---- the end of the service ---- */

static void abort_queued(struct service_cpt *sc)
{
	struct ulrpc_request *r, *next;

	list_for_each_entry_safe (r, next, &sc->active, link)
		if (request_state(r) == REQUEST_QUEUED &&
		    exec_remove(&sc->service->exec, &r->item))
			request_refuse_queued(r, WIRE_SHUTTING_DOWN);
}

/* A worker has it in its hands, and has not begun. */
static bool lose_taken(struct ulrpc_request *r)
{
	if (!request_lose(r, REQUEST_QUEUED))
		return false;
	request_lost(r, WIRE_SHUTTING_DOWN);
	return true;
}

void requests_abort(struct service_cpt *sc)
{
	struct ulrpc_request *r, *next;

	abort_queued(sc);
	list_for_each_entry_safe (r, next, &sc->active, link) {
		request_cancel_tell(r);
		if (r->transfers && transfer_busy(r->transfers)) {
			r->losing = true;
			request_wait_bulk(r);
			transfer_abort(r->transfers, -ESHUTDOWN);
		} else if (lose_taken(r)) {
			continue;
		} else if (request_lose(r, REQUEST_RUNNING)) {
			request_lost(r, STAT_UNANSWERED);
		}
		/* else its reply is on the way */
	}
}

void requests_crash(struct service_cpt *sc)
{
	struct ulrpc_request *r;

	list_for_each_entry (r, &sc->active, link) {
		deadline_unwatch(r);
		if (r->transfers)
			transfer_crash(r->transfers);
	}
}

static void reply_drop(struct ulrpc_request *r)
{
	if (r->reply != r->room)
		free(r->reply);
	r->reply = NULL;
}

static void request_gone(struct ulrpc_request *r)
{
	struct origin *o = r->origin;

	if (r->item.queued)
		exec_remove(&r->sc->service->exec, &r->item);
	list_del(&r->link);
	list_del(&r->share_link);
	service_held(r->sc, r->share, -1, -(int64_t)r->held);
	r->pin = NULL;
	reply_drop(r);
	if (r->durable)
		durable_end(r);
	request_drop(r);
	request_answer_put(r);
	pool_put(&r->sc->requests, r);
	origin_unref(o);
}

void requests_gone(struct service_cpt *sc)
{
	while (!list_empty(&sc->flush)) {
		struct origin *o = list_first(&sc->flush, struct origin, link);

		list_del(&o->link);
		o->out = NULL; /* among sc->replies */
		origin_unref(o);
	}
	while (!list_empty(&sc->active))
		request_gone(
			list_first(&sc->active, struct ulrpc_request, link));
}

void requests_lost_free(struct service_cpt *sc)
{
	while (sc->lost) {
		struct ulrpc_request *r = sc->lost;

		sc->lost = r->lost_link;
		origin_unref(r->origin);
		pool_put(&sc->requests, r);
	}
}
