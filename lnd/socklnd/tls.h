/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of a net with tls: required. TLS begins with the first byte after
 * TCP has connected, and all of socklnd's protocol goes through it
 * (secure/stream.h). Either all connections of an NI have TLS, or none has:
 * sock_conn.tls is NULL without, and messages on such connections know nothing
 * of TLS.
 *
 * The NID that a peer names in its HELLO has to be one that its certificate
 * speaks for, by what is in it or by a rule of this node (lnd/tls_rules.h). A
 * peer with a cluster's key may speak for any NID.
 *
 * secure/stream.h bounds the memory of each connection. When a stream is full
 * it takes no more to send, and the connection waits for its socket, like one
 * without TLS. What has come is decrypted at once, unless LNet has paused
 * reading; then the socket is not read either.
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

/* The first byte of a TLS stream. No request of socklnd begins with it
 * (proto.h). */
#define SOCK_TLS_FIRST 0x16

/* Reads the NI's tunable tls. If TLS is required, the NI takes the node's keys.
 * Returns 0; or -ENOKEY or -EOPNOTSUPP, with ni->why. */
int sock_tls_startup(struct sock_ni *sni) must_check;
void sock_tls_free(struct sock_ni *sni);

/* ---- a connection ---- */

/* sock_tls_connect() begins TLS on @conn, which this node has opened;
 * sock_tls_accept() on one that a peer has opened, and on which the @n bytes at
 * @bytes have come. Both write what TLS has to write. They return 0 or -errno.
 */
int sock_tls_connect(struct sock_conn *conn, struct sock_ni *sni) must_check;
int sock_tls_accept(struct sock_conn *conn, struct sock_ni *sni,
		    const void *bytes, size_t n) must_check;
/* Ends TLS on @conn, and tells the peer so if the socket takes it. No effect
 * without TLS. */
void sock_tls_free_conn(struct sock_conn *conn);

/* Reads the socket once. Returns 0: something has come, or the peer has closed;
 * -EAGAIN: there is nothing now, or the stream takes no more; -EKEYREJECTED:
 * one side does not believe the other; or another negative errno. */
int sock_tls_pump(struct sock_conn *conn) must_check;
bool sock_tls_is_up(const struct sock_conn *conn);
/* May the peer, which has proved who it is, speak for @nid? */
bool sock_tls_speaks_for(const struct sock_conn *conn,
			 const struct ulnet_nid *nid);
/* Returns why TLS has failed; "" if it has not. */
const char *sock_tls_error(const struct sock_conn *conn);

/* Works like recv(2), for the handshake. Returns the number of bytes; 0: the
 * peer has closed; -EAGAIN; or another negative errno. */
ssize_t sock_tls_recv(struct sock_conn *conn, void *to, size_t n) must_check;
/* Works like readv(2), with errno, on what sock_tls_pump() has read. */
ssize_t sock_tls_readv(struct sock_conn *conn, const struct iovec *iov,
		       unsigned int niov) must_check;
/* Encrypts as much of @iov as the stream has room for, and sends as much as the
 * socket takes. Returns how many bytes of @iov were taken; -EAGAIN: none; or
 * another negative errno. */
ssize_t sock_tls_writev(struct sock_conn *conn, const struct iovec *iov,
			unsigned int niov) must_check;
/* Sends what TLS has to write, as far as the socket takes it. Returns 0 or
 * -errno. */
int sock_tls_flush(struct sock_conn *conn) must_check;
/* Has TLS bytes that the socket has not taken yet? */
bool sock_tls_waits(const struct sock_conn *conn);
/* Tells the peer that nothing more will be written: by bytes that
 * sock_tls_flush() then sends. */
void sock_tls_close(struct sock_conn *conn);

/* ---- identities ---- */

/* Called when the node has new keys or rules: connections that begin on @cpt
 * from now on use them. Returns false if the NI is without TLS. */
bool sock_tls_use_keys(struct sock_cpt *cpt);
/* Returns why the peer of @conn, which has proved who it is, is not believed by
 * the keys that the connection's CPT has now, or may not speak for @nid; TLS
 * may have begun with older keys and rules. A constant text. NULL: the peer is
 * believed, or @conn is without TLS. */
const char *sock_tls_doubt(const struct sock_conn *conn,
			   const struct ulnet_nid *nid);
/* Returns the same for @peer and its NID: looks at its connections, which all
 * end together, and at what it has proved, which may have outlived the
 * connections. */
const char *sock_tls_peer_doubt(struct sock_peer *peer);

/* Called when @conn, which has proved who the peer is, becomes a connection of
 * @peer: remembers the proof. No effect without TLS. */
void sock_tls_prove(struct sock_peer *peer, const struct sock_conn *conn);
void sock_tls_forget(struct sock_peer *peer);
/* What lnd.vouches() calls: has @peer proved that it may speak for @nid? */
int sock_tls_vouches(struct lnd_ni *ni, const struct ulnet_nid *peer,
		     const struct ulnet_nid *nid);
/* A text for the log, such as "b (certificate of site)" or "lab (key of the
 * cluster)". */
#define SOCK_TLS_WHO_SIZE 300
char *sock_tls_who(const struct sock_conn *conn, char *buf, size_t size);

#endif
