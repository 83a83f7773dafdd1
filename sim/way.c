/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariants of the NIs that messages are sent through:
 *	- no message is sent through an NI that is down while another one could
 *	  be used;
 *	- a peer that is not multi-rail sees one source NID, until the NI with
 *	  this NID fails or is deleted, or the node forgets the peer.
 *	  Exceptions: while the peer is taken for multi-rail, and if policies
 *	  say otherwise.
 */
#include <errno.h>

#include "lnet/message/out.h"
#include "lnet/net/net.h"
#include "lnet/net/ni.h"
#include "lnet/peer/peer.h"
#include "sim/sim_priv.h"

/* A message is sent at most this long after its path was chosen. */
#define WAIT_MAX (50 * NSEC_PER_SEC)

/* The source NID in the last message that a peer NI got. */
struct way {
	struct hash_node hash;	 /* in sim->ways */
	const struct lnet *node; /* the node that sends */
	struct ulnet_nid dst, src;
	/* sim_net_ni_changes() of the NI of .src, when the last message was
	 * sent */
	uint64_t changes;
	/* the node had policies when the last message was sent */
	bool policies;
	uint64_t any_until; /* ns: until this time any source is right */
};

static uint64_t way_hash(const struct lnet *node, const struct ulnet_nid *dst)
{
	return hash_bytes(dst, sizeof(*dst), (uint64_t)(uintptr_t)node);
}

static struct way *way_find(const struct lnet_sim *sim, const struct lnet *node,
			    const struct ulnet_nid *dst)
{
	struct hash_node *n = hash_first(&sim->ways, way_hash(node, dst));

	for (; n; n = hash_next(n)) {
		struct way *w = container_of(n, struct way, hash);

		if (w->node == node && lnet_nid_eq(&w->dst, dst))
			return w;
	}
	return NULL;
}

static struct way *way_new(struct lnet_sim *sim, const struct lnet *node,
			   const struct ulnet_nid *dst)
{
	struct way *w = calloc(1, sizeof(*w));

	if (!w || hash_add(&sim->ways, &w->hash, way_hash(node, dst))) {
		free(w);
		return NULL;
	}
	w->node = node;
	w->dst = *dst;
	w->src = LNET_NID_ANY;
	return w;
}

static void way_check(struct lnet_sim *sim, const struct lnet_cpt *cpt,
		      const struct way *w, const struct ulnet_nid *src)
{
	char dst[LNET_NIDSTR_SIZE], was[LNET_NIDSTR_SIZE], is[LNET_NIDSTR_SIZE];

	if (lnet_nid_is_any(&w->src) || lnet_nid_eq(&w->src, src) ||
	    lnet_sim_now(sim) < w->any_until ||
	    sim_net_ni_changes(sim->net, &w->src) != w->changes ||
	    w->policies || cpt->policies || !config_ni(cpt->config, &w->src))
		return;
	lnet_sim_fail(sim,
		      "%s, which is not multi-rail, has seen %s, and now "
		      "%s",
		      lnet_nid_format(&w->dst, dst, sizeof(dst)),
		      lnet_nid_format(&w->src, was, sizeof(was)),
		      lnet_nid_format(src, is, sizeof(is)));
}

/* Has LNet, and not the sender, chosen the source of @msg? Then the peer knows
 * this node by that source. */
static bool way_is_chosen(const struct msg_out *msg)
{
	return msg->role == OUT_OP && lnet_nid_is_any(&msg->local_nid) &&
	       msg->hdr.portal != 0;
}

static void way_taken(struct lnet_sim *sim, const struct msg_out *msg,
		      const struct ulnet_nid *dst)
{
	const struct ulnet_nid *src = &msg->ni->lnd.nid;
	const struct lnet_cpt *cpt = msg->cpt;
	struct way *w = way_find(sim, cpt->node, dst);

	if (msg->lpni->peer->multi_rail) {
		if (w)
			w->src = LNET_NID_ANY;
		return;
	}
	if (!w)
		w = way_new(sim, cpt->node, dst);
	if (!w) {
		lnet_sim_fail(sim, "no memory to watch the ways of messages");
		return;
	}
	/* The path, from another NI, was chosen while the peer was multi-rail.
	 */
	if (!lnet_nid_eq(&msg->lpni->preferred, src))
		w->any_until = lnet_sim_now(sim) + WAIT_MAX;
	way_check(sim, cpt, w, src);
	w->src = *src;
	w->changes = sim_net_ni_changes(sim->net, src);
	w->policies = cpt->policies;
}

/* Has the node forgotten the peer since the last message? Then what it knows of
 * the peer now is new, and names no source yet. */
static bool way_is_over(const struct msg_out *msg)
{
	struct ulnet_counts sent = { 0 };

	traffic_sum(&msg->lpni->traffic.send, &sent);
	return lnet_nid_is_any(&msg->lpni->preferred) || !counts_total(&sent);
}

static void way_end(struct lnet_sim *sim, const struct msg_out *msg,
		    const struct ulnet_nid *dst)
{
	struct way *w = way_find(sim, msg->cpt->node, dst);

	if (w)
		w->src = LNET_NID_ANY;
}

/* Is any NI of the same net up? */
static bool has_other(const struct msg_out *msg)
{
	const struct lnet_net *net =
		config_net(msg->cpt->config, msg->ni->segment);

	for (unsigned int i = 0; net && i < net->nnis; i++)
		if (ni_is_up(net->ni[i]))
			return true;
	return false;
}

/* Returns when, ns, the node could hear of what happened at @at: then, or, if
 * it stood still, when it went on. */
static uint64_t could_hear(const struct lnet_sim *sim, const struct lnet *node,
			   uint64_t at)
{
	for (unsigned int i = 0; i < sim->nnodes; i++)
		if (sim->nodes[i]->node == node)
			return MAX(at, sim->nodes[i]->paused);
	return at;
}

void way_send(void *arg, const struct lnd_msg *lnd, uint64_t down)
{
	const struct msg_out *msg = container_of(lnd, struct msg_out, lnd);
	const struct ulnet_nid *src = &msg->ni->lnd.nid;
	struct lnet_sim *sim = arg;
	char nid[LNET_NIDSTR_SIZE];

	/* Not an error: at the very moment of a failure not every CPT has heard
	 * of it yet, and a message that a fault rule duplicates takes the same
	 * path twice. */
	if (down < lnet_sim_now(sim) && lnet_nid_is_any(&msg->local_nid) &&
	    msg->role != OUT_DUPLICATE && has_other(msg) &&
	    could_hear(sim, msg->cpt->node, down) < lnet_sim_now(sim))
		lnet_sim_fail(sim,
			      "a message is sent through %s, which has failed",
			      lnet_nid_format(src, nid, sizeof(nid)));
	if (way_is_over(msg))
		way_end(sim, msg, &lnd->next_hop);
	if (down == TIME_NEVER && way_is_chosen(msg))
		way_taken(sim, msg, &lnd->next_hop);
}

void ways_forget(struct lnet_sim *sim, const struct lnet *node)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	while ((n = hash_walk(&sim->ways, &bucket, n))) {
		struct way *w = container_of(n, struct way, hash);

		if (node && w->node != node)
			continue;
		hash_del(&sim->ways, n);
		free(w);
		n = NULL;
		bucket = 0;
	}
}
