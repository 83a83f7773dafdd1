/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a handshake. For handshake.c, and for stream.c, which goes on
 * using the TLS of a handshake. */
#ifndef SECURE_HANDSHAKE_PRIV_H
#define SECURE_HANDSHAKE_PRIV_H

#include <openssl/ssl.h>

#include "secure/handshake.h"

enum handshake_munge {
	HANDSHAKE_NO_MUNGE,  /* MUNGE is not used, or TLS is not done yet */
	HANDSHAKE_MUNGE_ASK, /* munged is to be asked */
	/* the other side is to send: a client sends a credential, a server its
	 * verdict on that */
	HANDSHAKE_MUNGE_WAIT,
};

/* Bytes that come and go are kept in memory of OpenSSL (BIO_s_mem()), which is
 * freed with the SSL. */
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
	/* the error of handshake_feed(), which later calls return, too; 0: none
	 * yet */
	int rc;
	struct identity *peer;
	/* at a server: the name of the cluster's key that the client has proved
	 * to have; "": none */
	char cluster[IDENTITY_NAME_SIZE];
	char error[512];
};

/* As handshake_new(). @protocol, a literal, names what the handshake is for:
 * both sides have to name the same (ALPN). */
struct handshake *handshake_begin(enum handshake_side side, struct keys *keys,
				  const struct ticket *ticket,
				  const char *protocol);
/* Lets OpenSSL go on with the bytes in h->in. Returns 0, or an error of
 * handshake_feed(). */
int handshake_shake(struct handshake *h) must_check;
/* Makes the handshake fail: keeps the reason that OpenSSL gives, or @text, for
 * handshake_error(). Returns the error, as handshake_feed() does. */
int handshake_give_up(struct handshake *h);
int handshake_fail(struct handshake *h, int rc, const char *text);

#endif
