/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans of sampled requests. */
#include "rpc/server/serve/request.h"
#include "rpc/stats/stat.h"
#include "rpc/text.h"
#include "rpc/wire/wire.h"

static const char *span_status(const struct ulrpc_request *r, uint32_t end)
{
	const struct ulrpc_outcome o = { .cause = ULRPC_CAUSE_HANDLER,
					 .status = -(int)r->error };

	if (end == WIRE_FAILED)
		return ulrpc_status_name(ulrpc_status_of(&o));
	return end == WIRE_OK ? ulrpc_status_name(ULRPC_STATUS_OK)
			      : stat_kinds[STAT_REQUESTS].end(end);
}

/* A store may know the answer to a call that is not run again: that call was
 * executed, too. */
static enum ulrpc_execution execution_of(const struct ulrpc_request *r,
					 uint32_t end)
{
	if (end == STAT_UNANSWERED || end == WIRE_DOUBTFUL)
		return ULRPC_EXECUTION_UNKNOWN;
	if (request_state(r) == REQUEST_LOST ||
	    1u << r->status & REQUEST_NOT_EXECUTED)
		return ULRPC_NOT_EXECUTED;
	return ULRPC_EXECUTED;
}

void request_span(const struct ulrpc_request *r, uint32_t end)
{
	const struct request_batch *b = r->batch;
	bool replied = request_state(r) != REQUEST_LOST && request_started(r);
	struct rpc_span span = {
		.is_server = true,
		.begin = r->arrival,
		.end = replied ? r->replied + r->fine : shard_now(r->sc->shard),
		.local = b->local,
		.peer = b->source,
		.failed = end != WIRE_OK,
		.status = span_status(r, end),
		.execution = ulrpc_execution_name(execution_of(r, end)),
		.attempts = r->latest + 1,
		.number = r->method->number,
	};

	memcpy(span.trace, r->trace, TRACE_LENGTH);
	memcpy(span.parent, r->span, SPAN_ID);
	text_copy(span.service, sizeof(span.service), r->sc->service->name);
	text_copy(span.method, sizeof(span.method), r->method->name);
	spans_add(r->sc->shard, &span);
}
