/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes: messages to a net that this node is not on go through a gateway, a
 * peer on a net of this node that forwards them (requirements B1, B4).
 *
 * The state of a route is in a few atomic words, which the CPT that owns the
 * gateway writes, and all CPTs read.
 *
 *	state	reason					chosen
 *	up	no other state applies, or nothing is	first
 *		known yet
 *	ill	the gateway's health is below		if no other route is up
 *		router_sensitivity
 *	down	the gateway says that it does not	never
 *		forward, or that all its NIs on the
 *		near net, or on the net of the route,
 *		are down
 *
 * Messages are never sent by a route that is down: the gateway would drop them,
 * and their senders would wait for answers in vain. They fail at once instead.
 */
#ifndef LNET_ROUTE_H
#define LNET_ROUTE_H

#include <stdatomic.h>
#include "lnet/core/cpt.h"
#include "ulnet/route.h"

struct lnet_peer_ni;

enum route_state { ROUTE_UP, ROUTE_ILL, ROUTE_DOWN, ROUTE_STATES };

/* What the gateway has said of the route. */
enum route_told {
	ROUTE_TOLD_NOTHING,
	ROUTE_TOLD_WORKS,
	ROUTE_TOLD_NO_ROUTER, /* it does not forward */
	ROUTE_TOLD_NEAR_DOWN, /* all its NIs on our side are down */
	ROUTE_TOLD_FAR_DOWN,  /* ... on the net of the route; or, if it is not
			       * on that net, all NIs on other nets */
};

struct lnet_route {
	/* immutable: */
	uint32_t net;
	struct ulnet_nid gateway;
	uint32_t hops;	   /* 0: not given, counts as 1 */
	uint32_t priority; /* 0 is the best */
	/* Written by the gateway's CPT, read by any thread; relaxed, since they
	 * do not depend on each other: */
	_Atomic uint8_t told;	/* enum route_told */
	atomic_bool multi_hop;	/* the gateway is not on the net itself */
	_Atomic int32_t health; /* of the gateway's best NI */
	_Atomic uint8_t queue;	/* of messages for it: see routes_queue() */
	/* When it was last chosen, by CPT (path/path.c). */
	uint64_t use[LNET_CPTS_MAX];
};

static inline enum route_told route_told(const struct lnet_route *r)
{
	return (enum route_told)atomic_load_explicit(&r->told,
						     memory_order_relaxed);
}

/* The larger, the more messages wait. */
static inline uint8_t route_queue(const struct lnet_route *r)
{
	return atomic_load_explicit(&r->queue, memory_order_relaxed);
}

static inline int32_t route_health(const struct lnet_route *r)
{
	return atomic_load_explicit(&r->health, memory_order_relaxed);
}

/* @sensitivity: percent of LNET_HEALTH_MAX that a gateway must have. Any
 * thread. */
enum route_state route_state(const struct lnet_route *r, uint32_t sensitivity);
const char *route_state_name(enum route_state state);

/* What a gateway's ping info says of a route to @net by its NI @gateway.
 * *@multi_hop: the gateway has no NI on @net, and forwards messages to another
 * gateway. */
enum route_told route_read(const struct ulnet_ping_info *info,
			   const struct ulnet_nid *gateway, uint32_t net,
			   bool *multi_hop);

/* Update all routes by a peer: from its ping info; from its health. Thread: the
 * CPT that owns it. */
void routes_told(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		 const struct ulnet_ping_info *info);
void routes_health(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni);
/*
 * The number of messages that wait for credits of @lpni has changed: routes by
 * it get the shortest queue among the peer's NIs. Since all routes have to be
 * searched, a route has only the magnitude (0, 1, 2 for up to 3, 3 for up to 7,
 * and so on), and ignores small changes. Thread: the CPT that owns @lpni.
 */
void routes_queue(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* Is the peer with @nid a gateway of a route to @net (LNET_NET_ANY: of any
 * route)? */
bool routes_go_by(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		  uint32_t net);

/* The routes of a node: an immutable snapshot, as struct lnet_config
 * (net/net.h); snapshots share routes. They are sorted by net, and for each net
 * in the order in which they came. */
struct route_table {
	unsigned int n;
	struct lnet_route *route[];
};

/* The indexes of the routes to @net: from *@begin_p up to, not including, the
 * return value. */
unsigned int routes_to(const struct route_table *t, uint32_t net,
		       unsigned int *begin_p);
static inline bool route_exists(const struct route_table *t, uint32_t net)
{
	unsigned int begin;

	return routes_to(t, net, &begin) > begin;
}

/* That route, or NULL. */
struct lnet_route *route_find(const struct route_table *t, uint32_t net,
			      const struct ulnet_nid *gateway);

/* Return a new table, for free(), with @route added or removed. NULL: no
 * memory. The caller keeps the routes. */
struct route_table *route_table_with(const struct route_table *old,
				     struct lnet_route *route);
struct route_table *route_table_without(const struct route_table *old,
					const struct lnet_route *route);

#endif
