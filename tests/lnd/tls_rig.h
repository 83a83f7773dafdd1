/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of nets with tls: required share: two nodes, and raw peers
 * that speak TLS. Each test runs in a process of its own. */
#ifndef TESTS_LND_TLS_RIG_H
#define TESTS_LND_TLS_RIG_H

#include <string.h>

#include "lnd/socklnd/tls.h"
#include "secure/stream.h"
#include "tests/lnd/apart.h"
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/pair.h"
#include "tests/lnd/proofs.h"
#include "tests/lnd/raw_peer.h"

/* Either function is set. */
struct tls_test {
	const char *name;
	/* Two nodes are there, which are proven to each other, and which have
	 * to work afterwards. */
	void (*fn)(struct fx *fx);
	int (*alone)(void); /* makes its own */
};

struct tls_tests {
	const struct tls_test *tests;
	unsigned int n;
};

extern const struct tls_tests tls_strangers;	 /* tls_stranger.c */
extern const struct tls_tests tls_changes;	 /* tls_change.c */
extern const struct tls_tests tls_announcements; /* tls_announce.c */

#define ALL "127.0.0.[1-9]@tcp"

/* Tunables of NIs. */
#define TUNABLES 4
#define PLAIN	 3 /* as many of these: without TLS */
extern const struct ulnet_tunable with_tls[TUNABLES];

/* Of the node that was opened first, and of the other one. */
extern struct ulrpc_keys *keys_of_node[2];
/* For nodes that are opened afterwards; 0: the default. */
extern uint64_t tls_accept_timeout;
extern uint32_t tls_accept_max;

bool up_with(struct fx *fx, struct ulrpc_keys *first,
	     struct ulrpc_keys *second);
bool up(struct fx *fx);

/* A raw peer that speaks TLS. */
struct tls_peer {
	struct raw_peer raw;
	int fd;
	struct stream *tls;
	/* what has come in by the wire, and what that was */
	uint8_t wire[1 << 17], said[1 << 17];
	size_t nwire, nsaid;
};

bool tls_flush(struct tls_peer *p);
/* Reads once. false: the node has closed, or does not say more. */
bool tls_fill(struct tls_peer *p);
bool tls_say(struct tls_peer *p, const void *bytes, size_t n);
/* Connects to node 0, for tls_peer_shake(). */
struct tls_peer *tls_peer_connect(struct fx *fx, const char *nid,
				  struct ulrpc_keys *keys);
void tls_peer_shake(struct fx *fx, struct tls_peer *p);
/* Both. */
struct tls_peer *tls_peer_new(struct fx *fx, const char *nid,
			      struct ulrpc_keys *keys);
/* Sends request and HELLO, as the NID @claimed, and waits for the answer.
 * false: the node has closed. */
bool tls_greet(struct tls_peer *p, const char *claimed);
/* A peer that was let in. */
struct tls_peer *tls_peer_open(struct fx *fx);
void tls_peer_end(struct tls_peer *p);

/* Makes a PUT of @size bytes at @payload for the buffer with @bits of node 0.
 * Returns its length. */
size_t put_make(struct tls_peer *p, uint64_t bits, const void *payload,
		uint32_t size, uint8_t *buf);
struct box *buffer(struct fx *fx, uint64_t bits);
/* What the peer puts arrives at node 0. */
void still_puts(struct fx *fx, struct tls_peer *p);
/* Waits until a counter of node 0 is at least @least. */
bool comes_to(struct fx *fx, const char *stat, uint64_t least);

#endif
