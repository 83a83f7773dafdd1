/* SPDX-License-Identifier: BSD-3-Clause */
/* All memory of the process, registered: then whatever a test moves is moved as
 * registered memory is. */
#ifndef TESTS_ALL_MEMORY_H
#define TESTS_ALL_MEMORY_H

#include <limits.h>
#include <malloc.h>
#include <stdint.h>

#include "ulnet/lnet.h"

static inline int all_memory_register(struct lnet *node)
{
	return lnet_mem_register(node, (void *)(uintptr_t)4096,
				 UINTPTR_MAX - 8192);
}

/* For real devices, before there is a node: what is freed stays mapped as it
 * is. */
static inline void all_memory_keep(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

#endif
