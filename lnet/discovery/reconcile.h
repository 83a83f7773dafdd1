/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Announcements: what a peer says of itself, in the reply to a ping or by a
 * push. They are kept as received, then carried out by a plan (merge.h).
 *
 * A verified NI (peer/provenance.h) announces for its peer. An unverified one
 * does so only if it names a verified NI of that peer; otherwise it leaves the
 * peer, and announces for itself.
 *
 * Shares. New NIDs are unverified until they have announced themselves. How
 * many a peer may name is limited by its share (base/share.h) of peers_max; if
 * there is no room for a peer NI, unverified ones are forgotten first.
 */
#ifndef LNET_RECONCILE_H
#define LNET_RECONCILE_H

#include "lnet/discovery/merge.h"

struct lnet_cpt;
struct lnet_peer;

struct announcement {
	enum merge_source source;
	struct ulnet_nid from;
	struct ulnet_ping_info info; /* decoded, unless @cut */
	struct ulnet_ping_ni *ni;    /* info.ni */
	size_t cut;		     /* bytes of the whole; 0: it is whole */
	/* NIDs that other CPTs own are claimed one by one: */
	unsigned int claimed; /* so many of info.ni were looked at */
	unsigned int kept;    /* of these, the owner keeps so many for now */
	bool *keeps;	      /* for each: its owner keeps it */
	/* The error of a ping that failed after this had come; or 0. If it
	 * failed, the process that announced this may have ended. */
	int unanswered;
	size_t length; /* of @bytes */
	uint8_t bytes[];
};

/* Copies and decodes @length @bytes of ping information, which may be cut off,
 * into *@ann_p (NULL on error), until announcement_free(). -EPROTO, -E2BIG:
 * not what a node would send; -ENOMEM. */
int announcement_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
		     struct announcement **ann_p) must_check;
void announcement_free(struct announcement *ann);

/* Was the announcement that came last made last, or has it been overtaken? */
enum announcement_order {
	ANNOUNCED_LATER,	   /* it was made last */
	ANNOUNCED_PERHAPS_LATER,   /* most likely; ask the peer */
	ANNOUNCED_PERHAPS_EARLIER, /* hardly; ask the peer */
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
 * 0; 1: the peer is to be asked, with a buffer of *@ask_p bytes (0: of any
 * size). -EPROTO: the announcement is of no use. -ENOMEM, -ENOBUFS, -EXDEV:
 * only some NIDs have come or gone. The peer can be used, since it has named
 * each NID that it has, but is not lnet_peer.merged, and so is asked again and
 * the rest is done then. (To do all or nothing, room for all NIDs of a peer
 * would have to be reserved, which other peers could use.)
 */
int reconcile(struct lnet_cpt *cpt, struct lnet_peer *peer,
	      const struct announcement *ann, size_t *ask_p) must_check;

#endif
