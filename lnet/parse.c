/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/parse.h"

#include <errno.h>

#include "base/log.h"
#include "lnet/md.h"
#include "lnet/ni.h"
#include "lnet/node.h"
#include "lnet/op.h"
#include "lnet/peer.h"
#include "lnet/ping.h"

/* ---- dropping: nobody is told but the counters ---- */

static void count_drop(struct lnet_cpt *cpt, struct lnet_ni *ni, uint32_t type,
		       uint32_t length, enum lnet_stat why)
{
	cpt_stat(cpt, STAT_drop_count);
	stat_add(&cpt->stats[STAT_drop_length], length);
	cpt_stat(cpt, why);
	traffic_add(&ni->cpt[cpt->index].traffic.drop, type, length);
}

/* @length: stored, which may be less than what came. */
static void count_received(const struct lnet_msg *msg, uint32_t length)
{
	struct lnet_cpt *cpt = msg->cpt;

	cpt_stat(cpt, STAT_recv_count);
	stat_add(&cpt->stats[STAT_recv_length], length);
	traffic_add(&msg->ni->cpt[cpt->index].traffic.recv, msg->hdr.type,
		    length);
}

/* Discards what the LND calls @rx, before anything was made of it. */
static int discard(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx,
		   uint32_t type, uint32_t length, enum lnet_stat why)
{
	count_drop(cpt, ni, type, length, why);
	ni->lnd.lnd->recv(&ni->lnd, rx, NULL, length);
	return 0;
}

/* On the CPT that received it. */
static void drop(struct lnet_msg *msg, enum lnet_stat why)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct lnet_peer_ni *lpni = peer_find(cpt, &msg->from);

	if (timer_armed(&msg->timer))
		loop_timer_cancel(cpt->loop, &msg->timer);
	if (lpni)
		traffic_add(&lpni->traffic.drop, msg->hdr.type,
			    msg->hdr.payload_length);
	count_drop(cpt, msg->ni, msg->hdr.type, msg->hdr.payload_length, why);
	msg_discard(msg);
	ni_unref(msg->ni, cpt->index);
	msg->ni = NULL;
	msg_free(msg);
}

/* ---- a PUT or GET looks for its buffer ---- */

static void match_wanted(const struct lnet_msg *msg, struct match_want *want)
{
	bool get = msg->hdr.type == LNET_MSG_GET;

	want->id.nid = msg->initiator;
	want->id.pid = msg->hdr.src_pid;
	want->bits = msg->hdr.match_bits;
	want->portal = msg->hdr.portal;
	want->op = get ? LNET_MD_OP_GET : LNET_MD_OP_PUT;
	want->rlength = get ? msg->hdr.length : msg->hdr.payload_length;
	want->roffset = msg->hdr.offset;
}

/* The payload of a GET is what we send, so the LND has nothing to store, and
 * the message turns round. */
static void get_reply(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct lnet_hdr *hdr = &msg->hdr;

	count_received(msg, 0);
	msg_discard(msg);
	msg->want_ni = hdr->dest_nid;
	hdr->dest_nid = hdr->src_nid;
	hdr->dest_pid = hdr->src_pid;
	hdr->src_pid = cpt->node->conf.pid;
	hdr->type = LNET_MSG_REPLY;
	hdr->payload_length = msg->mlength;
	msg->role = MSG_REPLY_OUT;
	msg_set_payload(msg, msg->md, msg->offset, msg->mlength);
	msg->lnd.deadline = cpt_deadline(cpt);
	ni_unref(msg->ni, cpt->index);
	msg->ni = NULL;
	if (msg->fsm.state == MSG_HELD)
		fsm_move(&msg->fsm, msg_states, MSG_NEW);
	msg_launch(msg);
}

/* The MD is found: on with the payload, on the CPT that received the message.
 */
static void deliver(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	const struct lnet_observer *o = msg->cpt->node->observer;

	if (o)
		o->accepted(o->arg, msg->cpt->node, &msg->ni->lnd, msg->rx);
	if (msg->role == MSG_GET_IN) {
		get_reply(msg);
		return;
	}
	count_received(msg, msg->mlength);
	msg->lnd.deadline = cpt_deadline(msg->cpt);
	msg_recv(msg);
}

