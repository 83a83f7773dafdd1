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

int sync_init(struct sync *sync, const struct shard *s)
{
	int rc = lnet_in_turn() ? -EDEADLK : wait_init(&sync->wait);

	if (rc)
		return rc;
	sem_init(&sync->ended, 0, 0); /* fails on values that are too high */
	sync->is_virtual = s->rpc->is_virtual;
	sync->node = s->node;
	sync->cpt = s->cpt;
	return 0;
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

void sync_give(struct sync *sync, void *reply, size_t length)
{
	sync->length = length;
	if (sync->alloc)
		sync->reply = reply;
	else
		sync->given = reply;
}

void sync_done(struct sync *sync)
{
	/* The waiting thread may free *@sync as soon as it has the semaphore;
	 * in virtual time, not before this thread waits. */
	bool is_virtual = sync->is_virtual;

	sem_post(&sync->ended);
	if (is_virtual)
		wait_wake(&sync->wait);
}

static bool sync_ready(void *arg)
{
	struct sync *sync = arg;

	sync->done = sync->done || !sem_trywait(&sync->ended);
	return sync->done;
}

static void sync_start(void *arg)
{
	struct sync *sync = arg;

	sync->begun = sync->begin(sync);
}

/* Is there nothing to wait for any more? */
static bool sync_over(void *arg)
{
	struct sync *sync = arg;

	return sync->begun || sync_ready(sync);
}

int sync_begin(struct sync *sync, int (*begin)(struct sync *sync))
{
	sync->begin = begin;
	if (lnet_cpt_run(sync->node, sync->cpt, sync_start, sync_over, sync))
		sync_start(sync);
	return sync->begun;
}

static void sync_sleep(void *arg)
{
	struct sync *sync = arg;

	while (sem_wait(&sync->ended)) /* sem_wait() was interrupted */
		;
	sync->done = true;
}

static int sync_wait_once(struct sync *sync)
{
	struct lnet *node = sync->node;
	int rc;

	if (sync->done)
		return 0;
	if (sync->is_virtual)
		return wait_until(&sync->wait, node, sync_ready, sync,
				  TIME_NEVER);
	rc = wait_turns(&sync->wait, node, sync_ready, sync, TIME_NEVER);
	if (rc != -EBUSY)
		return rc;
	lnet_cpt_wait(node, sync->cpt, sync_ready, sync_sleep, sync);
	return 0;
}

/* Copies the reply that was given. */
static void sync_copy(struct sync *sync)
{
	if (sync->reply)
		memcpy(sync->reply, sync->given, MIN(sync->length, sync->size));
	free(sync->given);
}

int sync_wait(struct sync *sync, void (*cancel)(void *call), void *call)
{
	int rc;

	while ((rc = sync_wait_once(sync)) && rc != -ECANCELED) {
		BUG_ON(!call);
		cancel(call);
	}
	if (!rc && sync->given)
		sync_copy(sync);
	return rc;
}
