/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain, non-blocking TCP sockets for tests that are a peer themselves. What
 * has been read is kept until the test takes it.
 */
#ifndef TESTS_LND_RAW_H
#define TESTS_LND_RAW_H

#include "base/util.h"
#include "lnd/socklnd/sock.h"

struct raw_conn {
	int fd; /* -1: none */
	bool eof;
	uint8_t *in; /* bytes that were read and not taken yet */
	size_t have, room;
};

/* Functions that return an int return 0 or a negative errno. */

/* Makes a listening socket. */
int raw_listen(const union netif_addr *at, int *fd_p) must_check;
/* Accepts a connection. -EAGAIN: none is waiting. */
int raw_accept(int listen_fd, struct raw_conn *c,
	       union netif_addr *from) must_check;
/* Connects from the address and port @from. */
int raw_connect(const union netif_addr *from, const union netif_addr *to,
		struct raw_conn *c) must_check;
void raw_close(struct raw_conn *c);

/* Sends what the socket takes now of the @len bytes at @buf, from offset *@sent
 * on, and adds to *@sent what it has taken. */
int raw_send(struct raw_conn *c, const void *buf, size_t len,
	     size_t *sent) must_check;
/* Reads what has arrived, and sets c->eof at the end of the connection or when
 * it is reset. */
int raw_fill(struct raw_conn *c) must_check;
/* Takes @len bytes, if so many have been read. */
bool raw_take(struct raw_conn *c, void *buf, size_t len) must_check;

#endif
