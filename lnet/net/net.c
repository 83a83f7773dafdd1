/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/net/net.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ulnet/loop.h"

/* Allocates a snapshot with room for @nnis interfaces, even if each is on a net
 * of its own. */
static struct lnet_config *config_alloc(unsigned int nnis)
{
	struct lnet_config *c = malloc(sizeof(*c) + nnis * sizeof(c->ni[0]) +
				       nnis * sizeof(c->net[0]));

	if (!c)
		return NULL;
	c->nnis = nnis;
	c->net = (struct lnet_net *)(c->ni + nnis);
	return c;
}

/* Fills in c->net. The interfaces of @c must be in their final order. */
static void config_find_nets(struct lnet_config *c)
{
	struct lnet_net *net = NULL;

	c->nnets = 0;
	for (unsigned int i = 0; i < c->nnis; i++) {
		if (!net || net->segment != c->ni[i]->segment) {
			net = &c->net[c->nnets++];
			*net = (struct lnet_net){ .segment = c->ni[i]->segment,
						  .host = c->ni[i]->lnd.host,
						  .ni = &c->ni[i] };
		}
		net->nnis++;
	}
}

/* Returns the index at which an NI of @segment is inserted: after the last NI
 * of the same segment; if there is none, after the last NI of the same net; or
 * else at the end. */
static unsigned int index_for(const struct lnet_config *c, uint32_t segment)
{
	const struct lnet_net *after = config_net(c, segment);

	for (unsigned int i = 0; !after && i < c->nnets; i++)
		if (segment_net(c->net[i].segment) == segment_net(segment))
			after = &c->net[i];
	return after ? (unsigned int)(after->ni - c->ni) + after->nnis
		     : c->nnis;
}

struct lnet_config *config_with(const struct lnet_config *old,
				struct lnet_ni *ni)
{
	unsigned int n = old ? old->nnis : 0;
	unsigned int at = n ? index_for(old, ni->segment) : 0;
	struct lnet_config *new = config_alloc(n + 1);

	if (!new)
		return NULL;
	if (n) {
		memcpy(new->ni, old->ni, at * sizeof(new->ni[0]));
		memcpy(new->ni + at + 1, old->ni + at,
		       (n - at) * sizeof(new->ni[0]));
	}
	new->ni[at] = ni;
	config_find_nets(new);
	return new;
}

struct lnet_config *config_without(const struct lnet_config *old,
				   const struct lnet_ni *ni)
{
	struct lnet_config *new = config_alloc(old->nnis);

	if (!new)
		return NULL;
	new->nnis = 0;
	for (unsigned int i = 0; i < old->nnis; i++)
		if (old->ni[i] != ni)
			new->ni[new->nnis++] = old->ni[i];
	config_find_nets(new);
	return new;
}

/* Are the NIs of @net in several IP networks? An NI whose IP network is not
 * known counts as being in the same one as any other NI. */
static bool net_is_apart(const struct lnet_net *net)
{
	for (unsigned int i = 1; i < net->nnis; i++)
		if (net->ni[0]->lnd.prefix &&
		    !ni_is_neighbour(net->ni[0], &net->ni[i]->lnd.nid))
			return true;
	return false;
}

bool config_is_apart(const struct lnet_config *c)
{
	for (unsigned int i = 0; i < c->nnets; i++)
		if (net_is_apart(&c->net[i]))
			return true;
	return false;
}

const struct lnet_net *config_net(const struct lnet_config *c, uint32_t segment)
{
	for (unsigned int i = 0; i < c->nnets; i++)
		if (c->net[i].segment == segment)
			return &c->net[i];
	return NULL;
}

bool config_has_net(const struct lnet_config *c, uint32_t id)
{
	for (unsigned int i = 0; i < c->nnets; i++)
		if (segment_net(c->net[i].segment) == id)
			return true;
	return false;
}

bool config_is_of_host(const struct lnet_config *c, const struct ulnet_nid *nid)
{
	const struct lnet_net *net = config_net(c, nid_segment(nid));

	return net && net_is_of_host(net);
}

uint64_t config_host(const struct lnet_config *c)
{
	for (unsigned int i = 0; i < c->nnets; i++)
		if (net_is_of_host(&c->net[i]))
			return c->net[i].host;
	return 0;
}

/* ---- NUMA ---- */

static FILE *distance_open(const char *dir, unsigned int node)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/node%u/distance", dir, node);
	return fopen(path, "re");
}

/* Reads the distances from a NUMA node to all nodes that exist, which its file
 * lists in the order of the nodes. */
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

unsigned int lnet_numa_distances(struct lnet *node, int from,
				 uint32_t *distances, unsigned int n)
{
	const struct numa *numa = net_node(node)->numa;
	unsigned int nodes = 0;

	if (!numa || from < 0 || from >= NUMA_NODES_MAX)
		return 0;
	for (unsigned int i = 0; i < NUMA_NODES_MAX; i++) {
		if (i < n)
			distances[i] = numa->distance[from][i];
		if (numa->distance[from][i])
			nodes = i + 1;
	}
	return nodes;
}

int lnet_numa_here(struct lnet *node)
{
	unsigned int cpu, here;

	if (!net_node(node)->numa || getcpu(&cpu, &here))
		return -1;
	return (int)here;
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
