/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that an administrator configures: lnet_peer_add(3). */
#include <errno.h>
#include <stdlib.h>

#include "lnet/net/net.h"
#include "lnet/peer/claim.h"
#include "lnet/peer/member.h"
#include "lnet/peer/provenance.h"

/* How often a step is tried again if others change peers meanwhile. */
#define TRIES_MAX 100

struct peer_call {
	struct lnet_cpt *cpt; /* the CPT that owns the peer */
	const struct ulnet_nid *primary;
	const struct ulnet_nid *nid;  /* the NID to be added or deleted */
	const struct ulnet_nid *nids; /* all NIDs, the primary one first */
	unsigned int n;
	bool multi_rail, was_multi_rail;
	bool made; /* the peer was not configured before this call */
	/* array: this call has added @nids[i] to the peer */
	bool *added;
};

static struct peer_call call_of(struct lnet *node,
				const struct ulnet_nid *primary)
{
	return (struct peer_call){ .cpt = node->cpt[node_cpt_of(node, primary)],
				   .primary = primary };
}

/* Returns the configured peer, or NULL. */
static struct lnet_peer *configured(const struct peer_call *c)
{
	const struct lnet_peer_ni *lpni = peer_find(c->cpt, c->primary);

	return lpni && lpni->peer->configured &&
			       lnet_nid_eq(&lpni->peer->primary, c->primary)
		       ? lpni->peer
		       : NULL;
}

/* ---- trying again ---- */

static int has_turned(struct lnet_cpt *cpt, void *arg)
{
	(void)cpt;
	(void)arg;
	return 0;
}

/* A NID that moves to another CPT is sent there by a message, in the turn in
 * which the directory is changed. The message has arrived when each CPT has
 * ended its present turn, and has made one more. If the result of a step is
 * -EAGAIN, waits for that, and returns true: the caller must try the step
 * again. Does not wait in the simulator, where turns are made by lnet_sim_run()
 * only. */
static bool step_again(struct lnet *node, unsigned int *tries, int *rc)
{
	if (*rc != -EAGAIN || ++*tries == TRIES_MAX)
		return false;
	*rc = node_each_cpt(node, has_turned, NULL);
	return !*rc;
}

/* ---- adding ---- */

static int peer_configure(struct peer_call *c, struct lnet_peer *peer)
{
	int rc;

	c->made = !peer->configured;
	if (!c->made && !lnet_nid_eq(&peer->primary, c->primary))
		return -EEXIST;
	rc = peer_set_primary(c->cpt, peer, c->primary);
	if (rc)
		return rc;
	peer_set_configured(c->cpt, peer, true);
	c->was_multi_rail = peer->multi_rail;
	peer->multi_rail = c->multi_rail;
	cpt_topology_changed(c->cpt);
	return 0;
}

static int configured_add_peer(void *arg)
{
	struct peer_call *c = arg;
	struct lnet_peer_ni *lpni;
	int rc;

	for (unsigned int i = 0; i < c->n; i++)
		if (config_is_mine(c->cpt->config, &c->nids[i]))
			return -EINVAL;
	lpni = peer_get(c->cpt, c->primary);
	if (!lpni)
		return -ENOBUFS;
	rc = lpni->place.state == PEER_HERE ? provenance_part(c->cpt, lpni)
					    : -EAGAIN;
	if (!rc)
		rc = peer_configure(c, lpni->peer);
	peer_unref(lpni);
	return rc;
}

/* Takes c->nid from another peer of this CPT, unless that peer is configured.
 */
static int configured_take_nid(void *arg)
{
	const struct peer_call *c = arg;
	struct lnet_peer *peer = configured(c);
	struct lnet_peer_ni *lpni = peer_find(c->cpt, c->nid);

	if (!peer || !lpni || lpni->place.state != PEER_HERE)
		return -EAGAIN;
	if (lpni->peer != peer && lpni->peer->configured)
		return -EEXIST;
	return member_take(c->cpt, peer, lpni);
}

static int configured_add_nid(struct peer_call *c)
{
	struct lnet *node = c->cpt->node;
	unsigned int tries = 0;
	int rc;

	do {
		rc = peer_claim_wait(node, c->primary, c->nid);
		if (rc == -EEXIST)
			rc = loop_call(c->cpt->loop, configured_take_nid, c);
	} while (step_again(node, &tries, &rc));
	return rc;
}

/* Makes a peer of the primary NID on the CPT that owns the NID; the peer stays
 * there. */
static int configured_begin(struct peer_call *c)
{
	struct lnet *node = c->cpt->node;
	unsigned int tries = 0;
	int rc;

	do {
		c->cpt = node->cpt[node_cpt_of(node, c->primary)];
		rc = loop_call(c->cpt->loop, configured_add_peer, c);
	} while (step_again(node, &tries, &rc));
	return rc;
}

/* Does a configured peer have c->nid, other than the peer of the call? */
static int nid_taken(void *arg)
{
	const struct peer_call *c = arg;
	const struct lnet_peer_ni *lpni = peer_find(c->cpt, c->nid);

	return lpni && lpni->place.state == PEER_HERE &&
	       lpni->peer->configured &&
	       !lnet_nid_eq(&lpni->peer->primary, c->primary);
}

/* Fails before anything is changed if other configured peers have NIDs of the
 * call. */
static int nids_check(struct peer_call *c)
{
	struct lnet *node = c->cpt->node;
	int taken = 0;

	for (unsigned int i = 1; !taken && i < c->n; i++) {
		c->nid = &c->nids[i];
		/* The owner is looked up only once: should the NID move to
		 * another CPT, adding it finds out. */
		c->cpt = node->cpt[node_cpt_of(node, c->nid)];
		taken = loop_call(c->cpt->loop, nid_taken, c);
	}
	return taken > 0 ? -EEXIST : taken;
}

