/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/piece.h"

#include <errno.h>
#include <stdatomic.h>
#include <openssl/crypto.h>

#include "base/buf.h"
#include "secure/record_priv.h"

/* A piece counts as 1 + length / UNIT uses of its key. */
#define UNIT 16384

#define KEY_MAX 32 /* bytes of a cipher's key, at most */

/* What is derived from the secret, for one generation. */
struct derived {
	uint32_t generation;
	uint8_t key[KEY_MAX];
	uint8_t iv[SEAL_NONCE];
};

struct piece_key {
	atomic_uint refs;
	enum seal_cipher cipher;
	uint32_t epoch;
	uint8_t secret[SEAL_SECRET];
	/* generation of the key that seals pieces now */
	uint32_t generation;
	uint64_t counter; /* of the next piece that is sealed */
	uint64_t used;	  /* how much of this generation is used up, in UNITs */
	/* ns, as @now of piece_key_new(): when this generation began */
	uint64_t since;
	uint64_t used_max, age_max;
	/* NULL: nothing is derived yet. Many clients never move bulk */
	struct derived *derived;
};

struct piece {
	struct piece_key *key;
	EVP_CIPHER_CTX *ctx;
	enum seal_protection protection;
	/* of a piece that is being opened: the tag in its seal */
	uint8_t tag[SEAL_TAG];
};

/* ---- seals ---- */

void piece_seal_put(const struct piece_seal *s, uint8_t out[PIECE_SEAL])
{
	memcpy(out, s->tag, SEAL_TAG);
	store_le64(out + 16, s->counter);
	store_le32(out + 24, s->generation);
	store_le32(out + 28, s->epoch);
}

void piece_seal_get(const uint8_t in[PIECE_SEAL], struct piece_seal *s)
{
	memcpy(s->tag, in, SEAL_TAG);
	s->counter = load_le64(in + 16);
	s->generation = load_le32(in + 24);
	s->epoch = load_le32(in + 28);
}

/* ---- keys ---- */

struct piece_key *piece_key_new(enum seal_cipher cipher, const uint8_t *secret,
				uint32_t epoch, uint64_t now)
{
	struct piece_key *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	atomic_init(&k->refs, 1);
	k->cipher = cipher;
	k->epoch = epoch;
	memcpy(k->secret, secret, SEAL_SECRET);
	k->since = now;
	k->used_max = SEAL_USED_MAX;
	k->age_max = SEAL_AGE_MAX;
	return k;
}

static void derived_drop(struct piece_key *k)
{
	if (k->derived)
		OPENSSL_cleanse(k->derived, sizeof(*k->derived));
	free(k->derived);
	k->derived = NULL;
}

struct piece_key *piece_key_ref(struct piece_key *k)
{
	if (k)
		atomic_fetch_add(&k->refs, 1);
	return k;
}

void piece_key_put(struct piece_key *k)
{
	if (!k || atomic_fetch_sub(&k->refs, 1) != 1)
		return;
	derived_drop(k);
	OPENSSL_cleanse(k, sizeof(*k));
	free(k);
}

uint32_t piece_key_epoch(const struct piece_key *k)
{
	return k->epoch;
}

void piece_key_limit(struct piece_key *k, uint64_t used_max, uint64_t age_max)
{
	k->used_max = used_max;
	k->age_max = age_max;
}

/* Derives the key of @generation, unless it is there. Returns NULL if that
 * fails. */
static const struct derived *key_derive(struct piece_key *k,
					uint32_t generation)
{
	size_t n = (size_t)EVP_CIPHER_get_key_length(seal_cipher_of(k->cipher));
	struct derived *d = k->derived;
	uint8_t context[4];

	if (likely(d && d->generation == generation))
		return d;
	BUG_ON(n > KEY_MAX);
	if (!d)
		d = k->derived = malloc(sizeof(*d));
	if (!d)
		return NULL;
	store_le32(context, generation);
	d->generation = generation;
	if (seal_expand(k->secret, "bulk key", context, 4, d->key, n) &&
	    seal_expand(k->secret, "bulk iv", context, 4, d->iv, SEAL_NONCE))
		return d;
	derived_drop(k);
	return NULL;
}

