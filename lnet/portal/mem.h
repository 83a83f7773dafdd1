/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranges of memory that users have registered: addresses that mean the same
 * memory until they are unregistered. An MD that lies in one of them, with all
 * of its fragments, counts there.
 *
 * Each CPT has the same ranges (node/mem.c). Owner: a CPT.
 */
#ifndef LNET_MEM_H
#define LNET_MEM_H

#include <stdatomic.h>
#include <sys/uio.h>
#include "base/span.h"
#include "base/util.h"

struct lnet_mem {
	struct span range;
	uint32_t mds; /* of this CPT, that lie in it */
	/* New MDs do not find it any more, and it is freed with the last MD.
	 * Read by all CPTs. */
	atomic_bool gone;
};

struct mems {
	struct lnet_mem **mem; /* by address; none overlaps another */
	unsigned int n, room;
	struct lnet_mem *next; /* for the next one; or NULL */
};

/* All zero at first. No MD lies in any of them at the end. */
void mems_fini(struct mems *m);

/* For the next one to be added. 0 or -ENOMEM. */
int mems_reserve(struct mems *m) must_check;
/* After mems_reserve(). -EEXIST: it overlaps one. */
int mems_add(struct mems *m, uintptr_t start, uintptr_t end) must_check;
/* -ENOENT: there is none that begins and ends there; -EBUSY: MDs are in it. */
int mems_check(const struct mems *m, uintptr_t start, uintptr_t end) must_check;
/* That range, if it is there, is found no more. */
void mems_del(struct mems *m, uintptr_t start, uintptr_t end);

/* The one that all of these fragments lie in, but for empty ones; or NULL. */
struct lnet_mem *mems_find(const struct mems *m, const struct iovec *iov,
			   unsigned int niov);

/* What an LND is told of @mem, if it can be used: it is not NULL, and not
 * gone. */
static inline const struct span *mem_range(const struct lnet_mem *mem)
{
	return mem && !mem->gone ? &mem->range : NULL;
}

/* An MD lies in @mem. */
static inline void mem_use(struct lnet_mem *mem)
{
	mem->mds++;
}
void mem_unuse(struct lnet_mem *mem);

#endif
