/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory for payloads that are too large for a message, and not in
 * registered memory themselves (regcache.h). They are copied, from or to the
 * user's memory. The user's memory is the user's again as soon as LNet says so,
 * whatever a device or a peer still does. So no time-out and no cancellation of
 * such a message has to end a connection.
 *
 * PUTs and GETs of this side have one half of the memory, answers to those of
 * peers the other half. A request may wait for memory that a peer's answer
 * needs, but an answer waits for nothing: so two nodes that are short of memory
 * never wait for each other.
 *
 * Bounded by the tunable bounce_max, of which each peer has a share.
 * Beyond it transfers wait: those of one peer in their order, for each of the
 * two uses; those of a peer that has its share keep nobody else waiting.
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

/* ---- whose they are, and who waits ---- */

struct ib_cpt;

/* What it is for. */
enum ib_use {
	IB_USE_ASKS,	/* a PUT or GET of this side */
	IB_USE_ANSWERS, /* the other end of a peer's */
	IB_USES
};

/* What a peer's transfers hold, and wait for. */
struct ib_holder {
	struct hash_node hash; /* cpt->holders */
	struct ulnet_nid nid;
	uint64_t bytes[IB_USES];
	unsigned int waiting[IB_USES]; /* ib_memory.waits */
	uint64_t refused[IB_USES];     /* the last round that fed it no more */
	uint64_t lost; /* xfer.c's: the last round that found no connection */
	unsigned int blocks;
};

/* A block, or none. */
struct ib_memory {
	struct ib_block block; /* chunk NULL: none */
	enum ib_use use;
	bool waits;		  /* others of its peer do not overtake it */
	struct ib_holder *holder; /* if it is a block, or waits */
	struct ib_sge sge;	  /* the block, as a source */
};

/* @length bytes, 1 to IB_BLOCK_MAX, for a transfer with @nid. -ENOBUFS: not
 * now, or others of this peer wait; -ENOMEM: no memory can be registered. */
int ib_memory_get(struct ib_cpt *cpt, enum ib_use use,
		  const struct ulnet_nid *nid, uint32_t length,
		  struct ib_memory *m) must_check;
/* After -ENOBUFS: it waits, behind all others of its peer, which have called
 * this before. 0 or -ENOMEM. */
int ib_memory_wait(struct ib_cpt *cpt, enum ib_use use,
		   const struct ulnet_nid *nid, struct ib_memory *m) must_check;
/* For one that waits, and goes on waiting: as ib_memory_get(). All who wait are
 * to be asked in their order, with a number, @round, that is another one for
 * each time. */
int ib_memory_feed(struct ib_cpt *cpt, uint64_t round, uint32_t length,
		   struct ib_memory *m) must_check;
/* Does anything for @nid wait, of this use? */
bool ib_memory_is_awaited(const struct ib_cpt *cpt, enum ib_use use,
			  const struct ulnet_nid *nid);
/* It waits no more, whether it has memory or not. Fine if it does not wait.
 * Others may get what it did not. */
void ib_memory_unwait(struct ib_cpt *cpt, struct ib_memory *m);
/* Fine if it is none, which must not wait. Those who wait are fed soon. */
void ib_memory_put(struct ib_cpt *cpt, struct ib_memory *m);

#endif
