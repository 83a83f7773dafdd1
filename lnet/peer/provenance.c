/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/provenance.h"

#include "lnet/peer/member.h"

const struct fsm_state peer_provenances[PEER_PROVENANCES] = {
	[PEER_VERIFIED] = { "own",
			    FSM_TO(PEER_DISPUTED) | FSM_TO(PEER_UNVERIFIED) },
	[PEER_DISPUTED] = { "claimed", FSM_TO(PEER_VERIFIED) },
	[PEER_UNVERIFIED] = { "hearsay",
			      FSM_TO(PEER_VERIFIED) | FSM_TO(PEER_QUESTIONED) },
	[PEER_QUESTIONED] = { "doubted",
			      FSM_TO(PEER_VERIFIED) | FSM_TO(PEER_UNVERIFIED) },
};

void provenance_verify(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (provenance_is_unverified(lpni)) {
		list_del(&lpni->unverified);
		peer_cpt(cpt)->nunverified--;
	}
	if (lpni->provenance.state != PEER_VERIFIED)
		fsm_move(&lpni->provenance, peer_provenances, PEER_VERIFIED);
}

void provenance_unverify(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			 const struct ulnet_nid *by)
{
	provenance_verify(cpt, lpni);
	fsm_move(&lpni->provenance, peer_provenances, PEER_UNVERIFIED);
	lpni->claimed_by = *by;
	list_add_tail(&peer_cpt(cpt)->unverified, &lpni->unverified);
	peer_cpt(cpt)->nunverified++;
}

void provenance_question(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	(void)cpt;
	if (lpni->provenance.state == PEER_VERIFIED)
		fsm_move(&lpni->provenance, peer_provenances, PEER_DISPUTED);
	else if (lpni->provenance.state == PEER_UNVERIFIED)
		fsm_move(&lpni->provenance, peer_provenances, PEER_QUESTIONED);
}

void provenance_unquestion(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	if (lpni->provenance.state == PEER_DISPUTED)
		provenance_verify(cpt, lpni);
	else if (lpni->provenance.state == PEER_QUESTIONED)
		fsm_move(&lpni->provenance, peer_provenances, PEER_UNVERIFIED);
}

void provenance_dispute(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			const struct ulnet_nid *by)
{
	lpni->claimed_by = *by;
	peer_cpt(cpt)->question(cpt, lpni);
}

/* Returns an NI of @peer that is unverified, or NULL. */
static struct lnet_peer_ni *unverified_of(const struct lnet_peer *peer)
{
	struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		if (provenance_is_unverified(lpni))
			return lpni;
	return NULL;
}

int provenance_part(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct lnet_peer_ni *other;
	int rc = 0;

	if (provenance_is_unverified(lpni))
		rc = member_split(cpt, lpni);
	while (!rc && (other = unverified_of(lpni->peer)))
		rc = member_split(cpt, other);
	return rc;
}

/* How many unverified NIs are tried until one is found that is not in use. */
#define FORGET_ATTEMPTS 16

/* Has anything come from the peer, or is it to be kept for another reason? */
static bool is_known_now(const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *lpni = peer_next_ni(peer, NULL);
	struct ulnet_counts received = { 0 };

	if (peer->nnis != 1 || peer->configured || lpni->used)
		return true;
	traffic_sum(&lpni->traffic.recv, &received);
	return counts_total(&received) != 0;
}

/* Called when an NI is forgotten, without having been asked to which peer it
 * belongs. NI @by was the last to name it, perhaps rightly: so the peer of @by
 * is discovered again when it is used. If another CPT owns @by, that CPT claims
 * the NI again by itself. */
static void tell_claimant(struct lnet_cpt *cpt, const struct ulnet_nid *by)
{
	struct lnet_peer_ni *claimant =
		lnet_nid_is_any(by) ? NULL : peer_find(cpt, by);

	if (claimant)
		claimant->peer->merged = false;
}

/* How many are forgotten in one call, more than one announcement can name. */
#define FORGET_ABANDONED 256

static void peer_rests(struct lnet_peer *peer, struct list *list)
{
	peer->rest = list;
	if (peer->refs)
		return;
	list_del(&peer->idle);
	list_add_tail(list, &peer->idle);
}

void provenance_keep(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	if (likely(!peer->hearsay))
		return;
	peer->hearsay = false;
	peer_rests(peer, &peer_cpt(cpt)->idle);
}

bool provenance_forget_abandoned(struct lnet_cpt *cpt)
{
	struct list *list = &peer_cpt(cpt)->hearsay;
	bool any = false;

	for (unsigned int i = 0; i < FORGET_ABANDONED && !list_empty(list);
	     i++) {
		struct lnet_peer *peer =
			list_first(list, struct lnet_peer, idle);
		struct ulnet_nid by = peer_next_ni(peer, NULL)->claimed_by;

		if (is_known_now(peer) || peer_forget(cpt, peer)) {
			provenance_keep(cpt, peer);
		} else {
			tell_claimant(cpt, &by);
			any = true;
		}
	}
	return any;
}

void provenance_abandon(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct lnet_peer *peer = lpni->peer;

	if (peer->configured || peer->hearsay)
		return;
	peer->hearsay = true;
	peer_rests(peer, &peer_cpt(cpt)->hearsay);
	if (!peer->refs)
		(void)provenance_forget_abandoned(cpt);
}

bool provenance_forget_one(struct lnet_cpt *cpt)
{
	struct list *unverified = &peer_cpt(cpt)->unverified;

	for (unsigned int i = 0; i < FORGET_ATTEMPTS && !list_empty(unverified);
	     i++) {
		struct lnet_peer_ni *lpni =
			list_first(unverified, struct lnet_peer_ni, unverified);

		list_del(&lpni->unverified);
		list_add_tail(unverified, &lpni->unverified);
		if (!lpni->refs && !member_split(cpt, lpni) &&
		    lpni->peer->refs == 0 && !peer_forget(cpt, lpni->peer))
			return true;
	}
	return false;
}
