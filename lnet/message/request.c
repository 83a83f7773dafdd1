/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/request.h"

#include <errno.h>

#include "lnet/message/end.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"
#include "lnet/portal/md.h"

void request_count(const struct lnet_msg *msg, uint32_t length)
{
	struct lnet_cpt *cpt = msg->cpt;

	cpt_stat(cpt, STAT_recv_count);
	stat_add(&cpt->stats[STAT_recv_length], length);
	traffic_add(&msg->ni->cpt[cpt->index].traffic.recv, msg->hdr.type,
		    length);
}

/* ---- its MD ---- */

void request_wants(const struct lnet_msg *msg, struct match_want *want)
{
	bool get = msg->hdr.type == LNET_MSG_GET;

	want->peers = &msg->home->node->directory;
	want->id.nid = msg->hdr.src_nid;
	want->id.pid = msg->hdr.src_pid;
	want->bits = msg->hdr.match_bits;
	want->portal = msg->hdr.portal;
	want->op = get ? LNET_MD_OP_GET : LNET_MD_OP_PUT;
	want->rlength = get ? msg->hdr.length : msg->hdr.payload_length;
	want->roffset = msg->hdr.offset;
}

int request_match(struct lnet_msg *msg)
{
	struct match_want want;
	struct match_found found;
	int rc;

	request_wants(msg, &want);
	rc = match_find(msg->cpt, &want, &found);
	if (rc)
		return rc;
	msg->md = found.md;
	msg->mlength = found.mlength;
	msg->offset = found.offset;
	msg_set_payload(msg, found.md, found.offset, found.mlength);
	return 0;
}

enum lnet_stat request_no_match(int rc)
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

/* ---- its end ---- */

static void request_event(const struct lnet_msg *msg, struct ulnet_event *ev,
			  enum ulnet_event_type type)
{
	const struct lnet_hdr *hdr = &msg->hdr;
	bool get = type == LNET_EVENT_GET;
	/* A GET has turned into its REPLY, which went where the GET came
	 * from. */
	const struct ulnet_nid *peer = get ? &msg->target : &hdr->src_nid;

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
	ev->path_hop = LNET_NID_ANY;
	ev->paths_tried = 0;
	ev->portal = hdr->portal;
	ev->match_bits = hdr->match_bits;
	ev->rlength = get ? hdr->length : hdr->payload_length;
	ev->mlength = msg->mlength;
	ev->offset = msg->offset;
	ev->hdr_data = hdr->hdr_data;
	ev->elapsed = 0;
}

/* The message of the PUT becomes that of its ACK. */
static void request_ack(struct lnet_msg *msg)
{
	struct lnet_hdr *hdr = &msg->hdr;
	struct lnet_cpt *cpt = msg->cpt;

	msg->role = MSG_ACK_OUT;
	msg->done = msg_free_work;
	msg->flags = MSG_PREFERS;
	msg->want_ni = hdr->dest_nid;
	msg_address(msg, &hdr->src_nid, cpt_deadline(cpt));
	hdr->dest_pid = hdr->src_pid;
	hdr->src_pid = cpt->node->conf.pid;
	hdr->type = LNET_MSG_ACK;
	hdr->payload_length = 0;
	hdr->length = msg->mlength;
	hdr->portal = 0;
	msg->md = NULL;
	msg->lnd.iov = NULL;
	msg->lnd.niov = 0;
	msg->lnd.mem = NULL;
	msg->lnd.offset = 0;
	msg->lnd.length = 0;
	fsm_move(&msg->fsm, msg_states, MSG_NEW);
	msg_launch(msg);
}

static void request_put_done(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct ulnet_event ev;
	bool ack = msg->status == 0 && !wire_handle_is_none(&msg->hdr.wmd) &&
		   !(msg->md->options & LNET_MD_ACK_DISABLE);

	request_event(msg, &ev, LNET_EVENT_PUT);
	md_event_put(msg->md, &ev, 0);
	msg->md = NULL;
	/* A node that has crashed may not have told its user: no ACK, then. */
	if (ack && likely(!msg->cpt->node->crashed))
		request_ack(msg);
	else
		msg_free(msg);
}

