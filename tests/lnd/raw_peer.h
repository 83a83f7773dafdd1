/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A raw peer: a TCP peer whose bytes the test writes itself. On a rig of nets
 * with TLS (real_net.raw_keys) they go through TLS. Its sockets block,
 * for 20 s at most: then hear() and what is built on it return -ETIMEDOUT, and
 * raw_peer_accept() returns -EAGAIN.
 */
#ifndef TESTS_LND_RAW_PEER_H
#define TESTS_LND_RAW_PEER_H

#include "lnd/socklnd/proto.h"
#include "lnet/message/wire.h"
#include "tests/lnd/census.h"

#define FRAME_HDR (SOCK_HDR_SIZE + LNET_HDR_SIZE)
#define FRAME_MAX (SOCK_HDR_SIZE + LNET_HDR_LARGE_SIZE + LNET_MTU)
#define PING_BITS UINT64_C(0x8000000000000000)

struct raw_peer {
	struct ulnet_nid nid, to;
	/* It speaks TLS, and proves who it is by them, before the test gets a
	 * connection (raw_tls.h). NULL: no TLS */
	struct ulrpc_keys *keys;
	uint32_t pid;
	uint16_t port;	  /* of all nodes of the test */
	bool swap;	  /* the peer has the other byte order */
	uint32_t version; /* of the protocol */
	uint64_t incarnation;
	int listener; /* -1: none */
	/* a connection that was accepted, and not taken yet; -1: none */
	int call;
	uint8_t *buf; /* FRAME_MAX bytes */
};

/* Prepares a peer for node 0 of @fx. @nid is the peer's NID, and its address.
 */
void raw_peer_init(struct raw_peer *s, struct fx *fx, const char *nid);
void raw_peer_fini(struct raw_peer *s);

/* Connects to the node. Returns the socket, or -errno. */
int raw_peer_connect(struct raw_peer *s);
/* Listens on the peer's address. Returns 0 or -errno. */
int raw_peer_listen(struct raw_peer *s);
/* Returns the next connection on which the node sends something, or -errno.
 * Skips those that end without a byte: TCP may have connected the second socket
 * of an attempt just when the node closed it, since the first one was enough.
 */
int raw_peer_accept(struct raw_peer *s);
/* Has the node opened a connection on which it has sent something? */
bool raw_peer_is_called(struct raw_peer *s);

/* Sends all @len bytes. Returns false if the other end has closed. */
bool say(int fd, const void *buf, size_t len);
/* Reads @len bytes. Returns 0, -ECONNRESET at the end, or -ETIMEDOUT. */
int hear(int fd, void *buf, size_t len);
/* Waits until the other end has closed, and drops what it sends before. */
bool hear_end(int fd);
/* hear_end() for all @n sockets. */
bool hear_ends(const int *fd, unsigned int n);
/* Has the other end neither sent anything nor closed? */
bool is_silent(int fd);

/* Write the bytes of a request, a HELLO, a message's header in the peer's byte
 * order. Return their number. */
size_t raw_peer_request(const struct raw_peer *s, uint8_t *buf);
size_t raw_peer_hello(const struct raw_peer *s, enum sock_type type,
		      uint8_t *buf);
size_t raw_peer_hdr(const struct raw_peer *s, const struct sock_hdr *hdr,
		    const struct lnet_hdr *lnet, uint8_t *buf);
/* Writes a number of @width (4, 8) bytes. */
void raw_peer_number(const struct raw_peer *s, uint8_t *at, unsigned int width,
		     uint64_t value);

/* Read what the side that connects sends first, in this order. The side that
 * accepts answers with a HELLO. Return 0 or -errno. */
int hear_request(int fd, struct ulnet_nid *target);
int hear_hello(int fd, struct sock_hello *hello);
/* Opens a connection with a whole handshake. Returns the socket, or -errno;
 * -EALREADY: it was refused. */
int raw_peer_open(struct raw_peer *s, enum sock_type type);
/* Opens one connection of each of the three types: SOCK_CONTROL, SOCK_BULK_IN,
 * SOCK_BULK_OUT. */
bool raw_peer_open_all(struct fx *fx, struct raw_peer *s, int fd[3]);
/* Accepts a connection of the node, and answers its handshake correctly.
 * Returns the socket, or -errno. */
int raw_peer_answer(struct raw_peer *s, enum sock_type *type);
void close_all(int *fd, unsigned int n);
/* Waits until the node has @n connections with the peer, and is opening no
 * others. */
bool raw_peer_has_conns(struct fx *fx, const struct raw_peer *s,
			unsigned int n);

/* ---- a visit ---- */

/* Begins with nodes at rest, and a raw peer 127.0.0.7@tcp. Returns false if the
 * nodes are not at rest. At the end of the visit they must be again. */
bool visit_begin(struct fx *fx, struct bystander *bystander,
		 struct raw_peer *s);
void visit_end(struct fx *fx, const struct bystander *bystander,
	       struct raw_peer *s);

/* ---- messages ---- */

struct frame {
	struct sock_hdr hdr;
	struct lnet_hdr lnet; /* of a SOCK_MSG_LNET frame */
	const uint8_t *payload;
};

struct lnet_hdr raw_peer_put_hdr(const struct raw_peer *s, unsigned int portal,
				 uint64_t bits, uint64_t hdr_data,
				 uint32_t length);
bool raw_peer_say(struct raw_peer *s, int fd, const struct frame *f);
/* Reads a frame. Its payload is in s->buf until the next call. */
int raw_peer_hear(struct raw_peer *s, int fd, struct frame *f);
bool raw_peer_ack(struct raw_peer *s, int fd, uint64_t c0, uint64_t c1);
/* Fails unless the node answers the peer's ping. */
bool raw_peer_pings(struct fx *fx, struct raw_peer *s, int fd);
/* Fails unless a PUT of @size bytes on @fd arrives, with its contents, in a
 * buffer of node 0. */
bool raw_peer_puts(struct fx *fx, struct raw_peer *s, int fd, uint32_t size);

#endif
