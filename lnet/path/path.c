/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/path.h"

#include <errno.h>

#include "base/hash.h"
#include "lnet/peer/provenance.h"
#include "lnet/route/route.h"

void paths_init(struct lnet_cpt *cpt)
{
	cpt->topology = 1;
	cpt->rules = 1;
}

/* Remembers by which NID a peer that is not multi-rail knows this node: that of
 * the NI from which the first message went to the peer, until that NI is
 * deleted or down. While a peer is multi-rail this stays as it is, and holds
 * again if the peer stops being multi-rail. */
static void path_prefer(struct lnet_peer_ni *lpni, const struct lnet_ni *ni,
			const struct path_request *request)
{
	if (lpni->peer->multi_rail ||
	    request->flags & (PATH_PORTAL0 | PATH_FORWARD) ||
	    lnet_nid_eq(&lpni->preferred, &ni->lnd.nid))
		return;
	if (lnet_nid_is_any(&lpni->preferred) || lnet_nid_is_any(request->src))
		lpni->preferred = ni->lnd.nid;
}

/* Returns how many NIs of the peer this node can send to directly. */
static unsigned int peer_reachable(const struct lnet_cpt *cpt,
				   const struct lnet_peer *peer)
{
	const struct lnet_peer_net *pn;
	const struct lnet_peer_ni *p;
	unsigned int n = 0;

	list_for_each_entry (pn, &peer->nets, link)
		if (config_net(cpt->config, pn->segment))
			list_for_each_entry (p, &pn->nis, link)
				n++;
	return n;
}

/* Until the topology changes, will all messages to the peer NI take this path,
 * whatever health and credits are? */
static bool path_is_only(const struct lnet_cpt *cpt, const struct path *path)
{
	const struct lnet_peer *peer = path->lpni->peer;

	if (peer_cpt(cpt)->discovery &&
	    (!peer->settled || provenance_is_unverified(path->lpni)))
		return false;
	if (config_net(cpt->config, path->ni->segment)->nnis > 1 ||
	    config_is_mine(cpt->config, &path->lpni->nid))
		return false;
	if (peer->multi_rail)
		return peer_reachable(cpt, peer) == 1;
	return lnet_nid_eq(&path->lpni->preferred, &path->ni->lnd.nid);
}

/* References the local NI, and the peer NI with @nid, which is the next hop. */
static in_line int hop_take(struct lnet_cpt *cpt, struct path *path,
			    const struct ulnet_nid *nid)
{
	if (likely(path->lpni))
		peer_ref(path->lpni);
	else
		path->lpni = peer_get(cpt, nid);
	if (!path->lpni)
		return -ENOBUFS;
	ni_ref(path->ni, cpt->index);
	peer_set_credits(path->lpni, path->ni->peer_credits);
	path->lpni->use = ++path_cpt(cpt)->uses;
	path->ni->cpt[cpt->index].use = path->lpni->use;
	return 0;
}

/* Routes are used in turn, but now and then one is used twice in a row.
 * Otherwise, if a sender alternates between queries and other messages, and
 * there are two routes, all queries would take one gateway and all other
 * messages the other one; if that lost them, this node would not notice. */
static void route_used(struct lnet_cpt *cpt, struct lnet_route *route)
{
	uint64_t use = ++path_cpt(cpt)->uses;

	if (hash_u64(use, cpt->node->hash_seed) % 4)
		route->use[cpt->index] = use;
}

/* Takes a path through a gateway. The target need not be a known peer NI,
 * except for a peer that is to know this node by one NI. */
static out_of_line int path_take_routed(struct lnet_cpt *cpt,
					const struct path_request *request,
					struct path *path)
{
	const struct lnet_ni *ni = path->ni ? path->ni : path->from;
	struct lnet_peer_ni *dst;

	if (path->ni) {
		int rc = hop_take(cpt, path, &path->route->gateway);

		if (rc)
			return rc;
	}
	route_used(cpt, path->route);
	dst = peer_get(cpt, path->dst ? &path->dst->nid : request->dst);
	if (!dst)
		return 0;
	path_prefer(dst, ni, request);
	dst->use = path_cpt(cpt)->uses;
	peer_unref(dst);
	return 0;
}

static in_line int take(struct lnet_cpt *cpt,
			const struct path_request *request, struct path *path)
{
	int rc;

	if (unlikely(path->route))
		return path_take_routed(cpt, request, path);
	rc = hop_take(cpt, path, request->dst);
	if (rc)
		return rc;
	path_prefer(path->lpni, path->ni, request);
	if (path_is_only(cpt, path)) {
		path->lpni->only = path->ni;
		path->lpni->only_in = cpt->topology;
	}
	return 0;
}

int path_take(struct lnet_cpt *cpt, const struct path_request *request,
	      struct path *path)
{
	return take(cpt, request, path);
}

int path_get(struct lnet_cpt *cpt, const struct path_request *request,
	     struct path *path)
{
	int rc = path_select(cpt, request, path, NULL);

	return rc ? rc : take(cpt, request, path);
}
