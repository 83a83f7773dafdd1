/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socklnd and peers that break the protocol at every stage of a connection: a
 * correct peer must not notice, and nothing may pile up. The opposite byte
 * order and protocol version 2 are unusual, but must work. All of it is done
 * again over a net with tls: required, by peers that have proved who they are.
 */
#include "tests/lnd/hostile.h"

#include <errno.h>

#include "tests/lnd/proofs.h"

#define QUICK                                                \
	{ "min_reconnectms", 1 }, { "max_reconnectms", 20 }, \
		{ "conns_per_peer", 1 },                     \
	{                                                    \
		"eager_bulk", 1                              \
	}

/* The last one is for nets with TLS only. */
static const struct ulnet_tunable quick[] = { QUICK,
					      { "sock_timeout", 60 },
					      { "tls", 1 } };
static const struct ulnet_tunable hasty_tunables[] = { QUICK,
						       { "sock_timeout", 4 },
						       { "tls", 1 } };
#define PLAIN (ARRAY_SIZE(quick) - 1)

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
	.hasty = hasty_tunables, .run = LNET_RUN_THREADS

static struct ulrpc_keys *raw_keys(void)
{
	static struct ulrpc_keys *keys;

	/* for what they claim to be, too, or it would be refused at once */
	if (!keys)
		keys = proofs_node("site", "127.0.0.[1-9]@tcp", 0);
	return keys;
}

/* Handshakes of TLS may have to wait for their share of the processor. */
static void few_messages_tls(struct ulnet_conf *conf, bool hasty)
{
	few_messages(conf, hasty);
	conf->accept_timeout = 60 * 1000000;
	conf->keys = raw_keys();
}

static int has_tls(const char **why)
{
	*why = proofs_can() ? NULL : "built without TLS";
	return proofs_can() ? 0 : -ENOTSUP;
}

#define IN_CLEAR .ntunables = PLAIN, .tune = few_messages
#define WITHIN_TLS                                                \
	.ntunables = ARRAY_SIZE(quick), .tune = few_messages_tls, \
	.raw_keys = raw_keys, .may_run = has_tls

static struct real_net one = { NET, IN_CLEAR, .cpts = 1 };
static struct real_net two = { NET, IN_CLEAR, .cpts = 2 };
static struct real_net tls_one = { NET, WITHIN_TLS, .cpts = 1 };
static struct real_net tls_two = { NET, WITHIN_TLS, .cpts = 2 };

static struct lnd_rig rigs[] = {
	{ .name = "1 CPT", .can = RIG_THREADS, .ops = &real_ops, .arg = &one },
	{ .name = "2 CPTs", .can = RIG_THREADS, .ops = &real_ops, .arg = &two },
	{ .name = "TLS, 1 CPT",
	  .can = RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &tls_one },
	{ .name = "TLS, 2 CPTs",
	  .can = RIG_THREADS,
	  .ops = &real_ops,
	  .arg = &tls_two },
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
