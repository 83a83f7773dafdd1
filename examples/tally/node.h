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

static struct ulrpc *open_node(const char *nids, enum ulnet_accept accept)
{
	struct ulnet_conf_error why = { "" };
	struct ulnet_conf conf = {
		.nids = nids,
		.port = 9988, /* 988, the usual one, is root's */
		.accept = accept,
		.err = &why,
	};
	struct lnet *node;
	struct ulrpc *rpc;

	check(lnet_open(&conf, &node), why.what);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	return rpc;
}
