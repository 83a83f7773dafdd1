/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIDs of a peer: which NIs are its own, and its primary NID. Whatever
 * changes here, changes in the directory as well, before it is seen: all of a
 * change is made, or nothing (-ENOMEM).
 *
 * All is about peers of @cpt and on its thread. NIDs that other CPTs own are
 * claimed instead (claim.h).
 */
#ifndef LNET_MEMBER_H
#define LNET_MEMBER_H

#include "lnet/peer/peer.h"

/* A peer without NIs, of which NIs are made; the caller holds it. NULL: no
 * memory. */
struct lnet_peer *peer_new(struct lnet_cpt *cpt,
			   const struct ulnet_nid *primary);

/* A new NI of @peer, which is held; the directory is the caller's. @nid is not
 * known here, and @hash is its peer_hash(). NULL: no memory, or peers_max are
 * in use. */
struct lnet_peer_ni *member_new(struct lnet_cpt *cpt, struct lnet_peer *peer,
				const struct ulnet_nid *nid, uint64_t hash,
				enum peer_place place);
/* Frees a peer that nobody holds, and its NIs. The directory is the
 * caller's. */
void peer_free(struct lnet_cpt *cpt, struct lnet_peer *peer);

/* What @cpt does not know becomes an NI of @peer, which is held. -EEXIST:
 * another peer has @nid (member_take()); -EXDEV: another CPT owns @nid;
 * -ENOBUFS: peers_max are in use. */
int member_add(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid) must_check;

/* @lpni leaves its peer and becomes an NI of @peer, verified (provenance.h). If
 * its old peer has lost its primary NID, the NID of its first NI becomes that;
 * if it has lost all, it is freed, unless it is held. -EXDEV: another CPT owns
 * @lpni, which is an alias here. */
int member_take(struct lnet_cpt *cpt, struct lnet_peer *peer,
		struct lnet_peer_ni *lpni) must_check;

/* @lpni leaves its peer and becomes a peer of its own, which keeps nothing else
 * of the one that it leaves. 0 also if it was alone. */
int member_split(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni) must_check;

/* All NIs of @from become those of @into, which is held, and keep their
 * provenance (provenance.h). Readers of the directory see all of them change at
 * once. @from is freed, unless it is held. On error nothing has changed. */
int peer_merge(struct lnet_cpt *cpt, struct lnet_peer *into,
	       struct lnet_peer *from) must_check;
/* The same, when the directory says so already. */
void peer_absorb(struct lnet_cpt *cpt, struct lnet_peer *into,
		 struct lnet_peer *from);

/* The peer of @lpni moves to the CPT @to, with all of its NIs at once. On @cpt
 * each NI is an alias from now on, with a peer of its own; @lpni keeps the
 * peer's record. On error nothing has changed. */
int peer_leave(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
	       unsigned int to) must_check;

/* -ENOENT: @nid is none of the peer's. */
int peer_set_primary(struct lnet_cpt *cpt, struct lnet_peer *peer,
		     const struct ulnet_nid *nid) must_check;

/* A peer that is configured is not forgotten. */
void peer_set_configured(struct lnet_cpt *cpt, struct lnet_peer *peer,
			 bool configured);

/* Forgets a peer that nobody holds: the directory says of its NIDs what it says
 * of those of strangers. -EBUSY: they have connections here, and would belong
 * to another CPT. */
int peer_forget(struct lnet_cpt *cpt, struct lnet_peer *peer) must_check;

#endif