static void request_reply_sent(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct ulnet_event ev;

	request_event(msg, &ev, LNET_EVENT_GET);
	md_event_put(msg->md, &ev, 0);
	msg->md = NULL;
	msg_free(msg);
}

/* ---- its payload ---- */

/* The message is the REPLY to the GET that it was. */
static void request_turn_round(struct lnet_msg *msg)
{
	struct lnet_hdr *hdr = &msg->hdr;

	msg->want_ni = hdr->dest_nid;
	msg_address(msg, &hdr->src_nid, cpt_deadline(msg->cpt));
	hdr->dest_pid = hdr->src_pid;
	hdr->src_pid = msg->cpt->node->conf.pid;
	hdr->type = LNET_MSG_REPLY;
	hdr->payload_length = msg->mlength;
	msg->role = MSG_REPLY_OUT;
	msg->done = request_reply_sent;
	msg->flags = MSG_PREFERS;
}

void request_give_reply(struct lnet_msg *msg)
{
	int rc = msg_answer(msg);

	if (rc)
		msg_discard(msg);
	request_turn_round(msg);
	if (likely(rc == -EOPNOTSUPP)) {
		ni_unref(msg->ni, msg->cpt->index);
		msg->ni = NULL;
		msg_launch(msg);
	} else if (rc) {
		msg_fail_later(msg, rc, lnd_refusal_cause(rc));
	}
}

void request_forget_reply(struct lnet_msg *msg, int status,
			  enum ulnet_cause cause)
{
	msg_discard(msg);
	request_turn_round(msg);
	msg_fail_later(msg, status, cause);
}

/* Fault rules have something else in mind. What is no answer to the LND has
 * them look when it departs. */
static bool request_meets_fault(struct lnet_msg *msg)
{
	const struct msg_faults *faults = msg_cpt(msg->cpt)->faults;

	return unlikely(faults) && msg_is_answerable(msg) &&
	       faults->answer(msg);
}

/* The payload of a GET is what we send, so the LND has nothing to store. It may
 * know where that is to go; else the REPLY goes out like any message. */
static void request_reply(struct lnet_msg *msg)
{
	request_count(msg, 0);
	if (msg->fsm.state != MSG_NEW)
		fsm_move(&msg->fsm, msg_states, MSG_NEW);
	msg_set_payload(msg, msg->md, msg->offset, msg->mlength);
	msg->lnd.deadline = cpt_deadline(msg->cpt);
	if (likely(!request_meets_fault(msg)))
		request_give_reply(msg);
}

void request_deliver(struct lnet_msg *msg)
{
	const struct lnet_observer *o = msg->cpt->node->observer;

	if (o)
		o->accepted(o->arg, msg->cpt->node, &msg->ni->lnd, msg->rx);
	if (msg->role == MSG_GET_IN) {
		request_reply(msg);
		return;
	}
	request_count(msg, msg->mlength);
	msg->lnd.deadline = cpt_deadline(msg->cpt);
	msg_recv(msg, request_put_done);
}

/* ---- what is not wanted ---- */

static void drop_count(struct lnet_cpt *cpt, struct lnet_ni *ni, uint32_t type,
		       uint32_t length, enum lnet_stat why)
{
	cpt_stat(cpt, STAT_drop_count);
	stat_add(&cpt->stats[STAT_drop_length], length);
	cpt_stat(cpt, why);
	traffic_add(&ni->cpt[cpt->index].traffic.drop, type, length);
}

void drop_rx(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why)
{
	drop_count(cpt, ni, type, length, why);
	ni->lnd.lnd->recv(&ni->lnd, rx, NULL, length);
}

void drop_msg(struct lnet_msg *msg, enum lnet_stat why)
{
	struct lnet_cpt *cpt = msg->cpt;

	if (msg->sender)
		traffic_add(&msg->sender->traffic.drop, msg->hdr.type,
			    msg->hdr.payload_length);
	drop_count(cpt, msg->ni, msg->hdr.type, msg->hdr.payload_length, why);
	msg_discard(msg);
	ni_unref(msg->ni, cpt->index);
	msg->ni = NULL;
	msg_free(msg);
}
