/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * T: how long the server has for an attempt.
 *
 * T is computed from an estimate of the method: what its calls to this server
 * took lately (rpc/estimate.h), or, if there were none, what the server
 * advertises:
 *
 *	T = clamp(1.5 * estimate + grace, timeout_min, timeout_max)
 *	grace = max(20 ms, 4 * the deviation of round trips)
 *
 * Without an estimate T is a second, clamped likewise. T is at most half of the
 * time that the call has left, so that there is time for a query and another
 * attempt.
 *
 * The samples of the estimate are the queue and service times of first
 * attempts, as the server reports them. The rest of an attempt's total time is
 * a sample of the round trip. Samples are taken from runs of calls (rpc/run.h),
 * at no cost to a call.
 *
 * Owner: the CPT of the import.
 */
#ifndef RPC_TIMEOUTS_H
#define RPC_TIMEOUTS_H

#include "base/list.h"
#include "rpc/rpc.h"

struct run;
struct stat_shard;

struct timeouts {
	/* of method_timeout.link, the most recently used first */
	struct list methods;
	/* ns that a call takes, as the server says; 0: it has not said */
	uint64_t advertised;
	/* ns: client_estimate() takes no samples from runs before this time */
	uint64_t folded;
};

/* Notes that the server says that a call may take @us; 0: it says nothing. */
static inline void timeouts_advertised(struct timeouts *t, uint64_t us)
{
	if (us)
		t->advertised = rpc_ns(us);
}

void timeouts_free(struct timeouts *t);
/* Returns how many ns a call of @method is expected to take at the server; 0:
 * it is not known. */
uint64_t client_estimate(struct ulrpc_client *c, uint32_t method);
/* Returns T, in ns, for an attempt that begins now, of a call that has
 * @remaining ns left. */
uint64_t client_timeout(struct ulrpc_client *c, uint32_t method,
			uint64_t remaining);
/* Forgets all estimates, because the server has restarted. */
void client_forget_times(struct ulrpc_client *c);
/* Adds the estimates of the methods of @c to @sum. Returns 0 or -ENOMEM. */
int timeouts_gauge(struct ulrpc_client *c, struct stat_shard *sum);
/* What runs.learn of calls calls: takes samples from @run. */
void timeouts_learn(struct shard *s, const struct run *run);

#endif
