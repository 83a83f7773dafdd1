/* SPDX-License-Identifier: BSD-3-Clause */
/* Shards and their parts; rpc/node/ opens and closes RPC. */
#include "rpc/rpc.h"

#include <stdlib.h>

#include "base/crc32c.h"

/* us: how long a single lnet_poll() lasts, at most; it is repeated until the
 * time is up. */
#define POLL_MAX UINT64_C(3600000000)

/* ---- parts ---- */

static void *part_state(const struct rpc_part *part, const struct shard *s)
{
	void *state;

	memcpy(&state, (const char *)s + part->state_offset, sizeof(state));
	return state;
}

static void part_state_set(const struct rpc_part *part, struct shard *s,
			   void *state)
{
	memcpy((char *)s + part->state_offset, &state, sizeof(state));
}

int rpc_part_open(const struct rpc_part *part, struct shard *s)
{
	if (part->state_size) {
		void *state = calloc(1, part->state_size);

		if (!state)
			return -ENOMEM;
		part_state_set(part, s, state);
	}
	return part->shard_open ? part->shard_open(s) : 0;
}

bool rpc_part_is_open(const struct rpc_part *part, const struct shard *s)
{
	return !part->state_size || part_state(part, s);
}

void rpc_part_close(const struct rpc_part *part, struct shard *s)
{
	if (!rpc_part_is_open(part, s))
		return;
	if (part->shard_free)
		part->shard_free(s);
	if (part->state_size) {
		free(part_state(part, s));
		part_state_set(part, s, NULL);
	}
}

/* ---- shards ---- */

uint64_t shard_handle(struct shard *s, uint64_t id)
{
	uint32_t random = 0;

	while (!random)
		lnet_random(s->node, s->cpt, &random, sizeof(random));
	return (uint64_t)random << 32 | (uint32_t)id;
}

bool shard_same_peer(const struct shard *s, const struct ulnet_nid *a,
		     const struct ulnet_nid *b)
{
	struct ulnet_nid of_a, of_b;

	return lnet_nid_eq(a, b) ||
	       (!lnet_primary(s->node, a, &of_a) &&
		!lnet_primary(s->node, b, &of_b) && lnet_nid_eq(&of_a, &of_b));
}

uint64_t shard_random(struct shard *s, uint64_t max)
{
	uint64_t r;

	lnet_random(s->node, s->cpt, &r, sizeof(r));
	if (max == UINT64_MAX)
		return r;
	return (uint64_t)(((unsigned __int128)r * (max + 1)) >> 64);
}

void shard_settled(struct shard *s)
{
	struct ulrpc *rpc = s->rpc;

	pthread_mutex_lock(&rpc->wait.lock);
	s->idle = s->work == 0;
	s->unused = s->holds == 0;
	wait_wake(&rpc->wait);
	pthread_mutex_unlock(&rpc->wait.lock);
	if (s->work || s->told || atomic_load(&rpc->state) == RPC_OPEN)
		return;
	s->told = true;
	atomic_fetch_add(&rpc->posted, 1);
	lnet_post(rpc->node, 0, &s->idle_work);
}

void shard_taken_last(struct shard *s)
{
	struct ulrpc *rpc = s->rpc;

	pthread_mutex_lock(&rpc->wait.lock);
	wait_wake(&rpc->wait);
	pthread_mutex_unlock(&rpc->wait.lock);
}

struct lnet *ulrpc_node(struct ulrpc *rpc)
{
	return rpc->node;
}

uint32_t ulrpc_method(const char *name)
{
	return crc32c(0, name, strlen(name));
}

/* ---- waiting ---- */

int wait_init(struct wait *w)
{
	int rc = pthread_mutex_init(&w->lock, NULL);

	if (rc)
		return -rc;
	rc = lnet_cond_init(&w->changed);
	if (rc)
		pthread_mutex_destroy(&w->lock);
	atomic_init(&w->wakes, 0);
	atomic_init(&w->cpt, WAIT_ASLEEP);
	return rc;
}

void wait_fini(struct wait *w)
{
	lnet_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
}

