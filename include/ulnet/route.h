/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes to other nets, and routing between nets. Manual: lnet_route_add(3),
 * lnet_routing_set(3), lnet_routing(7).
 */
#ifndef ULNET_ROUTE_H
#define ULNET_ROUTE_H

#include "ulnet/path.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LNET_HOPS_MAX 255

/* Messages to @net, which this node is not on, go through @gateway. */
struct ulnet_route {
	uint32_t net;
	/* a NID of the gateway, on a net of this node */
	struct ulnet_nid gateway;
	/* gateways on the way, 1 to LNET_HOPS_MAX; 0: unknown, counts as 1 */
	uint32_t hops;
	uint32_t priority; /* 0 is the best */
};

struct ulnet_route_info {
	struct ulnet_route route;
	/* false: the route is ill, and used only if no route is up; or it is
	 * down, and never used */
	bool up;
	const char *state; /* "up", "ill" or "down" */
	/* the gateway has no NI on the net, and forwards to another gateway */
	bool multi_hop;
	/* health of the gateway's best NI: 0 to LNET_HEALTH_MAX */
	int32_t health;
};

ULNET_EXPORT int lnet_route_add(struct lnet *node,
				const struct ulnet_route *route);
ULNET_EXPORT int lnet_route_del(struct lnet *node, uint32_t net,
				const struct ulnet_nid *gateway);

struct ulnet_route_change {
	struct ulnet_route
		route; /* to delete: only its net and gateway count */
	bool del;      /* false: the route is added */
};
/* Makes all @n changes, one after the other, or none. On failure
 * *@failed_p, unless @failed_p is NULL, is the index of the first one that is
 * not possible. */
ULNET_EXPORT int lnet_routes_change(struct lnet *node,
				    const struct ulnet_route_change *changes,
				    unsigned int n, unsigned int *failed_p);
/* Fills @infos with up to @n routes, net by net. Returns the number of all
 * routes. Any thread. */
ULNET_EXPORT int lnet_routes(struct lnet *node, struct ulnet_route_info *infos,
			     unsigned int n);

/* Buffers of a router, by the payload of the messages that they hold: none; up
 * to LNET_SMALL_BUFFER bytes; more. */
enum ulnet_buffer_kind {
	LNET_TINY_BUFFERS,
	LNET_SMALL_BUFFERS,
	LNET_LARGE_BUFFERS,
	LNET_BUFFER_KINDS
};
/* bytes of the longest payload that a small buffer holds */
#define LNET_SMALL_BUFFER 4096

/* How many buffers a router has by default; kernel nodes have the same
 * defaults. */
#define LNET_TINY_BUFFERS_DEFAULT  2048
#define LNET_SMALL_BUFFERS_DEFAULT 16384
#define LNET_LARGE_BUFFERS_DEFAULT 1024

struct ulnet_routing {
	bool enabled; /* the node forwards messages of other nodes */
	/* Number of buffers of each kind: how many messages the node can
	 * forward at the same time. Each CPT gets an equal share, at least one
	 * buffer. 0: the default. */
	uint32_t buffers[LNET_BUFFER_KINDS];
};

/* The buffers of one kind on one CPT. */
struct ulnet_buffers_info {
	uint32_t size; /* bytes of each buffer */
	uint32_t count;
	/* free buffers; if negative, the number of messages that wait for one
	 */
	int64_t free;
	int64_t free_min; /* lowest value of @free so far */
};

ULNET_EXPORT int lnet_routing_set(struct lnet *node,
				  const struct ulnet_routing *routing);
/* Sets *@routing to the last setting, with defaults filled in. Any thread. */
ULNET_EXPORT void lnet_routing(struct lnet *node,
			       struct ulnet_routing *routing);
/* Describes the buffers of one CPT. -EINVAL: there is no such CPT. */
ULNET_EXPORT int lnet_routing_buffers(
	struct lnet *node, unsigned int cpt,
	struct ulnet_buffers_info infos[LNET_BUFFER_KINDS]);

#ifdef __cplusplus
}
#endif

#endif
