/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/op.h"

#include <errno.h>

#include "lnet/message/msgs.h"
#include "lnet/message/end.h"
#include "lnet/nid/nid.h"
#include "lnet/path/health.h"
#include "lnet/portal/md.h"
#include "ulnet/loop.h"

const struct fsm_state op_states[OP_STATES] = {
	[OP_SENDING] = { "sending", FSM_TO(OP_SENDING_RECEIVING) |
					    FSM_TO(OP_SENDING_ANSWERED) |
					    FSM_TO(OP_WAITING) |
					    FSM_TO(OP_DONE) },
	[OP_SENDING_RECEIVING] = { "sending, receiving",
				   FSM_TO(OP_SENDING_ANSWERED) |
					   FSM_TO(OP_RECEIVING) },
	[OP_SENDING_ANSWERED] = { "sending, answered", FSM_TO(OP_DONE) },
	[OP_WAITING] = { "waiting", FSM_TO(OP_RECEIVING) | FSM_TO(OP_DONE) },
	[OP_RECEIVING] = { "receiving", FSM_TO(OP_DONE) },
	[OP_DONE] = { "done", 0 },
};

static void op_move(struct lnet_op *op, enum op_state to)
{
	fsm_move(&op->fsm, op_states, to);
}

/* An operation that is not answered has a number instead of an id: nobody looks
 * it up. */
#define OP_NUMBER (UINT64_C(1) << 63)

/* Sets op->id. Returns 0 or what id_alloc() returns. */
static int op_id_alloc(struct lnet_op *op)
{
	struct msg_cpt *mc = msg_cpt(op->cpt);

	if (op->expects_answer)
		return id_alloc(&mc->ops, op, &op->id);
	op->id = OP_NUMBER | (uint64_t)op->cpt->index << 48 | ++mc->op_numbers;
	return 0;
}

static void op_id_free(const struct lnet_op *op)
{
	if (op->expects_answer)
		id_free(&msg_cpt(op->cpt)->ops, op->id);
}

static void op_put(struct lnet_op *op)
{
	struct lnet_cpt *cpt = op->cpt;

	if (--op->refs)
		return;
	out_fini(&op->msg);
	pool_put(&msg_cpt(cpt)->op_pool, op);
	cpt_ended_one(cpt);
}

bool op_path(const struct lnet_cpt *cpt, uint64_t md, struct ulnet_nid *local,
	     struct ulnet_id *hop)
{
	const struct lnet_md *m = id_lookup(&portal_cpt(cpt)->mds, md);
	const struct list *l;

	for (l = m ? m->ops.next : NULL; m && l != &m->ops; l = l->next) {
		const struct msg_out *req =
			&container_of(l, struct lnet_op, link)->msg;

		if (out_where(req) != cpt || req->fsm.state != OUT_LND)
			continue;
		*local = req->ni->lnd.nid;
		*hop = (struct ulnet_id){ req->lpni->nid, req->lnd.next_pid };
		return true;
	}
	return false;
}

/* ---- events ---- */

/* Sets the path of the event to the path of the last attempt, which need not be
 * the one that msg has now: that may have been chosen for the next attempt. */
static void op_event_path(const struct msg_out *req, struct ulnet_event *ev)
{
	ev->paths_tried = req->nsends;
	if (unlikely(!req->nsends)) {
		ev->path_local = LNET_NID_ANY;
		ev->path_peer = LNET_NID_ANY;
		ev->path_hop = LNET_NID_ANY;
	} else if (unlikely(req->retries &&
			    req->retries->failed.n == req->nsends)) {
		failed_paths_last(&req->retries->failed, &ev->path_local,
				  &ev->path_hop);
		ev->path_peer = req->retries->peer;
	} else {
		ev->path_local = req->hdr.src_nid;
		/* the target, not the gateway */
		ev->path_peer = req->hdr.dest_nid;
		ev->path_hop = req->lnd.next_hop;
	}
}

