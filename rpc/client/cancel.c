/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/cancel.h"

#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "rpc/control.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"

static void cancels_send(struct import *imp)
{
	const struct wire_control m = {
		.kind = WIRE_CANCEL,
		.cancel = { .connection = imp->connection,
			    .client = imp->handle,
			    .epoch = imp->epoch,
			    .gone = { .n = imp->cancels.n,
				      .list = imp->cancels.list } },
	};
	struct ulnet_id to = { imp->join.to, imp->pid };

	/* By a rail that the server knows us by, since there is no answer. */
	if (import_is_up(imp) &&
	    !control_send(imp->shard, imp->join.made, to, &m))
		stat_count(imp->shard, RPC_STAT_cancels_sent);
	imp->cancels.n = 0;
}

void imports_cancel(struct ulnet_work *w)
{
	struct imports *x = container_of(w, struct imports, cancel_work);
	struct shard *s = x->shard;

	x->telling = false;
	if (s->crashed)
		return;
	while (!list_empty(&x->canceling)) {
		struct import *imp =
			list_first(&x->canceling, struct import, cancels.link);

		list_del(&imp->cancels.link);
		cancels_send(imp);
	}
	shard_release(s);
}

static bool cancels_make(struct cancels *c)
{
	if (!c->list)
		c->list = malloc(WIRE_ENTRIES_MAX * sizeof(c->list[0]));
	return c->list;
}

void cancel_call(const struct ulrpc_call *call)
{
	struct import *imp = call->client->imp;
	struct imports *x = imp->shard->imports;
	struct cancels *c = &imp->cancels;

	if (!import_is_up(imp) || !cancels_make(c))
		return;
	if (c->n == WIRE_ENTRIES_MAX)
		cancels_send(imp);
	c->list[c->n++] =
		(struct wire_gone){ .xid = call->xid, .slot = call->slot };
	if (!list_empty(&c->link))
		return;
	list_add_tail(&x->canceling, &c->link);
	if (x->telling)
		return;
	x->telling = true;
	shard_hold(imp->shard);
	shard_defer(imp->shard, &x->cancel_work);
}
