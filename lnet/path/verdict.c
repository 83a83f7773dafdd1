/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/verdict.h"

#include <stdlib.h>

#include "lnet/nid/nid.h"
#include "lnet/route/route.h"

const struct ni_verdict *verdict_of_ni(const struct lnet_cpt *cpt,
				       struct lnet_ni *ni)
{
	struct ni_verdict *r = &ni->cpt[cpt->index].verdict;

	if (likely(r->as_of == cpt->rules))
		return r;
	policies_of(cpt->policies, POLICY_SRC_NET, &ni->lnd.nid,
		    &r->net_priority, &r->priority);
	if (r->priority == LNET_PRIORITY_NONE)
		r->priority = r->net_priority;
	r->as_of = cpt->rules;
	return r;
}

/* ---- peers ---- */

/* Pointers to the preferred local NIs, then to the preferred routes. */
struct peer_preferred {
	unsigned int nnis, n;
	/* no policy prefers these NIs: they are in the IP network of the peer
	 * NI */
	bool neighbours;
	const void *what[];
};

static unsigned int find_nis(const struct lnet_cpt *cpt,
			     const struct ulnet_nid *nid, const void **what)
{
	const struct lnet_config *c = cpt->config;
	unsigned int n = 0;

	for (unsigned int i = 0; i < c->nnis; i++)
		if (policies_pair(cpt->policies, &c->ni[i]->lnd.nid, nid))
			what[n++] = c->ni[i];
	return n;
}

/* Finds the NIs in the IP network of @nid. Where each rail is an IP network, a
 * message from one rail to another is lost when either of them fails, since its
 * answer goes the other way. If there is no such NI, finds the NIs that may
 * reach @nid: those whose NID is no loopback address. */
static unsigned int find_neighbours(const struct lnet_config *c,
				    const struct ulnet_nid *nid,
				    const void **what)
{
	const struct lnet_net *net = config_net(c, nid_segment(nid));
	unsigned int n = 0;

	for (unsigned int i = 0; net && i < net->nnis; i++)
		if (ni_is_neighbour(net->ni[i], nid))
			what[n++] = net->ni[i];
	if (!net || n || nid_is_loopback(nid))
		return n;
	for (unsigned int i = 0; i < net->nnis; i++)
		if (!nid_is_loopback(&net->ni[i]->lnd.nid))
			what[n++] = net->ni[i];
	return n;
}

static unsigned int find_routes(const struct lnet_cpt *cpt,
				const struct ulnet_nid *nid, const void **what)
{
	unsigned int i, n = 0;
	unsigned int end = routes_to(cpt->routes, lnet_nid_net(nid), &i);

	for (; i < end; i++) {
		const struct lnet_route *r = cpt->routes->route[i];

		if (policies_gateway(cpt->policies, nid, &r->gateway))
			what[n++] = r;
	}
	return n;
}

static bool has_kind(const struct policy_table *t, enum policy_kind kind)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (t->slot[i].policy->kind == kind)
			return true;
	return false;
}

/* Returns false if there is no memory. *@preferred_p is NULL if no NI or route
 * is preferred. */
static bool find_preferred(const struct lnet_cpt *cpt,
			   const struct ulnet_nid *nid,
			   struct peer_preferred **preferred_p)
{
	unsigned int begin;
	unsigned int end = routes_to(cpt->routes, lnet_nid_net(nid), &begin);
	size_t room = cpt->config->nnis + end - begin;
	struct peer_preferred *p, *fits;

	*preferred_p = NULL;
	if (!has_kind(cpt->policies, POLICY_PAIR) &&
	    !has_kind(cpt->policies, POLICY_GATEWAY) &&
	    !config_is_apart(cpt->config))
		return true;
	p = malloc(sizeof(*p) + room * sizeof(p->what[0]));
	if (!p)
		return false;
	p->nnis = find_nis(cpt, nid, p->what);
	p->neighbours = !p->nnis;
	if (p->neighbours)
		p->nnis = find_neighbours(cpt->config, nid, p->what);
	p->n = p->nnis + find_routes(cpt, nid, p->what + p->nnis);
	if (!p->n) {
		free(p);
		return true;
	}
	fits = realloc(p, sizeof(*p) + p->n * sizeof(p->what[0]));
	if (fits)
		p = fits;
	*preferred_p = p;
	return true;
}

const struct peer_verdict *verdict_of_peer_ni(const struct lnet_cpt *cpt,
					      struct lnet_peer_ni *lpni)
{
	struct peer_verdict *r = &lpni->verdict;

	if (likely(r->as_of == cpt->rules))
		return r;
	policies_of(cpt->policies, POLICY_DST_NET, &lpni->nid, &r->net_priority,
		    &r->priority);
	if (r->priority == LNET_PRIORITY_NONE)
		r->priority = r->net_priority;
	free(r->preferred);
	/* Without memory .as_of stays, so the next caller tries again. */
	if (find_preferred(cpt, &lpni->nid, &r->preferred))
		r->as_of = cpt->rules;
	return r;
}

bool verdict_prefers(const struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		     const void *way)
{
	const struct peer_preferred *p =
		verdict_of_peer_ni(cpt, lpni)->preferred;

	for (unsigned int i = 0; p && i < p->n; i++)
		if (p->what[i] == way)
			return true;
	return false;
}

bool verdict_has_better(const struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			const struct lnet_ni *ni)
{
	const struct peer_preferred *p;

	if (verdict_prefers(cpt, lpni, ni))
		return false;
	p = lpni->verdict.preferred;
	if (!p || p->neighbours)
		return false;
	for (unsigned int i = 0; i < p->nnis; i++)
		if (ni_is_up(p->what[i]))
			return true;
	return false;
}
