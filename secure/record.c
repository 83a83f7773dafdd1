/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/record_priv.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>

#include "base/buf.h"

#define FORMAT 1
#define TAG    SEAL_TAG
/* the bytes of the head that the tag covers */
#define HEAD_BOUND (SEAL_HEAD - TAG)
#define NONCE	   SEAL_NONCE

#define KEY_MAX 32 /* bytes of a cipher's key, at most */

/* A context of a pool. */
struct seal_slot {
	EVP_CIPHER_CTX *ctx;   /* NULL: not made yet */
	struct seal_key *user; /* whose key @ctx has; NULL: nobody's */
	uint8_t cipher; /* what @ctx is for: enum seal_cipher; 0: nothing yet */
};

struct seal_key {
	/* what the cipher keeps beside the key; NULL: another key of @pool has
	 * the context that this one had */
	EVP_CIPHER_CTX *ctx;
	struct seal_pool *pool; /* NULL: @ctx is this key's own */
	struct seal_slot *slot; /* where @ctx is from, if there are both */
	uint8_t secret[SEAL_SECRET];
	uint8_t key[KEY_MAX];
	uint8_t iv[NONCE];
	uint8_t cipher; /* enum seal_cipher */
	bool seals;	/* the key seals; false: it opens */
};

/* ---- keys ---- */

bool seal_expand(const uint8_t secret[SEAL_SECRET], const char *label,
		 const void *context, size_t ncontext, uint8_t *out, size_t n)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS13-KDF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
						 (char *)"SHA256", 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY,
						  (void *)secret, SEAL_SECRET),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX,
						  (void *)"tls13 ", 6),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL,
						  (void *)label, strlen(label)),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_DATA,
						  (void *)context, ncontext),
		OSSL_PARAM_construct_end(),
	};
	bool good = ctx && EVP_KDF_derive(ctx, out, n, params) == 1;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return good;
}

static bool expand(const uint8_t secret[SEAL_SECRET], const char *label,
		   uint8_t *out, size_t n)
{
	return seal_expand(secret, label, "", 0, out, n);
}

const EVP_CIPHER *seal_cipher_of(enum seal_cipher cipher)
{
	return cipher == SEAL_AES_128_GCM ? EVP_aes_128_gcm()
					  : EVP_chacha20_poly1305();
}

/* Takes the context of the slot whose turn is over, for @k. Returns NULL if
 * there is no memory. */
static struct seal_slot *slot_take(struct seal_pool *p, struct seal_key *k)
{
	struct seal_slot *slot;

	if (!p->slots)
		p->slots = calloc(SEAL_POOL, sizeof(*p->slots));
	if (!p->slots)
		return NULL;
	slot = &p->slots[p->next++ % SEAL_POOL];
	if (slot->user)
		slot->user->ctx = NULL;
	slot->user = NULL;
	if (!slot->ctx)
		slot->ctx = EVP_CIPHER_CTX_new();
	if (!slot->ctx)
		return NULL;
	slot->user = k;
	k->slot = slot;
	return slot;
}

/* Takes its context from @k, if it has one. A pool keeps the context, and
 * nothing of the key. */
static void key_rest(struct seal_key *k)
{
	if (!k->pool) {
		EVP_CIPHER_CTX_free(k->ctx);
	} else if (k->ctx) {
		EVP_CIPHER_CTX_reset(k->ctx);
		k->slot->cipher = 0;
		k->slot->user = NULL;
	}
	k->ctx = NULL;
}

/* Makes k->ctx, or takes one from the pool. Returns false if there is no
 * memory. */
static out_of_line bool key_wake(struct seal_key *k)
{
	const EVP_CIPHER *type = seal_cipher_of((enum seal_cipher)k->cipher);
	struct seal_slot *slot = k->pool ? slot_take(k->pool, k) : NULL;

	k->ctx = k->pool ? (slot ? slot->ctx : NULL) : EVP_CIPHER_CTX_new();
	if (!k->ctx)
		return false;
	/* Without a type OpenSSL keeps what it has, and takes the new key. */
	if (slot && slot->cipher == k->cipher)
		type = NULL;
	if (EVP_CipherInit_ex(k->ctx, type, NULL, k->key, NULL, k->seals) !=
	    1) {
		key_rest(k);
		return false;
	}
	if (slot)
		slot->cipher = k->cipher;
	return true;
}

