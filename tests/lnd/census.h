/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A census counts what socklnd holds for a node, on the node's own threads. A
 * bystander is a peer (node 1 of a rig) that must not notice what raw peers do.
 */
#ifndef TESTS_LND_CENSUS_H
#define TESTS_LND_CENSUS_H

#include "tests/lnd/box.h"

#define CENSUS_PORTS 16

/* Counts of the node's first NI over TCP. */
struct census {
	unsigned int peers, conns, handshakes;
	/* suspended connections (lnd/socklnd/peer.h) */
	unsigned int suspended;
	/* connections in the middle of a message */
	unsigned int writing, reading;
	/* the most bytes that one of them has read ahead */
	size_t readahead;
	uint64_t copied;       /* bytes copied of messages that were given up */
	unsigned int wanted;   /* peers that messages wait for */
	unsigned int attempts; /* to connect */
	unsigned int seconds;  /* attempts that have a second socket */
	uint64_t look_in;      /* ns: until the last look that is due at one */
	/* the most failures in a row of one of those peers */
	unsigned int failures;
	/* remote| of connections: local port << 16 | remote port */
	unsigned int keys;
	uint32_t key[CENSUS_PORTS];
};

/* Counts; with @peer, what belongs to that peer only. Not to be called on a
 * thread of the node. */
void census_take(struct lnet *node, const struct ulnet_nid *peer,
		 struct census *c);
/* Waits until @cond(census, arg) holds. */
bool census_wait(struct fx *fx, struct lnet *node, const struct ulnet_nid *peer,
		 bool (*cond)(const struct census *c, unsigned int arg),
		 unsigned int arg);
/* Lets LNet cancel, with @status, the message that a connection with @peer is
 * in the middle of writing or reading. */
void census_cancel(struct lnet *node, const struct ulnet_nid *peer, int status);
/* Pretends that the link of the NI has gone, or come back. */
void census_set_link(struct lnet *node, bool up);
/* Pretends that handshakes have used up all processor time, or none. */
void census_set_door(struct lnet *node, bool open);
bool census_conns_are(const struct census *c, unsigned int n);
bool census_suspended_are(const struct census *c, unsigned int n);
bool census_failures_are(const struct census *c, unsigned int n);

/* The state before: the connections of node 0 with node 1, and the memory that
 * the process uses. */
struct bystander {
	struct census with_peer;
	size_t memory;
};

/* Lets both sides exchange messages, waits until nothing is under way, and
 * notes the state. */
bool bystander_begin(struct fx *fx, struct bystander *bystander);
/* Fails unless both sides still exchange messages, on the same connections, and
 * raw peers have left nothing behind: the only files opened since fx_up() are
 * the sockets of those connections. */
bool bystander_check(struct fx *fx, const struct bystander *bystander);
/* Fails unless both sides still exchange messages, on the same connections. Raw
 * peers may be connected. */
bool bystander_goes_on(struct fx *fx, const struct bystander *bystander);

#endif
