/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "store.ulrpc.h"

static inline void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

/* With @nid NULL it only calls others. */
static inline struct ulrpc *open_node(const char *nid, const char *port)
{
	struct ulnet_conf_error why = { "" };
	struct ulnet_conf conf = {
		.nids = nid,
		.port = (uint16_t)atoi(port),
		.accept = nid ? LNET_ACCEPT_ALL : LNET_ACCEPT_NONE,
		.err = &why,
	};
	struct lnet *node;
	struct ulrpc *rpc;

	check(lnet_open(&conf, &node), why.what);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	return rpc;
}
