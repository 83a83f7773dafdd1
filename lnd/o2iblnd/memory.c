/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/memory.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/share.h"
#include "lnd/o2iblnd/o2iblnd.h"
#include "lnd/o2iblnd/regcache.h"

static uint64_t holder_key(const struct ib_cpt *cpt,
			   const struct ulnet_nid *nid)
{
	return hash_u64(lnet_nid_to_nid4(nid), cpt->seed);
}

static struct ib_holder *holder_find(const struct ib_cpt *cpt,
				     const struct ulnet_nid *nid, uint64_t key)
{
	struct ib_holder *h;

	hash_for_each_equal (h, &cpt->holders, key, hash)
		if (lnet_nid_eq(&h->nid, nid))
			return h;
	return NULL;
}

static struct ib_holder *memory_holder_get(struct ib_cpt *cpt,
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
	if (h->blocks || h->waiting[IB_USE_REQUESTS] ||
	    h->waiting[IB_USE_ANSWERS])
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
	struct ib_holder *h = memory_holder_get(cpt, nid);
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
	struct ib_holder *h = memory_holder_get(cpt, nid);

	if (!h)
		return -ENOMEM;
	h->waiting[use]++;
	m->use = use;
	m->waits = true;
	m->holder = h;
	return 0;
}

int ib_memory_retry(struct ib_cpt *cpt, uint64_t round, uint32_t length,
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

static void retry_soon(struct ib_cpt *cpt)
{
	if (list_empty(&cpt->memory_waiters) || cpt->retrying)
		return;
	cpt->retrying = true;
	loop_defer(ib_loop(cpt), &cpt->retry);
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
	retry_soon(cpt);
}

void ib_memory_put(struct ib_cpt *cpt, struct ib_memory *m)
{
	BUG_ON(m->waits);
	if (!m->block.chunk)
		return;
	ib_arena_put(&cpt->arena[m->use], &m->holder->bytes[m->use], &m->block);
	m->holder->blocks--;
	holder_settle(cpt, m->holder);
	retry_soon(cpt);
}

/* ---- the allocator of blocks ---- */

#define PAGES	    (IB_CHUNK_BYTES / IB_BLOCK_MIN)
#define CHUNK_ALIGN (2u << 20) /* a huge page */
#define TOP	    (IB_BLOCK_ORDERS - 1)

/* The state of a block is kept with its first page, outside of the memory that
 * peers may write to. */
struct page {
	struct list link; /* in arena->free[order], while the block is free */
	uint16_t at;	  /* index of the page in the chunk */
	uint8_t order;
	bool free;
};

struct ib_chunk {
	struct list link; /* in arena->chunks */
	uint8_t *mem;
	struct ib_mr *mr;
	unsigned int lent; /* number of blocks that are lent */
	struct page pages[PAGES];
};

void ib_arena_init(struct ib_arena *a, struct ib_port *port, uint64_t max)
{
	*a = (struct ib_arena){ .port = port, .max = max };
	list_init(&a->chunks);
	for (unsigned int i = 0; i < IB_BLOCK_ORDERS; i++)
		list_init(&a->free[i]);
}

static unsigned int order_of(uint32_t length)
{
	unsigned int order = 0;

	while ((IB_BLOCK_MIN << order) < length)
		order++;
	return order;
}

static int memory_chunk_add(struct ib_arena *a)
{
	struct ib_chunk *c = calloc(1, sizeof(*c));
	int rc = -ENOMEM;

	if (!c)
		return rc;
	c->mem = aligned_alloc(CHUNK_ALIGN, IB_CHUNK_BYTES);
	if (!c->mem)
		goto err_free_chunk;
	/* Huge pages are cheaper to pin and to translate, but not required. */
	(void)madvise(c->mem, IB_CHUNK_BYTES, MADV_HUGEPAGE);
	rc = ib_regcache_reg(a->regcache, a->port, c->mem, IB_CHUNK_BYTES, true,
			     &c->mr);
	if (rc)
		goto err_free_mem;
	for (unsigned int i = 0; i < PAGES; i++) {
		list_init(&c->pages[i].link);
		c->pages[i].at = (uint16_t)i;
	}
	for (unsigned int i = 0; i < PAGES; i += 1u << TOP) {
		c->pages[i].order = TOP;
		c->pages[i].free = true;
		list_add_tail(&a->free[TOP], &c->pages[i].link);
	}
	list_add(&a->chunks, &c->link);
	a->registered += IB_CHUNK_BYTES;
	a->idle_chunks++;
	return 0;

err_free_mem:
	free(c->mem);
err_free_chunk:
	free(c);
	return rc;
}

/* Frees a chunk of which no block is lent. */
static void memory_chunk_free(struct ib_arena *a, struct ib_chunk *c)
{
	BUG_ON(c->lent);
	for (unsigned int i = 0; i < PAGES; i++)
		list_del(&c->pages[i].link);
	list_del(&c->link);
	a->idle_chunks--;
	a->registered -= IB_CHUNK_BYTES;
	a->port->verbs->dereg(a->port, c->mr);
	free(c->mem);
	free(c);
}

void ib_arena_fini(struct ib_arena *a)
{
	BUG_ON(a->used);
	while (!list_empty(&a->chunks))
		memory_chunk_free(
			a, list_first(&a->chunks, struct ib_chunk, link));
}

static struct ib_chunk *chunk_of(struct page *page)
{
	return container_of(page - page->at, struct ib_chunk, pages[0]);
}

static void page_free(struct ib_arena *a, struct page *page, unsigned int order)
{
	page->order = (uint8_t)order;
	page->free = true;
	list_add(&a->free[order], &page->link);
}

/* Merges a free block, which is in no list, with the other half of the larger
 * block, if that is free; else returns it to its list. */
static void merge(struct ib_arena *a, struct page *page, unsigned int order)
{
	struct page *first = page - page->at;
	struct page *other = &first[page->at ^ (1u << order)];

	if (!other->free || other->order != order) {
		list_add_tail(&a->free[order], &page->link);
		return;
	}
	list_del(&other->link);
	page->free = false;
	other->free = false;
	page_free(a, &first[page->at & ~(1u << order)], order + 1);
}

static void merge_all(struct ib_arena *a)
{
	struct page *page;

	for (unsigned int order = 0; order < TOP; order++) {
		struct list all;

		list_init(&all);
		list_splice_tail(&all, &a->free[order]);
		while ((page = list_pop(&all, struct page, link)))
			merge(a, page, order);
	}
}

/* Returns the smallest order, from @order on, of which there is a free block;
 * IB_BLOCK_ORDERS: there is none. */
static unsigned int smallest(const struct ib_arena *a, unsigned int order)
{
	while (order < IB_BLOCK_ORDERS && list_empty(&a->free[order]))
		order++;
	return order;
}

/* Takes a free block of @order off its list, splitting a larger one if need be.
 * Returns NULL if none is free. */
static struct page *memory_take(struct ib_arena *a, unsigned int order)
{
	struct page *page;
	unsigned int from = smallest(a, order);

	if (from == IB_BLOCK_ORDERS) {
		merge_all(a);
		from = smallest(a, order);
	}
	if (from == IB_BLOCK_ORDERS)
		return NULL;
	page = list_first(&a->free[from], struct page, link);
	list_del(&page->link);
	while (from > order) {
		from--;
		page_free(a, page + (1u << from), from);
	}
	page->free = false;
	page->order = (uint8_t)order;
	return page;
}

int ib_arena_get(struct ib_arena *a, uint64_t *held, uint32_t length,
		 struct ib_block *block)
{
	unsigned int order;
	struct page *page;
	struct ib_chunk *c;
	uint64_t bytes;
	int rc;

	BUG_ON(!length || length > IB_BLOCK_MAX);
	order = order_of(length);
	bytes = (uint64_t)IB_BLOCK_MIN << order;
	if (!share_allows(*held, a->used, a->max, bytes)) {
		a->refused++;
		return -ENOBUFS;
	}
	page = memory_take(a, order);
	if (!page) {
		rc = memory_chunk_add(a);
		if (rc) {
			a->failed++;
			return rc;
		}
		page = memory_take(a, order);
	}
	c = chunk_of(page);
	if (!c->lent++)
		a->idle_chunks--;
	a->used += bytes;
	*held += bytes;
	*block = (struct ib_block){
		.addr = c->mem + (size_t)(page - c->pages) * IB_BLOCK_MIN,
		.length = length,
		.lkey = c->mr->lkey,
		.rkey = c->mr->rkey,
		.chunk = c,
	};
	return 0;
}

void ib_arena_put(struct ib_arena *a, uint64_t *held, struct ib_block *block)
{
	struct ib_chunk *c = block->chunk;
	size_t at = (size_t)((uint8_t *)block->addr - c->mem) / IB_BLOCK_MIN;
	unsigned int order = c->pages[at].order;
	uint64_t bytes = (uint64_t)IB_BLOCK_MIN << order;

	BUG_ON(c->pages[at].free || order != order_of(block->length));
	BUG_ON(a->used < bytes || *held < bytes);
	a->used -= bytes;
	*held -= bytes;
	block->chunk = NULL;
	/* The block is not merged: the next request is most likely of the same
	 * size. */
	page_free(a, &c->pages[at], order);
	if (--c->lent)
		return;
	a->idle_chunks++;
	if (a->idle_chunks > 1)
		memory_chunk_free(a, c);
}
