/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a peer gets a NID that another CPT owns. All of a peer belongs to one
 * CPT, so the other CPT has to give the NID away. It does so even while the NID
 * is in use, and with it gives all other NIDs of the peer that has the NID
 * there: an operation may have asked one of them and be answered by another,
 * and a match entry that names one of them is for all, so at no time may they
 * belong to different peers. It keeps them if
 *	- an administrator has configured that peer,
 *	- an LND has connections with one of its NIDs there that cannot go along
 *	  just now (lnd.h), or
 *	- that peer claims NIDs as well, and has more NIDs than the peer that
 *	  claims this one, or as many and the smaller primary NID: so if two
 *	  peers claim each other's NIDs, one gives way.
 * Then the NID may be claimed again later.
 *
 * Connections go along. The CPT that has given the NIDs away keeps an alias for
 * each (peer.h), for what its LNDs are still sending and what may still come
 * in. Messages that wait there are passed to the new owner, and so is all that
 * is sent to the NIDs later.
 */
#ifndef LNET_CLAIM_H
#define LNET_CLAIM_H

#include "base/loop.h"
#include "lnet/peer/peer.h"

/* A NID that is given away. */
struct claim_nid {
	struct ulnet_nid by; /* who has said whose it is; ANY: the NID itself */
	struct lnet_peer_ni *alias; /* its place where it goes; NULL: not yet */
	/* As it was there, if it was given: */
	struct ulnet_nid preferred;
	int32_t health;
	bool down;
	bool given;
};

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
	/* Who has said that @nid is the peer's; ANY: @nid itself, or an
	 * administrator. */
	struct ulnet_nid by;
	/* When done() is called with 0: the peer that had @nid was being
	 * discovered, and may have told something that nobody knows yet. */
	bool discovering;
	uint64_t asked_until;	  /* lnet_peer's, of the peer that had it */
	uint32_t nnis;		  /* of @peer, ... */
	struct ulnet_nid primary; /* ... when it claimed */
	/* The NIDs that come, @nid first; the CPT that gives them takes the
	 * names. */
	struct ulnet_nid *names;
	struct claim_nid *nids;
	uint32_t n; /* of each */
	int rc;
	struct work work;
};

/*
 * Makes @nid one of the NIDs of @peer, which is @cpt's and which the caller
 * holds until this is decided. -EINPROGRESS: @claim->done() will be called. 0;
 * -EEXIST: another peer of @cpt's has @nid (member_take()); -EBUSY: see above;
 * -EPERM: it is an administrator's there, or has not said itself whose it is,
 * and is asked (provenance.h); -EAGAIN: others have had @nid, or all NIDs of
 * @peer, meanwhile; -ENOBUFS, -ENOMEM: nothing has changed.
 */
int peer_claim(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid, struct peer_claim *claim) must_check;

/* The same for an administrator, from a thread that may wait for all CPTs
 * (node_may_wait()): @cpt's peer known by @primary. Only those NIDs come with
 * @nid that have said themselves whose they are (provenance_part()). Also
 * -EAGAIN: others have changed something meanwhile; -ENOENT: there is no such
 * peer here. */
int peer_claim_wait(struct lnet *node, const struct ulnet_nid *primary,
		    const struct ulnet_nid *nid) must_check;

/* Is no claim under way that began on @cpt? */
bool peer_claims_idle(const struct lnet_cpt *cpt);

#endif
