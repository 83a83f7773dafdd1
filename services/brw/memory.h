/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of service "brw": chunks of one pool, for requests. Pages that
 * were used before are preferred, since fresh ones cost page faults. Chunks are
 * not cleared: they hold data of tests only. Any thread.
 *
 * A NID gets a chunk as long as it holds no more than what is still free: so a
 * NID alone gets half of the pool, two get a third each, and a client that
 * stops in the middle of its transfers leaves memory for others.
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
	struct holder *next; /* of its bucket */
	struct ulnet_nid nid;
	uint64_t bytes;
};

/* A range of the pool that is given out, or free. */
struct chunk {
	struct chunk *next;    /* free: the next free one by address */
	struct holder *holder; /* given out */
	unsigned char *data;   /* page-aligned */
	size_t size;
};

struct memory {
	struct lnet *node;
	pthread_mutex_t lock;
	unsigned char *pool;
	size_t fresh; /* the offset from which on pages were never used */
	bool registered;
	struct chunk *free; /* by address */
	uint64_t out;	    /* bytes that are given out */
	uint64_t bytes_max;
	struct holder *holders[MEMORY_BUCKETS];
};

/* Makes a pool of the whole pages in @bytes_max bytes. If @node is not NULL,
 * the pool is registered with it (lnet_mem_register(3)), unless that fails, as
 * it does on the thread of one CPT of several. -ENOMEM. */
int memory_init(struct memory *m, struct lnet *node, uint64_t bytes_max);
/* All chunks have been given back before. */
void memory_fini(struct memory *m);
/* A chunk of at least @size bytes, for @nid. NULL: no free range is that large,
 * or @nid has used up its share. */
struct chunk *memory_get(struct memory *m, size_t size,
			 const struct ulnet_nid *nid);
void memory_put(struct memory *m, struct chunk *p);

#endif
