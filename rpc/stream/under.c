/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stream/under.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/context/context.h"

/* ---- a client's stream in the scope of what it is opened for ---- */

/* One reference is the stream's, until it leaves, and one is the posted
 * work's. The latter is taken with the scope's lock held, before the stream can
 * leave; both are dropped with the channel's. */
struct stream_under {
	struct scope_link in;
	struct channel *ch;
	struct ulrpc_stream *stream; /* NULL: it has left */
	unsigned int refs;
	bool posted; /* guarded by the scope's lock */
	struct ulnet_work work;
};

static void under_unref(struct stream_under *u)
{
	if (--u->refs == 0)
		free(u);
}

static void on_canceled_work(struct ulnet_work *work)
{
	struct stream_under *u = container_of(work, struct stream_under, work);
	struct channel *ch = u->ch;
	struct shard *shard = ch->shard;

	channel_lock(ch);
	if (u->stream)
		rpc_stream_cancel(u->stream);
	under_unref(u);
	channel_unlock(ch);
	channel_put(ch);
	shard_taken(shard);
}

/* The function for scope_link.cancel. */
static void on_scope_canceled(struct scope_link *l)
{
	struct stream_under *u = container_of(l, struct stream_under, in);

	if (u->posted)
		return;
	u->posted = true;
	u->refs++;
	channel_get(u->ch);
	shard_give(u->ch->shard, &u->work);
}

int under_enter(struct ulrpc_stream *s, struct scope *scope)
{
	struct stream_under *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return -ENOMEM;
	u->in.cancel = on_scope_canceled;
	u->ch = s->ch;
	u->stream = s;
	u->refs = 1;
	u->work.fn = on_canceled_work;
	rc = scope_enter(scope, &u->in);
	if (rc)
		free(u);
	else
		s->under = u;
	return rc;
}

void under_leave(struct ulrpc_stream *s)
{
	struct stream_under *u = s->under;

	if (!u)
		return;
	s->under = NULL;
	scope_leave(&u->in);
	u->stream = NULL;
	under_unref(u);
}

/* ---- the scope of a service's stream ---- */

/* Returns the scope of @s, with a reference; NULL: no memory. */
static struct scope *stream_scope(struct ulrpc_stream *s)
{
	if (!s->scope)
		s->scope = scope_new(s->deadline, NULL);
	if (s->scope)
		scope_get(s->scope);
	return s->scope;
}

int ulrpc_context_under_stream(struct ulrpc_context *context,
			       struct ulrpc_stream *stream)
{
	struct scope *scope = NULL;
	bool given_up;
	int rc = 0;

	if (!stream->serving)
		return -EINVAL;
	if (context_is_busy(context))
		return -EBUSY;
	channel_lock(stream->ch);
	given_up = stream->given_up;
	if (stream->answered)
		rc = -EPIPE;
	else if (!(scope = stream_scope(stream)))
		rc = -ENOMEM;
	channel_unlock(stream->ch);
	if (rc)
		return rc;
	/* Nobody else may do it: the scope can be new. */
	if (given_up)
		scope_cancel(scope);
	/* What has come does not change as long as the stream is there. */
	rc = context_enter(context, scope, stream->came);
	if (rc)
		scope_put(scope);
	return rc;
}
