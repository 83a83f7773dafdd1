/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/member.h"

#include <errno.h>
#include <stdlib.h>

#include "lnet/peer/provenance.h"

/* ---- peers, nets, NIs ---- */

struct lnet_peer *peer_new(struct lnet_cpt *cpt,
			   const struct ulnet_nid *primary)
{
	struct lnet_peer *peer = pool_get(&peer_cpt(cpt)->peer_pool);

	if (!peer)
		return NULL;
	*peer = (struct lnet_peer){ .refs = 1,
				    .fsm.state = PEER_UNKNOWN,
				    .primary = *primary,
				    .rest = &peer_cpt(cpt)->idle };
	list_init(&peer->nets);
	list_init(&peer->idle);
	return peer;
}

static struct lnet_peer_net *net_of(const struct lnet_peer *peer,
				    uint32_t segment)
{
	struct lnet_peer_net *pnet;

	list_for_each_entry (pnet, &peer->nets, link)
		if (pnet->segment == segment)
			return pnet;
	return NULL;
}

/* Returns the net of @peer for @segment, and makes it if there is none. NULL:
 * there is no memory. */
static struct lnet_peer_net *net_get(struct lnet_cpt *cpt,
				     struct lnet_peer *peer, uint32_t segment)
{
	struct lnet_peer_net *pnet = net_of(peer, segment);

	if (pnet)
		return pnet;
	pnet = pool_get(&peer_cpt(cpt)->net_pool);
	if (!pnet)
		return NULL;
	pnet->peer = peer;
	pnet->segment = segment;
	list_init(&pnet->nis);
	list_add_tail(&peer->nets, &pnet->link);
	return pnet;
}

/* Frees @pnet if it has no NIs. */
static void net_put(struct lnet_cpt *cpt, struct lnet_peer_net *pnet)
{
	if (!list_empty(&pnet->nis))
		return;
	list_del(&pnet->link);
	pool_put(&peer_cpt(cpt)->net_pool, pnet);
}

static void member_join(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			struct lnet_peer_net *pnet)
{
	struct lnet_peer *peer = pnet->peer;

	lpni->peer = peer;
	lpni->net = pnet;
	list_add_tail(&pnet->nis, &lpni->link);
	peer->nnis++;
	if (lpni->refs)
		peer_hold(peer);
	provenance_keep(cpt, peer);
}

static void member_leave(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	list_del(&lpni->link);
	net_put(cpt, lpni->net);
	lpni->peer->nnis--;
}

struct lnet_peer_ni *member_new(struct lnet_cpt *cpt, struct lnet_peer *peer,
				const struct ulnet_nid *nid, uint64_t hash,
				enum peer_place place)
{
	struct peer_cpt *pc = peer_cpt(cpt);
	struct lnet_peer_net *pnet = net_get(cpt, peer, nid_segment(nid));
	struct lnet_peer_ni *lpni;

	if (!pnet)
		return NULL;
	lpni = pool_get(&pc->ni_pool);
	if (!lpni)
		goto err_put_net;
	*lpni = (struct lnet_peer_ni){ .nid = *nid,
				       .place.state = place,
				       .claimed_by = LNET_NID_ANY,
				       .preferred = LNET_NID_ANY,
				       .heard_via = LNET_NID_ANY,
				       .health = LNET_HEALTH_MAX };
	if (hash_add(&pc->peers, &lpni->hash, hash))
		goto err_put_ni;
	list_init(&lpni->unverified);
	list_init(&lpni->first);
	list_init(&lpni->queue);
	list_init(&lpni->connecting);
	member_join(cpt, lpni, pnet);
	stat_set(&cpt->stats[STAT_peers], pc->peers.count);
	return lpni;

err_put_ni:
	pool_put(&pc->ni_pool, lpni);
err_put_net:
	net_put(cpt, pnet);
	return NULL;
}

/* Frees @lpni, to which there are no references. */
static void member_free(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	BUG_ON(lpni->refs || !list_empty(&lpni->first) ||
	       !list_empty(&lpni->queue) || !list_empty(&lpni->connecting));
	if (pc->peer_last == lpni)
		pc->peer_last = NULL;
	provenance_verify(cpt, lpni);
	member_leave(cpt, lpni);
	hash_del(&pc->peers, &lpni->hash);
	free(lpni->verdict.preferred);
	pool_put(&pc->ni_pool, lpni);
	stat_set(&cpt->stats[STAT_peers], pc->peers.count);
}

