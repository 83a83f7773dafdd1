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
				    .primary = *primary };
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

/* The peer net for an NI that comes. NULL: no memory. */
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

/* An NI has gone, or has not come. */
static void net_put(struct lnet_cpt *cpt, struct lnet_peer_net *pnet)
{
	if (!list_empty(&pnet->nis))
		return;
	list_del(&pnet->link);
	pool_put(&peer_cpt(cpt)->net_pool, pnet);
}

static void member_join(struct lnet_peer_ni *lpni, struct lnet_peer_net *pnet)
{
	struct lnet_peer *peer = pnet->peer;

	lpni->peer = peer;
	lpni->net = pnet;
	list_add_tail(&pnet->nis, &lpni->link);
	peer->nnis++;
	if (lpni->refs)
		peer_hold(peer);
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
				       .way = LNET_NID_ANY,
				       .health = LNET_HEALTH_MAX };
	if (hash_add(&pc->peers, &lpni->hash, hash))
		goto err_put_ni;
	list_init(&lpni->unverified);
	list_init(&lpni->first);
	list_init(&lpni->queue);
	list_init(&lpni->connecting);
	member_join(lpni, pnet);
	stat_set(&cpt->stats[STAT_peers], pc->peers.count);
	return lpni;

err_put_ni:
	pool_put(&pc->ni_pool, lpni);
err_put_net:
	net_put(cpt, pnet);
	return NULL;
}

/* Frees an NI that nothing refers to, of a peer which may have no NI left. */
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

/* The first NI of @peer that is not @but, or NULL. */
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
	pool_put(&peer_cpt(cpt)->peer_pool, peer);
}

/* ---- what the directory shall say ---- */

/* Peers mostly have few NIs. */
#define SAY_FEW 8

struct say {
	struct lnet_cpt *cpt;
	struct directory_entry few[SAY_FEW], *entries;
	unsigned int n;
};

static int say_begin(struct say *s, struct lnet_cpt *cpt, unsigned int n)
{
	s->cpt = cpt;
	s->n = 0;
	s->entries = s->few;
	if (n > SAY_FEW)
		s->entries = malloc(n * sizeof(s->entries[0]));
	return s->entries ? 0 : -ENOMEM;
}

static void say_add(struct say *s, const struct ulnet_nid *nid,
		    const struct ulnet_nid *primary, bool several)
{
	s->entries[s->n++] = (struct directory_entry){ *nid, *primary,
						       s->cpt->index, several };
}

/* All NIs of @peer but @but (NULL: none) have that primary NID. */
static void say_peer(struct say *s, const struct lnet_peer *peer,
		     const struct lnet_peer_ni *but,
		     const struct ulnet_nid *primary, bool several)
{
	const struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		if (lpni != but)
			say_add(s, &lpni->nid, primary, several);
}

/* @lpni is one of @peer's from now on. If @peer had one NI, that is no longer
 * alone. */
static void say_join(struct say *s, const struct lnet_peer *peer,
		     const struct lnet_peer_ni *lpni)
{
	uint32_t others = peer->nnis - (lpni->peer == peer);

	say_add(s, &lpni->nid, &peer->primary, others > 0);
	if (others == 1)
		say_peer(s, peer, lpni, &peer->primary, true);
}

static int say_end(struct say *s)
{
	int rc = directory_change(&s->cpt->node->directory, s->entries, s->n);

	if (s->entries != s->few)
		free(s->entries);
	return rc;
}

/* ---- NIs that come and go ---- */

int member_add(struct lnet_cpt *cpt, struct lnet_peer *peer,
	       const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);
	struct say say;
	int rc;

	if (lpni && lpni->peer == peer)
		return 0;
	if (node_cpt_of(cpt->node, nid) != cpt->index)
		return -EXDEV;
	if (lpni)
		return -EEXIST;
	rc = say_begin(&say, cpt, 2);
	if (rc)
		return rc;
	if (!peers_make_room(cpt, nid))
		return -ENOBUFS;
	lpni = member_new(cpt, peer, nid, peer_hash(cpt, nid), PEER_HERE);
	if (!lpni)
		return -ENOMEM;
	say_join(&say, peer, lpni);
	rc = say_end(&say);
	if (rc)
		member_free(cpt, lpni);
	else
		cpt_topology_changed(cpt);
	return rc;
}

static int member_say_take(struct lnet_cpt *cpt, const struct lnet_peer *peer,
			   const struct lnet_peer_ni *lpni,
			   struct ulnet_nid *left)
{
	const struct lnet_peer *from = lpni->peer;
	const struct lnet_peer_ni *other = peer_other(from, lpni);
	bool new_primary = other && lnet_nid_eq(&from->primary, &lpni->nid);
	struct say say;
	int rc = say_begin(&say, cpt, from->nnis + 1);

	if (rc)
		return rc;
	*left = new_primary ? other->nid : from->primary;
	say_join(&say, peer, lpni);
	if (new_primary || from->nnis == 2)
		say_peer(&say, from, lpni, left, from->nnis > 2);
	return say_end(&say);
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
	/* Only the owner changes what the directory says of an alias. */
	if (lpni->place.state != PEER_HERE)
		return -EXDEV;
	pnet = net_get(cpt, peer, lnet_nid_net(&lpni->nid));
	if (!pnet)
		return -ENOMEM;
	rc = member_say_take(cpt, peer, lpni, &left);
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
	member_join(lpni, pnet);
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

/* All NIs of @pnet go to @into, and so does @pnet, unless @into has one of that
 * net. */
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
	peer_drop(cpt, from);
	cpt_topology_changed(cpt);
}

