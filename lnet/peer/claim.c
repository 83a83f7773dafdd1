/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/claim.h"

#include <errno.h>

#include "base/mutation.h"
#include "lnet/peer/member.h"
#include "lnet/peer/word.h"

/* ---- on the CPT that claims ---- */

/* Of the NID that is claimed: a guest, for it is another CPT's still. */
static int claim_begin(struct peer_claim *c)
{
	c->guest = peer_get(c->cpt, &c->nid);
	if (!c->guest)
		return -ENOBUFS;
	prefer_init(&c->preferred);
	peer_hold(c->peer);
	c->peer->claims++;
	c->nnis = c->peer->nnis;
	c->primary = c->peer->primary;
	c->discovering = false;
	peer_cpt(c->cpt)->claims++;
	return 0;
}

/* The CPT that owned the NID has decided. */
static int claim_end(struct peer_claim *c)
{
	struct lnet_cpt *cpt = c->cpt;
	int rc = c->rc;

	if (!rc) {
		peer_place(cpt, c->guest);
		prefer_clear(&c->guest->preferred);
		c->guest->preferred = c->preferred;
		/* A peer of one NI here, from now on. It stays one if the peer
		 * has lost all its NIDs to another meanwhile: the primary NID
		 * is not that peer's any more. */
		c->guest->peer->primary = c->nid;
		rc = c->guest->place.state == PEER_HERE && peer_is_here(c->peer)
			     ? member_take(cpt, c->peer, c->guest)
			     : -EAGAIN;
	}
	peer_unref(cpt, c->guest);
	c->peer->claims--;
	peer_drop(cpt, c->peer);
	peer_cpt(cpt)->claims--;
	cpt_ended_one(cpt);
	return rc;
}

/* ---- on the CPT that owns the NID ---- */

/* Of two peers that claim each other's NIDs, does the one that is asked for
 * @c keep its own? */
static bool outranks(const struct lnet_peer *peer, const struct peer_claim *c)
{
	if (!peer->claims || MUTATE(unit_both_give))
		return false;
	if (peer->nnis != c->nnis)
		return peer->nnis > c->nnis;
	return lnet_nid_cmp(&peer->primary, &c->primary) < 0;
}

/* May the peer that has the NID be left by it? 0, or -EBUSY. */
static int may_leave(const struct lnet_peer *peer, const struct peer_claim *c)
{
	if (peer->configured || outranks(peer, c))
		return -EBUSY;
	if (peer->nnis > 1 && (peer->refs || peer->discovery))
		return -EBUSY;
	return 0;
}

/* A NID that somebody has named once, who does not have it any more: nobody was
 * ever heard or sent to there, and so there is nobody to be asked. */
static bool is_nobodys(const struct lnet_peer_ni *lpni)
{
	struct ulnet_counts sent = { 0 }, received = { 0 };

	if (lpni->peer->nnis > 1 || lpni->peer->refs || lpni->peer->discovery)
		return false;
	traffic_sum(&lpni->traffic.send, &sent);
	traffic_sum(&lpni->traffic.recv, &received);
	return !counts_total(&sent) && !counts_total(&received);
}

static int nid_give(struct lnet_cpt *cpt, struct peer_claim *c)
{
	const struct ulnet_nid *nid = &c->nid;
	struct directory_entry e = { .nid = *nid,
				     .primary = *nid,
				     .cpt = c->cpt->index };
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);
	int rc = 0;

	if (node_cpt_of(cpt->node, nid) != cpt->index)
		return -EAGAIN;
	if (lpni && !lnet_nid_is_any(&c->by) && !is_nobodys(lpni)) {
		if (!lpni->peer->configured)
			word_claimed(cpt, lpni, &c->by);
		return -EPERM;
	}
	if (lpni)
		rc = may_leave(lpni->peer, c);
	if (!rc && peer_is_connected(cpt, nid) && !MUTATE(unit_in_use))
		rc = -EBUSY;
	if (!rc && lpni)
		rc = member_split(cpt, lpni);
	if (!rc)
		rc = directory_change(&cpt->node->directory, &e, 1);
	if (rc || !lpni)
		return rc;
	/* The NID is to see the source that it has seen before. */
	c->preferred = lpni->preferred;
	prefer_init(&lpni->preferred);
	c->discovering = lpni->peer->discovery;
	peer_place(cpt, lpni);
	return 0;
}

