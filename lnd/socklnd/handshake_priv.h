/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that both sides of a handshake need: handshake.c, for the side that
 * connects, and listener.c, for the side that accepts. A function that returns
 * int returns 0 or a negative errno, unless its comment says another. */
#ifndef LND_SOCKLND_HANDSHAKE_PRIV_H
#define LND_SOCKLND_HANDSHAKE_PRIV_H

#include "lnd/socklnd/handshake.h"

/* Returns the version of the HELLO to send for a connection with @nid, if the
 * version that the peer wants is unknown. */
uint8_t sock_hs_version(const struct ulnet_nid *nid);

/* Makes @conn read the next part of a handshake. */
void sock_hs_expect(struct sock_conn *conn);
/* Reads until conn->buf holds hs_want bytes. Returns 1: it does; 0: not yet; or
 * -errno. */
int sock_hs_read(struct sock_conn *conn) must_check;
/* Reads the HELLO. Returns 1: all of it has come; 0: not yet; or -errno. */
int sock_hs_hello_read(struct sock_conn *conn) must_check;

/* Writes all @len bytes of @buf at once. There is room in the socket, since
 * little was sent before. */
int sock_hs_write(struct sock_conn *conn, void *buf, size_t len);
/* Does what sock_hs_write() does, on a socket that has no struct sock_conn yet.
 */
int sock_hs_write_fd(int fd, const void *buf, size_t len);
/* Writes the HELLO of @ni to @buf. Returns the number of bytes. */
size_t sock_hs_hello_make(uint8_t buf[SOCK_HELLO_LARGE_SIZE],
			  const struct lnd_ni *ni, unsigned int version,
			  const struct ulnet_nid *to, enum sock_type type);
int sock_hs_hello_write(struct sock_conn *conn, unsigned int version,
			const struct ulnet_nid *to, enum sock_type type);

#endif