/* ---- pieces ---- */

static void piece_free(struct piece *p)
{
	EVP_CIPHER_CTX_free(p->ctx);
	piece_key_put(p->key);
	free(p);
}

void piece_drop(struct piece *p)
{
	if (p)
		piece_free(p);
}

/* Adds @place to what the tag covers. */
static bool place_add(EVP_CIPHER_CTX *ctx, const struct piece_place *place)
{
	uint8_t bound[16];
	int n;

	store_le32(bound, place->protection);
	store_le32(bound + 4, place->index);
	store_le32(bound + 8, place->number);
	store_le32(bound + 12, place->length);
	return EVP_CipherUpdate(ctx, NULL, &n, bound, sizeof(bound)) == 1;
}

static struct piece *piece_begin(struct piece_key *k, bool seals,
				 const struct piece_place *place,
				 const struct piece_seal *s)
{
	struct piece *p = calloc(1, sizeof(*p));
	const struct derived *d = key_derive(k, s->generation);
	uint8_t nonce[SEAL_NONCE];

	if (!p)
		return NULL;
	p->protection = place->protection;
	p->key = piece_key_ref(k);
	p->ctx = EVP_CIPHER_CTX_new();
	if (p->ctx && d) {
		seal_nonce(d->iv, s->counter, nonce);
		if (EVP_CipherInit_ex(p->ctx, seal_cipher_of(k->cipher), NULL,
				      d->key, nonce, seals) == 1 &&
		    place_add(p->ctx, place))
			return p;
	}
	piece_free(p);
	return NULL;
}

int piece_seal_begin(struct piece_key *k, const struct piece_place *place,
		     uint64_t now, struct piece_seal *s, struct piece **piece_p)
{
	struct piece *p;

	if (unlikely(k->used >= k->used_max || now - k->since >= k->age_max)) {
		k->generation++;
		k->used = 0;
		k->since = now;
	}
	/* A counter is used up even if its piece fails. */
	*s = (struct piece_seal){ .counter = k->counter++,
				  .generation = k->generation,
				  .epoch = k->epoch };
	k->used += 1 + place->length / UNIT;
	p = piece_begin(k, true, place, s);
	if (!p)
		return -ENOMEM;
	*piece_p = p;
	return 0;
}

int piece_open_begin(struct piece_key *k, const struct piece_place *place,
		     const struct piece_seal *s, struct piece **piece_p)
{
	struct piece *p = piece_begin(k, false, place, s);

	if (!p)
		return -ENOMEM;
	memcpy(p->tag, s->tag, SEAL_TAG);
	*piece_p = p;
	return 0;
}

int piece_add(struct piece *p, const void *in, size_t n, void *out)
{
	int done;

	BUG_ON(n > INT32_MAX);
	if (p->protection != SEAL_PRIVACY)
		out = NULL;
	return EVP_CipherUpdate(p->ctx, out, &done, in, (int)n) == 1 ? 0 : -EIO;
}

int piece_seal_end(struct piece *p, uint8_t tag[16])
{
	uint8_t none[EVP_MAX_BLOCK_LENGTH];
	int n;
	bool good = EVP_CipherFinal_ex(p->ctx, none, &n) == 1 &&
		    EVP_CIPHER_CTX_ctrl(p->ctx, EVP_CTRL_AEAD_GET_TAG, SEAL_TAG,
					tag) == 1;

	piece_free(p);
	return good ? 0 : -EIO;
}

int piece_open_end(struct piece *p)
{
	uint8_t none[EVP_MAX_BLOCK_LENGTH];
	int n;
	bool good = EVP_CIPHER_CTX_ctrl(p->ctx, EVP_CTRL_AEAD_SET_TAG, SEAL_TAG,
					p->tag) == 1 &&
		    EVP_CipherFinal_ex(p->ctx, none, &n) == 1;

	piece_free(p);
	return good ? 0 : -EBADMSG;
}