/* Returns the first NI of @peer that is not @but, or NULL. */
static struct lnet_peer_ni *peer_other(const struct lnet_peer *peer,
				       const struct lnet_peer_ni *but)
{
	struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		if (lpni != but)
			return lpni;
	return NULL;
}

void peer_free(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	BUG_ON(peer->refs);
	while (peer->nnis)
		member_free(cpt, peer_next_ni(peer, NULL));
	list_del(&peer->idle);
	peer_cpt(cpt)->nabandoned -= peer->abandoned;
	pool_put(&peer_cpt(cpt)->peer_pool, peer);
}

/* ---- changes of the directory ---- */

/* Up to this number of NIs no memory is allocated; most peers have fewer. */
#define UPDATE_FEW 8

struct dir_update {
	struct lnet_cpt *cpt;
	struct directory_entry few[UPDATE_FEW], *entries;
	unsigned int n;
};

static int update_begin(struct dir_update *u, struct lnet_cpt *cpt,
			unsigned int n)
{
	u->cpt = cpt;
	u->n = 0;
	u->entries = u->few;
	if (n > UPDATE_FEW)
		u->entries = malloc(n * sizeof(u->entries[0]));
	return u->entries ? 0 : -ENOMEM;
}

static void update_add(struct dir_update *u, const struct ulnet_nid *nid,
		       const struct ulnet_nid *primary, bool several)
{
	u->entries[u->n++] = (struct directory_entry){ *nid, *primary,
						       u->cpt->index, several };
}

/* Adds entries for all NIs of @peer except @but (NULL: for all), with the
 * primary NID @primary. */
static void update_add_peer(struct dir_update *u, const struct lnet_peer *peer,
			    const struct lnet_peer_ni *but,
			    const struct ulnet_nid *primary, bool several)
{
	const struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		if (lpni != but)
			update_add(u, &lpni->nid, primary, several);
}

/* Adds an entry for @lpni as an NI of @peer. If @peer has only one other NI,
 * updates the entry of that, too. */
static void update_join(struct dir_update *u, const struct lnet_peer *peer,
			const struct lnet_peer_ni *lpni)
{
	uint32_t others = peer->nnis - (lpni->peer == peer);

	update_add(u, &lpni->nid, &peer->primary, others > 0);
	if (others == 1)
		update_add_peer(u, peer, lpni, &peer->primary, true);
}

static int update_apply(struct dir_update *u)
{
	int rc = directory_change(&u->cpt->node->directory, u->entries, u->n);

	if (u->entries != u->few)
		free(u->entries);
	return rc;
}

/* ---- adding and moving NIs ---- */

int member_add(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);
	struct dir_update update;
	int rc;

	if (lpni && lpni->peer == peer)
		return 0;
	if (node_cpt_of(cpt->node, nid) != cpt->index)
		return -EXDEV;
	if (lpni)
		return -EEXIST;
	rc = update_begin(&update, cpt, 2);
	if (rc)
		return rc;
	if (!peers_make_room(cpt, nid))
		return -ENOBUFS;
	lpni = member_new(cpt, peer, nid, peer_hash(cpt, nid), PEER_HERE);
	if (!lpni)
		return -ENOMEM;
	update_join(&update, peer, lpni);
	rc = update_apply(&update);
	if (rc)
		member_free(cpt, lpni);
	else
		cpt_topology_changed(cpt);
	return rc;
}

static int directory_take(struct lnet_cpt *cpt, const struct lnet_peer *peer,
			  const struct lnet_peer_ni *lpni,
			  struct ulnet_nid *left)
{
	const struct lnet_peer *from = lpni->peer;
	const struct lnet_peer_ni *other = peer_other(from, lpni);
	bool new_primary = other && lnet_nid_eq(&from->primary, &lpni->nid);
	struct dir_update update;
	int rc = update_begin(&update, cpt, from->nnis + 1);

	if (rc)
		return rc;
	*left = new_primary ? other->nid : from->primary;
	update_join(&update, peer, lpni);
	if (new_primary || from->nnis == 2)
		update_add_peer(&update, from, lpni, left, from->nnis > 2);
	return update_apply(&update);
}

int member_take(struct lnet_cpt *cpt, struct lnet_peer *peer,
		struct lnet_peer_ni *lpni)
{
	struct lnet_peer *from = lpni->peer;
	struct lnet_peer_net *pnet;
	struct ulnet_nid left;
	int rc;

