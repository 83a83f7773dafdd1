/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A route: messages to a net that this node is not on go through a gateway, a
 * peer on a net of ours that passes them on (requirements B1, B4).
 *
 * What is known of its gateway is the same for all CPTs: a few atomic words,
 * which the CPT that owns the gateway writes, and by which any CPT chooses. It
 * is the latest that is known, not a promise: a gateway may die before the next
 * message.
 *
 *	state	what is known				chosen
 *	up	nothing that speaks against it		first
 *	ill	the gateway's health is below		if no other one is up
 *		router_sensitivity
 *	down	the gateway says that it passes nothing	never
 *		on, or that all its interfaces on our
 *		net, or on the net of the route, are
 *		down
 *
 * A route of which nothing is known yet is up. A route that is down is not
 * tried: the gateway would drop the message, and the sender would wait for an
 * answer in vain. So the sender hears at once that there is no way.
 */
#ifndef LNET_ROUTE_H
#define LNET_ROUTE_H

#include <stdatomic.h>
#include "lnet/core/cpt.h"
#include "ulnet/route.h"

struct lnet_peer_ni;

enum route_state { ROUTE_UP, ROUTE_ILL, ROUTE_DOWN, ROUTE_STATES };

/* What the gateway has told of its side of the route. */
enum route_told {
	ROUTE_TOLD_NOTHING,
	ROUTE_TOLD_WORKS,
	ROUTE_TOLD_NO_ROUTER, /* it passes nothing on */
	ROUTE_TOLD_NEAR_DOWN, /* its interfaces on the net it is reached by */
	ROUTE_TOLD_FAR_DOWN,  /* ... and on the net that the route leads to, or
			       * on all others if it is not on that one */
};

struct lnet_route {
	/* immutable: */
	uint32_t net;
	struct ulnet_nid gateway;
	uint32_t hops;	   /* 0: not given, counts as 1 */
	uint32_t priority; /* 0 is the best */
	/* Written by the gateway's CPT, read by any thread; relaxed, since each
	 * says something by itself: */
	_Atomic uint8_t told;	/* enum route_told */
	atomic_bool multi_hop;	/* the gateway is not on the net itself */
	_Atomic int32_t health; /* of the gateway's best NI */
	_Atomic uint8_t queue;	/* of messages for it: routes_queue() */
	/* path.c's: when it was last chosen, by CPT. */
	uint64_t use[LNET_CPTS_MAX];
};

static inline enum route_told route_told(const struct lnet_route *r)
{
	return (enum route_told)atomic_load_explicit(&r->told,
						     memory_order_relaxed);
}

/* Larger: more messages wait. */
static inline uint8_t route_queue(const struct lnet_route *r)
{
	return atomic_load_explicit(&r->queue, memory_order_relaxed);
}

static inline int32_t route_health(const struct lnet_route *r)
{
	return atomic_load_explicit(&r->health, memory_order_relaxed);
}

/* Any thread. @sensitivity: percent of its health that a gateway must have. */
enum route_state route_state(const struct lnet_route *r, uint32_t sensitivity);
const char *route_state_name(enum route_state state);

/* What @info, which a gateway has told, says of a route to @net by its NI
 * @gateway; and whether the gateway is on @net. A gateway that names no NI of
 * its own on @net passes messages on to another one. */
enum route_told route_read(const struct ulnet_ping_info *info,
			   const struct ulnet_nid *gateway, uint32_t net,
			   bool *multi_hop);

/* For all routes by the peer with @nid, on the CPT that owns it: note what the
 * peer has told; look at its health again. */
void routes_told(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		 const struct ulnet_ping_info *info);
void routes_health(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni);
/*
 * The queue of messages that wait for credits of @lpni has changed: if a route
 * goes by it, all CPTs are told how long the shortest queue among its peer's
 * NIs is. Only the magnitude is told (0, 1, 2 for up to 3, 3 for up to 7, and
 * so on), and not each time that it goes up and down a little, because all
 * routes have to be looked at. On the CPT that owns @lpni.
 */
void routes_queue(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni);

/* Is one of the NIDs of the peer with @nid a gateway of this node; to @net
 * (LNET_NET_ANY: any)? */
bool routes_go_by(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		  uint32_t net);

/* The routes of a node: a snapshot, as the configuration of its interfaces
 * (net/config.h). Immutable but for what is said above; a change publishes a
 * new one, and each CPT uses the one that it holds. The routes themselves go
 * from snapshot to snapshot. They stand net by net, those of one net in the
 * order in which they came. */
struct route_table {
	unsigned int n;
	struct lnet_route *route[];
};

/* The routes to @net: [*begin_p, return value). */
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

/* New ones, for free(), with one more route or one less. NULL: no memory. The
 * routes stay the caller's. */
struct route_table *route_table_with(const struct route_table *old,
				     struct lnet_route *route);
struct route_table *route_table_without(const struct route_table *old,
					const struct lnet_route *route);

#endif
