/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/claim.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/peer/member.h"
#include "lnet/peer/provenance.h"

/* ---- which NIDs ---- */

/* Adds @nid to the claim. Returns 1: it is new; 0: it is there already;
 * -ENOMEM. */
static int claim_name(struct peer_claim *c, const struct ulnet_nid *nid)
{
	struct ulnet_nid *names;
	struct claim_nid *nids;

	for (uint32_t i = 0; i < c->n; i++)
		if (lnet_nid_eq(&c->names[i], nid))
			return 0;
	names = realloc(c->names, (c->n + 1) * sizeof(*names));
	if (!names)
		return -ENOMEM;
	c->names = names;
	nids = realloc(c->nids, (c->n + 1) * sizeof(*nids));
	if (!nids)
		return -ENOMEM;
	c->nids = nids;
	names[c->n] = *nid;
	nids[c->n++] = (struct claim_nid){ .by = LNET_NID_ANY,
					   .preferred = LNET_NID_ANY,
					   .health = LNET_HEALTH_MAX };
	return 1;
}

/* Adds all NIDs of @peer to the claim. Returns 0: they are all there already;
 * -EXDEV: some are new, and have no alias yet; -ENOMEM. */
static int claim_name_all(struct peer_claim *c, const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *lpni;
	uint32_t n = c->n;
	int rc = 0;

	peer_for_each_ni (lpni, peer)
		if (rc >= 0)
			rc = claim_name(c, &lpni->nid);
	if (rc < 0)
		return rc;
	return c->n > n ? -EXDEV : 0;
}

/* ---- on the CPT that claims ---- */

/* Makes an alias for each NID of the claim; another CPT still owns the NIDs. */
static int claim_make_room(struct peer_claim *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct claim_nid *n = &c->nids[i];

		if (n->alias)
			continue;
		n->alias = peer_get(c->cpt, &c->names[i]);
		if (!n->alias)
			return -ENOBUFS;
		n->alias->pending_claims++;
	}
	return 0;
}

static void claim_free(struct peer_claim *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct lnet_peer_ni *alias = c->nids[i].alias;

		if (!alias)
			continue;
		alias->pending_claims--;
		peer_place(c->cpt, alias);
		peer_unref(alias);
	}
	free(c->names);
	free(c->nids);
	c->n = 0;
}

static int claim_begin(struct peer_claim *c)
{
	int rc;

	c->names = NULL;
	c->nids = NULL;
	c->n = 0;
	rc = claim_name(c, &c->nid);
	if (rc > 0)
		rc = claim_make_room(c);
	if (rc) {
		claim_free(c);
		return rc;
	}
	peer_hold(c->peer);
	c->peer->claims++;
	c->nnis = c->peer->nnis;
	c->primary = c->peer->primary;
	c->discovering = false;
	c->merged = false;
	c->asked_until = 0;
	peer_cpt(c->cpt)->claims++;
	return 0;
}

/* The NID of @n comes to @peer, together with what the old owner knew of it. */
static void alias_arrives(struct peer_claim *c, struct claim_nid *n,
			  struct lnet_peer *peer)
{
	struct lnet_peer_ni *alias = n->alias;

	peer_arrive(alias);
	alias->preferred = n->preferred;
	alias->health = n->health;
	alias->down = n->down;
	alias->used |= n->used;
	if (alias->peer != peer)
		peer_absorb(c->cpt, peer, alias->peer);
	if (!lnet_nid_is_any(&n->by))
		provenance_unverify(c->cpt, alias, &n->by);
}

/* The NIDs that were given become one peer on this CPT, too, and c->peer
 * absorbs that peer. If c->peer has lost all its NIDs meanwhile, the NIDs
 * remain a peer of their own, whose primary NID is the one in the directory. */
static int claim_take(struct peer_claim *c)
{
	struct lnet_peer *peer = c->nids[0].alias->peer;
	int rc;

	peer->primary = directory_primary(&c->cpt->node->directory, &c->nid);
	for (uint32_t i = 0; i < c->n; i++)
		if (c->nids[i].given)
			alias_arrives(c, &c->nids[i], peer);
	peer_asked(peer, c->asked_until);
	if (!peer_is_here(c->peer))
		return -EAGAIN;
	rc = peer_merge(c->cpt, c->peer, peer);
	if (!rc)
		peer_cpt(c->cpt)->came(c->cpt, c->peer);
	return rc;
}

/* The CPT that owned the NID has decided on the claim. */
static int claim_end(struct peer_claim *c)
{
	struct lnet_cpt *cpt = c->cpt;
	int rc = c->rc;

	if (!rc)
		rc = claim_take(c);
	claim_free(c);
	c->peer->claims--;
	peer_drop(cpt, c->peer);
	peer_cpt(cpt)->claims--;
	cpt_ended_one(cpt);
	return rc;
}

/* ---- on the CPT that owns the NID ---- */