/* Fills in @ev, except for what md_event() and md_event_put() add. */
static void op_event(const struct lnet_op *op, struct ulnet_event *ev,
		     enum ulnet_event_type type, int status)
{
	const struct msg_out *req = &op->msg;
	uint32_t length = req->hdr.type == LNET_MSG_GET
				  ? req->hdr.length
				  : req->hdr.payload_length;

	ev->type = type;
	ev->status = status;
	ev->terminal = false;
	ev->outcome = LNET_OUTCOME_NONE;
	ev->cause = LNET_CAUSE_OK;
	ev->msg_type = (enum ulnet_msg_type)req->hdr.type;
	ev->target = (struct ulnet_id){ req->target, req->hdr.dest_pid };
	ev->initiator.nid = LNET_NID_ANY;
	ev->initiator.pid = op->cpt->node->conf.pid;
	ev->source = LNET_NID_ANY;
	ev->sender = LNET_NID_ANY;
	op_event_path(req, ev);
	ev->portal = req->hdr.portal;
	ev->match_bits = req->hdr.match_bits;
	ev->rlength = length;
	ev->mlength = length;
	ev->offset = req->hdr.offset;
	ev->hdr_data = req->hdr.hdr_data;
	ev->elapsed = (loop_now(op->cpt->loop) - op->began) / NSEC_PER_USEC;
}

/* Delivers an event that is not the terminal one of the operation. */
static void op_tell(struct lnet_op *op, struct ulnet_event *ev)
{
	op->events--;
	md_event(op->md, ev, op->id);
}

static enum ulnet_outcome op_outcome(const struct lnet_op *op, bool answered)
{
	if (answered)
		return LNET_OUTCOME_DELIVERED;
	return op->msg.status == 0 || op->msg.flags & MSG_MAYBE_ARRIVED
		       ? LNET_OUTCOME_UNKNOWN
		       : LNET_OUTCOME_NOT_DELIVERED;
}

static inline void op_waits_no_more(struct lnet_op *op)
{
	loop_timer_cancel(op->cpt->loop, &op->timer);
	stat_add(&op->cpt->stats[STAT_rst_alloc], UINT64_MAX);
}

/* Ends @op with the terminal event @ev. */
static void op_end(struct lnet_op *op, struct ulnet_event *ev, bool answered)
{
	struct lnet_cpt *cpt = op->cpt;
	struct lnet_md *md = op->md;

	ev->terminal = true;
	ev->outcome = op_outcome(op, answered);
	if (op->fsm.state == OP_WAITING)
		op_waits_no_more(op);
	op_move(op, OP_DONE);
	op_id_free(op);
	list_del(&op->link);
	op->events--;
	if (md->eq && op->events)
		eq_unreserve(&portal_node(cpt->node)->eqs, md->eq, op->events,
			     false);
	if (ev->status)
		cpt_stat(cpt, STAT_errors);
	md_event_put(md, ev, op->id);
	op_put(op);
}

/* ---- beginning ---- */

static void op_late(struct timer *t);
static void op_sent(struct work *w);

/* Sets what the header of a PUT of @length bytes that is not answered says of
 * it, but not its NIDs. */
static in_line void put_header(struct lnet_hdr *hdr, const struct lnet *node,
			       const struct op_args *a, uint32_t length)
{
	hdr->dest_pid = a->target.pid;
	hdr->src_pid = node->conf.pid;
	hdr->type = LNET_MSG_PUT;
	hdr->payload_length = length;
	hdr->wmd = LNET_WIRE_NONE;
	hdr->match_bits = a->match_bits;
	hdr->hdr_data = a->hdr_data;
	hdr->portal = a->portal;
	hdr->offset = a->offset;
	hdr->length = 0;
}

static void op_header(struct lnet_op *op, const struct op_args *a)
{
	struct lnet_hdr *hdr = &op->msg.hdr;

	put_header(hdr, op->cpt->node, a, op->md->length);
	if (a->type == LNET_MSG_GET) {
		hdr->type = LNET_MSG_GET;
		hdr->payload_length = 0;
		hdr->length = op->md->length;
	}
	if (op->expects_answer)
		hdr->wmd =
			(struct lnet_wire_handle){ op->cpt->node->incarnation,
						   op->id };
}

