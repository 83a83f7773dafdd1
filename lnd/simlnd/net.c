/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/simlnd/net.h"

#include <errno.h>

static uint64_t net_hash(const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), 0);
}

int sim_net_new(const struct sim_net_watch *watch, struct sim_net **net_p)
{
	struct sim_net *net = calloc(1, sizeof(*net));

	if (!net)
		return -ENOMEM;
	if (watch) {
		net->watch = *watch;
		net->watched = true;
	}
	pool_init(&net->packets, simlnd_packet_size(), 0);
	hash_init(&net->eps);
	hash_init(&net->rules);
	net->rules_version = 1;
	*net_p = net;
	return 0;
}

void sim_net_free(struct sim_net *net)
{
	struct hash_node *n;

	while ((n = hash_pop(&net->eps))) {
		struct sim_ep *ep = container_of(n, struct sim_ep, hash);

		BUG_ON(ep_is_there(ep));
		free(ep);
	}
	while ((n = hash_pop(&net->rules)))
		free(container_of(n, struct sim_rule, hash));
	hash_fini(&net->eps);
	hash_fini(&net->rules);
	pool_fini(&net->packets);
	free(net);
}

void sim_net_stats(const struct sim_net *net, struct sim_net_stats *stats)
{
	stats->messages = atomic_load(&net->messages);
	stats->faults = atomic_load(&net->faults);
}

/* ---- end points ---- */

struct sim_ep *net_ep(const struct sim_net *net, const struct ulnet_nid *nid)
{
	struct sim_ep *ep;

	hash_for_each_equal (ep, &net->eps, net_hash(nid), hash)
		if (lnet_nid_eq(&ep->nid, nid))
			return ep;
	return NULL;
}

static int ep_new(struct sim_net *net, const struct lnd_ni *ni,
		  struct sim_ep **ep_p)
{
	struct sim_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return -ENOMEM;
	ep->nid = ni->nid;
	ep->net = net;
	ep->cpts = ni->cpts;
	list_init(&ep->conns);
	if (hash_add(&net->eps, &ep->hash, net_hash(&ep->nid))) {
		free(ep);
		return -ENOMEM;
	}
	/* Paths that have found nobody at this NID look again. */
	net->rules_version++;
	*ep_p = ep;
	return 0;
}

int net_join(struct sim_net *net, struct lnd_ni *ni, struct sim_cpt *cpts)
{
	struct sim_ep *ep = net_ep(net, &ni->nid);
	unsigned int generation;
	int rc = 0;

	if (!ep)
		rc = ep_new(net, ni, &ep);
	if (rc)
		return rc;
	if (ep_is_there(ep))
		return -EADDRINUSE;
	if (ep->cpts != ni->cpts)
		return -EINVAL;
	generation = atomic_load(&ep->generation) + 1;
	for (unsigned int i = 0; i < ep->cpts; i++) {
		cpts[i].ep = ep;
		cpts[i].generation = generation;
	}
	ep->ni = ni;
	ep->cpt = cpts;
	atomic_store(&ep->up, true);
	atomic_store(&ep->generation, generation);
	return 0;
}

void net_left(struct sim_ep *ep)
{
	while (!list_empty(&ep->conns))
		sim_conn_end(list_first(&ep->conns, struct sim_path, of_ep));
}

int sim_net_ni_set(struct sim_net *net, const struct ulnet_nid *nid, bool up)
{
	struct sim_ep *ep = net_ep(net, nid);

	if (!ep || !ep_is_there(ep))
		return -ENOENT;
	if (atomic_exchange(&ep->up, up) == up)
		return 0;
	ep->changes++;
	ep->changed = loop_now(ep->cpt[0].loop);
	lnet_ni_set_up(ep->ni, up, up ? NULL : "its link is down");
	for (unsigned int i = 0; !up && i < ep->cpts; i++)
		simlnd_failed(&ep->cpt[i]);
	return 0;
}

uint64_t sim_net_ni_changes(const struct sim_net *net,
			    const struct ulnet_nid *nid)
{
	const struct sim_ep *ep = net_ep(net, nid);

	return ep ? (uint64_t)atomic_load(&ep->generation) + ep->changes : 0;
}

/* ---- rules ---- */

static struct sim_rule *rule_find(const struct sim_net *net,
				  const struct ulnet_nid *src,
				  const struct ulnet_nid *dst)
{
	struct ulnet_nid pair[2] = { *src, *dst };
	uint64_t hash = hash_bytes(pair, sizeof(pair), 0);
	struct sim_rule *r;

	hash_for_each_equal (r, &net->rules, hash, hash)
		if (lnet_nid_eq(&r->pair[0], src) &&
		    lnet_nid_eq(&r->pair[1], dst))
			return r;
	return NULL;
}

