/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claims: how a peer gets a NID that another CPT owns. A peer belongs, with all
 * its NIDs, to one CPT. So the other CPT has to give the NID away, even while
 * it is in use, together with all other NIDs of the peer that has it there.
 * (These NIDs must stay in one peer at all times: a request to one of them may
 * be answered by another, and a match entry for one of them matches all.)
 *
 * The owner keeps the NIDs if
 *	- an administrator has configured the peer that has them,
 *	- an LND has connections with one of them that cannot move now (lnd.h),
 *	- or that peer claims NIDs, too, and has more NIDs than the peer that
 *	  claims, or as many and the smaller primary NID. So if two peers claim
 *	  each other's NIDs, one of them gives way.
 * A NID that the owner has kept may be claimed again later.
 *
 * Connections move with the NIDs. The old owner keeps an alias (peer.h) of each
 * NID, for messages that its LNDs are still sending or receiving; it passes
 * messages that wait, and all later ones, to the new owner.
 */
#ifndef LNET_CLAIM_H
#define LNET_CLAIM_H

#include "base/loop.h"
#include "lnet/peer/peer.h"

/* A NID that is claimed. */
struct claim_nid {
	/* the NI that has said to which peer the NID belongs; LNET_NID_ANY: the
	 * NID itself has */
	struct ulnet_nid by;
	/* the alias on the CPT that claims; NULL: not made yet */
	struct lnet_peer_ni *alias;
	bool given;
	/* If @given: what the old owner knew of the NID. */
	struct ulnet_nid preferred;
	int32_t health;
	bool down, used;
};

/* A claim. The caller allocates it, sets @done and @by, and must not touch it
 * until done() is called. */
struct peer_claim {
	/* Called on the CPT that claims, after peer_claim() has returned. @rc:
	 * 0, or an error of peer_claim(). */
	void (*done)(struct peer_claim *claim, int rc);
	struct lnet_cpt *cpt; /* the CPT that claims */
	struct lnet_peer *peer;
	struct ulnet_nid nid;
	/* The NI that has said that @nid belongs to the peer; LNET_NID_ANY:
	 * @nid itself has, or an administrator. */
	struct ulnet_nid by;
	/* Result: the peer that had @nid was being discovered; it may have made
	 * an announcement that was not merged. */
	bool discovering;
	/* Result: fields of the peer that had @nid. */
	bool merged;
	uint32_t sequence, pid;
	/* lnet_peer.asked_until of the peer that had @nid */
	uint64_t asked_until;
	uint32_t nnis;		  /* number of NIDs of @peer when it claimed */
	struct ulnet_nid primary; /* primary NID of @peer when it claimed */
	/* The NIDs that are claimed; @nid is the first. The old owner takes
	 * over @names. */
	struct ulnet_nid *names;
	struct claim_nid *nids;
	uint32_t n; /* length of @names and of @nids */
	int rc;
	struct work work;
};

/*
 * Makes @nid one of the NIDs of @peer, which belongs to @cpt, and to which the
 * caller has a reference until the end. Returns -EINPROGRESS: @claim->done()
 * will be called with the result. Results are 0; -EEXIST: another peer of @cpt
 * has @nid (use member_take()); -EBUSY: the CPT that owns @nid keeps it;
 * -EPERM: it is configured there, or is now being asked whose it is
 * (provenance.h); -EAGAIN: meanwhile other peers have got @nid, or all NIDs of
 * @peer; -ENOBUFS, -ENOMEM: nothing has changed. A result may also be returned
 * at once.
 */
int peer_claim(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid,
	       struct peer_claim *claim) must_check;

/* As peer_claim(), for an administrator, and for the peer whose primary NID is
 * @primary, on a thread that may wait for all CPTs (node_may_wait()). Only
 * verified NIDs come together with @nid (provenance_part()). Also returns
 * -EAGAIN: others have changed something meanwhile; -ENOENT: there is no such
 * peer. */
int peer_claim_wait(struct lnet *node, const struct ulnet_nid *primary,
		    const struct ulnet_nid *nid) must_check;

/* Is no claim of @cpt under way? */
bool peer_claims_idle(const struct lnet_cpt *cpt);

#endif