static void key_free(struct seal_key *k)
{
	if (!k)
		return;
	key_rest(k);
	OPENSSL_cleanse(k, sizeof(*k));
	free(k);
}

void seal_pool_fini(struct seal_pool *p)
{
	for (unsigned int i = 0; p->slots && i < SEAL_POOL; i++) {
		BUG_ON(p->slots[i].user);
		EVP_CIPHER_CTX_free(p->slots[i].ctx);
	}
	free(p->slots);
	*p = (struct seal_pool){ 0 };
}

/* @seals: the key is for sealing; false: for opening. Returns NULL if there is
 * no memory. */
static struct seal_key *key_new(struct seal_pool *pool, enum seal_cipher cipher,
				const uint8_t *secret, bool seals)
{
	size_t n = (size_t)EVP_CIPHER_get_key_length(seal_cipher_of(cipher));
	struct seal_key *k = calloc(1, sizeof(*k));

	BUG_ON(n > KEY_MAX);
	if (!k)
		return NULL;
	k->pool = pool;
	k->cipher = (uint8_t)cipher;
	k->seals = seals;
	memcpy(k->secret, secret, SEAL_SECRET);
	if (expand(secret, "iv", k->iv, NONCE) &&
	    expand(secret, "key", k->key, n) && key_wake(k))
		return k;
	key_free(k);
	return NULL;
}

/* Returns the key that is @steps >= 1 generations after @k. Writes the secret
 * of the generation before that key to *@before. Returns NULL if there is no
 * memory. */
static struct seal_key *key_after(const struct seal_key *k, unsigned int steps,
				  uint8_t before[SEAL_SECRET])
{
	uint8_t next[SEAL_SECRET];
	struct seal_key *after = NULL;
	bool good = true;

	memcpy(next, k->secret, sizeof(next));
	for (; good && steps; steps--) {
		memcpy(before, next, sizeof(next));
		good = expand(before, "traffic upd", next, sizeof(next));
	}
	if (good)
		after = key_new(k->pool, (enum seal_cipher)k->cipher, next,
				k->seals);
	OPENSSL_cleanse(next, sizeof(next));
	return after;
}

void seal_nonce(const uint8_t iv[SEAL_NONCE], uint64_t counter,
		uint8_t nonce[SEAL_NONCE])
{
	memcpy(nonce, iv, SEAL_NONCE);
	for (unsigned int i = 0; i < 8; i++)
		nonce[SEAL_NONCE - 1 - i] ^= (uint8_t)(counter >> 8 * i);
}

/* Begins a record: sets its nonce, and adds the head and @place to what the tag
 * covers. */
static bool key_begin(struct seal_key *k, bool seals, uint64_t counter,
		      const uint8_t *head, const struct seal_place *place)
{
	uint8_t nonce[NONCE];
	int n;

	seal_nonce(k->iv, counter, nonce);
	return EVP_CipherInit_ex(k->ctx, NULL, NULL, NULL, nonce, seals) == 1 &&
	       EVP_CipherUpdate(k->ctx, NULL, &n, head, HEAD_BOUND) == 1 &&
	       (!place->nbound ||
		EVP_CipherUpdate(k->ctx, NULL, &n, place->bound,
				 (int)place->nbound) == 1);
}

/* ---- the head ---- */

struct head {
	uint8_t version, protection;
	uint16_t zero;
	uint32_t generation;
	uint64_t handle, counter;
};

static void head_put(const struct head *h, uint8_t *out)
{
	out[0] = h->version;
	out[1] = h->protection;
	out[2] = out[3] = 0;
	store_le32(out + 4, h->generation);
	store_le64(out + 8, h->handle);
	store_le64(out + 16, h->counter);
}

static bool head_get(struct head *h, const void *record, size_t length)
{
	struct reader r = reader_of(record, MIN(length, SEAL_HEAD));

	h->version = read_u8(&r);
	h->protection = read_u8(&r);
	h->zero = read_le16(&r);
	h->generation = read_le32(&r);
	h->handle = read_le64(&r);
	h->counter = read_le64(&r);
	(void)read_skip(&r, TAG);
	return !r.bad && h->version == FORMAT && !h->zero &&
	       (h->protection == SEAL_INTEGRITY ||
		h->protection == SEAL_PRIVACY);
}

