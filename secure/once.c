/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/once.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include "secure/record_priv.h"

#define KEY_MAX 32 /* bytes of a cipher's key, at most */
/* the bytes of the head that the tag covers */
#define HEAD_BOUND (SEAL_HEAD - SEAL_TAG)
/* so many bytes OpenSSL takes at a time */
#define SLICE (UINT32_C(1) << 30)

/* The head of such a record: that of the first one of a key, which belongs to
 * no connection, and so has no handle. */
static const uint8_t head[HEAD_BOUND] = { 1, SEAL_PRIVACY };

struct once {
	EVP_CIPHER_CTX *ctx;
	bool seals;
	bool bad; /* some bytes were not sealed or opened */
	uint8_t seal[ONCE_SIZE];
};

static uint8_t *once_head(struct once *o)
{
	return o->seal + 1 + SEAL_SECRET;
}

/* Begins the record, with the key that o->seal says. */
static bool once_begin(struct once *o)
{
	const EVP_CIPHER *type = seal_cipher_of((enum seal_cipher)o->seal[0]);
	const uint8_t *secret = o->seal + 1;
	uint8_t key[KEY_MAX], iv[SEAL_NONCE], nonce[SEAL_NONCE];
	size_t n = (size_t)EVP_CIPHER_get_key_length(type);
	int done;
	bool good;

	BUG_ON(n > KEY_MAX);
	o->ctx = EVP_CIPHER_CTX_new();
	good = o->ctx && seal_expand(secret, "key", "", 0, key, n) &&
	       seal_expand(secret, "iv", "", 0, iv, sizeof(iv));
	if (good) {
		seal_nonce(iv, 0, nonce);
		good = EVP_CipherInit_ex(o->ctx, type, NULL, key, nonce,
					 o->seals) == 1 &&
		       EVP_CipherUpdate(o->ctx, NULL, &done, head,
					HEAD_BOUND) == 1;
	}
	OPENSSL_cleanse(key, sizeof(key));
	return good;
}

static int once_new(const uint8_t *seal, bool seals, struct once **o_p)
{
	struct once *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->seals = seals;
	memcpy(o->seal, seal, ONCE_SIZE);
	if (!once_begin(o)) {
		once_drop(o);
		return -ENOMEM;
	}
	*o_p = o;
	return 0;
}

int once_seal(enum seal_cipher cipher, struct once **o_p)
{
	uint8_t seal[ONCE_SIZE] = { (uint8_t)cipher };
	int rc;

	if (RAND_priv_bytes(seal + 1, SEAL_SECRET) != 1)
		return -EIO;
	memcpy(seal + 1 + SEAL_SECRET, head, HEAD_BOUND);
	rc = once_new(seal, true, o_p);
	OPENSSL_cleanse(seal, sizeof(seal));
	return rc;
}

int once_open(const uint8_t seal[ONCE_SIZE], struct once **o_p)
{
	if ((seal[0] != SEAL_AES_128_GCM &&
	     seal[0] != SEAL_CHACHA20_POLY1305) ||
	    memcmp(seal + 1 + SEAL_SECRET, head, HEAD_BOUND))
		return -EBADMSG;
	return once_new(seal, false, o_p);
}

bool once_opens(const struct once *o)
{
	return !o->seals;
}

void once_next(struct once *o, void *bytes, size_t n)
{
	uint8_t *p = bytes;
	int done;

	while (n && !o->bad) {
		size_t slice = MIN(n, SLICE);

		o->bad = EVP_CipherUpdate(o->ctx, p, &done, p, (int)slice) != 1;
		p += slice;
		n -= slice;
	}
}

static bool once_ends(struct once *o)
{
	uint8_t none[EVP_MAX_BLOCK_LENGTH];
	uint8_t *tag = once_head(o) + HEAD_BOUND;
	int done;

	if (o->bad ||
	    (!o->seals && EVP_CIPHER_CTX_ctrl(o->ctx, EVP_CTRL_AEAD_SET_TAG,
					      SEAL_TAG, tag) != 1))
		return false;
	return EVP_CipherFinal_ex(o->ctx, none, &done) == 1 &&
	       (!o->seals || EVP_CIPHER_CTX_ctrl(o->ctx, EVP_CTRL_AEAD_GET_TAG,
						 SEAL_TAG, tag) == 1);
}

int once_end(struct once *o, uint8_t seal[ONCE_SIZE])
{
	bool good = once_ends(o);
	int rc = good ? 0 : o->seals ? -EIO : -EBADMSG;

	if (good && o->seals)
		memcpy(seal, o->seal, ONCE_SIZE);
	once_drop(o);
	return rc;
}

void once_drop(struct once *o)
{
	if (!o)
		return;
	EVP_CIPHER_CTX_free(o->ctx);
	OPENSSL_cleanse(o, sizeof(*o));
	free(o);
}
