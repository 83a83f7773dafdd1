/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cond.h"

#include <time.h>

#include "base/lockstep.h"

int cond_init(struct cond *c)
{
	pthread_condattr_t attr;
	int rc;

	list_init(&c->guests);
	atomic_init(&c->waiting, 0);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(&c->cond, &attr);
	pthread_condattr_destroy(&attr);
	return -rc;
}

void cond_destroy(struct cond *c)
{
	BUG_ON(!list_empty(&c->guests));
	pthread_cond_destroy(&c->cond);
}

bool cond_has_waiters(const struct cond *c)
{
	return !list_empty(&c->guests) ||
	       atomic_load_explicit(&c->waiting, memory_order_relaxed);
}

/* Counts one thread less as waiting, at most down to 0. Called when a thread is
 * about to be woken, and again when it waits no more, so a woken thread may be
 * subtracted twice, and another one that still waits is then not counted. If it
 * were subtracted only once, a thread that wakes up for no reason would go on
 * counting as waiting. */
static void waiting_drop(struct cond *c)
{
	unsigned int n =
		atomic_load_explicit(&c->waiting, memory_order_relaxed);

	while (n && !atomic_compare_exchange_weak_explicit(
			    &c->waiting, &n, n - 1, memory_order_relaxed,
			    memory_order_relaxed))
		;
}

static int cond_block(struct cond *c, pthread_mutex_t *lock, uint64_t until)
{
	struct timespec at = { (time_t)(until / NSEC_PER_SEC),
			       (long)(until % NSEC_PER_SEC) };
	int rc;

	atomic_fetch_add_explicit(&c->waiting, 1, memory_order_relaxed);
	rc = until == TIME_NEVER ? pthread_cond_wait(&c->cond, lock)
				 : pthread_cond_timedwait(&c->cond, lock, &at);
	waiting_drop(c);
	return -rc;
}

static int wait_as_guest(struct cond *c, pthread_mutex_t *lock, uint64_t until,
			 bool endable)
{
	int rc;

	pthread_mutex_unlock(lock);
	rc = lockstep_wait(&c->guests, until, endable);
	pthread_mutex_lock(lock);
	return rc;
}

static int cond_wait_for(struct cond *c, pthread_mutex_t *lock, uint64_t until,
			 bool endable)
{
	if (unlikely(lockstep_current()))
		return wait_as_guest(c, lock, until, endable);
	return cond_block(c, lock, until);
}

int cond_wait(struct cond *c, pthread_mutex_t *lock, uint64_t until)
{
	return cond_wait_for(c, lock, until, false);
}

int cond_wait_or_end(struct cond *c, pthread_mutex_t *lock, uint64_t until)
{
	return cond_wait_for(c, lock, until, true);
}

/* Reading "guests" is no race: it changes only in simulations, where one thread
 * runs at a time. */
void cond_signal(struct cond *c)
{
	if (unlikely(!list_empty(&c->guests))) {
		lockstep_wake(&c->guests);
		return;
	}
	waiting_drop(c);
	pthread_cond_signal(&c->cond);
}

void cond_broadcast(struct cond *c)
{
	while (unlikely(!list_empty(&c->guests)))
		lockstep_wake(&c->guests);
	atomic_store_explicit(&c->waiting, 0, memory_order_relaxed);
	pthread_cond_broadcast(&c->cond);
}
