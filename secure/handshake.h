/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handshake: TLS 1.3 of OpenSSL, through memory. Whoever uses it carries the
 * bytes, in order. Both sides prove who they are, and get secrets which nobody
 * else has. No data go through TLS itself.
 *
 * Certificates are P-256 as ulnet-keys(8) makes them, or what else OpenSSL
 * knows. There is no early data.
 *
 * A client that has been connected before shows a ticket of the server, and
 * neither side signs anything. A ticket is good for one connection, within an
 * hour, while both have the keys (keys.h) that they had, and the certificates
 * of both are valid. Those who use a cluster's key have no tickets: they sign
 * nothing anyway.
 *
 * Owner: one thread at a time.
 */
#ifndef SECURE_HANDSHAKE_H
#define SECURE_HANDSHAKE_H

#include "secure/identity.h"
#include "secure/keys.h"
#include "secure/record.h"

/* Bytes that a side sends in all, at most; what is beyond is refused. */
#define HANDSHAKE_MAX 32768

struct handshake;
struct ssl_session_st;

/* What a client keeps between two connections to a server. {0}: nothing. */
struct ticket {
	struct ssl_session_st *session;
	struct keys *keys; /* with which it was got */
	int64_t until;	   /* s since 1970: when a certificate ends */
};

enum handshake_side { HANDSHAKE_CLIENT, HANDSHAKE_SERVER };

/* @ticket: of an earlier handshake with the same server, borrowed until return;
 * NULL: none. One that is of no use any more does no harm: all begins anew.
 * After a handshake that failed, drop it. Returns NULL: no memory. The keys get
 * a reference. */
struct handshake *handshake_new(enum handshake_side side, struct keys *keys,
				const struct ticket *ticket);
void handshake_free(struct handshake *h);

/* Takes @n bytes of the peer, which are copied, and goes on. @n may be 0: a
 * client begins so. Returns 0, or, once for all: -EACCES: the peer is not
 * believed, or does not believe this side; -EPROTO: it does not speak TLS 1.3,
 * or there is nothing that both sides know; -EMSGSIZE; -ENOMEM. After an error
 * there may still be bytes for the peer, which tell it why. */
int handshake_feed(struct handshake *h, const void *bytes, size_t n) must_check;
/* All bytes for the peer since the beginning, valid until the next call; they
 * are only added to. */
const uint8_t *handshake_bytes(const struct handshake *h, size_t *n_p);
/* Has this side proved the other, and shown all that it shows? A client's
 * server may still refuse it: this shows when it says more, or nothing. */
bool handshake_is_done(const struct handshake *h);
/* Why it has failed; "" if it has not. */
const char *handshake_error(const struct handshake *h);

/* ---- when it is done ---- */

/* Borrowed: identity_ref() keeps it. */
struct identity *handshake_peer(const struct handshake *h);
bool handshake_was_resumed(const struct handshake *h);
/* What secrets are for: records (record.h), or pieces (piece.h). */
enum handshake_use { HANDSHAKE_RECORDS, HANDSHAKE_PIECES };
/* Fills in the secrets of both directions, SEAL_SECRET bytes each. They are
 * bound to @use and @context: both sides get the same ones if they give the
 * same @n bytes. Returns 0 or -ENOMEM. */
int handshake_secrets(const struct handshake *h, enum handshake_use use,
		      const void *context, size_t n,
		      uint8_t to_server[SEAL_SECRET],
		      uint8_t to_client[SEAL_SECRET]) must_check;
enum seal_cipher handshake_cipher(const struct handshake *h);
/* A client's ticket for next time, when it has one: takes what the server has
 * sent behind the handshake. false: there is none (yet). The caller owes
 * ticket_drop(). */
bool handshake_ticket(const struct handshake *h, struct ticket *t);
void ticket_drop(struct ticket *t);

#endif
