/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting, whichever thread makes the node's turns: its own threads, one of the
 * application's, or the one that waits.
 */
#ifndef RPC_WAIT_H
#define RPC_WAIT_H

#include "base/util.h"
#include "ulnet/thread.h"

/* What is waited for is guarded by @lock, and signalled by @changed. */
struct wait {
	pthread_mutex_t lock;
	struct ulnet_cond changed;
};

/* -errno. */
int wait_init(struct wait *w) must_check;
void wait_fini(struct wait *w);

/* Tells all who wait. Called with the lock held, or not. Any thread. */
static inline void wait_wake(struct wait *w)
{
	lnet_cond_broadcast(&w->changed);
}

/*
 * Waits until @ready(@arg), which is called with the lock held, is true, or
 * until @until (ns, as lnet_now(); TIME_NEVER). Makes turns of @node if this
 * thread is the one that makes them, else sleeps. The caller does not hold the
 * lock.
 * 0, -ETIMEDOUT; -EDEADLK: in a turn, or under virtual time when nothing that
 * could still happen will end it; -ECANCELED: the node of this thread, which is
 * one of lnet_thread_start(), has crashed.
 */
int wait_until(struct wait *w, struct lnet *node, bool (*ready)(void *arg),
	       void *arg, uint64_t until);

#endif
