/* SPDX-License-Identifier: BSD-3-Clause */
/* Header data, and the heads that they describe. */
#include "rpc/wire/wire.h"

#include <errno.h>
#include "base/crc32c.h"
#include "rpc/wire/wire_head.h"

uint64_t wire_hdr_data(enum wire_kind kind, const void *head, size_t length)
{
	BUG_ON(length > WIRE_HEAD_MAX);
	return (uint64_t)WIRE_VERSION << 56 | (uint64_t)kind << 48 |
	       (uint64_t)length << 32 | crc32c(0, head, length);
}

int wire_head_check(struct wire_parts *parts, enum wire_kind kind,
		    uint64_t hdr_data, const void *payload, size_t length)
{
	static const uint8_t nothing[1];
	const uint8_t *p = payload ? payload : nothing;
	size_t head = hdr_data >> 32 & 0xffff;

	if (unlikely(wire_hdr_version(hdr_data) != WIRE_VERSION))
		return -EPROTONOSUPPORT;
	if (unlikely((hdr_data >> 48 & 0xff) != kind || head > length))
		return -EPROTO;
	if (unlikely(crc32c(0, p, head) != (uint32_t)hdr_data))
		return -EBADMSG;
	parts->head = (struct wire_view){ p, p + head };
	parts->bodies = (struct wire_view){ p + head, p + length };
	return 0;
}

uint8_t *wire_bodies_put(uint8_t *p, uint32_t length)
{
	if (!length)
		return p;
	*p++ = (uint8_t)TAG(15, WT_LEN);
	return put_varint(p, length);
}
