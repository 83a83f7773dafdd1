/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/path/path.h"

#include <errno.h>

#include "base/mutation.h"
#include "lnet/peer/word.h"

void paths_init(struct lnet_cpt *cpt)
{
	cpt->topology = 1;
}

/* A peer that is not multi-rail knows this node by one NID: that of the NI that
 * it is first sent to from, until that NI is gone or down; and by that one
 * again when it was multi-rail in between. */
static void path_remember(const struct path *path, const struct path_want *want)
{
	struct lnet_peer_ni *lpni = path->lpni;

	if (lpni->peer->multi_rail || want->flags & PATH_PORTAL0 ||
	    lnet_nid_eq(&lpni->preferred, &path->ni->lnd.nid))
		return;
	if (lnet_nid_is_any(&lpni->preferred) ||
	    (lnet_nid_is_any(want->src) && !MUTATE(unit_two_sources)))
		lpni->preferred = path->ni->lnd.nid;
}

/* NIs of the peer that this node can send to. */
static unsigned int peer_reachable(const struct lnet_cpt *cpt,
				   const struct lnet_peer *peer)
{
	const struct lnet_peer_net *pn;
	const struct lnet_peer_ni *p;
	unsigned int n = 0;

	list_for_each_entry (pn, &peer->nets, link)
		if (config_has_net(cpt->config, pn->net))
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
	    (!peer->settled || word_is_hearsay(path->lpni)))
		return false;
	if (config_net(cpt->config, ni_net(path->ni))->nnis > 1 ||
	    config_is_mine(cpt->config, &path->lpni->nid))
		return false;
	if (peer->multi_rail)
		return peer_reachable(cpt, peer) == 1;
	return lnet_nid_eq(&path->lpni->preferred, &path->ni->lnd.nid);
}

int path_get(struct lnet_cpt *cpt, const struct path_want *want,
	     struct path *path)
{
	int rc = path_select(cpt, want, path);

	if (rc)
		return rc;
	if (likely(path->lpni))
		peer_ref(path->lpni);
	else
		path->lpni = peer_get(cpt, want->dst);
	if (!path->lpni)
		return -ENOBUFS;
	ni_ref(path->ni, cpt->index);
	peer_set_credits(path->lpni, path->ni->peer_credits);
	path_remember(path, want);
	path->lpni->use = ++path_cpt(cpt)->uses;
	path->ni->cpt[cpt->index].use = path->lpni->use;
	if (path_is_only(cpt, path)) {
		path->lpni->only = path->ni;
		path->lpni->only_in = cpt->topology;
	}
	return 0;
}
