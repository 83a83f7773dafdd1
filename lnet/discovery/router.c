/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/discovery/router.h"

#include "lnet/discovery/course.h"
#include "lnet/discovery/info.h"
#include "lnet/path/health.h"
#include "lnet/route/table.h"

/* As kernel nodes do (alive_router_check_interval). */
#define CHECK_EVERY (60 * NSEC_PER_SEC)
/* Of a process that only calls: routers do not know whom to tell. */
#define CHECK_CALLER NSEC_PER_SEC

static struct router_watch *router_watch(const struct lnet_cpt *cpt)
{
	return &discovery_cpt(cpt)->routers;
}

static void router_ask(struct lnet_cpt *cpt, const struct ulnet_nid *gateway)
{
	struct lnet_peer_ni *p = peer_get(cpt, gateway);
	struct discovery *d = p ? disc_get(cpt, p->peer) : NULL;

	if (d) {
		d->force_ping = true;
		d->force_push = disc_mode(cpt) != LNET_DISCOVERY_OFF;
		disc_event(d, DISC_ON_NEWS);
	}
	if (p)
		peer_unref(cpt, p);
}

/* A gateway of several routes is asked once: it is asked already. */
static void routers_ask(struct lnet_cpt *cpt)
{
	const struct route_table *t = cpt->routes;

	for (unsigned int i = 0; i < t->n; i++) {
		const struct ulnet_nid *gateway = &t->route[i]->gateway;

		if (node_cpt_of(cpt->node, gateway) == cpt->index &&
		    disc_may_ask(cpt, gateway))
			router_ask(cpt, gateway);
	}
}

static void routers_check(struct timer *t)
{
	struct router_watch *w = container_of(t, struct router_watch, timer);

	bool caller = pid_only_calls(w->cpt->node->conf.pid);

	routers_ask(w->cpt);
	loop_timer_arm(w->cpt->loop, t,
		       loop_now(w->cpt->loop) +
			       (caller ? CHECK_CALLER : CHECK_EVERY));
}

void routers_changed(struct lnet_cpt *cpt)
{
	struct router_watch *w = router_watch(cpt);
	const struct route_table *t = cpt->routes;

	if (cpt->closing)
		return;
	for (unsigned int i = 0; i < t->n; i++) {
		const struct lnet_peer_ni *p =
			peer_find(cpt, &t->route[i]->gateway);

		if (p && p->place.state == PEER_HERE)
			routes_health(cpt, p);
	}
	if (timer_armed(&w->timer))
		loop_timer_cancel(cpt->loop, &w->timer);
	if (t->n)
		loop_timer_arm(cpt->loop, &w->timer, loop_now(cpt->loop));
}

void routers_well(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni)
{
	routers_suspect(cpt, &lpni->nid);
}

void routers_suspect(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	if (unlikely(routes_go_by(cpt, nid, LNET_NET_ANY)))
		router_ask(cpt, nid);
}

void routers_silent(const struct discovery *d)
{
	struct lnet_peer_ni *p;

	if (likely(!d->cpt->routes->n))
		return;
	p = peer_find(d->cpt, &d->asked);
	if (p && p->peer == d->peer &&
	    routes_go_by(d->cpt, &p->nid, LNET_NET_ANY))
		health_lose_peer_ni(d->cpt, p);
}

void routers_init(struct lnet_cpt *cpt)
{
	struct router_watch *w = router_watch(cpt);

	w->cpt = cpt;
	timer_init(&w->timer, routers_check);
}

void routers_stop(struct lnet_cpt *cpt)
{
	struct router_watch *w = router_watch(cpt);

	if (timer_armed(&w->timer))
		loop_timer_cancel(cpt->loop, &w->timer);
}
