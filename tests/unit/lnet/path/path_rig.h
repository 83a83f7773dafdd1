/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CPT with interfaces and peers, and nothing else, for tests of path
 * selection. Interfaces are added by NID, and all NIs of a peer in one call.
 */
#ifndef TESTS_PATH_RIG_H
#define TESTS_PATH_RIG_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "lnet/net/net.h"
#include "lnet/path/path.h"
#include "lnet/policy/policy.h"
#include "lnet/route/route.h"

#define RIG_NIS 20

struct path_rig {
	struct net_node node;
	struct path_cpt pc;
	struct lnet_cpt *cpt;
	struct lnet_config *config;
	unsigned int nnis; /* made so far, 0@lo included */
	struct lnet_ni ni[RIG_NIS];
	struct ni_cpt nc[RIG_NIS];
	struct route_table *routes;
	struct policy_table *policies;
};

static inline struct ulnet_nid rig_nid(const char *text)
{
	struct ulnet_nid nid;

	cr_assert_eq(lnet_nid_parse(text, &nid), 0, "%s", text);
	return nid;
}

static inline void rig_config(struct path_rig *rig, struct lnet_config *config)
{
	cr_assert_not_null(config);
	free(rig->config);
	rig->config = config;
	rig->cpt->config = config;
	cpt_rules_changed(rig->cpt);
}

static inline struct lnet_ni *rig_ni_make(struct path_rig *rig, const char *nid)
{
	struct ni_cpt *nc = &rig->nc[rig->nnis];
	struct lnet_ni *ni = &rig->ni[rig->nnis];

	ni->bit = UINT64_C(1) << rig->nnis++;
	ni->lnd.nid = rig_nid(nid);
	ni->segment = nid_segment(&ni->lnd.nid);
	ni->peer_credits = 8;
	ni->cpt = nc;
	atomic_init(&ni->up, true);
	atomic_init(&ni->health, LNET_HEALTH_MAX);
	nc->refs = 1;
	credits_set(&nc->credits, 256);
	return ni;
}

static inline struct lnet_ni *rig_ni(struct path_rig *rig, const char *nid)
{
	struct lnet_ni *ni = rig_ni_make(rig, nid);

	rig_config(rig, config_with(rig->config, ni));
	return ni;
}

static inline void rig_init(struct path_rig *rig)
{
	memset(rig, 0, sizeof(*rig));
	rig->cpt = &rig->pc.peer.portal.cpt;
	rig->cpt->node = &rig->node.portal.node;
	rig->cpt->node->conf.peers_max = 100;
	rig->cpt->node->cpts = 1;
	atomic_init(&rig->cpt->node->settings.value[SETTING_HEALTH_SENSITIVITY],
		    100);
	directory_init(&rig->cpt->node->directory, 1, NULL, 0, NULL);
	peers_init(rig->cpt);
	paths_init(rig->cpt);
	rig->routes = calloc(1, sizeof(*rig->routes));
	rig->cpt->routes = rig->routes;
	rig_config(rig, config_with(NULL, rig_ni_make(rig, "0@lo")));
}

/* Adds a route to @net. Its gateway has full health. */
static inline struct lnet_route *rig_route(struct path_rig *rig,
					   const char *net, const char *gateway,
					   uint32_t hops, uint32_t priority)
{
	struct lnet_route *r = calloc(1, sizeof(*r));
	struct route_table *old = rig->routes;

	cr_assert_eq(lnet_net_parse(net, &r->net), 0);
	r->gateway = rig_nid(gateway);
	r->hops = hops;
	r->priority = priority;
	atomic_init(&r->health, LNET_HEALTH_MAX);
	rig->routes = route_table_next(old, &r, 1);
	rig->cpt->routes = rig->routes;
	cpt_rules_changed(rig->cpt);
	free(old);
	return r;
}

/* Adds a policy behind the others. "" stands for no pattern. */
static inline void rig_policy(struct path_rig *rig, const char *src,
			      const char *dst, const char *rte,
			      uint32_t priority)
{
	struct policy_table *old = rig->policies;
	struct ulnet_policy text = { .priority = priority };
	struct policy *policy;

	text_copy(text.src, sizeof(text.src), src);
	text_copy(text.dst, sizeof(text.dst), dst);
	text_copy(text.rte, sizeof(text.rte), rte);
	cr_assert_eq(policy_make(&text, NULL, &policy), 0);
	rig->policies = policy_table_with(old, old ? old->n : 0, policy);
	rig->cpt->policies = rig->policies;
	cpt_rules_changed(rig->cpt);
	free(old);
}

static inline void rig_no_policies(struct path_rig *rig)
{
	for (unsigned int i = 0; rig->policies && i < rig->policies->n; i++)
		policy_free(rig->policies->slot[i].policy);
	free(rig->policies);
	rig->cpt->policies = rig->policies = NULL;
	cpt_rules_changed(rig->cpt);
}

static inline void rig_peer_put(struct peer_cpt *pc, struct lnet_peer *peer)
{
	list_del(&peer->idle);
	pool_put(&pc->peer_pool, peer);
}

