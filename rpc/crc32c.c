/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/crc32c.h"

#include <isa-l/crc.h>

#include "base/util.h"

/* ISA-L takes the length as an int. */
#define CHUNK ((size_t)1 << 30)

/* ISA-L neither inverts the value that it begins with nor the result. */
uint32_t rpc_crc32c(uint32_t crc, const void *data, size_t len)
{
	unsigned char *p = (unsigned char *)(uintptr_t)data; /* only read */

	crc = ~crc;
	while (len) {
		size_t n = MIN(len, CHUNK);

		crc = crc32_iscsi(p, (int)n, crc);
		p += n;
		len -= n;
	}
	return ~crc;
}