/* @peer claims NIDs, too. Does it keep its own NIDs against the claim @c? */
static bool outranks(const struct lnet_peer *peer, const struct peer_claim *c)
{
	if (!peer->claims)
		return false;
	if (peer->nnis != c->nnis)
		return peer->nnis > c->nnis;
	return lnet_nid_cmp(&peer->primary, &c->primary) < 0;
}

/* Can the connections with all NIDs of @peer be moved? */
static bool can_move(const struct lnet_cpt *cpt, const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		if (!peer_can_move(cpt, &lpni->nid))
			return false;
	return true;
}

/* Is @lpni a remainder of a peer that once named its NID, and to which nothing
 * was ever sent, and from which nothing was received? Then it need not be
 * asked. */
static bool is_unused(const struct lnet_peer_ni *lpni)
{
	struct ulnet_counts sent = { 0 }, received = { 0 };

	if (lpni->peer->nnis > 1 || lpni->peer->refs || lpni->peer->discovery)
		return false;
	traffic_sum(&lpni->traffic.send, &sent);
	traffic_sum(&lpni->traffic.recv, &received);
	return !counts_total(&sent) && !counts_total(&received);
}

/* Records what is known of NID @i, for the new owner. */
static void claim_give(struct lnet_cpt *cpt, struct peer_claim *c, uint32_t i,
		       const struct lnet_peer *peer)
{
	struct lnet_peer_ni *lpni = peer_member(cpt, peer, &c->names[i]);
	struct claim_nid *n = &c->nids[i];

	if (!lpni)
		return;
	n->given = true;
	n->health = lpni->health;
	n->down = lpni->down;
	n->preferred = lpni->preferred;
	n->used = lpni->used;
	lpni->preferred = (struct ulnet_nid)LNET_NID_ANY;
	lpni->used = false;
	if (provenance_is_unverified(lpni))
		n->by = lpni->claimed_by;
}

/* Undoes claim_give(). */
static void claim_keep(struct lnet_cpt *cpt, struct peer_claim *c, uint32_t i)
{
	struct claim_nid *n = &c->nids[i];

	if (n->given) {
		struct lnet_peer_ni *lpni = peer_find(cpt, &c->names[i]);

		lpni->preferred = n->preferred;
		lpni->used = n->used;
	}
	n->given = false;
}

/* Gives the peer of @lpni away, together with all its NIDs. */
static int peer_give(struct lnet_cpt *cpt, struct peer_claim *c,
		     struct lnet_peer_ni *lpni)
{
	struct lnet_peer *peer = lpni->peer;
	int rc = claim_name_all(c, peer);

	if (rc)
		return rc;
	c->discovering = peer->discovery;
	c->merged = peer->merged;
	c->sequence = peer->sequence;
	c->pid = peer->pid;
	c->asked_until = peer->asked_until;
	peer_hold(peer);
	for (uint32_t i = 0; i < c->n; i++)
		claim_give(cpt, c, i, peer);
	rc = peer_leave(cpt, lpni, c->cpt->index);
	if (rc)
		for (uint32_t i = 0; i < c->n; i++)
			claim_keep(cpt, c, i);
	peer_drop(cpt, peer);
	return rc;
}

/* Gives c->nid away, which this CPT does not know. */
static int stranger_give(struct lnet_cpt *cpt, struct peer_claim *c)
{
	struct directory_entry e = { .nid = c->nid,
				     .primary = c->nid,
				     .cpt = c->cpt->index };

	if (!peer_can_move(cpt, &c->nid))
		return -EBUSY;
	c->nids[0].given = true;
	return directory_change(&cpt->node->directory, &e, 1);
}

/* Gives c->nid away, together with its peer. Returns -EXDEV if the claim needs
 * more aliases; otherwise as peer_claim(). */
static int nid_give(struct lnet_cpt *cpt, struct peer_claim *c)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, &c->nid);

	/* The NID may have moved, to the CPT that claims or to another one. */
	if (node_cpt_of(cpt->node, &c->nid) != cpt->index || cpt == c->cpt)
		return -EAGAIN;
	if (!lpni)
		return stranger_give(cpt, c);
	/* The NID was given to this CPT, but has not arrived here yet. */
	if (lpni->place.state != PEER_HERE)
		return -EAGAIN;
	if (!lnet_nid_is_any(&c->by) && !is_unused(lpni)) {
		if (!lpni->peer->configured)
			provenance_dispute(cpt, lpni, &c->by);
		return -EPERM;
	}
	if (lpni->peer->configured || outranks(lpni->peer, c) ||
	    !can_move(cpt, lpni->peer))
		return -EBUSY;
	return peer_give(cpt, c, lpni);
}

/* @nid belongs to another CPT now, and that CPT knows it: messages that wait
 * for @nid on this CPT are passed to it. */
static void nid_given(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	if (!lpni || lpni->place.state != PEER_ALIAS)
		return;
	peer_ref(lpni);
	peer_cpt(cpt)->moved(cpt, lpni);
	peer_unref(lpni);
}

/* Takes c->names, before @c goes back to the CPT that claims. */
static struct ulnet_nid *names_take(struct peer_claim *c, uint32_t *n)
{
	struct ulnet_nid *names = c->names;

