/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of memory that users have registered (lnet_mem_register(3)), so that
 * LNDs may keep what they have set up for it. A range counts the MDs all of
 * whose fragments lie in it.
 *
 * Each CPT has the same ranges (node/mems.c). Owner: a CPT.
 */
#ifndef LNET_MEM_H
#define LNET_MEM_H

#include <stdatomic.h>
#include <sys/uio.h>
#include "base/iov.h"
#include "base/util.h"

struct lnet_mem {
	struct span range;
	uint32_t mds; /* MDs of this CPT that lie in it */
	/* Unregistered: MDs do not find it any more, and it is freed with the
	 * last one that lies in it. Read by all CPTs. */
	atomic_bool gone;
};

struct mems {
	struct lnet_mem **mem; /* by address; none overlaps another */
	unsigned int n, room;
	struct lnet_mem *next; /* allocated by mems_reserve(), or NULL */
};

/* A struct mems is all zero at first. No MD may be left. */
void mems_fini(struct mems *m);

/* Allocates what the next mems_add() needs. Returns 0 or -ENOMEM. */
int mems_reserve(struct mems *m) must_check;
/* After mems_reserve(). Returns 0, or -EEXIST: it overlaps another range. */
int mems_add(struct mems *m, uintptr_t start, uintptr_t end) must_check;
/* May that range be deleted? Returns 0; -ENOENT: there is none that begins and
 * ends there; -EBUSY: MDs lie in it. */
int mems_check(const struct mems *m, uintptr_t start, uintptr_t end) must_check;
/* Deletes that range, if there is one. */
void mems_del(struct mems *m, uintptr_t start, uintptr_t end);

/* The range in which all fragments lie, not counting empty ones; or NULL. */
struct lnet_mem *mems_find(const struct mems *m, const struct iovec *iov,
			   unsigned int niov);

/* The range of @mem for an LND; NULL if @mem is NULL or unregistered. */
static inline const struct span *mem_range(const struct lnet_mem *mem)
{
	return mem && !mem->gone ? &mem->range : NULL;
}

/* An MD lies in @mem; it ends. */
static inline void mem_use(struct lnet_mem *mem)
{
	mem->mds++;
}
void mem_unuse(struct lnet_mem *mem);

#endif
