/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long the server has for an attempt of a call: T. It is computed from an
 * estimate of the method: what its calls to this server took lately
 * (rpc/estimate.h), or, if there were none, what the server advertises:
 *
 *	T = clamp(1.5 * estimate + grace, timeout_min, timeout_max)
 *	grace = max(20 ms, 4 * the deviation of round trips)
 *
 * but at most half of the time that the call has left, so that there is time to
 * ask what became of the attempt, and for another one. Without an estimate T is
 * a second.
 *
 * Samples are the queue and service times of first attempts, as the server
 * reports them; the rest of their total time is the round trip. They are taken
 * from runs of calls (rpc/run.h), at no cost to a call.
 *
 * Owner: the CPT of the client.
 */
#ifndef RPC_CLIENT_TIMEOUT_H
#define RPC_CLIENT_TIMEOUT_H

#include "base/list.h"
#include "base/util.h"

struct import;
struct shard;
struct run;
struct stat_shard;
struct ulrpc_client;

struct timeouts {
	struct list methods; /* method_timeout.link; the last one used first */
	uint64_t advertised; /* ns: what the server says; 0: nothing */
	uint64_t folded;     /* ns: until when runs need not be asked for */
};

void timeouts_init(struct timeouts *t);
void timeouts_fini(struct timeouts *t);
/* The server is another one than before: forgets all estimates. */
void timeouts_forget(struct timeouts *t);

/* The server says that a call may take @us; 0: it says nothing. */
static inline void timeouts_advertised(struct timeouts *t, uint64_t us)
{
	if (us)
		t->advertised = us > UINT64_MAX / NSEC_PER_USEC
					? UINT64_MAX
					: us * NSEC_PER_USEC;
}

/* ns that a call of @method may take at the server; 0: not known. */
uint64_t client_estimate(struct ulrpc_client *c, uint32_t method);
/* T, ns, for an attempt that begins now, of a call that has @remaining ns
 * left. */
uint64_t client_timeout(struct ulrpc_client *c, uint32_t method,
			uint64_t remaining);
/* ns that nearly all round trips take, without the time at the server. Before
 * the first sample: what it took to connect, but at least 100 ms. */
uint64_t import_rtt(const struct import *imp);
/* The same in us, as the server is told: without the 100 ms. */
uint64_t import_rtt_us(const struct import *imp);

/* Adds the estimates of the methods of @c to @sum. -ENOMEM. */
int timeouts_gauge(struct ulrpc_client *c, struct stat_shard *sum);
/* runs.learn, of calls: takes samples from @run. */
void timeouts_learn(struct shard *s, const struct run *run);

#endif
