/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/route/table.h"

#include <stdlib.h>
#include <string.h>

/* The first route to @net or to one behind it. */
static unsigned int lower_bound(const struct route_table *t, uint32_t net)
{
	unsigned int low = 0, high = t->n;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (t->route[middle]->net < net)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

unsigned int routes_to(const struct route_table *t, uint32_t net,
		       unsigned int *begin_p)
{
	unsigned int end = *begin_p = lower_bound(t, net);

	while (end < t->n && t->route[end]->net == net)
		end++;
	return end;
}

struct lnet_route *route_find(const struct route_table *t, uint32_t net,
			      const struct ulnet_nid *gateway)
{
	unsigned int i, end = routes_to(t, net, &i);

	for (; i < end; i++)
		if (lnet_nid_eq(&t->route[i]->gateway, gateway))
			return t->route[i];
	return NULL;
}

static struct route_table *table_alloc(unsigned int n)
{
	struct route_table *t = malloc(sizeof(*t) + n * sizeof(t->route[0]));

	if (t)
		t->n = n;
	return t;
}

struct route_table *route_table_with(const struct route_table *old,
				     struct lnet_route *route)
{
	struct route_table *new = table_alloc(old->n + 1);
	unsigned int begin, at = routes_to(old, route->net, &begin);

	if (!new)
		return NULL;
	memcpy(new->route, old->route, at * sizeof(new->route[0]));
	new->route[at] = route;
	memcpy(new->route + at + 1, old->route + at,
	       (old->n - at) * sizeof(new->route[0]));
	return new;
}

struct route_table *route_table_without(const struct route_table *old,
					const struct lnet_route *route)
{
	struct route_table *new = table_alloc(old->n);

	if (!new)
		return NULL;
	new->n = 0;
	for (unsigned int i = 0; i < old->n; i++)
		if (old->route[i] != route)
			new->route[new->n++] = old->route[i];
	return new;
}