/* 0: delivered, or on its way to be. */
static int try_here(struct lnet_msg *msg)
{
	struct match_want want;
	struct match_found found;
	int rc;

	match_wanted(msg, &want);
	rc = match_find(msg->cpt, &want, &found);
	if (rc)
		return rc;
	msg->md = found.md;
	msg->mlength = found.mlength;
	msg->offset = found.offset;
	msg_set_payload(msg, found.md, found.offset, found.mlength);
	msg_pass(msg, msg->home, deliver);
	return 0;
}

static enum lnet_stat why_no_match(int rc)
{
	switch (rc) {
	case -EMSGSIZE:
		return STAT_drop_too_long;
	case -ENOBUFS:
		return STAT_drop_eq_full;
	default:
		return STAT_drop_no_match;
	}
}

static void unhold(struct lnet_msg *msg)
{
	list_del(&msg->link);
	msg->cpt->held--;
	msg->cpt->held_bytes -= msg->hdr.payload_length;
	loop_timer_cancel(msg->cpt->loop, &msg->timer);
}

void parse_held_late(struct lnet_msg *msg)
{
	unhold(msg);
	drop(msg, STAT_drop_lazy_late);
}

/* STAT_COUNT, or why a message that nothing matches is dropped. GETs are never
 * kept. */
static enum lnet_stat why_not_held(const struct lnet_msg *msg)
{
	const struct lnet_cpt *cpt = msg->cpt;
	const struct lnet *node = cpt->node;

	if (cpt->closing || msg->ni->cpt[cpt->index].stopped)
		return STAT_drop_closing;
	if (msg->role != MSG_PUT_IN ||
	    !atomic_load(&node->portals[msg->hdr.portal].lazy))
		return STAT_drop_no_match;
	/* Nothing else will ever be attached there. */
	if (msg->hdr.portal == PING_PORTAL &&
	    msg->hdr.match_bits != PING_MATCH_BITS)
		return STAT_drop_no_match;
	if (cpt->held >= node->conf.lazy_max ||
	    cpt->held_bytes + msg->hdr.payload_length >
		    node->conf.lazy_bytes_max)
		return STAT_drop_lazy_full;
	return STAT_COUNT;
}

/* No buffer anywhere: kept if the portal is lazy. @aside: its payload has been
 * put aside before. */
static void hold_or_drop(struct lnet_msg *msg, bool aside)
{
	struct lnet_cpt *cpt = msg->cpt;
	const struct lnd *lnd = msg->ni->lnd.lnd;
	enum lnet_stat why = why_not_held(msg);

	if (why == STAT_COUNT && !aside && lnd->eager_recv) {
		if (lnd->eager_recv(&msg->ni->lnd, msg->rx))
			why = STAT_drop_no_memory;
		else
			why = why_not_held(msg); /* handlers may have run */
	}
	if (why != STAT_COUNT) {
		drop(msg, why);
		return;
	}
	fsm_move(&msg->fsm, msg_states, MSG_HELD);
	list_add_tail(&cpt->portals[msg->hdr.portal].held, &msg->link);
	cpt->held++;
	cpt->held_bytes += msg->hdr.payload_length;
	/* Holding it again does not make it younger. */
	if (msg->lnd.deadline == 0)
		msg->lnd.deadline = cpt_deadline(cpt);
	loop_timer_arm(cpt->loop, &msg->timer, msg->lnd.deadline);
}

static void offered(struct work *w);
static void offer_failed(struct work *w);

/* The next CPT that has entries on the portal and was not asked yet, or NULL.
 */
static struct lnet_cpt *next_offer(struct lnet_msg *msg)
{
	struct lnet *node = msg->home->node;
	uint32_t cpts = atomic_load(&node->portals[msg->hdr.portal].cpts);

	cpts &= ~msg->offered;
	return cpts ? &node->cpt[__builtin_ctz(cpts)] : NULL;
}

/* On the CPT that is asked. A CPT that had no buffer is told by the status. */
static void offered(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct lnet_cpt *next;
	int rc = try_here(msg);

	if (!rc)
		return;
	msg->offered |= UINT32_C(1) << msg->cpt->index;
	next = rc == -ENOENT ? next_offer(msg) : NULL;
	msg->status = rc;
	msg_pass(msg, next ? next : msg->home, next ? offered : offer_failed);
}

/* Nobody has been asked yet. */
static struct lnet_cpt *first_offer(struct lnet_msg *msg)
{
	msg->offered = 0;
	msg->attached = atomic_load(
		&msg->home->node->portals[msg->hdr.portal].attached);
	return next_offer(msg);
}

/* A buffer that came to a CPT after that had been asked did not find the
 * message among the held ones (parse_retry_held). */
