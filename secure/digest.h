/* SPDX-License-Identifier: BSD-3-Clause */
/* Digests, by which bytes are recognized that come unsealed: their SHA-256
 * comes in a sealed message. */
#ifndef SECURE_DIGEST_H
#define SECURE_DIGEST_H

#include "base/util.h"

#define DIGEST_SIZE 32 /* bytes */

/* Writes the digest of the @n bytes. Returns 0 or -ENOMEM. Any thread. */
int digest_make(const void *bytes, size_t n,
		uint8_t digest[DIGEST_SIZE]) must_check;

#endif
