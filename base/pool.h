/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects of one size, recycled last-in-first-out, so that the message path
 * does not allocate. Grows by chunks, up to a limit. Under AddressSanitizer
 * each object is a malloc of its own, so that a use after free is seen.
 *
 * Thread: owner.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include "base/util.h"

struct pool_chunk;

struct pool {
	size_t size;  /* of an object, bytes */
	uint32_t max; /* objects alive at most; 0 = no limit */
	uint32_t used;
	uint32_t peak; /* highest "used" so far */
	void *free;
	struct pool_chunk *chunks;
};

void pool_init(struct pool *p, size_t size, uint32_t max);
/* All objects must be back. */
void pool_fini(struct pool *p);
/* Uninitialised memory, or NULL: no memory, or the limit is reached. */
void *pool_get(struct pool *p);
void pool_put(struct pool *p, void *obj);

#endif