static bool buffer_came(const struct lnet_msg *msg)
{
	const struct portal_shared *ps =
		&msg->home->node->portals[msg->hdr.portal];

	return atomic_load(&ps->lazy) &&
	       atomic_load(&ps->attached) != msg->attached;
}

static void offer_failed(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct lnet_cpt *next = NULL;

	if (msg->status != -ENOENT) {
		drop(msg, why_no_match(msg->status));
		return;
	}
	if (buffer_came(msg))
		next = first_offer(msg);
	if (next)
		msg_pass(msg, next, offered);
	else
		hold_or_drop(msg, true);
}

static void retry_portal(struct lnet_cpt *cpt, unsigned int portal);

/* First here, then elsewhere. The LND must not wait for other CPTs, so it moves
 * the payload aside if it can. */
static void find_buffer(struct lnet_msg *msg)
{
	const struct lnd *lnd = msg->ni->lnd.lnd;
	struct lnet_cpt *next;
	int rc;

	/* What came earlier is served first. */
	if (unlikely(msg->cpt->portals[msg->hdr.portal].retry))
		retry_portal(msg->cpt, msg->hdr.portal);
	msg->attached =
		atomic_load(&msg->cpt->node->portals[msg->hdr.portal].attached);
	rc = try_here(msg);
	if (likely(!rc))
		return;
	msg->offered = UINT32_C(1) << msg->cpt->index;
	next = rc == -ENOENT ? next_offer(msg) : NULL;
	if (next) {
		if (lnd->eager_recv &&
		    lnd->eager_recv(&msg->ni->lnd, msg->rx)) {
			drop(msg, STAT_drop_no_memory);
			return;
		}
		fsm_move(&msg->fsm, msg_states, MSG_HELD);
		msg_pass(msg, next, offered);
	} else if (rc == -ENOENT) {
		hold_or_drop(msg, false);
	} else {
		drop(msg, why_no_match(rc));
	}
}

/* ---- lazy portals ---- */

static void retry_portal(struct lnet_cpt *cpt, unsigned int portal)
{
	struct list waiting;

	cpt->portals[portal].retry = false;
	list_init(&waiting);
	list_splice_tail(&waiting, &cpt->portals[portal].held);
	while (!list_empty(&waiting)) {
		struct lnet_msg *msg =
			list_first(&waiting, struct lnet_msg, link);
		struct lnet_cpt *next;

		unhold(msg);
		next = first_offer(msg);
		if (next)
			msg_pass(msg, next, offered);
		else
			hold_or_drop(msg, true);
	}
}

struct retry {
	struct work work;
	struct lnet_cpt *cpt;
	unsigned int portal;
};

static void retry_work(struct work *w)
{
	struct retry *r = container_of(w, struct retry, work);

	retry_portal(r->cpt, r->portal);
	free(r);
}

void parse_retry_held(struct lnet_cpt *cpt, unsigned int portal)
{
	struct lnet *node = cpt->node;

	atomic_fetch_add(&node->portals[portal].attached, 1);
	if (!atomic_load(&node->portals[portal].lazy))
		return;
	cpt->portals[portal].retry = !list_empty(&cpt->portals[portal].held);
	for (unsigned int i = 0; i < node->cpts; i++) {
		struct retry *r = malloc(sizeof(*r));

		if (!r) {
			log_warn("portal",
				 "%u: held messages wait for the "
				 "next buffer: no memory",
				 portal);
			return;
		}
		*r = (struct retry){ .work.fn = retry_work,
				     .cpt = &node->cpt[i],
				     .portal = portal };
		loop_post(node->loops[i], &r->work);
	}
}

static void drop_list(struct list *held, const struct lnet_ni *ni,
		      enum lnet_stat why)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, held, link) {
		if (ni && msg->ni != ni)
			continue;
		unhold(msg);
		drop(msg, why);
	}
}

void parse_drop_held(struct lnet_cpt *cpt, unsigned int portal)
{
	drop_list(&cpt->portals[portal].held, NULL, STAT_drop_no_match);
}

void parse_discard_held(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	for (unsigned int i = 0; i < LNET_PORTALS; i++)
		drop_list(&cpt->portals[i].held, ni, STAT_drop_closing);
}

/* ---- answers ---- */

static void drop_answer(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);

	drop(msg, (enum lnet_stat)msg->status);
}

