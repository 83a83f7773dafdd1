/* SPDX-License-Identifier: BSD-3-Clause */
/* A reply of a message of replies, to bytes: inline, as wire_call.h. */
#ifndef RPC_WIRE_REPLY_H
#define RPC_WIRE_REPLY_H

#include "rpc/wire/wire_field.h"

/* What few replies have: fields 8 and more. */
uint8_t *wire_reply_put_rest(uint8_t *p, const struct wire_reply *reply);

/* As wire.h says of encoding. */
static inline uint8_t *wire_reply_put(uint8_t *p,
				      const struct wire_reply *reply)
{
	uint8_t *begin = put_begin(p, 4);

	p = put_varint_field(begin, 1, reply->xid);
	p = put_varint_field(p, 2, reply->attempt);
	p = put_varint_field(p, 3, reply->status);
	p = put_varint_field(p, 4, reply->error);
	p = put_varint_field(p, 5, reply->length);
	p = put_varint_field(p, 6, reply->queue);
	p = put_varint_field(p, 7, reply->service);
	if (unlikely(reply->retry_after | reply->nbulks | reply->throttled |
		     reply->needed | reply->absent | reply->held |
		     reply->unexecuted))
		p = wire_reply_put_rest(p, reply);
	return put_end(begin, p);
}

#endif
