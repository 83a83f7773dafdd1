/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/server/sleep.h"

#include <errno.h>

#include "rpc/server/cancel.h"

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

/* The request is marked before this, and a sleeper counted before it looks for
 * the mark: so either it sees that, or is woken. */
void sleepers_wake(struct sleepers *s)
{
	if (!atomic_load(&s->n))
		return;
	pthread_mutex_lock(&s->lock);
	lnet_cond_broadcast(&s->woken);
	pthread_mutex_unlock(&s->lock);
}

/* ns; 0 for a request that is lost: its node may be gone. */
static uint64_t sleep_from(struct ulrpc_request *r)
{
	uint64_t now = 0;

	/* See request_wait_users(). */
	atomic_fetch_add(&r->users, 1);
	if (atomic_load(&r->state) != REQUEST_LOST)
		now = shard_now(r->sc->shard);
	atomic_fetch_sub(&r->users, 1);
	return now;
}

int ulrpc_request_sleep(struct ulrpc_request *request, uint64_t us)
{
	struct sleepers *s = &request->sc->service->sleepers;
	uint64_t until;
	int rc = 0;

	if (lnet_in_turn())
		return -EDEADLK;
	until = rpc_at(sleep_from(request), rpc_ns(us));
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