static void answer_back(struct lnet_msg *msg, enum lnet_stat why)
{
	msg->status = (int)why;
	msg_pass(msg, msg->home, drop_answer);
}

static void reply_recv(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);

	count_received(msg, msg->mlength);
	msg_recv(msg);
}

/* On the home of the operation. */
static void reply_in(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	enum lnet_stat why = op_accept_reply(msg->cpt, msg);

	if (why == STAT_COUNT)
		msg_pass(msg, msg->home, reply_recv);
	else
		answer_back(msg, why);
}

static void ack_received(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);

	count_received(msg, 0);
	msg_discard(msg);
	ni_unref(msg->ni, msg->cpt->index);
	msg->ni = NULL;
	msg_free(msg);
}

/* On the home of the operation. */
static void ack_in(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	enum lnet_stat why = op_acked(msg->cpt, msg);

	if (why == STAT_COUNT)
		msg_pass(msg, msg->home, ack_received);
	else
		answer_back(msg, why);
}

/* ---- the checks, in the order in which a kernel node makes them ---- */

/* 0: for this node; STAT_COUNT + 1: protocol error; else why it is dropped. */
#define FOR_ME	       STAT_COUNT
#define PROTOCOL_ERROR (STAT_COUNT + 1)

/* Can the message come from where it says it does? On the NI's own net nobody
 * speaks for others, and what we send to ourselves goes through 0@lo. Only a
 * router's word stands for those behind it. */
static int check_source(const struct lnet_cpt *cpt, const struct lnet_ni *ni,
			const struct ulnet_nid *src,
			const struct ulnet_nid *from)
{
	if (lnet_nid_is_any(src) || lnet_nid_is_lo(src) || src->type == 0)
		return STAT_drop_bad_source;
	/* Which may be our own NID: other processes may share it. */
	if (lnet_nid_eq(src, from))
		return FOR_ME;
	if (config_is_mine(cpt->config, src))
		return STAT_drop_bad_source;
	return lnet_nid_net(src) == ni_net(ni) ? STAT_drop_false_source
					       : FOR_ME;
}

static int check_addresses(struct lnet_cpt *cpt, struct lnet_ni *ni,
			   const struct lnet_hdr *hdr,
			   const struct ulnet_nid *from)
{
	const struct ulnet_nid *dest = &hdr->dest_nid;

	if (ni_is_lo(ni))
		return FOR_ME;
	if (!lnet_nid_eq(dest, &ni->lnd.nid)) {
		/* Should have gone direct, or over another NI's connection. */
		if (lnet_nid_net(dest) == ni_net(ni) ||
		    config_ni(cpt->config, dest))
			return PROTOCOL_ERROR;
		return STAT_drop_not_mine;
	}
	return check_source(cpt, ni, &hdr->src_nid, from);
}

static int protocol_error(struct lnet_cpt *cpt, const struct lnet_ni *ni,
			  const struct ulnet_nid *from, const char *what)
{
	char a[LNET_NIDSTR_SIZE], b[LNET_NIDSTR_SIZE];

	cpt_stat(cpt, STAT_protocol_errors);
	/* All are counted; one in a second is told. */
	if (loop_now(cpt->loop) < cpt->next_complaint)
		return -EPROTO;
	cpt->next_complaint = loop_now(cpt->loop) + NSEC_PER_SEC;
	log_warn("parse", "%s: message from %s: %s",
		 lnet_nid_format(&ni->lnd.nid, a, sizeof(a)),
		 lnet_nid_format(from, b, sizeof(b)), what);
	return -EPROTO;
}

/* The CPT of the answer's operation: by the handle, which a stranger may have
 * made up. */
static struct lnet_cpt *answer_cpt(struct lnet_cpt *cpt,
				   const struct lnet_hdr *hdr)
{
	struct lnet_cpt *home = node_cpt_of_id(cpt->node, hdr->wmd.object);

	return home && hdr->wmd.node == cpt->node->incarnation ? home : cpt;
}

static void dispatch(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;

	switch (msg->hdr.type) {
	case LNET_MSG_PUT:
		msg->role = MSG_PUT_IN;
		find_buffer(msg);
		break;
	case LNET_MSG_GET:
		msg->role = MSG_GET_IN;
		find_buffer(msg);
		break;
	case LNET_MSG_REPLY:
		msg->role = MSG_REPLY_IN;
		msg_pass(msg, answer_cpt(cpt, &msg->hdr), reply_in);
		break;
	default:
		msg->role = MSG_ACK_IN;
		msg_pass(msg, answer_cpt(cpt, &msg->hdr), ack_in);
		break;
	}
}

