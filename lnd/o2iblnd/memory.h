/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory for payloads that are too large for a message, and not in
 * registered memory themselves (direct.h). They are copied, from or to the
 * user's memory. The user's memory is the user's again as soon as LNet says so,
 * whatever a device or a peer still does. So no time-out and no cancellation of
 * such a message has to end a connection.
 *
 * PUTs and GETs of this side have one half of the memory, answers to those of
 * peers the other half. A request may wait for memory that a peer's answer
 * needs, but an answer waits for nothing: so two nodes that are short of memory
 * never wait for each other.
 *
 * Bounded by the tunable bounce_max, of which each peer has a share (arena.h).
 * Beyond it transfers wait: those of one peer in their order, for each of the
 * two uses; those of a peer that has its share keep nobody else waiting.
 *
 * Thread: the CPT's.
 */
#ifndef LND_O2IBLND_MEMORY_H
#define LND_O2IBLND_MEMORY_H

#include "lnd/o2iblnd/o2iblnd.h"

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
