/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole messages, heads and bodies, as others say them: for those who are
 * played by hand. */
#ifndef TESTS_WIRE_SKEW_H
#define TESTS_WIRE_SKEW_H

#include "wire_say.h"

static inline size_t skew(uint64_t *hdr_data, const void *bytes, size_t length,
			  uint8_t *to, say_fn say)
{
	enum wire_kind kind = (enum wire_kind)(*hdr_data >> 48 & 0xff);
	size_t head = *hdr_data >> 32 & 0xffff;
	const uint8_t *in = bytes;
	uint8_t *end = rewrite(to, top(kind),
			       (struct wire_view){ in, in + length }, say);
	size_t said = (size_t)(end - to);

	*hdr_data = wire_hdr_data(kind, to, said - (length - head));
	return said;
}

#define SKEW(name, fn)                                            \
	static size_t name(uint64_t *hdr_data, const void *bytes, \
			   size_t length, uint8_t *to)            \
	{                                                         \
		return skew(hdr_data, bytes, length, to, fn);     \
	}

SKEW(as_later, say_unknown)
SKEW(as_repeated, say_twice)
SKEW(as_unpacked, say_unpacked)
SKEW(as_padded, say_padded)

/* Each of them, and as it is. */
static size_t (*const skews[])(uint64_t *hdr_data, const void *bytes,
			       size_t length, uint8_t *to) = {
	NULL, as_later, as_repeated, as_unpacked, as_padded,
};

#endif
