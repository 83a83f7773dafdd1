/* SPDX-License-Identifier: BSD-3-Clause */
/* What interceptors know of a request, and how they hear of its end. */
#include "rpc/server/serve/intercept.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/stats/stat.h"
#include "rpc/streaming.h"
#include "rpc/text.h"

static enum ulrpc_cause cause_of(unsigned int status)
{
	switch (status) {
	case WIRE_OK:
		return ULRPC_CAUSE_OK;
	case WIRE_FAILED:
		return ULRPC_CAUSE_HANDLER;
	case WIRE_BAD_REQUEST:
		return ULRPC_CAUSE_BAD_REQUEST;
	case WIRE_OVERLOADED:
		return ULRPC_CAUSE_OVERLOADED;
	case WIRE_TOO_LONG:
		return ULRPC_CAUSE_TOO_LONG;
	case WIRE_BULK_FAILED:
		return ULRPC_CAUSE_BULK;
	case STAT_CANCELED:
		return ULRPC_CAUSE_CANCELED;
	default:
		return ULRPC_CAUSE_SHUTDOWN;
	}
}

void request_seen_over(struct request_seen *seen, struct ulrpc_request_end *end)
{
	end->stream = seen->head;
	if (!end->service)
		end->service = seen->service ? seen->service : "";
	if (!end->method)
		end->method = seen->method ? seen->method : "";
	while (seen->n) {
		const struct ulrpc_request_interceptor *i =
			&seen->chain->list[--seen->n];

		if (i->end)
			i->end(i->arg, seen->states[seen->n], end);
	}
}

void request_seen_put(struct request_seen *seen)
{
	request_chain_put(seen->chain);
	free(seen->service);
	free(seen->method);
	free(seen);
}

struct request_seen *request_seen_take(struct ulrpc_request *r)
{
	if (!(r->rare & REQUEST_SEEN))
		return NULL;
	r->rare &= (uint8_t)~REQUEST_SEEN;
	r->seen->service = strdup(r->sc->service->name);
	r->seen->method = strdup(r->method->name);
	return r->seen;
}

void request_seen_end(struct ulrpc_request *r, unsigned int status,
		      uint32_t error, uint64_t queue, uint64_t service)
{
	struct request_seen *seen = r->seen;
	enum ulrpc_cause cause = cause_of(status);
	bool own = cause == ULRPC_CAUSE_HANDLER || cause == ULRPC_CAUSE_BULK;
	struct ulrpc_request_end end = {
		.service = r->sc->service->name,
		.method = r->method->name,
		.cause = cause,
		.status = own ? -(int)error : cause_status(cause),
		.queue = queue / NSEC_PER_USEC,
		.service_time = service / NSEC_PER_USEC,
		.received = r->length - MIN(seen->head, r->length),
		.sent = cause == ULRPC_CAUSE_OK ? r->reply_length : 0,
	};

	request_seen_over(seen, &end);
}

void request_seen_finish(struct ulrpc_request *r, uint32_t status)
{
	uint64_t started = request_started(r);

	/* A worker has replied because its node has crashed. */
	if (shard_is_mute(r->sc->shard))
		return;
	request_seen_end(r, r->unwanted ? STAT_CANCELED : status, r->error,
			 started > r->arrival ? started - r->arrival : 0,
			 r->replied > started ? r->replied - started : 0);
}
