/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of service "brw": one pool, of which each request gets a chunk.
 * Chunks are not cleared: they hold only data of tests. Any thread.
 *
 * A NID gets a chunk as long as the chunks that it holds are no more than what
 * is still free. So a single NID gets half of the pool, two get a third each,
 * and a client that stops in the middle of its transfers leaves memory for
 * others.
 */
#ifndef SERVICES_BRW_MEMORY_H
#define SERVICES_BRW_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ulnet/lnet.h>

#define MEMORY_BUCKETS 256

/* A NID that holds chunks. */
struct holder {
	struct holder *next; /* the next holder in the bucket */
	struct ulnet_nid nid;
	uint64_t bytes;
};

/* A range of the pool, free or held by a NID. */
struct chunk {
	struct chunk *next;    /* if free: the next free chunk by address */
	struct holder *holder; /* if held: by whom */
	unsigned char *data;   /* page-aligned */
	size_t size;
	/* if held: number of bytes at the end that were never used before, and
	 * have not been touched yet */
	size_t fresh;
};

struct memory {
	struct lnet *node;
	pthread_mutex_t lock;
	unsigned char *pool;
	/* number of bytes, from the beginning of the pool, that were used */
	size_t fresh;
	bool registered;
	struct chunk *free; /* the free chunks, by address */
	uint64_t out;	    /* bytes that are held */
	uint64_t bytes_max;
	struct holder *holders[MEMORY_BUCKETS];
};

/* Makes a pool of as many whole pages as fit in @bytes_max bytes. If @node is
 * not NULL, registers the pool with it (lnet_mem_register(3)). It does not
 * matter if that fails, as it does on the thread of one CPT of several. Returns
 * 0 or -ENOMEM. */
int memory_init(struct memory *m, struct lnet *node, uint64_t bytes_max);
/* Frees the pool. All chunks must have been given back. */
void memory_fini(struct memory *m);
/* Returns a chunk of at least @size bytes for @nid. Before it is used,
 * memory_touch() must be called. NULL: no free range is that large, @nid has
 * used up its share, or there is no memory. */
struct chunk *memory_get(struct memory *m, size_t size,
			 const struct ulnet_nid *nid);
/* Gives the fresh bytes of @p pages of their own: until then they share one
 * page of zeros. That takes about 0.5 ms for each MiB. */
void memory_touch(struct chunk *p);
void memory_put(struct memory *m, struct chunk *p);

#endif
