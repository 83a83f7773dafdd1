/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/peer.h"

#include <errno.h>

#include "lnet/node.h"

/* A peer of one NI, in one piece of memory: what discovery later finds to be
 * more gets its nets and NIs one by one. */
struct single_peer {
	struct lnet_peer peer;
	struct lnet_peer_net net;
	struct lnet_peer_ni ni;
};

size_t peer_size(void)
{
	return sizeof(struct single_peer);
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

	for (n = hash_first(&cpt->peers, hash); n; n = hash_next(n)) {
		struct lnet_peer_ni *p =
			container_of(n, struct lnet_peer_ni, hash);

		if (lnet_nid_eq(&p->nid, nid)) {
			cpt->peer_last = p;
			return p;
		}
	}
	return NULL;
}

/* Messages of a peer come in batches, and it is mostly him who is answered. */
static inline bool is_last(const struct lnet_cpt *cpt,
			   const struct ulnet_nid *nid)
{
	return cpt->peer_last && lnet_nid_eq(&cpt->peer_last->nid, nid);
}

struct lnet_peer_ni *peer_find(struct lnet_cpt *cpt,
			       const struct ulnet_nid *nid)
{
	if (is_last(cpt, nid))
		return cpt->peer_last;
	return peer_seek(cpt, nid, nid_hash(cpt, nid));
}

static void peer_forget(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	struct single_peer *s = container_of(lpni, struct single_peer, ni);

	BUG_ON(lpni->refs || !list_empty(&lpni->queue) ||
	       !list_empty(&lpni->connecting));
	if (cpt->peer_last == lpni)
		cpt->peer_last = NULL;
	list_del(&lpni->idle);
	hash_del(&cpt->peers, &lpni->hash);
	pool_put(&cpt->peer_pool, s);
	stat_set(&cpt->stats[STAT_peers], cpt->peers.count);
}

static struct single_peer *peer_alloc(struct lnet_cpt *cpt)
{
	struct single_peer *s = pool_get(&cpt->peer_pool);

	if (s || list_empty(&cpt->peers_idle))
		return s;
	peer_forget(cpt,
		    list_first(&cpt->peers_idle, struct lnet_peer_ni, idle));
	return pool_get(&cpt->peer_pool);
}

static struct lnet_peer_ni *peer_new(struct lnet_cpt *cpt,
				     const struct ulnet_nid *nid, uint64_t hash)
{
	struct single_peer *s = peer_alloc(cpt);

	if (!s)
		return NULL;
	*s = (struct single_peer){
		.peer = { .primary = *nid },
		.net = { .peer = &s->peer, .net = lnet_nid_net(nid) },
		.ni = { .net = &s->net,
			.nid = *nid,
			.preferred = LNET_NID_ANY },
	};
	list_init(&s->peer.nets);
	list_add_tail(&s->peer.nets, &s->net.link);
	list_init(&s->net.nis);
	list_add_tail(&s->net.nis, &s->ni.link);
	list_init(&s->ni.queue);
	list_init(&s->ni.connecting);
	list_init(&s->ni.idle);
	if (hash_add(&cpt->peers, &s->ni.hash, hash)) {
		pool_put(&cpt->peer_pool, s);
		return NULL;
	}
	stat_set(&cpt->stats[STAT_peers], cpt->peers.count);
	return &s->ni;
}

static struct lnet_peer_ni *peer_find_or_new(struct lnet_cpt *cpt,
					     const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni;
	uint64_t hash;

	if (is_last(cpt, nid))
		return cpt->peer_last;
	hash = nid_hash(cpt, nid);
	lpni = peer_seek(cpt, nid, hash);
	return likely(lpni) ? lpni : peer_new(cpt, nid, hash);
}

struct lnet_peer_ni *peer_get(struct lnet_cpt *cpt, const struct ulnet_nid *nid)
{
	struct lnet_peer_ni *lpni = peer_find_or_new(cpt, nid);

	if (likely(lpni) && lpni->refs++ == 0)
		list_del(&lpni->idle);
	return lpni;
}

void peer_unref(struct lnet_cpt *cpt, struct lnet_peer_ni *lpni)
{
	BUG_ON(lpni->refs == 0);
	if (--lpni->refs == 0)
		list_add_tail(&cpt->peers_idle, &lpni->idle);
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

void peers_free(struct lnet_cpt *cpt)
{
	struct lnet_peer_ni *lpni, *next;

	list_for_each_entry_safe (lpni, next, &cpt->peers_idle, idle)
		peer_forget(cpt, lpni);
	BUG_ON(cpt->peers.count);
	hash_fini(&cpt->peers);
}

static struct lnet_peer_ni *peer_next(const struct lnet_cpt *cpt,
				      struct lnet_peer_ni *lpni,
				      uint32_t *bucket)
{
	struct hash_node *n =
		hash_walk(&cpt->peers, bucket, lpni ? &lpni->hash : NULL);

	return n ? container_of(n, struct lnet_peer_ni, hash) : NULL;
}

void peers_stats_reset(struct lnet_cpt *cpt)
{
	struct lnet_peer_ni *p = NULL;
	uint32_t bucket = 0;

	while ((p = peer_next(cpt, p, &bucket))) {
		traffic_reset(&p->traffic);
		p->credits_min = p->credits;
	}
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
	struct lnet_cpt *cpt = &node->cpt[node_cpt_of(node, nid)];
	struct peer_info_call c = { cpt, nid, info };

	return loop_call(cpt->loop, peer_info_call, &c);
}

struct peers_list {
	struct ulnet_peer_info *infos;
	unsigned int n;
	unsigned int count; /* so far */
};

static int peers_list(struct lnet_cpt *cpt, void *arg)
{
	struct peers_list *list = arg;
	struct lnet_peer_ni *p = NULL;
	uint32_t bucket = 0;

	while ((p = peer_next(cpt, p, &bucket))) {
		if (list->count < list->n)
			peer_info(cpt, p, &list->infos[list->count]);
		list->count++;
	}
	return 0;
}

int lnet_peers(struct lnet *node, struct ulnet_peer_info *infos, unsigned int n)
{
	struct peers_list list = { infos, n, 0 };
	int rc = node_each_cpt(node, peers_list, &list);

	return rc ? rc : (int)list.count;
}
