/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of several sizes, recycled last-in-first-out, so that a call that is
 * like the last ones allocates nothing. Sizes are rounded up to a power of two;
 * what is kept for the next one is bounded. Under AddressSanitizer everything
 * is a malloc of its own.
 *
 * Thread: owner.
 */
#ifndef RPC_SLAB_H
#define RPC_SLAB_H

#include "base/util.h"

#define SLAB_MIN_SHIFT 8  /* 256 bytes */
#define SLAB_MAX_SHIFT 22 /* 4 MiB: more is not kept */
#define SLAB_CLASSES   (SLAB_MAX_SHIFT - SLAB_MIN_SHIFT + 1)
#define SLAB_KEEP      (UINT32_C(4) << 20) /* bytes of each size */

struct slab_class {
	void *free;
	uint32_t kept;
};

struct slab {
	struct slab_class classes[SLAB_CLASSES];
	uint64_t used; /* pieces that are out */
};

static inline unsigned int slab_class_of(size_t size)
{
	if (size <= (size_t)1 << SLAB_MIN_SHIFT)
		return 0;
	return 64 - SLAB_MIN_SHIFT - (unsigned int)__builtin_clzll(size - 1);
}

void slab_init(struct slab *slab);
/* Everything must be back. */
void slab_fini(struct slab *slab);
/* Uninitialised, aligned as malloc()'s; NULL: no memory. */
void *slab_get(struct slab *slab, size_t size) must_check;
/* @size: as it was asked for. */
void slab_put(struct slab *slab, void *obj, size_t size);

#endif
