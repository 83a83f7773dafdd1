/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds, deletes and lists routes (route/route.h), and switches forwarding for
 * other nodes (message/forward.h). */
#include "lnet/node/node.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "lnet/discovery/discovery.h"
#include "lnet/nid/nid.h"
#include "lnet/route/route.h"

static const uint32_t default_buffers[LNET_BUFFER_KINDS] = {
	[LNET_TINY_BUFFERS] = LNET_TINY_BUFFERS_DEFAULT,
	[LNET_SMALL_BUFFERS] = LNET_SMALL_BUFFERS_DEFAULT,
	[LNET_LARGE_BUFFERS] = LNET_LARGE_BUFFERS_DEFAULT,
};

/* ---- routes ---- */

static int routes_take(struct lnet_cpt *cpt, void *table)
{
	cpt->routes = table;
	cpt_rules_changed(cpt);
	disc_routes_changed(cpt);
	return 0;
}

static int route_check(const struct lnet *node, const struct ulnet_route *r)
{
	const struct lnet_config *config = net_node(node)->config;

	if (LNET_NET_TYPE(r->net) == LNET_TYPE_LO || r->net == LNET_NET_ANY ||
	    lnet_nid_is_any(&r->gateway) || lnet_nid_is_lo(&r->gateway) ||
	    r->hops > LNET_HOPS_MAX)
		return -EINVAL;
	if (config_has_net(config, r->net) ||
	    lnet_nid_net(&r->gateway) == r->net ||
	    config_is_mine(config, &r->gateway))
		return -EINVAL;
	if (!config_net(config, nid_segment(&r->gateway)))
		return -EHOSTUNREACH;
	return route_find(whole_node(node)->routes, r->net, &r->gateway)
		       ? -EEXIST
		       : 0;
}

static struct lnet_route *route_new(const struct ulnet_route *r)
{
	struct lnet_route *route = calloc(1, sizeof(*route));

	if (!route)
		return NULL;
	route->net = r->net;
	route->gateway = r->gateway;
	route->hops = r->hops;
	route->priority = r->priority;
	atomic_init(&route->told, (uint8_t)ROUTE_TOLD_NOTHING);
	atomic_init(&route->multi_hop, false);
	atomic_init(&route->health, LNET_HEALTH_MAX);
	return route;
}

static int route_add_locked(struct lnet *node, const struct ulnet_route *r)
{
	struct route_table *new;
	struct lnet_route *route;
	int rc = route_check(node, r);

	if (rc)
		return rc;
	route = route_new(r);
	new = route ? route_table_with(whole_node(node)->routes, route) : NULL;
	if (!new) {
		free(route);
		return -ENOMEM;
	}
	node_publish(node, &whole_node(node)->routes, new, routes_take);
	return 0;
}

int lnet_route_add(struct lnet *node, const struct ulnet_route *route)
{
	int rc = node_control_begin(node);

	if (!rc) {
		rc = route_add_locked(node, route);
		node_control_end(node);
	}
	return rc;
}

int lnet_route_del(struct lnet *node, uint32_t net,
		   const struct ulnet_nid *gateway)
{
	struct route_table *old, *new = NULL;
	struct lnet_route *route;
	int rc = node_control_begin(node);

	if (rc)
		return rc;
	old = whole_node(node)->routes;
	route = route_find(old, net, gateway);
	if (route)
		new = route_table_without(old, route);
	if (new)
		node_publish(node, &whole_node(node)->routes, new, routes_take);
	node_control_end(node);
	if (!new)
		return route ? -ENOMEM : -ENOENT;
	free(route);
	return 0;
}

static void route_info(const struct lnet *node, const struct lnet_route *r,
		       struct ulnet_route_info *info)
{
	enum route_state state =
		route_state(r, settings_route_health(&node->settings));

	*info = (struct ulnet_route_info){
		.route = { r->net, r->gateway, r->hops, r->priority },
		.up = state == ROUTE_UP,
		.state = route_state_name(state),
		.multi_hop = atomic_load(&r->multi_hop),
		.health = route_health(r),
	};
}

