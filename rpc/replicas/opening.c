/* SPDX-License-Identifier: BSD-3-Clause */
/* The streams of the attempts of a call that opens one. */
#include <errno.h>

#include "rpc/context/context.h"
#include "rpc/replicas/call.h"
#include "rpc/stream/streams.h"
#include "rpc/text.h"

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
	struct ulrpc_streams_conf conf = rs->streams;
	/* What the carrier has no room for is sent to it again. */
	struct ulrpc_retry retry = rs->retry;
	int rc;

	if (r->streams)
		return 0;
	retry.tell_overloaded = rs->tell_overloaded;
	conf.client = rs->conf;
	conf.client.retry = &retry;
	conf.client.nids = &r->address.nid;
	conf.client.nnids = 1;
	rc = streams_open_at(rs->rpc, &opener, &conf, &r->streams);
	if (!rc)
		r->open = streams_count(r->streams);
	return rc;
}

int replicas_stream_begin(struct ulrpc_replicas_call *call, struct replica *r)
{
	struct stream_opening *x = call->opening;
	int rc = replica_open_streams(r);

	x->started = false;
	if (!rc)
		rc = streams_begin(
			r->streams,
			replicas_time_left(x->deadline, shard_now(call->shard)),
			call->context ? call->context->scope : NULL, call->body,
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

void replicas_stream_judge(const struct ulrpc_replicas_call *call,
			   struct ulrpc_outcome *o)
{
	if (!streams_forgotten(call->opening->stream, o))
		return;
	o->cause = ULRPC_CAUSE_FORGOTTEN;
	o->status = cause_status(o->cause);
	o->execution = ULRPC_NOT_EXECUTED;
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
