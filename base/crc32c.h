/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC32C (Castagnoli), as iSCSI and SCTP have it: of what is sent, for
 * detecting accidents, not attackers.
 */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Any thread. @crc: of what comes before @data; 0 at the beginning. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

#endif
