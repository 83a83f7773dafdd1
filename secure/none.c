/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the place of all other files of this folder in a build without OpenSSL:
 * there are no keys, and so neither handshakes nor records. */
#include <errno.h>

#include "secure/digest.h"
#include "secure/handshake.h"
#include "secure/keys.h"
#include "secure/once.h"
#include "secure/piece.h"
#include "secure/record.h"
#include "secure/stream.h"

int keys_load(const struct keys_conf *conf, struct keys **keys_p,
	      struct keys_error *err)
{
	(void)conf;
	(void)keys_p;
	text_copy(err->text, sizeof(err->text),
		  "this program was built without TLS (--without-tls)");
	return -EOPNOTSUPP;
}

/* Without keys nobody calls the functions below. */

struct keys *keys_ref(struct keys *k)
{
	return k;
}

void keys_put(struct keys *k)
{
	(void)k;
}

const char *keys_doubt(const struct keys *k, const struct identity *id)
{
	(void)k;
	(void)id;
	return NULL;
}

void keys_munge(const struct keys *k, const struct munge_question *q,
		struct munge_answer *a)
{
	(void)k;
	(void)q;
	(void)a;
}

struct identity *keys_self(const struct keys *k)
{
	(void)k;
	return NULL;
}

struct handshake *handshake_new(enum handshake_side side, struct keys *keys,
				const struct ticket *ticket)
{
	(void)side;
	(void)keys;
	(void)ticket;
	return NULL;
}

void handshake_free(struct handshake *h)
{
	(void)h;
}

int handshake_feed(struct handshake *h, const void *bytes, size_t n)
{
	(void)h;
	(void)bytes;
	(void)n;
	return -EOPNOTSUPP;
}

const uint8_t *handshake_bytes(const struct handshake *h, size_t *n_p)
{
	(void)h;
	*n_p = 0;
	return NULL;
}

bool handshake_is_done(const struct handshake *h)
{
	(void)h;
	return false;
}

struct keys *handshake_keys(const struct handshake *h)
{
	(void)h;
	return NULL;
}

bool handshake_question(const struct handshake *h, struct munge_question *q)
{
	(void)h;
	(void)q;
	return false;
}

int handshake_answer(struct handshake *h, const struct munge_answer *a)
{
	(void)h;
	(void)a;
	return -EOPNOTSUPP;
}

const char *handshake_error(const struct handshake *h)
{
	(void)h;
	return "";
}

struct identity *handshake_peer(const struct handshake *h)
{
	(void)h;
	return NULL;
}

bool handshake_was_resumed(const struct handshake *h)
{
	(void)h;
	return false;
}

int handshake_secrets(const struct handshake *h, enum handshake_use use,
		      const void *context, size_t n,
		      uint8_t to_server[SEAL_SECRET],
		      uint8_t to_client[SEAL_SECRET])
{
	(void)h;
	(void)use;
	(void)context;
	(void)n;
	(void)to_server;
	(void)to_client;
	return -EOPNOTSUPP;
}

enum seal_cipher handshake_cipher(const struct handshake *h)
{
	(void)h;
	return SEAL_AES_128_GCM;
}

bool handshake_ticket(const struct handshake *h, struct ticket *t)
{
	(void)h;
	(void)t;
	return false;
}

void ticket_drop(struct ticket *t)
{
	(void)t;
}

struct stream *stream_new(enum handshake_side side, struct keys *keys)
{
	(void)side;
	(void)keys;
	return NULL;
}

void stream_free(struct stream *s)
{
	(void)s;
}

void stream_renew_after(struct stream *s, uint64_t records)
{
	(void)s;
	(void)records;
}

size_t stream_room(const struct stream *s)
{
	(void)s;
	return 0;
}

int stream_take(struct stream *s, const void *bytes, size_t n)
{
	(void)s;
	(void)bytes;
	(void)n;
	return -EOPNOTSUPP;
}

void stream_end(struct stream *s)
{
	(void)s;
}

const uint8_t *stream_bytes(const struct stream *s, size_t *n_p)
{
	(void)s;
	*n_p = 0;
	return NULL;
}

void stream_sent(struct stream *s, size_t n)
{
	(void)s;
	(void)n;
}

bool stream_is_up(const struct stream *s)
{
	(void)s;
	return false;
}

struct identity *stream_peer(const struct stream *s)
{
	(void)s;
	return NULL;
}

ssize_t stream_read(struct stream *s, void *to, size_t n)
{
	(void)s;
	(void)to;
	(void)n;
	return -EOPNOTSUPP;
}

ssize_t stream_write(struct stream *s, const void *from, size_t n)
{
	(void)s;
	(void)from;
	(void)n;
	return -EOPNOTSUPP;
}

void stream_close(struct stream *s)
{
	(void)s;
}

const char *stream_error(const struct stream *s)
{
	(void)s;
	return "";
}

void seal_pool_fini(struct seal_pool *p)
{
	(void)p;
}

