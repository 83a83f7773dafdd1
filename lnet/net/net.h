/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The local nets of a node and their interfaces: the configuration snapshot
 * (requirement C1), and what the node keeps besides. A snapshot is immutable; a
 * change publishes a new one, and each CPT uses the one that it holds.
 *
 * A net exists as long as it has an interface. ni[0] is 0@lo; the others are
 * grouped by net, in the order in which the nets came, which is also the order
 * of the ping info. Within a net they are grouped by segment (lnet/nid/nid.h):
 * a message goes from an NI to a peer NI of the same segment, so a net whose
 * hosts have both IPv4 and IPv6 addresses is treated as two.
 */
#ifndef LNET_NET_H
#define LNET_NET_H

#include "lnd/lnd.h"
#include "lnet/net/ni.h"
#include "lnet/portal/portal.h"

/* A segment of a net; most nets have only one. */
struct lnet_net {
	uint32_t segment;
	unsigned int nnis; /* at least 1 */
	struct lnet_ni **ni;
};

struct lnet_config {
	uint32_t sequence; /* of the ping info */
	unsigned int nnis;
	unsigned int nnets;
	struct lnet_net *net; /* in the order of their interfaces */
	struct lnet_ni *ni[];
};

/* Return a new snapshot, for free(): @old (NULL: an empty one) with @ni added
 * to its net; @old without @ni. NULL: no memory. The caller keeps the NIs. */
struct lnet_config *config_with(const struct lnet_config *old,
				struct lnet_ni *ni);
struct lnet_config *config_without(const struct lnet_config *old,
				   const struct lnet_ni *ni);

/* The NI with this NID, or NULL. */
static inline struct lnet_ni *config_ni(const struct lnet_config *c,
					const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		if (lnet_nid_eq(&c->ni[i]->lnd.nid, nid))
			return c->ni[i];
	return NULL;
}
/* Is it a NID of this node? */
static inline bool config_is_mine(const struct lnet_config *c,
				  const struct ulnet_nid *nid)
{
	return config_ni(c, nid);
}

/* The segment, or NULL if no NI is on it. */
const struct lnet_net *config_net(const struct lnet_config *c,
				  uint32_t segment);
/* Is any NI on the net @id, in whichever segment? */
bool config_has_net(const struct lnet_config *c, uint32_t id);

/* ---- distances between the machine's NUMA nodes (requirement C10) ---- */

#define NUMA_NODES_MAX 64

/* Distances that firmware reports by default. */
#define NUMA_NEAR 10
#define NUMA_FAR  20

struct numa {
	uint32_t farthest; /* the largest distance */
	uint32_t distance[NUMA_NODES_MAX][NUMA_NODES_MAX];
};

/* Reads the distances from @dir, /sys/devices/system/node, for free(). NULL:
 * the machine has a single node, or nothing is known. */
struct numa *numa_read(const char *dir);

/* The distance from node @a to node @b; the farthest one if either is unknown
 * (-1). @numa NULL: as firmware reports by default. */
uint32_t numa_distance(const struct numa *numa, int a, int b);

/* ---- the node ---- */

struct net_node {
	struct portal_node portal;
	const struct lnd *const *lnds;	   /* node_params.lnds */
	const struct lnd_upcalls *upcalls; /* for the LNDs of all NIs */
	void *lnd_net;			   /* node_params.lnd_net */
	void *fabric;			   /* node_params.fabric */
	void *lnd_shared[LND_COUNT_MAX];   /* lnd_ni.shared; CPT 0's thread */
	pthread_mutex_t config_lock;	   /* to read or replace config */
	struct lnet_config *config;	   /* the control side's */
	struct numa *numa; /* immutable after open; NULL: default distances */
	_Atomic uint64_t ni_starts;
	atomic_uint nis_alive; /* created and not freed yet */
};

static inline struct net_node *net_node(const struct lnet *node)
{
	return container_of(node, struct net_node, portal.node);
}

#endif
