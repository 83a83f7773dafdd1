/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NID becomes one of a peer's, whichever CPT owns the NID: all of a peer
 * belongs to one CPT, so another CPT has to give the NID away. That CPT does,
 * unless somebody there uses the NID, or another one of the peer that has it
 * there: messages, connections of its LND's, discovery, or an administrator.
 * Then the NID stays what it is, and may be claimed again later. Mostly nobody
 * does: a peer stays on the CPT where it was first met, and its other NIDs are
 * known before anything is sent to them.
 *
 * Who has given the NID away keeps a guest (peer.h), for what may still be on
 * its way in. What was to be sent to the NID is passed on when it finds that
 * another CPT is the owner now.
 */
#ifndef LNET_CLAIM_H
#define LNET_CLAIM_H

#include "base/mailbox.h"
#include "lnet/peer/peer.h"

/* Who claims. Owner: the caller, until done() is called; then it is in the
 * caller's hands again. The caller sets @done and @by, and does not look into
 * the rest. */
struct peer_claim {
	/* On the CPT of the claim, not within peer_claim(). 0: @nid is one of
	 * @peer's; else an errno as peer_claim() returns. */
	void (*done)(struct peer_claim *claim, int rc);
	struct lnet_cpt *cpt;
	struct lnet_peer *peer;
	struct ulnet_nid nid;
	/* On whose word, or ANY: because @nid has said so, or an
	 * administrator. */
	struct ulnet_nid by;
	struct lnet_peer_ni *guest;
	struct prefer preferred; /* of the NID, where it was */
	int rc;
	struct work work;
};

/*
 * Makes @nid one of the NIDs of @peer, which is @cpt's and which the caller
 * holds until this is decided. -EINPROGRESS: @claim->done() will be called. 0;
 * -EEXIST: another peer of @cpt's has @nid (member_take()); -EBUSY: @nid is in
 * use on the CPT that owns it; -EPERM: it is an administrator's there, or has
 * not said itself whose it is, and is asked (word.h); -EAGAIN: others have had
 * @nid, or all NIDs of @peer, meanwhile; -ENOBUFS, -ENOMEM: nothing has
 * changed.
 */
int peer_claim(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid, struct peer_claim *claim) must_check;

/* The same, for a thread that may wait for all CPTs (node_may_wait()): @cpt's
 * peer known by @primary. Also -EAGAIN: others have changed something
 * meanwhile; -ENOENT: there is no such peer here. */
int peer_claim_wait(struct lnet *node, const struct ulnet_nid *primary,
		    const struct ulnet_nid *nid) must_check;

/* Is no claim under way that began on @cpt? */
bool peer_claims_idle(const struct lnet_cpt *cpt);

#endif