/* Remembers who speaks. The primary NID of who began it, or NULL: too many
 * peers. */
static const struct ulnet_nid *meet_peer(struct lnet_cpt *cpt,
					 struct lnet_ni *ni,
					 const struct ulnet_nid *from,
					 const struct lnet_hdr *hdr)
{
	struct lnet_peer_ni *lpni;

	if (ni_is_lo(ni))
		return &hdr->src_nid;
	lpni = peer_meet(cpt, from);
	if (!lpni)
		return NULL;
	traffic_add(&lpni->traffic.recv, hdr->type, hdr->payload_length);
	if (likely(lnet_nid_eq(from, &hdr->src_nid)))
		return &lpni->net->peer->primary;
	return peer_primary(cpt, &hdr->src_nid);
}

static struct lnet_cpt *cpt_here(struct lnet *node)
{
	struct loop *here = loop_current();

	for (unsigned int i = 0; i < node->cpts; i++)
		if (node->loops[i] == here)
			return &node->cpt[i];
	BUG_ON("lnet_parse() outside of the node's loops");
	return NULL;
}

static bool is_request(const struct lnet_hdr *hdr)
{
	return hdr->type == LNET_MSG_PUT || hdr->type == LNET_MSG_GET;
}

/* FOR_ME, PROTOCOL_ERROR, or why it is dropped. */
static int admit(struct lnet_cpt *cpt, struct lnet_ni *ni,
		 const struct lnet_hdr *hdr, const struct ulnet_nid *from)
{
	int rc;

	/* First: the configuration is not to be looked at any more. */
	if (unlikely(cpt->closing || ni->cpt[cpt->index].stopped))
		return STAT_drop_closing;
	rc = check_addresses(cpt, ni, hdr, from);
	if (unlikely(rc != FOR_ME))
		return rc;
	if (is_request(hdr) && hdr->portal >= LNET_PORTALS)
		return STAT_drop_bad_portal;
	return FOR_ME;
}

/* Messages of all kinds that may be alive when one more request comes. */
static uint32_t requests_max(const struct lnet *node)
{
	return node->conf.messages_max - node->conf.messages_max / 8;
}

/* No message to decode it into: enough is decoded to drop it. */
static int parse_without_memory(struct lnet_cpt *cpt, struct lnet_ni *ni,
				const void *bytes, size_t hdr_len,
				const struct ulnet_nid *from, void *rx)
{
	struct lnet_hdr hdr;

	if (hdr_decode(&hdr, bytes, hdr_len))
		return protocol_error(cpt, ni, from, "bad header");
	if (admit(cpt, ni, &hdr, from) == PROTOCOL_ERROR)
		return protocol_error(cpt, ni, from, "misdirected");
	return discard(cpt, ni, rx, hdr.type, hdr.payload_length,
		       STAT_drop_no_memory);
}

/* Which process of its NID the sender is: the connection knows. Who passes on
 * what others have sent answers for their pids. */
static void take_pid(struct lnet_hdr *hdr, const struct ulnet_id *sender)
{
	if (likely(lnet_nid_eq(&hdr->src_nid, &sender->nid)))
		hdr->src_pid = sender->pid;
}

int lnet_parse(struct lnd_ni *lnd, const void *bytes, size_t hdr_len,
	       const struct ulnet_id *sender, void *rx)
{
	const struct ulnet_nid *from = &sender->nid;
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = cpt_here(ni->node);
	struct lnet_msg *msg = msg_new(cpt, MSG_PUT_IN);
	const struct ulnet_nid *primary = NULL;
	uint32_t length, type;
	int rc;

	if (unlikely(!msg))
		return parse_without_memory(cpt, ni, bytes, hdr_len, from, rx);
	rc = hdr_decode(&msg->hdr, bytes, hdr_len);
	if (unlikely(rc)) {
		msg_free(msg);
		return protocol_error(cpt, ni, from, "bad header");
	}
	take_pid(&msg->hdr, sender);
	rc = admit(cpt, ni, &msg->hdr, from);
	if (likely(rc == FOR_ME)) {
		primary = meet_peer(cpt, ni, from, &msg->hdr);
		if (unlikely(!primary))
			rc = STAT_drop_no_memory;
	}
	/* A part of the messages is for answers to our own operations. */
	if (unlikely(rc == FOR_ME && is_request(&msg->hdr) &&
		     cpt->msg_pool.used > requests_max(cpt->node)))
		rc = STAT_drop_no_memory;
	if (unlikely(rc != FOR_ME)) {
		type = msg->hdr.type;
		length = msg->hdr.payload_length;
		msg_free(msg);
		if (rc == PROTOCOL_ERROR)
			return protocol_error(cpt, ni, from, "misdirected");
		return discard(cpt, ni, rx, type, length, (enum lnet_stat)rc);
	}
	msg->ni = ni;
	msg->rx = rx;
	msg->lnd.cpt = cpt->index;
	msg->lnd.deadline = 0;
	msg->from = *from;
	msg->initiator = *primary;
	ni_ref(ni, cpt->index);
	dispatch(msg);
	return 0;
}

