/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/peer.h"

#include <errno.h>

#include "lnet/net/net.h"
#include "lnet/peer/member.h"
#include "lnet/peer/provenance.h"
#include "lnet/policy/policy.h"

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

static struct lnet_peer_ni *peer_seek(const struct lnet_cpt *cpt,
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

struct lnet_peer_ni *peer_search(const struct lnet_cpt *cpt,
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

/* How many peers are tried when room for one more is needed. A peer cannot be
 * forgotten if there is no memory, or if it has connections on a CPT that would
 * not own its NIDs by default. */
#define FORGET_ATTEMPTS 16

void peer_is_idle(struct lnet_peer *peer)
{
	list_add_tail(peer->rest, &peer->idle);
}

bool peers_make_room(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	if (likely(pc->ni_pool.used < pc->ni_pool.max))
		return true;
	if (provenance_forget_abandoned(cpt) || provenance_forget_one(cpt))
		return true;
	for (unsigned int i = 0; i < FORGET_ATTEMPTS; i++) {
		struct lnet_peer *peer;

		if (list_empty(&pc->idle))
			break;
		peer = list_first(&pc->idle, struct lnet_peer, idle);
		if (!peer_forget(cpt, peer))
			return true;
		list_del(&peer->idle);
		peer_is_idle(peer);
	}
	peer_tell_full(cpt, nid);
	return false;
}

/* Makes a peer for @nid, which is unknown on this CPT. */
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
		peer_is_idle(peer);
	else
		peer_free(cpt, peer);
}

void peer_set_configured(struct lnet_cpt *cpt, struct lnet_peer *peer,
			 bool configured)
{
	struct lnet_peer_ni *lpni;

	if (peer->configured == configured)
		return;
	peer->configured = configured;
	if (!configured) {
		peer_drop(cpt, peer);
		return;
	}
	peer_hold(peer);
	provenance_keep(cpt, peer);
	peer_for_each_ni (lpni, peer)
		provenance_verify(cpt, lpni);
}

/* Returns the first local NI, from index *@i on, that may have connections with
 * @nid, and moves *@i behind it. NULL: there is none. */
static struct lnd_ni *lnd_to(const struct lnet_cpt *cpt,
			     const struct ulnet_nid *nid, unsigned int *i)
{
	const struct lnet_net *net =
		cpt->closing ? NULL : config_net(cpt->config, nid_segment(nid));

	return net && *i < net->nnis ? &net->ni[(*i)++]->lnd : NULL;
}

/* As lnd_to(), but returns only an NI that has connections. */
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

	if (lpni->place.state == place ||
	    (place == PEER_HERE && lpni->pending_claims))
		return;
	fsm_move(&lpni->place, peer_places, place);
	/* Makes the next message look up which CPT owns @lpni. */
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
	/* @lpni was an alias, and is here now because the CPT that owned it has
	 * forgotten it. */
	if (lpni->place.state == PEER_HERE)
		provenance_abandon(cpt, lpni, NULL);
}

void peer_set_credits(struct lnet_peer_ni *lpni, uint32_t credits)
{
	if (lpni->credits_max)
		return;
	lpni->credits_max = (int32_t)credits;
	lpni->credits = (int32_t)credits;
	lpni->credits_min = (int32_t)credits;
}

/* ---- all peers of a node ---- */

/* Number of peer NIs that are handled in one turn, so that other work is done
 * in between. */
#define PEERS_SLICE 256

bool peers_some(struct lnet_cpt *cpt, struct peers_place *at, peers_fn fn,
		void *arg)
{
	const struct hash *h = &peer_cpt(cpt)->peers;
	struct hash_node *n = NULL;
	unsigned int seen = 0;

	if (at->mask != h->mask) {
		at->mask = h->mask;
		at->bucket = 0;
		fn(cpt, NULL, arg);
	}
	/* Ends between two buckets, since buckets stay the same until the table
	 * grows. */
	do {
		n = hash_walk(h, &at->bucket, n);
		if (n)
			fn(cpt, container_of(n, struct lnet_peer_ni, hash),
			   arg);
	} while (n && (++seen < PEERS_SLICE || n->next));
	return n != NULL;
}

struct peers_walk {
	struct lnet_cpt *cpt;
	peers_fn fn;
	void *arg;
	struct peers_place at;
};

