/* SPDX-License-Identifier: BSD-3-Clause */
/* What both sides of a handshake need: handshake.c, for the side that connects,
 * and listener.c. Functions that return an int return 0 or a negative errno,
 * unless they say another. */
#ifndef LND_SOCKLND_HANDSHAKE_PRIV_H
#define LND_SOCKLND_HANDSHAKE_PRIV_H

#include "lnd/socklnd/handshake.h"

/* The version of the HELLO for a connection with @nid whose peer's version is
 * unknown. */
uint8_t sock_hs_version(const struct ulnet_nid *nid);

/* The next part of a handshake is awaited. */
void sock_hs_expect(struct sock_conn *conn);
/* Reads until buf holds hs_want bytes. 1: it does; 0: not yet; -errno. */
int sock_hs_read(struct sock_conn *conn) must_check;
/* Reads the HELLO. 1: all of it has come; 0: not yet; -errno. */
int sock_hs_hello_read(struct sock_conn *conn) must_check;

/* Writes all of @buf at once: there is room, since little was sent before. */
int sock_hs_write(struct sock_conn *conn, void *buf, size_t len);
/* The same for a socket that is no connection yet. */
int sock_hs_write_fd(int fd, const void *buf, size_t len);
/* Writes the HELLO of @ni to @buf. Returns the number of bytes. */
size_t sock_hs_hello_make(uint8_t buf[SOCK_HELLO_LARGE_SIZE],
			  const struct lnd_ni *ni, unsigned int version,
			  const struct ulnet_nid *to, enum sock_type type);
int sock_hs_hello_write(struct sock_conn *conn, unsigned int version,
			const struct ulnet_nid *to, enum sock_type type);

#endif
