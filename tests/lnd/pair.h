/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two nodes of this process over TCP, 127.0.0.5 and 127.0.0.6, that run by
 * themselves: for tests of socklnd's own that choose the nodes' tunables.
 */
#ifndef TESTS_LND_PAIR_H
#define TESTS_LND_PAIR_H

#include "tests/lnd/box.h"
#include "tests/lnd/conformance.h"

/* What a test changes here before pair_up() holds for the nodes. */
extern struct real_net pair_net;
extern struct lnd_rig pair;

/* Borrows @tunables until pair_down(). False: there are no such nodes. */
bool pair_up(struct fx *fx, const struct ulnet_tunable *tunables,
	     unsigned int n);
/* Returns what a test in a process of its own returns. */
int pair_down(struct fx *fx);

#endif
