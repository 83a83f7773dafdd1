/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Condition variables of threads that wait until a time of CLOCK_MONOTONIC, as
 * all times here are.
 */
#ifndef BASE_COND_H
#define BASE_COND_H

#include <pthread.h>
#include <time.h>

/* 0 or -errno. */
static inline int cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	rc = pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
	return -rc;
}

#endif
