/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/route/route.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "lnet/net/net.h"
#include "lnet/peer/peer.h"

static const char *const told_texts[] = {
	[ROUTE_TOLD_NOTHING] = "nothing is known of the gateway",
	[ROUTE_TOLD_WORKS] = "the gateway works",
	[ROUTE_TOLD_NO_ROUTER] = "the gateway does not route",
	[ROUTE_TOLD_NEAR_DOWN] = "the gateway is down on this side",
	[ROUTE_TOLD_FAR_DOWN] = "the gateway is down on the far side",
};

static bool told_is_down(enum route_told told)
{
	return told != ROUTE_TOLD_NOTHING && told != ROUTE_TOLD_WORKS;
}

enum route_state route_state(const struct lnet_route *r, uint32_t sensitivity)
{
	if (told_is_down(route_told(r)))
		return ROUTE_DOWN;
	if ((uint32_t)route_health(r) * 100 < LNET_HEALTH_MAX * sensitivity)
		return ROUTE_ILL;
	return ROUTE_UP;
}

const char *route_state_name(enum route_state state)
{
	static const char *const names[ROUTE_STATES] = {
		[ROUTE_UP] = "up",
		[ROUTE_ILL] = "ill",
		[ROUTE_DOWN] = "down",
	};

	return names[state];
}

/* ---- what gateways say ---- */

/* The interfaces of a gateway on one net: are there any, and is any of them up?
 */
struct side {
	bool any, up;
};

static struct side side_of(const struct ulnet_ping_info *info, uint32_t net)
{
	struct side side = { .any = false };

	for (unsigned int i = 0; i < info->nnis; i++) {
		if (lnet_nid_net(&info->ni[i].nid) != net)
			continue;
		side.any = true;
		side.up |= info->ni[i].up;
	}
	return side;
}

/* Does the gateway have interfaces on other nets than @near, and are they all
 * down? */
static bool leads_nowhere(const struct ulnet_ping_info *info, uint32_t near)
{
	bool any = false;

	for (unsigned int i = 0; i < info->nnis; i++) {
		const struct ulnet_nid *nid = &info->ni[i].nid;

		if (lnet_nid_is_lo(nid) || lnet_nid_net(nid) == near)
			continue;
		if (info->ni[i].up)
			return false;
		any = true;
	}
	return any;
}

enum route_told route_read(const struct ulnet_ping_info *info,
			   const struct ulnet_nid *gateway, uint32_t net,
			   bool *multi_hop)
{
	struct side near = side_of(info, lnet_nid_net(gateway));
	struct side far = side_of(info, net);

	*multi_hop = !far.any;
	if (info->features & LNET_PING_RTE_DISABLED)
		return ROUTE_TOLD_NO_ROUTER;
	if (near.any && !near.up)
		return ROUTE_TOLD_NEAR_DOWN;
	if (far.any ? !far.up : leads_nowhere(info, lnet_nid_net(gateway)))
		return ROUTE_TOLD_FAR_DOWN;
	return ROUTE_TOLD_WORKS;
}

/* ---- the routes by one gateway ---- */

/* Called for a route, with the argument of routes_of(). Returns true: for no
 * more. */
typedef bool route_fn(struct lnet_route *r, void *arg);

static bool routes_by_nid(const struct route_table *t,
			  const struct ulnet_nid *nid, route_fn *fn, void *arg)
{
	unsigned int i, end = routes_by(t, nid, &i);

	for (; i < end; i++)
		if (fn(t->by_gateway[i], arg))
			return true;
	return false;
}

/* As routes_of(), for a NID of a peer with several NIDs, which another CPT
 * owns: only the directory knows them. */
static bool routes_of_far(const struct lnet_cpt *cpt,
			  const struct ulnet_nid *nid, route_fn *fn, void *arg)
{
	const struct route_table *t = cpt->routes;

	for (unsigned int i = 0, begin; i < t->n;) {
		const struct ulnet_nid *gateway = &t->by_gateway[i]->gateway;

		if (directory_same(&cpt->node->directory, gateway, nid) &&
		    routes_by_nid(t, gateway, fn, arg))
			return true;
		i = routes_by(t, gateway, &begin);
	}
	return false;
}

/* Calls @fn for each route whose gateway is the peer with @nid, until it
 * returns true. Returns whether it has. */