int peer_merge(struct lnet_cpt *cpt, struct lnet_peer *into,
	       struct lnet_peer *from)
{
	struct say say;
	int rc;

	if (from == into)
		return 0;
	rc = say_begin(&say, cpt, into->nnis + from->nnis);
	if (rc)
		return rc;
	say_peer(&say, into, NULL, &into->primary, true);
	say_peer(&say, from, NULL, &into->primary, into->nnis + from->nnis > 1);
	rc = say_end(&say);
	if (!rc)
		peer_absorb(cpt, into, from);
	return rc;
}

/* ---- peers that go to another CPT ---- */

static void room_free(struct lnet_cpt *cpt, struct lnet_peer *room)
{
	list_del(&room->idle);
	while (!list_empty(&room->nets))
		net_put(cpt,
			list_first(&room->nets, struct lnet_peer_net, link));
	peer_drop(cpt, room);
}

static void rooms_free(struct lnet_cpt *cpt, struct list *rooms)
{
	while (!list_empty(rooms))
		room_free(cpt, list_first(rooms, struct lnet_peer, idle));
}

static int room_make(struct lnet_cpt *cpt, const struct lnet_peer_ni *lpni,
		     struct list *rooms)
{
	struct lnet_peer *room = peer_new(cpt, &lpni->peer->primary);

	if (!room)
		return -ENOMEM;
	peer_asked(room, lpni->peer->asked_until);
	list_add_tail(rooms, &room->idle);
	return net_get(cpt, room, lpni->net->segment) ? 0 : -ENOMEM;
}

/* A peer, held, with a net, for each NI of the peer of @stays but @stays. */
static int rooms_make(struct lnet_cpt *cpt, const struct lnet_peer_ni *stays,
		      struct list *rooms)
{
	const struct lnet_peer *peer = stays->peer;
	const struct lnet_peer_ni *lpni;
	int rc = 0;

	list_init(rooms);
	peer_for_each_ni (lpni, peer)
		if (lpni != stays && !rc)
			rc = room_make(cpt, lpni, rooms);
	if (rc)
		rooms_free(cpt, rooms);
	return rc;
}

/* The first NI of those that rooms_make() has seen gets the first room. */
static void room_take(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni,
		      struct list *rooms)
{
	struct lnet_peer *room = list_first(rooms, struct lnet_peer, idle);
	struct lnet_peer *from = lpni->peer;

	BUG_ON(list_empty(rooms));
	list_del(&room->idle);
	member_leave(cpt, lpni);
	if (lpni->refs)
		peer_drop(cpt, from);
	member_join(lpni, list_first(&room->nets, struct lnet_peer_net, link));
	provenance_verify(cpt, lpni);
	peer_place(cpt, lpni);
	peer_drop(cpt, room);
}

int peer_leave(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni, unsigned int to)
{
	struct lnet_peer *peer = lpni->peer;
	struct lnet_peer_ni *other;
	struct list rooms;
	struct say say;
	int rc = say_begin(&say, cpt, peer->nnis);

	if (rc)
		return rc;
	say_peer(&say, peer, NULL, &peer->primary, peer->nnis > 1);
	for (unsigned int i = 0; i < say.n; i++)
		say.entries[i].cpt = to;
	rc = rooms_make(cpt, lpni, &rooms);
	if (rc)
		say.n = 0;
	if (say_end(&say) && !rc) {
		rooms_free(cpt, &rooms);
		rc = -ENOMEM;
	}
	if (rc)
		return rc;
	peer_hold(peer);
	while ((other = peer_other(peer, lpni)))
		room_take(cpt, other, &rooms);
	provenance_verify(cpt, lpni);
	peer_place(cpt, lpni);
	peer_drop(cpt, peer);
	return 0;
}

int peer_set_primary(struct lnet_cpt *cpt, struct lnet_peer *peer,
		     const struct ulnet_nid *nid)
{
	const struct lnet_peer_ni *lpni = peer_member(cpt, peer, nid);
	struct say say;
	int rc;

	if (!lpni)
		return -ENOENT;
	rc = say_begin(&say, cpt, peer->nnis);
	if (rc)
		return rc;
	say_peer(&say, peer, NULL, &lpni->nid, peer->nnis > 1);
	rc = say_end(&say);
	if (rc)
		return rc;
	peer->primary = lpni->nid;
	cpt_topology_changed(cpt);
	return 0;
}

/* ---- forgetting ---- */

/* From now on the directory says of the NID what it says of strangers' NIDs;
 * but not if there are connections here and another CPT would be the owner. */
static int say_nothing(struct say *s, const struct lnet_peer_ni *lpni)
{
	struct directory *d = &s->cpt->node->directory;
	unsigned int cpt = directory_default_cpt(d, &lpni->nid);

	if (cpt != s->cpt->index && peer_is_connected(s->cpt, &lpni->nid))
		return -EBUSY;
	s->entries[s->n++] = (struct directory_entry){ .nid = lpni->nid,
						       .primary = lpni->nid,
						       .cpt = cpt };
	return 0;
}

static int peer_say_nothing(struct lnet_cpt *cpt, const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *lpni;
	struct say say;
	int said, rc = say_begin(&say, cpt, peer->nnis);

	if (rc)
		return rc;
	peer_for_each_ni (lpni, peer)
		if (!rc && lpni->place.state == PEER_HERE)
			rc = say_nothing(&say, lpni);
	if (rc)
		say.n = 0;
	said = say_end(&say);
	return rc ? rc : said;
}

int peer_forget(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	int rc = peer_say_nothing(cpt, peer);

	if (rc)
		return rc;
	peer_free(cpt, peer);
	return 0;
}
