/* SPDX-License-Identifier: BSD-3-Clause */
/* socklnd: two nodes on 127.0.0.x, with TLS and without, and two on IPv6
 * addresses. */
#include "tests/lnd/conformance.h"

#include <errno.h>

#include "tests/lnd/netdev.h"
#include "tests/lnd/netns.h"
#include "tests/lnd/proofs.h"

#define NODES                                         \
	.nids = { "127.0.0.1@tcp", "127.0.0.2@tcp" }, \
	.absent = "127.0.0.99@tcp", .port = true

#define NODES_IPV6                                                          \
	.nids = { "fd77::1@tcp", "fd77::2@tcp" }, .absent = "fd77::99@tcp", \
	.port = true, .may_run = has_ipv6

/* The first test that needs these addresses makes a namespace with them: no
 * other host is on it, so an absent peer refuses, as on 127.0.0.x. */
static int has_ipv6(const char **why)
{
	static const char *const addrs[] = { "fd77::1", "fd77::2", "fd77::99" };
	static bool tried, there;

	if (!tried)
		there = !netns_enter() && !netdev_set("lo", true);
	for (unsigned int i = 0; !tried && i < ARRAY_SIZE(addrs); i++)
		there = there && !netdev_add_addr("lo", addrs[i]);
	tried = true;
	*why = there ? NULL : "no IPv6 addresses in a network namespace";
	return there ? 0 : -ENOTSUP;
}

/* short pauses, so that a peer that comes back is soon connected again */
static const struct ulnet_tunable quick[] = {
	{ "min_reconnectms", 1 },
	{ "max_reconnectms", 20 },
};
/* Messages are written in pieces. The buffer has room for two segments of the
 * loopback interface: with less, TCP would wait for a delayed acknowledgement
 * after each piece. */
static const struct ulnet_tunable many[] = {
	{ "min_reconnectms", 1 },     { "max_reconnectms", 20 },
	{ "conns_per_peer", 3 },      { "zc_min_payload", 2048 },
	{ "tx_buffer_size", 100000 },
};

/* The same through TLS. */
static const struct ulnet_tunable secured[] = {
	{ "min_reconnectms", 1 },
	{ "max_reconnectms", 20 },
	{ "tls", 1 },
};
static const struct ulnet_tunable many_secured[] = {
	{ "min_reconnectms", 1 },     { "max_reconnectms", 20 },
	{ "conns_per_peer", 3 },      { "zc_min_payload", 2048 },
	{ "tx_buffer_size", 100000 }, { "tls", 1 },
};

static int has_tls(const char **why)
{
	*why = proofs_can() ? NULL : "built without TLS";
	return proofs_can() ? 0 : -ENOTSUP;
}

static void with_certificate(struct ulnet_conf *conf, bool hasty)
{
	static struct ulrpc_keys *keys;

	(void)hasty;
	if (!keys)
		keys = proofs_node("site", "127.0.0.[1-2]@tcp", 0);
	conf->keys = keys;
}

static void with_cluster_key(struct ulnet_conf *conf, bool hasty)
{
	static struct ulrpc_keys *keys;

	(void)hasty;
	if (!keys)
		keys = proofs_cluster("lab");
	conf->keys = keys;
}

static struct real_net poll_one = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
				    .tunables = quick, .ntunables = 2 };
static struct real_net small_buffers = { NODES, .run = LNET_RUN_POLL, .cpts = 1,
					 .tunables = many, .ntunables = 5 };
static struct real_net threads_two = { NODES, .run = LNET_RUN_THREADS,
				       .cpts = 2, .tunables = quick,
				       .ntunables = 2 };
#define TLS .may_run = has_tls
static struct real_net tls_one = { NODES,
				   TLS,
				   .tune = with_certificate,
				   .run = LNET_RUN_POLL,
				   .cpts = 1,
				   .tunables = secured,
				   .ntunables = 3 };
static struct real_net tls_small_buffers = { NODES,
					     TLS,
					     .tune = with_cluster_key,
					     .run = LNET_RUN_POLL,
					     .cpts = 1,
					     .tunables = many_secured,
					     .ntunables = 6 };
static struct real_net tls_threads_two = { NODES,
					   TLS,
					   .tune = with_certificate,
					   .run = LNET_RUN_THREADS,
					   .cpts = 2,
					   .tunables = secured,
					   .ntunables = 3 };
static struct real_net ipv6 = { NODES_IPV6, .run = LNET_RUN_POLL, .cpts = 1,
				.tunables = many, .ntunables = 5 };

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
	{ .name = "socklnd, TLS",
	  .can = RIG_KILL | RIG_OVERTAKE,
	  .ops = &real_ops,
	  .arg = &tls_one },
	{ .name = "socklnd, TLS, small buffers, 7 connections",
	  .can = RIG_KILL | RIG_OVERTAKE,
	  .ops = &real_ops,
	  .arg = &tls_small_buffers },
	{ .name = "socklnd, TLS, threads, 2 CPTs",
	  .can = RIG_KILL | RIG_OVERTAKE | RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &tls_threads_two },
	/* must be the last one, as it enters a namespace */
	{ .name = "socklnd, IPv6",
	  .can = RIG_KILL | RIG_OVERTAKE,
	  .ops = &real_ops,
	  .arg = &ipv6 },
};

int main(int argc, char **argv)
{
	return conformance_main(argc, argv, rigs,
				sizeof(rigs) / sizeof(rigs[0]));
}
