/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIs and the primary NID of a peer of @cpt. Each change is first made in
 * the directory; it is made as a whole or not at all (-ENOMEM). NIDs that other
 * CPTs own are claimed instead (claim.h). On the thread of @cpt.
 */
#ifndef LNET_MEMBER_H
#define LNET_MEMBER_H

#include "lnet/peer/peer.h"

/* A new peer without NIs; returns a reference: peer_drop(). NULL: no memory. */
struct lnet_peer *peer_new(struct lnet_cpt *cpt,
			   const struct ulnet_nid *primary);

/* A new NI of @peer, which is referenced, for @nid, which is unknown here and
 * whose peer_hash() is @hash. The caller changes the directory. NULL: no
 * memory, or peers_max are in use. */
struct lnet_peer_ni *member_new(struct lnet_cpt *cpt, struct lnet_peer *peer,
				const struct ulnet_nid *nid, uint64_t hash,
				enum peer_place place);
/* Frees @peer, which is not referenced, and its NIs. The caller changes the
 * directory. */
void peer_free(struct lnet_cpt *cpt, struct lnet_peer *peer);

/* Adds an NI with @nid to @peer, which is referenced. 0, also if it has one;
 * -EEXIST: another peer has @nid (member_take()); -EXDEV: another CPT owns
 * @nid; -ENOBUFS: peers_max are in use. */
int member_add(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid) must_check;

/* Moves @lpni from its peer to @peer, where it is verified (provenance.h). If
 * @lpni had the old peer's primary NID, that of its first other NI becomes the
 * primary one; without other NIs the old peer is freed, unless it is
 * referenced. -EXDEV: @lpni is an alias. */
int member_take(struct lnet_cpt *cpt, struct lnet_peer *peer,
		struct lnet_peer_ni *lpni) must_check;

/* Makes @lpni a peer of its own. 0, also if it was alone. */
int member_split(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni) must_check;

/* Moves all NIs of @from, with their provenance, to @into, which is referenced.
 * Readers of the directory see all of them change at once. @from is freed,
 * unless it is referenced. */
int peer_merge(struct lnet_cpt *cpt, struct lnet_peer *into,
	       struct lnet_peer *from) must_check;
/* The same, without changing the directory. */
void peer_absorb(struct lnet_cpt *cpt, struct lnet_peer *into,
		 struct lnet_peer *from);

/* Gives the peer of @lpni, with all of its NIs, to the CPT @to. On @cpt each NI
 * becomes an alias with a peer of its own; @lpni keeps the old struct
 * lnet_peer. */
int peer_leave(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
	       unsigned int to) must_check;

/* -ENOENT: @nid is none of the peer's. */
int peer_set_primary(struct lnet_cpt *cpt, struct lnet_peer *peer,
		     const struct ulnet_nid *nid) must_check;

/* Sets whether an administrator has configured @peer; takes or drops a
 * reference. */
void peer_set_configured(struct lnet_cpt *cpt, struct lnet_peer *peer,
			 bool configured);

/* Forgets @peer, which is not referenced: its NIDs become unknown. -EBUSY: a
 * NID has connections here, but would belong to another CPT. */
int peer_forget(struct lnet_cpt *cpt, struct lnet_peer *peer) must_check;

#endif
