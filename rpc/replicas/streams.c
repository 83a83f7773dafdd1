/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams at one of several servers. The call that opens a stream is a call to
 * one of several servers: it goes on to another one if the stream certainly did
 * not start. Each attempt has a stream of its own, of which the user gets the
 * one that has started. From then on the stream is at that server.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/replicas/call.h"
#include "rpc/stream/streams.h"
#include "rpc/sync.h"
#include "rpc/text.h"
#include "ulnet/stream.h"

static void on_opening_done(void *arg, const struct ulrpc_replicas_outcome *o,
			    const void *reply, size_t length)
{
	struct stream_opening *x = arg;
	struct ulrpc_replicas_outcome own = *o;
	struct ulrpc_stream *s = NULL;

	(void)reply;
	(void)length;
	x->told = true;
	if (x->started) {
		s = x->stream;
		x->stream = NULL;
		ulrpc_stream_watch(s, &x->events);
	} else if (own.call.cause == ULRPC_CAUSE_OK) {
		own.call.cause = ULRPC_CAUSE_BAD_REPLY;
		own.call.status = cause_status(own.call.cause);
	}
	x->fn(x->arg, &own, s);
}

void ulrpc_replicas_stream_conf_init(struct ulrpc_replicas_stream_conf *conf)
{
	*conf = (struct ulrpc_replicas_stream_conf){ .key = NULL };
}

int ulrpc_replicas_stream_open(struct ulrpc_replicas *rs, const char *method,
			       const void *body, size_t length,
			       const struct ulrpc_replicas_stream_conf *conf,
			       ulrpc_replicas_stream_fn fn, void *arg,
			       struct ulrpc_replicas_call **call_p)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = conf ? MIN(conf->deadline,
						 atomic_load(&rs->patience))
					   : 0,
			  .reply_max = ULRPC_TEXT_MAX,
			  .context = conf ? conf->context : NULL },
		.key = conf ? conf->key : NULL,
		.key_length = conf ? conf->key_length : 0,
	};
	struct stream_opening *x;
	uint8_t *whole;
	int rc = -ENOMEM;

	if (!conf || !fn || !method)
		return -EINVAL;
	if (length > ULRPC_STREAM_MESSAGE_MAX)
		return -EMSGSIZE;
	x = calloc(1, sizeof(*x));
	whole = calloc(1, OPEN_HEAD + length);
	if (x && whole) {
		x->events = conf->events;
		x->fn = fn;
		x->deadline =
			rpc_at(shard_now(rs->shard), rpc_ns(conf->deadline));
		x->arg = arg;
		if (length)
			memcpy(whole + OPEN_HEAD, body, length);
		rc = replicas_call_make(rs, ulrpc_method(method), whole,
					OPEN_HEAD + length, &how, x,
					on_opening_done, x, call_p);
	}
	free(whole);
	if (rc)
		free(x);
	return rc;
}

/* ---- waiting ---- */

struct open_sync {
	struct sync sync;
	struct ulrpc_stream *stream;
	struct ulrpc_replicas_outcome outcome;
};

static void on_sync_opened(void *arg, const struct ulrpc_replicas_outcome *o,
			   struct ulrpc_stream *stream)
{
	struct open_sync *own = arg;

	own->outcome = *o;
	own->stream = stream;
	sync_done(&own->sync);
}

static void sync_cancel(void *call)
{
	ulrpc_replicas_cancel(call);
}

int ulrpc_replicas_stream_open_wait(
	struct ulrpc_replicas *rs, const char *method, const void *body,
	size_t length, const struct ulrpc_replicas_stream_conf *conf,
	struct ulrpc_stream **stream_p, struct ulrpc_replicas_outcome *outcome)
{
	struct open_sync own = { .stream = NULL };
	struct ulrpc_replicas_call *call;
	int rc = sync_init(&own.sync, rs->shard);

	if (rc)
		return rc;
	rc = ulrpc_replicas_stream_open(rs, method, body, length, conf,
					on_sync_opened, &own, &call);
	if (!rc) {
		rc = sync_wait(&own.sync, sync_cancel, call);
		ulrpc_replicas_call_put(call);
	}
	sync_fini(&own.sync);
	if (rc)
		return rc;
	*stream_p = own.stream;
	*outcome = own.outcome;
	return 0;
}
