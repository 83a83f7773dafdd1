/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_replicas_call_wait(3). Any thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/replicas/replicas.h"

struct sync {
	struct wait wait;
	bool done;
	bool alloc; /* the reply is copied to memory that is allocated */
	/* if not @alloc: room for @size bytes of the reply; NULL: none */
	void *reply;
	size_t size, length;
	struct ulrpc_replicas_outcome outcome;
};

/* Copies the reply to new memory. Without memory the outcome says so. */
static void sync_copy(struct sync *sync, const void *reply)
{
	sync->reply = malloc(sync->length);
	if (sync->reply) {
		memcpy(sync->reply, reply, sync->length);
		return;
	}
	sync->length = 0;
	sync->outcome.call.cause = ULRPC_CAUSE_NO_MEMORY;
	sync->outcome.call.status = -ENOMEM;
}

static void on_sync_done(void *arg, const struct ulrpc_replicas_outcome *o,
			 const void *reply, size_t length)
{
	struct sync *sync = arg;

	sync->outcome = *o;
	sync->length = length;
	if (sync->alloc && length)
		sync_copy(sync, reply);
	else if (length && sync->reply)
		memcpy(sync->reply, reply, MIN(length, sync->size));
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

/* Waits for the end of @call. In virtual time, cancels it when nothing else is
 * left to happen. Returns -ECANCELED if the node has crashed: then nobody uses
 * @sync any more. */
static int sync_wait(struct sync *sync, struct lnet *node,
		     struct ulrpc_replicas_call *call)
{
	int rc;

	while ((rc = wait_until(&sync->wait, node, sync_ready, sync,
				TIME_NEVER)) &&
	       rc != -ECANCELED)
		ulrpc_replicas_cancel(call);
	return rc;
}

static int sync_call(struct sync *sync, struct ulrpc_replicas *rs,
		     uint32_t method, const void *body, size_t length,
		     const struct ulrpc_replicas_call_conf *conf,
		     struct ulrpc_replicas_outcome *outcome)
{
	struct lnet *node = rs->rpc->node;
	struct ulrpc_replicas_call *call;
	int rc;

	if (lnet_in_turn())
		return -EDEADLK;
	rc = wait_init(&sync->wait);
	if (rc)
		return rc;
	rc = ulrpc_replicas_call(rs, method, body, length, conf, on_sync_done,
				 sync, &call);
	if (!rc) {
		rc = sync_wait(sync, node, call);
		ulrpc_replicas_call_put(call);
	}
	wait_fini(&sync->wait);
	if (!rc)
		*outcome = sync->outcome;
	return rc;
}

int ulrpc_replicas_call_wait(struct ulrpc_replicas *rs, uint32_t method,
			     const void *body, size_t length,
			     const struct ulrpc_replicas_call_conf *conf,
			     void *reply, size_t size, size_t *length_p,
			     struct ulrpc_replicas_outcome *outcome)
{
	struct sync sync = { .reply = reply, .size = size };
	int rc = sync_call(&sync, rs, method, body, length, conf, outcome);

	if (!rc && length_p)
		*length_p = sync.length;
	return rc;
}

int ulrpc_replicas_call_wait_alloc(struct ulrpc_replicas *rs, uint32_t method,
				   const void *body, size_t length,
				   const struct ulrpc_replicas_call_conf *conf,
				   void **reply_p, size_t *length_p,
				   struct ulrpc_replicas_outcome *outcome)
{
	struct sync sync = { .alloc = true };
	int rc = sync_call(&sync, rs, method, body, length, conf, outcome);

	if (rc)
		return rc;
	*reply_p = sync.reply;
	*length_p = sync.length;
	return 0;
}
