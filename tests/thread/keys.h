/* SPDX-License-Identifier: BSD-3-Clause */
/* A cluster's key, for programs that call with seals. */
#ifndef TESTS_THREAD_KEYS_H
#define TESTS_THREAD_KEYS_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "ulnet/keys.h"

/* Returns keys that belong to the caller (ulrpc_keys_put()); NULL: ulnet was
 * built without TLS, so there are no seals. */
static inline struct ulrpc_keys *cluster_keys(void)
{
#ifdef WITH_TLS
	char path[] = "/tmp/ulnet-keys-XXXXXX", why[256];
	const struct ulrpc_keys_conf conf = { .cluster = path };
	struct ulrpc_keys *keys;
	int fd = mkstemp(path);

	BUG_ON(fd < 0 || dprintf(fd, "site %064x\n", 42) < 0);
	if (ulrpc_keys_load(&conf, &keys, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	BUG_ON(close(fd) || unlink(path));
	return keys;
#else
	return NULL;
#endif
}

#endif
