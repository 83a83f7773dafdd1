/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer has announced of itself, in a reply or by a push, is kept as it
 * came, and then becomes what is known of the peer, by a plan (merge.h).
 *
 * For whom does an NI speak that has announced something? For its peer, if it
 * has said itself that it belongs to that peer (peer/provenance.h). If only
 * others have said so, it speaks for its peer only if it names an NI that has
 * said so itself; else it leaves the peer, and speaks for itself.
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

/* Two that a peer has made, of which one may have been overtaken on its way. */
enum announcement_order {
	ANNOUNCED_LATER,	   /* what came last is what is so */
	ANNOUNCED_PERHAPS_LATER,   /* ... most likely; the peer knows */
	ANNOUNCED_PERHAPS_EARLIER, /* ... hardly; the peer knows */
};
enum announcement_order announcement_order(const struct announcement *was,
					   const struct announcement *is);

/*
 * @peer, which is held, becomes what it says of itself, as far as the mode and
 * what was configured allow. NIDs that others have, which have not named this
 * peer, stay theirs: these are asked (provenance.h). Peers that lose NIDs are
 * not merged any more, and what discovers them looks at them afterwards; they
 * do not outlive that unless they have other NIDs, or are held.
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
