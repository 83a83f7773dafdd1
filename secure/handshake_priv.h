/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handshake is, for those who go on with its TLS: stream.c. */
#ifndef SECURE_HANDSHAKE_PRIV_H
#define SECURE_HANDSHAKE_PRIV_H

#include <openssl/ssl.h>

#include "secure/handshake.h"

/* Bytes that come and go are kept in memory of OpenSSL (BIO_s_mem()), which is
 * freed with the SSL. */
struct handshake {
	enum handshake_side side;
	struct keys_user user;
	SSL *ssl;
	BIO *in, *out;
	size_t fed;
	bool done;
	int rc; /* of handshake_feed(), once for all */
	struct identity *peer;
	/* server: the cluster's key that the client has shown to have */
	char cluster[IDENTITY_NAME_SIZE];
	char error[512];
};

/* As handshake_new(). @protocol, a literal, says what it is for. */
struct handshake *handshake_begin(enum handshake_side side, struct keys *keys,
				  const struct ticket *ticket,
				  const char *protocol);
/* Goes on with what is in h->in, until it is done: handshake_feed()'s
 * errors. */
int handshake_shake(struct handshake *h) must_check;
/* Ends it: it remembers why OpenSSL has given up, or @text. Returns the error,
 * as handshake_feed(). */
int handshake_give_up(struct handshake *h);
int handshake_fail(struct handshake *h, int rc, const char *text);

#endif
