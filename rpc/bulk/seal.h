/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sealed bulk (secure/piece.h) takes on a CPT: memory for what is
 * encrypted, and the processor's time.
 *
 * A caller encrypts its sources before it offers them, in as much memory as it
 * has lent, which is its own affair. A server encrypts what it puts, chunk by
 * chunk, and gets all of a segment of which it wants a part; each client has
 * its share of the memory for both: with it used up, its other chunks wait.
 * Large segments are sealed and opened by other threads (sealers.h); of the
 * rest neither seals more than SEAL_SLICE bytes in a turn, so that others go on
 * meanwhile.
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
/* Bytes for chunks that a CPT has put, or is about to, and for what it gets
 * beside what is wanted. */
#define SEAL_ROOM_MAX (UINT32_C(64) << 20)
/* ns: a chunk for which there is no memory is made so much later; one for which
 * there is no time, in the next turn */
#define SEAL_PAUSE     (5 * NSEC_PER_MSEC)
#define SEAL_NEXT_TURN 1

struct bulk_pool {
	struct slab slab;
	struct quotas rooms; /* SEAL_ROOM_MAX, by clients */
	uint64_t turn;	 /* ns: of the last turn that sealed something, and */
	uint32_t sealed; /* bytes in it */
	/* transfers for which there was no time in this turn, and the work that
	 * lets them go on in the next one */
	struct list waiting;
	struct ulnet_work work;
	bool posted; /* @work is */
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

/* Memory for what is moved, of the share of a client. */
struct bulk_room {
	struct quota *quota;
	void *bytes; /* NULL: there is none */
	uint32_t n;
};

/* Takes @n bytes of the share of @nid. False: it has used that up, or there is
 * no memory. */
bool bulk_room_take(struct shard *s, const struct ulnet_nid *nid, uint32_t n,
		    struct bulk_room *room);
/* Gives the memory back, if there is any. */
void bulk_room_give(struct shard *s, struct bulk_room *room);

/*
 * The CRC32C in the header data of a PUT to a sealed sink: of where it belongs,
 * and of its payload, so that a chunk that was damaged or moved is put again.
 * It proves nothing to anybody who means harm; the seal does.
 */
uint32_t bulk_place_crc(uint64_t match, uint32_t offset, uint32_t length);

extern const struct rpc_part bulk_part;

#endif
