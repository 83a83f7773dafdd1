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
	return config_net(config, nid_segment(&r->gateway)) ? 0 : -EHOSTUNREACH;
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

/* Changes that are made together. Many of them cost about as much as one, so
 * the routes of a file are changed together (config/request/plan.h). */
struct route_edit {
	struct lnet *node;
	const struct route_table *old;
	const struct ulnet_route_change *changes;
	unsigned int n;
	/* indexes of the changes, by gateway and net, then in their order */
	unsigned int *sorted;
	/* array: the new route of each change; NULL: it has none */
	struct lnet_route **made;
	/* array: the routes of @old that were marked as gone */
	struct lnet_route **gone;
	unsigned int ngone;
	unsigned int
		failed; /* index of the first change that is not possible */
	int rc;
};

static int edit_cmp(const void *pa, const void *pb, void *arg)
{
	const struct route_edit *e = arg;
	unsigned int i = *(const unsigned int *)pa;
	unsigned int k = *(const unsigned int *)pb;
	const struct ulnet_route *a = &e->changes[i].route;
	const struct ulnet_route *b = &e->changes[k].route;
	int c = lnet_nid_cmp(&a->gateway, &b->gateway);

	if (!c)
		c = (a->net > b->net) - (a->net < b->net);
	return c ? c : (i > k) - (i < k);
}

static bool edit_is_same(const struct route_edit *e, unsigned int i,
			 unsigned int k)
{
	const struct ulnet_route *a = &e->changes[i].route;
	const struct ulnet_route *b = &e->changes[k].route;

	return a->net == b->net && lnet_nid_eq(&a->gateway, &b->gateway);
}

/* Makes the route that change @i adds. *@has: is there such a route already?
 * After success it is true. */
static int edit_add(struct route_edit *e, unsigned int i, bool *has)
{
	int rc = route_check(e->node, &e->changes[i].route);

	if (rc)
		return rc;
	if (*has)
		return -EEXIST;
	e->made[i] = route_new(&e->changes[i].route);
	*has = e->made[i] != NULL;
	return *has ? 0 : -ENOMEM;
}

/* Carries out the changes of one route, which begin at index @at of e->sorted.
 * Returns the index at which those of the next route begin. */
static unsigned int edit_one(struct route_edit *e, unsigned int at)
{
	unsigned int first = e->sorted[at], added = e->n;
	const struct ulnet_route *r = &e->changes[first].route;
	struct lnet_route *was = route_find(e->old, r->net, &r->gateway);
	bool has = was != NULL;
	int rc = 0;

	for (; at < e->n && edit_is_same(e, first, e->sorted[at]); at++) {
		unsigned int i = e->sorted[at];

		if (!rc && !e->changes[i].del) {
			rc = edit_add(e, i, &has);
			added = i;
		} else if (!rc && has && added < e->n) {
			free(e->made[added]);
			e->made[added] = NULL;
			has = false;
		} else if (!rc && has) {
			was->gone = true;
			e->gone[e->ngone++] = was;
			has = false;
		} else if (!rc) {
			rc = -ENOENT;
		}
		if (rc && (!e->rc || i < e->failed)) {
			e->rc = rc;
			e->failed = i;
		}
	}
	return at;
}

/* Returns the new table, or NULL, with e->rc. */
static struct route_table *edit_table(struct route_edit *e)
{
	struct route_table *new = NULL;
	unsigned int n = 0;

	for (unsigned int i = 0; i < e->n; i++)
		e->sorted[i] = i;
	qsort_r(e->sorted, e->n, sizeof(*e->sorted), edit_cmp, e);
	for (unsigned int at = 0; at < e->n;)
		at = edit_one(e, at);
	/* From here on e->made begins with the routes that are added. */
	for (unsigned int i = 0; i < e->n; i++)
		if (e->made[i])
			e->made[n++] = e->made[i];
	if (!e->rc) {
		new = route_table_next(e->old, e->made, n);
		e->rc = new ? 0 : -ENOMEM;
	}
	for (unsigned int i = 0; !new &&i < n; i++)
		free(e->made[i]);
	for (unsigned int i = 0; !new &&i < e->ngone; i++)
		e->gone[i]->gone = false;
	return new;
}

static int routes_change_locked(struct route_edit *e)
{
	struct whole_node *whole = whole_node(e->node);
	struct route_table *new = edit_table(e);

	if (!new)
		return e->rc;
	/* No answer about a name is to move a router to another port. Without
	 * memory one may: the routes are right all the same. */
	for (unsigned int i = 0; i < new->nadded; i++)
		net_nid_given(e->node, &new->added[i]->gateway);
	node_publish(e->node, &whole->routes, new, routes_take);
	for (unsigned int i = 0; i < e->ngone; i++) {
		lnd_ports_release(&net_node(e->node)->ports,
				  &e->gone[i]->gateway, LNET_PORT_GIVEN);
		free(e->gone[i]);
	}
	return 0;
}

int lnet_routes_change(struct lnet *node,
		       const struct ulnet_route_change *changes, unsigned int n,
		       unsigned int *failed_p)
{
	struct route_edit e = { .node = node, .changes = changes, .n = n };
	int rc = node_control_begin(node);

	if (rc)
		return rc;
	e.old = whole_node(node)->routes;
	e.sorted = calloc(n + 1, sizeof(*e.sorted));
	e.made = calloc(n + 1, sizeof(struct lnet_route *));
	e.gone = calloc(n + 1, sizeof(struct lnet_route *));
	rc = e.sorted && e.made && e.gone ? routes_change_locked(&e) : -ENOMEM;
	node_control_end(node);
	free(e.sorted);
	free(e.made);
	free(e.gone);
	if (rc && failed_p)
		*failed_p = e.failed;
	return rc;
}

int lnet_route_add(struct lnet *node, const struct ulnet_route *route)
{
	const struct ulnet_route_change change = { .route = *route };

	return lnet_routes_change(node, &change, 1, NULL);
}

int lnet_route_del(struct lnet *node, uint32_t net,
		   const struct ulnet_nid *gateway)
{
	const struct ulnet_route_change change = {
		.route = { .net = net, .gateway = *gateway }, .del = true
	};

	return lnet_routes_change(node, &change, 1, NULL);
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
		/* as configured, or as the gateway has said */
		.multi_hop = r->hops > 1 || atomic_load(&r->multi_hop),
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
		targets_changed(node, false);
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
