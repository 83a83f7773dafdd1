/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of ulnet/service.h that handlers call, except those that reply.
 */
#include "rpc/server/serve/request.h"

#include <errno.h>

#include "rpc/bulk/transfer.h"
#include "rpc/keys.h"
#include "rpc/owner.h"
#include "rpc/server/serve/durable.h"
#include "rpc/server/session/export.h"

bool request_now(struct ulrpc_request *r, uint64_t *now_p)
{
	bool lost;

	/* request_wait_users() waits for this count. */
	atomic_fetch_add(&r->users, 1);
	lost = atomic_load(&r->state) == REQUEST_LOST;
	if (!lost)
		*now_p = shard_now(r->sc->shard);
	atomic_fetch_sub(&r->users, 1);
	return !lost;
}

static uint64_t request_time_left(struct ulrpc_request *r)
{
	uint64_t now;

	if (!request_now(r, &now))
		return 0;
	if (r->deadline == TIME_NEVER)
		return ULRPC_NEVER;
	return now < r->deadline ? (r->deadline - now) / NSEC_PER_USEC : 0;
}

/* Returns the export of the caller of @r, which is there until the caller of
 * this function calls request_export_unuse(). NULL: @r is LOST, so that the CPT
 * may drop the export, or it has none. */
static const struct export *request_export_use(struct ulrpc_request *r)
{
	/* request_wait_users() waits for this count. */
	atomic_fetch_add(&r->users, 1);
	if (atomic_load(&r->state) == REQUEST_LOST)
		return NULL;
	return r->batch->export;
}

static void request_export_unuse(struct ulrpc_request *r)
{
	atomic_fetch_sub(&r->users, 1);
}

void ulrpc_request_peer(const struct ulrpc_request *request,
			struct ulrpc_peer *peer)
{
	struct ulrpc_request *r = (struct ulrpc_request *)request;
	const struct export *e = request_export_use(r);

	peer_tell(e ? e->who : NULL, batch_flavour(r->batch), peer);
	request_export_unuse(r);
}

enum ulrpc_flavour request_flavour(const struct ulrpc_request *r)
{
	return batch_flavour(r->batch);
}

bool request_owner(const struct ulrpc_request *request, struct rpc_owner *owner)
{
	struct ulrpc_request *r = (struct ulrpc_request *)request;
	const struct export *e = request_export_use(r);

	if (e) {
		memcpy(owner->id, e->id_of.id, RPC_ID_SIZE);
		owner->proved = e->id_of.proved;
		owner->connection = e->handle;
	}
	request_export_unuse(r);
	return e;
}

void ulrpc_request_info(const struct ulrpc_request *request,
			struct ulrpc_request_info *info)
{
	const struct request_batch *b = request->batch;

	*info = (struct ulrpc_request_info){
		.client = b->client,
		.source = b->source,
		.local = b->local,
		.xid = request->xid,
		.attempt = request->attempt + 1,
		.method = request->method->number,
		.reply_max = request->reply_max,
		.reply_limit = request_reply_limit(request),
		.time_left = request_time_left((struct ulrpc_request *)request),
		.priority = request->priority,
		.nbulks = transfers_count(request->transfers),
		.service = request->sc->service->name,
		.method_name = request->method->name,
	};
	if (request->traced)
		trace_format(request->trace, info->trace);
}

struct ulrpc *ulrpc_request_rpc(const struct ulrpc_request *request)
{
	return request->sc->service->rpc;
}

unsigned int ulrpc_request_cpt(const struct ulrpc_request *request)
{
	const struct service_cpt *sc = request->sc;

	return (unsigned int)(sc - sc->service->cpt);
}

/* ---- bulk ---- */

/* Returns the bulk of @request; NULL: it has none, or is LOST. */
static struct transfers *request_transfers(const struct ulrpc_request *request)
{
	return request_state(request) == REQUEST_LOST ? NULL
						      : request->transfers;
}

/* Does what request_transfers() does, and calls transfers_use() for the result.
 */
static struct transfers *request_transfers_use(const struct ulrpc_request *r)
{
	struct transfers *t = r->transfers;

	if (!t)
		return NULL;
	transfers_use(t);
	if (atomic_load(&r->state) != REQUEST_LOST)
		return t;
	transfers_unuse(t);
	return NULL;
}

int ulrpc_request_bulk(const struct ulrpc_request *request, unsigned int index,
		       struct ulrpc_bulk_info *info)
{
	return transfers_info(request_transfers(request), index, info);
}

/* Would the transfer change what the caller's memory holds (@access is a put)
 * after the reply was stored, with the checksums of what was put? */
static bool is_too_late(const struct ulrpc_request *r,
			enum ulrpc_bulk_access access)
{
	return r->durable && r->durable->value && access == ULRPC_BULK_SINK;
}

/* Starts a transfer. @done may reply to the request, which is then gone: only
 * @t may be used afterwards. */
