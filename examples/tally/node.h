/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <stdio.h>
#include <string.h>
#include "tally.pb-c.h"
#include "tally.ulrpc.h"

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

static struct ulrpc *open_node(int argc, char **argv, enum ulnet_accept accept)
{
	const char *nid = argc > 1 ? argv[1] : "127.0.0.1@tcp";
	struct ulnet_ni_conf ni = { .interface = NULL };
	struct ulnet_conf conf;
	struct lnet *node;
	struct ulrpc *rpc;

	lnet_conf_init(&conf);
	conf.port = 9988; /* 988, the usual one, is root's */
	conf.accept = accept;
	check(lnet_nid_parse(nid, &ni.nid), nid);
	check(lnet_open(&conf, &node), "node");
	check(lnet_ni_add(node, &ni), nid);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	return rpc;
}
