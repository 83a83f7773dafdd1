/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the process, registered: then what a test moves is moved as
 * registered memory is. */
#ifndef TESTS_ALL_MEMORY_H
#define TESTS_ALL_MEMORY_H

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "ulnet/lnet.h"

/* All addresses. For simulated devices, which do not mind if nothing is
 * there. */
static inline int all_memory_register(struct lnet *node)
{
	return lnet_mem_register(node, (void *)(uintptr_t)4096,
				 UINTPTR_MAX - 8192);
}

#define HEAP_BYTES (256 << 20)

/* For real ones, before there is a node: all that malloc() gives is in one
 * place, and what is freed stays mapped as it is. */
static inline void heap_keep(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_TOP_PAD, HEAP_BYTES);
	free(malloc(HEAP_BYTES / 2));
}

/* Its last HEAP_BYTES. */
static inline int heap_register(struct lnet *node)
{
	char *end = sbrk(0);

	return lnet_mem_register(node, end - HEAP_BYTES, HEAP_BYTES);
}

#endif
