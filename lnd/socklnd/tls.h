/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of a net with tls: required. TLS begins with the first byte after
 * TCP has connected, and all of socklnd's protocol goes through it
 * (secure/stream.h). Which variant a connection is, its net says once for all:
 * sock_conn.tls is NULL on others, whose messages know nothing of this.
 *
 * The NID that a peer names in its HELLO has to be one that its certificate
 * speaks for. Who has a cluster's key speaks for any NID.
 *
 * Bytes in memory, for each connection: what secure/stream.h bounds. A stream
 * that is full takes no more, and then the connection waits for its socket, as
 * one without TLS does. What has come is decrypted at once, unless LNet has
 * paused reading; then the socket is not read either.
 *
 * Owner: the connection's.
 */
#ifndef LND_SOCKLND_TLS_H
#define LND_SOCKLND_TLS_H

#include <sys/types.h>
#include <sys/uio.h>
#include "base/util.h"
#include "ulnet/nid.h"

struct identity;
struct lnd_ni;
struct sock_conn;
struct sock_cpt;
struct sock_ni;
struct sock_peer;

/* What a stream of TLS begins with; no request of socklnd does (proto.h). */
#define SOCK_TLS_FIRST 0x16

/* Reads the tunable tls of the NI, which takes the node's keys then. 0;
 * -ENOKEY, -EOPNOTSUPP, with ni->why. */
int sock_tls_startup(struct sock_ni *sni) must_check;
void sock_tls_free(struct sock_ni *sni);

/* ---- a connection ---- */

/* Begins TLS on @conn, which this node has opened, or which has begun with the
 * @n bytes at @bytes, and writes what there is to write. 0 or -errno. */
int sock_tls_connect(struct sock_conn *conn, struct sock_ni *sni) must_check;
int sock_tls_accept(struct sock_conn *conn, struct sock_ni *sni,
		    const void *bytes, size_t n) must_check;
/* Ends TLS, and tells the peer so if the socket takes it. No effect without
 * TLS. */
void sock_tls_free_conn(struct sock_conn *conn);

/* Reads the socket once. 0: something has come, or the end; -EAGAIN: nothing
 * now, or the stream takes no more; -EKEYREJECTED: the peer is not believed,
 * or does not believe this node; -errno. */
int sock_tls_pump(struct sock_conn *conn) must_check;
bool sock_tls_is_up(const struct sock_conn *conn);
/* May the peer, which is proven, speak for @nid? */
bool sock_tls_speaks_for(const struct sock_conn *conn,
			 const struct ulnet_nid *nid);
/* Why TLS has failed; "": it has not. */
const char *sock_tls_error(const struct sock_conn *conn);

/* As recv(2) of the handshake: the number of bytes; 0: the end; -EAGAIN;
 * -errno. */
ssize_t sock_tls_recv(struct sock_conn *conn, void *to, size_t n) must_check;
/* What has been pumped, as readv(2); with errno. */
ssize_t sock_tls_readv(struct sock_conn *conn, const struct iovec *iov,
		       unsigned int niov) must_check;
/* Takes what there is room for, and sends what the socket takes. Returns how
 * many bytes it has taken; -EAGAIN; -errno. */
ssize_t sock_tls_writev(struct sock_conn *conn, const struct iovec *iov,
			unsigned int niov) must_check;
/* Sends what the socket takes. 0 or -errno. */
int sock_tls_flush(struct sock_conn *conn) must_check;
/* Has the socket still to take something? */
bool sock_tls_waits(const struct sock_conn *conn);
/* Nothing more will be written: what says so is there to be flushed. */
void sock_tls_close(struct sock_conn *conn);

/* ---- identities ---- */

/* The node has other keys: what begins on @cpt, begins with them. Returns false
 * without TLS. */
bool sock_tls_use_keys(struct sock_cpt *cpt);
/* Why the keys that the CPT of @conn has now do not believe the peer, which is
 * proven; other ones may have been there when TLS began. A constant text; NULL:
 * they believe it, or @conn is without TLS. */
const char *sock_tls_doubt(const struct sock_conn *conn);
/* Why the keys of its CPT do not believe @peer: one of its connections, which
 * end together, or what it has proved, which may have outlived them. As
 * sock_tls_doubt(). */
const char *sock_tls_peer_doubt(struct sock_peer *peer);

/* @conn, which becomes a connection of @peer, has proved who the peer is. No
 * effect without TLS. */
void sock_tls_prove(struct sock_peer *peer, const struct sock_conn *conn);
void sock_tls_forget(struct sock_peer *peer);
/* lnd.vouches(). */
bool sock_tls_vouches(struct lnd_ni *ni, const struct ulnet_nid *peer,
		      const struct ulnet_nid *nid);
/* "b (certificate of site)", "lab (key of the cluster)"; for the log. */
#define SOCK_TLS_WHO_SIZE 300
char *sock_tls_who(const struct sock_conn *conn, char *buf, size_t size);

#endif
