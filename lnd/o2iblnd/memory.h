/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registered memory for payloads that are too large for a message. They are
 * copied, from or to the user's memory, which is the user's again as soon as
 * LNet says so, whatever a device or a peer still does: no time-out and no
 * cancellation has to end a connection, and nothing of the user's is ever
 * registered.
 *
 * What this side asks for, and what it answers to peers, have half of it each. A
 * request waits for the memory of a peer's answer, and an answer waits for
 * nothing: so two nodes that are short of memory never wait for each other.
 *
 * Bounded by the tunable bounce_max, and each peer has a share of that
 * (arena.h). Beyond it transfers wait, in their order; who has its share stands
 * in nobody else's way.
 *
 * Thread: the CPT's.
 */
#ifndef LND_O2IBLND_MEMORY_H
#define LND_O2IBLND_MEMORY_H

#include "lnd/o2iblnd/o2iblnd.h"

/* What a peer's transfers hold. */
struct ib_holder {
	struct hash_node hash; /* cpt->holders */
	struct ulnet_nid nid;
	uint64_t bytes[IB_USES];
	unsigned int blocks;
};

/* A block, or none. */
struct ib_memory {
	struct ib_block block; /* chunk NULL: none */
	enum ib_use use;
	struct ib_holder *holder;
	struct ib_sge sge; /* the block, as a source */
};

/* @length bytes, 1 to IB_BLOCK_MAX, for a transfer with @nid. -ENOBUFS: not
 * now; -ENOMEM: no memory can be registered. */
int ib_memory_get(struct ib_cpt *cpt, enum ib_use use,
		  const struct ulnet_nid *nid, uint32_t length,
		  struct ib_memory *m) must_check;
/* Fine if it is none. Those who wait are fed soon. */
void ib_memory_put(struct ib_cpt *cpt, struct ib_memory *m);

#endif