/* If the answer has not come by the deadline, does the operation end then? The
 * MD may say so; if it does not, the setting response_tracking decides, by the
 * type of operation. */
static bool op_is_tracked(const struct lnet *node, const struct lnet_md *md,
			  enum ulnet_msg_type type)
{
	uint32_t said = md->options &
			(LNET_MD_TRACK_RESPONSE | LNET_MD_NO_TRACK_RESPONSE);

	if (unlikely(said))
		return said == LNET_MD_TRACK_RESPONSE;
	return settings_response_tracking(&node->settings) &
	       (type == LNET_MSG_GET ? TRACK_GETS : TRACK_PUTS);
}

static void op_init(struct lnet_op *op, struct lnet_cpt *cpt,
		    struct lnet_md *md, const struct op_args *a)
{
	uint64_t timeout =
		md->timeout
			? md->timeout
			: settings_transaction_timeout(&cpt->node->settings);

	out_init(&op->msg, cpt, &msg_cpt(cpt)->active_out, out_late);
	op->msg.role = OUT_OP;
	op->msg.done = op_sent;
	op->msg.op = op;
	op->msg.flags = a->flags;
	if (md->options & LNET_MD_PREFER_PATH)
		op->msg.flags |= MSG_PREFER_PATH;
	op->msg.local_nid = a->self;
	op->fsm.state = OP_SENDING;
	op->tracked = op_is_tracked(cpt->node, md, a->type);
	op->began = loop_now(cpt->loop);
	out_address(&op->msg, &a->target.nid, op->began + timeout);
	op->events = OP_EVENTS;
	op->refs = 1;
	op->canceling = false;
	timer_init(&op->timer, op_late);
	list_add_tail(&md->ops, &op->link);
	md_ref(md);
	op_header(op, a);
	if (a->type == LNET_MSG_PUT)
		out_set_payload(&op->msg, md, 0, md->length);
}

static void op_observe(struct lnet_op *op)
{
	const struct lnet_observer *o = op->cpt->node->observer;
	uint64_t deadline = op->msg.deadline;

	if (!o)
		return;
	if (op->expects_answer && !op->tracked)
		deadline = TIME_NEVER;
	o->begin(o->arg, op->cpt->node, op->id, &op->msg.lnd, deadline);
}

/* ---- the straight way ----
 *
 * A small PUT that is not answered, over the only path to its target, can be
 * with the LND before LNetPut() returns (credit_offer()). Nothing is left to
 * happen to such an operation but its event, so it is in no list, has no state,
 * and cannot be canceled. With lnet_put_now() there is not even an event.
 */

static void op_event_pushed(const struct lnet_op *op, struct ulnet_event *ev)
{
	op_event(op, ev, LNET_EVENT_SEND, 0);
	ev->terminal = true;
	ev->outcome = LNET_OUTCOME_UNKNOWN;
}

static void op_pushed(struct work *w)
{
	struct lnet_op *op = container_of(w, struct lnet_op, msg.work);
	struct lnet_cpt *cpt = op->cpt;
	struct ulnet_event ev;

	op_event_pushed(op, &ev);
	md_event_put(op->md, &ev, op->id);
	pool_put(&msg_cpt(cpt)->op_pool, op);
	cpt_ended_one(cpt);
}

/* Sets what credit_offer(), out_count_sent() and op_event() need besides
 * op->cpt, the payload and what put_header() sets. */
static in_line void push_address(struct lnet_op *op, const struct ulnet_id *to,
				 struct lnet_peer_ni *lpni)
{
	struct msg_out *msg = &op->msg;

