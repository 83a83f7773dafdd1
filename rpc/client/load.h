/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A load: what goes into the next message of a client, chosen from its queues
 * until the message is full. A batch is made of it (batch.h).
 *
 * It borrows the calls: those that it has are on none of the client's lists.
 *
 * Thread: owner.
 */
#ifndef RPC_LOAD_H
#define RPC_LOAD_H

#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/text.h"
#include "rpc/wire/wire.h"

/* bytes: a body of at least this length is sent from the call's own memory */
#define LOAD_BORROWED_MIN 1024
/* bulks that all calls of a batch have together, at most */
#define LOAD_BULKS_MAX 64

/* The contents of a batch that is being made. */
struct load {
	struct ulrpc_client *client;
	uint64_t now;
	unsigned int n, nsegments, niov;
	/* bytes of the head, of all bodies, and of those bodies that are sent
	 * from the calls' memory */
	size_t head, bodies, borrowed;
	/* bytes that all replies together may take */
	uint32_t need;
	/* slots that can be taken, for calls that have none */
	uint32_t slots;
	/* ns: the latest deadline of the calls */
	uint64_t until;
	uint64_t due; /* ns: when answers are expected */
	/* calls that are sent again; they are the first ones */
	unsigned int nagain;
	bool apart; /* of some call more is to be done than to copy its body */
	struct ulrpc_call *calls[WIRE_CALLS_MAX];
	struct wire_segments segments[LOAD_BULKS_MAX];
};

/* Makes @l an empty load for @c. */
static inline void load_begin(struct load *l, struct ulrpc_client *c)
{
	l->client = c;
	l->now = shard_now(c->shard);
	l->n = l->nsegments = l->nagain = 0;
	l->niov = 1;
	l->head = WIRE_REQUESTS_BOUND + WIRE_CHECKSUM_BOUND +
		  WIRE_FLAVOUR_BOUND + WIRE_SERVICE_BOUND + WIRE_BODIES_BOUND;
	l->bodies = l->borrowed = 0;
	l->apart = false;
	l->need = 0;
	l->until = 0;
	l->due = TIME_NEVER;
}

/* Takes up to @n calls from the client's queues, as many as fit into a message.
 * Returns 0; or -errno, and *@call_p cannot be taken: -EMSGSIZE: no message has
 * room for it; -EINPROGRESS: its bulks are not sealed yet, see call_seal();
 * others: its bulks cannot be attached. The caller takes that call off its
 * queue, and goes on. */
int load_fill(struct load *l, unsigned int n, struct ulrpc_call **call_p);
/* Takes calls that are asked about, from client.ask. */
void load_fill_queries(struct load *l);

static inline bool load_borrows(const struct ulrpc_call *call)
{
	return call->length >= LOAD_BORROWED_MIN;
}

/* What of the body of a call is sent from its memory: all of it, unless the
 * message brings the metadata in another way (CALL_NAMED). */
struct load_body {
	uint8_t *start;
	uint32_t length;
};

static inline struct load_body load_body(struct ulrpc_call *call)
{
	uint32_t skip =
		call->flags & CALL_NAMED ? call_context(call)->name.skip : 0;

	return (struct load_body){ call_body(call) + skip,
				   call->length - skip };
}

static inline struct wire_view call_trace_view(struct ulrpc_call *call)
{
	const uint8_t *p;

	if (likely(!(call->flags & CALL_TRACED)))
		return (struct wire_view){ NULL, NULL };
	p = call_trace(call);
	return (struct wire_view){ p, p + TRACE_LENGTH };
}

#endif
