/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node_check(): counts again, message by message, what a node keeps counts of.
 */
#include <stdarg.h>

#include "lnet/message/out.h"
#include "lnet/message/throttle.h"
#include "lnet/net/net.h"
#include "lnet/node/node.h"
#include "lnet/peer/peer.h"
#include "sim/sim.h"

/* Where a description of what is wrong is written. */
struct report {
	char *buf;
	size_t size;
};

/* Writes a description of what is wrong to the report. Returns true, which its
 * callers return, too. */
static bool __attribute__((format(printf, 2, 3)))
wrong(const struct report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->buf, r->size, fmt, ap);
	va_end(ap);
	return true;
}

/* The text of a NID, valid within the statement that uses it. */
#define NID_TEXT(nid) \
	lnet_nid_format(nid, (char[LNET_NIDSTR_SIZE]){ 0 }, LNET_NIDSTR_SIZE)

/* Returns the peer NI that follows @p (NULL: the first one) on @cpt, or NULL.
 */
static struct lnet_peer_ni *next_peer_ni(const struct lnet_cpt *cpt,
					 uint32_t *bucket,
					 struct lnet_peer_ni *p)
{
	struct hash_node *n =
		hash_walk(&peer_cpt(cpt)->peers, bucket, p ? &p->hash : NULL);

	return n ? container_of(n, struct lnet_peer_ni, hash) : NULL;
}

/* ---- credits ---- */

static void count_zero(struct lnet_cpt *cpt)
{
	struct lnet_peer_ni *p = NULL;
	uint32_t bucket = 0;

	while ((p = next_peer_ni(cpt, &bucket, p)))
		p->counted = 0;
	for (unsigned int i = 0; i < cpt->config->nnis; i++)
		cpt->config->ni[i]->cpt[cpt->index].counted = 0;
}

/* Counts the credits of the peer NI and of the local NI that @msg holds or
 * waits for. A credit is subtracted from those of the NI as soon as a message
 * waits for it. */
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
	int32_t n = 0;

	for (const struct list *l = queue->next; l != queue; l = l->next)
		n++;
	return n;
}

/* An NI has @credits left of @max. Are the others the @counted ones, which
 * messages hold or wait for? And if @credits is negative, do that many messages
 * wait in the two queues? */
static bool credits_right(int32_t credits, int32_t max, int32_t counted,
			  const struct list *first, const struct list *queue)
{
	return credits + counted == max &&
	       queue_length(first) + queue_length(queue) == MAX(-credits, 0);
}

/* ---- connections ---- */

/* Does the LND of @ni say that it is not connecting to @p? Not every LND can
 * tell. */
static bool nobody_connects(struct lnet_ni *ni, const struct lnet_peer_ni *p)
{
	const struct lnd *lnd = ni->lnd.lnd;

	return lnd->is_connecting && !lnd->is_connecting(&ni->lnd, &p->nid);
}

/* Is one of @cpt's NIs marked as connecting to @p, though its LND is not? */
static bool connecting_from_wrong(const struct lnet_cpt *cpt,
				  const struct lnet_peer_ni *p)
{
	for (unsigned int i = 0; cpt->config && i < cpt->config->nnis; i++) {
		struct lnet_ni *ni = cpt->config->ni[i];

		if (ni->segment == p->net->segment &&
		    p->connecting_from & ni->bit && nobody_connects(ni, p))
			return true;
	}
	return false;
}

/* Does a message wait for a connection that no LND makes? */
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

/* ---- peers ---- */

/* Returns what is wrong with @p as a member of its peer; NULL: nothing. */
static const char *member_wrong(const struct lnet_cpt *cpt,
				const struct lnet_peer_ni *p)
{
	struct directory *d = &cpt->node->directory;
	struct ulnet_nid primary = directory_primary(d, &p->nid);
	bool here = directory_cpt(d, &p->nid) == cpt->index;
	const struct lnet_peer *peer = p->peer;
	struct directory_entry e = { .several = false };
	/* Each CPT is told of changes in a turn of its own: until then it may
	 * have an alias of a NID that it owns, or an alias with the old primary
	 * NID. */
	bool lags = p->place.state == PEER_ALIAS && !directory_is_idle(d);

	(void)directory_find(d, &p->nid, &e);
	if (here && e.several != (peer->nnis > 1))
		return "is, or is not, the only NI that the directory knows";
	if (p->net->peer != peer || p->net->segment != nid_segment(&p->nid))
		return "is an NI of another net than its peer's";
	if (here != (p->place.state == PEER_HERE) && !(here && lags))
		return "is not where the directory says";
	if (!lnet_nid_eq(&primary, &peer->primary) && !lags)
		return "has not the primary NID that the directory says";
	return NULL;
}

