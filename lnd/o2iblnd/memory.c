/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/memory.h"

#include <errno.h>

static uint64_t holder_key(const struct ib_cpt *cpt,
			   const struct ulnet_nid *nid)
{
	return hash_u64(lnet_nid_to_nid4(nid), cpt->seed);
}

static struct ib_holder *holder_find(const struct ib_cpt *cpt,
				     const struct ulnet_nid *nid, uint64_t key)
{
	struct hash_node *n = hash_first(&cpt->holders, key);

	for (; n; n = hash_next(n)) {
		struct ib_holder *h = container_of(n, struct ib_holder, hash);

		if (lnet_nid_eq(&h->nid, nid))
			return h;
	}
	return NULL;
}

static struct ib_holder *holder_get(struct ib_cpt *cpt,
				    const struct ulnet_nid *nid)
{
	uint64_t key = holder_key(cpt, nid);
	struct ib_holder *h = holder_find(cpt, nid, key);

	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->nid = *nid;
	if (hash_add(&cpt->holders, &h->hash, key)) {
		free(h);
		return NULL;
	}
	return h;
}

static void holder_settle(struct ib_cpt *cpt, struct ib_holder *h)
{
	if (h->blocks || h->waiting[IB_USE_ASKS] || h->waiting[IB_USE_ANSWERS])
		return;
	hash_del(&cpt->holders, &h->hash);
	free(h);
}

static int block_get(struct ib_cpt *cpt, struct ib_holder *h, enum ib_use use,
		     uint32_t length, struct ib_memory *m)
{
	int rc = ib_arena_get(&cpt->arena[use], &h->bytes[use], length,
			      &m->block);

	if (rc)
		return rc;
	h->blocks++;
	m->use = use;
	m->holder = h;
	m->sge = (struct ib_sge){ m->block.addr, length, m->block.lkey };
	return 0;
}

int ib_memory_get(struct ib_cpt *cpt, enum ib_use use,
		  const struct ulnet_nid *nid, uint32_t length,
		  struct ib_memory *m)
{
	struct ib_holder *h = holder_get(cpt, nid);
	int rc = -ENOBUFS;

	if (!h)
		return -ENOMEM;
	if (!h->waiting[use])
		rc = block_get(cpt, h, use, length, m);
	if (rc)
		holder_settle(cpt, h);
	return rc;
}

int ib_memory_wait(struct ib_cpt *cpt, enum ib_use use,
		   const struct ulnet_nid *nid, struct ib_memory *m)
{
	struct ib_holder *h = holder_get(cpt, nid);

	if (!h)
		return -ENOMEM;
	h->waiting[use]++;
	m->use = use;
	m->waits = true;
	m->holder = h;
	return 0;
}

int ib_memory_feed(struct ib_cpt *cpt, uint64_t round, uint32_t length,
		   struct ib_memory *m)
{
	struct ib_holder *h = m->holder;
	int rc = -ENOBUFS;

	BUG_ON(!m->waits);
	if (h->refused[m->use] != round)
		rc = block_get(cpt, h, m->use, length, m);
	if (rc == -ENOBUFS)
		h->refused[m->use] = round;
	return rc;
}

bool ib_memory_is_awaited(const struct ib_cpt *cpt, enum ib_use use,
			  const struct ulnet_nid *nid)
{
	const struct ib_holder *h;

	if (!lnet_nid_is_nid4(nid))
		return false;
	h = holder_find(cpt, nid, holder_key(cpt, nid));
	return h && h->waiting[use];
}

static void feed_soon(struct ib_cpt *cpt)
{
	if (list_empty(&cpt->hungry) || cpt->feeding)
		return;
	cpt->feeding = true;
	loop_defer(ib_loop(cpt), &cpt->feed);
}

void ib_memory_unwait(struct ib_cpt *cpt, struct ib_memory *m)
{
	struct ib_holder *h = m->holder;

	if (!m->waits)
		return;
	m->waits = false;
	h->waiting[m->use]--;
	if (m->block.chunk)
		return;
	holder_settle(cpt, h);
	feed_soon(cpt);
}

void ib_memory_put(struct ib_cpt *cpt, struct ib_memory *m)
{
	BUG_ON(m->waits);
	if (!m->block.chunk)
		return;
	ib_arena_put(&cpt->arena[m->use], &m->holder->bytes[m->use], &m->block);
	m->holder->blocks--;
	holder_settle(cpt, m->holder);
	feed_soon(cpt);
}