	op->began = loop_now(op->cpt->loop);
	msg->role = OUT_OP;
	msg->op = op;
	msg->cpt = op->cpt;
	msg->ni = lpni->only;
	msg->lpni = lpni;
	msg->nsends = 0;
	msg->retries = NULL;
	msg->deadline = TIME_NEVER;
	msg->target = to->nid;
	msg->lnd.cpt = op->cpt->index;
	msg->lnd.mark = NULL;
	msg->lnd.next_hop = lpni->nid;
	msg->lnd.next_pid = to->pid;
	msg->hdr.src_nid = lpni->only->lnd.nid;
	msg->hdr.dest_nid = to->nid;
}

/* Returns the peer NI @to, to which a PUT of @length bytes goes from @self (or
 * LNET_NID_ANY) and is not answered, if the LND over the only path there may
 * take the PUT at once; otherwise NULL. There is no reference to the peer NI,
 * nor to its .only: nothing can happen to them before the LND has returned,
 * since push() makes no upcall. */
static in_line struct lnet_peer_ni *push_path(struct lnet_cpt *cpt,
					      const struct ulnet_nid *self,
					      const struct ulnet_nid *to,
					      uint32_t length)
{
	struct lnet_peer_ni *lpni;

	if (length > OUT_PUSH_MAX || msg_cpt(cpt)->faults ||
	    out_sender(cpt, to) != cpt)
		return NULL;
	lpni = path_find_only(cpt, self, to);
	if (unlikely(!lpni) || !lpni->only->lnd.lnd->push)
		return NULL;
	return lpni;
}

/* Offers @msg, which has a path, to the LND. Returns whether it was sent. */
static in_line bool push_offer(struct msg_out *msg)
{
	if (unlikely(!credit_offer(msg)))
		return false;
	out_count_sent(msg);
	peer_touch(msg->lpni);
	return true;
}

/* Sends @op, of which only .id, .cpt, .md and .expects_answer are set, by the
 * straight way. Returns false if it has to go the general way. */
static bool op_push(struct lnet_op *op, const struct op_args *a)
{
	struct lnet_cpt *cpt = op->cpt;
	struct lnet_md *md = op->md;
	struct lnet_peer_ni *lpni;

	if (op->expects_answer || a->flags || md->eq)
		return false;
	lpni = push_path(cpt, &a->self, &a->target.nid, md->length);
	if (unlikely(!lpni))
		return false;
	push_address(op, &a->target, lpni);
	op_header(op, a);
	out_set_payload(&op->msg, md, 0, md->length);
	return push_offer(&op->msg);
}

/* The observer sees @op, which is over, as one whose event has come. */
static out_of_line void op_observe_over(struct lnet_op *op)
{
	const struct lnet_observer *o = op->cpt->node->observer;
	struct ulnet_event ev = { .unlinked = true };

	(void)op_id_alloc(op);
	op_observe(op);
	op_event_pushed(op, &ev);
	o->event(o->arg, op->cpt->node, op->id, &ev);
}

/* The operation is over before this function returns. */
bool lnet_put_now(struct lnet *node, unsigned int cpt_index,
		  const struct ulnet_put_now *put, struct ulnet_nid *local)
{
	const struct op_args a = { .target = put->target,
				   .portal = put->portal,
				   .match_bits = put->match_bits,
				   .hdr_data = put->hdr_data };
	const struct iovec iov = { (void *)put->start, put->length };
	struct lnet_cpt *cpt = node->cpt[cpt_index];
	struct lnet_peer_ni *lpni;
	struct lnet_op op;

	if (unlikely(loop_current() != cpt->loop || cpt->closing ||
		     put->portal >= LNET_PORTALS ||
		     put->target.pid == LNET_PID_ANY))
		return false;
	lpni = push_path(cpt, &put->self, &put->target.nid, put->length);
	if (unlikely(!lpni))
		return false;
	op.cpt = cpt;
	op.expects_answer = false;
	push_address(&op, &put->target, lpni);
	put_header(&op.msg.hdr, node, &a, put->length);
	op.msg.lnd.iov = &iov;
	op.msg.lnd.niov = 1;
	op.msg.lnd.mem = NULL;
	op.msg.lnd.offset = 0;
	op.msg.lnd.length = put->length;
	*local = op.msg.hdr.src_nid;
	if (!push_offer(&op.msg))
		return false;
	if (unlikely(node->observer))
		op_observe_over(&op);
	return true;
}

