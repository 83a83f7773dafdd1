/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The local nets of a node and their interfaces: the configuration snapshot
 * (requirement C1), and what else the node keeps of them. A snapshot is
 * immutable. A change publishes a new snapshot, which each CPT then takes in
 * place of the old one.
 *
 * A net exists as long as it has an interface. ni[0] is 0@lo; the other NIs are
 * grouped by net, in the order in which the nets were added, which is also the
 * order in the ping info. Within a net they are grouped by segment
 * (lnet/nid/nid.h): a message goes from an NI to a peer NI of the same segment,
 * so a net whose hosts have both IPv4 and IPv6 addresses is treated as two
 * nets.
 */
#ifndef LNET_NET_H
#define LNET_NET_H

#include "lnd/lnd.h"
#include "lnet/net/ni.h"
#include "lnet/portal/portal.h"

/* A segment of a net; most nets have only one. */
struct lnet_net {
	uint32_t segment;
	unsigned int nnis; /* number of NIs, at least 1 */
	/* lnd_ni.host of its NIs. A copy, since the last snapshot of a node
	 * that is being closed outlives its NIs. */
	uint64_t host;
	struct lnet_ni **ni;
};

struct lnet_config {
	unsigned int nnis;
	unsigned int nnets;
	/* array of segments, in the order of their interfaces */
	struct lnet_net *net;
	struct lnet_ni *ni[];
};

/* Return a new snapshot, to be freed with free(): @old (NULL: an empty one)
 * with @ni added to its net, or @old without @ni. NULL: there is no memory. The
 * caller keeps the NIs. */
struct lnet_config *config_with(const struct lnet_config *old,
				struct lnet_ni *ni);
struct lnet_config *config_without(const struct lnet_config *old,
				   const struct lnet_ni *ni);

/* Returns the NI with this NID, or NULL. */
static inline struct lnet_ni *config_ni(const struct lnet_config *c,
					const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		if (lnet_nid_eq(&c->ni[i]->lnd.nid, nid))
			return c->ni[i];
	return NULL;
}
/* Is @nid a NID of this node? */
static inline bool config_is_mine(const struct lnet_config *c,
				  const struct ulnet_nid *nid)
{
	return config_ni(c, nid);
}

/* Are there NIs of one net, and one segment, in different IP networks? */
bool config_is_apart(const struct lnet_config *c);

/* Returns the segment, or NULL if no NI is on it. */
const struct lnet_net *config_net(const struct lnet_config *c,
				  uint32_t segment);
/* Is any NI on the net @id, in any segment of it? */
bool config_has_net(const struct lnet_config *c, uint32_t id);

/* Is the net on one host only (lnd_ni.host)? */
static inline bool net_is_of_host(const struct lnet_net *net)
{
	return net->host;
}
/* Is @nid on such a net of this node? */
bool config_is_of_host(const struct lnet_config *c,
		       const struct ulnet_nid *nid);
/* Returns the host of the nets that are on one host only; 0: there are none. */
uint64_t config_host(const struct lnet_config *c);

/* ---- distances between the machine's NUMA nodes (requirement C10) ---- */

#define NUMA_NODES_MAX 64

/* The distances that firmware reports by default: within a node, and between
 * two nodes. */
#define NUMA_NEAR 10
#define NUMA_FAR  20

struct numa {
	uint32_t farthest; /* the largest distance */
	uint32_t distance[NUMA_NODES_MAX][NUMA_NODES_MAX];
};

/* Reads the distances from the directory @dir, such as
 * /sys/devices/system/node; to be freed with free(). NULL: the machine has a
 * single node, or the distances are unknown. */
struct numa *numa_read(const char *dir);

/* Returns the distance from node @a to node @b; the largest distance if either
 * is unknown (-1). @numa NULL: what firmware reports by default. */
uint32_t numa_distance(const struct numa *numa, int a, int b);

/* ---- the node ---- */

struct net_node {
	struct portal_node portal;
	/* the LNDs of the node: node_params.lnds */
	const struct lnd *const *lnds;
	/* functions that the LNDs of all NIs call */
	const struct lnd_upcalls *upcalls;
	void *lnd_net; /* lnd_ni.net of all NIs: node_params.lnd_net */
	void *fabric;  /* lnd_ni.fabric of all NIs: node_params.fabric */
	/* by LND: what the NIs of the LND share (lnd_ni.shared); used by CPT 0
	 */
	void *lnd_shared[LND_COUNT_MAX];
	struct lnd_ports ports;	     /* lnet_peer_port_claim() */
	struct lnd_tls_rules tls_rules; /* lnet_tls_rule_set() */
	pthread_mutex_t config_lock; /* locked to read or replace config */
	/* the newest snapshot, for the control side */
	struct lnet_config *config;
	struct numa *numa; /* immutable after open; NULL: default distances */
	_Atomic uint64_t ni_starts;
	atomic_uint nis_alive; /* NIs that were created and not freed yet */
	struct commons commons; /* lnet_mem_alloc() */
};

static inline struct net_node *net_node(const struct lnet *node)
{
	return container_of(node, struct net_node, portal.node);
}

/* The program has given @nid, without a port: no answer about a name is to move
 * it to another one. Without memory one may; all else is right. Any thread. */
void net_nid_given(struct lnet *node, const struct ulnet_nid *nid);

#endif