	if (from == peer)
		return 0;
	/* Only the CPT that owns a NID changes its directory entry. */
	if (lpni->place.state != PEER_HERE)
		return -EXDEV;
	pnet = net_get(cpt, peer, nid_segment(&lpni->nid));
	if (!pnet)
		return -ENOMEM;
	rc = directory_take(cpt, peer, lpni, &left);
	if (rc) {
		net_put(cpt, pnet);
		return rc;
	}
	peer_hold(from);
	member_leave(cpt, lpni);
	if (lpni->refs)
		peer_drop(cpt, from);
	from->primary = left;
	peer_asked(peer, from->asked_until);
	member_join(cpt, lpni, pnet);
	provenance_verify(cpt, lpni);
	peer_drop(cpt, from);
	cpt_topology_changed(cpt);
	return 0;
}

int member_split(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct lnet_peer *alone;
	int rc;

	if (lpni->peer->nnis == 1) {
		provenance_verify(cpt, lpni);
		return 0;
	}
	alone = peer_new(cpt, &lpni->nid);
	if (!alone)
		return -ENOMEM;
	rc = member_take(cpt, alone, lpni);
	peer_drop(cpt, alone);
	return rc;
}

/* Moves all NIs of @pnet to @into. If @into has no net of that segment, moves
 * @pnet itself. */
static void net_move(struct lnet_cpt *cpt, struct lnet_peer_net *pnet,
		     struct lnet_peer *into)
{
	struct lnet_peer_net *there = net_of(into, pnet->segment);
	struct lnet_peer *from = pnet->peer;
	struct lnet_peer_ni *lpni;

	list_for_each_entry (lpni, &pnet->nis, link) {
		lpni->peer = into;
		lpni->net = there ? there : pnet;
		from->nnis--;
		into->nnis++;
		if (!lpni->refs)
			continue;
		peer_hold(into);
		peer_drop(cpt, from);
	}
	list_del(&pnet->link);
	if (there) {
		list_splice_tail(&there->nis, &pnet->nis);
		pool_put(&peer_cpt(cpt)->net_pool, pnet);
	} else {
		pnet->peer = into;
		list_add_tail(&into->nets, &pnet->link);
	}
}

void peer_absorb(struct lnet_cpt *cpt, struct lnet_peer *into,
		 struct lnet_peer *from)
{
	peer_hold(from);
	peer_asked(into, from->asked_until);
	while (!list_empty(&from->nets))
		net_move(cpt,
			 list_first(&from->nets, struct lnet_peer_net, link),
			 into);
	provenance_keep(cpt, into);
	peer_drop(cpt, from);
	cpt_topology_changed(cpt);
}

int peer_merge(struct lnet_cpt *cpt, struct lnet_peer *into,
	       struct lnet_peer *from)
{
	struct dir_update update;
	int rc;

	if (from == into)
		return 0;
	rc = update_begin(&update, cpt, into->nnis + from->nnis);
	if (rc)
		return rc;
	update_add_peer(&update, into, NULL, &into->primary, true);
	update_add_peer(&update, from, NULL, &into->primary,
			into->nnis + from->nnis > 1);
	rc = update_apply(&update);
	if (!rc)
		peer_absorb(cpt, into, from);
	return rc;
}

/* ---- giving a peer to another CPT ---- */

static void alias_peer_free(struct lnet_cpt *cpt, struct lnet_peer *spare)
{
	list_del(&spare->idle);
	while (!list_empty(&spare->nets))
		net_put(cpt,
			list_first(&spare->nets, struct lnet_peer_net, link));
	peer_drop(cpt, spare);
}

static void alias_peers_free(struct lnet_cpt *cpt, struct list *spares)
{
	while (!list_empty(spares))
		alias_peer_free(cpt,
				list_first(spares, struct lnet_peer, idle));
}

static int alias_peer_make(struct lnet_cpt *cpt,
			   const struct lnet_peer_ni *lpni, struct list *spares)
{
	struct lnet_peer *spare = peer_new(cpt, &lpni->peer->primary);

	if (!spare)
		return -ENOMEM;
	peer_asked(spare, lpni->peer->asked_until);
	list_add_tail(spares, &spare->idle);
	return net_get(cpt, spare, lpni->net->segment) ? 0 : -ENOMEM;
}