int op_begin(struct lnet_cpt *cpt, const struct op_args *a)
{
	struct lnet_md *md = id_lookup(&portal_cpt(cpt)->mds, a->md);
	struct lnet_op *op;
	int rc;

	if (!md || md->attached || md->threshold == 0)
		return -ENOENT;
	if (cpt->closing)
		return -ESHUTDOWN;
	op = pool_get(&msg_cpt(cpt)->op_pool);
	if (!op)
		return -ENOMEM;
	op->cpt = cpt;
	op->md = md;
	op->expects_answer = a->type == LNET_MSG_GET || a->ack;
	rc = op_id_alloc(op);
	if (rc)
		goto err_put;
	if (likely(op_push(op, a))) {
		op_observe(op);
		md_ref(md);
		md_take(md, 0, 0);
		op->msg.work.fn = op_pushed;
		loop_defer_last(cpt->loop, &op->msg.work);
		return 0;
	}
	if (md->eq &&
	    !eq_reserve(&portal_node(cpt->node)->eqs, md->eq, OP_EVENTS)) {
		rc = -ENOBUFS;
		goto err_free_id;
	}
	op_init(op, cpt, md, a);
	op_observe(op);
	md_take(md, 0, 0);
	out_launch(&op->msg);
	return 0;

err_free_id:
	op_id_free(op);
err_put:
	pool_put(&msg_cpt(cpt)->op_pool, op);
	return rc;
}

/* ---- the request's end ---- */

static void op_wait(struct lnet_op *op)
{
	struct lnet_cpt *cpt = op->cpt;
	uint64_t at = op->msg.deadline;

	op_move(op, OP_WAITING);
	cpt_stat(cpt, STAT_rst_alloc);
	if (op->tracked)
		loop_timer_arm(cpt->loop, &op->timer, at);
}

/* Returns the cause of the end of @msg. If @msg was canceled, the LND's cause
 * only says how far @msg had come; then returns the cause of the cancellation,
 * which @op has. */
static enum ulnet_cause op_cause(const struct lnet_op *op,
				 const struct msg_out *msg)
{
	if (unlikely(op->canceling) && msg->status == op->cancel_status)
		return op->cancel_cause;
	return msg->cause;
}

/* If the request was sent, but the operation was canceled before its answer
 * came, makes the event say so. */
static void op_event_canceled(const struct lnet_op *op, struct ulnet_event *ev)
{
	if (ev->status || !op->canceling || !op->expects_answer)
		return;
	ev->status = op->cancel_status;
	ev->cause = op->cancel_cause;
}

/* The msg_out.done of a request. */
static void op_sent(struct work *w)
{
	struct lnet_op *op = container_of(w, struct lnet_op, msg.work);
	struct ulnet_event ev;

	op_event(op, &ev, LNET_EVENT_SEND, op->msg.status);
	ev.cause = op_cause(op, &op->msg);
	switch ((enum op_state)op->fsm.state) {
	case OP_SENDING:
		/* Is an answer expected, and can the MD take it? */
		if (ev.status == 0 && op->expects_answer && !op->canceling &&
		    op->md->threshold != 0) {
			op_wait(op);
			op_tell(op, &ev);
		} else {
			op_event_canceled(op, &ev);
			op_end(op, &ev, false);
		}
		break;
	case OP_SENDING_RECEIVING:
		op_move(op, OP_RECEIVING);
		op_tell(op, &ev);
		break;
	default:
		op_end(op, &ev, true);
		break;
	}
}

/* ---- answers ---- */

