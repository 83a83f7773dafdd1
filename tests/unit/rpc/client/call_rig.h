/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that uses the real library, and a server played by the test
 * (fake_server.h). */
#ifndef TESTS_CALL_RIG_H
#define TESTS_CALL_RIG_H

#include "rpc/client/call.h"
#include "rpc/client/client.h"
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/fake_server.h"

#define SEC  (1000 * MSEC)
#define USEC UINT64_C(1000)
#define SIZE 64 /* bytes that are kept of a reply */

/* What the callback of a call was told. */
struct note {
	/* how often the callback was called; must become 1 */
	unsigned int ended;
	uint64_t at; /* ns: when it was called */
	struct ulrpc_outcome outcome;
	uint8_t reply[SIZE];
	size_t length;
	bool inside; /* the function that made the call has not returned */
	struct lnet_sim *sim;
	struct ulrpc_call *call;
};

struct call_rig {
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	struct fake *fake;
	bool crashed;
};

void note_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
	      size_t length);

/* Opens the client, with @inflight calls in flight at most and without random
 * pauses. */
void rig_client(struct call_rig *g, uint32_t inflight);
void rig_open_with(struct call_rig *g, const struct ulrpc_conf *conf);
void rig_open(struct call_rig *g);
void rig_close(struct call_rig *g);
struct ulrpc_call_conf within(uint64_t us);
void call_with(struct call_rig *g, struct note *n,
	       const struct ulrpc_call_conf *conf, const void *body,
	       size_t length);
void call(struct call_rig *g, struct note *n, uint64_t us);
void run(struct call_rig *g, uint64_t ns);

/* Checks that the call has ended once, with this cause and execution. */
void ended_by(struct note *n, enum ulrpc_cause cause,
	      enum ulrpc_execution execution);
void ended_well(struct note *n);
enum import_state import_state_of(struct call_rig *g);

static inline uint64_t call_counted(const struct call_rig *g,
				    enum rpc_stat stat)
{
	return g->rpc->shards[0].stats->counts[stat];
}

#endif
