/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What socklnd holds for a node, counted on its own threads; and a peer that
 * must not notice what strangers do: node 1 of a rig.
 */
#ifndef TESTS_LND_CENSUS_H
#define TESTS_LND_CENSUS_H

#include "tests/lnd/box.h"

#define CENSUS_PORTS 16

/* Of the node's first NI that is not lo. */
struct census {
	unsigned int peers, conns, handshakes;
	unsigned int aside;	       /* connections that were set aside */
	unsigned int writing, reading; /* connections, in a message */
	size_t behind;	     /* most bytes read ahead that one of them keeps */
	uint64_t copied;     /* bytes of messages that were given up */
	unsigned int wanted; /* peers that are waited for */
	unsigned int attempts; /* to connect */
	unsigned int failures; /* of those, in a row; the most */
	unsigned int keys;     /* of conns: local port << 16 | remote */
	uint32_t key[CENSUS_PORTS];
};

/* @peer: of this one only. Not on a thread of the node's. */
void census_take(struct lnet *node, const struct ulnet_nid *peer,
		 struct census *c);
/* Waits until @cond(its census, arg). */
bool census_wait(struct fx *fx, struct lnet *node, const struct ulnet_nid *peer,
		 bool (*cond)(const struct census *c, unsigned int arg),
		 unsigned int arg);
/* LNet gives up, with @status, what a connection with @peer is in the midst of:
 * a large message that is being written, or one that comes in. */
void census_cancel(struct lnet *node, const struct ulnet_nid *peer, int status);
/* As if the link of its NI had gone, or come back. */
void census_set_link(struct lnet *node, bool up);
bool census_conns_are(const struct census *c, unsigned int n);
bool census_aside_are(const struct census *c, unsigned int n);
bool census_failures_are(const struct census *c, unsigned int n);

/* How it was before: which connections node 0 has with node 1, and how much
 * memory the process uses. */
struct bystander {
	struct census with_peer;
	size_t memory;
};

/* Both sides talk to each other, and it is quiet after that. */
bool bystander_begin(struct fx *fx, struct bystander *bystander);
/* They still do, on the same connections; nothing is left of strangers: the
 * only files that were opened since fx_up() are those connections' sockets. */
bool bystander_check(struct fx *fx, const struct bystander *bystander);
/* They still do, on the same connections; strangers may be there. */
bool bystander_goes_on(struct fx *fx, const struct bystander *bystander);

#endif
