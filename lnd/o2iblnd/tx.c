/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/tx.h"

#include <errno.h>

#include "lnd/o2iblnd/regcache.h"

#define SLAB_COUNT 64
#define SLAB_BYTES ((size_t)SLAB_COUNT * IB_MSG_SIZE_MAX)
#define PAGE_ALIGN 4096

#define DONE FSM_TO(IB_TX_DONE)

const struct fsm_state ib_tx_states[IB_TX_STATES] = {
	[IB_TX_NEW] = { "new",
			FSM_TO(IB_TX_RESERVED) | FSM_TO(IB_TX_QUEUED) | DONE },
	[IB_TX_RESERVED] = { "reserved", FSM_TO(IB_TX_QUEUED) | DONE },
	[IB_TX_QUEUED] = { "queued", FSM_TO(IB_TX_WRITING) |
					     FSM_TO(IB_TX_POSTED) | DONE },
	[IB_TX_WRITING] = { "writing", FSM_TO(IB_TX_POSTED) | DONE },
	/* The peer's answer may overtake the completion of the SEND. */
	[IB_TX_POSTED] = { "posted", FSM_TO(IB_TX_WAITING) |
					     FSM_TO(IB_TX_QUEUED) | DONE },
	[IB_TX_WAITING] = { "waiting", FSM_TO(IB_TX_QUEUED) | DONE },
	[IB_TX_DONE] = { "done", 0 },
};

struct ib_tx_slab {
	struct list link; /* in pool->slabs */
	struct ib_mr *mr;
	void *bufs;
	struct ib_tx txs[SLAB_COUNT];
};

void ib_tx_pool_init(struct ib_tx_pool *pool, struct ib_port *port,
		     uint32_t max)
{
	*pool = (struct ib_tx_pool){
		.port = port,
		.max = max,
	};
	list_init(&pool->free);
	list_init(&pool->slabs);
}

void ib_tx_pool_fini(struct ib_tx_pool *pool)
{
	struct ib_tx_slab *slab, *tmp;

	BUG_ON(pool->used);
	list_for_each_entry_safe (slab, tmp, &pool->slabs, link) {
		list_del(&slab->link);
		pool->port->verbs->dereg(pool->port, slab->mr);
		free(slab->bufs);
		free(slab);
	}
	pool->total = 0;
	list_init(&pool->free);
}

static void slab_fill(struct ib_tx_pool *pool, struct ib_tx_slab *slab)
{
	for (unsigned int i = 0; i < SLAB_COUNT; i++) {
		struct ib_tx *tx = &slab->txs[i];

		tx->pool = pool;
		tx->sge.addr = (char *)slab->bufs + i * IB_MSG_SIZE_MAX;
		tx->sge.lkey = slab->mr->lkey;
		list_init(&tx->all);
		list_add_tail(&pool->free, &tx->link);
	}
	list_add(&pool->slabs, &slab->link);
	pool->total += SLAB_COUNT;
}

static int pool_grow(struct ib_tx_pool *pool)
{
	struct ib_tx_slab *slab = calloc(1, sizeof(*slab));
	int rc = -ENOMEM;

	if (!slab)
		return rc;
	slab->bufs = aligned_alloc(PAGE_ALIGN, SLAB_BYTES);
	if (!slab->bufs)
		goto err_free_slab;
	/* The peer may get any bytes of a buffer, so they must not be
	 * left-overs of other data. */
	memset(slab->bufs, 0, SLAB_BYTES);
	rc = ib_regcache_reg(pool->regcache, pool->port, slab->bufs, SLAB_BYTES,
			     false, &slab->mr);
	if (rc)
		goto err_free_bufs;
	slab_fill(pool, slab);
	return 0;

err_free_bufs:
	free(slab->bufs);
err_free_slab:
	free(slab);
	return rc;
}

struct ib_tx *ib_tx_new_grown(struct ib_tx_pool *pool, bool answer)
{
	if (pool_grow(pool)) {
		pool->failed++;
		return NULL;
	}
	return ib_tx_new(pool, answer);
}

enum ulnet_cause ib_tx_cause(const struct ib_tx *tx, enum ib_blame blame)
{
	static const struct {
		uint8_t none, posted, sent;
	} causes[IB_BLAMES] = {
		[IB_BLAME_PEER] = { LNET_CAUSE_REMOTE_DROPPED,
				    LNET_CAUSE_REMOTE_ERROR,
				    LNET_CAUSE_REMOTE_ERROR },
		[IB_BLAME_SILENCE] = { LNET_CAUSE_REMOTE_DROPPED,
				       LNET_CAUSE_NETWORK_TIMEOUT,
				       LNET_CAUSE_NETWORK_TIMEOUT },
		[IB_BLAME_DEADLINE] = { LNET_CAUSE_LOCAL_TIMEOUT,
					LNET_CAUSE_NETWORK_TIMEOUT,
					LNET_CAUSE_REMOTE_TIMEOUT },
		[IB_BLAME_SELF] = { LNET_CAUSE_LOCAL_DROPPED,
				    LNET_CAUSE_LOCAL_ERROR,
				    LNET_CAUSE_LOCAL_ERROR },
		[IB_BLAME_LINK] = { LNET_CAUSE_LOCAL_NO_ROUTE,
				    LNET_CAUSE_LOCAL_ERROR,
				    LNET_CAUSE_LOCAL_ERROR },
		[IB_BLAME_SHUTDOWN] = { LNET_CAUSE_LOCAL_ABORTED,
					LNET_CAUSE_SHUTDOWN,
					LNET_CAUSE_SHUTDOWN },
	};

	if (!tx->begun)
		return causes[blame].none;
	return tx->fsm.state == IB_TX_WAITING ? causes[blame].sent
					      : causes[blame].posted;
}

/* ---- WRITEs ---- */

void ib_writes_init(struct ib_writes *w, const struct ib_rdma *rdma,
		    const struct ib_sge *sge, uint32_t length)
{
	*w = (struct ib_writes){ .rdma = rdma, .sge = sge, .left = length };
}

/* Sets *@addr to where the next bytes go, and returns how many bytes there is
 * room for. */
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

/* Puts the next bytes of the source, at most @room, into @out. */
static void take_sge(struct ib_writes *w, struct ib_sge *out, uint32_t room)
{
	const struct ib_sge *p;

	while (p = &w->sge[w->sge_at], w->sge_done == p->length) {
		w->sge_at++;
		w->sge_done = 0;
	}
	out->addr = (char *)p->addr + w->sge_done;
	out->length = MIN(p->length - w->sge_done, room);
	out->lkey = p->lkey;
	w->sge_done += out->length;
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
		take_sge(w, &sge[wr->nsge], room - n);
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
