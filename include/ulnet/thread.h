/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that may block, beside the CPTs of a node, under real and under
 * virtual time. Manual: lnet_thread_start(3), lnet_cond_init(3).
 *
 * Under real time they are threads as any others. In the simulator
 * (ulnet_sim(7)) they run in lockstep with the loops: one of all of them runs
 * at any time, until it waits in lnet_cond_wait(), or in a function of ulnet
 * that says that it waits, or ends. Times are ns.
 */
#ifndef ULNET_THREAD_H
#define ULNET_THREAD_H

#include <pthread.h>
#include "ulnet/lnet.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- threads: lnet_thread_start(3) ---- */

struct ulnet_thread;

/* Runs @fn(@arg) on a thread of its own. -ENOMEM; -errno of making threads. Any
 * thread. */
ULNET_EXPORT int lnet_thread_start(struct lnet *node, void (*fn)(void *arg),
				   void *arg, struct ulnet_thread **thread_p);
/* Waits until fn has returned, and frees @thread. Under virtual time fn must
 * have returned, or be about to, without another wait. Any other thread, before
 * lnet_close() returns, or in ulnet_layer.close. */
ULNET_EXPORT void lnet_thread_join(struct ulnet_thread *thread);
/* Is it the calling thread? */
ULNET_EXPORT bool lnet_thread_is_self(const struct ulnet_thread *thread);

/* ---- waiting: lnet_cond_init(3) ---- */

/* A condition variable. */
struct ulnet_cond {
	pthread_cond_t cond;
	void *opaque[2];
};

/* -errno. */
ULNET_EXPORT int lnet_cond_init(struct ulnet_cond *cond);
/* Nobody waits. */
ULNET_EXPORT void lnet_cond_destroy(struct ulnet_cond *cond);
/* As pthread_cond_timedwait(): unlocks @lock, waits, and locks it again; may
 * return for no reason. @until: as lnet_now(); UINT64_MAX: as long as it takes.
 * 0; -ETIMEDOUT; -ECANCELED: in the simulator the node of this thread has
 * crashed, nothing will be waited for any more, and the thread is to come to
 * its end. Not in a turn. */
ULNET_EXPORT int lnet_cond_wait(struct ulnet_cond *cond, pthread_mutex_t *lock,
				uint64_t until);
/* Wakes one that waits, or all. Any thread, with the lock held, or not. */
ULNET_EXPORT void lnet_cond_signal(struct ulnet_cond *cond);
ULNET_EXPORT void lnet_cond_broadcast(struct ulnet_cond *cond);

#ifdef __cplusplus
}
#endif

#endif
