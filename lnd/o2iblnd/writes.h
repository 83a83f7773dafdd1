/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From what a peer says where it wants its bytes, and where they are here, to
 * the work requests that write them. Both are lists of pieces, of any length,
 * whose ends need not meet: a WRITE goes to one fragment of the peer, and
 * gathers pieces of local memory. The last one goes out however short it is.
 *
 * Thread: any, one at a time.
 */
#ifndef LND_O2IBLND_WRITES_H
#define LND_O2IBLND_WRITES_H

#include "lnd/o2iblnd/verbs.h"
#include "lnd/o2iblnd/wire.h"

/* Pieces that a WRITE gathers, at most. */
#define IB_WRITE_SGES 16

/* How far it has come. */
struct ib_writes {
	const struct ib_rdma *rdma; /* NULL: nothing is to be written */
	const struct ib_sge *sge;
	unsigned int frag, piece;	/* to be gone on with, and ... */
	uint32_t frag_done, piece_done; /* ... bytes of them that are done */
	uint32_t left;			/* bytes */
};

/* @length bytes, which both have; 0: nothing is to be written. Both are
 * borrowed until it is done. */
void ib_writes_init(struct ib_writes *w, const struct ib_rdma *rdma,
		    const struct ib_sge *sge, uint32_t length);

static inline bool ib_writes_end(const struct ib_writes *w)
{
	return !w->left;
}

/* The next WRITE: to @wr, which names its pieces in @sge, with room for
 * @max_sge. Not at the end. */
void ib_writes_next(struct ib_writes *w, struct ib_wr *wr, struct ib_sge *sge,
		    unsigned int max_sge);

/* How many there are still, of at most @max_sge pieces each. */
unsigned int ib_writes_count(const struct ib_writes *w, unsigned int max_sge);

#endif
