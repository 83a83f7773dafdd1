/* SPDX-License-Identifier: BSD-3-Clause */
/* Distances between NUMA nodes, as read from the system (requirement C10). */
#include "lnet/net/net.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/ulnet-numa.XXXXXX";

static void node_is(unsigned int node, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/node%u", dir, node);
	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/node%u/distance", dir, node);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	cr_assert_eq(fclose(f), 0);
}

static void node_gone(unsigned int node)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/node%u/distance", dir, node);
	cr_assert_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/node%u", dir, node);
	cr_assert_eq(rmdir(path), 0);
}

/* There are nodes 0, 1 and 3: numbers may have gaps. */
Test(numa, as_the_system_says)
{
	struct numa *numa;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_null(numa_read(dir));
	node_is(0, "10 21 31\n");
	cr_assert_null(numa_read(dir), "one node is near to itself");
	node_is(1, "21 10 12\n");
	node_is(3, "31 12 10\n");
	numa = numa_read(dir);
	cr_assert_not_null(numa);
	cr_assert_eq(numa_distance(numa, 0, 0), 10);
	cr_assert_eq(numa_distance(numa, 0, 1), 21);
	cr_assert_eq(numa_distance(numa, 0, 3), 31);
	cr_assert_eq(numa_distance(numa, 3, 1), 12);
	/* A node that is not known is farthest. */
	cr_assert_eq(numa_distance(numa, -1, 1), 31);
	cr_assert_eq(numa_distance(numa, 1, -1), 31);
	cr_assert_eq(numa_distance(numa, 1, 2), 31);
	cr_assert_eq(numa_distance(numa, 1, NUMA_NODES_MAX), 31);
	free(numa);
	node_gone(0);
	node_gone(1);
	node_gone(3);
	cr_assert_eq(rmdir(dir), 0);
}

Test(numa, without_a_table)
{
	cr_assert_eq(numa_distance(NULL, 0, 0), NUMA_NEAR);
	cr_assert_eq(numa_distance(NULL, 0, 1), NUMA_FAR);
	cr_assert_eq(numa_distance(NULL, -1, 0), NUMA_FAR);
}
