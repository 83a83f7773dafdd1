/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that uses the real library, two hostile clients that the test plays,
 * and an honest client that must be served all the time, whatever the hostile
 * ones send. At the end the server must keep nothing of them.
 */
#ifndef TESTS_HOSTILE_RIG_H
#define TESTS_HOSTILE_RIG_H

#include "rpc/client/client.h"
#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

/* A test that is also run with keys: the node of the server and the honest
 * client prove who they are, and talk by sealed messages; the service takes
 * calls of others, too, so that hostile ones get as far as without keys. */
#ifdef WITH_TLS
#define HOSTILE_KEYS(suite, name)                           \
	Test(suite##_keys, name, .init = hostile_with_keys) \
	{                                                   \
		suite##_##name();                           \
	}
#else
#define HOSTILE_KEYS(suite, name)
#endif
#define HOSTILE(suite, name)                            \
	static void suite##_##name(void);               \
	Test(suite, name, .init = hostile_without_keys) \
	{                                               \
		suite##_##name();                       \
	}                                               \
	HOSTILE_KEYS(suite, name)                       \
	static void suite##_##name(void)

void hostile_with_keys(void);
void hostile_without_keys(void);

struct hostile_rig {
	struct serve_rig g;
	struct raw_client *a, *b; /* hostile clients at NIDs of their own */
};

struct shard *hostile_shard(struct hostile_rig *h);
uint64_t hostile_counted(struct hostile_rig *h, enum rpc_stat stat);
uint64_t hostile_unreadable(struct hostile_rig *h);
uint64_t hostile_controls_unreadable(struct hostile_rig *h);

/* Makes a call of the honest client, which must be served at once over its
 * first connection. */
void hostile_honest(struct hostile_rig *h);
void hostile_init_with(struct hostile_rig *h, const struct ulrpc_conf *conf,
		       const struct ulrpc_service_conf *more);
void hostile_init(struct hostile_rig *h);

/* Connects @a, and opens the service, as an ordinary client does. */
void hostile_connect(struct hostile_rig *h);
void hostile_settle(struct hostile_rig *h);

/* Forgets the answers that @a has received so far. */
void hostile_forget(struct hostile_rig *h);

/* Checks that the server forgets the hostile clients, which send nothing any
 * more, and goes on serving the honest one; closes the rig. */
void hostile_fini(struct hostile_rig *h);

#endif
