/* SPDX-License-Identifier: BSD-3-Clause */
/* How requests end that their handlers have not answered: the connection ends,
 * or the service does. */
#include "rpc/server/serve/request.h"

#include <errno.h>

#include "rpc/bulk/transfer.h"
#include "rpc/server/serve/cancel.h"
#include "rpc/server/serve/deadline.h"
#include "rpc/server/serve/reply.h"
#include "rpc/server/session/export.h"
#include "rpc/wire/wire.h"

/* ---- one request ---- */

/* Makes @r LOST. Returns false if @r is not in the state @from any more,
 * because its handler has replied, or has begun to run. */
static bool request_lose(struct ulrpc_request *r, enum request_state from)
{
	struct service_cpt *sc = r->sc;
	struct inbox_buffer *pin = r->pin;
	bool copied = r->copy;

	/* As soon as @r is LOST, its handler may reply and free what @r refers
	 * to. request_lost() needs the transfers even after that. */
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
	/* A continuation that is queued is called even so. */
	if (sc->service->has_exec)
		exec_hand_over(&sc->service->exec, &r->item, &sc->service->lost,
			       shard_now(sc->shard));
	r->lost_link = sc->lost;
	sc->lost = r;
	sc->lost_unsettled = true;
	return true;
}

static void lost_tell(const struct ulrpc_request *r, uint32_t status)
{
	struct wire_reply reply = {
		.xid = r->xid,
		.attempt = r->latest,
		.status = status,
	};

	if (r->unwanted)
		reply_skip(r->reply_to);
	else
		reply_add(r->reply_to, &reply, NULL, true, NULL);
}

/* Returns the status that the client is told. If an attempt before may have
 * been executed, the store knows how the call ended; the client is then to wait
 * for the store. */
static uint32_t lost_status(const struct ulrpc_request *r, unsigned int end)
{
	if (end != STAT_UNANSWERED)
		return end;
	return r->resent ? WIRE_SHUTTING_DOWN : WIRE_DOUBTFUL;
}

/* Tells the client of @r, which is LOST, that the request has ended as @end,
 * and counts that. */
static void request_lost(struct ulrpc_request *r, unsigned int end)
{
	lost_tell(r, lost_status(r, end));
	request_report_lost(r, end);
	if (r->active)
		deadline_unwatch(r);
	/* Prevents transfers that have not begun yet. */
	transfer_abort(r->transfers, -ESHUTDOWN);
	if (r->transfers)
		transfers_free(r->transfers);
	request_reply_to_put(r);
	r->reply_to = r->batch;
	if (r->active)
		request_deactivate(r);
	/* The node has crashed, so the handler will not reply. */
	if (shard_is_mute(r->sc->shard))
		request_lost_end(r);
}

/* ---- the end of a connection ---- */

static void share_forget(struct share *share)
{
	struct ulrpc_request *r, *next;

	list_for_each_entry_safe (r, next, &share->active, share_link) {
		if (request_state(r) == REQUEST_QUEUED &&
		    exec_remove(&r->sc->service->exec, &r->item))
			request_refuse_queued(r, WIRE_STALE_EPOCH);
		else if (request_state(r) == REQUEST_ARRIVED)
			transfer_abort(r->transfers, -ESTALE);
		else
			request_cancel(r);
	}
}

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

/* Makes @r LOST if a worker has taken it, but has not begun to run it. Returns
 * whether @r was in that state. */
static bool lose_taken(struct ulrpc_request *r)
{
	if (!request_lose(r, REQUEST_QUEUED))
		return false;
	request_lost(r, WIRE_SHUTTING_DOWN);
	return true;
}

/* Called when the bulk has ended of a request that was being run when its
 * service ended. */
static void on_bulk_lost(void *arg)
{
	struct ulrpc_request *r = arg;

	if (request_state(r) == REQUEST_RUNNING &&
	    request_lose(r, REQUEST_RUNNING))
		request_lost(r, STAT_UNANSWERED);
	else
		request_on_bulk_done(r);
}

/* Ends the bulk of @r, which is being moved. Then @r, unless it is replied to,
 * is LOST, or refused if the bulk is its body. */
static void lose_later(struct ulrpc_request *r)
{
	r->losing = true;
	if (!r->waiting) {
		r->waiting = true;
		transfer_on_done(r->transfers, on_bulk_lost, r);
	}
	transfer_abort(r->transfers, -ESHUTDOWN);
}

void requests_abort(struct service_cpt *sc)
{
	struct ulrpc_request *r, *next;

	abort_queued(sc);
	list_for_each_entry_safe (r, next, &sc->active, link) {
		request_cancel_tell(r);
		if (r->transfers && transfer_busy(r->transfers)) {
			lose_later(r);
		} else if (lose_taken(r)) {
			continue;
		} else if (request_lose(r, REQUEST_RUNNING)) {
			request_lost(r, STAT_UNANSWERED);
		}
		/* else the reply is on its way to the CPT */
	}
}

void requests_lost_free(struct service_cpt *sc)
{
	while (sc->lost) {
		struct ulrpc_request *r = sc->lost;

		sc->lost = r->lost_link;
		/* its CPT may be gone */
		BUG_ON(r->batch->export);
		request_batch_unref(r->batch);
		pool_put(&sc->requests, r);
	}
}
