/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cond.h"

#include <time.h>

#include "base/lockstep.h"

int cond_init(struct cond *c)
{
	pthread_condattr_t attr;
	int rc;

	list_init(&c->guests);
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
	struct timespec at = { (time_t)(until / NSEC_PER_SEC),
			       (long)(until % NSEC_PER_SEC) };

	if (unlikely(lockstep_current()))
		return wait_as_guest(c, lock, until, endable);
	if (until == TIME_NEVER)
		return -pthread_cond_wait(&c->cond, lock);
	return -pthread_cond_timedwait(&c->cond, lock, &at);
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
	if (unlikely(!list_empty(&c->guests)))
		lockstep_wake(&c->guests);
	else
		pthread_cond_signal(&c->cond);
}

void cond_broadcast(struct cond *c)
{
	while (unlikely(!list_empty(&c->guests)))
		lockstep_wake(&c->guests);
	pthread_cond_broadcast(&c->cond);
}
