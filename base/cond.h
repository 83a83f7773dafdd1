/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Condition variables whose times are of CLOCK_MONOTONIC or, for the threads of
 * a simulation (lockstep.h), of the virtual clock.
 */
#ifndef BASE_COND_H
#define BASE_COND_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/list.h"
#include "base/util.h"

struct cond {
	pthread_cond_t cond;
	struct list guests; /* the threads in lockstep that wait here */
	/* how many other threads wait here and were not woken: never more than
	 * there are, perhaps fewer (cond_has_waiters()) */
	_Atomic unsigned int waiting;
};

/* Makes a condition variable. Returns 0 or -errno. */
int cond_init(struct cond *c) must_check;
/* No thread may be waiting. */
void cond_destroy(struct cond *c);
/* Is a thread waiting that nobody has woken? May be false although there is
 * one, if others have been woken meanwhile. */
bool cond_has_waiters(const struct cond *c);

/* Waits, as pthread_cond_timedwait(): @lock is held; spurious wake-ups happen.
 * @until: ns, or TIME_NEVER. Returns 0 or -ETIMEDOUT. */
int cond_wait(struct cond *c, pthread_mutex_t *lock, uint64_t until);
/* As cond_wait(), but also returns -ECANCELED if lockstep_end() was or is
 * called for this thread. */
int cond_wait_or_end(struct cond *c, pthread_mutex_t *lock, uint64_t until);

/* cond_signal() wakes one waiting thread, cond_broadcast() all of them. Any
 * thread, with or without the lock. */
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);

#endif
