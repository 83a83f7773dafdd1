/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handshake: TLS 1.3 of OpenSSL, through memory. Whoever uses it carries the
 * bytes, in order. Both sides prove who they are, and get secrets which nobody
 * else has. TLS carries no data of users.
 *
 * Certificates are P-256 as ulnet-keys(8) makes them, or of any kind that
 * OpenSSL knows. There is no early data.
 *
 * A client that has been connected before shows a ticket that the server gave
 * it, and neither side signs anything. A ticket is good for one connection
 * within an hour, as long as both sides have the same keys (keys.h) as when it
 * was given, and the certificates of both are valid. Peers that use a cluster's
 * key get no tickets: they sign nothing anyway.
 *
 * A client may prove itself by MUNGE (munge.h) instead, if the server accepts
 * that. Then only the server proves itself by TLS. When TLS is done, the client
 * sends a credential through it. The credential carries a value that only these
 * two know, and that no other handshake has. The server answers whether it
 * believes the credential. The handshake does not talk to munged: whoever uses
 * it does, see handshake_question().
 *
 * Owner: one thread at a time.
 */
#ifndef SECURE_HANDSHAKE_H
#define SECURE_HANDSHAKE_H

#include "secure/identity.h"
#include "secure/keys.h"
#include "secure/record.h"

/* Bytes that a side sends in a whole handshake, at most. A peer that sends more
 * is refused. */
#define HANDSHAKE_MAX 32768

struct handshake;
struct ssl_session_st;

/* What a client keeps from one connection to a server for the next one. {0}: no
 * ticket. */
struct ticket {
	struct ssl_session_st *session;
	struct keys *keys; /* the keys (keys.h) by which the ticket was got */
	/* s since 1970: when the first of the certificates in that handshake
	 * ends */
	int64_t until;
};

enum handshake_side { HANDSHAKE_CLIENT, HANDSHAKE_SERVER };

/* Begins a handshake, which takes a reference to @keys. @ticket: from an
 * earlier handshake with the same server, borrowed until this returns; NULL:
 * none. If the ticket is too old, or the server does not accept it, the
 * handshake is a full one. After a handshake that failed, drop the ticket.
 * Returns NULL if there is no memory. */
struct handshake *handshake_new(enum handshake_side side, struct keys *keys,
				const struct ticket *ticket);
void handshake_free(struct handshake *h);

/* Takes @n bytes from the peer, which are copied, and continues the handshake.
 * A client begins with @n = 0. Returns 0 or an error; after an error all later
 * calls return the same one. -EACCES: one of the two sides does not believe the
 * other; -EPROTO: the peer does not speak TLS 1.3, or the two sides have no
 * cipher or protocol in common; -EMSGSIZE: the peer has sent too much; -ENOMEM.
 * After an error there may still be bytes for the peer, which tell it the
 * reason. */
int handshake_feed(struct handshake *h, const void *bytes, size_t n) must_check;
/* Returns all bytes for the peer since the beginning, valid until the next
 * call. Later calls return the same bytes, and more behind them. */
const uint8_t *handshake_bytes(const struct handshake *h, size_t *n_p);
/* Has this side verified the other, and sent everything that proves itself? A
 * client does not know yet whether the server believes it: a server that does
 * not believe it sends an alert later, on which handshake_feed() fails. */
bool handshake_is_done(const struct handshake *h);
/* Returns the keys that the handshake began with. Borrowed. */
struct keys *handshake_keys(const struct handshake *h);
/* Returns whether the handshake waits for an answer of munged. If so, fills in
 * *@q with the question, unless @q is NULL. The result stays true until
 * handshake_answer(). */
bool handshake_question(const struct handshake *h, struct munge_question *q);
/* Gives munged's answer to the handshake. Returns what handshake_feed() does.
 */
int handshake_answer(struct handshake *h,
		     const struct munge_answer *a) must_check;
/* Returns why the handshake has failed; "" if it has not. */
const char *handshake_error(const struct handshake *h);

/* ---- once handshake_is_done() ---- */

/* Returns the identity of the peer. Borrowed: identity_ref() keeps it. */
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
/* For a client: looks for a ticket in what the server has sent after the
 * handshake. Returns false if the server has not sent one, or not yet. The
 * caller owes ticket_drop(). */
bool handshake_ticket(const struct handshake *h, struct ticket *t);
void ticket_drop(struct ticket *t);

#endif
