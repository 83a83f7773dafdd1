/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 digests. Bytes that travel unsealed are checked by the digest of
 * them, which comes in a sealed message. */
#ifndef SECURE_DIGEST_H
#define SECURE_DIGEST_H

#include "base/util.h"

#define DIGEST_SIZE 32 /* bytes of a digest */

/* Writes the digest of the @n bytes. Returns 0 or -ENOMEM. Any thread. */
int digest_make(const void *bytes, size_t n,
		uint8_t digest[DIGEST_SIZE]) must_check;

#endif
