/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes that are sealed in place, with a key that is used once. For data that
 * travels apart from the record that describes it, and perhaps arrives when the
 * window of the connection's records has passed. The seal goes into that
 * record, which must have SEAL_PRIVACY: whoever knows the seal can open the
 * bytes.
 */
#ifndef SECURE_ONCE_H
#define SECURE_ONCE_H

#include "secure/record.h"

/* Bytes of a seal: the cipher, a random secret, and the head of the record. */
#define ONCE_SIZE (1 + SEAL_SECRET + SEAL_HEAD)

/* Seals the @n bytes at @bytes in place, less than 2 GiB. Returns 0, or -ENOMEM
 * or -EIO: then the content of @bytes is undefined. Any thread. */
int once_seal(enum seal_cipher cipher, void *bytes, size_t n,
	      uint8_t seal[ONCE_SIZE]) must_check;

/* @room begins with SEAL_HEAD bytes of space; behind them are the @n bytes,
 * which this opens in place. Returns 0; -EBADMSG: they are not what was sealed,
 * and undefined now; or -ENOMEM. Any thread. */
int once_open(const uint8_t seal[ONCE_SIZE], uint8_t *room,
	      size_t n) must_check;

#endif
