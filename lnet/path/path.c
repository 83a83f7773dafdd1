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

/* A peer that is not multi-rail knows this node by one NID: that of the NI that
 * it is first sent to from, until that NI is gone or down; and by that one
 * again when it was multi-rail in between. */
static void path_remember(struct lnet_peer_ni *lpni, const struct lnet_ni *ni,
			  const struct path_want *want)
{
	if (lpni->peer->multi_rail ||
	    want->flags & (PATH_PORTAL0 | PATH_FORWARD) ||
	    lnet_nid_eq(&lpni->preferred, &ni->lnd.nid))
		return;
	if (lnet_nid_is_any(&lpni->preferred) || lnet_nid_is_any(want->src))
		lpni->preferred = ni->lnd.nid;
}

/* NIs of the peer that this node can send to. */
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

/* Will messages to the peer NI go this way whatever becomes of health and
 * credits, until the topology changes? */
static bool path_is_only(const struct lnet_cpt *cpt, const struct path *path)
{
	const struct lnet_peer *peer = path->lpni->peer;

	if (peer_cpt(cpt)->discovery &&
	    (!peer->settled || provenance_is_unverified(path->lpni)))
		return false;
	if (config_net(cpt->config, ni_segment(path->ni))->nnis > 1 ||
	    config_is_mine(cpt->config, &path->lpni->nid))
		return false;
	if (peer->multi_rail)
		return peer_reachable(cpt, peer) == 1;
	return lnet_nid_eq(&path->lpni->preferred, &path->ni->lnd.nid);
}

/* References to the next hop, which is @nid's. */
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

/* Routes take turns, but now and then one has two in a row. Otherwise a peer
 * whose every second message is a mere question would always send what matters
 * by the same gateway; and if that gateway loses it, nobody here can see. */
static void route_used(struct lnet_cpt *cpt, struct lnet_route *route)
{
	uint64_t use = ++path_cpt(cpt)->uses;

	if (hash_u64(use, cpt->node->hash_seed) % 4)
		route->use[cpt->index] = use;
}

/* Through a gateway. Whom the message is for need not be known, unless it is to
 * know this node by one NI. */
static out_of_line int path_take_routed(struct lnet_cpt *cpt,
					const struct path_want *want,
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
	dst = peer_get(cpt, path->dst ? &path->dst->nid : want->dst);
	if (!dst)
		return 0;
	path_remember(dst, ni, want);
	dst->use = path_cpt(cpt)->uses;
	peer_unref(cpt, dst);
	return 0;
}

static in_line int take(struct lnet_cpt *cpt, const struct path_want *want,
			struct path *path)
{
	int rc;

	if (unlikely(path->route))
		return path_take_routed(cpt, want, path);
	rc = hop_take(cpt, path, want->dst);
	if (rc)
		return rc;
	path_remember(path->lpni, path->ni, want);
	if (path_is_only(cpt, path)) {
		path->lpni->only = path->ni;
		path->lpni->only_in = cpt->topology;
	}
	return 0;
}

int path_take(struct lnet_cpt *cpt, const struct path_want *want,
	      struct path *path)
{
	return take(cpt, want, path);
}

int path_get(struct lnet_cpt *cpt, const struct path_want *want,
	     struct path *path)
{
	int rc = path_select(cpt, want, path, NULL);

	return rc ? rc : take(cpt, want, path);
}
