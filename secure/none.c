/* SPDX-License-Identifier: BSD-3-Clause */
/* Instead of all other files, if this was built without OpenSSL: there are no
 * keys, and so neither handshakes nor records. */
#include <errno.h>

#include "secure/digest.h"
#include "secure/handshake.h"
#include "secure/keys.h"
#include "secure/record.h"

int keys_load(const struct keys_conf *conf, struct keys **keys_p,
	      struct keys_error *err)
{
	(void)conf;
	(void)keys_p;
	text_copy(err->text, sizeof(err->text),
		  "this program was built without TLS (--without-tls)");
	return -EOPNOTSUPP;
}

/* Nobody has keys, so what follows is not called. */

struct keys *keys_ref(struct keys *k)
{
	return k;
}

void keys_put(struct keys *k)
{
	(void)k;
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

int handshake_secrets(const struct handshake *h, const void *context, size_t n,
		      uint8_t to_server[SEAL_SECRET],
		      uint8_t to_client[SEAL_SECRET])
{
	(void)h;
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

int seal_open(struct seal *s, enum seal_cipher cipher, const uint8_t *secret,
	      uint64_t now)
{
	(void)s;
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

int unseal_open(struct unseal *u, enum seal_cipher cipher,
		const uint8_t *secret)
{
	(void)u;
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
