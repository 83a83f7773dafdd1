/* SPDX-License-Identifier: BSD-3-Clause */
/* socklnd: two nodes on 127.0.0.x. */
#include "tests/lnd/conformance.h"

#define NODES                                         \
	.nids = { "127.0.0.1@tcp", "127.0.0.2@tcp" }, \
	.absent = "127.0.0.99@tcp", .port = true

/* A failure must not keep the peer that comes back waiting. */
static const struct ulnet_tunable quick[] = {
	{ "min_reconnectms", 1 },
	{ "max_reconnectms", 20 },
};
/* Messages are written in pieces. Below two of the loopback's segments TCP
 * waits for delayed acknowledgements after each. */
static const struct ulnet_tunable many[] = {
	{ "min_reconnectms", 1 },     { "max_reconnectms", 20 },
	{ "conns_per_peer", 3 },      { "zc_min_payload", 2048 },
	{ "tx_buffer_size", 100000 },
};

static struct real_net poll_one = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
				    .tunables = quick, .ntunables = 2 };
static struct real_net small_buffers = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
					 .tunables = many, .ntunables = 5 };
static struct real_net threads_two = { NODES, .run = LNET_RUN_THREADS,
				       .cpts = 2, .tunables = quick,
				       .ntunables = 2 };

static struct lnd_rig rigs[] = {
	{ .name = "socklnd",
	  .can = RIG_KILL | RIG_OVERTAKE,
	  .ops = &real_ops,
	  .arg = &poll_one },
	{ .name = "socklnd, small buffers, 7 connections",
	  .can = RIG_KILL | RIG_OVERTAKE,
	  .ops = &real_ops,
	  .arg = &small_buffers },
	{ .name = "socklnd, threads, 2 CPTs",
	  .can = RIG_KILL | RIG_OVERTAKE | RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &threads_two },
};

int main(int argc, char **argv)
{
	return conformance_main(argc, argv, rigs,
				sizeof(rigs) / sizeof(rigs[0]));
}
