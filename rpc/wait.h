/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits until something happens, whichever thread makes the node's turns: its
 * own threads, one of the application's, or the thread that waits.
 */
#ifndef RPC_WAIT_H
#define RPC_WAIT_H

#include "base/util.h"
#include "ulnet/thread.h"

struct wait {
	pthread_mutex_t lock; /* for the state that is waited for */
	struct ulnet_cond changed;
};

/* -errno. */
int wait_init(struct wait *w) must_check;
void wait_fini(struct wait *w);

/* Wakes all who wait. With or without the lock. Any thread. */
static inline void wait_wake(struct wait *w)
{
	lnet_cond_broadcast(&w->changed);
}

/*
 * Waits until @ready(@arg), which is called under the lock, is true, or until
 * @until (ns, as lnet_now(); TIME_NEVER). Makes turns of @node if the calling
 * thread is the one that makes them, else sleeps. Called without the lock.
 * 0, -ETIMEDOUT; -EDEADLK: in a turn, or, in virtual time, nothing can happen
 * any more; -ECANCELED: this is a thread of lnet_thread_start(), and its node
 * has crashed.
 */
int wait_until(struct wait *w, struct lnet *node, bool (*ready)(void *arg),
	       void *arg, uint64_t until);

#endif