/* ---- sealing ---- */

int seal_open(struct seal *s, struct seal_pool *pool, enum seal_cipher cipher,
	      const uint8_t *secret, uint64_t now)
{
	*s = (struct seal){ .cipher = cipher,
			    .key = key_new(pool, cipher, secret, true),
			    .since = now,
			    .used_max = SEAL_USED_MAX,
			    .age_max = SEAL_AGE_MAX };
	return s->key ? 0 : -ENOMEM;
}

void seal_close(struct seal *s)
{
	key_free(s->key);
	s->key = NULL;
}

static int seal_renew(struct seal *s, uint64_t now)
{
	uint8_t before[SEAL_SECRET];
	struct seal_key *next = key_after(s->key, 1, before);

	OPENSSL_cleanse(before, sizeof(before));
	if (!next)
		return -ENOMEM;
	key_free(s->key);
	s->key = next;
	s->generation++;
	s->used = 0;
	s->since = now;
	return 0;
}

static bool seal_payload(struct seal *s, const struct iovec *in, unsigned int n,
			 uint8_t *out)
{
	uint64_t total = 0;
	int done;

	for (unsigned int i = 0; i < n; i++) {
		total += in[i].iov_len;
		BUG_ON(total > INT32_MAX);
		if (EVP_CipherUpdate(s->key->ctx, out, &done, in[i].iov_base,
				     (int)in[i].iov_len) != 1)
			return false;
		if (out)
			out += done;
	}
	s->used += total / 16384;
	return true;
}

int seal_record(struct seal *s, enum seal_protection protection,
		const struct seal_place *place, const struct iovec *in,
		unsigned int n, uint64_t now, uint8_t head[SEAL_HEAD],
		uint8_t *out)
{
	struct head h = { FORMAT, (uint8_t)protection, 0,
			  0,	  place->handle,       s->counter };
	uint8_t none[EVP_MAX_BLOCK_LENGTH];
	int rc, nnone;

	BUG_ON(place->nbound > SEAL_BOUND_MAX ||
	       (protection == SEAL_PRIVACY) != (out != NULL));
	if (unlikely(s->used >= s->used_max || now - s->since >= s->age_max)) {
		rc = seal_renew(s, now);
		if (rc)
			return rc;
	}
	if (unlikely(!s->key->ctx) && !key_wake(s->key))
		return -ENOMEM;
	h.generation = s->generation;
	head_put(&h, head);
	/* A counter is used up even if its record fails. */
	s->counter++;
	s->used++;
	if (!key_begin(s->key, true, h.counter, head, place) ||
	    !seal_payload(s, in, n, out) ||
	    EVP_CipherFinal_ex(s->key->ctx, none, &nnone) != 1 ||
	    EVP_CIPHER_CTX_ctrl(s->key->ctx, EVP_CTRL_AEAD_GET_TAG, TAG,
				head + HEAD_BOUND) != 1)
		return -EIO;
	return 0;
}

/* ---- opening ---- */

int unseal_open(struct unseal *u, struct seal_pool *pool,
		enum seal_cipher cipher, const uint8_t *secret)
{
	*u = (struct unseal){ .cipher = cipher,
			      .key = key_new(pool, cipher, secret, false) };
	return u->key ? 0 : -ENOMEM;
}

void unseal_close(struct unseal *u)
{
	key_free(u->key);
	OPENSSL_cleanse(u, sizeof(*u));
}

uint64_t unseal_handle(const void *record, size_t length)
{
	struct head h;

	return head_get(&h, record, length) ? h.handle : 0;
}

static uint64_t *seen_word(struct unseal *u, uint64_t counter)
{
	return &u->seen[counter / 64 % ARRAY_SIZE(u->seen)];
}

/* Was the record with this counter opened, or is it so old that this is not
 * known? The window consists of whole 64-bit words; the last one has the bit of
 * the highest counter. */
static bool is_seen(struct unseal *u, uint64_t counter)
{
	if (!u->any || counter > u->highest)
		return false;
	if (u->highest / 64 - counter / 64 >= ARRAY_SIZE(u->seen))
		return true;
	return *seen_word(u, counter) >> counter % 64 & 1;
}

