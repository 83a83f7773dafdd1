/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/portal/mem.h"

#include <errno.h>

static void mem_settle(struct lnet_mem *mem)
{
	if (mem->gone && !mem->mds)
		free(mem);
}

void mem_unuse(struct lnet_mem *mem)
{
	mem->mds--;
	mem_settle(mem);
}

void mems_fini(struct mems *m)
{
	for (unsigned int i = 0; i < m->n; i++) {
		BUG_ON(m->mem[i]->mds);
		free(m->mem[i]);
	}
	free(m->next);
	free(m->mem);
	*m = (struct mems){ 0 };
}

/* Returns the index of the first range that ends after @start. */
static unsigned int first_behind(const struct mems *m, uintptr_t start)
{
	unsigned int low = 0, high = m->n;

	while (low < high) {
		unsigned int mid = (low + high) / 2;

		if (m->mem[mid]->range.end > start)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int mem_make_room(struct mems *m)
{
	unsigned int room = MAX(2 * m->room, 8u);
	struct lnet_mem **mem;

	if (m->n < m->room)
		return 0;
	mem = realloc(m->mem, room * sizeof(*mem));
	if (!mem)
		return -ENOMEM;
	m->mem = mem;
	m->room = room;
	return 0;
}

int mems_reserve(struct mems *m)
{
	int rc = mem_make_room(m);

	if (rc)
		return rc;
	if (!m->next)
		m->next = malloc(sizeof(*m->next));
	return m->next ? 0 : -ENOMEM;
}

int mems_add(struct mems *m, uintptr_t start, uintptr_t end)
{
	unsigned int at = first_behind(m, start);
	struct lnet_mem *mem = m->next;

	if (at < m->n && m->mem[at]->range.start < end)
		return -EEXIST;
	BUG_ON(!mem || m->n == m->room);
	m->next = NULL;
	mem->range = (struct span){ start, end };
	mem->mds = 0;
	atomic_init(&mem->gone, false);
	memmove(&m->mem[at + 1], &m->mem[at], (m->n - at) * sizeof(*m->mem));
	m->mem[at] = mem;
	m->n++;
	return 0;
}

/* Returns the index of the range that begins at @start and ends at @end; m->n:
 * there is none. */
static unsigned int mem_index_of(const struct mems *m, uintptr_t start,
				 uintptr_t end)
{
	unsigned int at = first_behind(m, start);

	if (at < m->n && m->mem[at]->range.start == start &&
	    m->mem[at]->range.end == end)
		return at;
	return m->n;
}

int mems_check(const struct mems *m, uintptr_t start, uintptr_t end)
{
	unsigned int at = mem_index_of(m, start, end);

	if (at == m->n)
		return -ENOENT;
	return m->mem[at]->mds ? -EBUSY : 0;
}

void mems_del(struct mems *m, uintptr_t start, uintptr_t end)
{
	unsigned int at = mem_index_of(m, start, end);

	if (at == m->n)
		return;
	atomic_store(&m->mem[at]->gone, true);
	mem_settle(m->mem[at]);
	m->n--;
	memmove(&m->mem[at], &m->mem[at + 1], (m->n - at) * sizeof(*m->mem));
}

static bool lies_in(const struct iovec *v, const struct lnet_mem *mem)
{
	uintptr_t start = (uintptr_t)v->iov_base;

	return !v->iov_len ||
	       (start >= mem->range.start && start < mem->range.end &&
		v->iov_len <= mem->range.end - start);
}

struct lnet_mem *mems_find(const struct mems *m, const struct iovec *iov,
			   unsigned int niov)
{
	struct lnet_mem *mem;
	unsigned int i = 0, at;

	while (i < niov && !iov[i].iov_len)
		i++;
	if (i == niov)
		return NULL;
	at = first_behind(m, (uintptr_t)iov[i].iov_base);
	if (at == m->n)
		return NULL;
	mem = m->mem[at];
	for (; i < niov; i++)
		if (!lies_in(&iov[i], mem))
			return NULL;
	return mem;
}
