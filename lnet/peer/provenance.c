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

/* Returns how many messages have come from @peer, which has one NI. */
static uint64_t heard_from(const struct lnet_peer *peer)
{
	struct ulnet_counts received = { 0 };

	traffic_sum(&peer_next_ni(peer, NULL)->traffic.recv, &received);
	return counts_total(&received);
}

/* Must a peer that was abandoned be kept after all? */
static bool is_known_now(const struct lnet_peer *peer)
{
	return peer->nnis != 1 || peer->configured ||
	       peer_next_ni(peer, NULL)->used || heard_from(peer) > peer->heard;
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

/* Most abandoned peers that are forgotten in one call: more than one
 * announcement can name. */
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
	if (likely(!peer->abandoned))
		return;
	peer->abandoned = false;
	peer_cpt(cpt)->nabandoned--;
	peer_rests(peer, &peer_cpt(cpt)->idle);
}

bool provenance_forget_abandoned(struct lnet_cpt *cpt)
{
	struct lnet_peer *peer, *next;
	unsigned int n = 0;
	bool any = false;

	list_for_each_entry_safe (peer, next, &peer_cpt(cpt)->abandoned, idle) {
		struct ulnet_nid by = peer_next_ni(peer, NULL)->claimed_by;

		if (n++ == FORGET_ABANDONED)
			break;
		if (is_known_now(peer)) {
			provenance_keep(cpt, peer);
		} else if (!peer_forget(cpt, peer)) {
			tell_claimant(cpt, &by);
			any = true;
		}
	}
	return any;
}

/* Abandoned peers that are in use are looked at after a second, and again after
 * pauses that double, up to this one: in all for about two minutes. What is in
 * use for longer is forgotten when the next peer is abandoned, or when room is
 * needed. */
#define FORGET_PAUSE_MAX (64 * NSEC_PER_SEC)

static void forget_later(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	if (cpt->closing || !pc->nabandoned ||
	    pc->forget_pause > FORGET_PAUSE_MAX)
		return;
	loop_timer_arm(cpt->loop, &pc->forget,
		       loop_now(cpt->loop) + pc->forget_pause);
	pc->forget_pause *= 2;
}

static void forget_now(struct timer *t)
{
	struct lnet_cpt *cpt =
		&container_of(t, struct peer_cpt, forget)->portal.cpt;

	(void)provenance_forget_abandoned(cpt);
	forget_later(cpt);
}

void provenance_abandon(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			const struct lnet_peer *by)
{
	struct peer_cpt *pc = peer_cpt(cpt);
	struct lnet_peer *peer = lpni->peer;
	const struct lnet_peer_ni *claimant;

	if (peer->configured || peer->abandoned || lpni->used)
		return;
	/* The last NI that has named @lpni may still be right, unless it is of
	 * the peer @by. */
	claimant = peer_find(cpt, &lpni->claimed_by);
	if (claimant && claimant->peer == by)
		lpni->claimed_by = LNET_NID_ANY;
	peer->abandoned = true;
	peer->heard = heard_from(peer);
	pc->nabandoned++;
	peer_rests(peer, &pc->abandoned);
	(void)provenance_forget_abandoned(cpt);
	provenance_stop(cpt);
	pc->forget_pause = NSEC_PER_SEC;
	forget_later(cpt);
}

void provenance_init(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	list_init(&pc->abandoned);
	timer_init(&pc->forget, forget_now);
}

void provenance_stop(struct lnet_cpt *cpt)
{
	struct timer *forget = &peer_cpt(cpt)->forget;

	if (timer_armed(forget))
		loop_timer_cancel(cpt->loop, forget);
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
