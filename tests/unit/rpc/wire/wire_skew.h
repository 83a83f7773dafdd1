/* SPDX-License-Identifier: BSD-3-Clause */
/* Rewrites whole messages, heads and bodies, for peers that tests play. */
#ifndef TESTS_WIRE_SKEW_H
#define TESTS_WIRE_SKEW_H

#include "wire_rewrite.h"

static inline size_t skew(uint64_t *hdr_data, const void *bytes, size_t length,
			  uint8_t *to, rewrite_fn fn)
{
	enum wire_kind kind = (enum wire_kind)(*hdr_data >> 48 & 0xff);
	size_t head = *hdr_data >> 32 & 0xffff;
	const uint8_t *in = bytes;
	uint8_t *end = rewrite(to, top(kind),
			       (struct wire_view){ in, in + length }, fn);
	size_t rewritten = (size_t)(end - to);

	*hdr_data = wire_hdr_data(kind, to, rewritten - (length - head));
	return rewritten;
}

#define SKEW(name, fn)                                            \
	static size_t name(uint64_t *hdr_data, const void *bytes, \
			   size_t length, uint8_t *to)            \
	{                                                         \
		return skew(hdr_data, bytes, length, to, fn);     \
	}

SKEW(as_later, write_unknown)
SKEW(as_repeated, write_twice)
SKEW(as_unpacked, write_unpacked)
SKEW(as_padded, write_padded)

/* All ways to rewrite a message; NULL: the message stays as it is. */
static size_t (*const skews[])(uint64_t *hdr_data, const void *bytes,
			       size_t length, uint8_t *to) = {
	NULL, as_later, as_repeated, as_unpacked, as_padded,
};

#endif
