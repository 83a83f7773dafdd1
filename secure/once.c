/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/once.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

/* A key that is used once belongs to no connection, so its records have no
 * handle. */
static const struct seal_place place = { .handle = 0 };

int once_seal(enum seal_cipher cipher, void *bytes, size_t n,
	      uint8_t seal[ONCE_SIZE])
{
	const struct iovec in = { bytes, n };
	struct seal s;
	int rc;

	seal[0] = (uint8_t)cipher;
	if (RAND_priv_bytes(seal + 1, SEAL_SECRET) != 1)
		return -EIO;
	rc = seal_open(&s, NULL, cipher, seal + 1, 0);
	if (rc)
		return rc;
	rc = seal_record(&s, SEAL_PRIVACY, &place, &in, 1, 0,
			 seal + 1 + SEAL_SECRET, bytes);
	seal_close(&s);
	return rc;
}

int once_open(const uint8_t seal[ONCE_SIZE], uint8_t *room, size_t n)
{
	enum seal_protection protection;
	struct unseal u;
	int rc;

	if (seal[0] != SEAL_AES_128_GCM && seal[0] != SEAL_CHACHA20_POLY1305)
		return -EBADMSG;
	memcpy(room, seal + 1 + SEAL_SECRET, SEAL_HEAD);
	rc = unseal_open(&u, NULL, (enum seal_cipher)seal[0], seal + 1);
	if (rc)
		return rc;
	rc = unseal_record(&u, room, SEAL_HEAD + n, &place, &protection);
	unseal_close(&u);
	if (!rc && protection != SEAL_PRIVACY)
		rc = -EBADMSG;
	return rc;
}
