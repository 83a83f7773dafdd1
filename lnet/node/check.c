/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_check(): counts again what the node keeps counts of.
 */
#include "lnet/message/out.h"
#include "lnet/message/park.h"
#include "lnet/message/request.h"
#include "lnet/net/ni.h"
#include "lnet/node/node.h"
#include "lnet/peer/peer.h"

static void count_zero(struct lnet_cpt *cpt)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;

	while ((n = hash_walk(&peer_cpt(cpt)->peers, &bucket, n)))
		container_of(n, struct lnet_peer_ni, hash)->counted = 0;
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		cpt->config->ni[i]->cpt[cpt->index].counted = 0;
}

/* A credit that is held, or waited for: taken from both counts alike. */
static void count_msg(const struct msg_out *msg)
{
	if (!msg->lpni)
		return;
	switch (msg->fsm.state) {
	case OUT_PEER_QUEUE:
		msg->lpni->counted++;
		break;
	case OUT_NI_QUEUE:
	case OUT_LND:
	case OUT_REFUSED:
		msg->lpni->counted++;
		msg->ni->cpt[msg->cpt->index].counted++;
		break;
	}
}

static void count_msgs(const struct lnet_cpt *cpt)
{
	const struct msg_out *msg;

	list_for_each_entry (msg, &msg_cpt(cpt)->active_in, active)
		count_msg(msg);
	list_for_each_entry (msg, &msg_cpt(cpt)->active_out, active)
		count_msg(msg);
}

static int32_t queue_length(const struct list *queue)
{
	const struct list *l;
	int32_t n = 0;

	for (l = queue->next; l != queue; l = l->next)
		n++;
	return n;
}

/* Do as many wait as the credits say? */
static bool queue_wrong(int32_t n, int32_t credits)
{
	return n != MAX(-credits, 0);
}

/* Does the LND of @ni have nothing to say of a connection to @p? Not every LND
 * can tell. */
static bool nobody_connects(struct lnet_ni *ni, const struct lnet_peer_ni *p)
{
	const struct lnd *lnd = ni->lnd.lnd;

	return lnd->is_connecting && !lnd->is_connecting(&ni->lnd, &p->nid);
}

/* Is one of @cpt's NIs passed over for a connection that nobody makes? */
static bool connecting_from_wrong(const struct lnet_cpt *cpt,
				  const struct lnet_peer_ni *p)
{
	for (unsigned int i = 0; cpt->config && i < cpt->config->nnis; i++) {
		struct lnet_ni *ni = cpt->config->ni[i];

		if (ni_segment(ni) == p->net->segment &&
		    p->connecting_from & ni->bit && nobody_connects(ni, p))
			return true;
	}
	return false;
}

/* Does each message that waits for a connection wait for one that the LND has
 * promised? */
static bool connecting_wrong(const struct lnet_peer_ni *p)
{
	struct msg_out *msg;
	uint64_t n = 0;

	list_for_each_entry (msg, &p->connecting, link) {
		if (msg->fsm.state != OUT_CONNECTING ||
		    !(p->connecting_from & msg->ni->bit) ||
		    nobody_connects(msg->ni, p))
			return true;
		n++;
	}
	return n != p->nconnecting;
}

/* What is wrong with @p as one of its peer's NIs, or NULL. */
static const char *member_wrong(const struct lnet_cpt *cpt,
				const struct lnet_peer_ni *p)
{
	struct directory *d = &cpt->node->directory;
	struct ulnet_nid primary = directory_primary(d, &p->nid);
	bool here = directory_cpt(d, &p->nid) == cpt->index;
	const struct lnet_peer *peer = p->peer;
	struct directory_entry e = { .several = false };

	(void)directory_find(d, &p->nid, &e);
	if (here && e.several != (peer->nnis > 1))
		return "is, or is not, the only NI that the directory knows";
	if (p->net->peer != peer || p->net->segment != nid_segment(&p->nid))
		return "is an NI of another net than its peer's";
	if (here != (p->place.state == PEER_HERE))
		return "is not where the directory says";
	/* Each CPT is told about its aliases in a turn of its own. */
	if (!lnet_nid_eq(&primary, &peer->primary) &&
	    (here || directory_is_idle(d)))
		return "has not the primary NID that the directory says";
	return NULL;
}

