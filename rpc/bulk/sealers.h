/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealers: threads of RPC that seal and open large pieces of memory
 * (secure/piece.h), each as fast as the cipher is, while the CPTs serve others.
 * A CPT begins a piece, which takes a counter and a key; a sealer goes over the
 * bytes; the CPT is told in a later turn. For small pieces that detour would
 * take longer than the work.
 *
 * The sealers take jobs of different hosts in turn, and jobs of one host in the
 * order in which they were given. The number of jobs that wait is bounded by
 * those who give them: bulk/transfer by the window of a request and the
 * caller's share of memory, bulk/cover by SEALERS_ROUND for a bulk.
 *
 * Sealers are started when there are jobs for them, up to one less than there
 * are processors, at least one, at most SEALERS_MAX. In virtual time there is
 * one, in lockstep.
 */
#ifndef RPC_SEALERS_H
#define RPC_SEALERS_H

#include "rpc/rpc.h"

#define SEALERS_MAX 8
/* Pieces of at least so many bytes are given to sealers. */
#define SEALERS_PIECE (UINT32_C(64) << 10)
/* Bytes of a bulk that sealers have at a time, at most. */
#define SEALERS_ROUND (UINT64_C(8) << 20)

struct seal_job {
	struct list link; /* node in sealers.lanes */
	struct ulnet_work work;
	struct shard *shard;
	/* Called on the thread of a sealer. Waits for nothing, except in tests.
	 */
	void (*run)(struct seal_job *job);
	/* Called by the owner, in a later turn. Takes @job. */
	void (*done)(struct seal_job *job);
};

/* Makes rpc->sealers. Returns 0 or a negative errno. Called on the thread that
 * opens RPC. */
int sealers_open(struct ulrpc *rpc) must_check;
/* Waits until the sealers have ended, and frees what they used. No job may be
 * under way. */
void sealers_free(struct ulrpc *rpc);

/* Gives @job to a sealer, which calls job->run(); then the owner of @s calls
 * job->done(), for which ulrpc_close() waits. Both functions have to be set.
 * @host: a NID of the host for which the work is done; NULL: it is for this
 * process itself. Returns false if there is no sealer: then nothing happens.
 * Owner. */
bool sealers_give(struct shard *s, const struct ulnet_nid *host,
		  struct seal_job *job);

#endif
