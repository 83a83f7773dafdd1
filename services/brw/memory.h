/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service's memory: pieces that are given out and come back. At most so
 * many bytes in all, and they are used again, since fresh ones cost page
 * faults. What is in a piece is left from before: this is memory of a test. Any
 * thread.
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

struct piece {
	struct piece *next;    /* of those that are free */
	struct holder *holder; /* of those that are not */
	unsigned char *data;   /* page-aligned */
	size_t size;
	bool registered;
};

struct memory {
	struct lnet *node;
	pthread_mutex_t lock;
	struct piece *free;
	uint64_t bytes; /* of all pieces, free or not */
	uint64_t out;	/* of those that are not */
	uint64_t bytes_max;
	struct holder *holders[MEMORY_BUCKETS];
};

/* Pieces are registered with @node, if they are made where that can be done: on
 * the thread of its only CPT, or on one that is no CPT's. NULL: none is. */
void memory_init(struct memory *m, struct lnet *node, uint64_t bytes_max);
/* All pieces have come back. */
void memory_fini(struct memory *m);
/* At least @size bytes, for @nid. NULL: there are not that many, or it has its
 * share. */
struct piece *memory_get(struct memory *m, size_t size,
			 const struct ulnet_nid *nid);
void memory_put(struct memory *m, struct piece *p);

#endif