/* What is wrong with a peer, by all of its NIs, or NULL. */
static const char *peer_wrong(const struct lnet_peer *peer)
{
	const struct lnet_peer_net *pnet;
	const struct lnet_peer_ni *p;
	uint32_t nis = 0, used = 0;
	bool primary = false;

	list_for_each_entry (pnet, &peer->nets, link) {
		if (list_empty(&pnet->nis))
			return "has a net without NIs";
		list_for_each_entry (p, &pnet->nis, link) {
			nis++;
			used += p->refs != 0;
			primary = primary ||
				  lnet_nid_eq(&p->nid, &peer->primary) ||
				  p->place.state == PEER_ALIAS;
		}
	}
	if (nis != peer->nnis)
		return "has more NIs than it has counted, or fewer";
	if (used > peer->refs)
		return "is held less than its NIs are used";
	if (list_empty(&peer->idle) != (peer->refs != 0))
		return "is idle, or is not, against its references";
	return primary ? NULL : "is known by a NID that is not its own";
}

static bool membership_wrong(const struct lnet_cpt *cpt,
			     const struct lnet_peer_ni *p, char *buf,
			     size_t size)
{
	const char *what = member_wrong(cpt, p);
	char nid[LNET_NIDSTR_SIZE];

	if (!what && p->net->nis.next == &p->link)
		what = peer_wrong(p->peer);
	if (!what)
		return false;
	snprintf(buf, size, "peer %s on CPT %u %s",
		 lnet_nid_format(&p->nid, nid, sizeof(nid)), cpt->index, what);
	return true;
}

static bool peers_wrong(struct lnet_cpt *cpt, char *buf, size_t size)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;
	char nid[LNET_NIDSTR_SIZE];

	while ((n = hash_walk(&peer_cpt(cpt)->peers, &bucket, n))) {
		struct lnet_peer_ni *p =
			container_of(n, struct lnet_peer_ni, hash);

		if (membership_wrong(cpt, p, buf, size))
			return true;
		if (connecting_wrong(p) || connecting_from_wrong(cpt, p)) {
			snprintf(buf, size,
				 "peer %s: waited for, but nobody connects",
				 lnet_nid_format(&p->nid, nid, sizeof(nid)));
			return true;
		}
		if (p->credits + p->counted == p->credits_max &&
		    !queue_wrong(queue_length(&p->first) +
					 queue_length(&p->queue),
				 p->credits))
			continue;
		snprintf(buf, size,
			 "peer %s: %d credits of %d, but %d held or waited for",
			 lnet_nid_format(&p->nid, nid, sizeof(nid)), p->credits,
			 p->credits_max, p->counted);
		return true;
	}
	return false;
}

static bool nis_wrong(struct lnet_cpt *cpt, char *buf, size_t size)
{
	char nid[LNET_NIDSTR_SIZE];

	for (unsigned int i = 0; i < cpt->config->nnis; i++) {
		const struct lnet_ni *ni = cpt->config->ni[i];
		const struct ni_cpt *nc = &ni->cpt[cpt->index];
		int32_t credits = credits_get(&nc->credits);

		if (credits + nc->counted == nc->credits_max &&
		    !queue_wrong(queue_length(&nc->first) +
					 queue_length(&nc->queue),
				 credits))
			continue;
		snprintf(buf, size,
			 "NI %s: %d credits of %d, but %d held or waited for",
			 lnet_nid_format(&ni->lnd.nid, nid, sizeof(nid)),
			 credits, nc->credits_max, nc->counted);
		return true;
	}
	return false;
}

