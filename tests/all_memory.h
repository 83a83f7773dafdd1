/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers all memory of the process, so that whatever a test transfers is
 * sent from, and stored in, registered memory. */
#ifndef TESTS_ALL_MEMORY_H
#define TESTS_ALL_MEMORY_H

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "ulnet/lnet.h"

/* Registers all addresses: for simulated devices, which do not mind unmapped
 * ones. */
static inline int all_memory_register(struct lnet *node)
{
	return lnet_mem_register(node, (void *)(uintptr_t)4096,
				 UINTPTR_MAX - 8192);
}

#define HEAP_BYTES (256 << 20)

/* For real devices, to be called before a node is opened: makes malloc() use
 * one contiguous heap, and keep what is freed mapped. */
static inline void heap_keep(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_TOP_PAD, HEAP_BYTES);
	free(malloc(HEAP_BYTES / 2));
}

/* Registers the last HEAP_BYTES of the heap that heap_keep() has set up. */
static inline int heap_register(struct lnet *node)
{
	char *end = sbrk(0);

	return lnet_mem_register(node, end - HEAP_BYTES, HEAP_BYTES);
}

#endif
