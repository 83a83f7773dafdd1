/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_LND_FAULT_H
#define TESTS_LND_FAULT_H

#include <sys/types.h>
#include "tests/lnd/behaviour.h"
#include "tests/lnd/census.h"
#include "tests/lnd/raw_peer.h"

/* fault_load.c: too many peers, too slow ones */
extern const struct topic topic_load;
extern const struct topic topic_time; /* fault_time.c: slow and silent peers */
extern const struct topic topic_peer; /* fault_peer.c: two real nodes */

#define ACCEPT_MAX  100
#define MIN_BACKOFF 2  /* ms */
#define MAX_BACKOFF 20 /* ms */

/* ---- fault_child.c: a node that is a process of its own ---- */

#define CHILD_NID  "127.0.0.8@tcp"
#define CHILD_BITS 88

enum child_does {
	CHILD_TAKES, /* PUTs of 1 MiB, any number */
	CHILD_SENDS, /* PUTs of 1 MiB, one after the other */
};

/* Starts the child, which exchanges messages with node 0. Returns its pid when
 * it is ready, or -errno. */
pid_t child_start(struct fx *fx, enum child_does does);
/* Stops all threads of the child with SIGSTOP, before it returns; SIGCONT lets
 * them go on. */
void child_stop(pid_t pid);
/* Ends the child with SIGKILL. */
void child_kill(pid_t pid);
/* The main() of the child. */
int child_main(char **argv);

#define TIMEOUT	      60 /* s: sock_timeout */
#define HASTY_TIMEOUT 4	 /* ... for behaviours that wait for it */

/* the rig's tunables */
#define FAULT_TUNABLES(timeout)                                       \
	{ "eager_bulk", 1 }, { "min_reconnectms", MIN_BACKOFF },      \
		{ "max_reconnectms", MAX_BACKOFF },                   \
		{ "sock_timeout", timeout }, { "conns_per_peer", 1 }, \
		{ "keepalive", 1 }, { "tx_buffer_size", 65536 },      \
	{                                                             \
		"rx_buffer_size", 200000                              \
	}

#endif
