/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that record.c (sealed records) and piece.c (sealed pieces) share.
 */
#ifndef SECURE_RECORD_PRIV_H
#define SECURE_RECORD_PRIV_H

#include <openssl/evp.h>
#include "secure/record.h"

#define SEAL_TAG   16
#define SEAL_NONCE 12

/* HKDF-Expand-Label of RFC 8446, 7.1. @context: @ncontext bytes. */
bool seal_expand(const uint8_t secret[SEAL_SECRET], const char *label,
		 const void *context, size_t ncontext, uint8_t *out, size_t n);
/* Returns OpenSSL's cipher, borrowed. */
const EVP_CIPHER *seal_cipher_of(enum seal_cipher cipher);
/* Makes the nonce of the record or piece with this @counter from @iv. */
void seal_nonce(const uint8_t iv[SEAL_NONCE], uint64_t counter,
		uint8_t nonce[SEAL_NONCE]);

#endif
