/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that an administrator configures: lnet_peer_add(3). */
#include <errno.h>

#include "lnet/net/net.h"
#include "lnet/peer/claim.h"
#include "lnet/peer/member.h"
#include "lnet/peer/provenance.h"

/* How often a claim is retried if others change peers meanwhile. */
#define CLAIMS_MAX 100

struct peer_call {
	struct lnet_cpt *cpt; /* the CPT that owns the peer */
	const struct ulnet_nid *primary;
	const struct ulnet_nid *nid;  /* the NID to be added or deleted */
	const struct ulnet_nid *nids; /* all NIDs, the primary one first */
	unsigned int n;
	bool multi_rail;
	bool made; /* the peer was not configured before this call */
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
	peer_unref(c->cpt, lpni);
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
	int rc = -EAGAIN;

	for (unsigned int i = 0; rc == -EAGAIN && i < CLAIMS_MAX; i++) {
		rc = peer_claim_wait(node, c->primary, c->nid);
		if (rc == -EEXIST)
			rc = loop_call(c->cpt->loop, configured_take_nid, c);
	}
	return rc;
}

/* ---- deleting ---- */

static int del_nid(void *arg)
{
	const struct peer_call *c = arg;
	struct lnet_peer *peer = configured(c);
	struct lnet_peer_ni *lpni =
		peer ? peer_member(c->cpt, peer, c->nid) : NULL;

	if (!lpni)
		return -ENOENT;
	if (lnet_nid_eq(c->nid, &peer->primary))
		return -EINVAL;
	return member_split(c->cpt, lpni);
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
		rc = member_split(c->cpt, lpni);
		if (rc)
			return rc;
	}
	peer->multi_rail = false;
	peer_set_configured(c->cpt, peer, false);
	cpt_topology_changed(c->cpt);
	return 0;
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

int lnet_peer_add(struct lnet *node, const struct ulnet_nid *nids,
		  unsigned int n, bool multi_rail)
{
	struct peer_call c;
	unsigned int i;
	int rc;

	if (!n || !nids_are_valid(nids, n))
		return -EINVAL;
	if (!node_may_wait(node))
		return -EXDEV;
	c = call_of(node, nids);
	c.nids = nids;
	c.n = n;
	c.multi_rail = multi_rail;
	rc = loop_call(c.cpt->loop, configured_add_peer, &c);
	for (i = 1; !rc && i < n; i++) {
		c.nid = &nids[i];
		if (!directory_same(&node->directory, nids, &nids[i]))
			rc = configured_add_nid(&c);
	}
	if (rc && i > 1 && c.made) {
		loop_call(c.cpt->loop, del_peer, &c);
		(void)node_each_cpt(node, nids_freed, NULL);
	}
	return rc;
}

int lnet_peer_del(struct lnet *node, const struct ulnet_nid *primary,
		  const struct ulnet_nid *nids, unsigned int n)
{
	struct peer_call c;
	unsigned int i;
	int rc = 0;

	if (!node_may_wait(node))
		return -EXDEV;
	c = call_of(node, primary);
	if (!n)
		rc = loop_call(c.cpt->loop, del_peer, &c);
	for (i = 0; !rc && i < n; i++) {
		c.nid = &nids[i];
		rc = loop_call(c.cpt->loop, del_nid, &c);
	}
	if (!rc || i > 1)
		(void)node_each_cpt(node, nids_freed, NULL);
	return rc;
}