/* Does @msg wait for a buffer that is there, with no query on its way to find
 * @msg (hold.h)? */
static bool held_wrong(struct lnet *node, const struct msg_in *msg, char *buf,
		       size_t size)
{
	struct match_want want;

	request_wants(msg, &want);
	for (unsigned int i = 0; i < node->cpts; i++) {
		if (!match_exists(node->cpt[i], &want))
			continue;
		snprintf(buf, size,
			 "portal %u: a message is held on CPT %u, though there "
			 "is a buffer on CPT %u",
			 want.portal, msg->out.home->index, i);
		return true;
	}
	return false;
}

/* What waits on a CPT, by its messages, and as counted. */
struct holding {
	uint32_t aside, standing;
};

static void holding_add(struct holding *on, const struct msg_in *msg)
{
	struct holding *h = &on[msg->out.home->index];

	switch ((enum in_state)msg->fsm.state) {
	case IN_HELD:
		h->standing += !msg->aside;
		/* fallthrough */
	case IN_OFFERED:
	case IN_PARKED:
		h->aside += msg->aside;
		break;
	case IN_DELAYED:
		h->aside++;
		break;
	default:
		break;
	}
}

static bool holding_wrong(struct lnet *node, char *buf, size_t size)
{
	struct holding on[LNET_CPTS_MAX] = { 0 };
	struct msg_in *msg;

	for (unsigned int i = 0; i < node->cpts; i++)
		list_for_each_entry (msg, &msg_cpt(node->cpt[i])->active_in,
				     out.active)
			holding_add(on, msg);
	for (unsigned int i = 0; i < node->cpts; i++) {
		const struct lnet_cpt *cpt = node->cpt[i];

		if (msg_cpt(cpt)->has_all.held == on[i].aside &&
		    msg_cpt(cpt)->has_all.standing == on[i].standing)
			continue;
		snprintf(buf, size,
			 "CPT %u: %u messages are put aside and %u stand, but "
			 "%u and %u are counted",
			 i, on[i].aside, on[i].standing,
			 msg_cpt(cpt)->has_all.held,
			 msg_cpt(cpt)->has_all.standing);
		return true;
	}
	return false;
}

static bool parked_wrong(struct lnet_cpt *cpt, char *buf, size_t size)
{
	struct msg_in *msg;

	if (msg_cpt(cpt)->unparking)
		return false;
	list_for_each_entry (msg, &msg_cpt(cpt)->parked, out.link) {
		char nid[LNET_NIDSTR_SIZE];
		bool stuck = park_is_stuck(msg);

		if (!stuck && !park_has_room(msg))
			continue;
		snprintf(buf, size,
			 "a request of %s is parked%s, with %u of %u "
			 "messages in use, %u its own",
			 lnet_nid_format(&msg->from, nid, sizeof(nid)),
			 stuck ? " and keeps answers back" : "",
			 msg_cpt(cpt)->msg_pool.used,
			 cpt->node->conf.messages_max, msg->sender->has.msgs);
		return true;
	}
	return false;
}

/* Does a message wait for a buffer that it may have? */
static bool buffers_wait(const struct router_pool *pool)
{
	const struct msg_in *msg;

	list_for_each_entry (msg, &pool->waiting, out.link)
		if (forward_has_room(msg))
			return true;
	return false;
}

