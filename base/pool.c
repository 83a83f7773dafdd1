/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/pool.h"

#include <stdalign.h>

#if defined(__SANITIZE_ADDRESS__)
#define POOL_IS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_IS_MALLOC 1
#endif
#endif
#ifndef POOL_IS_MALLOC
#define POOL_IS_MALLOC 0
#endif

/* A chunk doubles what is there, within these bounds: thousands of small nodes
 * in one process are as welcome as a busy one. */
#define CHUNK_MIN_OBJECTS 4
#define CHUNK_MAX_OBJECTS 256

struct pool_chunk {
	struct pool_chunk *next;
	alignas(max_align_t) char objects[];
};

struct free_object {
	struct free_object *next;
};

void pool_init(struct pool *p, size_t size, uint32_t max)
{
	size_t align = alignof(max_align_t);

	if (!POOL_IS_MALLOC) {
		size = MAX(size, sizeof(struct free_object));
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
	struct free_object *f = obj;

	f->next = p->free;
	p->free = f;
}

/* The free list is empty. */
static bool grow(struct pool *p)
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

static void *take(struct pool *p)
{
	struct free_object *f;

	if (POOL_IS_MALLOC)
		return malloc(p->size);
	if (unlikely(!p->free) && !grow(p))
		return NULL;
	f = p->free;
	p->free = f->next;
	return f;
}

void *pool_get(struct pool *p)
{
	void *obj;

	if (unlikely(p->max && p->used >= p->max))
		return NULL;
	obj = take(p);
	if (unlikely(!obj))
		return NULL;
	if (++p->used > p->peak)
		p->peak = p->used;
	return obj;
}

void pool_put(struct pool *p, void *obj)
{
	BUG_ON(!p->used);
	p->used--;
	if (POOL_IS_MALLOC)
		free(obj);
	else
		push(p, obj);
}