/* Makes a peer for each NI of the peer of @stays, but not for @stays itself.
 * Each of the new peers has a reference and a net. */
static int alias_peers_make(struct lnet_cpt *cpt,
			    const struct lnet_peer_ni *stays,
			    struct list *spares)
{
	const struct lnet_peer *peer = stays->peer;
	const struct lnet_peer_ni *lpni;
	int rc = 0;

	list_init(spares);
	peer_for_each_ni (lpni, peer)
		if (lpni != stays && !rc)
			rc = alias_peer_make(cpt, lpni, spares);
	if (rc)
		alias_peers_free(cpt, spares);
	return rc;
}

/* Moves @lpni, which becomes an alias, into the first peer of @spares. Must be
 * called in the order of alias_peers_make(). */
static void alias_peer_take(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
			    struct list *spares)
{
	struct lnet_peer *spare = list_first(spares, struct lnet_peer, idle);
	struct lnet_peer *from = lpni->peer;

	BUG_ON(list_empty(spares));
	list_del(&spare->idle);
	member_leave(cpt, lpni);
	if (lpni->refs)
		peer_drop(cpt, from);
	member_join(cpt, lpni,
		    list_first(&spare->nets, struct lnet_peer_net, link));
	provenance_verify(cpt, lpni);
	peer_place(cpt, lpni);
	peer_drop(cpt, spare);
}

int peer_leave(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni, unsigned int to)
{
	struct lnet_peer *peer = lpni->peer;
	struct lnet_peer_ni *other;
	struct list spares;
	struct dir_update update;
	int rc = update_begin(&update, cpt, peer->nnis);

	if (rc)
		return rc;
	update_add_peer(&update, peer, NULL, &peer->primary, peer->nnis > 1);
	for (unsigned int i = 0; i < update.n; i++)
		update.entries[i].cpt = to;
	rc = alias_peers_make(cpt, lpni, &spares);
	if (rc)
		update.n = 0;
	if (update_apply(&update) && !rc) {
		alias_peers_free(cpt, &spares);
		rc = -ENOMEM;
	}
	if (rc)
		return rc;
	peer_hold(peer);
	while ((other = peer_other(peer, lpni)))
		alias_peer_take(cpt, other, &spares);
	provenance_verify(cpt, lpni);
	peer_place(cpt, lpni);
	peer_drop(cpt, peer);
	return 0;
}

int peer_set_primary(struct lnet_cpt *cpt, struct lnet_peer *peer,
		     const struct ulnet_nid *nid)
{
	const struct lnet_peer_ni *lpni = peer_member(cpt, peer, nid);
	struct dir_update update;
	int rc;

	if (!lpni)
		return -ENOENT;
	rc = update_begin(&update, cpt, peer->nnis);
	if (rc)
		return rc;
	update_add_peer(&update, peer, NULL, &lpni->nid, peer->nnis > 1);
	rc = update_apply(&update);
	if (rc)
		return rc;
	peer->primary = lpni->nid;
	cpt_topology_changed(cpt);
	return 0;
}

/* ---- forgetting ---- */

/* Adds an entry that makes the NID of @lpni unknown. -EBUSY: this CPT has
 * connections with it, but another CPT would own the unknown NID. */
static int update_forget(struct dir_update *u, const struct lnet_peer_ni *lpni)
{
	struct directory *d = &u->cpt->node->directory;
	unsigned int cpt = directory_default_cpt(d, &lpni->nid);

	if (cpt != u->cpt->index && peer_is_connected(u->cpt, &lpni->nid))
		return -EBUSY;
	u->entries[u->n++] = (struct directory_entry){ .nid = lpni->nid,
						       .primary = lpni->nid,
						       .cpt = cpt };
	return 0;
}

static int directory_forget(struct lnet_cpt *cpt, const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *lpni;
	struct dir_update update;
	int said, rc = update_begin(&update, cpt, peer->nnis);

	if (rc)
		return rc;
	peer_for_each_ni (lpni, peer)
		if (!rc && lpni->place.state == PEER_HERE)
			rc = update_forget(&update, lpni);
	if (rc)
		update.n = 0;
	said = update_apply(&update);
	return rc ? rc : said;
}

int peer_forget(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	int rc = directory_forget(cpt, peer);

	if (rc)
		return rc;
	peer_free(cpt, peer);
	return 0;
}
