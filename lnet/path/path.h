/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths that messages take: references what was chosen, and records the
 * choice, by which the next choices take turns. And what a CPT keeps for that.
 */
#ifndef LNET_PATH_H
#define LNET_PATH_H

#include "lnet/net/config.h"
#include "lnet/path/select.h"
#include "lnet/peer/peer.h"

struct health_watch;

struct path_cpt {
	struct peer_cpt peer;
	uint64_t uses;			  /* of paths: numbers the choices */
	const struct health_watch *watch; /* health.h; NULL: nobody's */
};

static inline struct path_cpt *path_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct path_cpt, peer.portal.cpt);
}

/* What path_select() has just chosen is taken: with a reference to the local NI
 * and to the peer NI of the next hop, which is made if need be: never for a
 * path that does not exist, since strangers may name sources as they like.
 * Neither if the next hop is another CPT's gateway. -ENOBUFS: peers_max are in
 * use. */
int path_take(struct lnet_cpt *cpt, const struct path_want *want,
	      struct path *path);

/* path_select(), and path_take(). */
int path_get(struct lnet_cpt *cpt, const struct path_want *want,
	     struct path *path);

/* If the last message to @dst has found that there is only one path: the peer
 * NI, and its .only, both referenced. Else NULL: use path_get(). */
static inline struct lnet_peer_ni *path_get_only(struct lnet_cpt *cpt,
						 const struct ulnet_nid *src,
						 const struct ulnet_nid *dst)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, dst);

	if (!lpni || lpni->only_in != cpt->topology || !ni_is_up(lpni->only))
		return NULL;
	if (!lnet_nid_is_any(src) && !lnet_nid_eq(src, &lpni->only->lnd.nid))
		return NULL;
	peer_ref(lpni);
	ni_ref(lpni->only, cpt->index);
	return lpni;
}

void paths_init(struct lnet_cpt *cpt);

#endif
