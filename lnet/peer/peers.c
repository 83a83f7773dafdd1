/* SPDX-License-Identifier: BSD-3-Clause */
/* All peers of a node, and what is told of them. */
#include <errno.h>

#include "lnet/policy/policy.h"
#include "lnet/net/net.h"
#include "lnet/peer/peer.h"
#include "lnet/peer/provenance.h"

/* Peer NIs that are looked at in one turn: between two of them messages go
 * on. */
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
	/* Ends between two buckets, which stay what they are until the table
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

/* 1: there are more. */
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

/* What we know of the peer, in the bits by which kernel nodes show it. */
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

/* On a router; @forwards: buffers that it has, and messages that wait. */
static int64_t router_credits(const struct lnet_cpt *cpt,
			      const struct lnet_peer_ni *p, uint32_t forwards)
{
	const struct lnet_net *net = config_net(cpt->config, p->net->segment);

	return net ? (int64_t)ni_buffer_credits(net->ni[0]) - forwards : 0;
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
		.recovering = p->recovery != NULL,
		.pings_silent = p->recovery ? p->recovery->silent : 0,
		.next_ping = p->recovery ? p->recovery->next : 0,
		.failed = { .remote_dropped = failures(p, REMOTE_DROPPED),
			    .remote_timeouts = failures(p, REMOTE_TIMEOUT),
			    .remote_errors = failures(p, REMOTE_ERROR),
			    .network_timeouts = failures(p, NETWORK_TIMEOUT) },
		.resent = stat_get(&p->traffic.resent),
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