/* Returns 1 if there are more peer NIs. */
static int peers_slice(void *arg)
{
	struct peers_walk *w = arg;

	return peers_some(w->cpt, &w->at, w->fn, w->arg);
}

int peers_each(struct lnet *node, peers_fn fn, void *arg)
{
	int rc = 0;

	if (!node_may_wait(node))
		return -EXDEV;
	for (unsigned int i = 0; i < node->cpts && !rc; i++) {
		struct peers_walk w = { node->cpt[i], fn, arg, PEERS_FIRST };

		do
			rc = loop_call(node->loops[i], peers_slice, &w);
		while (rc > 0);
	}
	return rc;
}

static void peer_stats_reset(struct lnet_cpt *cpt, struct lnet_peer_ni *p,
			     void *arg)
{
	(void)cpt;
	(void)arg;
	if (!p)
		return;
	traffic_reset(&p->traffic);
	p->credits_min = p->credits;
	p->has.forwards_max = p->has.forwards + p->has.forward_waits;
	for (unsigned int i = 0; i < PEER_FAILURES; i++)
		stat_set(&p->failed[i], 0);
}

int peers_stats_reset(struct lnet *node)
{
	return peers_each(node, peer_stats_reset, NULL);
}

/* Bits in which kernel nodes show the state of a peer. */
enum {
	STATE_MULTI_RAIL = 1 << 0,
	STATE_CONFIGURED = 1 << 3,
	STATE_DISCOVERED = 1 << 4,
	STATE_DISCOVERING = 1 << 6,
	STATE_DATA_PRESENT = 1 << 7,
	STATE_NIDS_UPTODATE = 1 << 8,
	STATE_PING_SENT = 1 << 9,
	STATE_PUSH_SENT = 1 << 10,
	STATE_PING_FAILED = 1 << 11,
};

static const uint32_t state_bits[PEER_STATES] = {
	[PEER_QUEUED] = STATE_DISCOVERING,
	[PEER_DISCOVERING] = STATE_DISCOVERING | STATE_PING_SENT,
	[PEER_MERGING] = STATE_DISCOVERING | STATE_DATA_PRESENT,
	[PEER_PUSHING] =
		STATE_DISCOVERING | STATE_NIDS_UPTODATE | STATE_PUSH_SENT,
	[PEER_DISCOVERED] = STATE_DISCOVERED | STATE_NIDS_UPTODATE,
	[PEER_FAILED] = STATE_PING_FAILED,
};

static uint32_t peer_state(const struct lnet_peer *peer)
{
	return state_bits[peer->fsm.state] |
	       (peer->multi_rail ? STATE_MULTI_RAIL : 0) |
	       (peer->configured ? STATE_CONFIGURED : 0);
}

/* For a router. @forwards: the number of buffers with messages of @p plus the
 * number of messages of @p that wait for a buffer. */
static int64_t router_credits(const struct lnet_cpt *cpt,
			      const struct lnet_peer_ni *p, uint32_t forwards)
{
	const struct lnet_net *net = config_net(cpt->config, p->net->segment);

	return net ? (int64_t)net->ni[0]->peer_buffer_credits - forwards : 0;
}