static void see(struct unseal *u, uint64_t counter)
{
	uint64_t from = u->any ? u->highest / 64 : counter / 64;

	if (!u->any || counter > u->highest) {
		uint64_t words = MIN(counter / 64 - from, ARRAY_SIZE(u->seen));

		for (uint64_t i = 0; i < words; i++)
			*seen_word(u, (counter / 64 - i) * 64) = 0;
		u->highest = counter;
		u->any = true;
	}
	*seen_word(u, counter) |= UINT64_C(1) << counter % 64;
}

/* Opens the payload with @k. With SEAL_PRIVACY it is overwritten, even if it is
 * not genuine. */
static bool key_opens(struct seal_key *k, const struct head *h, uint8_t *record,
		      size_t length, const struct seal_place *place)
{
	uint8_t *payload = record + SEAL_HEAD;
	uint8_t none[EVP_MAX_BLOCK_LENGTH];
	int n;

	return key_begin(k, false, h->counter, record, place) &&
	       EVP_CipherUpdate(k->ctx,
				h->protection == SEAL_PRIVACY ? payload : NULL,
				&n, payload, (int)(length - SEAL_HEAD)) == 1 &&
	       EVP_CIPHER_CTX_ctrl(k->ctx, EVP_CTRL_AEAD_SET_TAG, TAG,
				   record + HEAD_BOUND) == 1 &&
	       EVP_CipherFinal_ex(k->ctx, none, &n) == 1;
}

/* Opens a record whose generation is @steps later than the current one. If the
 * record is genuine, moves @u to that generation. */
static int open_later(struct unseal *u, unsigned int steps,
		      const struct head *h, uint8_t *record, size_t length,
		      const struct seal_place *place)
{
	uint8_t before[SEAL_SECRET];
	struct seal_key *later = key_after(u->key, steps, before);
	int rc = later ? -EBADMSG : -ENOMEM;

	if (later && key_opens(later, h, record, length, place)) {
		key_free(u->key);
		u->key = later;
		u->generation = h->generation;
		memcpy(u->before, before, sizeof(before));
		u->has_before = true;
		rc = 0;
	} else {
		key_free(later);
	}
	OPENSSL_cleanse(before, sizeof(before));
	return rc;
}

static int open_before(const struct unseal *u, const struct head *h,
		       uint8_t *record, size_t length,
		       const struct seal_place *place)
{
	struct seal_key *k = key_new(NULL, u->cipher, u->before, false);
	int rc = -ENOMEM;

	if (k)
		rc = key_opens(k, h, record, length, place) ? 0 : -EBADMSG;
	key_free(k);
	return rc;
}

static int open_with_key(struct unseal *u, const struct head *h,
			 uint8_t *record, size_t length,
			 const struct seal_place *place)
{
	uint32_t steps = h->generation - u->generation;

	if (likely(!steps)) {
		if (unlikely(!u->key->ctx) && !key_wake(u->key))
			return -ENOMEM;
		return key_opens(u->key, h, record, length, place) ? 0
								   : -EBADMSG;
	}
	if (h->generation > u->generation && steps <= 1 + UNSEAL_LOST_MAX)
		return open_later(u, steps, h, record, length, place);
	if (u->has_before && h->generation + 1 == u->generation)
		return open_before(u, h, record, length, place);
	return -EBADMSG;
}

int unseal_record(struct unseal *u, uint8_t *record, size_t length,
		  const struct seal_place *place,
		  enum seal_protection *protection_p)
{
	struct head h;
	int rc;

	BUG_ON(place->nbound > SEAL_BOUND_MAX);
	if (!head_get(&h, record, length) || h.handle != place->handle ||
	    length - SEAL_HEAD > INT32_MAX)
		return -EBADMSG;
	/* A record that was seen is refused before it is opened, because
	 * opening overwrites the payload, which its first receiver may still
	 * use. */
	if (unlikely(is_seen(u, h.counter)))
		return -EALREADY;
	rc = open_with_key(u, &h, record, length, place);
	if (rc)
		return rc;
	see(u, h.counter);
	*protection_p = (enum seal_protection)h.protection;
	return 0;
}
