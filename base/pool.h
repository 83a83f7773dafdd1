/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of one size, recycled last-in-first-out, so that the message path
 * does not allocate. Grows by chunks, up to a limit. Under AddressSanitizer
 * each object is allocated by malloc(), so that a use after free is detected.
 *
 * Thread: owner.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/util.h"

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

struct pool_chunk;

/* The content of an object while it is free. */
struct pool_free {
	struct pool_free *next;
};

struct pool {
	size_t size;  /* bytes of an object */
	uint32_t max; /* most objects in use at a time; 0: no limit */
	uint32_t used;
	uint32_t peak; /* highest value of "used" so far */
	/* list of free objects; always NULL if POOL_IS_MALLOC */
	struct pool_free *free;
	struct pool_chunk *chunks;
};

void pool_init(struct pool *p, size_t size, uint32_t max);
/* Frees the pool's memory. All objects must have been put back. */
void pool_fini(struct pool *p);

/* Part of pool_get(), for when the free list is empty. */
void *pool_get_more(struct pool *p);

static inline void pool_count(struct pool *p)
{
	if (++p->used > p->peak)
		p->peak = p->used;
}

/* Returns an object, uninitialised. NULL: there is no memory, or the limit is
 * reached. */
static inline void *pool_get(struct pool *p)
{
	struct pool_free *f = p->free;

	/* The limit is checked where the pool grows: as long as there is a free
	 * object, fewer than "max" are in use. */
	if (unlikely(!f))
		return pool_get_more(p);
	p->free = f->next;
	pool_count(p);
	return f;
}

static inline void pool_put(struct pool *p, void *obj)
{
	struct pool_free *f = obj;

	BUG_ON(!p->used);
	p->used--;
	if (POOL_IS_MALLOC) {
		free(obj);
		return;
	}
	f->next = p->free;
	p->free = f;
}

#endif
