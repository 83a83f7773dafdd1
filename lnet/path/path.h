/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The paths that messages take. path_take() references the interfaces that
 * path_select() has chosen, and records the choice, so that later choices take
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
	/* number of paths taken so far; numbers the uses of interfaces */
	uint64_t uses;
	const struct health_watch *watch; /* health.h; NULL: nobody watches */
};

static inline struct path_cpt *path_cpt(const struct lnet_cpt *cpt)
{
	return container_of(cpt, struct path_cpt, peer.portal.cpt);
}

/* Takes the path that path_select() has just chosen: references its local NI,
 * and the peer NI of the next hop. If this CPT does not know that peer NI yet,
 * creates it; path_select() does not, because strangers may name any NID as
 * their source, and only now there is a path to it. If another CPT owns the
 * gateway that is the next hop, references neither. Returns 0, or -ENOBUFS:
 * peers_max peers are in use. */
int path_take(struct lnet_cpt *cpt, const struct path_request *request,
	      struct path *path);

/* Calls path_select(), and then path_take(). */
int path_get(struct lnet_cpt *cpt, const struct path_request *request,
	     struct path *path);

/* If the last message to @dst found that only one path leads there, returns the
 * peer NI with @dst; the local NI is its .only. Otherwise returns NULL, and the
 * caller must use path_get(). */
static inline struct lnet_peer_ni *path_find_only(struct lnet_cpt *cpt,
						  const struct ulnet_nid *src,
						  const struct ulnet_nid *dst)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, dst);

	if (!lpni || lpni->only_in != cpt->topology || !ni_is_up(lpni->only))
		return NULL;
	if (!lnet_nid_is_any(src) && !lnet_nid_eq(src, &lpni->only->lnd.nid))
		return NULL;
	return lpni;
}

/* As path_find_only(), and takes references to both NIs. */
static inline struct lnet_peer_ni *path_get_only(struct lnet_cpt *cpt,
						 const struct ulnet_nid *src,
						 const struct ulnet_nid *dst)
{
	struct lnet_peer_ni *lpni = path_find_only(cpt, src, dst);

	if (!lpni)
		return NULL;
	peer_ref(lpni);
	ni_ref(lpni->only, cpt->index);
	return lpni;
}

void paths_init(struct lnet_cpt *cpt);

#endif
