/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are waited for. */
#include <errno.h>
#include <string.h>

#include "rpc/client/client.h"

struct sync {
	struct wait wait;
	bool done;
	bool alloc;  /* the reply is to be a piece of memory of its own */
	void *reply; /* else: NULL, or room for @size bytes */
	size_t size, length;
	struct ulrpc_outcome outcome;
};

static void sync_take(struct sync *sync, const void *reply, size_t length)
{
	if (sync->alloc && length) {
		sync->size = length;
		sync->reply = malloc(length);
	}
	if (sync->alloc && length && !sync->reply) {
		sync->outcome.status = -ENOMEM;
		sync->outcome.cause = ULRPC_CAUSE_NO_MEMORY;
		sync->length = 0;
	} else if (length && sync->reply) {
		memcpy(sync->reply, reply, MIN(length, sync->size));
	}
}

static void on_done(void *arg, const struct ulrpc_outcome *outcome,
		    const void *reply, size_t length)
{
	struct sync *sync = arg;

	sync->outcome = *outcome;
	sync->length = length;
	sync_take(sync, reply, length);
	/* Wakes with the lock held, because @sync is gone when the lock is
	 * free. */
	pthread_mutex_lock(&sync->wait.lock);
	sync->done = true;
	wait_wake(&sync->wait);
	pthread_mutex_unlock(&sync->wait.lock);
}

static bool is_done(void *arg)
{
	return ((struct sync *)arg)->done;
}

/* Returns in any case: under virtual time, when nothing is left to happen, the
 * call ends as canceled. -ECANCELED: the node has crashed, and nobody will come
 * back to @sync. */
static int sync_wait(struct sync *sync, struct lnet *node,
		     struct ulrpc_call *call)
{
	int rc;

	while ((rc = wait_until(&sync->wait, node, is_done, sync,
				TIME_NEVER)) &&
	       rc != -ECANCELED) {
		BUG_ON(!call);
		ulrpc_cancel(call);
	}
	ulrpc_call_put(call);
	return rc;
}

static int sync_call(struct sync *sync, struct ulrpc_client *client,
		     uint32_t method, const void *body, size_t length,
		     const struct ulrpc_call_conf *conf)
{
	struct ulrpc *rpc = client->rpc;
	struct ulrpc_call *call = NULL;
	int rc;

	if (lnet_in_turn())
		return -EDEADLK;
	rc = wait_init(&sync->wait);
	if (rc)
		return rc;
	rc = ulrpc_call(client, method, body, length, conf, on_done, sync,
			rpc->is_virtual ? &call : NULL);
	if (!rc) {
		/* No other call will come that could travel with this one. */
		if (shard_owned(client->shard))
			client_flush(client);
		rc = sync_wait(sync, rpc->node, call);
	}
	wait_fini(&sync->wait);
	return rc;
}

int ulrpc_call_wait(struct ulrpc_client *client, uint32_t method,
		    const void *body, size_t length,
		    const struct ulrpc_call_conf *conf, void *reply,
		    size_t size, size_t *length_p,
		    struct ulrpc_outcome *outcome)
{
	struct sync sync = { .reply = reply, .size = size };
	int rc = sync_call(&sync, client, method, body, length, conf);

	if (rc)
		return rc;
	*outcome = sync.outcome;
	if (length_p)
		*length_p = sync.length;
	return 0;
}

int ulrpc_call_wait_alloc(struct ulrpc_client *client, uint32_t method,
			  const void *body, size_t length,
			  const struct ulrpc_call_conf *conf, void **reply_p,
			  size_t *length_p, struct ulrpc_outcome *outcome)
{
	struct sync sync = { .alloc = true };
	int rc = sync_call(&sync, client, method, body, length, conf);

	if (rc)
		return rc;
	*outcome = sync.outcome;
	*reply_p = sync.reply;
	*length_p = sync.length;
	return 0;
}
