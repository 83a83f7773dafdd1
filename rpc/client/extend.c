/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/client/extend.h"

#include "base/mutation.h"
#include "rpc/client/attempt.h"
#include "rpc/stats/stat.h"

/* Nobody is believed to work on a call for longer than this without saying so
 * again. */
#define EXTEND_MAX (300 * NSEC_PER_SEC)

/* The call that is meant, if it still waits; what is about an attempt before
 * the last real one was overtaken, and so is what is about one that was
 * answered. */
static struct ulrpc_call *extended(const struct import *imp,
				   const struct wire_extension *e)
{
	struct ulrpc_call *call = slots_find(&imp->slots, e->slot);

	if (!call || call->xid != e->xid || !call_is_out(call) ||
	    call->bulk_failed || e->attempt < call->out.attempt ||
	    e->attempt >= call->attempts)
		return NULL;
	return call;
}

static void tell(const struct ulrpc_call *call, const struct wire_extension *e)
{
	static const enum ulrpc_stage stages[] = {
		[WIRE_QUEUED] = ULRPC_STAGE_QUEUED,
		[WIRE_THROTTLED] = ULRPC_STAGE_THROTTLED,
		[WIRE_RUNNING] = ULRPC_STAGE_RUNNING,
		[WIRE_BULK] = ULRPC_STAGE_BULK,
	};
	const struct ulrpc_call_progress progress = {
		.stage = e->state < ARRAY_SIZE(stages) ? stages[e->state]
						       : ULRPC_STAGE_RUNNING,
		.position = e->state == WIRE_QUEUED ? e->position : 0,
		.permille = MIN(e->progress, 1000),
	};

	call->progress(call->progress_arg, &progress);
}

void extend_on_message(struct import *imp, const struct ulnet_event *ev,
		       const struct wire_extend *m)
{
	const struct ulnet_id server = { ev->source, imp->pid };
	uint64_t now = shard_now(imp->shard);
	struct wire_view view = m->extensions.view;
	struct wire_extension e;

	import_heard(imp, now);
	for (uint32_t i = 0; i < m->extensions.n; i++) {
		struct ulrpc_call *call;

		if (!wire_extension_next(&view, &e))
			return;
		call = extended(imp, &e);
		if (!call) {
			stat_count(imp->shard, RPC_STAT_extensions_late);
			continue;
		}
		stat_count(imp->shard, RPC_STAT_extensions_received);
		if (MUTATE(rpc_learn_waiting))
			timeouts_advertised(&call->client->timeouts, e.extend);
		call_extend(call, server,
			    rpc_at(now, MIN(rpc_ns(e.extend), EXTEND_MAX)));
		/* May do anything, but ends no call before its return. */
		if (call->progress)
			tell(call, &e);
	}
}
