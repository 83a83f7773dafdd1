/* SPDX-License-Identifier: BSD-3-Clause */
/* ulrpc_replicas_call_wait(3). Any thread. */
#include "rpc/client/fetch.h"
#include "rpc/replicas/replicas.h"
#include "rpc/sync.h"

struct call_sync {
	struct sync sync;
	struct shard *shard; /* of the set */
	struct ulrpc_replicas_outcome outcome;
	/* what the call is made of, and the call */
	struct ulrpc_replicas *rs;
	uint32_t method;
	const void *body;
	size_t length;
	const struct ulrpc_replicas_call_conf *conf;
	struct ulrpc_replicas_call *call;
};

static void on_sync_done(void *arg, const struct ulrpc_replicas_outcome *o,
			 const void *reply, size_t length)
{
	struct call_sync *own = arg;

	own->outcome = *o;
	fetch_give(own->shard, &own->sync, reply, length, &own->outcome.call);
	sync_done(&own->sync);
}

static void sync_cancel(void *call)
{
	ulrpc_replicas_cancel(call);
}

static int sync_call_begin(struct sync *sync)
{
	struct call_sync *own = container_of(sync, struct call_sync, sync);

	return ulrpc_replicas_call(own->rs, own->method, own->body, own->length,
				   own->conf, on_sync_done, own, &own->call);
}

/* @own has what the call is made of. */
static int sync_call(struct call_sync *own,
		     struct ulrpc_replicas_outcome *outcome)
{
	int rc = sync_init(&own->sync, own->rs->shard);

	if (rc)
		return rc;
	own->shard = own->rs->shard;
	rc = sync_begin(&own->sync, sync_call_begin);
	if (!rc) {
		rc = sync_wait(&own->sync, sync_cancel, own->call);
		ulrpc_replicas_call_put(own->call);
	}
	sync_fini(&own->sync);
	if (!rc)
		*outcome = own->outcome;
	return rc;
}

int ulrpc_replicas_call_wait(struct ulrpc_replicas *rs, uint32_t method,
			     const void *body, size_t length,
			     const struct ulrpc_replicas_call_conf *conf,
			     void *reply, size_t size, size_t *length_p,
			     struct ulrpc_replicas_outcome *outcome)
{
	struct call_sync own = {
		.sync = { .reply = reply, .size = size },
		.rs = rs,
		.method = method,
		.body = body,
		.length = length,
		.conf = conf,
	};
	int rc = sync_call(&own, outcome);

	if (!rc && length_p)
		*length_p = own.sync.length;
	return rc;
}

int ulrpc_replicas_call_wait_alloc(struct ulrpc_replicas *rs, uint32_t method,
				   const void *body, size_t length,
				   const struct ulrpc_replicas_call_conf *conf,
				   void **reply_p, size_t *length_p,
				   struct ulrpc_replicas_outcome *outcome)
{
	struct call_sync own = {
		.sync = { .alloc = true },
		.rs = rs,
		.method = method,
		.body = body,
		.length = length,
		.conf = conf,
	};
	int rc = sync_call(&own, outcome);

	if (rc)
		return rc;
	*reply_p = own.sync.reply;
	*length_p = own.sync.length;
	return 0;
}
