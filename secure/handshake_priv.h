/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a handshake. handshake.c uses them, and stream.c, which goes on
 * with the TLS connection of a handshake. */
#ifndef SECURE_HANDSHAKE_PRIV_H
#define SECURE_HANDSHAKE_PRIV_H

#include <openssl/ssl.h>

#include "secure/handshake.h"

enum handshake_munge {
	HANDSHAKE_NO_MUNGE,  /* MUNGE is not used, or TLS is not done yet */
	HANDSHAKE_MUNGE_ASK, /* munged has to be asked */
	/* the other side's message is awaited: a server waits for a credential,
	 * a client for the verdict on its own */
	HANDSHAKE_MUNGE_WAIT,
};

/* The bytes that come and go are kept in memory BIOs of OpenSSL (BIO_s_mem()),
 * which are freed with the SSL. */
struct handshake {
	enum handshake_side side;
	struct keys_user user;
	SSL *ssl;
	BIO *in, *out;
	size_t fed;
	bool shaken; /* TLS is done; MUNGE may still have to follow */
	bool done;
	enum handshake_munge munge;
	/* at a server: the credential that the client has sent; NULL: none yet
	 */
	char *credential;
	/* the error that handshake_feed() has returned and will return again;
	 * 0: none */
	int rc;
	struct identity *peer;
	/* at a server: the name of the cluster's key that the client has proved
	 * to have; "": none */
	char cluster[IDENTITY_NAME_SIZE];
	char error[512];
};

/* Does what handshake_new() does, with the ALPN protocol @protocol, a literal,
 * which both sides have to name. */
struct handshake *handshake_begin(enum handshake_side side, struct keys *keys,
				  const struct ticket *ticket,
				  const char *protocol);
/* Lets OpenSSL continue with the bytes in h->in. Returns 0, or an error of
 * handshake_feed(). */
int handshake_shake(struct handshake *h) must_check;
/* Makes the handshake fail. The reason that OpenSSL has, or else @text, is kept
 * for handshake_error(). Returns the error that handshake_feed() returns. */
int handshake_give_up(struct handshake *h);
int handshake_fail(struct handshake *h, int rc, const char *text);

#endif
