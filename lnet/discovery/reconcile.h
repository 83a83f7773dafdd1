/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer has announced of itself, in a reply or by a push, is kept as it
 * came, and then becomes what is known of the peer, by a plan (merge.h).
 *
 * For whom does an NI speak that has announced something? A verified NI speaks
 * for its peer (peer/provenance.h). An unverified one does so only if it names
 * a verified NI of that peer; else it leaves the peer, and speaks for itself.
 *
 * Shares. NIDs that nobody knew before are unverified (peer/provenance.h),
 * until they speak for themselves. A peer may name as many as its share of
 * peers_max allows (base/share.h); and where there is no room, those that are
 * unverified go first.
 */
#ifndef LNET_RECONCILE_H
#define LNET_RECONCILE_H

#include "lnet/discovery/merge.h"

struct lnet_cpt;
struct lnet_peer;

struct announcement {
	enum merge_source source;
	struct ulnet_nid from;
	struct ulnet_ping_info info; /* decoded, unless it was cut */
	struct ulnet_ping_ni *ni;    /* info.ni */
	size_t cut;		     /* bytes of the whole; 0: this is it */
	/* NIDs that other CPTs own are claimed one by one: how many of info.ni
	 * were looked at so far, and how many NIDs their owners keep, which
	 * keeps[] names. */
	unsigned int claimed, kept;
	bool *keeps;
	/* Why a question that began before this came had no answer; or 0. If
	 * there was none, the process that announced this may have ended. */
	int unanswered;
	size_t length; /* of @bytes */
	uint8_t bytes[];
};

/* Copies @length @bytes, which are a ping information or the beginning of one;
 * announcement_free(). *@told_p: NULL on error. -EPROTO, -E2BIG: they are not
 * one that a node would send; -ENOMEM. */
int announcement_new(struct lnet_cpt *cpt, const uint8_t *bytes, size_t length,
		     struct announcement **told_p) must_check;
void announcement_free(struct announcement *told);

/* The order of two announcements, as one may have overtaken the other. */
enum announcement_order {
	ANNOUNCED_LATER,	   /* what came last is what is so */
	ANNOUNCED_PERHAPS_LATER,   /* ... most likely; the peer knows */
	ANNOUNCED_PERHAPS_EARLIER, /* ... hardly; the peer knows */
};
enum announcement_order announcement_order(const struct announcement *was,
					   const struct announcement *is);

/*
 * @peer, which is held, becomes what it says of itself, as far as the mode and
 * what was configured allow. A NID of another peer that has not named this peer
 * stays there, and is asked whose it is (provenance.h). Peers that lose NIDs
 * are not merged any more, and their discoveries look at them afterwards; a
 * peer that has no other NIDs, and is not held, ends then.
 *
 * 1: the peer is to be asked, by a question that has room for *@ask_p bytes (0:
 * for as many as any). -EPROTO: what it says is of no use. -ENOMEM, -ENOBUFS,
 * -EXDEV: some NIDs have come, or gone, and others have not; each of them is in
 * one peer, as the directory says. Such a peer can be used: what it has, it has
 * named itself. But it is not merged: it is asked again, and what it tells then
 * is compared with what it has, so that the rest of it is done. (All or nothing
 * would have to hold on to room for all NIDs of a peer that another peer could
 * use meanwhile.)
 */
int reconcile(struct lnet_cpt *cpt, struct lnet_peer *peer,
	      const struct announcement *told, size_t *ask_p) must_check;

#endif
