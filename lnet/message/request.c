/* SPDX-License-Identifier: BSD-3-Clause */
/* PUTs and GETs from peers: from the search for an MD to the event for the
 * user, and to the ACK or REPLY. */
#include "lnet/message/in.h"

#include <errno.h>

#include "lnet/message/end.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"
#include "lnet/portal/md.h"

/* ---- the MD ---- */

void request_match_want(const struct msg_in *msg, struct match_want *want)
{
	const struct lnet_hdr *hdr = &msg->out.hdr;
	bool get = hdr->type == LNET_MSG_GET;

	want->peers = &msg->out.home->node->directory;
	want->id.nid = hdr->src_nid;
	want->id.pid = hdr->src_pid;
	want->bits = hdr->match_bits;
	want->portal = hdr->portal;
	want->op = get ? LNET_MD_OP_GET : LNET_MD_OP_PUT;
	want->rlength = get ? hdr->length : hdr->payload_length;
	want->roffset = hdr->offset;
}

int request_match(struct msg_in *msg)
{
	struct match_want want;
	struct match_found found;
	int rc;

	request_match_want(msg, &want);
	rc = match_find(msg->out.cpt, &want, &found);
	if (rc)
		return rc;
	msg->md = found.md;
	msg->mlength = found.mlength;
	msg->offset = found.offset;
	out_set_payload(&msg->out, found.md, found.offset, found.mlength);
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

/* ---- the end ---- */

static void request_event(const struct msg_in *msg, struct ulnet_event *ev)
{
	request_event_init(ev, &msg->out.hdr);
	ev->status = msg->out.status;
	ev->cause = msg->out.cause;
	ev->initiator.nid = msg->initiator;
	ev->sender = msg->from;
	ev->mlength = msg->mlength;
	ev->offset = msg->offset;
}

/* @msg, a GET, has become its REPLY: its header has the addresses exchanged,
 * and its target is the source of the GET. */
static void request_get_event(const struct msg_in *msg, struct ulnet_event *ev)
{
	const struct lnet_hdr *hdr = &msg->out.hdr;

	request_event(msg, ev);
	ev->type = LNET_EVENT_GET;
	ev->msg_type = LNET_MSG_GET;
	ev->target = (struct ulnet_id){ msg->out.local_nid, hdr->src_pid };
	ev->initiator.pid = hdr->dest_pid;
	ev->source = msg->out.target;
	ev->rlength = hdr->length;
}

/* Turns @msg into its answer. The answer prefers the path of the request. */
static void request_answer(struct msg_in *msg, enum ulnet_msg_type type,
			   uint32_t length, work_fn done)
{
	struct msg_out *out = &msg->out;
	struct lnet_hdr *hdr = &out->hdr;

	in_turn(msg, OUT_ANSWER, done);
	out->flags = MSG_PREFER_PATH;
	out->local_nid = hdr->dest_nid;
	out_address(out, &hdr->src_nid, cpt_deadline(out->cpt));
	hdr->dest_pid = hdr->src_pid;
	hdr->src_pid = out->cpt->node->conf.pid;
	hdr->type = type;
	hdr->payload_length = length;
}

static void request_ack(struct msg_in *msg)
{
	struct msg_out *out = &msg->out;

	request_answer(msg, LNET_MSG_ACK, 0, in_free_work);
	out->hdr.length = msg->mlength;
	out->hdr.portal = 0;
	out->lnd.iov = NULL;
	out->lnd.niov = 0;
	out->lnd.mem = NULL;
	out->lnd.offset = 0;
	out->lnd.length = 0;
	out_launch(out);
}

/* The sender of @msg, a PUT, wants an ACK, and gets it unless the handler of
 * @ev withholds it. */
static out_of_line void request_put_acked(struct msg_in *msg,
					  struct ulnet_event *ev)
{
	struct portal_cpt *pc = portal_cpt(msg->md->cpt);

	pc->ack_withheld = false;
	md_event_put(msg->md, ev, 0);
	msg->md = NULL;
	if (likely(!pc->ack_withheld))
		request_ack(msg);
	else
		in_free(msg);
}

static void request_put_done(struct work *w)
{
	struct msg_in *msg = in_of_work(w);
	struct ulnet_event ev;

	request_event(msg, &ev);
	if (msg->out.status == 0 && !wire_handle_is_none(&msg->out.hdr.wmd) &&
	    !(msg->md->options & LNET_MD_ACK_DISABLE)) {
		request_put_acked(msg, &ev);
		return;
	}
	md_event_put(msg->md, &ev, 0);
	msg->md = NULL;
	in_free(msg);
}

static void request_reply_sent(struct work *w)
{
	struct msg_in *msg = in_of_work(w);
	struct ulnet_event ev;

	request_get_event(msg, &ev);
	md_event_put(msg->md, &ev, 0);
	msg->md = NULL;
	in_free(msg);
}

/* ---- the payload ---- */

/* Turns @msg into its REPLY. The event is delivered on the CPT of the MD. */
static void request_turn_round(struct msg_in *msg)
{
	request_answer(msg, LNET_MSG_REPLY, msg->mlength, request_reply_sent);
	msg->out.done_cpt = msg->md->cpt;
}

void request_send_reply(struct msg_in *msg)
{
	int rc = in_answer(msg);

	if (rc)
		in_discard(msg);
	request_turn_round(msg);
	if (likely(rc == -EOPNOTSUPP)) {
		ni_unref(msg->out.ni, msg->out.cpt->index);
		msg->out.ni = NULL;
		out_launch(&msg->out);
	} else if (rc) {
		out_fail_later(&msg->out, rc, lnd_refusal_cause(rc));
	}
}

void request_cancel_reply(struct msg_in *msg, int status,
			  enum ulnet_cause cause)
{
	in_discard(msg);
	request_turn_round(msg);
	out_fail_later(&msg->out, status, cause);
}

/* Does a fault rule take @msg over? If the LND cannot send the REPLY as an
 * answer, the rules are applied when the REPLY departs (out_depart()) instead.
 */
static bool request_meets_fault(struct msg_in *msg)
{
	const struct msg_faults *faults = msg_cpt(msg->out.cpt)->faults;

	return unlikely(faults) && in_is_answerable(msg) && faults->answer(msg);
}

/* Answers @msg, a GET: through the LND's answer(), if the LND can write to the
 * peer's memory; otherwise with a REPLY that is sent like any message. */
static void request_reply(struct msg_in *msg)
{
	in_count(msg, 0);
	if (msg->fsm.state != IN_NEW)
		in_move(msg, IN_NEW);
	out_set_payload(&msg->out, msg->md, msg->offset, msg->mlength);
	msg->out.lnd.deadline = cpt_deadline(msg->out.cpt);
	if (likely(!request_meets_fault(msg)))
		request_send_reply(msg);
}

void request_deliver(struct msg_in *msg)
{
	struct msg_out *out = &msg->out;
	const struct lnet_observer *o = out->cpt->node->observer;

	if (o)
		o->accepted(o->arg, out->cpt->node, &out->ni->lnd, msg->rx);
	if (out->hdr.type == LNET_MSG_GET) {
		request_reply(msg);
		return;
	}
	in_count(msg, msg->mlength);
	out->lnd.deadline = cpt_deadline(out->cpt);
	in_recv(msg, msg->md->cpt, request_put_done);
}
