/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of a message of requests, to bytes: inline, so that nothing is done
 * for what the caller leaves out.
 */
#ifndef RPC_WIRE_CALL_H
#define RPC_WIRE_CALL_H

#include "rpc/wire/wire_field.h"

uint8_t *wire_segments_put(uint8_t *p, const struct wire_segments *s);

/* What is between the number of the attempt and the slot. */
static inline uint8_t *put_call_rest(uint8_t *p, const struct wire_call *call)
{
	p = put_fixed32_field(p, 3, call->method);
	p = put_varint_field(p, 4, call->length);
	p = put_varint_field(p, 5, call->timeout);
	p = put_varint_field(p, 6, call->remaining);
	p = put_varint_field(p, 7, call->flags);
	p = put_varint_field(p, 8, call->priority);
	return put_varint_field(p, 9, call->reply_max);
}

/* What follows the slot. */
static inline uint8_t *put_call_end(uint8_t *p, const struct wire_call *call)
{
	BUG_ON(call->nbulks > ULRPC_BULKS_MAX);
	p = put_varint_field(p, 11, call->semantics);
	for (uint32_t i = 0; i < call->nbulks; i++)
		p = wire_segments_put(p, &call->bulk[i]);
	return put_bytes_field(p, 13, call->trace, call->trace_length);
}

/* As wire.h says of encoding. */
static inline uint8_t *wire_call_put(uint8_t *p, const struct wire_call *call)
{
	uint8_t *begin = put_begin(p, 5);

	p = put_varint_field(begin, 1, call->xid);
	p = put_varint_field(p, 2, call->attempt);
	p = put_call_rest(p, call);
	p = put_varint_field(p, 10, call->slot);
	return put_end(begin, put_call_end(p, call));
}

/* The rest of a call without bulks and trace, for others that differ from it in
 * their numbers (xid, attempt, slot) only. */
struct wire_call_rest {
	uint8_t bytes[64]; /* of that many there is room behind numbers */
	uint8_t end[8];
	uint8_t length, end_length;
};

static inline void wire_call_rest_make(struct wire_call_rest *rest,
				       const struct wire_call *call)
{
	rest->length =
		(uint8_t)(put_call_rest(rest->bytes, call) - rest->bytes);
	rest->end_length =
		(uint8_t)(put_call_end(rest->end, call) - rest->end);
}

static inline uint8_t *wire_call_put_with(uint8_t *p, uint64_t xid,
					  uint32_t attempt, uint32_t slot,
					  const struct wire_call_rest *rest)
{
	uint8_t *begin = put_begin(p, 5);

	p = put_varint_field(begin, 1, xid);
	p = put_varint_field(p, 2, attempt);
	memcpy(p, rest->bytes, sizeof(rest->bytes));
	p = put_varint_field(p + rest->length, 10, slot);
	memcpy(p, rest->end, sizeof(rest->end));
	return put_end(begin, p + rest->end_length);
}

#endif
