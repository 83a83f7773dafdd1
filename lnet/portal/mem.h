/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of memory that users have registered (lnet_mem_register(3)), so that
 * LNDs can keep what they have set up for it. Each range counts the MDs all of
 * whose fragments are in it.
 *
 * All CPTs have the same ranges (node/mems.c). Owner: the CPT.
 */
#ifndef LNET_MEM_H
#define LNET_MEM_H

#include <stdatomic.h>
#include <sys/uio.h>
#include "base/iov.h"
#include "base/util.h"

struct lnet_mem {
	struct span range;
	uint32_t mds; /* number of MDs of this CPT that use the range */
	/* The range is not registered any more: MDs do not find it, and it is
	 * freed with the last MD that uses it. Read by all CPTs. */
	atomic_bool gone;
};

struct mems {
	/* array, sorted by address; ranges do not overlap */
	struct lnet_mem **mem;
	unsigned int n, room;
	/* memory for the next range, from mems_reserve(); NULL: none */
	struct lnet_mem *next;
};

/* Frees the ranges. No MD may be using one. (A struct mems needs no
 * initialization, except that it must be all zero at first.) */
void mems_fini(struct mems *m);

/* Allocates memory for the next mems_add(). Returns 0 or -ENOMEM. */
int mems_reserve(struct mems *m) must_check;
/* Adds a range. mems_reserve() must have been called before. Returns 0, or
 * -EEXIST: the range overlaps another one. */
int mems_add(struct mems *m, uintptr_t start, uintptr_t end) must_check;
/* May the range be deleted? Returns 0; -ENOENT: no range begins at @start and
 * ends at @end; -EBUSY: MDs use it. */
int mems_check(const struct mems *m, uintptr_t start, uintptr_t end) must_check;
/* Deletes the range from @start to @end, if there is one. */
void mems_del(struct mems *m, uintptr_t start, uintptr_t end);

/* Returns the range that contains all fragments (empty ones may be anywhere),
 * or NULL. */
struct lnet_mem *mems_find(const struct mems *m, const struct iovec *iov,
			   unsigned int niov);

/* Returns the range of @mem, for an LND; NULL if @mem is NULL or is not
 * registered any more. */
static inline const struct span *mem_range(const struct lnet_mem *mem)
{
	return mem && !mem->gone ? &mem->range : NULL;
}

/* Count an MD that begins to use @mem, or ends. */
static inline void mem_use(struct lnet_mem *mem)
{
	mem->mds++;
}
void mem_unuse(struct lnet_mem *mem);

#endif
