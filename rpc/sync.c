/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *reply_copy(const void *reply, size_t length, struct ulrpc_outcome *o)
{
	void *copy = malloc(MAX(length, 1));

	if (copy)
		return memcpy(copy, reply, length);
	o->cause = ULRPC_CAUSE_NO_MEMORY;
	o->status = -ENOMEM;
	return NULL;
}

int sync_init(struct sync *sync)
{
	return lnet_in_turn() ? -EDEADLK : wait_init(&sync->wait);
}

void sync_take(struct sync *sync, const void *reply, size_t length,
	       struct ulrpc_outcome *o)
{
	sync->length = length;
	if (sync->alloc && length) {
		sync->reply = reply_copy(reply, length, o);
		sync->length = sync->reply ? length : 0;
	} else if (length && sync->reply) {
		memcpy(sync->reply, reply, MIN(length, sync->size));
	}
}

void sync_done(struct sync *sync)
{
	/* The waiting thread may free *@sync as soon as the lock is free. */
	pthread_mutex_lock(&sync->wait.lock);
	sync->done = true;
	wait_wake(&sync->wait);
	pthread_mutex_unlock(&sync->wait.lock);
}

static bool sync_ready(void *arg)
{
	return ((struct sync *)arg)->done;
}

int sync_wait(struct sync *sync, struct lnet *node, void (*cancel)(void *call),
	      void *call)
{
	int rc;

	while ((rc = wait_until(&sync->wait, node, sync_ready, sync,
				TIME_NEVER)) &&
	       rc != -ECANCELED) {
		BUG_ON(!call);
		cancel(call);
	}
	return rc;
}
