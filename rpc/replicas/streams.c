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
#include "rpc/text.h"
#include "ulnet/stream.h"

struct stream_opening {
	/* of the attempt that is under way, or has just ended; NULL: none */
	struct ulrpc_stream *stream;
	bool started; /* the service has got @stream */
	bool told;    /* @fn was called */
	struct ulrpc_stream_events events;
	ulrpc_replicas_stream_fn fn;
	void *arg;
};

static void opening_put(struct stream_opening *x)
{
	ulrpc_stream_put(x->stream);
	x->stream = NULL;
}

/* The function for carrier_opener.open. */
static int open_carrier(void *arg, const struct ulrpc_client_conf *conf,
			struct ulrpc_client **client_p)
{
	const struct ulrpc_replicas *rs = arg;

	return client_open_at(rs->rpc, rs->shard->cpt, conf, !rs->target,
			      client_p);
}

/* Opens the streams at @r, with what the set has as the configuration of its
 * clients. */
static int replica_open_streams(struct replica *r)
{
	const struct ulrpc_replicas *rs = r->all;
	const struct carrier_opener opener = { open_carrier, r->all };
	struct ulrpc_client_conf conf = rs->conf;
	/* What the carrier has no room for is sent to it again. */
	struct ulrpc_retry retry = rs->retry;

	if (r->streams)
		return 0;
	retry.tell_overloaded = rs->tell_overloaded;
	conf.retry = &retry;
	conf.nids = &r->address.nid;
	conf.nnids = 1;
	return streams_open_at(rs->rpc, &opener, &conf, &r->streams);
}

int replicas_stream_begin(struct ulrpc_replicas_call *call, struct replica *r,
			  uint64_t deadline)
{
	struct stream_opening *x = call->opening;
	int rc = replica_open_streams(r);

	x->started = false;
	if (!rc)
		rc = streams_begin(r->streams, deadline, call->body,
				   &x->stream);
	return rc;
}

void replicas_stream_end(struct ulrpc_replicas_call *call,
			 const struct ulrpc_outcome *o, const void *reply,
			 size_t length)
{
	struct stream_opening *x = call->opening;

	x->started = streams_opened(x->stream, o, reply, length);
	/* Nobody waits for a stream of a call that was canceled. */
	if (!x->started || x->told)
		opening_put(x);
}

void replicas_stream_failed(struct ulrpc_replicas_call *call, int rc)
{
	const struct ulrpc_outcome o = {
		.status = rc,
		.cause = ULRPC_CAUSE_NO_MEMORY,
		.execution = ULRPC_NOT_EXECUTED,
	};

	replicas_stream_end(call, &o, NULL, 0);
}

void replicas_stream_drop(struct ulrpc_replicas_call *call)
{
	if (call->opening->stream)
		streams_forget(call->opening->stream);
	call->opening->stream = NULL;
}

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
		.call = { .deadline = conf ? conf->deadline : 0,
			  .reply_max = ULRPC_TEXT_MAX },
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

struct sync {
	struct wait wait;
	bool done;
	struct ulrpc_stream *stream;
	struct ulrpc_replicas_outcome outcome;
};

static void on_sync_opened(void *arg, const struct ulrpc_replicas_outcome *o,
			   struct ulrpc_stream *stream)
{
	struct sync *sync = arg;

	sync->outcome = *o;
	sync->stream = stream;
	/* The waiting thread may free *@sync as soon as the lock is free. */
	pthread_mutex_lock(&sync->wait.lock);
	sync->done = true;
	wait_wake(&sync->wait);
	pthread_mutex_unlock(&sync->wait.lock);
}

static bool sync_opened(void *arg)
{
	return ((struct sync *)arg)->done;
}

int ulrpc_replicas_stream_open_wait(
	struct ulrpc_replicas *rs, const char *method, const void *body,
	size_t length, const struct ulrpc_replicas_stream_conf *conf,
	struct ulrpc_stream **stream_p, struct ulrpc_replicas_outcome *outcome)
{
	struct sync sync = { .stream = NULL };
	struct lnet *node = rs->rpc->node;
	struct ulrpc_replicas_call *call;
	int rc;

	if (lnet_in_turn())
		return -EDEADLK;
	rc = wait_init(&sync.wait);
	if (rc)
		return rc;
	rc = ulrpc_replicas_stream_open(rs, method, body, length, conf,
					on_sync_opened, &sync, &call);
	if (!rc) {
		while ((rc = wait_until(&sync.wait, node, sync_opened, &sync,
					TIME_NEVER)) &&
		       rc != -ECANCELED)
			ulrpc_replicas_cancel(call);
		ulrpc_replicas_call_put(call);
	}
	wait_fini(&sync.wait);
	if (rc)
		return rc;
	*stream_p = sync.stream;
	*outcome = sync.outcome;
	return 0;
}
