/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service's memory: pieces that are given out and come back. At most so many
 * bytes in all, and they are used again, since fresh ones cost page faults.
 * What is in a piece is left from before: this is memory of a test. Any thread.
 */
#ifndef SERVICES_BRW_MEMORY_H
#define SERVICES_BRW_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct piece {
	struct piece *next;  /* of those that are free */
	unsigned char *data; /* page-aligned */
	size_t size;
};

struct memory {
	pthread_mutex_t lock;
	struct piece *free;
	uint64_t bytes; /* of all pieces, free or not */
	uint64_t bytes_max;
};

void memory_init(struct memory *m, uint64_t bytes_max);
/* All pieces have come back. */
void memory_fini(struct memory *m);
/* At least @size bytes. NULL: there are not that many. */
struct piece *memory_get(struct memory *m, size_t size);
void memory_put(struct memory *m, struct piece *p);

#endif
