/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that may block, for layers on a node, under real and virtual time.
 * Manual: lnet_thread_start(3), lnet_cond_init(3).
 *
 * Under real time they are ordinary threads. In the simulator (ulnet_sim(7))
 * they run in lockstep with the loops: only one thread or loop runs at any
 * time, until it ends, or waits in lnet_cond_wait() or another function of
 * ulnet that is documented to wait. Times are ns.
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

/* Starts a thread that runs @fn(@arg). -ENOMEM, or -errno of pthread_create().
 * Any thread. */
ULNET_EXPORT int lnet_thread_start(struct lnet *node, void (*fn)(void *arg),
				   void *arg, struct ulnet_thread **thread_p);
/* Waits until the function of @thread has returned, and frees @thread. Any
 * other thread, before lnet_close() returns, or in ulnet_layer.close(). If this
 * is called in a turn, the function must have returned already: nothing may
 * wait there, and under virtual time nothing can. */
ULNET_EXPORT void lnet_thread_join(struct ulnet_thread *thread);
/* Is @thread the calling thread? */
ULNET_EXPORT bool lnet_thread_is_self(const struct ulnet_thread *thread);

/* ---- waiting: lnet_cond_init(3) ---- */

/* A condition variable. */
struct ulnet_cond {
	pthread_cond_t cond;
	void *opaque[3];
};

/* Returns 0 or -errno. */
ULNET_EXPORT int lnet_cond_init(struct ulnet_cond *cond);
/* No thread may be waiting on @cond. */
ULNET_EXPORT void lnet_cond_destroy(struct ulnet_cond *cond);
/* As pthread_cond_timedwait(): unlocks @lock, waits, and locks it again; may
 * return for no reason. @until: ns on the clock of lnet_now(); UINT64_MAX: no
 * limit. Returns 0; -ETIMEDOUT; -ECANCELED: the simulator has crashed the node
 * of this thread: all waits fail from now on, and the thread has to end. Not in
 * a turn. */
ULNET_EXPORT int lnet_cond_wait(struct ulnet_cond *cond, pthread_mutex_t *lock,
				uint64_t until);
/* Wake up one waiting thread; all waiting threads. Any thread, whether it holds
 * the lock or not. */
ULNET_EXPORT void lnet_cond_signal(struct ulnet_cond *cond);
ULNET_EXPORT void lnet_cond_broadcast(struct ulnet_cond *cond);

#ifdef __cplusplus
}
#endif

#endif
