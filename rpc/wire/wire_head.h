/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What requests, replies and control have in common: a head that the header
 * data describe, and bodies behind it.
 */
#ifndef RPC_WIRE_HEAD_H
#define RPC_WIRE_HEAD_H

#include "rpc/wire/wire_field.h"

/* What a message consists of. */
struct wire_parts {
	struct wire_view head;
	struct wire_view bodies;
};

/* Cuts the payload into its parts. 0 or as wire.h says. */
int wire_head_check(struct wire_parts *parts, enum wire_kind kind,
		    uint64_t hdr_data, const void *payload, size_t length);

/* The tag of the bodies has been read: their length ends the head. */
static inline const uint8_t *get_bodies(const uint8_t *p, const uint8_t *end,
					uint64_t *length)
{
	p = get_varint(p, end, length);
	return p == end ? p : NULL;
}

#endif
