/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration snapshot of a node: its local nets, and the interfaces that
 * each has (requirement C1). Immutable; a change publishes a new one, and each
 * CPT uses the one that it holds.
 *
 * A net is there as long as it has an interface. ni[0] is 0@lo; the other
 * interfaces stand net by net, in the order in which the nets came. That is the
 * order of the ping info, too. Within a net they stand by segment
 * (lnet/nid/nid.h): a path goes from one to a peer NI of the same segment, so
 * that is what is looked for, and a net of hosts with both IPv4 and IPv6 is
 * like two.
 */
#ifndef LNET_CONFIG_H
#define LNET_CONFIG_H

#include "lnet/net/ni.h"

/* A segment of a net: most nets have one. */
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

/* A new one, for free(): with @ni added behind those of its net, or alone (@old
 * NULL); without @ni. NULL: no memory. The interfaces stay the caller's. */
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

/* That segment, or NULL: none of the NIs is on it. */
const struct lnet_net *config_net(const struct lnet_config *c,
				  uint32_t segment);
/* Is any NI on the net @id, whatever its address? */
bool config_has_net(const struct lnet_config *c, uint32_t id);

#endif
