/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service's memory: pieces of one pool that are given out and come back.
 * Pages are used again, since fresh ones cost page faults. What is in a piece
 * is left from before: this is memory of a test. Any thread.
 *
 * A NID gets more while it has at most what is left for others: one alone has
 * half, two have a third each, and so on. A client that stops in the middle of
 * its transfers so keeps nobody from the service.
 */
#ifndef SERVICES_BRW_MEMORY_H
#define SERVICES_BRW_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ulnet/lnet.h>

#define MEMORY_BUCKETS 256

/* A NID that has pieces. */
struct holder {
	struct holder *next; /* of its bucket */
	struct ulnet_nid nid;
	uint64_t bytes;
};

/* Given out, or free. */
struct piece {
	struct piece *next;    /* free: the next one in memory, not adjacent */
	struct holder *holder; /* given out */
	unsigned char *data;   /* page-aligned */
	size_t size;
};

struct memory {
	struct lnet *node;
	pthread_mutex_t lock;
	unsigned char *pool;
	size_t fresh; /* from here on nobody has had it yet */
	bool registered;
	struct piece *free; /* by address */
	uint64_t out;	    /* bytes that are given out */
	uint64_t bytes_max;
	struct holder *holders[MEMORY_BUCKETS];
};

/* Whole pages of @bytes_max; if @node is not NULL, they are registered with it
 * (lnet_mem_register(3)), where that can be done: not on the thread of one CPT
 * of several. -ENOMEM: there are not that many. */
int memory_init(struct memory *m, struct lnet *node, uint64_t bytes_max);
/* All pieces have come back. */
void memory_fini(struct memory *m);
/* At least @size bytes, for @nid. NULL: there are not that many in one piece
 * just now, or it has its share. */
struct piece *memory_get(struct memory *m, size_t size,
			 const struct ulnet_nid *nid);
void memory_put(struct memory *m, struct piece *p);

#endif