int lnet_routes(struct lnet *node, struct ulnet_route_info *infos,
		unsigned int n)
{
	struct whole_node *whole = whole_node(node);
	unsigned int count;

	if (node->forked)
		return -ESHUTDOWN;
	pthread_mutex_lock(&whole->net.config_lock);
	count = whole->routes->n;
	for (unsigned int i = 0; i < MIN(n, count); i++)
		route_info(node, whole->routes->route[i], &infos[i]);
	pthread_mutex_unlock(&whole->net.config_lock);
	return (int)count;
}

/* ---- routing ---- */

/* @arg: struct ulnet_routing. Each CPT gets an equal share of the buffers. */
static int routing_take(struct lnet_cpt *cpt, void *arg)
{
	const struct ulnet_routing *r = arg;
	uint32_t buffers[LNET_BUFFER_KINDS];

	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		buffers[i] = MAX(r->buffers[i] / cpt->node->cpts, 1);
	if (!cpt->closing)
		router_set(cpt, r->enabled, buffers);
	return 0;
}

int lnet_routing_set(struct lnet *node, const struct ulnet_routing *routing)
{
	struct whole_node *whole = whole_node(node);
	struct ulnet_routing r = *routing;
	int rc = node_control_begin(node);
	bool was;

	if (rc)
		return rc;
	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		if (!r.buffers[i])
			r.buffers[i] = default_buffers[i];
	pthread_mutex_lock(&whole->net.config_lock);
	whole->routing = r;
	pthread_mutex_unlock(&whole->net.config_lock);
	if (r.enabled)
		BUG_ON(node_each_cpt(node, routing_take, &r));
	was = atomic_exchange(&node->routing, r.enabled);
	if (!r.enabled)
		BUG_ON(node_each_cpt(node, routing_take, &r));
	if (was != r.enabled) {
		log_info("route", "messages of other nodes are %sforwarded",
			 r.enabled ? "" : "no longer ");
		targets_changed(node);
	}
	node_control_end(node);
	return 0;
}

void lnet_routing(struct lnet *node, struct ulnet_routing *routing)
{
	struct whole_node *whole = whole_node(node);

	*routing = (struct ulnet_routing){ 0 };
	if (node->forked)
		return;
	pthread_mutex_lock(&whole->net.config_lock);
	*routing = whole->routing;
	pthread_mutex_unlock(&whole->net.config_lock);
}

struct buffers_call {
	struct lnet_cpt *cpt;
	struct ulnet_buffers_info *infos;
};

static int buffers_call(void *arg)
{
	struct buffers_call *c = arg;
	const struct router *r = &msg_cpt(c->cpt)->router;

	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++) {
		const struct router_pool *pool = &r->pool[i];

		c->infos[i] = (struct ulnet_buffers_info){
			.size = pool->size,
			.count = pool->max,
			.free = (int64_t)pool->max - pool->used - pool->waits,
			.free_min = pool->free_min,
		};
	}
	return 0;
}

int lnet_routing_buffers(struct lnet *node, unsigned int cpt,
			 struct ulnet_buffers_info infos[LNET_BUFFER_KINDS])
{
	struct buffers_call c = { .infos = infos };

	if (cpt >= node->cpts)
		return -EINVAL;
	c.cpt = node->cpt[cpt];
	return loop_call(c.cpt->loop, buffers_call, &c);
}

/* ---- the node ---- */

int routes_start(struct lnet *node)
{
	struct whole_node *whole = whole_node(node);

	whole->routes = calloc(1, sizeof(*whole->routes));
	if (!whole->routes)
		return -ENOMEM;
	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		whole->routing.buffers[i] = default_buffers[i];
	for (unsigned int i = 0; i < node->cpts; i++)
		node->cpt[i]->routes = whole->routes;
	return 0;
}

void routes_fini(struct lnet *node)
{
	struct route_table *t = whole_node(node)->routes;

	for (unsigned int i = 0; t && i < t->n; i++)
		free(t->route[i]);
	free(t);
}
