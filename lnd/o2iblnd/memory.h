/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounce memory: registered memory through which payloads are copied that do
 * not fit into an IMMEDIATE and are not in registered memory themselves
 * (regcache.h). As devices and peers access only the copy, a message can time
 * out or be canceled without ending its connection.
 *
 * Half of the memory is for PUTs and GETs of this side, half for answers to
 * peers. A request may wait until a peer's answer frees memory, but an answer
 * waits for no request: so two nodes that are short of memory cannot deadlock.
 *
 * The memory of a CPT is bounded by the tunable bounce_max, of which each peer
 * has a share. Transfers that need more wait, in order for each peer and use. A
 * peer that has used up its share does not keep others waiting.
 *
 * Thread: the CPT's.
 */
#ifndef LND_O2IBLND_MEMORY_H
#define LND_O2IBLND_MEMORY_H

#include "base/hash.h"
#include "base/list.h"
#include "lnd/o2iblnd/verbs.h"

/* ---- blocks ---- */

/*
 * A buddy allocator: blocks of powers of two, in chunks that are registered as
 * a whole, for remote access as well. A block is split for a smaller one, and
 * halves are merged again when no larger one is free.
 *
 * Bounded by the bytes of all blocks lent. Each peer has a share of them
 * (base/share.h). Chunks are registered as needed; one unused chunk is kept.
 *
 * Owner: a CPT, for one port. Thread: its CPT's.
 */

#define IB_BLOCK_MIN	4096u
#define IB_BLOCK_ORDERS 9
#define IB_BLOCK_MAX	(IB_BLOCK_MIN << (IB_BLOCK_ORDERS - 1)) /* 1 MiB */
#define IB_CHUNK_BYTES	(4 * IB_BLOCK_MAX)

struct ib_chunk;
struct ib_regcache;

/* A lent block. The borrower keeps this structure. */
struct ib_block {
	void *addr;
	uint32_t length; /* number of bytes asked for */
	uint32_t lkey, rkey;
	struct ib_chunk *chunk; /* the chunk that the block is a part of */
};

struct ib_arena {
	/* immutable after init */
	struct ib_port *port;
	uint64_t max; /* the most bytes in lent blocks */
	/* cache from which registrations are evicted when memory is short;
	 * NULL: none; set later */
	struct ib_regcache *regcache;

	uint64_t used;	     /* number of bytes in lent blocks */
	uint64_t registered; /* number of bytes in chunks */
	uint64_t refused;    /* how often the bound or a share was exceeded */
	uint64_t failed;     /* how often memory was short */
	struct list chunks;
	unsigned int idle_chunks;
	struct list free[IB_BLOCK_ORDERS]; /* free blocks, by order */
};

void ib_arena_init(struct ib_arena *a, struct ib_port *port, uint64_t max);
/* All blocks must have been put. */
void ib_arena_fini(struct ib_arena *a);

/* Lends @length bytes, 1 to IB_BLOCK_MAX, uninitialized, to the peer that holds
 * *@held bytes, which is updated. -ENOBUFS: the peer's share, or all memory, is
 * used up; -ENOMEM: no memory can be registered. */
int ib_arena_get(struct ib_arena *a, uint64_t *held, uint32_t length,
		 struct ib_block *block) must_check;
/* Takes back a block. @held: the same as when it was lent. No device may access
 * the block any more. */
void ib_arena_put(struct ib_arena *a, uint64_t *held, struct ib_block *block);

/* ---- shares and queues ---- */

struct ib_cpt;

/* What the memory is used for. */
enum ib_use {
	IB_USE_REQUESTS, /* a PUT or GET of this side */
	IB_USE_ANSWERS,	 /* the answer to a peer's PUT or GET */
	IB_USES
};

/* What a peer's transfers hold and wait for. */
struct ib_holder {
	struct hash_node hash; /* in cpt->holders */
	struct ulnet_nid nid;
	uint64_t bytes[IB_USES];
	unsigned int waiting[IB_USES]; /* number of transfers that wait */
	/* number of the last round in which memory was refused to a transfer of
	 * this use */
	uint64_t refused[IB_USES];
	/* number of the last round in which a transfer had no connection
	 * (xfer.c) */
	uint64_t lost;
	unsigned int blocks;
};

/* What a transfer has of bounce memory: a block, a place in the queue, or
 * nothing. */
struct ib_memory {
	/* the block; its chunk is NULL if there is none */
	struct ib_block block;
	enum ib_use use;
	bool waits; /* it has a place in the queue */
	/* NULL: has neither a block nor a place in the queue */
	struct ib_holder *holder;
	struct ib_sge sge; /* the block as a WRITE's source */
};

/* Gets @length bytes, 1 to IB_BLOCK_MAX, for a transfer with @nid. Returns 0;
 * -ENOBUFS: there are none now, or other transfers with this peer wait;
 * -ENOMEM: no memory can be registered. */
int ib_memory_get(struct ib_cpt *cpt, enum ib_use use,
		  const struct ulnet_nid *nid, uint32_t length,
		  struct ib_memory *m) must_check;
/* To be called after -ENOBUFS: puts @m at the end of its peer's queue. Returns
 * 0 or -ENOMEM. */
int ib_memory_wait(struct ib_cpt *cpt, enum ib_use use,
		   const struct ulnet_nid *nid, struct ib_memory *m) must_check;
/* Tries again to get memory for @m, which waits, and which keeps its place
 * until ib_memory_unwait(). Returns as ib_memory_get(). All transfers that wait
 * must be tried in order, with a new number @round each time. */
int ib_memory_retry(struct ib_cpt *cpt, uint64_t round, uint32_t length,
		    struct ib_memory *m) must_check;
/* Does a transfer with @nid wait for memory for @use? */
bool ib_memory_is_awaited(const struct ib_cpt *cpt, enum ib_use use,
			  const struct ulnet_nid *nid);
/* Gives up the place of @m in the queue, if it has one; @m may have a block. */
void ib_memory_unwait(struct ib_cpt *cpt, struct ib_memory *m);
/* Frees the block, if any; transfers that wait are retried soon. @m must not
 * wait. */
void ib_memory_put(struct ib_cpt *cpt, struct ib_memory *m);

#endif
