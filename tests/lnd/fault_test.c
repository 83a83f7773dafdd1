/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socklnd when peers are many, silent, slow, late or killed, and when file
 * descriptors run out: messages fail in time, other peers do not notice, and
 * afterwards everything is as before.
 */
#include "tests/lnd/fault.h"

#include <string.h>
#include <sys/resource.h>

static const struct ulnet_tunable tunables[] = { FAULT_TUNABLES(TIMEOUT) };
static const struct ulnet_tunable hasty_tunables[] = { FAULT_TUNABLES(
	HASTY_TIMEOUT) };

static void tune(struct ulnet_conf *conf, bool hasty)
{
	conf->accept_max = ACCEPT_MAX;
	if (hasty)
		conf->accept_timeout = 4 * 1000000;
	/* long enough for messages that arrive slowly */
	conf->transaction_timeout = 60 * 1000000;
}

#define NET                                                             \
	.nids = { "127.0.0.5@tcp", "127.0.0.6@tcp" },                   \
	.absent = "127.0.0.99@tcp", .port = true, .tunables = tunables, \
	.hasty = hasty_tunables, .tune = tune,                          \
	.ntunables = ARRAY_SIZE(tunables), .run = LNET_RUN_THREADS

static struct real_net one = { NET, .cpts = 1 };
static struct real_net two = { NET, .cpts = 2 };

static struct lnd_rig rigs[] = {
	{ .name = "1 CPT", .can = RIG_THREADS, .ops = &real_ops, .arg = &one },
	{ .name = "2 CPTs", .can = RIG_THREADS, .ops = &real_ops, .arg = &two },
};

int main(int argc, char **argv)
{
	static const struct topic *const topics[] = { &topic_load, &topic_time,
						      &topic_peer };
	struct rlimit files;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	if (argc > 1 && !strcmp(argv[1], "--child"))
		return child_main(argv + 2);
	/* as many files as the system allows */
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	return behaviours_main(argc, argv, rigs, ARRAY_SIZE(rigs), topics,
			       ARRAY_SIZE(topics));
}
