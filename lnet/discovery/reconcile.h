/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announcements: what a peer says of itself, in the reply to a ping or by a
 * push. An announcement is kept as it was received, and later carried out by a
 * plan (merge.h).
 *
 * A verified NI (peer/provenance.h) announces for its peer. An unverified NI
 * does so only if it names a verified NI of that peer; otherwise it leaves the
 * peer, and announces for itself.
 *
 * Shares. New NIDs are unverified until they have announced themselves. How
 * many of them a peer may name is limited by its share (base/share.h) of
 * peers_max. If there is no room for a peer NI, unverified ones are forgotten
 * first.
 *
 * Proofs. NIDs on nets whose peers prove who they are (lnd_ni.proven) and other
 * NIDs make no peer together, unless it is configured: who has one of the
 * latter, which anybody can, would speak for the former, and messages to the
 * former would be sent to the latter. So an announcement counts for the NIDs of
 * one kind only, that of the NID that has made it; a node that has both kinds
 * is two peers. A NID that the peer got by a proof goes with the first
 * announcement that is made when the proof does not hold any more.
 *
 * Nets of one host (lnd_ni.host). What a node of another host says of such NIDs
 * does not count, since they are others' here. A node of this host names its
 * own over any net (info.h). That it is on this host is its own claim; so each
 * of them is asked whose it is as soon as it has come, over its own net, and
 * paths do not lead there before it has said the same (select.c). Who has it,
 * that net's LND knows by the system.
 */
#ifndef LNET_RECONCILE_H
#define LNET_RECONCILE_H

#include "lnet/discovery/merge.h"

struct lnet_cpt;
struct lnet_peer;

struct announcement {
	enum merge_source source;
	struct ulnet_nid from;
	struct ulnet_ping_info info; /* decoded; undefined if @cut is not 0 */
	struct ulnet_ping_ni *ni;    /* the array of info.ni */
	/* it comes from a node of this host: ping_info_add_here() */
	bool here;
	/* number of NIDs that do not count, as they are of the other kind, or
	 * as the peer may not speak for them any more; they stand behind the
	 * elements of info.ni */
	unsigned int left_out;
	unsigned int forfeited; /* of these: the latter */
	/* bytes of the whole information if it was cut off; 0: it is whole */
	size_t cut;
	/* NIDs that other CPTs own are claimed one after the other: */
	unsigned int claimed; /* how many of info.ni were considered */
	/* how many of the considered NIDs their owner keeps for now */
	unsigned int kept;
	bool *keeps; /* array: the owner keeps the NID of this index */
	/* The error of a ping that has failed since this announcement came; 0:
	 * none. If it failed, the process that made the announcement may have
	 * ended. */
	int unanswered;
	size_t length; /* number of @bytes */
	uint8_t bytes[];
};

/* Copies ping information, @length bytes, which may be cut off, and decodes it.
 * *@ann_p is to be freed with announcement_free(); NULL on error. -EPROTO,
 * -E2BIG: no node would send this; -ENOMEM. */
int announcement_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
		     struct announcement **ann_p) must_check;
void announcement_free(struct announcement *ann);

/* Leaves out of @ann, which is about @peer, the NIDs of the other kind than the
 * one that has made it, and those of @peer on nets with proofs for which that
 * one may not speak any more. */
void announcement_part(const struct lnet_cpt *cpt, const struct lnet_peer *peer,
		       struct announcement *ann);

/* Was the announcement that came last also made last, or was it overtaken? */
enum announcement_order {
	ANNOUNCED_LATER, /* it was made last */
	/* it was most likely made last; ask the peer */
	ANNOUNCED_PERHAPS_LATER,
	ANNOUNCED_PERHAPS_EARLIER, /* it was hardly made last; ask the peer */
};
enum announcement_order announcement_order(const struct announcement *was,
					   const struct announcement *is);

/*
 * Carries out @ann, the announcement of @peer, to which the caller has a
 * reference, as far as the mode and the configuration allow. A NID of another
 * peer that has not named this peer stays there, and is asked whose it is
 * (provenance.h). Peers that lose NIDs are discovered anew; a peer that has
 * lost its last NID is freed, unless it is referenced.
 *
 * Returns 0; 1: the peer must be asked, with a buffer of *@ask_p bytes (0: of
 * any size); -EPROTO: the announcement is of no use; -ENOMEM, -ENOBUFS, -EXDEV:
 * only some NIDs have come or gone. In the last case the peer can be used,
 * since it has named each NID that it has; but it is not lnet_peer.merged, so
 * it is asked again, and the rest is done then. (To do all or nothing, room for
 * all NIDs of the peer would have to be reserved, and other peers could not use
 * it.)
 */
int reconcile(struct lnet_cpt *cpt, struct lnet_peer *peer,
	      const struct announcement *ann, size_t *ask_p) must_check;

/* @ann will be carried out later. Carries out at once the part of it that saves
 * messages: NIs of @peer that are down, or gone, count as down. That must not
 * wait for a session, which may be waiting for an answer of such an NI. Does
 * nothing unless a verified NI of @peer has pushed @ann. */
void reconcile_losses(struct lnet_cpt *cpt, struct lnet_peer *peer,
		      struct announcement *ann);

#endif