static bool routes_of(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		      route_fn *fn, void *arg)
{
	const struct lnet_peer_ni *lpni, *p;
	struct directory_entry e;

	if (likely(!cpt->routes->n))
		return false;
	lpni = peer_find(cpt, nid);
	if (!lpni || lpni->place.state != PEER_HERE) {
		if (directory_find(&cpt->node->directory, nid, &e) && e.several)
			return routes_of_far(cpt, nid, fn, arg);
		return routes_by_nid(cpt->routes, nid, fn, arg);
	}
	peer_for_each_ni (p, lpni->peer)
		if (routes_by_nid(cpt->routes, &p->nid, fn, arg))
			return true;
	return false;
}

/* Logs that the route goes down or comes up. */
static void route_say(const struct lnet_route *r, enum route_told told)
{
	char net[LNET_NIDSTR_SIZE], gateway[LNET_NIDSTR_SIZE];

	if (told_is_down(route_told(r)) == told_is_down(told))
		return;
	log_warn("route", "net %s through gateway %s is %s: %s",
		 lnet_net_format(r->net, net, sizeof(net)),
		 lnet_nid_format(&r->gateway, gateway, sizeof(gateway)),
		 told_is_down(told) ? "down" : "up", told_texts[told]);
}

/* @arg: the ping info of the gateway. */
static bool route_take_told(struct lnet_route *r, void *arg)
{
	const struct ulnet_ping_info *info = arg;
	bool multi_hop;
	enum route_told told =
		route_read(info, &r->gateway, r->net, &multi_hop);

	route_say(r, told);
	atomic_store_explicit(&r->told, (uint8_t)told, memory_order_relaxed);
	atomic_store_explicit(&r->multi_hop, multi_hop, memory_order_relaxed);
	return false;
}

void routes_told(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		 const struct ulnet_ping_info *info)
{
	(void)routes_of(cpt, nid, route_take_told, (void *)info);
}

/* ---- health and queues of gateways ---- */

/* Returns the health of the peer's best NI among those that this node can reach
 * directly. */
static int32_t best_health(const struct lnet_cpt *cpt,
			   const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *p;
	int32_t best = 0;

	peer_for_each_ni (p, peer)
		if (config_net(cpt->config, p->net->segment))
			best = MAX(best, p->health);
	return best;
}

/* @arg: the health of the gateway's best NI. */
static bool route_take_health(struct lnet_route *r, void *arg)
{
	atomic_store_explicit(&r->health, *(const int32_t *)arg,
			      memory_order_relaxed);
	return false;
}

void routes_health(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni)
{
	int32_t health;

	if (likely(!cpt->routes->n))
		return;
	health = best_health(cpt, lpni->peer);
	(void)routes_of(cpt, &lpni->nid, route_take_health, &health);
}

void routes_added(struct lnet_cpt *cpt)
{
	const struct route_table *t = cpt->routes;

	for (unsigned int i = 0; i < t->nadded; i++) {
		struct lnet_route *r = t->added[i];
		const struct lnet_peer_ni *p = peer_find(cpt, &r->gateway);
		int32_t health;

		if (!p || p->place.state != PEER_HERE)
			continue;
		health = best_health(cpt, p->peer);
		(void)route_take_health(r, &health);
	}
}

/* Returns the number of bits of the number of messages that wait for credits of
 * @lpni. */
static uint8_t magnitude(const struct lnet_peer_ni *lpni)
{
	uint32_t waits = lpni->credits < 0 ? (uint32_t)-lpni->credits : 0;

	return waits ? (uint8_t)(32 - __builtin_clz(waits)) : 0;
}

static uint8_t shortest_queue(const struct lnet_cpt *cpt,
			      const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *p;
	uint8_t least = UINT8_MAX;

	peer_for_each_ni (p, peer)
		if (config_net(cpt->config, p->net->segment))
			least = MIN(least, p->queue_told);
	return least;
}

/* @arg: the magnitude of the gateway's shortest queue. */
static bool route_take_queue(struct lnet_route *r, void *arg)
{
	atomic_store_explicit(&r->queue, *(const uint8_t *)arg,
			      memory_order_relaxed);
	return false;
}

void routes_queue(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	uint8_t now = magnitude(lpni), told = lpni->queue_told;
	uint8_t shortest;

	if (likely(!cpt->routes->n) || now == told || (now && now + 1 == told))
		return;
	lpni->queue_told = now;
	shortest = shortest_queue(cpt, lpni->peer);
	(void)routes_of(cpt, &lpni->nid, route_take_queue, &shortest);
}