#define failures(p, cause) \
	stat_get(&(p)->failed[PEER_FAILED(LNET_CAUSE_##cause)])

static void peer_info(const struct lnet_cpt *cpt, const struct lnet_peer_ni *p,
		      struct ulnet_peer_info *info)
{
	struct lnd_terms terms;

	*info = (struct ulnet_peer_info){
		.nid = p->nid,
		.primary = p->peer->primary,
		.cpt = cpt->index,
		.credits_max = (uint32_t)p->credits_max,
		.credits = p->credits,
		.credits_min = p->credits_min,
		.router_credits = router_credits(
			cpt, p, p->has.forwards + p->has.forward_waits),
		.router_credits_min =
			router_credits(cpt, p, p->has.forwards_max),
		.queued_bytes = p->queued_bytes,
		.queued = (uint64_t)MAX(-(int64_t)p->credits, 0),
		.connecting = p->nconnecting,
		.refs = p->refs,
		.word = fsm_name(&p->provenance, peer_provenances),
		.down = p->down,
		.health = p->health,
		.recovering = p->recovery && p->health < LNET_HEALTH_MAX,
		.pings_silent = p->recovery ? p->recovery->silent : 0,
		.next_ping = p->recovery ? p->recovery->next : 0,
		.failed = { .remote_dropped = failures(p, REMOTE_DROPPED),
			    .remote_timeouts = failures(p, REMOTE_TIMEOUT),
			    .remote_errors = failures(p, REMOTE_ERROR),
			    .network_timeouts = failures(p, NETWORK_TIMEOUT) },
		.multi_rail = p->peer->multi_rail,
		.configured = p->peer->configured,
		.state = peer_state(p->peer),
		.state_name = fsm_name(&p->peer->fsm, peer_states),
	};
	if (peer_terms(cpt, &p->nid, &terms)) {
		info->queue_depth = terms.queue_depth;
		info->max_frags = terms.max_frags;
	}
	policies_of(cpt->policies, POLICY_DST_NET, &p->nid, &info->net_priority,
		    &info->priority);
	traffic_sum(&p->traffic.send, &info->sent);
	traffic_sum(&p->traffic.recv, &info->received);
	traffic_sum(&p->traffic.drop, &info->dropped);
	times_sum(&p->traffic.sending, &info->sending);
	times_sum(&p->traffic.answered, &info->answered);
	resent_sum(&p->traffic, &info->resends);
	info->resent = resends_total(&info->resends);
	info->send_count = counts_total(&info->sent);
	info->recv_count = counts_total(&info->received);
	info->drop_count = counts_total(&info->dropped);
}

struct peer_info_call {
	struct lnet_cpt *cpt;
	const struct ulnet_nid *nid;
	struct ulnet_peer_info *info;
};

static int peer_info_call(void *arg)
{
	struct peer_info_call *c = arg;
	struct lnet_peer_ni *p = peer_find(c->cpt, c->nid);

	if (!p)
		return -ENOENT;
	peer_info(c->cpt, p, c->info);
	return 0;
}

int lnet_peer_info(struct lnet *node, const struct ulnet_nid *nid,
		   struct ulnet_peer_info *info)
{
	struct lnet_cpt *cpt = node->cpt[node_cpt_of(node, nid)];
	struct peer_info_call c = { cpt, nid, info };

	return loop_call(cpt->loop, peer_info_call, &c);
}

struct peers_list {
	struct ulnet_peer_info *infos;
	unsigned int n;
	unsigned int count; /* number of peer NIs so far */
	/* how many of them came from the CPTs before this one */
	unsigned int base;
	const struct lnet_cpt *cpt;
};

static void peers_list(struct lnet_cpt *cpt, struct lnet_peer_ni *p, void *arg)
{
	struct peers_list *list = arg;

	if (!p) {
		if (list->cpt != cpt)
			list->base = list->count;
		list->cpt = cpt;
		list->count = list->base;
		return;
	}
	if (p->place.state == PEER_ALIAS)
		return;
	if (list->count < list->n)
		peer_info(cpt, p, &list->infos[list->count]);
	list->count++;
}

int lnet_peers(struct lnet *node, struct ulnet_peer_info *infos, unsigned int n)
{
	struct peers_list list = { .infos = infos, .n = n };
	int rc = peers_each(node, peers_list, &list);

	return rc ? rc : (int)list.count;
}

/* ---- begin and end ---- */

void peers_init(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	hash_init(&pc->peers);
	provenance_init(cpt);
	list_init(&pc->idle);
	list_init(&pc->unverified);
	pool_init(&pc->peer_pool, sizeof(struct lnet_peer), 0);
	pool_init(&pc->net_pool, sizeof(struct lnet_peer_net), 0);
	pool_init(&pc->ni_pool, sizeof(struct lnet_peer_ni),
		  cpt->node->conf.peers_max);
}

/* Drops the references to configured peers, which then are idle like others. */
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
	list_splice_tail(&pc->idle, &pc->abandoned);
	while (!list_empty(&pc->idle))
		peer_free(cpt, list_first(&pc->idle, struct lnet_peer, idle));
	BUG_ON(pc->peers.count);
	hash_fini(&pc->peers);
	cpt_pool_fini(cpt, &pc->ni_pool, "peer NIs");
	cpt_pool_fini(cpt, &pc->net_pool, "peer nets");
	cpt_pool_fini(cpt, &pc->peer_pool, "peers");
}
