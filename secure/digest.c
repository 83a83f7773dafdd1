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

struct digest {
	EVP_MD_CTX *ctx;
	bool bad; /* something was not added */
};

int digest_begin(struct digest **d_p)
{
	struct digest *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->ctx = EVP_MD_CTX_new();
	if (!d->ctx || EVP_DigestInit_ex(d->ctx, EVP_sha256(), NULL) != 1) {
		digest_drop(d);
		return -ENOMEM;
	}
	*d_p = d;
	return 0;
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
	d->bad |= EVP_DigestUpdate(d->ctx, bytes, n) != 1;
}

int digest_end(struct digest *d, uint8_t digest[DIGEST_SIZE])
{
	bool good = !d->bad && EVP_DigestFinal_ex(d->ctx, digest, NULL) == 1;

	digest_drop(d);
	return good ? 0 : -ENOMEM;
}

void digest_drop(struct digest *d)
{
	if (!d)
		return;
	EVP_MD_CTX_free(d->ctx);
	free(d);
}