static struct lnet_op *op_lookup(struct lnet_cpt *cpt,
				 const struct lnet_hdr *hdr,
				 enum ulnet_msg_type type)
{
	struct lnet_op *op;

	if (hdr->wmd.node != cpt->node->incarnation)
		return NULL;
	op = id_lookup(&msg_cpt(cpt)->ops, hdr->wmd.object);
	if (!op || op->msg.hdr.type != (uint32_t)type || !op->expects_answer)
		return NULL;
	if (op->fsm.state != OP_SENDING && op->fsm.state != OP_WAITING)
		return NULL;
	return op;
}

/* Does @answer come from the peer to which the request of @op was sent? Any NID
 * of that peer may answer. (Compares msg.target, and not hdr.dest_nid, which
 * another CPT may be about to change.) */
static bool op_asked(const struct lnet_op *op, const struct msg_in *answer)
{
	if (!pid_is_same(answer->out.hdr.src_pid, op->msg.hdr.dest_pid))
		return false;
	return likely(lnet_nid_eq(&answer->out.hdr.src_nid, &op->msg.target)) ||
	       directory_same(&op->cpt->node->directory, &op->msg.target,
			      &answer->out.hdr.src_nid);
}

static void op_answer_event(struct lnet_op *op, struct ulnet_event *ev,
			    enum ulnet_event_type type, int status,
			    const struct msg_in *answer)
{
	const struct lnet_hdr *hdr = &answer->out.hdr;

	op_event(op, ev, type, status);
	ev->initiator = (struct ulnet_id){ hdr->src_nid, hdr->src_pid };
	ev->source = hdr->src_nid;
	ev->sender = answer->from;
}

/* The answer has come: delivers its event, which is the terminal one unless the
 * request is still being sent. */
static void op_answered(struct lnet_op *op, struct ulnet_event *ev)
{
	if (op->fsm.state == OP_WAITING || op->fsm.state == OP_RECEIVING) {
		op_end(op, ev, true);
		return;
	}
	op_move(op, OP_SENDING_ANSWERED);
	op_tell(op, ev);
}

static void op_acked(struct lnet_op *op, const struct msg_in *ack)
{
	struct ulnet_event ev;

	op_answer_event(op, &ev, LNET_EVENT_ACK, 0, ack);
	ev.match_bits = ack->out.hdr.match_bits;
	ev.mlength = ack->out.hdr.length;
	op_answered(op, &ev);
}

static void op_accept_reply(struct lnet_op *op, struct msg_in *msg)
{
	struct lnet_md *md = op->md;

	if (op->fsm.state == OP_WAITING) {
		op_waits_no_more(op);
		op_move(op, OP_RECEIVING);
	} else {
		op_move(op, OP_SENDING_RECEIVING);
	}
	msg->op = op;
	op->reply = msg;
	msg->mlength = MIN(msg->out.hdr.payload_length, md->length);
	/* The REPLY of an operation that is not tracked may come after
	 * op->msg.deadline. */
	msg->out.lnd.deadline =
		op->tracked ? op->msg.deadline : cpt_deadline(op->cpt);
	out_set_payload(&msg->out, md, 0, msg->mlength);
}

enum lnet_stat op_answer(struct lnet_cpt *cpt, struct msg_in *msg)
{
	const struct lnet_hdr *hdr = &msg->out.hdr;
	bool reply = hdr->type == LNET_MSG_REPLY;
	struct lnet_op *op =
		op_lookup(cpt, hdr, reply ? LNET_MSG_GET : LNET_MSG_PUT);
	const struct lnet_md *md;

	if (!op)
		return STAT_drop_bad_handle;
	if (!op_asked(op, msg))
		return STAT_drop_not_asked;
	md = op->md;
	if (md->threshold == 0 || md->aborted)
		return STAT_drop_inactive;
	if (reply && hdr->payload_length > md->length &&
	    !(md->options & LNET_MD_TRUNCATE))
		return STAT_drop_too_long;
	md_take(op->md, 0, 0);
	msg->took = loop_now(cpt->loop) - op->began;
	if (reply)
		op_accept_reply(op, msg);
	else
		op_acked(op, msg);
	return STAT_COUNT;
}

