/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sealed bulk (secure/piece.h) takes on a CPT: memory for encrypted bytes,
 * and processor time.
 *
 * A caller encrypts its sources before it offers them. That takes as much
 * memory as it has lent, and is not limited here. A server needs memory for
 * each chunk that it encrypts to put it, and for the rest of a segment of which
 * it gets only a part. Each client has its share of this memory; when the share
 * is used up, the client's other chunks wait.
 *
 * Large segments are sealed and opened by other threads (sealers.h). Of the
 * smaller ones, neither caller nor server seals more than SEAL_SLICE bytes in a
 * turn, so that other work goes on.
 *
 * Owner.
 */
#ifndef RPC_BULK_SEAL_H
#define RPC_BULK_SEAL_H

#include "rpc/quota.h"
#include "rpc/rpc.h"
#include "rpc/slab.h"
#include "secure/piece.h"

#define SEAL_SLICE (UINT32_C(64) << 10)
/* Bytes on a CPT for encrypted chunks that are being put, and for what is got
 * beside what is wanted, at most. */
#define SEAL_ROOM_MAX (UINT32_C(64) << 20)
/* ns: when there is no memory for a chunk, it is made so much later; when there
 * is no time, in the next turn */
#define SEAL_PAUSE     (5 * NSEC_PER_MSEC)
#define SEAL_NEXT_TURN 1

struct bulk_pool {
	struct slab slab;
	struct quotas rooms; /* how much of SEAL_ROOM_MAX clients use */
	uint64_t turn;	 /* ns: the last turn in which something was sealed */
	uint32_t sealed; /* bytes that were sealed in that turn */
	/* transfers for which there was no time in this turn, and the work that
	 * continues them in the next one */
	struct list waiting;
	struct ulnet_work work;
	bool posted; /* @work is posted */
	struct shard *shard;
};

/* May another segment be sealed in this turn, which is at @now? */
static inline bool bulk_may_seal(const struct bulk_pool *pool, uint64_t now)
{
	return pool->turn != now || pool->sealed < SEAL_SLICE;
}

static inline void bulk_sealed(struct bulk_pool *pool, uint64_t now, uint32_t n)
{
	if (pool->turn != now)
		pool->sealed = 0;
	pool->turn = now;
	pool->sealed += n;
}

/* Memory from a client's share of SEAL_ROOM_MAX. */
struct bulk_room {
	struct quota *quota;
	void *bytes; /* NULL: no memory was taken */
	uint32_t n;
};

/* Takes @n bytes from the share of @nid. Returns false if it has used up its
 * share, or there is no memory. */
bool bulk_room_take(struct shard *s, const struct ulnet_nid *nid, uint32_t n,
		    struct bulk_room *room);
/* Gives the memory back, if some was taken. */
void bulk_room_give(struct shard *s, struct bulk_room *room);

/*
 * Returns the CRC32C in the header data of a PUT to a sealed sink. It covers
 * the place of the chunk and its payload, so that a chunk that was damaged or
 * misplaced by accident is put again. Only the seal protects against intent.
 */
uint32_t bulk_place_crc(uint64_t match, uint32_t offset, uint32_t length);

extern const struct rpc_part bulk_part;

#endif
