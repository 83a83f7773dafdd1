/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer/peer.h"

#include <errno.h>

#include "lnet/core/cpt.h"

/* A peer of one NI, in one piece of memory: what discovery later finds to be
 * more gets its nets and NIs one by one. */
struct single_peer {
	struct lnet_peer peer;
	struct lnet_peer_net net;
	struct lnet_peer_ni ni;
};

void peers_init(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);

	pool_init(&pc->peer_pool, sizeof(struct single_peer),
		  cpt->node->conf.peers_max);
	hash_init(&pc->peers);
	list_init(&pc->peers_idle);
}

static uint64_t nid_hash(const struct lnet_cpt *cpt,
			 const struct ulnet_nid *nid)
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

/* Messages of a peer come in batches, and answers mostly go to the same
 * peer. */
static inline bool is_last(const struct lnet_cpt *cpt,
			   const struct ulnet_nid *nid)
{
	return peer_cpt(cpt)->peer_last &&
	       lnet_nid_eq(&peer_cpt(cpt)->peer_last->nid, nid);
}

struct lnet_peer_ni *peer_find(struct lnet_cpt *cpt,
			       const struct ulnet_nid *nid)
{
	if (is_last(cpt, nid))
		return peer_cpt(cpt)->peer_last;
	return peer_seek(cpt, nid, nid_hash(cpt, nid));
}

static void peer_forget(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct peer_cpt *pc = peer_cpt(cpt);
	struct single_peer *s = container_of(lpni, struct single_peer, ni);

	BUG_ON(lpni->refs || !list_empty(&lpni->first) ||
	       !list_empty(&lpni->queue) || !list_empty(&lpni->connecting));
	if (pc->peer_last == lpni)
		pc->peer_last = NULL;
	list_del(&lpni->idle);
	hash_del(&pc->peers, &lpni->hash);
	pool_put(&pc->peer_pool, s);
	stat_set(&cpt->stats[STAT_peers], pc->peers.count);
}

static void peer_tell_full(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	log_warn_limited(&cpt->limits_log, loop_now(cpt->loop), "limits",
			 "%s is one peer too many: nothing is taken from it or "
			 "sent to it while all %u are in use",
			 lnet_nid_format(nid, text, sizeof(text)),
			 peer_cpt(cpt)->peer_pool.used);
}

static struct single_peer *peer_alloc(struct lnet_cpt *cpt,
				      const struct ulnet_nid *nid)
{
	struct peer_cpt *pc = peer_cpt(cpt);
	struct single_peer *s = pool_get(&pc->peer_pool);

	if (s)
		return s;
	if (list_empty(&pc->peers_idle)) {
		peer_tell_full(cpt, nid);
		return NULL;
	}
	peer_forget(cpt,
		    list_first(&pc->peers_idle, struct lnet_peer_ni, idle));
	return pool_get(&pc->peer_pool);
}

static struct lnet_peer_ni *peer_new(struct lnet_cpt *cpt,
				     const struct ulnet_nid *nid, uint64_t hash)
{
	struct peer_cpt *pc = peer_cpt(cpt);
	struct single_peer *s = peer_alloc(cpt, nid);

	if (!s)
		return NULL;
	*s = (struct single_peer){
		.peer = { .primary = *nid },
		.net = { .peer = &s->peer, .net = lnet_nid_net(nid) },
		.ni = { .net = &s->net,
			.nid = *nid,
			.preferred = LNET_NID_ANY,
			.health = LNET_HEALTH_MAX },
	};
	list_init(&s->peer.nets);
	list_add_tail(&s->peer.nets, &s->net.link);
	list_init(&s->net.nis);
	list_add_tail(&s->net.nis, &s->ni.link);
	list_init(&s->ni.first);
	list_init(&s->ni.queue);
	list_init(&s->ni.connecting);
	list_init(&s->ni.idle);
	if (hash_add(&pc->peers, &s->ni.hash, hash)) {
		pool_put(&pc->peer_pool, s);
		return NULL;
	}
	stat_set(&cpt->stats[STAT_peers], pc->peers.count);
	return &s->ni;
}

