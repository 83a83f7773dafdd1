/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory for payloads that have to be copied, because their own
 * memory is not registered, or is in too many pieces for one key. Blocks of
 * powers of two, in chunks that are registered once, for peers to write to as
 * well. A block is halved for a smaller one, and halves are put together again
 * when no larger one is free.
 *
 * Bounded by the bytes of all blocks that are lent; each peer has a share of
 * them (base/share.h), and who has used up its share is refused, and nobody
 * else. Chunks are registered as they are needed; one that is all free is kept.
 *
 * Owner: a CPT, for one port. Thread: its CPT's.
 */
#ifndef LND_O2IBLND_ARENA_H
#define LND_O2IBLND_ARENA_H

#include "base/list.h"
#include "lnd/o2iblnd/verbs.h"

#define IB_BLOCK_MIN	4096u
#define IB_BLOCK_ORDERS 9
#define IB_BLOCK_MAX	(IB_BLOCK_MIN << (IB_BLOCK_ORDERS - 1)) /* 1 MiB */
#define IB_CHUNK_BYTES	(4 * IB_BLOCK_MAX)

struct ib_chunk;
struct ib_regcache;

/* What is lent. The borrower's, by value. */
struct ib_block {
	void *addr;
	uint32_t length; /* bytes, as asked for */
	uint32_t lkey, rkey;
	struct ib_chunk *chunk; /* the arena's */
};

struct ib_arena {
	/* immutable after init */
	struct ib_port *port;
	uint64_t max;		   /* bytes */
	struct ib_regcache *spare; /* gives way to it; set after init, or
				    * NULL */

	uint64_t used, peak; /* bytes, of blocks that are lent */
	uint64_t registered; /* bytes */
	uint64_t refused;    /* times: the bound, or a peer's share */
	uint64_t failed;     /* times: no memory could be registered */
	struct list chunks;
	unsigned int idle_chunks;
	struct list free[IB_BLOCK_ORDERS]; /* of each size */
};

void ib_arena_init(struct ib_arena *a, struct ib_port *port, uint64_t max);
/* All blocks are back. */
void ib_arena_fini(struct ib_arena *a);

/* @length bytes, 1 to IB_BLOCK_MAX, for the peer that holds *@held bytes, which
 * become more. What is in them is anything. -ENOBUFS: this peer has its share,
 * or there are no more at all; -ENOMEM: no memory can be registered. */
int ib_arena_get(struct ib_arena *a, uint64_t *held, uint32_t length,
		 struct ib_block *block) must_check;
/* @held: as it was lent. No device touches it any more. */
void ib_arena_put(struct ib_arena *a, uint64_t *held, struct ib_block *block);

#endif
