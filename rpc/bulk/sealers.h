/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealers: threads of RPC that seal and open large pieces of memory
 * (secure/piece.h), each at the cipher's speed, while the CPTs serve others. A
 * CPT begins a piece, which takes a counter and a key; a sealer goes over the
 * bytes; the CPT hears of it in a later turn. Small pieces are not worth the
 * way there.
 *
 * The sealers take jobs of hosts in turn, and those of a host in the order in
 * which they were given. Who gives them bounds how many wait: bulk/transfer by
 * the window of a request and the caller's share of memory, bulk/cover by
 * SEALERS_ROUND of a bulk.
 *
 * There are no sealers until there is a job, as many as the processors but one,
 * at most SEALERS_MAX; in virtual time there is one, in lockstep.
 */
#ifndef RPC_SEALERS_H
#define RPC_SEALERS_H

#include "rpc/rpc.h"

#define SEALERS_MAX 8
/* Bytes of a piece that are worth a job. */
#define SEALERS_PIECE (UINT32_C(64) << 10)
/* Bytes of jobs for a bulk at a time. */
#define SEALERS_ROUND (UINT64_C(8) << 20)

struct seal_job {
	struct list link; /* sealers.lanes */
	struct ulnet_work work;
	struct shard *shard;
	/* On the thread of a sealer. May not wait, but in tests. */
	void (*run)(struct seal_job *job);
	/* Owner, in a later turn; takes @job. */
	void (*done)(struct seal_job *job);
};

/* 0; -ENOMEM; -errno. On the thread that opens RPC. */
int sealers_open(struct ulrpc *rpc) must_check;
/* Waits for the sealers to end. No job may be under way. */
void sealers_free(struct ulrpc *rpc);

/* Has a sealer call job->run(), and then @s job->done(), which ulrpc_close()
 * waits for; both are set. @host: a NID of the host for which it is done; NULL:
 * for this process itself. False: there is no sealer, and nothing happens.
 * Owner. */
bool sealers_give(struct shard *s, const struct ulnet_nid *host,
		  struct seal_job *job);

#endif