void op_replied(struct lnet_op *op, const struct msg_in *msg)
{
	struct ulnet_event ev;

	op_answer_event(op, &ev, LNET_EVENT_REPLY, msg->out.status, msg);
	ev.cause = op_cause(op, &msg->out);
	ev.rlength = msg->out.hdr.payload_length;
	ev.mlength = msg->out.status ? 0 : msg->mlength;
	op_answered(op, &ev);
}

/* ---- giving up ---- */

static void op_give_up(struct lnet_op *op, int status, enum ulnet_cause cause)
{
	struct ulnet_event ev;

	op_event(op, &ev, LNET_EVENT_UNLINK, status);
	ev.cause = cause;
	op_end(op, &ev, false);
}

static void op_cancel_on(struct lnet_op *op, const struct lnet_cpt *cpt,
			 work_fn fn)
{
	op->cancel.fn = fn;
	loop_post(cpt->loop, &op->cancel);
}

static void op_blame(const struct lnet_op *op, struct lnet_cpt *cpt)
{
	if (!cpt->closing)
		health_lose_unanswered(cpt, &op->msg.lnd.next_hop,
				       op->msg.flags & MSG_ROUTED);
}

static void op_blame_home(struct work *w)
{
	op_put(container_of(w, struct lnet_op, cancel));
}

static void op_blame_there(struct work *w)
{
	struct lnet_op *op = container_of(w, struct lnet_op, cancel);

	op_blame(op, node_cpt_here(op->cpt->node));
	op_cancel_on(op, op->cpt, op_blame_home);
}

/* The answer is late: the peer NI that the request went to is to blame, or a
 * gateway is to be asked, on the CPT that owns it. (The owner may have changed
 * when the work gets there; then nobody is blamed.) Pings that probe an NI have
 * rules of their own. */
static void op_blame_for_silence(struct lnet_op *op)
{
	struct lnet_cpt *owner = out_sender(op->cpt, &op->msg.lnd.next_hop);

	if (op->canceling || op->msg.flags & MSG_PROBE)
		return;
	if (owner == op->cpt) {
		op_blame(op, owner);
		return;
	}
	op->refs++;
	op_cancel_on(op, owner, op_blame_there);
}

/* The request was sent, but was not answered in time: ends the operation. The
 * request is not sent again, since it may have arrived. */
static void op_late(struct timer *t)
{
	struct lnet_op *op = container_of(t, struct lnet_op, timer);

	cpt_stat(op->cpt, STAT_response_timeout_count);
	op_blame_for_silence(op);
	if (!op->md->unlinked)
		md_unlink(op->md, false);
	op_give_up(op, -ETIMEDOUT, LNET_CAUSE_RESPONSE_TIMEOUT);
}

static bool op_is_receiving(const struct lnet_op *op)
{
	return op->fsm.state == OP_RECEIVING ||
	       op->fsm.state == OP_SENDING_RECEIVING;
}

/* The last step of a cancellation, on the CPT of the operation. */
static void op_cancel_home(struct work *w)
{
	struct lnet_op *op = container_of(w, struct lnet_op, cancel);

	if (op->fsm.state == OP_WAITING)
		op_give_up(op, op->cancel_status, op->cancel_cause);
	op_put(op);
}

/* Cancels the storing of the reply's payload, on the CPT that received the
 * reply. The reply still exists: the work that frees it is posted by the CPT of
 * @op, too, but later than this work. If this is the CPT of @op, the state of
 * @op says whether the payload is still being stored. */
static void op_cancel_reply(struct work *w)
{
	struct lnet_op *op = container_of(w, struct lnet_op, cancel);

	if (!loop_is_owner(op->cpt->loop) || op_is_receiving(op))
		in_cancel(op->reply, op->cancel_status);
	op_cancel_on(op, op->cpt, op_cancel_home);
}

