/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/peer.h"

#include "lnet/net/net.h"
#include "lnet/peer/member.h"
#include "lnet/peer/provenance.h"

const struct fsm_state peer_states[PEER_STATES] = {
	[PEER_UNKNOWN] = { "unknown", FSM_TO(PEER_QUEUED) },
	[PEER_QUEUED] = { "queued", FSM_TO(PEER_DISCOVERING) |
					    FSM_TO(PEER_MERGING) |
					    FSM_TO(PEER_PUSHING) |
					    FSM_TO(PEER_DISCOVERED) |
					    FSM_TO(PEER_UNKNOWN) },
	[PEER_DISCOVERING] = { "discovering", FSM_TO(PEER_QUEUED) |
						      FSM_TO(PEER_FAILED) |
						      FSM_TO(PEER_UNKNOWN) },
	[PEER_MERGING] = { "merging", FSM_TO(PEER_QUEUED) |
					      FSM_TO(PEER_FAILED) |
					      FSM_TO(PEER_UNKNOWN) },
	[PEER_PUSHING] = { "pushing", FSM_TO(PEER_QUEUED) |
					      FSM_TO(PEER_FAILED) |
					      FSM_TO(PEER_UNKNOWN) },
	[PEER_DISCOVERED] = { "discovered", FSM_TO(PEER_QUEUED) },
	[PEER_FAILED] = { "failed",
			  FSM_TO(PEER_QUEUED) | FSM_TO(PEER_UNKNOWN) },
};

const struct fsm_state peer_places[PEER_PLACES] = {
	[PEER_HERE] = { "here", FSM_TO(PEER_ALIAS) },
	[PEER_ALIAS] = { "guest", FSM_TO(PEER_HERE) },
};

/* ---- looking ---- */

uint64_t peer_hash(const struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	return hash_bytes(nid, sizeof(*nid), cpt->node->hash_seed);
}

static struct lnet_peer_ni *peer_seek(struct lnet_cpt *cpt,
				      const struct ulnet_nid *nid,
				      uint64_t hash)
{
	struct hash_node *n;

	for (n = hash_first(&peer_cpt(cpt)->peers, hash); n; n = hash_next(n)) {
		struct lnet_peer_ni *p =
			container_of(n, struct lnet_peer_ni, hash);

		if (lnet_nid_eq(&p->nid, nid)) {
			peer_cpt(cpt)->peer_last = p;
			return p;
		}
	}
	return NULL;
}

struct lnet_peer_ni *peer_search(struct lnet_cpt *cpt,
				 const struct ulnet_nid *nid)
{
	return peer_seek(cpt, nid, peer_hash(cpt, nid));
}

/* ---- meeting ---- */

static void peer_tell_full(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "limits",
			 "%s is one peer too many: nothing is taken from it or "
			 "sent to it while all %u are in use",
			 lnet_nid_format(nid, text, sizeof(text)),
			 peer_cpt(cpt)->ni_pool.used);
}

/* A peer that cannot be forgotten, for want of memory or because of
 * connections, is passed over; this many are tried to make room for a
 * stranger. */
#define FORGET_TRIES 16

static void peer_is_idle(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	list_add_tail(&peer_cpt(cpt)->idle, &peer->idle);
}

bool peers_make_room(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	if (likely(pc->ni_pool.used < pc->ni_pool.max))
		return true;
	if (provenance_forget_one(cpt))
		return true;
	for (unsigned int i = 0; i < FORGET_TRIES; i++) {
		struct lnet_peer *peer;

		if (list_empty(&pc->idle))
			break;
		peer = list_first(&pc->idle, struct lnet_peer, idle);
		if (!peer_forget(cpt, peer))
			return true;
		list_del(&peer->idle);
		peer_is_idle(cpt, peer);
	}
	peer_tell_full(cpt, nid);
	return false;
}

/* A NID that this CPT has never heard of, or has forgotten. */
static struct lnet_peer_ni *peer_meet(struct lnet_cpt *cpt,
				      const struct ulnet_nid *nid,
				      uint64_t hash)
{
	struct lnet *node = cpt->node;
	struct ulnet_nid primary = directory_primary(&node->directory, nid);
	enum peer_place place =
		node_cpt_of(node, nid) == cpt->index ? PEER_HERE : PEER_ALIAS;
	struct lnet_peer_ni *lpni;
	struct lnet_peer *peer;

	if (!peers_make_room(cpt, nid))
		return NULL;
	peer = peer_new(cpt, &primary);
	if (!peer)
		return NULL;
	lpni = member_new(cpt, peer, nid, hash, place);
	peer_drop(cpt, peer);
	return lpni;
}

struct lnet_peer_ni *peer_find_or_meet(struct lnet_cpt *cpt,
				       const struct ulnet_nid *nid)
{
	uint64_t hash = peer_hash(cpt, nid);
	struct lnet_peer_ni *lpni = peer_seek(cpt, nid, hash);

	return likely(lpni) ? lpni : peer_meet(cpt, nid, hash);
}

/* ---- references ---- */

void peer_drop(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	BUG_ON(peer->refs == 0);
	if (--peer->refs)
		return;
	if (peer->nnis)
		peer_is_idle(cpt, peer);
	else
		peer_free(cpt, peer);
}

