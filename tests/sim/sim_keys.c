/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/sim_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpc/client/import.h"
#include "rpc/client/imports.h"
#include "rpc/sealed.h"
#include "rpc/server/session/export.h"
#include "secure/piece.h"
#include "tests/sim/cluster.h"

/* How long a key lasts, at most. */
#define KEY_AGE (100 * MS)

struct ulrpc_keys *sim_keys_new(struct lnet_sim *sim)
{
	char path[] = "/tmp/ulnet-campaign-XXXXXX", why[256];
	const struct ulrpc_keys_conf files = { .cluster = path };
	struct ulrpc_keys *keys = NULL;
	int fd = mkstemp(path), rc;

	if (fd < 0 || dprintf(fd, "lab %064d\n", 7) < 0)
		abort();
	close(fd);
	rc = ulrpc_keys_load(&files, &keys, why, sizeof(why));
	unlink(path);
	if (rc && rc != -EOPNOTSUPP)
		lnet_sim_fail(sim, "no keys: %s", why);
	return rc ? NULL : keys;
}

static unsigned int sealed_wear(struct sealed *sd)
{
	if (!sd)
		return 0;
	sd->out.age_max = KEY_AGE;
	piece_key_limit(sd->bulk_out, SEAL_USED_MAX, KEY_AGE);
	return sd->out.generation != 0;
}

unsigned int sim_keys_wear(const struct ulrpc *rpc)
{
	const struct import *imp;
	const struct session *se;
	unsigned int n = 0;

	for (unsigned int i = 0; rpc && i < rpc->ncpts; i++) {
		struct shard *s = &rpc->shards[i];
		uint32_t pos = 0;

		if (!s->imports || !s->exports)
			continue;
		list_for_each_entry (imp, &s->imports->all, link)
			n += sealed_wear(imp->sealed);
		while ((se = id_walk(&s->exports->sessions.table, &pos)))
			n += sealed_wear(se->sealed);
	}
	return n;
}
