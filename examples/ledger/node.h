/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXAMPLES_LEDGER_NODE_H
#define EXAMPLES_LEDGER_NODE_H

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ledger.ulrpc.h"

static inline void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

static inline struct ulrpc *open_node(const char *nid, const char *port,
				      enum ulnet_accept accept)
{
	struct ulnet_conf conf = {
		.nids = nid,
		.port = (uint16_t)atoi(port),
		.accept = accept,
	};
	struct lnet *node;
	struct ulrpc *rpc;

	check(lnet_open(&conf, &node), nid);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	return rpc;
}

#endif
