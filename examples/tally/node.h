/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include "tally.ulrpc.h"

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

static struct ulrpc *open_node(int argc, char **argv,
			       enum ulnet_accept accept)
{
	struct ulnet_conf conf = {
		.nids = argc > 1 ? argv[1] : "127.0.0.1@tcp",
		.port = 9988, /* 988, the usual one, is root's */
		.accept = accept,
	};
	struct lnet *node;
	struct ulrpc *rpc;

	check(lnet_open(&conf, &node), conf.nids);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	return rpc;
}