/* ---- the end of messages ---- */

static void passive_event(const struct lnet_msg *msg, struct ulnet_event *ev,
			  enum ulnet_event_type type)
{
	const struct lnet_hdr *hdr = &msg->hdr;
	bool get = type == LNET_EVENT_GET;
	/* A GET has turned round: where its REPLY went is where it came from.
	 */
	const struct ulnet_nid *peer = get ? &hdr->dest_nid : &hdr->src_nid;

	ev->type = type;
	ev->status = msg->status;
	ev->terminal = false;
	ev->outcome = LNET_OUTCOME_NONE;
	ev->cause = msg->cause;
	ev->msg_type = get ? LNET_MSG_GET : LNET_MSG_PUT;
	ev->target.nid = get ? msg->want_ni : hdr->dest_nid;
	ev->target.pid = get ? hdr->src_pid : hdr->dest_pid;
	ev->initiator.nid = msg->initiator;
	ev->initiator.pid = get ? hdr->dest_pid : hdr->src_pid;
	ev->source = *peer;
	ev->sender = msg->from;
	ev->path_local = LNET_NID_ANY;
	ev->path_peer = LNET_NID_ANY;
	ev->paths_tried = 0;
	ev->portal = hdr->portal;
	ev->match_bits = hdr->match_bits;
	ev->rlength = get ? hdr->length : hdr->payload_length;
	ev->mlength = msg->mlength;
	ev->offset = msg->offset;
	ev->hdr_data = hdr->hdr_data;
	ev->elapsed = 0;
}

/* The PUT turns into the ACK of itself. */
static void send_ack(struct lnet_msg *msg)
{
	struct lnet_hdr *hdr = &msg->hdr;
	struct lnet_cpt *cpt = msg->cpt;

	msg->role = MSG_ACK_OUT;
	msg->want_ni = hdr->dest_nid;
	hdr->dest_nid = hdr->src_nid;
	hdr->dest_pid = hdr->src_pid;
	hdr->src_pid = cpt->node->conf.pid;
	hdr->type = LNET_MSG_ACK;
	hdr->payload_length = 0;
	hdr->length = msg->mlength;
	hdr->portal = 0;
	msg->md = NULL;
	msg->lnd.iov = NULL;
	msg->lnd.niov = 0;
	msg->lnd.offset = 0;
	msg->lnd.length = 0;
	msg->lnd.deadline = cpt_deadline(cpt);
	fsm_move(&msg->fsm, msg_states, MSG_NEW);
	msg_launch(msg);
}

static void put_done(struct lnet_msg *msg)
{
	struct ulnet_event ev;
	bool ack = msg->status == 0 && !wire_handle_is_none(&msg->hdr.wmd) &&
		   !(msg->md->options & LNET_MD_ACK_DISABLE);

	passive_event(msg, &ev, LNET_EVENT_PUT);
	md_event_put(msg->md, &ev, 0);
	msg->md = NULL;
	if (ack)
		send_ack(msg);
	else
		msg_free(msg);
}

static void reply_sent(struct lnet_msg *msg)
{
	struct ulnet_event ev;

	passive_event(msg, &ev, LNET_EVENT_GET);
	md_event_put(msg->md, &ev, 0);
	msg->md = NULL;
	msg_free(msg);
}

void msg_done(struct lnet_msg *msg)
{
	switch (msg->role) {
	case MSG_OP:
		op_sent(msg->op);
		break;
	case MSG_REPLY_IN:
		op_replied(msg->op, msg);
		msg_free(msg);
		break;
	case MSG_PUT_IN:
		put_done(msg);
		break;
	case MSG_REPLY_OUT:
		reply_sent(msg);
		break;
	default:
		msg_free(msg);
		break;
	}
}
