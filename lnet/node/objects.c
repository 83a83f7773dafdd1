/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the objects that a node has now, for those who look for a leak. The
 * CPTs are asked one after the other, so that messages pay nothing for it. */
#include <stddef.h>

#include "lnet/message/msgs.h"
#include "lnet/node/node.h"
#include "lnet/portal/event.h"

#define POOL(member) offsetof(struct msg_cpt, member)
#define IN_PORTAL    path.peer.portal
#define IN_PEER	     path.peer

/* Objects of one kind are from one pool of each CPT. */
static const struct {
	const char *name, *help;
	size_t pool; /* offset in struct msg_cpt */
} kinds[] = {
	{ "mds", "memory descriptors", POOL(IN_PORTAL.md_pool) },
	{ "mes", "match entries", POOL(IN_PORTAL.me_pool) },
	{ "operations", "PUTs and GETs of this node that have not ended",
	  POOL(op_pool) },
	{ "messages", "messages that came in, and have not ended or gone on",
	  POOL(msg_pool) },
	{ "peers", "peers, once for each CPT that knows them",
	  POOL(IN_PEER.peer_pool) },
	{ "peer_nis", "NIDs of peers, once for each CPT that uses them",
	  POOL(IN_PEER.ni_pool) },
};

struct objects {
	struct ulnet_object *all;
	unsigned int n;
};

static int objects_of_cpt(struct lnet_cpt *cpt, void *arg)
{
	struct objects *o = arg;

	for (unsigned int i = 0; i < o->n && i < ARRAY_SIZE(kinds); i++) {
		const struct pool *pool =
			(const void *)((const char *)msg_cpt(cpt) +
				       kinds[i].pool);

		o->all[i].now += pool->used;
	}
	return 0;
}

int lnet_objects(struct lnet *node, struct ulnet_object *objects,
		 unsigned int n)
{
	struct objects o = { objects, n };
	int rc;

	for (unsigned int i = 0; i < n && i < ARRAY_SIZE(kinds); i++)
		objects[i] = (struct ulnet_object){ .name = kinds[i].name,
						    .help = kinds[i].help };
	if (n > ARRAY_SIZE(kinds))
		objects[ARRAY_SIZE(kinds)] = (struct ulnet_object){
			.name = "eqs",
			.help = "event queues",
			.now = eqs_count(&portal_node(node)->eqs),
		};
	rc = n ? node_each_cpt(node, objects_of_cpt, &o) : 0;
	return rc ? rc : (int)ARRAY_SIZE(kinds) + 1;
}
