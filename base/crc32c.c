/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32c.h"

#include <isa-l/crc.h>

#include "base/util.h"

/* ISA-L takes the length as an int. */
#define CHUNK ((size_t)1 << 30)

/* ISA-L inverts neither the initial value nor the result. It only reads from
 * @p, though its prototype lacks the const. */
static uint32_t crc32c_chunk(uint32_t crc, const uint8_t *p, size_t len)
{
	return ~crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len, ~crc);
}

/* Not inlined, so that crc32c() need not save registers for it. */
static out_of_line uint32_t crc32c_long(uint32_t crc, const uint8_t *p,
					size_t len)
{
	for (; len > CHUNK; p += CHUNK, len -= CHUNK)
		crc = crc32c_chunk(crc, p, CHUNK);
	return crc32c_chunk(crc, p, len);
}

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
	return unlikely(len > CHUNK) ? crc32c_long(crc, data, len)
				     : crc32c_chunk(crc, data, len);
}