/* Frees a peer NI; also its net, and its peer, if they have no other NI. */
static inline void rig_peer_ni_put(struct peer_cpt *pc,
				   struct lnet_peer_ni *lpni)
{
	struct lnet_peer_net *pn = lpni->net;

	hash_del(&pc->peers, &lpni->hash);
	free(lpni->verdict.preferred);
	list_del(&lpni->link);
	if (list_empty(&pn->nis)) {
		list_del(&pn->link);
		if (list_empty(&lpni->peer->nets))
			rig_peer_put(pc, lpni->peer);
		pool_put(&pc->net_pool, pn);
	}
	pool_put(&pc->ni_pool, lpni);
}

/* Frees the rig with its peers, though the test has references to them. */
static inline void rig_fini(struct path_rig *rig)
{
	struct peer_cpt *pc = peer_cpt(rig->cpt);
	struct hash_node *n, *next;
	uint32_t bucket = 0;

	for (n = hash_walk(&pc->peers, &bucket, NULL); n; n = next) {
		next = hash_walk(&pc->peers, &bucket, n);
		rig_peer_ni_put(pc, container_of(n, struct lnet_peer_ni, hash));
	}
	hash_fini(&pc->peers);
	pool_fini(&pc->ni_pool);
	pool_fini(&pc->net_pool);
	pool_fini(&pc->peer_pool);
	free(rig->config);
	for (unsigned int i = 0; i < rig->routes->n; i++)
		free(rig->routes->route[i]);
	free(rig->routes);
	rig_no_policies(rig);
}

/* Makes @other, the only NI of its peer, one more NI of @lpni's. */
static inline void rig_join(struct path_rig *rig, struct lnet_peer_ni *lpni,
			    struct lnet_peer_ni *other)
{
	struct peer_cpt *pc = peer_cpt(rig->cpt);
	struct lnet_peer *peer = lpni->peer;
	struct lnet_peer_net *pn, *was = other->net;

	list_del(&was->link);
	rig_peer_put(pc, other->peer);
	other->peer = peer;
	list_for_each_entry (pn, &peer->nets, link) {
		if (pn->segment != was->segment)
			continue;
		list_del(&other->link);
		list_add_tail(&pn->nis, &other->link);
		other->net = pn;
		pool_put(&pc->net_pool, was);
		return;
	}
	list_add_tail(&peer->nets, &was->link);
	was->peer = peer;
}

/* Adds a peer with these NIs, whose NIDs are separated by spaces. It is
 * multi-rail if there are several. Returns the first NI; the test has a
 * reference to each. */
static inline struct lnet_peer_ni *rig_peer(struct path_rig *rig,
					    const char *nids)
{
	struct lnet_peer_ni *first = NULL;
	char text[1024], *save, *one;

	text_copy(text, sizeof(text), nids);
	for (one = strtok_r(text, " ", &save); one;
	     one = strtok_r(NULL, " ", &save)) {
		struct ulnet_nid nid = rig_nid(one);
		struct lnet_peer_ni *p = peer_get(rig->cpt, &nid);

		cr_assert_not_null(p);
		if (first) {
			rig_join(rig, first, p);
			first->peer->multi_rail = true;
		} else {
			first = p;
		}
	}
	cpt_topology_changed(rig->cpt);
	return first;
}

static inline struct lnet_peer_ni *rig_peer_ni(struct path_rig *rig,
					       const char *text)
{
	struct ulnet_nid nid = rig_nid(text);
	struct lnet_peer_ni *p = peer_find(rig->cpt, &nid);

	cr_assert_not_null(p, "%s", text);
	return p;
}

#define PATH_TEXT_SIZE (2 * LNET_NIDSTR_SIZE + 2)

/* Writes @path like "10.0.0.1@tcp > 10.0.0.2@tcp", or with "?" for a peer NI
 * that is not known yet. */
static inline const char *rig_path_text(const struct path *path, char *buf,
					size_t size)
{
	char from[LNET_NIDSTR_SIZE], to[LNET_NIDSTR_SIZE] = "?";

	lnet_nid_format(&path->ni->lnd.nid, from, sizeof(from));
	if (path->lpni)
		lnet_nid_format(&path->lpni->nid, to, sizeof(to));
	snprintf(buf, size, "%s > %s", from, to);
	return buf;
}

/* The usual nodes. This one has two NIs on tcp and one on tcp1. Its peers: a
 * multi-rail one on tcp (two NIs), tcp1 and tcp2; one with a single NI, on tcp;
 * two out of reach on tcp2, one multi-rail and one with a single NI. */
static inline void rig_usual(struct path_rig *rig)
{
	rig_init(rig);
	rig_ni(rig, "10.0.0.1@tcp");
	rig_ni(rig, "10.0.1.1@tcp");
	rig_ni(rig, "10.1.0.1@tcp1");
	rig_peer(rig, "10.0.0.2@tcp 10.0.1.2@tcp 10.1.0.2@tcp1 10.2.0.2@tcp2");
	rig_peer(rig, "10.0.0.3@tcp");
	rig_peer(rig, "10.2.0.4@tcp2 10.2.1.4@tcp2");
	rig_peer(rig, "10.2.0.5@tcp2");
}

static inline void set_up(struct lnet_ni *ni, bool up)
{
	atomic_store(&ni->up, up);
}

#endif
