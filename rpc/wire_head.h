/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What requests, replies and control have in common: a head that the header
 * data describe, and bodies behind it.
 */
#ifndef RPC_WIRE_HEAD_H
#define RPC_WIRE_HEAD_H

#include "rpc/wire_field.h"

/* Cuts the payload into head and bodies. 0 or as wire.h says. */
int wire_head_check(struct wire_cursor *cursor, enum wire_kind kind,
		    uint64_t hdr_data, const void *payload, size_t length);

/* Sums up what an envelope's parts have as bodies. */
struct parts {
	uint64_t bodies;
	uint32_t n;
};

/* The tag of the bodies has been read: their length ends the head. */
static inline const uint8_t *get_bodies(const uint8_t *p, const uint8_t *end,
					uint64_t *length)
{
	p = get_varint(p, end, length);
	return p == end ? p : NULL;
}

/* @length bytes of the bodies, or NULL. */
static inline const uint8_t *take_body(struct wire_cursor *cursor,
				       uint32_t length)
{
	const uint8_t *body = cursor->bodies.p;

	if (unlikely(length > view_length(cursor->bodies)))
		return NULL;
	cursor->bodies.p += length;
	return body;
}

#endif