	c->names = NULL;
	*n = c->n;
	return names;
}

/* Moves the connections, before messages are passed on and would open new ones.
 */
static void connections_go(struct lnet_cpt *cpt, const struct ulnet_nid *names,
			   uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (node_cpt_of(cpt->node, &names[i]) != cpt->index)
			peer_move(cpt, &names[i]);
}

static void nids_given(struct lnet_cpt *cpt, struct ulnet_nid *names,
		       uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		nid_given(cpt, &names[i]);
	free(names);
}

/* ---- by the CPT that claims ---- */

/* @nid belonged to @cpt just now, but may have moved to another CPT since. */
static int claim_own(struct lnet_cpt *cpt, struct lnet_peer *peer,
		     const struct ulnet_nid *nid)
{
	int rc = member_add(cpt, peer, nid);

	return rc == -EXDEV ? -EAGAIN : rc;
}

/* ---- by messages ---- */

static void claim_asked(struct work *w);

static void claim_ask(struct peer_claim *c)
{
	c->work.fn = claim_asked;
	loop_post(c->cpt->node->loops[node_cpt_of(c->cpt->node, &c->nid)],
		  &c->work);
}

static void claim_decided(struct work *w)
{
	struct peer_claim *c = container_of(w, struct peer_claim, work);

	if (c->rc == -EXDEV) {
		c->rc = claim_make_room(c);
		if (!c->rc) {
			claim_ask(c);
			return;
		}
	}
	c->done(c, claim_end(c));
}

static void claim_asked(struct work *w)
{
	struct peer_claim *c = container_of(w, struct peer_claim, work);
	struct lnet_cpt *cpt = node_cpt_here(c->cpt->node);
	struct ulnet_nid *names = NULL;
	uint32_t n = 0;

	c->rc = nid_give(cpt, c);
	if (!c->rc)
		names = names_take(c, &n);
	connections_go(cpt, names, n);
	c->work.fn = claim_decided;
	/* Posted before the messages, so that the claim arrives first. After
	 * this, @c may be gone. */
	loop_post(c->cpt->loop, &c->work);
	nids_given(cpt, names, n);
}

int peer_claim(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid, struct peer_claim *claim)
{
	unsigned int owner = node_cpt_of(cpt->node, nid);
	int rc;

	if (owner == cpt->index)
		return claim_own(cpt, peer, nid);
	claim->cpt = cpt;
	claim->peer = peer;
	claim->nid = *nid;
	rc = claim_begin(claim);
	if (rc)
		return rc;
	claim_ask(claim);
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

static int call_find(struct claim_call *call)
{
	struct peer_claim *c = &call->claim;
	struct lnet_peer_ni *lpni = peer_find(c->cpt, call->primary);

	if (!lpni || lpni->place.state != PEER_HERE)
		return lpni ? -EAGAIN : -ENOENT;
	c->peer = lpni->peer;
	return 0;
}

/* Makes c->nid, which the peer's own CPT owns, one of the peer's NIDs. */
static int claim_call_add(void *arg)
{
	struct claim_call *call = arg;
	struct peer_claim *c = &call->claim;
	int rc = call_find(call);

	return rc ? rc : claim_own(c->cpt, c->peer, &c->nid);
}

static int call_begin(void *arg)
{
	struct claim_call *call = arg;
	int rc = call_find(call);

	return rc ? rc : claim_begin(&call->claim);
}

/* Separates NIDs of which only another NID has said that they belong to the
 * peer. */
static int call_part(const struct claim_call *call)
{
	struct lnet_peer_ni *lpni = peer_find(call->owner, &call->claim.nid);

	if (!lpni || lpni->place.state != PEER_HERE || lpni->peer->configured)
		return 0;
	return provenance_part(call->owner, lpni);
}

static int claim_call_ask(void *arg)
{
	struct claim_call *call = arg;
	struct ulnet_nid *names;
	uint32_t n;
	int rc = call_part(call);

	if (!rc)
		rc = nid_give(call->owner, &call->claim);
	if (rc)
		return rc;
	names = names_take(&call->claim, &n);
	connections_go(call->owner, names, n);
	nids_given(call->owner, names, n);
	return 0;
}

static int call_make_room(void *arg)
{
	return claim_make_room(&((struct claim_call *)arg)->claim);
}

static int claim_call_end(void *arg)
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
	int rc;

	if (call.owner == cpt)
		return loop_call(cpt->loop, claim_call_add, &call);
	rc = loop_call(cpt->loop, call_begin, &call);
	if (rc)
		return rc;
	do {
		rc = loop_call(call.owner->loop, claim_call_ask, &call);
		if (rc == -EXDEV)
			rc = loop_call(cpt->loop, call_make_room, &call)
				     ? -ENOBUFS
				     : -EXDEV;
	} while (rc == -EXDEV);
	call.claim.rc = rc;
	return loop_call(cpt->loop, claim_call_end, &call);
}
