/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long an attempt of a call may take: T, which the server is told. It is
 * computed from an estimate: what calls of the method took there lately
 * (rpc/estimate.h), or, if it was not called lately, what the server says:
 *
 *	T = clamp(1.5 * estimate + grace, timeout_min, timeout_max)
 *	grace = max(20 ms, 4 * the deviation of round trips)
 *
 * and no more than half of what the call has left: so there is time to ask what
 * became of the attempt, and for another one. The answer is awaited for T and a
 * round trip. Without any estimate T is a second.
 *
 * Samples are the queue and service times of first attempts, as the server
 * reports them; the rest of the total is the round trip. Calls are observed in
 * runs (rpc/run.h), so that a call costs nothing here. Statistics may show the
 * estimates, but do not make them.
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
/* The server is another one than before: nothing is known of it. */
void timeouts_forget(struct timeouts *t);

/* The server says that a call may take @us; 0: it says nothing. */
static inline void timeouts_advertised(struct timeouts *t, uint64_t us)
{
	if (us)
		t->advertised = us > UINT64_MAX / NSEC_PER_USEC
					? UINT64_MAX
					: us * NSEC_PER_USEC;
}

/* ns that a call of @method may take at the server; 0: nobody knows. */
uint64_t client_estimate(struct ulrpc_client *c, uint32_t method);
/* T, ns, for an attempt that begins now, if its call has @remaining ns left. */
uint64_t client_timeout(struct ulrpc_client *c, uint32_t method,
			uint64_t remaining);
/* ns that nearly all round trips take, without the time at the server: before
 * the first call, what it took to connect, or a guess if that is more. */
uint64_t import_rtt(const struct import *imp);
/* The same in us, as the server is told it: without the guess. */
uint64_t import_rtt_us(const struct import *imp);

/* Adds to @sum what is known of the methods that have answered calls of @c.
 * -ENOMEM. */
int timeouts_gauge(struct ulrpc_client *c, struct stat_shard *sum);
/* runs.learn, of calls. */
void timeouts_learn(struct shard *s, const struct run *run);

#endif
