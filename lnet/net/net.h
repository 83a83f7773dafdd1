/* SPDX-License-Identifier: BSD-3-Clause */
/* The local interfaces of a node: what the node keeps of them. */
#ifndef LNET_NET_H
#define LNET_NET_H

#include "lnd/lnd.h"
#include "lnet/net/config.h"
#include "lnet/net/numa.h"
#include "lnet/portal/portal.h"

struct net_node {
	struct portal_node portal;
	const struct lnd *const *lnds;	   /* that there are; node_params' */
	const struct lnd_upcalls *upcalls; /* of all NIs */
	void *lnd_net;			 /* node_params.lnd_net, ... */
	void *fabric;			 /* ... .fabric */
	void *lnd_shared[LND_COUNT_MAX]; /* lnd_ni.shared; CPT 0's thread */
	pthread_mutex_t config_lock;	 /* for reading and replacing config */
	struct lnet_config *config;	 /* control side */
	struct numa *numa; /* immutable after open; NULL: nothing special */
	_Atomic uint64_t ni_starts;
	atomic_uint nis_alive; /* made and not freed yet */
};

static inline struct net_node *net_node(const struct lnet *node)
{
	return container_of(node, struct net_node, portal.node);
}

#endif
