/* SPDX-License-Identifier: BSD-3-Clause */
/* CRC32C (Castagnoli), as in iSCSI and SCTP, to detect damaged messages. It is
 * no protection against attackers. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of the bytes so far. @crc: the result for the bytes
 * before @data; 0 at the start. Any thread. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* Joins checksums: returns that of some bytes followed by @len others. @crc:
 * the checksum of the former; @next: that of the latter. Takes about 1 us. Any
 * thread. */
uint32_t crc32c_join(uint32_t crc, uint32_t next, size_t len);

#endif
