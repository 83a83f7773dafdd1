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

/* The digest of bytes that come piece by piece. Any thread, one at a time. */
struct digest;

/* Returns 0 or -ENOMEM. */
int digest_begin(struct digest **d_p) must_check;
void digest_add(struct digest *d, const void *bytes, size_t n);
/* Writes the digest of all that was added. Returns 0; -ENOMEM: something was
 * not added. Frees @d. */
int digest_end(struct digest *d, uint8_t digest[DIGEST_SIZE]) must_check;
/* Frees @d. NULL: nothing to be done. */
void digest_drop(struct digest *d);

#endif
