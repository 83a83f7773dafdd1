/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/writes.h"

void ib_writes_init(struct ib_writes *w, const struct ib_rdma *rdma,
		    const struct ib_sge *sge, uint32_t length)
{
	*w = (struct ib_writes){ .rdma = rdma, .sge = sge, .left = length };
}

/* Where the next bytes go, and how many may go there. */
static uint32_t next_frag(struct ib_writes *w, uint64_t *addr)
{
	uint32_t nob;

	for (;; w->frag++, w->frag_done = 0) {
		BUG_ON(w->frag >= w->rdma->nfrags);
		ib_rdma_frag(w->rdma, w->frag, addr, &nob);
		if (w->frag_done < nob)
			break;
	}
	*addr += w->frag_done;
	return MIN(nob - w->frag_done, w->left);
}

/* At most @room bytes from where the next ones are. */
static void take_piece(struct ib_writes *w, struct ib_sge *out, uint32_t room)
{
	const struct ib_sge *p;

	while (p = &w->sge[w->piece], w->piece_done == p->length) {
		w->piece++;
		w->piece_done = 0;
	}
	out->addr = (char *)p->addr + w->piece_done;
	out->length = MIN(p->length - w->piece_done, room);
	out->lkey = p->lkey;
	w->piece_done += out->length;
}

void ib_writes_next(struct ib_writes *w, struct ib_wr *wr, struct ib_sge *sge,
		    unsigned int max_sge)
{
	uint64_t addr = 0;
	uint32_t room = next_frag(w, &addr), n = 0;

	*wr = (struct ib_wr){ .type = IB_WR_WRITE,
			      .sge = sge,
			      .remote_addr = addr,
			      .rkey = w->rdma->key };
	while (n < room && wr->nsge < max_sge) {
		take_piece(w, &sge[wr->nsge], room - n);
		n += sge[wr->nsge++].length;
	}
	w->frag_done += n;
	w->left -= n;
}

unsigned int ib_writes_count(const struct ib_writes *w, unsigned int max_sge)
{
	struct ib_writes rest = *w;
	struct ib_sge sge[IB_WRITE_SGES];
	struct ib_wr wr;
	unsigned int n = 0;

	for (; !ib_writes_end(&rest); n++)
		ib_writes_next(&rest, &wr, sge, MIN(max_sge, IB_WRITE_SGES));
	return n;
}