/* Returns what is wrong with a peer and all of its NIs; NULL: nothing. */
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

static bool peers_wrong(struct lnet_cpt *cpt, const struct report *r)
{
	struct lnet_peer_ni *p = NULL;
	uint32_t bucket = 0;

	while ((p = next_peer_ni(cpt, &bucket, p))) {
		const char *what = member_wrong(cpt, p);

		if (!what && p->net->nis.next == &p->link)
			what = peer_wrong(p->peer);
		if (what)
			return wrong(r, "peer %s on CPT %u %s",
				     NID_TEXT(&p->nid), cpt->index, what);
		if (connecting_wrong(p) || connecting_from_wrong(cpt, p))
			return wrong(r,
				     "peer %s: waited for, but nobody connects",
				     NID_TEXT(&p->nid));
		if (!credits_right(p->credits, p->credits_max, p->counted,
				   &p->first, &p->queue))
			return wrong(r,
				     "peer %s: %d credits of %d, but %d held "
				     "or waited for",
				     NID_TEXT(&p->nid), p->credits,
				     p->credits_max, p->counted);
	}
	return false;
}

static bool nis_wrong(struct lnet_cpt *cpt, const struct report *r)
{
	for (unsigned int i = 0; i < cpt->config->nnis; i++) {
		const struct lnet_ni *ni = cpt->config->ni[i];
		const struct ni_cpt *nc = &ni->cpt[cpt->index];
		int32_t credits = credits_get(&nc->credits);

		if (!credits_right(credits, nc->credits_max, nc->counted,
				   &nc->first, &nc->queue))
			return wrong(r,
				     "NI %s: %d credits of %d, but %d held or "
				     "waited for",
				     NID_TEXT(&ni->lnd.nid), credits,
				     nc->credits_max, nc->counted);
	}
	return false;
}

/* Credits are counted on all CPTs before they are compared on any of them. */
static bool credits_wrong(struct lnet *node, const struct report *r)
{
	for (unsigned int i = 0; i < node->cpts; i++)
		count_zero(node->cpt[i]);
	for (unsigned int i = 0; i < node->cpts; i++)
		count_msgs(node->cpt[i]);
	for (unsigned int i = 0; i < node->cpts; i++)
		if (peers_wrong(node->cpt[i], r) || nis_wrong(node->cpt[i], r))
			return true;
	return false;
}

/* ---- messages that wait ---- */

/* Is there a buffer for @msg, which waits, though no match query (unexpected.h)
 * is under way? */
static bool unexpected_wrong(struct lnet *node, const struct msg_in *msg,
			     const struct report *r)
{
	struct match_want want;

	request_match_want(msg, &want);
	for (unsigned int i = 0; i < node->cpts; i++)
		if (match_exists(node->cpt[i], &want))
			return wrong(r,
				     "portal %u: a message waits on CPT %u, "
				     "though there is a buffer on CPT %u",
				     want.portal, msg->out.home->index, i);
	return false;
}

static bool buffers_missed(struct lnet *node, const struct report *r)
{
	struct msg_in *msg;

	for (unsigned int i = 0; i < node->cpts; i++)
		if (msg_cpt(node->cpt[i])->query_pool.used)
			return false;
	for (unsigned int i = 0; i < node->cpts; i++)
		list_for_each_entry (msg, &msg_cpt(node->cpt[i])->active_in,
				     out.active)
			if (msg->fsm.state == IN_UNEXPECTED &&
			    unexpected_wrong(node, msg, r))
				return true;
	return false;
}

/* Counts of the messages that wait and belong to one CPT. */
struct waits {
	uint32_t bounced, unread;
};

static void waits_add(struct waits *on, const struct msg_in *msg)
{
	struct waits *h = &on[msg->out.home->index];

	switch ((enum in_state)msg->fsm.state) {
	case IN_UNEXPECTED:
		h->unread += !msg->bounced;
		/* fallthrough */
	case IN_OFFERED:
	case IN_THROTTLED:
		h->bounced += msg->bounced;
		break;
	case IN_DELAYED:
		h->bounced++;
		break;
	default:
		break;
	}
}

static bool waits_wrong(struct lnet *node, const struct report *r)
{
	struct waits on[LNET_CPTS_MAX] = { 0 };
	struct msg_in *msg;

	for (unsigned int i = 0; i < node->cpts; i++)
		list_for_each_entry (msg, &msg_cpt(node->cpt[i])->active_in,
				     out.active)
			waits_add(on, msg);
	for (unsigned int i = 0; i < node->cpts; i++) {
		const struct lnet_cpt *cpt = node->cpt[i];

		if (msg_cpt(cpt)->has_all.unexpected != on[i].bounced ||
		    msg_cpt(cpt)->has_all.unexpected_unread != on[i].unread)
			return wrong(
				r,
				"CPT %u: %u payloads are bounced and %u are "
				"unread, but %u and %u are counted",
				i, on[i].bounced, on[i].unread,
				msg_cpt(cpt)->has_all.unexpected,
				msg_cpt(cpt)->has_all.unexpected_unread);
	}
	return false;
}

