/* SPDX-License-Identifier: BSD-3-Clause */
/* lolnd: a node that sends to itself. */
#include "tests/lnd/conformance.h"

static struct real_net poll_one = { .run = LNET_RUN_POLL, .cpts = 1 };
static struct real_net threads_two = { .run = LNET_RUN_THREADS, .cpts = 2 };

static struct lnd_rig rigs[] = {
	{ .name = "lolnd",
	  .can = RIG_ONE_NODE,
	  .ops = &real_ops,
	  .arg = &poll_one },
	{ .name = "lolnd, threads, 2 CPTs",
	  .can = RIG_ONE_NODE | RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &threads_two },
};

int main(int argc, char **argv)
{
	return conformance_main(argc, argv, rigs,
				sizeof(rigs) / sizeof(rigs[0]));
}