static bool wait_ready(struct wait *w, bool (*ready)(void *arg), void *arg)
{
	bool yes;

	pthread_mutex_lock(&w->lock);
	yes = ready(arg);
	pthread_mutex_unlock(&w->lock);
	return yes;
}

int wait_turns(struct wait *w, struct lnet *node, bool (*ready)(void *arg),
	       void *arg, uint64_t until)
{
	if (lnet_in_turn())
		return -EDEADLK;
	if (unlikely(lnet_is_forked(node)))
		return -ESHUTDOWN;
	while (!wait_ready(w, ready, arg)) {
		uint64_t now = lnet_now(node, 0), left;
		int rc;

		if (now >= until)
			return -ETIMEDOUT;
		if (until != TIME_NEVER)
			left = MIN(POLL_MAX, (until - now + NSEC_PER_USEC - 1) /
						     NSEC_PER_USEC);
		/* In virtual time lnet_poll() has no limit: only the simulator
		 * can tell that nothing will happen any more. */
		else
			left = lnet_is_virtual(node) ? UINT64_MAX : POLL_MAX;
		rc = lnet_poll(node, left);
		if (rc == -EBUSY || rc == -EXDEV)
			return -EBUSY;
		if (rc == -EAGAIN && until == TIME_NEVER)
			return wait_ready(w, ready, arg) ? 0 : -EDEADLK;
		if (rc && rc != -EAGAIN)
			return rc;
	}
	return 0;
}

/* A thread that waits while other threads make the turns. */
struct waiter {
	struct wait *wait;
	struct lnet *node;
	bool (*ready)(void *arg);
	void *arg;
	uint64_t until;
	unsigned int seen; /* wait->wakes, before @ready was asked last */
	int rc;
};

/* Asks whether the wait is over, if somebody has called wait_wake() since that
 * was asked last. Does not wait for the lock: who holds it, and is about to
 * release it, would have to wake this thread. */
static bool waiter_is_ready(struct waiter *waiter)
{
	struct wait *w = waiter->wait;
	unsigned int wakes =
		atomic_load_explicit(&w->wakes, memory_order_acquire);
	bool yes;

	if (likely(wakes == waiter->seen) || pthread_mutex_trylock(&w->lock))
		return false;
	/* Later changes are followed by another wait_wake(). */
	waiter->seen = wakes;
	yes = waiter->ready(waiter->arg);
	pthread_mutex_unlock(&w->lock);
	return yes;
}

/* For lnet_cpt_wait(): the node exists as long as the thread polls. */
static bool waiter_poll(void *arg)
{
	struct waiter *w = arg;

	if (waiter_is_ready(w))
		return true;
	if (w->until == TIME_NEVER || lnet_now(w->node, 0) < w->until)
		return false;
	w->rc = wait_ready(w->wait, w->ready, w->arg) ? 0 : -ETIMEDOUT;
	return true;
}

static void waiter_sleep(void *arg)
{
	struct waiter *waiter = arg;
	struct wait *w = waiter->wait;
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	while (!rc && !waiter->ready(waiter->arg))
		rc = lnet_cond_wait(&w->changed, &w->lock, waiter->until);
	if (rc && waiter->ready(waiter->arg))
		rc = 0;
	pthread_mutex_unlock(&w->lock);
	waiter->rc = rc;
}

int wait_until(struct wait *w, struct lnet *node, bool (*ready)(void *arg),
	       void *arg, uint64_t until)
{
	unsigned int cpt = atomic_load_explicit(&w->cpt, memory_order_relaxed);
	struct waiter waiter = {
		.wait = w,
		.node = node,
		.ready = ready,
		.arg = arg,
		.until = until,
		/* before wait_turns() asks: what changes after that is seen */
		.seen = atomic_load_explicit(&w->wakes, memory_order_acquire),
	};
	int rc = wait_turns(w, node, ready, arg, until);

	if (rc != -EBUSY)
		return rc;
	if (cpt == WAIT_ASLEEP)
		waiter_sleep(&waiter);
	else
		lnet_cpt_wait(node, cpt, waiter_poll, waiter_sleep, &waiter);
	return waiter.rc;
}
