/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Spans: what became of each sampled call, at its client, and of each sampled
 * request, at its server. The CPT puts them into a ring of its own, from which
 * a thread takes them. The CPT never waits: what does not fit is dropped, and
 * counted. The program itself decides what is sampled: it, and its callers, by
 * the flag in the trace; or it asks for a share of its own calls. In virtual
 * time there is no thread: the CPT writes each span at once.
 */
#ifndef RPC_SPANS_H
#define RPC_SPANS_H

#include "rpc/rpc.h"

#define SPAN_ID	     8u
#define SPAN_SAMPLED 1u /* in the last byte of a trace */
#define SPAN_METHOD  64u
/* what a call, or a request, with a trace keeps of its span: its parent's id,
 * and whether there is a span */
#define SPAN_ROOM (SPAN_ID + 1)

struct rpc_span {
	/* TRACE_LENGTH bytes: with the span's own id */
	uint8_t trace[26];
	uint8_t parent[SPAN_ID]; /* 0: none */
	bool is_server, failed;
	uint64_t begin, end; /* ns, of the node's clock */
	struct ulnet_nid local, peer;
	/* constants: how it ended; why, NULL: not said; enum ulrpc_execution */
	const char *status, *cause, *execution;
	uint32_t attempts;
	uint32_t number; /* of the method */
	char service[ULRPC_SERVICE_NAME];
	char method[SPAN_METHOD]; /* "": not known */
};

/* Is a call without a trace to be sampled? To be asked only if s->samples. Any
 * thread. */
bool spans_lot(struct shard *s);
/* Makes a trace that is sampled, without a span, for spans_begin(). Any
 * thread. */
void spans_root(struct shard *s, uint8_t *trace);
/* A call or request with @trace begins. If it is to become a span, puts the id
 * of the span into @trace, in place of the parent's, and that into @room, of
 * SPAN_ROOM bytes. Returns whether it is. Any thread. */
bool spans_begin(struct shard *s, uint8_t *trace, uint8_t *room);
/* Adds a span. Owner. */
void spans_add(struct shard *s, const struct rpc_span *span);
/* @rpc is about to be freed in a child of fork(), where nothing is written. */
void spans_forget(struct ulrpc *rpc);

/* Writes what is left when RPC is closed. */
extern const struct rpc_part span_part;

#endif
