/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The local interfaces of a node, and the configuration snapshot that lists
 * them.
 */
#ifndef LNET_NET_H
#define LNET_NET_H

#include "lnd/lnd.h"
#include "lnet/net/ni.h"
#include "lnet/portal/portal.h"

/*
 * The interfaces of a node: immutable. A change publishes a new one; each CPT
 * uses the one that it holds. ni[0] is 0@lo; the others stand net by net, in
 * the order in which the nets came.
 */
struct lnet_config {
	uint32_t sequence; /* of the ping info */
	unsigned int nnis;
	struct lnet_ni *ni[];
};

/* The NI with this NID, or NULL. */
struct lnet_ni *config_ni(const struct lnet_config *c,
			  const struct ulnet_nid *nid);
/* Is it a NID of this node? */
static inline bool config_is_mine(const struct lnet_config *c,
				  const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < c->nnis; i++)
		if (lnet_nid_eq(&c->ni[i]->lnd.nid, nid))
			return true;
	return false;
}
/* Is any of the NIs on this net? */
bool config_has_net(const struct lnet_config *c, uint32_t net);
/* The NI on this net if there is but one; else NULL. */
struct lnet_ni *config_only(const struct lnet_config *c, uint32_t net);

struct net_node {
	struct portal_node portal;
	void *lnd_net;			 /* node_params.lnd_net */
	void *lnd_shared[LND_COUNT_MAX]; /* lnd_ni.shared; CPT 0's thread */
	pthread_mutex_t config_lock;	 /* for reading and replacing config */
	struct lnet_config *config;	 /* control side */
	_Atomic uint64_t ni_starts;
	atomic_uint nis_alive; /* made and not freed yet */
};

static inline struct net_node *net_node(const struct lnet *node)
{
	return container_of(node, struct net_node, portal.node);
}

#endif
