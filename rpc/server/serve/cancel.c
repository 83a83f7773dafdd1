/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/serve/cancel.h"

#include <errno.h>
#include <sched.h>

#include "rpc/bulk/transfer.h"
#include "rpc/context/scope.h"
#include "rpc/server/serve/request.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

/* ---- sleepers ---- */

int sleepers_init(struct sleepers *s)
{
	int rc = lnet_cond_init(&s->woken);

	if (rc)
		return rc;
	pthread_mutex_init(&s->lock, NULL);
	atomic_init(&s->n, 0);
	return 0;
}

void sleepers_fini(struct sleepers *s)
{
	pthread_mutex_destroy(&s->lock);
	lnet_cond_destroy(&s->woken);
}

/* Wakes the sleepers. The caller has marked the request as canceled before, and
 * a sleeper counts itself before it looks for the mark. So each sleeper either
 * sees the mark or is woken. */
static void sleepers_wake(struct sleepers *s)
{
	if (!atomic_load(&s->n))
		return;
	pthread_mutex_lock(&s->lock);
	lnet_cond_broadcast(&s->woken);
	pthread_mutex_unlock(&s->lock);
}

/* ---- states ---- */

static bool cancel_move(struct ulrpc_request *r, enum cancel_state from,
			enum cancel_state to)
{
	uint8_t was = from;

	return atomic_compare_exchange_strong(&r->cancel, &was, to);
}

/* ---- on the CPT ---- */

static void cancel_tell_later(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;

	list_add_tail(&sc->canceled, &r->cancel_link);
	if (sc->cancel_scheduled)
		return;
	sc->cancel_scheduled = true;
	shard_hold(sc->shard);
	shard_defer(sc->shard, &sc->cancel_work);
}

/* Calls the callback of @r. A thread that replies to @r meanwhile either takes
 * the callback away before it is called, or finds @r in sc->told and waits. */
static void cancel_tell(struct service_cpt *sc, struct ulrpc_request *r)
{
	atomic_store(&sc->teller, pthread_self());
	atomic_store(&sc->told, r);
	if (!shard_is_mute(sc->shard) &&
	    cancel_move(r, CANCEL_DUE, CANCEL_TOLD))
		r->on_cancel(r->on_cancel_arg, r);
	/* the callback may have replied to r, which is gone then */
	atomic_store(&sc->told, NULL);
}

void requests_tell(struct ulnet_work *w)
{
	struct service_cpt *sc =
		container_of(w, struct service_cpt, cancel_work);

	sc->cancel_scheduled = false;
	while (!list_empty(&sc->canceled)) {
		struct ulrpc_request *r = list_first(
			&sc->canceled, struct ulrpc_request, cancel_link);

		list_del(&r->cancel_link);
		cancel_tell(sc, r);
	}
	shard_release(sc->shard);
}

bool request_cancel_tell(struct ulrpc_request *r)
{
	enum cancel_state was, to;

	do {
		was = atomic_load(&r->cancel);
		if (was >= CANCEL_DUE)
			return false;
		to = was == CANCEL_ASKED ? CANCEL_DUE : CANCEL_CANCELED;
	} while (!cancel_move(r, was, to));
	if (to == CANCEL_DUE)
		cancel_tell_later(r);
	sleepers_wake(&r->sc->service->sleepers);
	/* Calls under a request that has its reply go on without it. */
	if (atomic_load(&r->scoped) && request_state(r) != REQUEST_ANSWERING &&
	    request_state(r) != REQUEST_REPLIED)
		scope_cancel(r->scope);
	return true;
}

void request_cancel(struct ulrpc_request *r)
{
	r->unwanted = true;
	if (!request_cancel_tell(r))
		return;
	stat_count(r->sc->shard, RPC_STAT_requests_canceled);
	if (request_state(r) == REQUEST_QUEUED &&
	    exec_remove(&r->sc->service->exec, &r->item))
		request_refuse_queued(r, WIRE_EXPIRED);
	else
		transfer_abort(r->transfers, -ECANCELED);
}

/* ---- any thread ---- */

void request_cancel_end(struct ulrpc_request *r)
{
	struct service_cpt *sc = r->sc;

	if (likely(atomic_load(&r->cancel) == CANCEL_NONE) ||
	    cancel_move(r, CANCEL_ASKED, CANCEL_NONE) ||
	    cancel_move(r, CANCEL_DUE, CANCEL_CANCELED))
		return;
	while (atomic_load(&sc->told) == r &&
	       !pthread_equal(atomic_load(&sc->teller), pthread_self()))
		sched_yield();
}

bool ulrpc_request_canceled(const struct ulrpc_request *request)
{
	return request_canceled(request);
}

int ulrpc_request_on_cancel(struct ulrpc_request *request, ulrpc_cancel_fn fn,
			    void *arg)
{
	if (!cancel_move(request, CANCEL_NONE, CANCEL_SETTING))
		return request_canceled(request) ? -ECANCELED : -EALREADY;
	request->on_cancel = fn;
	request->on_cancel_arg = arg;
	return cancel_move(request, CANCEL_SETTING, CANCEL_ASKED) ? 0
								  : -ECANCELED;
}

int ulrpc_request_sleep(struct ulrpc_request *request, uint64_t us)
{
	struct sleepers *s = &request->sc->service->sleepers;
	uint64_t now = 0, until;
	int rc = 0;

	if (lnet_in_turn())
		return -EDEADLK;
	if (request_is_forked(request))
		return -ESHUTDOWN;
	/* A request that is LOST counts as canceled and does not sleep, so @now
	 * is not needed then. */
	(void)request_now(request, &now);
	until = rpc_at(now, rpc_ns(us));
	atomic_fetch_add(&s->n, 1);
	pthread_mutex_lock(&s->lock);
	while (!rc && !ulrpc_request_canceled(request))
		rc = lnet_cond_wait(&s->woken, &s->lock, until);
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_sub(&s->n, 1);
	if (ulrpc_request_canceled(request))
		return -ECANCELED;
	return rc == -ETIMEDOUT ? 0 : rc;
}
