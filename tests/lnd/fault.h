/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_LND_FAULT_H
#define TESTS_LND_FAULT_H

#include <sys/types.h>
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/raw_peer.h"

extern const struct topic topic_load; /* fault_load.c: too much, too slow */
extern const struct topic topic_time; /* fault_time.c: too late */
extern const struct topic topic_peer; /* fault_peer.c: other nodes */

#define ACCEPT_MAX  100
#define MIN_BACKOFF 2  /* ms */
#define MAX_BACKOFF 20 /* ms */

/* ---- fault_child.c: a node that is a process of its own ---- */

#define CHILD_NID  "127.0.0.8@tcp"
#define CHILD_BITS 88

enum child_does {
	CHILD_TAKES, /* PUTs of 1 MiB, one after the other */
	CHILD_SENDS,
};

/* Starts it; it talks to node 0. Its pid, or -errno. It is ready. */
pid_t child_start(struct fx *fx, enum child_does does);
/* All its threads stand still on return; SIGCONT lets them go on. */
void child_stop(pid_t pid);
/* Has SIGKILL end it. */
void child_kill(pid_t pid);
/* What main() does as a child. */
int child_main(char **argv);

#define TIMEOUT	      60 /* s: sock_timeout */
#define HASTY_TIMEOUT 2	 /* ... of behaviours that wait for it */

/* The rig's tunables. */
#define FAULT_TUNABLES(timeout)                                       \
	{ "eager_bulk", 1 }, { "min_reconnectms", MIN_BACKOFF },      \
		{ "max_reconnectms", MAX_BACKOFF },                   \
		{ "sock_timeout", timeout }, { "conns_per_peer", 1 }, \
		{ "keepalive", 1 }, { "tx_buffer_size", 65536 },      \
	{                                                             \
		"rx_buffer_size", 200000                              \
	}

#endif
