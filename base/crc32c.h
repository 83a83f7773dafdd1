/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C (Castagnoli), as in iSCSI and SCTP, to detect damaged messages. It is
 * no protection against attackers. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of the bytes so far. @crc: the result for the bytes before
 * @data; 0 at the start. Any thread. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* The checksum of bytes whose checksum is @crc, and of @len bytes behind them,
 * whose own checksum is @next. Takes about 1 us. Any thread. */
uint32_t crc32c_join(uint32_t crc, uint32_t next, size_t len);

#endif
