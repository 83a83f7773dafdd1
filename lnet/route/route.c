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

/* Is the peer with @nid the gateway of @r? */
static bool goes_by(const struct lnet_cpt *cpt, const struct lnet_route *r,
		    const struct ulnet_nid *nid)
{
	return lnet_nid_eq(&r->gateway, nid) ||
	       directory_same(&cpt->node->directory, &r->gateway, nid);
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

void routes_told(struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		 const struct ulnet_ping_info *info)
{
	for (unsigned int i = 0; i < cpt->routes->n; i++) {
		struct lnet_route *r = cpt->routes->route[i];
		enum route_told told;
		bool multi_hop;

		if (!goes_by(cpt, r, nid))
			continue;
		told = route_read(info, &r->gateway, r->net, &multi_hop);
		route_say(r, told);
		atomic_store_explicit(&r->told, (uint8_t)told,
				      memory_order_relaxed);
		atomic_store_explicit(&r->multi_hop, multi_hop,
				      memory_order_relaxed);
	}
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

void routes_health(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni)
{
	int32_t health = -1;

	for (unsigned int i = 0; i < cpt->routes->n; i++) {
		struct lnet_route *r = cpt->routes->route[i];

		if (!goes_by(cpt, r, &lpni->nid))
			continue;
		if (health < 0)
			health = best_health(cpt, lpni->peer);
		atomic_store_explicit(&r->health, health, memory_order_relaxed);
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

void routes_queue(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	uint8_t now = magnitude(lpni), told = lpni->queue_told;

	if (likely(!cpt->routes->n) || now == told || (now && now + 1 == told))
		return;
	lpni->queue_told = now;
	for (unsigned int i = 0; i < cpt->routes->n; i++) {
		struct lnet_route *r = cpt->routes->route[i];

		if (goes_by(cpt, r, &lpni->nid))
			atomic_store_explicit(&r->queue,
					      shortest_queue(cpt, lpni->peer),
					      memory_order_relaxed);
	}
}

bool routes_go_by(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		  uint32_t net)
{
	const struct route_table *t = cpt->routes;

	for (unsigned int i = 0; i < t->n; i++)
		if ((net == LNET_NET_ANY || t->route[i]->net == net) &&
		    goes_by(cpt, t->route[i], nid))
			return true;
	return false;
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