static struct sim_rule *net_rule_get(struct sim_net *net,
				     const struct ulnet_nid *src,
				     const struct ulnet_nid *dst)
{
	struct sim_rule *r = rule_find(net, src, dst);

	if (r)
		return r;
	r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->pair[0] = *src;
	r->pair[1] = *dst;
	if (hash_add(&net->rules, &r->hash,
		     hash_bytes(r->pair, sizeof(r->pair), 0))) {
		free(r);
		return NULL;
	}
	return r;
}

int sim_net_link_set(struct sim_net *net, const struct ulnet_nid *src,
		     const struct ulnet_nid *dst,
		     const struct ulnet_sim_link *link)
{
	struct sim_rule *r = net_rule_get(net, src, dst);

	if (!r)
		return -ENOMEM;
	r->link = *link;
	r->has_link = true;
	net->rules_version++;
	return 0;
}

int sim_net_partition(struct sim_net *net, const struct ulnet_nid *a,
		      const struct ulnet_nid *b, bool on)
{
	struct sim_rule *ab = net_rule_get(net, a, b);
	struct sim_rule *ba = net_rule_get(net, b, a);

	if (!ab || !ba)
		return -ENOMEM;
	ab->partitioned = on;
	ba->partitioned = on;
	net->rules_version++;
	return 0;
}

/* Is @by @nid, or ANY? */
static bool net_is_named(const struct ulnet_nid *nid,
			 const struct ulnet_nid *by)
{
	return lnet_nid_is_any(by) || lnet_nid_eq(nid, by);
}

static void cut_conns_to(struct sim_ep *to, const struct ulnet_nid *from)
{
	struct sim_path *p, *next;

	list_for_each_entry_safe (p, next, &to->conns, of_ep)
		if (net_is_named(&p->sc->ep->nid, from))
			sim_conn_cut(p);
}

void sim_net_cut(struct sim_net *net, const struct ulnet_nid *a,
		 const struct ulnet_nid *b)
{
	struct sim_ep *ep;

	hash_for_each (ep, &net->eps, hash) {
		if (net_is_named(&ep->nid, a))
			cut_conns_to(ep, b);
		if (net_is_named(&ep->nid, b))
			cut_conns_to(ep, a);
	}
}

/* The link from @src to @dst, as the most specific rule has it. Sets
 * *@partitioned if any rule that applies says so. */
static struct ulnet_sim_link link_resolve(const struct sim_net *net,
					  const struct ulnet_nid *src,
					  const struct ulnet_nid *dst,
					  bool *partitioned)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	const struct sim_rule *rules[] = {
		rule_find(net, src, dst),
		rule_find(net, src, &any),
		rule_find(net, &any, dst),
		rule_find(net, &any, &any),
	};
	struct ulnet_sim_link link = { 0 };
	bool found = false;

	*partitioned = false;
	for (unsigned int i = 0; i < ARRAY_SIZE(rules); i++) {
		if (!rules[i])
			continue;
		*partitioned = *partitioned || rules[i]->partitioned;
		if (rules[i]->has_link && !found) {
			link = rules[i]->link;
			found = true;
		}
	}
	return link;
}

static void path_resolve(struct sim_path *p, const struct sim_ep *src)
{
	const struct sim_net *net = src->net;
	struct ulnet_sim_link back;
	bool partitioned;

	p->rules = net->rules_version;
	p->ep = net_ep(net, &p->dst);
	back = link_resolve(net, &p->dst, &src->nid, &partitioned);
	p->link = link_resolve(net, &src->nid, &p->dst, &p->partitioned);
	p->deaf =
		p->link.loss >= LNET_SIM_ALWAYS || back.loss >= LNET_SIM_ALWAYS;
}

static struct sim_path *path_new(struct sim_cpt *sc,
				 const struct ulnet_nid *dst)
{
	struct sim_path *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->sc = sc;
	p->dst = *dst;
	list_init(&p->backlog);
	list_init(&p->of_ep);
	list_init(&p->in_lost);
	timer_init(&p->resume_timer, NULL);
	sim_conn_init(p);
	if (hash_add(&sc->paths, &p->hash, net_hash(dst))) {
		free(p);
		return NULL;
	}
	return p;
}

struct sim_path *net_path_find(const struct sim_cpt *sc,
			       const struct ulnet_nid *dst)
{
	struct sim_path *p;

	hash_for_each_equal (p, &sc->paths, net_hash(dst), hash)
		if (lnet_nid_eq(&p->dst, dst))
			return p;
	return NULL;
}

struct sim_path *net_path(struct sim_cpt *sc, const struct ulnet_nid *dst)
{
	struct sim_path *p = net_path_find(sc, dst);

	if (!p)
		p = path_new(sc, dst);
	return p ? net_path_now(sc, p) : NULL;
}

struct sim_path *net_path_now(const struct sim_cpt *sc, struct sim_path *p)
{
	if (unlikely(p->rules != sc->ep->net->rules_version))
		path_resolve(p, sc->ep);
	return p;
}

void net_paths_free(struct sim_cpt *sc)
{
	struct hash_node *n;

	while ((n = hash_pop(&sc->paths)))
		free(container_of(n, struct sim_path, hash));
	hash_fini(&sc->paths);
}
