/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gives long memory back to the system. free() of gigabytes takes the kernel a
 * tenth of a second for each, in which the CPT does nothing else. So long
 * memory is given back a few MiB in each turn, and what waits for that is a
 * list in the memory itself.
 *
 * Whose share it is: until it is given back, the memory belongs to the holder
 * that it was taken for. Thread: owner.
 */
#ifndef RPC_GIVE_BACK_H
#define RPC_GIVE_BACK_H

#include "base/list.h"
#include "ulnet/loop.h"

struct shard;

/* bytes that are given back in a turn */
#define GIVE_BACK_STEP ((size_t)4 << 20)
/* bytes: shorter memory is to be freed at once */
#define GIVE_BACK_MIN (2 * GIVE_BACK_STEP)

/* The memory that one owner on a CPT gives back. */
struct give_back {
	struct shard *shard;
	/* Called when @bytes have been given back that belonged to @holder. */
	void (*gave)(struct give_back *g, void *holder, size_t bytes);
	struct list waiting;
	struct ulnet_work work; /* the next step; posted unless @waiting is
				 * empty, and then the shard is held */
};

void give_back_init(struct give_back *g, struct shard *s,
		    void (*gave)(struct give_back *g, void *holder,
				 size_t bytes));
/* Gives @mem back, which has come from malloc(), and has @size bytes, at least
 * GIVE_BACK_MIN. Takes it. @gave is called for all of them, with @holder, in
 * later turns. */
void give_back(struct give_back *g, void *mem, size_t size, void *holder);
/* Has all been given back? */
static inline bool give_back_is_over(const struct give_back *g)
{
	return list_empty(&g->waiting);
}

#endif
