/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/net/numa.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"

static FILE *distance_open(const char *dir, unsigned int node)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/node%u/distance", dir, node);
	return fopen(path, "re");
}

/* A node's file has a number for each node that there is, in their order. */
static void node_read(struct numa *numa, FILE *f, unsigned int node,
		      const unsigned int *nodes, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		unsigned int distance;

		if (fscanf(f, "%u", &distance) != 1)
			return;
		numa->distance[node][nodes[i]] = distance;
		numa->farthest = MAX(numa->farthest, distance);
	}
}

struct numa *numa_read(const char *dir)
{
	unsigned int nodes[NUMA_NODES_MAX], n = 0;
	struct numa *numa;
	FILE *f;

	for (unsigned int i = 0; i < NUMA_NODES_MAX; i++) {
		f = distance_open(dir, i);
		if (!f)
			continue;
		nodes[n++] = i;
		fclose(f);
	}
	numa = n > 1 ? calloc(1, sizeof(*numa)) : NULL;
	for (unsigned int i = 0; numa && i < n; i++) {
		f = distance_open(dir, nodes[i]);
		if (!f)
			continue;
		node_read(numa, f, nodes[i], nodes, n);
		fclose(f);
	}
	return numa;
}

uint32_t numa_distance(const struct numa *numa, int a, int b)
{
	uint32_t farthest = numa ? numa->farthest : NUMA_FAR;

	if (a < 0 || b < 0)
		return farthest;
	if (!numa)
		return a == b ? NUMA_NEAR : NUMA_FAR;
	if (a >= NUMA_NODES_MAX || b >= NUMA_NODES_MAX || !numa->distance[a][b])
		return farthest;
	return numa->distance[a][b];
}