/* The request has ended, or is about to, and from now on no answer is accepted.
 * An answer that was accepted before may still be coming in. */
static void op_cancel_answer(struct work *w)
{
	struct lnet_op *op = container_of(w, struct lnet_op, cancel);

	if (op_is_receiving(op))
		op_cancel_on(op, op->reply->out.home, op_cancel_reply);
	else
		op_put(op);
}

/* Cancels the request, on the CPT that handles it, or that has handled it
 * before the peer moved. */
static void op_cancel_request(struct work *w)
{
	struct lnet_op *op = container_of(w, struct lnet_op, cancel);
	struct lnet_cpt *where = out_where(&op->msg);

	if (unlikely(!loop_is_owner(where->loop))) {
		loop_post(where->loop, &op->cancel);
		return;
	}
	out_cancel(&op->msg, op->cancel_status, op->cancel_cause);
	op_cancel_on(op, op->cpt, op_cancel_answer);
}

/* The user has unlinked the MD, or the node is being closed: cancels @op, its
 * request and its answer, on the CPTs that have them. @op ends in a later turn.
 */
static void op_abandon(struct lnet_op *op, int status, enum ulnet_cause cause)
{
	if (op->canceling)
		return;
	op->canceling = true;
	op->cancel_status = status;
	op->cancel_cause = cause;
	/* A CPT that sees @abandoned set also sees the status and cause above.
	 */
	atomic_store(&op->msg.abandoned, true);
	op->refs++;
	if (op->fsm.state == OP_WAITING) {
		op->cancel.fn = op_cancel_home;
		loop_defer(op->cpt->loop, &op->cancel);
	} else if (op->fsm.state == OP_RECEIVING) {
		op_cancel_on(op, op->reply->out.home, op_cancel_reply);
	} else {
		op_cancel_on(op, out_where(&op->msg), op_cancel_request);
	}
}

void op_abandon_link(struct list *link)
{
	op_abandon(container_of(link, struct lnet_op, link), -ECANCELED,
		   LNET_CAUSE_CANCELED);
}

void ops_abandon(struct lnet_cpt *cpt)
{
	struct msg_out *msg;

	list_for_each_entry (msg, &msg_cpt(cpt)->active_out, active)
		if (msg->role == OUT_OP && msg->op->fsm.state != OP_DONE)
			op_abandon(msg->op, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}

/* ---- the API ---- */

static int begin_call(void *arg)
{
	const struct op_args *a = arg;

	return op_begin(a->cpt, a);
}

static int op_request(struct lnet *node, struct op_args *a)
{
	if (a->portal >= LNET_PORTALS || lnet_nid_is_any(&a->target.nid) ||
	    a->target.pid == LNET_PID_ANY)
		return -EINVAL;
	a->cpt = node_cpt_of_id(node, a->md);
	if (!a->cpt)
		return -ENOENT;
	return loop_call(a->cpt->loop, begin_call, a);
}

int LNetPut(struct ulnet_nid self, struct ulnet_md_handle md,
	    enum ulnet_ack_req ack, struct ulnet_id target, unsigned int portal,
	    uint64_t match_bits, uint32_t offset, uint64_t hdr_data)
{
	struct op_args args = { .type = LNET_MSG_PUT,
				.self = self,
				.md = md.cookie,
				.ack = ack == LNET_ACK_REQ,
				.target = target,
				.portal = portal,
				.match_bits = match_bits,
				.offset = offset,
				.hdr_data = hdr_data };

	return op_request(md.node, &args);
}

int LNetGet(struct ulnet_nid self, struct ulnet_md_handle md,
	    struct ulnet_id target, unsigned int portal, uint64_t match_bits,
	    uint32_t offset)
{
	struct op_args args = { .type = LNET_MSG_GET,
				.self = self,
				.md = md.cookie,
				.target = target,
				.portal = portal,
				.match_bits = match_bits,
				.offset = offset };

	return op_request(md.node, &args);
}
