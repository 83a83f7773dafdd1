/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call of a message of requests, to bytes: inline, so that nothing is done
 * for what the caller leaves out.
 */
#ifndef RPC_WIRE_CALL_H
#define RPC_WIRE_CALL_H

#include "rpc/wire/wire_field.h"

uint8_t *wire_segments_put(uint8_t *p, const struct wire_segments *s);

/* What follows the number of a call and of its attempt. */
static inline uint8_t *put_call_rest(uint8_t *p, const struct wire_call *call)
{
	BUG_ON(call->nbulks > ULRPC_BULKS_MAX);
	p = put_fixed32_field(p, 3, call->method);
	p = put_varint_field(p, 4, call->length);
	p = put_varint_field(p, 5, call->timeout);
	p = put_varint_field(p, 6, call->remaining);
	p = put_varint_field(p, 7, call->flags);
	p = put_varint_field(p, 8, call->priority);
	p = put_varint_field(p, 9, call->reply_max);
	p = put_varint_field(p, 10, call->slot);
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
	return put_end(begin, put_call_rest(p, call));
}

/* The rest of a call without bulks and trace, for others that differ from it in
 * their numbers only. */
struct wire_call_rest {
	uint8_t bytes[64]; /* of that many there is room behind numbers */
	uint8_t length;
};

static inline void wire_call_rest_make(struct wire_call_rest *rest,
				       const struct wire_call *call)
{
	rest->length =
		(uint8_t)(put_call_rest(rest->bytes, call) - rest->bytes);
}

static inline uint8_t *wire_call_put_with(uint8_t *p, uint64_t xid,
					  uint32_t attempt,
					  const struct wire_call_rest *rest)
{
	uint8_t *begin = put_begin(p, 5);

	p = put_varint_field(begin, 1, xid);
	p = put_varint_field(p, 2, attempt);
	memcpy(p, rest->bytes, sizeof(rest->bytes));
	return put_end(begin, p + rest->length);
}

#endif
