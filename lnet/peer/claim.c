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
		rc = c->guest->place.state == PEER_HERE && c->peer->nnis
			     ? member_take(cpt, c->peer, c->guest)
			     : -EAGAIN;
	}
	peer_unref(cpt, c->guest);
	peer_drop(cpt, c->peer);
	peer_cpt(cpt)->claims--;
	cpt_ended_one(cpt);
	return rc;
}

/* ---- on the CPT that owns the NID ---- */

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
	if (lpni && !lnet_nid_is_any(&c->by)) {
		if (!lpni->peer->configured)
			word_claimed(cpt, lpni, &c->by);
		return -EPERM;
	}
	/* Discovery works on peers of its own CPT. And what was sent to the NID
	 * may be under way by another one of its peer's, and is looked for on
	 * the CPT that owns the NID. */
	if (lpni && (lpni->peer->refs || lpni->peer->discovery))
		return -EBUSY;
	if (peer_is_connected(cpt, nid) && !MUTATE(unit_in_use))
		return -EBUSY;
	if (lpni)
		rc = member_split(cpt, lpni);
	if (!rc)
		rc = directory_change(&cpt->node->directory, &e, 1);
	if (rc || !lpni)
		return rc;
	/* The NID is to see the source that it has seen before. */
	c->preferred = lpni->preferred;
	prefer_init(&lpni->preferred);
	peer_place(cpt, lpni);
	return 0;
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

	c->rc = nid_give(node_cpt_here(c->cpt->node), c);
	c->work.fn = claim_decided;
	loop_post(c->cpt->loop, &c->work);
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

	return nid_give(call->owner, &call->claim);
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
