/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS below a raw peer, which goes on writing its bytes to a socket and knows
 * nothing of it: that socket is one of a pair, and a thread, the pump, carries
 * what goes through the pair, within TLS, to the connection with the node and
 * back.
 *
 * The pump does to the connection what the test does to its socket: it ends
 * what was shut down, resets what was closed while something was unread, and
 * does not read what the test does not read. It ends when the test has closed
 * its socket, or the node the connection.
 */
#ifndef TESTS_LND_RAW_TLS_H
#define TESTS_LND_RAW_TLS_H

#include <stdbool.h>

struct raw_peer;

/* Makes the handshake of TLS on the connection @tcp of @owner, by its keys, and
 * takes @tcp. @server: the node has opened it. Returns a socket in its place,
 * or -errno: the handshake has failed. */
int raw_tls_begin(const struct raw_peer *owner, int tcp, bool server);
/* What has come from the node for the socket @fd is there to be read. Does
 * nothing if that is another socket. */
void raw_tls_sync(int fd);
/* Waits for the pumps of @owner. Their sockets must be closed. */
void raw_tls_join(const struct raw_peer *owner);

#endif
