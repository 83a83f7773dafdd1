/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are waited for. */
#include <errno.h>
#include <string.h>

#include "rpc/client/client.h"

struct sync {
	struct wait wait;
	bool done;
	void *reply;
	size_t size, length;
	struct ulrpc_outcome outcome;
};

static void on_done(void *arg, const struct ulrpc_outcome *outcome,
		    const void *reply, size_t length)
{
	struct sync *sync = arg;

	sync->outcome = *outcome;
	sync->length = length;
	if (reply && sync->reply)
		memcpy(sync->reply, reply, MIN(length, sync->size));
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

int ulrpc_call_wait(struct ulrpc_client *client, uint32_t method,
		    const void *body, size_t length,
		    const struct ulrpc_call_conf *conf, void *reply,
		    size_t size, size_t *length_p,
		    struct ulrpc_outcome *outcome)
{
	struct ulrpc *rpc = client->rpc;
	struct sync sync = { .reply = reply, .size = size };
	struct ulrpc_call *call = NULL;
	int rc;

	if (lnet_in_turn())
		return -EDEADLK;
	rc = wait_init(&sync.wait);
	if (rc)
		return rc;
	rc = ulrpc_call(client, method, body, length, conf, on_done, &sync,
			rpc->is_virtual ? &call : NULL);
	if (!rc) {
		/* No other call will come that could travel with this one. */
		if (shard_owned(client->shard))
			client_flush(client);
		rc = sync_wait(&sync, rpc->node, call);
	}
	if (!rc) {
		*outcome = sync.outcome;
		if (length_p)
			*length_p = sync.length;
	}
	wait_fini(&sync.wait);
	return rc;
}