void peer_unref(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	BUG_ON(lpni->refs == 0);
	if (--lpni->refs == 0 && --lpni->peer->refs == 0)
		peer_is_idle(cpt, lpni->peer);
}

/* What an administrator says of NIs is as good as what they say themselves. */
static void peer_provenance_verify(struct lnet_cpt *cpt, struct lnet_peer *peer)
{
	struct lnet_peer_ni *lpni;

	peer_for_each_ni (lpni, peer)
		provenance_verify(cpt, lpni);
}

void peer_set_configured(struct lnet_cpt *cpt, struct lnet_peer *peer,
			 bool configured)
{
	if (peer->configured == configured)
		return;
	peer->configured = configured;
	if (configured) {
		peer_hold(peer);
		peer_provenance_verify(cpt, peer);
	} else {
		peer_drop(cpt, peer);
	}
}

/* The first NI from *@i on that may have connections with @nid, or NULL. *@i
 * becomes the place behind it. */
static struct lnd_ni *lnd_to(const struct lnet_cpt *cpt,
			     const struct ulnet_nid *nid, unsigned int *i)
{
	const struct lnet_net *net =
		cpt->closing ? NULL : config_net(cpt->config, nid_segment(nid));

	return net && *i < net->nnis ? &net->ni[(*i)++]->lnd : NULL;
}

/* The same, but only an NI that has connections. */
static struct lnd_ni *lnd_connected(const struct lnet_cpt *cpt,
				    const struct ulnet_nid *nid,
				    unsigned int *i)
{
	struct lnd_ni *lnd;

	while ((lnd = lnd_to(cpt, nid, i)))
		if (lnd->lnd->is_connected &&
		    lnd->lnd->is_connected(lnd, cpt->index, nid))
			break;
	return lnd;
}

bool peer_is_connected(const struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	return lnd_connected(cpt, nid, &(unsigned int){ 0 });
}

bool peer_terms(const struct lnet_cpt *cpt, const struct ulnet_nid *nid,
		struct lnd_terms *terms)
{
	unsigned int i = 0;
	struct lnd_ni *lnd;

	while ((lnd = lnd_to(cpt, nid, &i)))
		if (lnd->lnd->terms &&
		    lnd->lnd->terms(lnd, cpt->index, nid, terms))
			return true;
	return false;
}

bool peer_can_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	unsigned int i = 0;
	struct lnd_ni *lnd;

	while ((lnd = lnd_connected(cpt, nid, &i)))
		if (!lnd->lnd->can_move ||
		    !lnd->lnd->can_move(lnd, cpt->index, nid))
			return false;
	return true;
}

void peer_move(const struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	unsigned int i = 0;
	struct lnd_ni *lnd;

	while ((lnd = lnd_connected(cpt, nid, &i)))
		if (lnd->lnd->move)
			lnd->lnd->move(lnd, cpt->index, nid);
}

void peer_place(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	enum peer_place place = node_cpt_of(cpt->node, &lpni->nid) == cpt->index
					? PEER_HERE
					: PEER_ALIAS;

	if (lpni->place.state == place || (place == PEER_HERE && lpni->awaited))
		return;
	fsm_move(&lpni->place, peer_places, place);
	/* The next message has to look who owns @lpni. */
	lpni->only_in = 0;
}

void peer_arrive(struct lnet_peer_ni *lpni)
{
	fsm_move(&lpni->place, peer_places, PEER_HERE);
	lpni->only_in = 0;
}

bool peer_is_here(const struct lnet_peer *peer)
{
	const struct lnet_peer_ni *first = peer_next_ni(peer, NULL);

	return first && first->place.state == PEER_HERE;
}

void peer_renamed(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	if (!lpni || lpni->place.state != PEER_ALIAS)
		return;
	lpni->peer->primary = directory_primary(&cpt->node->directory, nid);
	peer_place(cpt, lpni);
}

void peer_set_credits(struct lnet_peer_ni *lpni, uint32_t credits)
{
	if (lpni->credits_max)
		return;
	lpni->credits_max = (int32_t)credits;
	lpni->credits = (int32_t)credits;
	lpni->credits_min = (int32_t)credits;
}

/* ---- begin and end ---- */

void peers_init(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	hash_init(&pc->peers);
	list_init(&pc->idle);
	list_init(&pc->unverified);
	pool_init(&pc->peer_pool, sizeof(struct lnet_peer), 0);
	pool_init(&pc->net_pool, sizeof(struct lnet_peer_net), 0);
	pool_init(&pc->ni_pool, sizeof(struct lnet_peer_ni),
		  cpt->node->conf.peers_max);
}

/* What was configured is idle like others from now on. */
static void peers_release(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	while ((n = hash_walk(&pc->peers, &bucket, n)))
		peer_set_configured(
			cpt, container_of(n, struct lnet_peer_ni, hash)->peer,
			false);
}

void peers_fini(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	peers_release(cpt);
	while (!list_empty(&pc->idle))
		peer_free(cpt, list_first(&pc->idle, struct lnet_peer, idle));
	BUG_ON(pc->peers.count);
	hash_fini(&pc->peers);
	cpt_pool_fini(cpt, &pc->ni_pool, "peer NIs");
	cpt_pool_fini(cpt, &pc->net_pool, "peer nets");
	cpt_pool_fini(cpt, &pc->peer_pool, "peers");
}