/* ---- deleting ---- */

/* Forgets a peer that is known only because it was configured: it is idle, owes
 * no answer, and has no connections. Other peers stay, and are forgotten as all
 * peers are. */
static void forget_unused(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	const struct lnet_peer_ni *lpni;
	int rc;

	if (peer->refs || peer->asked_until > loop_now(cpt->loop))
		return;
	peer_for_each_ni (lpni, peer)
		if (peer_is_connected(cpt, &lpni->nid))
			return;
	rc = peer_forget(cpt, peer);
	(void)rc; /* a peer that could not be forgotten stays, too */
}

static int nid_split(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	int rc = member_split(cpt, lpni);

	if (!rc)
		forget_unused(cpt, lpni->peer);
	return rc;
}

/* Deletes all of c->nids from the peer, or none of them if one of them is not
 * the peer's. */
static int del_nids(void *arg)
{
	const struct peer_call *c = arg;
	struct lnet_peer *peer = configured(c);
	int rc = peer ? 0 : -ENOENT;

	for (unsigned int i = 0; !rc && i < c->n; i++) {
		if (!peer_member(c->cpt, peer, &c->nids[i]))
			rc = -ENOENT;
		else if (lnet_nid_eq(&c->nids[i], &peer->primary))
			rc = -EINVAL;
	}
	for (unsigned int i = 0; !rc && i < c->n; i++) {
		struct lnet_peer_ni *lpni =
			peer_member(c->cpt, peer, &c->nids[i]);

		if (lpni) /* @lpni is NULL if the list has the NID twice */
			rc = nid_split(c->cpt, lpni);
	}
	return rc;
}

static int del_peer(void *arg)
{
	const struct peer_call *c = arg;
	struct lnet_peer *peer = configured(c);
	struct lnet_peer_ni *lpni;
	int rc;

	if (!peer)
		return -ENOENT;
	while (peer->nnis > 1) {
		lpni = peer_next_ni(peer, NULL);
		if (lnet_nid_eq(&lpni->nid, &peer->primary))
			lpni = peer_next_ni(peer, lpni);
		rc = nid_split(c->cpt, lpni);
		if (rc)
			return rc;
	}
	peer->multi_rail = false;
	cpt_topology_changed(c->cpt);
	peer_set_configured(c->cpt, peer, false);
	forget_unused(c->cpt, peer);
	return 0;
}

/* Takes back what a call has added before it failed. */
static int configured_undo(void *arg)
{
	const struct peer_call *c = arg;
	struct lnet_peer *peer = configured(c);
	struct lnet_peer_ni *lpni;
	int rc = 0;

	if (c->made)
		return del_peer(arg);
	for (unsigned int i = 1; peer && !rc && i < c->n; i++) {
		lpni = peer_member(c->cpt, peer, &c->nids[i]);
		if (c->added[i] && lpni)
			rc = nid_split(c->cpt, lpni);
	}
	if (!peer || peer->multi_rail == c->was_multi_rail)
		return rc;
	peer->multi_rail = c->was_multi_rail;
	cpt_topology_changed(c->cpt);
	return rc;
}

/* Called on all CPTs, since peers on any of them may have named the NIDs. */
static int nids_freed(struct lnet_cpt *cpt, void *arg)
{
	(void)arg;
	peer_cpt(cpt)->freed(cpt);
	return 0;
}

/* ---- the API ---- */

static bool nids_are_valid(const struct ulnet_nid *nids, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (lnet_nid_is_any(&nids[i]) || lnet_nid_is_lo(&nids[i]))
			return false;
	return true;
}

static int peer_add_all(struct peer_call *c)
{
	struct directory *d = &c->cpt->node->directory;
	bool begun;
	int rc = nids_check(c);

	if (!rc)
		rc = configured_begin(c);
	begun = !rc;
	for (unsigned int i = 1; !rc && i < c->n; i++) {
		c->nid = &c->nids[i];
		if (directory_same(d, c->nids, c->nid))
			continue;
		rc = configured_add_nid(c);
		c->added[i] = !rc;
	}
	if (rc && begun) {
		loop_call(c->cpt->loop, configured_undo, c);
		(void)node_each_cpt(c->cpt->node, nids_freed, NULL);
	}
	return rc;
}

int lnet_peer_add(struct lnet *node, const struct ulnet_nid *nids,
		  unsigned int n, bool multi_rail)
{
	struct peer_call c;
	int rc;

	if (!n || !nids_are_valid(nids, n))
		return -EINVAL;
	if (!node_may_wait(node))
		return -EXDEV;
	c = call_of(node, nids);
	c.nids = nids;
	c.n = n;
	c.multi_rail = multi_rail;
	c.added = calloc(n, sizeof(*c.added));
	if (!c.added)
		return -ENOMEM;
	rc = peer_add_all(&c);
	/* No answer about a name moves it to another port. */
	for (unsigned int i = 0; !rc && i < n; i++)
		net_nid_given(node, &nids[i]);
	free(c.added);
	return rc;
}

int lnet_peer_del(struct lnet *node, const struct ulnet_nid *primary,
		  const struct ulnet_nid *nids, unsigned int n)
{
	struct peer_call c;
	int rc;

	if (!node_may_wait(node))
		return -EXDEV;
	c = call_of(node, primary);
	c.nids = nids;
	c.n = n;
	rc = loop_call(c.cpt->loop, n ? del_nids : del_peer, &c);
	if (!rc)
		(void)node_each_cpt(node, nids_freed, NULL);
	return rc;
}
