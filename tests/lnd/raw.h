/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain TCP sockets, for tests that are a peer themselves: they do not block,
 * and what has come in is kept until it is asked for.
 */
#ifndef TESTS_LND_RAW_H
#define TESTS_LND_RAW_H

#include "base/util.h"
#include "lnd/socklnd/sock.h"

struct raw_conn {
	int fd; /* -1: none */
	bool eof;
	uint8_t *in; /* have bytes that nobody has asked for yet */
	size_t have, room;
};

/* All: 0 or a negative errno. */

/* *@fd_p listens. */
int raw_listen(const union netif_addr *at, int *fd_p) must_check;
/* -EAGAIN: nobody is there. */
int raw_accept(int listen_fd, struct raw_conn *c,
	       union netif_addr *from) must_check;
/* Connects from that very port. */
int raw_connect(const union netif_addr *from, const union netif_addr *to,
		struct raw_conn *c) must_check;
void raw_close(struct raw_conn *c);

/* Sends what can be sent now of the @len bytes, from *@sent on, which is moved
 * on. */
int raw_send(struct raw_conn *c, const void *buf, size_t len,
	     size_t *sent) must_check;
/* Takes in what is there. A reset is an end, too. */
int raw_fill(struct raw_conn *c) must_check;
/* Takes @len bytes out, if so many are there. */
bool raw_take(struct raw_conn *c, void *buf, size_t len) must_check;

#endif