static struct lnet_peer_ni *peer_find_or_new(struct lnet_cpt *cpt,
					     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni;
	uint64_t hash;

	if (is_last(cpt, nid))
		return peer_cpt(cpt)->peer_last;
	hash = nid_hash(cpt, nid);
	lpni = peer_seek(cpt, nid, hash);
	return likely(lpni) ? lpni : peer_new(cpt, nid, hash);
}

struct lnet_peer_ni *peer_get(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find_or_new(cpt, nid);

	if (likely(lpni))
		peer_ref(lpni);
	return lpni;
}

void peer_unref(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	BUG_ON(lpni->refs == 0);
	if (--lpni->refs == 0)
		list_add_tail(&peer_cpt(cpt)->peers_idle, &lpni->idle);
}

const struct ulnet_nid *peer_primary(struct lnet_cpt *cpt,
				     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	return lpni ? &lpni->net->peer->primary : nid;
}

void peer_set_credits(struct lnet_peer_ni *lpni, uint32_t credits)
{
	if (lpni->credits_max)
		return;
	lpni->credits_max = (int32_t)credits;
	lpni->credits = (int32_t)credits;
	lpni->credits_min = (int32_t)credits;
}

void peers_fini(struct lnet_cpt *cpt)
{
	struct peer_cpt *pc = peer_cpt(cpt);
	struct lnet_peer_ni *lpni, *next;

	list_for_each_entry_safe (lpni, next, &pc->peers_idle, idle)
		peer_forget(cpt, lpni);
	BUG_ON(pc->peers.count);
	hash_fini(&pc->peers);
	cpt_pool_fini(cpt, &pc->peer_pool, "peers");
}

/* Peer NIs that are looked at in one turn: between two of them messages go
 * on. */
#define PEERS_SLICE 256

struct peers_walk {
	struct lnet_cpt *cpt;
	peers_fn fn;
	void *arg;
	uint32_t bucket; /* where it is, */
	uint32_t mask;	 /* in a table of that size; UINT32_MAX: not begun */
	bool more;
};

/* Ends between two buckets, which stay what they are until the table grows. */
static int peers_slice(void *arg)
{
	struct peers_walk *w = arg;
	const struct hash *h = &peer_cpt(w->cpt)->peers;
	struct hash_node *n = NULL;
	unsigned int seen = 0;

	if (w->mask != h->mask) {
		w->mask = h->mask;
		w->bucket = 0;
		w->fn(w->cpt, NULL, w->arg);
	}
	do {
		n = hash_walk(h, &w->bucket, n);
		if (n)
			w->fn(w->cpt,
			      container_of(n, struct lnet_peer_ni, hash),
			      w->arg);
	} while (n && (++seen < PEERS_SLICE || n->next));
	w->more = n != NULL;
	return 0;
}

int peers_each(struct lnet *node, peers_fn fn, void *arg)
{
	if (!node_may_wait(node))
		return -EXDEV;
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct peers_walk w = { .cpt = node->cpt[i],
					.fn = fn,
					.arg = arg,
					.mask = UINT32_MAX };
		int rc;

		do
			rc = loop_call(node->loops[i], peers_slice, &w);
		while (!rc && w.more);
		if (rc)
			return rc;
	}
	return 0;
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
}

int peers_stats_reset(struct lnet *node)
{
	return peers_each(node, peer_stats_reset, NULL);
}

static void peer_info(const struct lnet_cpt *cpt, const struct lnet_peer_ni *p,
		      struct ulnet_peer_info *info)
{
	*info = (struct ulnet_peer_info){
		.nid = p->nid,
		.primary = p->net->peer->primary,
		.cpt = cpt->index,
		.credits_max = (uint32_t)p->credits_max,
		.credits = p->credits,
		.credits_min = p->credits_min,
		.queued_bytes = p->queued_bytes,
		.queued = (uint64_t)MAX(-(int64_t)p->credits, 0),
		.connecting = p->nconnecting,
		.refs = p->refs,
	};
	traffic_sum(&p->traffic.send, &info->sent);
	traffic_sum(&p->traffic.recv, &info->received);
	traffic_sum(&p->traffic.drop, &info->dropped);
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
	unsigned int count; /* so far */
	unsigned int base;  /* of these, from the CPTs before */
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
