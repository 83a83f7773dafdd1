/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routes of a node: a snapshot, as the configuration of its interfaces
 * (net/config.h). Immutable but for what route.h says; a change publishes a new
 * one, and each CPT uses the one that it holds. The routes themselves go from
 * snapshot to snapshot.
 *
 * Routes stand net by net, those of one net in the order in which they came.
 */
#ifndef LNET_ROUTE_TABLE_H
#define LNET_ROUTE_TABLE_H

#include "lnet/route/route.h"

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
