/* SPDX-License-Identifier: BSD-3-Clause */
/* Configurations that ulrpc_open() and ulrpc_client_open() refuse: the caller
 * hears which field is wrong, and why. Those of services: services_test.c. */
#include <stdlib.h>
#include "rpc/rpc.h"
#include "tests/unit/lnet/cluster.h"

#define NO_POLICY ((enum ulrpc_backoff)9)
#define TEXT_64                    \
	"0123456789abcdef01234567" \
	"89abcdef0123456789abcdef0123456789abcdef"

struct heard {
	unsigned int lines;
	char last[512];
};

static void on_log(int level, const char *line, void *arg)
{
	struct heard *h = arg;

	cr_assert_eq(level, LNET_LOG_ERR, "%s", line);
	h->lines++;
	snprintf(h->last, sizeof(h->last), "%s", line);
}

/* The log had one line, which ends in what the caller was told. */
static void says(const struct heard *h, const struct ulnet_conf_error *err,
		 const char *who, const char *what)
{
	char line[512];

	cr_expect_str_eq(err->what, what);
	cr_expect_eq(h->lines, 1, "%s", what);
	snprintf(line, sizeof(line), "%s: the configuration is refused: %s", who,
		 what);
	cr_expect(strstr(h->last, line), "%s: %s", line, h->last);
}

Test(refused, confs_of_rpc)
{
	static const struct {
		struct ulrpc_conf conf;
		const char *what;
	} cases[] = {
		{ { .control_buffers = 1 },
		  "control_buffers: 1 is not from 2 to 1024" },
		{ { .control_buffers = 1025 },
		  "control_buffers: 1025 is not from 2 to 1024" },
		{ { .force_policy = NO_POLICY },
		  "force_policy: 9 is no policy" },
		{ { .spread = (enum ulrpc_spread)3 },
		  "spread: 3 is no way to spread clients" },
		{ { .client_id = "me" },
		  "client_generation: with a client_id it must not be 0" },
		{ { .client_generation = 7 },
		  "client_id: client_generation is 7, but there is no id" },
		{ { .timeout_min = 2, .timeout_max = 1 },
		  "timeout_min: 2 is more than timeout_max, 1" },
	};
	struct lnet_sim *sim = cluster(1);
	struct heard h = { 0 };

	lnet_log_set(LNET_LOG_WARN, on_log, &h);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulnet_conf_error err = { "" };
		struct ulrpc_conf conf = cases[i].conf;
		struct ulrpc *rpc = NULL;

		h.lines = 0;
		conf.err = &err;
		cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 0), &conf, &rpc),
			     -EINVAL, "%s", cases[i].what);
		cr_assert_null(rpc);
		says(&h, &err, "RPC", cases[i].what);
		conf.err = NULL;
		cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 0), &conf, &rpc),
			     -EINVAL);
	}
	cluster_end(sim);
}

Test(refused, a_policy_of_the_environment)
{
	struct ulnet_conf_error err = { "" };
	struct ulrpc_conf conf = { .err = &err };
	struct lnet_sim *sim = cluster(1);
	struct ulrpc *rpc;

	cr_assert_eq(setenv("ULRPC_FORCE_POLICY", "never", 1), 0);
	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 0), &conf, &rpc), -EINVAL);
	cr_expect_str_eq(err.what,
			 "force_policy: ULRPC_FORCE_POLICY=never: no such "
			 "policy; there are full, equal, mad and none");
	cluster_end(sim);
}

Test(refused, confs_of_clients)
{
	static const struct ulrpc_retry bad = { .policy = NO_POLICY };
	struct ulnet_nid nids[ULRPC_NIDS_MAX + 1], any = LNET_NID_ANY;
	const struct {
		struct ulrpc_client_conf conf;
		const char *who, *what;
	} cases[] = {
		{ { .nids = nids, .nnids = 1 },
		  "client of", "service: a name is expected" },
		{ { .nids = nids, .nnids = 1, .service = "" },
		  "client of ", "service: a name is expected" },
		{ { .nids = nids, .nnids = 1, .service = TEXT_64 },
		  "client of " TEXT_64,
		  "service: the name has more than 63 bytes" },
		{ { .nids = nids, .service = "s" },
		  "client of s", "nids: there are none" },
		{ { .nnids = 1, .service = "s" },
		  "client of s", "nids: there are none" },
		{ { .nids = nids, .nnids = 17, .service = "s" },
		  "client of s", "nnids: 17 is more than 16" },
		{ { .nids = &any, .nnids = 1, .service = "s" },
		  "client of s",
		  "nids: LNET_NID_ANY is not the NID of one node" },
		{ { .nids = nids, .nnids = 3, .service = "s" },
		  "client of s", "nids: 10.0.0.1@tcp comes twice" },
		{ { .nids = nids, .nnids = 1, .service = "s", .batch_max = 257 },
		  "client of s", "batch_max: 257 is more than 256" },
		{ { .nids = nids, .nnids = 1, .service = "s", .retry = &bad },
		  "client of s", "retry: 9 is no policy" },
	};
	struct lnet_sim *sim = cluster(1);
	struct ulrpc_client *client = NULL;
	struct heard h = { 0 };
	struct ulrpc *rpc;

	for (unsigned int i = 0; i < ARRAY_SIZE(nids); i++)
		nids[i] = nth_id(i % 2).nid;
	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 0), NULL, &rpc), 0);
	lnet_log_set(LNET_LOG_WARN, on_log, &h);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ulnet_conf_error err = { "" };
		struct ulrpc_client_conf conf = cases[i].conf;

		h.lines = 0;
		conf.err = &err;
		cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), -EINVAL,
			     "%s", cases[i].what);
		says(&h, &err, cases[i].who, cases[i].what);
		conf.err = NULL;
		cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), -EINVAL);
	}
	cr_assert_null(client);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cluster_end(sim);
}

/* The node has no interfaces, and nothing on this host serves the target's
 * net. */
Test(refused, a_target_that_cannot_be_reached)
{
	struct ulnet_conf node_conf = { .run = LNET_RUN_POLL,
					.accept = LNET_ACCEPT_NONE };
	struct ulnet_conf_error err = { "" };
	struct ulrpc_client_conf conf = { .nnids = 1,
					  .service = "s",
					  .err = &err };
	struct ulrpc_client *client;
	struct ulnet_nid nid;
	struct ulrpc *rpc;
	struct lnet *node;

	cr_assert_eq(lnet_nid_parse("5@kfi", &nid), 0);
	conf.nids = &nid;
	cr_assert_eq(lnet_open(&node_conf, &node), 0);
	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), -EPROTONOSUPPORT);
	cr_expect_str_eq(err.what, "nids: this host has no way to 5@kfi: "
				   "Protocol not supported");
	lnet_close(node);
}
