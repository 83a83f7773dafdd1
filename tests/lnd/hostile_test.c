/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socklnd and peers that break the protocol at every stage of a connection: a
 * correct peer must not notice, and nothing may pile up. The opposite byte
 * order and protocol version 2 are unusual, but must work.
 */
#include "tests/lnd/hostile.h"

#define QUICK                                                \
	{ "min_reconnectms", 1 }, { "max_reconnectms", 20 }, \
		{ "conns_per_peer", 1 },                     \
	{                                                    \
		"eager_bulk", 1                              \
	}

static const struct ulnet_tunable quick[] = { QUICK, { "sock_timeout", 60 } };
static const struct ulnet_tunable hasty_tunables[] = { QUICK,
						       { "sock_timeout", 4 } };

/* Few messages, so that a peer can use up its share of them: half of 448.
 * Time-outs are long enough for a slow machine. */
static void few_messages(struct ulnet_conf *conf, bool hasty)
{
	(void)hasty;
	conf->transaction_timeout = 60 * 1000000;
	conf->messages_max = 512;
}

#define NET                                                          \
	.nids = { "127.0.0.5@tcp", "127.0.0.6@tcp" },                \
	.absent = "127.0.0.99@tcp", .port = true, .tunables = quick, \
	.hasty = hasty_tunables, .ntunables = ARRAY_SIZE(quick),     \
	.run = LNET_RUN_THREADS, .tune = few_messages

static struct real_net one = { NET, .cpts = 1 };
static struct real_net two = { NET, .cpts = 2 };

static struct lnd_rig rigs[] = {
	{ .name = "1 CPT", .can = RIG_THREADS, .ops = &real_ops, .arg = &one },
	{ .name = "2 CPTs", .can = RIG_THREADS, .ops = &real_ops, .arg = &two },
};

int main(int argc, char **argv)
{
	static const struct topic *const topics[] = {
		&topic_greeting, &topic_frames, &topic_answers, &topic_shares
	};

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	return behaviours_main(argc, argv, rigs, ARRAY_SIZE(rigs), topics,
			       ARRAY_SIZE(topics));
}
