/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a thread waits for that has made a call: its end. The thread has the
 * structure on its stack, and the call's callback fills it in.
 */
#ifndef RPC_SYNC_H
#define RPC_SYNC_H

#include <semaphore.h>
#include "rpc/rpc.h"

/*
 * The thread sleeps on a semaphore, which, unlike a condition whose lock would
 * still be held then, wakes it once, and only if it sleeps; and of which
 * nothing is touched any more when the thread has got it, and frees it. In
 * virtual time, where only the simulator's conditions let threads wait, it
 * looks at the semaphore, and waits for the condition.
 */
struct sync {
	struct wait wait;
	sem_t ended;	 /* posted once, by sync_done() */
	bool done;	 /* the waiting thread has got @ended */
	/* Immutable after sync_init(): RPC may be closed while the thread
	 * waits, so its structures cannot tell. The call ends in a turn of
	 * @cpt. */
	bool is_virtual;
	struct lnet *node;
	unsigned int cpt;
	/* sync_begin()'s, and what that has returned */
	int (*begin)(struct sync *sync);
	int begun;
	bool alloc; /* the reply is copied to memory that is allocated */
	/* if not @alloc: room for @size bytes of the reply; NULL: none */
	void *reply;
	size_t size, length;
	/* the reply, which the waiting thread copies, and frees; NULL: none */
	void *given;
};

/* Called before the call is made, which ends in a turn of @s. Returns 0;
 * -EDEADLK: the thread makes a turn, and must not wait; or another -errno. */
int sync_init(struct sync *sync, const struct shard *s) must_check;
/* Calls begin(@sync), which begins what ends with sync_done(), or returns
 * -errno. If this thread may make the turns in which that happens, it does so
 * until the end; else sync_wait() is to follow. Returns what begin() returned.
 */
int sync_begin(struct sync *sync, int (*begin)(struct sync *sync)) must_check;
/* Waits for the end of @call. In virtual time, calls @cancel(@call) when
 * nothing else is left to happen. Returns -ECANCELED if the node has crashed:
 * then nobody uses @sync any more. */
int sync_wait(struct sync *sync, void (*cancel)(void *call), void *call);
static inline void sync_fini(struct sync *sync)
{
	sem_destroy(&sync->ended);
	wait_fini(&sync->wait);
}

/* For the callback: copies the reply. Without memory *@o says so. */
void sync_take(struct sync *sync, const void *reply, size_t length,
	       struct ulrpc_outcome *o);
/* As sync_take(), for a reply that is the callback's own, and is to be freed by
 * free(). */
void sync_give(struct sync *sync, void *reply, size_t length);
/* For the callback: the call has ended. The thread may free *@sync before this
 * function returns. */
void sync_done(struct sync *sync);

/* Copies @reply, which is not NULL. Returns NULL if there is no memory, and
 * notes that in *@o. */
void *reply_copy(const void *reply, size_t length, struct ulrpc_outcome *o);

#endif
