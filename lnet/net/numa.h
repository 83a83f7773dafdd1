/* SPDX-License-Identifier: BSD-3-Clause */
/* How far the machine's NUMA nodes are from each other (requirement C10). */
#ifndef LNET_NUMA_H
#define LNET_NUMA_H

#include <stdint.h>

#define NUMA_NODES_MAX 64

/* What firmware says if it says nothing else. */
#define NUMA_NEAR 10
#define NUMA_FAR  20

struct numa {
	uint32_t farthest; /* of all distances */
	uint32_t distance[NUMA_NODES_MAX][NUMA_NODES_MAX];
};

/* What the system says in @dir, /sys/devices/system/node, for free(); NULL:
 * there are not several nodes, or nothing is known of them. */
struct numa *numa_read(const char *dir);

/* From node @a to node @b; who does not know its node (-1) is farthest away.
 * @numa NULL: the usual distances. */
uint32_t numa_distance(const struct numa *numa, int a, int b);

#endif
