/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/digest.h"

#include <errno.h>
#include <openssl/evp.h>

int digest_make(const void *bytes, size_t n, uint8_t digest[DIGEST_SIZE])
{
	return EVP_Digest(bytes, n, digest, NULL, EVP_sha256(), NULL) == 1
		       ? 0
		       : -ENOMEM;
}