/* Are the buffers in use those that messages have? */
static bool router_wrong(struct lnet_cpt *cpt, char *buf, size_t size)
{
	const struct router *r = &msg_cpt(cpt)->router;
	uint32_t used[LNET_BUFFER_KINDS] = { 0 };
	const struct msg_in *msg;

	list_for_each_entry (msg, &msg_cpt(cpt)->active_in, out.active)
		if (msg->buf)
			used[router_pool_of(cpt, msg->out.hdr.payload_length) -
			     r->pool]++;
	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++) {
		const struct router_pool *pool = &r->pool[i];
		bool waits = !r->waking && buffers_wait(pool);

		if (used[i] == pool->used && !waits)
			continue;
		snprintf(buf, size,
			 "CPT %u: %u buffers of %u bytes are counted, messages "
			 "have %u%s",
			 cpt->index, pool->used, pool->size, used[i],
			 waits ? ", and one waits that may have one" : "");
		return true;
	}
	return false;
}

/* What @p's share of a router's buffers is charged with: messages for it, or
 * those that it has sent, which may still wait. */
static uint32_t forwards_charged(const struct lnet_peer_ni *p, bool to)
{
	return to ? p->has.forwards_to : p->has.forwards + p->has.forward_waits;
}

static void forwards_count(struct lnet_cpt *cpt, bool to)
{
	struct msg_in *msg;

	count_zero(cpt);
	list_for_each_entry (msg, &msg_cpt(cpt)->active_in, out.active)
		if (msg->buf)
			(to ? msg->dest : msg->sender)->counted++;
		else if (!to && msg->fsm.state == IN_BUFFERLESS)
			msg->sender->counted++;
}

/* Is each peer charged with the messages that there are of it? */
static bool forwards_wrong(struct lnet_cpt *cpt, bool to, char *buf,
			   size_t size)
{
	struct hash_node *n = NULL;
	uint32_t bucket = 0;
	char nid[LNET_NIDSTR_SIZE];

	if (!atomic_load(&cpt->node->routing))
		return false;
	forwards_count(cpt, to);
	while ((n = hash_walk(&peer_cpt(cpt)->peers, &bucket, n))) {
		const struct lnet_peer_ni *p =
			container_of(n, struct lnet_peer_ni, hash);

		if ((uint32_t)p->counted == forwards_charged(p, to))
			continue;
		snprintf(buf, size,
			 "peer %s: charged with %u messages that are passed on "
			 "%s it, but there are %d",
			 lnet_nid_format(&p->nid, nid, sizeof(nid)),
			 forwards_charged(p, to), to ? "to" : "from",
			 p->counted);
		return true;
	}
	return false;
}

static bool buffers_missed(struct lnet *node, char *buf, size_t size)
{
	struct msg_in *msg;

	for (unsigned int i = 0; i < node->cpts; i++)
		if (msg_cpt(node->cpt[i])->query_pool.used)
			return false;
	for (unsigned int i = 0; i < node->cpts; i++)
		list_for_each_entry (msg, &msg_cpt(node->cpt[i])->active_in,
				     out.active)
			if (msg->fsm.state == IN_HELD &&
			    held_wrong(node, msg, buf, size))
				return true;
	return false;
}

/* Credits are counted on all CPTs before they are looked at on any. */
static bool credits_wrong(struct lnet *node, char *buf, size_t size)
{
	for (unsigned int i = 0; i < node->cpts; i++)
		count_zero(node->cpt[i]);
	for (unsigned int i = 0; i < node->cpts; i++)
		count_msgs(node->cpt[i]);
	for (unsigned int i = 0; i < node->cpts; i++)
		if (peers_wrong(node->cpt[i], buf, size) ||
		    nis_wrong(node->cpt[i], buf, size))
			return true;
	return false;
}

const char *node_check(struct lnet *node, char *buf, size_t size)
{
	if (credits_wrong(node, buf, size) || holding_wrong(node, buf, size))
		return buf;
	for (unsigned int i = 0; i < node->cpts; i++)
		if (parked_wrong(node->cpt[i], buf, size) ||
		    router_wrong(node->cpt[i], buf, size) ||
		    forwards_wrong(node->cpt[i], true, buf, size) ||
		    forwards_wrong(node->cpt[i], false, buf, size))
			return buf;
	return buffers_missed(node, buf, size) ? buf : NULL;
}