static int bulk_start(struct ulrpc_request *request, unsigned int index,
		      enum ulrpc_bulk_access access, uint64_t offset,
		      const struct iovec *iov, unsigned int niov,
		      ulrpc_bulk_fn done, void *arg)
{
	struct transfers *t;
	int rc;

	if (is_too_late(request, access))
		return -EPERM;
	if (request_is_forked(request))
		return -ESHUTDOWN;
	t = request_transfers_use(request);
	rc = transfer_start(t, index, access, offset, iov, niov, done, arg);
	if (t)
		transfers_unuse(t);
	return rc;
}

int ulrpc_bulk_get(struct ulrpc_request *request, unsigned int index,
		   uint64_t offset, const struct iovec *iov, unsigned int niov,
		   ulrpc_bulk_fn done, void *arg)
{
	return bulk_start(request, index, ULRPC_BULK_SOURCE, offset, iov, niov,
			  done, arg);
}

int ulrpc_bulk_put(struct ulrpc_request *request, unsigned int index,
		   uint64_t offset, const struct iovec *iov, unsigned int niov,
		   ulrpc_bulk_fn done, void *arg)
{
	return bulk_start(request, index, ULRPC_BULK_SINK, offset, iov, niov,
			  done, arg);
}

int ulrpc_bulk_timeout(struct ulrpc_request *request, unsigned int index,
		       uint64_t timeout)
{
	if (request_is_forked(request))
		return -ESHUTDOWN;
	return transfer_timeout(request_transfers(request), index, timeout);
}

int ulrpc_bulk_cancel(struct ulrpc_request *request, unsigned int index)
{
	struct transfers *t;
	int rc;

	if (request_is_forked(request))
		return -ESHUTDOWN;
	t = request_transfers_use(request);
	rc = transfer_cancel(t, index);
	if (t)
		transfers_unuse(t);
	return rc;
}

/* ---- waiting ---- */

/* A wait of a worker for bulk. Other requests may wait for the worker's seat.
 */
struct bulk_wait {
	struct transfer_waiter waiter;
	struct exec_wait wait;
	bool listed; /* was exec_wait_begin() called? */
};

static void bulk_wait_wake(struct exec_wait *w)
{
	transfer_wait_wake(&container_of(w, struct bulk_wait, wait)->waiter);
}

/* If this thread is a worker, tells the exec that it waits. Returns whether it
 * is one. Called between transfers_use() and transfers_unuse(), so that @r is
 * not lost meanwhile. */
static bool bulk_wait_list(struct ulrpc_request *r, struct bulk_wait *b)
{
	struct ulrpc_service *svc = r->sc->service;

	b->wait = (struct exec_wait){
		.client = &r->share->queue,
		.item = &r->item,
		.host = &r->batch->source,
		.progress = transfers_progress(r->transfers),
		.wake = bulk_wait_wake,
	};
	return svc->has_exec && exec_wait_begin(&svc->exec, &b->wait);
}

static void bulk_wait_give_up(struct ulrpc_request *r, struct bulk_wait *b)
{
	struct transfers *t = request_transfers_use(r);

	if (!t)
		return; /* @r is LOST: the transfer ends anyway */
	transfer_wait_give_up(t, &b->waiter);
	transfers_unuse(t);
}

/* Waits until the transfer ends. Gives the transfer up if exec_wait_look() says
 * that the wait is over, because other requests wait for this worker. */
static void bulk_wait_listed(struct ulrpc_request *r, struct bulk_wait *b)
{
	struct exec *e = &r->sc->service->exec;
	uint64_t until = TIME_NEVER;
	bool over = false;

	while (transfer_wait(&b->waiter, until)) {
		if (over)
			continue;
		over = exec_wait_look(e, &b->wait, &until) == EXEC_WAIT_OVER;
		if (over)
			bulk_wait_give_up(r, b);
	}
	exec_wait_end(e, &b->wait);
}

static int bulk_start_wait(struct ulrpc_request *request, unsigned int index,
			   enum ulrpc_bulk_access access, uint64_t offset,
			   const struct iovec *iov, unsigned int niov)
{
	struct transfers *t;
	struct bulk_wait b;
	int rc;

	if (is_too_late(request, access))
		return -EPERM;
	if (request_is_forked(request))
		return -ESHUTDOWN;
	t = request_transfers_use(request);
	rc = transfer_wait_begin(t, index, access, offset, iov, niov,
				 &b.waiter);
	b.listed = !rc && bulk_wait_list(request, &b);
	if (t)
		transfers_unuse(t);
	if (rc)
		return rc;
	if (b.listed)
		bulk_wait_listed(request, &b);
	return transfer_wait_end(&b.waiter);
}

int ulrpc_bulk_get_wait(struct ulrpc_request *request, unsigned int index,
			uint64_t offset, const struct iovec *iov,
			unsigned int niov)
{
	return bulk_start_wait(request, index, ULRPC_BULK_SOURCE, offset, iov,
			       niov);
}

int ulrpc_bulk_put_wait(struct ulrpc_request *request, unsigned int index,
			uint64_t offset, const struct iovec *iov,
			unsigned int niov)
{
	return bulk_start_wait(request, index, ULRPC_BULK_SINK, offset, iov,
			       niov);
}
