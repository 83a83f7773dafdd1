/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIs and the primary NID of a peer of @cpt. Each change is made in the
 * directory first, and either as a whole or not at all (-ENOMEM). NIDs that
 * other CPTs own must be claimed (claim.h) instead. All functions are called on
 * the thread of @cpt.
 */
#ifndef LNET_MEMBER_H
#define LNET_MEMBER_H

#include "lnet/peer/peer.h"

/* Makes a peer without NIs. Returns a reference, to be dropped with
 * peer_drop(). NULL: there is no memory. */
struct lnet_peer *peer_new(struct lnet_cpt *cpt,
			   const struct ulnet_nid *primary);

/* Makes an NI of @peer, to which the caller has a reference, for @nid. @nid
 * must be unknown on @cpt; @hash is its peer_hash(). The caller must change the
 * directory. NULL: there is no memory, or peers_max peer NIs are in use. */
struct lnet_peer_ni *member_new(struct lnet_cpt *cpt, struct lnet_peer *peer,
				const struct ulnet_nid *nid, uint64_t hash,
				enum peer_place place);
/* Frees @peer and its NIs. There must be no references. The caller must change
 * the directory. */
void peer_free(struct lnet_cpt *cpt, struct lnet_peer *peer);

/* Adds an NI with @nid to @peer, to which the caller has a reference. Returns
 * 0, also if @peer has that NI; -EEXIST: another peer has @nid (use
 * member_take()); -EXDEV: another CPT owns @nid; -ENOBUFS: peers_max peer NIs
 * are in use. */
int member_add(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid) must_check;

/* Moves @lpni from its peer to @peer, where it is verified (provenance.h). If
 * its NID was the primary NID of the old peer, the NID of the first other NI
 * becomes the primary one. If there is no other NI, the old peer is freed,
 * unless there are references to it. -EXDEV: @lpni is an alias. */
int member_take(struct lnet_cpt *cpt, struct lnet_peer *peer,
		struct lnet_peer_ni *lpni) must_check;

/* Makes @lpni a peer of its own. Returns 0, also if it was its peer's only NI.
 */
int member_split(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni) must_check;

/* Moves all NIs of @from, with their provenance, to @into, to which the caller
 * has a reference. Readers of the directory see them all change at once. @from
 * is freed, unless there are references to it. */
int peer_merge(struct lnet_cpt *cpt, struct lnet_peer *into,
	       struct lnet_peer *from) must_check;
/* As peer_merge(), but without changing the directory. */
void peer_absorb(struct lnet_cpt *cpt, struct lnet_peer *into,
		 struct lnet_peer *from);

/* Gives the peer of @lpni, with all its NIs, to the CPT @to. On @cpt each NI
 * becomes an alias with a peer of its own; @lpni keeps the old struct
 * lnet_peer. */
int peer_leave(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
	       unsigned int to) must_check;

/* Sets the primary NID. -ENOENT: the peer does not have @nid. */
int peer_set_primary(struct lnet_cpt *cpt, struct lnet_peer *peer,
		     const struct ulnet_nid *nid) must_check;

/* Sets whether an administrator has configured @peer. Takes a reference, or
 * drops it. */
void peer_set_configured(struct lnet_cpt *cpt, struct lnet_peer *peer,
			 bool configured);

/* Forgets @peer, to which there must be no references: its NIDs become unknown.
 * -EBUSY: this CPT has connections with a NID that would belong to another CPT.
 */
int peer_forget(struct lnet_cpt *cpt, struct lnet_peer *peer) must_check;

#endif
