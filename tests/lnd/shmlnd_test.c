/* SPDX-License-Identifier: BSD-3-Clause */
/* shmlnd: two nodes in one process, over shared memory. */
#include "tests/lnd/conformance.h"

#include <stdio.h>
#include <unistd.h>

static char nids[3][64];

#define NODES .nids = { nids[0], nids[1] }, .absent = nids[2]

/* short pauses, so that a peer that comes back is soon connected again */
static const struct ulnet_tunable quick[] = {
	{ "max_reconnectms", 20 },
	{ "ring_size", 32768 },
};
/* No payload is copied straight, so that most are cut, and wait for room. */
static const struct ulnet_tunable small[] = {
	{ "max_reconnectms", 20 },
	{ "ring_size", 16384 },
	{ "copy_min", 0 },
};
static const struct ulnet_tunable large[] = {
	{ "max_reconnectms", 20 },
	{ "ring_size", 4194304 },
};

/* All payloads are copied straight. */
static const struct ulnet_tunable copies[] = {
	{ "max_reconnectms", 20 },
	{ "copy_min", 1 },
};

static struct real_net poll_one = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
				    .tunables = quick, .ntunables = 2 };
static struct real_net poll_small = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
				      .tunables = small, .ntunables = 3 };
static struct real_net poll_large = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
				      .tunables = large, .ntunables = 2 };
static struct real_net poll_copies = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
				       .tunables = copies, .ntunables = 2 };
static struct real_net threads_copies = { NODES, .run = LNET_RUN_THREADS,
					  .cpts = 2, .tunables = copies,
					  .ntunables = 2 };
static struct real_net threads_two = { NODES, .run = LNET_RUN_THREADS,
				       .cpts = 2, .tunables = quick,
				       .ntunables = 2 };

static struct lnd_rig rigs[] = {
	{ .name = "shmlnd",
	  .can = RIG_KILL,
	  .ops = &real_ops,
	  .arg = &poll_one },
	{ .name = "shmlnd, small rings",
	  .can = RIG_KILL,
	  .ops = &real_ops,
	  .arg = &poll_small },
	{ .name = "shmlnd, large rings",
	  .can = RIG_KILL,
	  .ops = &real_ops,
	  .arg = &poll_large },
	{ .name = "shmlnd, copies",
	  .can = RIG_KILL,
	  .ops = &real_ops,
	  .arg = &poll_copies },
	{ .name = "shmlnd, copies, threads, 2 CPTs",
	  .can = RIG_KILL | RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &threads_copies },
	{ .name = "shmlnd, threads, 2 CPTs",
	  .can = RIG_KILL | RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &threads_two },
};

int main(int argc, char **argv)
{
	/* Other tests of this host may run at the same time: these are the
	 * numbers of this process, which no node gets that is to have any. */
	for (unsigned int i = 0; i < 3; i++)
		snprintf(nids[i], sizeof(nids[i]), "%u@shm",
			 1u << 31 | (unsigned int)getpid() << 8 | i);
	return conformance_main(argc, argv, rigs,
				sizeof(rigs) / sizeof(rigs[0]));
}
