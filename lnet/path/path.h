/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths that messages take: path_take() references the interfaces that
 * path_select() chose, and records the choice, so that the next choices take
 * turns.
 */
#ifndef LNET_PATH_H
#define LNET_PATH_H

#include "lnet/net/net.h"
#include "lnet/path/select.h"
#include "lnet/peer/peer.h"

struct health_watch;

struct path_cpt {
	struct peer_cpt peer;
	uint64_t uses; /* paths taken so far, by which uses are numbered */
	const struct health_watch *watch; /* health.h; NULL: none */
};

static inline struct path_cpt *path_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct path_cpt, peer.portal.cpt);
}

/* Takes the path that path_select() has just chosen: references its local NI
 * and the peer NI of the next hop, which is created if this CPT does not know
 * it yet (only now that there is a path to it: strangers may name any NID as
 * their source). Neither is referenced if another CPT owns the gateway that is
 * the next hop. Returns 0, or -ENOBUFS: peers_max peers are in use. */
int path_take(struct lnet_cpt *cpt, const struct path_request *request,
	      struct path *path);

/* path_select() and path_take(). */
int path_get(struct lnet_cpt *cpt, const struct path_request *request,
	     struct path *path);

/* If the last message to @dst found that there is only one path, returns the
 * peer NI; it and the local NI, its .only, are referenced. Else returns NULL,
 * and the caller uses path_get(). */
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
