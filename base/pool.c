/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pool.h"

#include <stdalign.h>

/* A new chunk has as many objects as the pool has in use, within these bounds.
 * So chunks are small in a process with thousands of idle nodes, and large in
 * one with a busy node. */
#define CHUNK_MIN_OBJECTS 4
#define CHUNK_MAX_OBJECTS 256

struct pool_chunk {
	struct pool_chunk *next;
	alignas(max_align_t) char objects[];
};

void pool_init(struct pool *p, size_t size, uint32_t max)
{
	size_t align = alignof(max_align_t);

	if (!POOL_IS_MALLOC) {
		size = MAX(size, sizeof(struct pool_free));
		size = (size + align - 1) / align * align;
	}
	*p = (struct pool){ .size = size, .max = max };
}

void pool_fini(struct pool *p)
{
	BUG_ON(p->used);
	while (p->chunks) {
		struct pool_chunk *c = p->chunks;

		p->chunks = c->next;
		free(c);
	}
	p->free = NULL;
}

static void push(struct pool *p, void *obj)
{
	struct pool_free *f = obj;

	f->next = p->free;
	p->free = f;
}

/* Adds a chunk to the pool, whose free list is empty. Returns false if there is
 * no memory. */
static bool base_grow(struct pool *p)
{
	size_t n = MIN(MAX(p->used, CHUNK_MIN_OBJECTS), CHUNK_MAX_OBJECTS);
	struct pool_chunk *c;

	if (p->max)
		n = MIN(n, p->max - p->used);
	c = malloc(sizeof(*c) + n * p->size);
	if (!c)
		return false;
	c->next = p->chunks;
	p->chunks = c;
	while (n--)
		push(p, c->objects + n * p->size);
	return true;
}

void *pool_get_more(struct pool *p)
{
	void *obj;

	if (p->max && p->used >= p->max)
		return NULL;
	if (!POOL_IS_MALLOC)
		return base_grow(p) ? pool_get(p) : NULL;
	obj = malloc(p->size);
	if (obj)
		pool_count(p);
	return obj;
}
