/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes in this process, over TCP on 127.0.0.5 and 127.0.0.6, with threads
 * of their own, for tests of socklnd that choose the nodes' tunables.
 */
#ifndef TESTS_LND_PAIR_H
#define TESTS_LND_PAIR_H

#include "tests/lnd/box.h"
#include "tests/lnd/conformance.h"

/* A test may change this before pair_up(). */
extern struct real_net pair_net;
extern struct lnd_rig pair;

/* Opens the nodes. Borrows @tunables until pair_down(). Returns false if they
 * cannot be opened. */
bool pair_up(struct fx *fx, const struct ulnet_tunable *tunables,
	     unsigned int n);
/* Closes the nodes, and checks all boxes. Returns 1 if anything has failed,
 * otherwise 0: what a test of apart.h returns. */
int pair_down(struct fx *fx);

#endif
