/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stranger: a peer on TCP that is the test's own, and says whatever the test
 * wants. On blocking sockets; whoever waits for something that does not come
 * gets -ETIMEDOUT after a long while.
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
	uint32_t pid;
	uint16_t port;	  /* of everybody */
	bool swap;	  /* it has the other byte order */
	uint32_t version; /* of the protocol */
	uint64_t incarnation;
	int listener; /* -1: none */
	int call;     /* that has come to it, and was not taken; -1: none */
	uint8_t *buf; /* FRAME_MAX bytes */
};

/* Talks to node 0 of @fx's. @nid is its name, and address. */
void raw_peer_init(struct raw_peer *s, struct fx *fx, const char *nid);
void raw_peer_fini(struct raw_peer *s);

/* A connection, or -errno. */
int raw_peer_connect(struct raw_peer *s);
/* It listens: 0 or -errno. */
int raw_peer_listen(struct raw_peer *s);
/* The next connection on which something is said, or -errno. Not those that
 * end without a word: a node that was slow to notice that an attempt has got
 * through has opened a second socket for it, and drops one of the two. */
int raw_peer_accept(struct raw_peer *s);
/* Is there such a connection? */
bool raw_peer_is_called(struct raw_peer *s);

/* All of it; false: nobody listens any more. */
bool say(int fd, const void *buf, size_t len);
/* 0, -ECONNRESET: the end; -ETIMEDOUT. */
int hear(int fd, void *buf, size_t len);
/* Waits until the other end has closed, whatever it says before. */
bool hear_end(int fd);
/* ... of all of them. */
bool hear_ends(const int *fd, unsigned int n);
/* Has it said or closed nothing? */
bool is_silent(int fd);

/* Their bytes, in its order; returns how many. */
size_t raw_peer_request(const struct raw_peer *s, uint8_t *buf);
size_t raw_peer_hello(const struct raw_peer *s, enum sock_type type,
		      uint8_t *buf);
size_t raw_peer_hdr(const struct raw_peer *s, const struct sock_hdr *hdr,
		    const struct lnet_hdr *lnet, uint8_t *buf);
/* @width (4, 8) bytes of a number. */
void raw_peer_number(const struct raw_peer *s, uint8_t *at, unsigned int width,
		     uint64_t value);

/* Both sides of a handshake, in order. */
int hear_request(int fd, struct ulnet_nid *target);
int hear_hello(int fd, struct sock_hello *hello);
/* The connection, open, or -errno; -EALREADY: refused. */
int raw_peer_open(struct raw_peer *s, enum sock_type type);
/* ... all three of them. */
bool raw_peer_open_all(struct fx *fx, struct raw_peer *s, int fd[3]);
/* It is called, and answers as it should. */
int raw_peer_answer(struct raw_peer *s, enum sock_type *type);
void close_all(int *fd, unsigned int n);
/* Waits until the node has @n connections with it, and is opening no others. */
bool raw_peer_has_conns(struct fx *fx, const struct raw_peer *s,
			unsigned int n);

/* ---- a visit ---- */

/* A stranger, 127.0.0.7@tcp, comes to nodes that are calm (false: they are
 * not). When it goes, they must still be. */
bool visit_begin(struct fx *fx, struct bystander *bystander,
		 struct raw_peer *s);
void visit_end(struct fx *fx, const struct bystander *bystander,
	       struct raw_peer *s);

/* ---- messages ---- */

struct frame {
	struct sock_hdr hdr;
	struct lnet_hdr lnet; /* of a LNET one */
	const uint8_t *payload;
};

struct lnet_hdr raw_peer_put_hdr(const struct raw_peer *s, unsigned int portal,
				 uint64_t bits, uint64_t hdr_data,
				 uint32_t length);
bool raw_peer_say(struct raw_peer *s, int fd, const struct frame *f);
/* The payload is in s->buf until the next call. */
int raw_peer_hear(struct raw_peer *s, int fd, struct frame *f);
bool raw_peer_ack(struct raw_peer *s, int fd, uint64_t c0, uint64_t c1);
/* It asks who is there, and is told. */
bool raw_peer_pings(struct fx *fx, struct raw_peer *s, int fd);
/* PUTs to a buffer of node 0's, whose contents are verified. On @fd. */
bool raw_peer_puts(struct fx *fx, struct raw_peer *s, int fd, uint32_t size);

#endif
