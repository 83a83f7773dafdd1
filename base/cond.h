/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Condition variables, with times of CLOCK_MONOTONIC, as all times here are; or
 * of the virtual clock, for threads in lockstep (lockstep.h), which wait here
 * like any others.
 */
#ifndef BASE_COND_H
#define BASE_COND_H

#include <pthread.h>
#include "base/list.h"
#include "base/util.h"

struct cond {
	pthread_cond_t cond;
	struct list guests; /* threads in lockstep that wait */
};

/* 0 or -errno. */
int cond_init(struct cond *c) must_check;
/* Nobody waits. */
void cond_destroy(struct cond *c);

/* As pthread_cond_wait(): @lock is held, and may return for no reason. @until:
 * ns, or TIME_NEVER. 0, -ETIMEDOUT. */
int cond_wait(struct cond *c, pthread_mutex_t *lock, uint64_t until);
/* The same, but -ECANCELED for a thread in lockstep that is to end. */
int cond_wait_or_end(struct cond *c, pthread_mutex_t *lock, uint64_t until);

/* Any thread; with the lock held, or not. */
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);

#endif
