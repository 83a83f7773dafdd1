/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server by the real library among strangers, with an honest client that is
 * served all the time: whatever is sent, that goes on, and in the end nothing
 * is left of it.
 */
#ifndef TESTS_HOSTILE_RIG_H
#define TESTS_HOSTILE_RIG_H

#include "rpc/client/client.h"
#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/stranger.h"

struct hostile_rig {
	struct serve_rig g;
	struct stranger *a, *b; /* at NIDs of their own */
};

struct shard *hostile_shard(struct hostile_rig *h);
uint64_t hostile_counted(struct hostile_rig *h, enum rpc_stat stat);
uint64_t hostile_unreadable(struct hostile_rig *h);
uint64_t hostile_controls_unreadable(struct hostile_rig *h);

/* A call of the honest client: served at once, by the connection it has. */
void hostile_honest(struct hostile_rig *h);
void hostile_init_with(struct hostile_rig *h, const struct ulrpc_conf *conf,
		       const struct ulrpc_service_conf *more);
void hostile_init(struct hostile_rig *h);

/* @a as an ordinary client. */
void hostile_connect(struct hostile_rig *h);
void hostile_settle(struct hostile_rig *h);

/* The answers so far are forgotten. */
void hostile_forget(struct hostile_rig *h);

/* The strangers fall silent. The honest one does not. */
void hostile_fini(struct hostile_rig *h);

#endif