/* The NID is another CPT's now, which knows that: what waits for it goes
 * there. */
static void nid_given(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	if (!lpni || lpni->place.state != PEER_GUEST)
		return;
	peer_ref(lpni);
	peer_cpt(cpt)->moved(cpt, lpni);
	peer_unref(cpt, lpni);
}

/* ---- by messages ---- */

static void claim_decided(struct work *w)
{
	struct peer_claim *c = container_of(w, struct peer_claim, work);

	c->done(c, claim_end(c));
}

static void claim_asked(struct work *w)
{
	struct peer_claim *c = container_of(w, struct peer_claim, work);
	struct lnet_cpt *cpt = node_cpt_here(c->cpt->node);
	const struct ulnet_nid nid = c->nid;
	int rc = nid_give(cpt, c);

	c->rc = rc;
	c->work.fn = claim_decided;
	/* Before what follows it there; and @c is the other CPT's then. */
	loop_post(c->cpt->loop, &c->work);
	if (!rc)
		nid_given(cpt, &nid);
}

int peer_claim(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid, struct peer_claim *claim)
{
	unsigned int owner = node_cpt_of(cpt->node, nid);
	int rc;

	if (owner == cpt->index)
		return member_add(cpt, peer, nid);
	claim->cpt = cpt;
	claim->peer = peer;
	claim->nid = *nid;
	rc = claim_begin(claim);
	if (rc)
		return rc;
	claim->work.fn = claim_asked;
	loop_post(cpt->node->loops[owner], &claim->work);
	return -EINPROGRESS;
}

bool peer_claims_idle(const struct lnet_cpt *cpt)
{
	return peer_cpt(cpt)->claims == 0;
}

/* ---- by waiting ---- */

struct claim_call {
	struct peer_claim claim;
	struct lnet_cpt *owner;
	const struct ulnet_nid *primary;
};

static int call_begin(void *arg)
{
	struct claim_call *call = arg;
	struct peer_claim *c = &call->claim;
	struct lnet_peer_ni *lpni = peer_find(c->cpt, call->primary);

	if (!lpni || lpni->place.state != PEER_HERE)
		return lpni ? -EAGAIN : -ENOENT;
	c->peer = lpni->peer;
	if (call->owner == c->cpt)
		return member_add(c->cpt, c->peer, &c->nid);
	return claim_begin(c);
}

static int call_ask(void *arg)
{
	struct claim_call *call = arg;
	int rc = nid_give(call->owner, &call->claim);

	if (!rc)
		nid_given(call->owner, &call->claim.nid);
	return rc;
}

static int call_end(void *arg)
{
	return claim_end(&((struct claim_call *)arg)->claim);
}

int peer_claim_wait(struct lnet *node, const struct ulnet_nid *primary,
		    const struct ulnet_nid *nid)
{
	struct lnet_cpt *cpt = node->cpt[node_cpt_of(node, primary)];
	struct claim_call call = {
		.claim = { .cpt = cpt, .nid = *nid, .by = LNET_NID_ANY },
		.owner = node->cpt[node_cpt_of(node, nid)],
		.primary = primary,
	};
	int rc = loop_call(cpt->loop, call_begin, &call);

	if (rc || call.owner == cpt)
		return rc;
	call.claim.rc = loop_call(call.owner->loop, call_ask, &call);
	return loop_call(cpt->loop, call_end, &call);
}
