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

/* What the ping info of the gateway has said about the route. */
enum route_told {
	ROUTE_TOLD_NOTHING,
	ROUTE_TOLD_WORKS,
	ROUTE_TOLD_NO_ROUTER, /* the gateway does not forward messages */
	/* all NIs of the gateway on this node's side are down */
	ROUTE_TOLD_NEAR_DOWN,
	/* all NIs of the gateway on the net of the route are down; or, if it
	 * has none there, all its NIs on other nets than this node's side */
	ROUTE_TOLD_FAR_DOWN,
};

struct lnet_route {
	/* Immutable: */
	uint32_t net;
	struct ulnet_nid gateway;
	uint32_t hops;	   /* 0: not given, and counts as 1 */
	uint32_t priority; /* 0 is the best */
	/* Written by the CPT that owns the gateway, read by any thread. Relaxed
	 * accesses, since these fields do not depend on each other: */
	_Atomic uint8_t told; /* enum route_told */
	/* the gateway has no NI on the net of the route */
	atomic_bool multi_hop;
	_Atomic int32_t health; /* health of the gateway's best NI */
	/* magnitude of the queue of messages for the gateway: see
	 * routes_queue() */
	_Atomic uint8_t queue;
	/* For the control side, in route_table_next(): @gone: the route is not
	 * in the new table; @order: the index of the route among those that are
	 * added. */
	bool gone;
	unsigned int order;
	/* By CPT: number of its last choice that took the route (path/path.c).
	 */
	uint64_t use[LNET_CPTS_MAX];
};

static inline enum route_told route_told(const struct lnet_route *r)
{
	return (enum route_told)atomic_load_explicit(&r->told,
						     memory_order_relaxed);
}

/* Returns the larger a number, the more messages wait for the gateway. */
static inline uint8_t route_queue(const struct lnet_route *r)
{
	return atomic_load_explicit(&r->queue, memory_order_relaxed);
}

static inline int32_t route_health(const struct lnet_route *r)
{
	return atomic_load_explicit(&r->health, memory_order_relaxed);
}

/* @sensitivity: the health that a gateway must have, in percent of
 * LNET_HEALTH_MAX. Any thread. */
enum route_state route_state(const struct lnet_route *r, uint32_t sensitivity);
const char *route_state_name(enum route_state state);

/* Returns what a gateway's ping info says about a route to @net through its NI
 * @gateway. *@multi_hop: the gateway has no NI on @net, and forwards messages
 * to another gateway. */
enum route_told route_read(const struct ulnet_ping_info *info,
			   const struct ulnet_nid *gateway, uint32_t net,
			   bool *multi_hop);

/* Update all routes whose gateway is a certain peer: routes_told() by the ping
 * info of the peer, routes_health() by the health of its NIs. Thread: the CPT
 * that owns the peer. */
void routes_told(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		 const struct ulnet_ping_info *info);
void routes_health(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni);
/*
 * The number of messages that wait for credits of @lpni has changed: sets the
 * queue of all routes whose gateway is its peer, to the shortest queue of all
 * NIs of that peer. Writing to all these routes is costly, so they have only
 * the magnitude of the queue's length (0; 1; 2 for 2 and 3; 3 for 4 to 7, and
 * so on), which small changes leave as it is. Thread: the CPT that owns @lpni.
 */
void routes_queue(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);
/* Routes that were added have the health of their gateways from now on, as far
 * as @cpt owns these: to be called in the turn in which it takes the table. */
void routes_added(struct lnet_cpt *cpt);

/* Is the peer with @nid the gateway of a route to @net (LNET_NET_ANY: of any
 * route)? */
bool routes_go_by(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		  uint32_t net);

/*
 * The routes of a node: an immutable snapshot, as struct lnet_config
 * (net/net.h). Several snapshots may share routes. They are in two orders,
 * because messages look for routes by net, and what is learned of a gateway is
 * about the routes by it: there may be tens of thousands of routes, so nothing
 * that happens for each message or each answer searches all of them.
 */
struct route_table {
	unsigned int n;
	/* The routes that the previous table did not have; valid only until the
	 * CPTs have taken this one. */
	struct lnet_route *const *added;
	unsigned int nadded;
	/* Sorted by gateway, then by net; in the memory of the table. */
	struct lnet_route **by_gateway;
	/* Sorted by net; routes to one net are in the order in which they were
	 * added. */
	struct lnet_route *route[];
};

/* Returns the end of the routes to @net, and sets *@begin_p to their begin:
 * both are indexes, and the end is not included. */
unsigned int routes_to(const struct route_table *t, uint32_t net,
		       unsigned int *begin_p);
static inline bool route_exists(const struct route_table *t, uint32_t net)
{
	unsigned int begin;

	return routes_to(t, net, &begin) > begin;
}

/* Returns the route to @net through @gateway, or NULL. */
struct lnet_route *route_find(const struct route_table *t, uint32_t net,
			      const struct ulnet_nid *gateway);

/* Returns the end of the routes by the gateway NID @nid, and sets *@begin_p to
 * their begin, as routes_to(): indexes of by_gateway. */
unsigned int routes_by(const struct route_table *t, const struct ulnet_nid *nid,
		       unsigned int *begin_p);

/* Returns a new table, to be freed with free(): the routes of @old that are not
 * .gone, and @added, of which none is .gone or in @old. NULL: there is no
 * memory. The caller keeps the routes, and @added until all CPTs have taken the
 * table. */
struct route_table *route_table_next(const struct route_table *old,
				     struct lnet_route *const *added,
				     unsigned int n);

#endif