/* @arg: a net, or LNET_NET_ANY. */
static bool route_is_to(struct lnet_route *r, void *arg)
{
	const uint32_t *net = arg;

	return *net == LNET_NET_ANY || r->net == *net;
}

bool routes_go_by(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		  uint32_t net)
{
	return routes_of(cpt, nid, route_is_to, &net);
}

/* ---- tables ---- */

/* Returns the index of the first route whose net is not below @net. */
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

static int route_cmp(const struct lnet_route *a, const struct ulnet_nid *nid,
		     uint32_t net)
{
	int c = lnet_nid_cmp(&a->gateway, nid);

	return c ? c : (a->net > net) - (a->net < net);
}

/* Returns the index of the first route by @nid whose net is not below @net, or
 * of the first route by the next gateway. */
static unsigned int gateway_bound(const struct route_table *t,
				  const struct ulnet_nid *nid, uint32_t net)
{
	unsigned int low = 0, high = t->n;

	while (low < high) {
		unsigned int middle = low + (high - low) / 2;

		if (route_cmp(t->by_gateway[middle], nid, net) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

unsigned int routes_by(const struct route_table *t, const struct ulnet_nid *nid,
		       unsigned int *begin_p)
{
	unsigned int end = gateway_bound(t, nid, UINT32_MAX);

	*begin_p = gateway_bound(t, nid, 0);
	while (end < t->n && lnet_nid_eq(&t->by_gateway[end]->gateway, nid))
		end++; /* there is a route to the net UINT32_MAX */
	return end;
}

struct lnet_route *route_find(const struct route_table *t, uint32_t net,
			      const struct ulnet_nid *gateway)
{
	unsigned int i = gateway_bound(t, gateway, net);

	return i < t->n && route_cmp(t->by_gateway[i], gateway, net) == 0
		       ? t->by_gateway[i]
		       : NULL;
}

static int cmp_by_net(const void *pa, const void *pb)
{
	const struct lnet_route *a = *(struct lnet_route *const *)pa;
	const struct lnet_route *b = *(struct lnet_route *const *)pb;

	return a->net != b->net ? (a->net < b->net ? -1 : 1)
				: (a->order > b->order) - (a->order < b->order);
}

static int cmp_by_gateway(const void *pa, const void *pb)
{
	const struct lnet_route *a = *(struct lnet_route *const *)pa;
	const struct lnet_route *b = *(struct lnet_route *const *)pb;

	return route_cmp(a, &b->gateway, b->net);
}

/* Writes the routes of @old that are not .gone, and those of @added, to @to, in
 * the order that both have already: @before says which of two comes first.
 * Returns how many these are. */
static unsigned int routes_merge(
	struct lnet_route **to, struct lnet_route *const *old,
	unsigned int nold, struct lnet_route *const *added, unsigned int n,
	bool (*before)(const struct lnet_route *a, const struct lnet_route *b))
{
	unsigned int count = 0, i = 0;

	for (unsigned int k = 0; k < nold; k++) {
		if (old[k]->gone)
			continue;
		while (i < n && before(added[i], old[k]))
			to[count++] = added[i++];
		to[count++] = old[k];
	}
	while (i < n)
		to[count++] = added[i++];
	return count;
}

static bool before_by_net(const struct lnet_route *a,
			  const struct lnet_route *b)
{
	return a->net < b->net;
}

static bool before_by_gateway(const struct lnet_route *a,
			      const struct lnet_route *b)
{
	return route_cmp(a, &b->gateway, b->net) < 0;
}

struct route_table *route_table_next(const struct route_table *old,
				     struct lnet_route *const *added,
				     unsigned int n)
{
	size_t room = old->n + n;
	struct route_table *new =
		malloc(sizeof(*new) + 2 * room * sizeof(new->route[0]));
	struct lnet_route **sorted = malloc((n + 1) * sizeof(*sorted));

	if (!new || !sorted) {
		free(new);
		free(sorted);
		return NULL;
	}
	for (unsigned int i = 0; i < n; i++) {
		sorted[i] = added[i];
		added[i]->order = i;
	}
	*new = (struct route_table){ .added = added, .nadded = n };
	new->by_gateway = new->route + room;
	qsort(sorted, n, sizeof(*sorted), cmp_by_net);
	new->n = routes_merge(new->route, old->route, old->n, sorted, n,
			      before_by_net);
	qsort(sorted, n, sizeof(*sorted), cmp_by_gateway);
	(void)routes_merge(new->by_gateway, old->by_gateway, old->n, sorted, n,
			   before_by_gateway);
	free(sorted);
	return new;
}