int seal_open(struct seal *s, struct seal_pool *pool, enum seal_cipher cipher,
	      const uint8_t *secret, uint64_t now)
{
	(void)s;
	(void)pool;
	(void)cipher;
	(void)secret;
	(void)now;
	return -EOPNOTSUPP;
}

void seal_close(struct seal *s)
{
	(void)s;
}

int seal_record(struct seal *s, enum seal_protection protection,
		const struct seal_place *place, const struct iovec *in,
		unsigned int n, uint64_t now, uint8_t head[SEAL_HEAD],
		uint8_t *out)
{
	(void)s;
	(void)protection;
	(void)place;
	(void)in;
	(void)n;
	(void)now;
	(void)head;
	(void)out;
	return -EOPNOTSUPP;
}

int unseal_open(struct unseal *u, struct seal_pool *pool,
		enum seal_cipher cipher, const uint8_t *secret)
{
	(void)u;
	(void)pool;
	(void)cipher;
	(void)secret;
	return -EOPNOTSUPP;
}

void unseal_close(struct unseal *u)
{
	(void)u;
}

uint64_t unseal_handle(const void *record, size_t length)
{
	(void)record;
	(void)length;
	return 0;
}

int unseal_record(struct unseal *u, uint8_t *record, size_t length,
		  const struct seal_place *place,
		  enum seal_protection *protection_p)
{
	(void)u;
	(void)record;
	(void)length;
	(void)place;
	(void)protection_p;
	return -EOPNOTSUPP;
}

int digest_make(const void *bytes, size_t n, uint8_t digest[DIGEST_SIZE])
{
	(void)bytes;
	(void)n;
	(void)digest;
	return -EOPNOTSUPP;
}

int digest_begin(struct digest **d_p)
{
	(void)d_p;
	return -EOPNOTSUPP;
}

void digest_add(struct digest *d, const void *bytes, size_t n)
{
	(void)d;
	(void)bytes;
	(void)n;
}

int digest_end(struct digest *d, uint8_t digest[DIGEST_SIZE])
{
	(void)d;
	(void)digest;
	return -EOPNOTSUPP;
}

void digest_drop(struct digest *d)
{
	(void)d;
}

void piece_seal_put(const struct piece_seal *s, uint8_t out[PIECE_SEAL])
{
	(void)s;
	(void)out;
}

void piece_seal_get(const uint8_t in[PIECE_SEAL], struct piece_seal *s)
{
	(void)in;
	(void)s;
}

struct piece_key *piece_key_new(enum seal_cipher cipher, const uint8_t *secret,
				uint32_t epoch, uint64_t now)
{
	(void)cipher;
	(void)secret;
	(void)epoch;
	(void)now;
	return NULL;
}

struct piece_key *piece_key_ref(struct piece_key *k)
{
	return k;
}

void piece_key_put(struct piece_key *k)
{
	(void)k;
}

uint32_t piece_key_epoch(const struct piece_key *k)
{
	(void)k;
	return 0;
}

void piece_key_limit(struct piece_key *k, uint64_t used_max, uint64_t age_max)
{
	(void)k;
	(void)used_max;
	(void)age_max;
}

int piece_seal_begin(struct piece_key *k, const struct piece_place *place,
		     uint64_t now, struct piece_seal *s, struct piece **piece_p)
{
	(void)k;
	(void)place;
	(void)now;
	(void)s;
	(void)piece_p;
	return -EOPNOTSUPP;
}

int piece_open_begin(struct piece_key *k, const struct piece_place *place,
		     const struct piece_seal *s, struct piece **piece_p)
{
	(void)k;
	(void)place;
	(void)s;
	(void)piece_p;
	return -EOPNOTSUPP;
}

int piece_add(struct piece *p, const void *in, size_t n, void *out)
{
	(void)p;
	(void)in;
	(void)n;
	(void)out;
	return -EOPNOTSUPP;
}

int piece_seal_end(struct piece *p, uint8_t tag[16])
{
	(void)p;
	(void)tag;
	return -EOPNOTSUPP;
}

int piece_open_end(struct piece *p)
{
	(void)p;
	return -EOPNOTSUPP;
}

void piece_drop(struct piece *p)
{
	(void)p;
}

int once_seal(enum seal_cipher cipher, struct once **o_p)
{
	(void)cipher;
	(void)o_p;
	return -EOPNOTSUPP;
}

int once_open(const uint8_t seal[ONCE_SIZE], struct once **o_p)
{
	(void)seal;
	(void)o_p;
	return -EOPNOTSUPP;
}

bool once_opens(const struct once *o)
{
	(void)o;
	return false;
}

void once_next(struct once *o, void *bytes, size_t n)
{
	(void)o;
	(void)bytes;
	(void)n;
}

int once_end(struct once *o, uint8_t seal[ONCE_SIZE])
{
	(void)o;
	(void)seal;
	return -EOPNOTSUPP;
}

void once_drop(struct once *o)
{
	(void)o;
}