/* Notes, at each look, since when the peer may owe the node of @cpt an answer.
 */
static void owes_look(const struct lnet_cpt *cpt)
{
	struct lnet_peer_ni *p = NULL;
	uint64_t now = loop_now(cpt->loop);
	uint32_t bucket = 0;

	while ((p = next_peer_ni(cpt, &bucket, p)))
		if (p->peer->asked_until <= now)
			p->owes_since = TIME_NEVER;
		else if (p->owes_since == TIME_NEVER)
			p->owes_since = now;
}

/* Returns from when on, ns, it counts that @msg keeps answers back. Until its
 * sender owed one, there was nothing to keep back. And a process that stands
 * still makes no turns: what its timers would have done meanwhile, they do when
 * it goes on. */
static uint64_t stuck_counts_from(const struct msg_in *msg)
{
	const uint64_t *held = msg->out.home->loop->env->held;

	return MAX(msg->sender->owes_since, held ? *held : 0);
}

/* Is a message throttled though there is room for it, or does one keep answers
 * back for longer than is allowed? The latter is wrong whatever the sender
 * does, even if it has died: at the end of that time the node copies or drops
 * the message, alone. */
static bool throttled_wrong(struct lnet_cpt *cpt, const struct report *r)
{
	struct msg_in *msg;

	owes_look(cpt);
	if (msg_cpt(cpt)->unthrottling)
		return false;
	list_for_each_entry (msg, &msg_cpt(cpt)->throttled, out.link) {
		bool stuck = throttle_is_stuck(msg, stuck_counts_from(msg));

		if (stuck || throttle_has_room(msg))
			return wrong(
				r,
				"a request of %s is throttled%s, with %u of "
				"%u messages in use, %u its own",
				NID_TEXT(&msg->from),
				stuck ? " and keeps answers back" : "",
				msg_cpt(cpt)->msg_pool.used,
				cpt->node->conf.messages_max,
				msg->sender->has.msgs);
	}
	return false;
}

/* ---- a router's buffers ---- */

/* Does a message wait for a buffer though it may have one now? */
static bool buffers_wait(const struct router_pool *pool)
{
	const struct msg_in *msg;

	list_for_each_entry (msg, &pool->waiting, out.link)
		if (forward_has_room(msg))
			return true;
	return false;
}

/* Are more or fewer buffers in use than the messages have? */
static bool router_wrong(struct lnet_cpt *cpt, const struct report *report)
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

		if (used[i] != pool->used || waits)
			return wrong(report,
				     "CPT %u: %u buffers of %u bytes are "
				     "counted, messages have %u%s",
				     cpt->index, pool->used, pool->size,
				     used[i],
				     waits ? ", and one waits that may have one"
					   : "");
	}
	return false;
}

/* Returns what is charged to @p's share of a router's buffers: messages that
 * are forwarded to @p; or messages that @p has sent, including those that still
 * wait for a buffer. */
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

/* Is any peer charged with more or fewer messages than are forwarded to it, or
 * from it? */
static bool forwards_wrong(struct lnet_cpt *cpt, bool to,
			   const struct report *r)
{
	struct lnet_peer_ni *p = NULL;
	uint32_t bucket = 0;

	if (!atomic_load(&cpt->node->routing))
		return false;
	forwards_count(cpt, to);
	while ((p = next_peer_ni(cpt, &bucket, p)))
		if ((uint32_t)p->counted != forwards_charged(p, to))
			return wrong(r,
				     "peer %s: charged with %u messages that "
				     "are passed on %s it, but there are %d",
				     NID_TEXT(&p->nid), forwards_charged(p, to),
				     to ? "to" : "from", p->counted);
	return false;
}

const char *node_check(struct lnet *node, char *buf, size_t size)
{
	const struct report r = { buf, size };

	if (credits_wrong(node, &r) || waits_wrong(node, &r))
		return buf;
	for (unsigned int i = 0; i < node->cpts; i++)
		if (throttled_wrong(node->cpt[i], &r) ||
		    router_wrong(node->cpt[i], &r) ||
		    forwards_wrong(node->cpt[i], true, &r) ||
		    forwards_wrong(node->cpt[i], false, &r))
			return buf;
	return buffers_missed(node, &r) ? buf : NULL;
}
