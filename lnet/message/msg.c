/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/msg.h"

#include <errno.h>

#include "lnet/message/await.h"
#include "lnet/message/copy.h"
#include "lnet/message/credit.h"
#include "lnet/message/leave.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/message/park.h"
#include "lnet/message/end.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"
#include "lnet/portal/md.h"
#include "lnet/route/route.h"

const struct fsm_state msg_states[MSG_STATES] = {
	[MSG_NEW] = { "new", FSM_TO(MSG_PEER_QUEUE) | FSM_TO(MSG_NI_QUEUE) |
				     FSM_TO(MSG_LND) | FSM_TO(MSG_OFFERED) |
				     FSM_TO(MSG_DELAYED) | FSM_TO(MSG_PARKED) |
				     FSM_TO(MSG_BUFFERLESS) |
				     FSM_TO(MSG_DISCOVERING) |
				     FSM_TO(MSG_RECV) | FSM_TO(MSG_ANSWERING) |
				     FSM_TO(MSG_PAUSED) | FSM_TO(MSG_DONE) },
	[MSG_PEER_QUEUE] = { "waits for peer credit",
			     FSM_TO(MSG_NI_QUEUE) | FSM_TO(MSG_LND) |
				     FSM_TO(MSG_NEW) | FSM_TO(MSG_PAUSED) |
				     FSM_TO(MSG_DONE) },
	[MSG_NI_QUEUE] = { "waits for NI credit",
			   FSM_TO(MSG_LND) | FSM_TO(MSG_NEW) |
				   FSM_TO(MSG_PAUSED) | FSM_TO(MSG_DONE) },
	[MSG_LND] = { "sending", FSM_TO(MSG_REFUSED) | FSM_TO(MSG_CONNECTING) |
					 FSM_TO(MSG_PAUSED) |
					 FSM_TO(MSG_DONE) },
	[MSG_REFUSED] = { "refused", FSM_TO(MSG_PAUSED) | FSM_TO(MSG_DONE) },
	[MSG_CONNECTING] = { "waits for a connection",
			     FSM_TO(MSG_PEER_QUEUE) | FSM_TO(MSG_NI_QUEUE) |
				     FSM_TO(MSG_LND) | FSM_TO(MSG_NEW) |
				     FSM_TO(MSG_PAUSED) | FSM_TO(MSG_DONE) },
	[MSG_PAUSED] = { "waits for another try",
			 FSM_TO(MSG_NEW) | FSM_TO(MSG_DONE) },
	[MSG_DISCOVERING] = { "waits for discovery",
			      FSM_TO(MSG_NEW) | FSM_TO(MSG_DONE) },
	[MSG_DELAYED] = { "delayed",
			  FSM_TO(MSG_PEER_QUEUE) | FSM_TO(MSG_NI_QUEUE) |
				  FSM_TO(MSG_LND) | FSM_TO(MSG_NEW) |
				  FSM_TO(MSG_PAUSED) | FSM_TO(MSG_DONE) },
	[MSG_PARKED] = { "waits for its sender's share", FSM_TO(MSG_NEW) },
	[MSG_BUFFERLESS] = { "waits for a router's buffer", FSM_TO(MSG_NEW) },
	[MSG_OFFERED] = { "asks for a buffer", FSM_TO(MSG_HELD) |
						       FSM_TO(MSG_NEW) |
						       FSM_TO(MSG_RECV) },
	[MSG_HELD] = { "held", FSM_TO(MSG_OFFERED) | FSM_TO(MSG_RECV) },
	[MSG_RECV] = { "receiving", FSM_TO(MSG_DONE) },
	[MSG_ANSWERING] = { "answering", FSM_TO(MSG_DONE) },
	[MSG_DONE] = { "done", FSM_TO(MSG_NEW) },
};

/* Payloads from this size on are better left with the LND for a moment than put
 * aside and copied. */
#define ASIDE_MIN   16384
#define ASIDE_AFTER NSEC_PER_MSEC

/* ---- life ---- */

bool msg_stands(struct lnet_msg *msg)
{
	struct loop *l = msg->home->loop;

	if (msg->hdr.payload_length < ASIDE_MIN)
		return false;
	loop_timer_arm(l, &msg->timer, loop_now(l) + ASIDE_AFTER);
	return true;
}

int msg_put_aside(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->home;

	if (msg->hdr.payload_length)
		cpt_stat(cpt, STAT_aside);
	return msg->ni->lnd.lnd->eager_recv(&msg->ni->lnd, msg->rx);
}

void msg_init(struct lnet_msg *msg, struct lnet_cpt *cpt, enum msg_role role)
{
	msg->home = cpt;
	msg->cpt = cpt;
	msg->role = role;
	msg->fsm.state = MSG_NEW;
	msg->ni = NULL;
	msg->lpni = NULL;
	msg->op = NULL;
	msg->md = NULL;
	msg->sender = NULL;
	msg->tries = 0;
	msg->copy = NULL;
	msg->again = NULL;
	msg->flags = 0;
	atomic_init(&msg->forsaken, false);
	msg->lnd.again = false;
	msg->lnd.iov = NULL;
	msg->lnd.niov = 0;
	msg->lnd.mem = NULL;
	msg->lnd.offset = 0;
	msg->lnd.length = 0;
	msg->lnd.mark = NULL;
	list_init(&msg->link);
	list_init(&msg->lnd.link);
	timer_init(&msg->timer, msg_late);
	list_add_tail(&msg_cpt(cpt)->active, &msg->active);
	cpt_count_begun(cpt);
}

static inline void msg_leave_life(struct lnet_msg *msg)
{
	BUG_ON(timer_armed(&msg->timer) || !list_empty(&msg->link));
	list_del(&msg->active);
	cpt_count_gone(msg->home);
	cpt_ended_one(msg->home);
}

static out_of_line void msg_fini_resent(struct lnet_msg *msg)
{
	resend_end(msg);
	msg_leave_life(msg);
}

void msg_fini(struct lnet_msg *msg)
{
	if (likely(!msg->again))
		msg_leave_life(msg);
	else
		msg_fini_resent(msg);
}

struct lnet_msg *msg_new(struct lnet_cpt *cpt, enum msg_role role)
{
	struct lnet_msg *msg = pool_get(&msg_cpt(cpt)->msg_pool);

	if (msg)
		msg_init(msg, cpt, role);
	return msg;
}

void msg_free_work(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct lnet_cpt *cpt = msg->home;

	if (msg->sender) {
		msg->sender->has.msgs--;
		peer_unref(cpt, msg->sender);
	}
	msg_fini(msg);
	pool_put(&msg_cpt(cpt)->msg_pool, msg);
	park_wake_later(cpt);
}

void msg_free(struct lnet_msg *msg)
{
	msg_pass(msg, msg->home, msg_free_work);
}

void msg_post(struct lnet_msg *msg, struct lnet_cpt *cpt, work_fn fn)
{
	msg->lnd.cpt = cpt->index;
	msg->work.fn = fn;
	msg_goes_to(msg, cpt);
	loop_post(cpt->loop, &msg->work);
}

void msg_pass(struct lnet_msg *msg, struct lnet_cpt *cpt, work_fn fn)
{
	if (likely(msg->cpt == cpt)) {
		fn(&msg->work);
		return;
	}
	msg_post(msg, cpt, fn);
}

void msg_set_payload(struct lnet_msg *msg, const struct lnet_md *md,
		     uint32_t offset, uint32_t length)
{
	msg->lnd.iov = md->iov;
	msg->lnd.niov = md->niov;
	msg->lnd.mem = mem_range(md->mem);
	msg->lnd.offset = offset;
	msg->lnd.length = length;
}

void msg_release(struct lnet_msg *msg)
{
	switch ((enum msg_state)msg->fsm.state) {
	case MSG_PEER_QUEUE:
	case MSG_NI_QUEUE:
	case MSG_LND:
	case MSG_REFUSED:
		credit_return(msg);
		break;
	case MSG_DELAYED:
	case MSG_DISCOVERING:
	case MSG_PAUSED:
		list_del(&msg->link);
		break;
	case MSG_CONNECTING:
		list_del(&msg->link);
		msg->lpni->nconnecting--;
		break;
	default:
		break;
	}
}

/* ---- sending ---- */

void msg_transmit(struct lnet_msg *msg)
{
	const struct lnd *lnd = msg->ni->lnd.lnd;
	int rc;

	msg_move(msg, MSG_LND);
	msg->lnd.incoming = false;
	msg->lnd.large = !lnet_nid_is_nid4(&msg->hdr.src_nid) ||
			 !lnet_nid_is_nid4(&msg->hdr.dest_nid);
	msg->tries++;
	msg->lnd.ni = &msg->ni->lnd;
	rc = lnd->send(msg->lnd.ni, &msg->lnd);
	if (likely(!rc))
		return;
	msg->tries--;
	if (rc == -EINPROGRESS) {
		msg_move(msg, MSG_CONNECTING);
		list_add_tail(&msg->lpni->connecting, &msg->link);
		peer_connecting(msg->lpni, msg->ni->bit);
		leave_begin(msg);
		credit_refund(msg);
		return;
	}
	msg_move(msg, MSG_REFUSED);
	msg_fail_later(msg, rc, lnd_refusal_cause(rc));
}

static enum ulnet_cause cause_of_select(int rc)
{
	switch (rc) {
	case -EHOSTUNREACH:
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	case -ENETDOWN:
		return LNET_CAUSE_LOCAL_DROPPED;
	default:
		return LNET_CAUSE_LOCAL_ERROR;
	}
}

/* The message goes from @ni to @lpni; takes the references to both. */
static void msg_set_path(struct lnet_msg *msg, struct lnet_ni *ni,
			 struct lnet_peer_ni *lpni)
{
	msg->ni = ni;
	msg->lpni = lpni;
	if (msg->role == MSG_OP && !wire_handle_is_none(&msg->hdr.wmd))
		peer_asked(lpni->peer, msg->deadline);
	if (likely(msg->role != MSG_FORWARD_OUT))
		msg->hdr.src_nid = ni->lnd.nid;
	msg->lnd.next_hop = lpni->nid;
	msg->lnd.next_pid = unlikely(msg->flags & MSG_ROUTED)
				    ? LNET_PID_LUSTRE
				    : msg->hdr.dest_pid;
}

/* Without a choice, as long as there is none. */
static bool msg_take_only_path(struct lnet_msg *msg)
{
	struct lnet_peer_ni *lpni =
		path_get_only(msg->cpt, &msg->want_ni, &msg->target);

	if (!lpni)
		return false;
	msg->flags &= ~MSG_ROUTED;
	msg_set_path(msg, lpni->only, lpni);
	return true;
}

static unsigned int msg_path_flags(const struct lnet_msg *msg)
{
	unsigned int flags = 0;

	if (msg->flags & MSG_EXACT)
		flags |= PATH_EXACT;
	if (msg->role == MSG_OP && msg->hdr.portal == 0)
		flags |= PATH_PORTAL0;
	if (unlikely(msg->role == MSG_FORWARD_OUT))
		flags |= PATH_FORWARD;
	if (msg->hdr.dest_pid & LNET_PID_USERFLAG)
		flags |= PATH_CALLER;
	return flags;
}

/* Where the message came from that this one answers, or that it is. */
static const struct ulnet_nid *msg_hop(const struct lnet_msg *msg)
{
	switch (msg->role) {
	case MSG_ACK_OUT:
	case MSG_REPLY_OUT:
	case MSG_FORWARD_OUT:
		return &msg->from;
	default:
		return NULL;
	}
}

/* Is the NI there, and up, that its sender has named? */
static bool msg_has_ni(const struct lnet_msg *msg)
{
	const struct lnet_ni *ni = config_ni(msg->cpt->config, &msg->want_ni);

	return ni && ni_is_up(ni);
}

bool msg_keeps_path(const struct lnet_msg *msg)
{
	return msg_has_ni(msg) && !(msg->flags & MSG_PREFERS && msg->again);
}

void msg_path_want(const struct lnet_msg *msg, const struct paths_tried *tried,
		   struct path_want *want)
{
	static const struct ulnet_nid any = LNET_NID_ANY;
	bool leaves = msg->flags & MSG_PREFERS && (tried || !msg_has_ni(msg));

	want->src = leaves ? &any : &msg->want_ni;
	want->dst = &msg->target;
	want->tried = tried;
	want->hop = msg_hop(msg);
	want->flags = msg_path_flags(msg);
	if (leaves)
		want->flags &= PATH_CALLER;
	if (msg->role == MSG_OP && msg->op->md->options & LNET_MD_NUMA_NODE) {
		want->flags |= PATH_NEAR;
		want->numa_node = msg->op->md->numa_node;
	}
}

static const struct paths_tried *msg_tried(const struct lnet_msg *msg)
{
	return msg->again ? &msg->again->tried : NULL;
}

bool msg_has_path(const struct lnet_msg *msg)
{
	struct path_want want;
	struct path path;

	msg_path_want(msg, msg_tried(msg), &want);
	return path_select(msg->cpt, &want, &path) == 0;
}

static void msg_set_gateway(struct lnet_msg *msg, const struct path *path)
{
	if (likely(!path->route)) {
		msg->flags &= ~MSG_ROUTED;
		return;
	}
	msg->flags |= MSG_ROUTED;
	msg->gateway = path->route->gateway;
	msg->gateway_from = path->from ? path->from->lnd.nid : LNET_NID_ANY;
}

void msg_use_path(struct lnet_msg *msg, const struct path *path)
{
	msg_set_gateway(msg, path);
	if (path->dst)
		msg->hdr.dest_nid = path->dst->nid;
	else if (!path->route)
		msg->hdr.dest_nid = path->lpni->nid;
	if (path->ni)
		msg_set_path(msg, path->ni, path->lpni);
}

void msg_forget_path(struct lnet_msg *msg)
{
	peer_unref(msg->cpt, msg->lpni);
	ni_unref(msg->ni, msg->cpt->index);
	msg->lpni = NULL;
	msg->ni = NULL;
}

/* 0, and the message has a path, but for the gateway that it goes by; or what
 * path_get() says. */
static int msg_choose_path(struct lnet_msg *msg)
{
	struct path_want want;
	struct path path;
	int rc;

	msg_path_want(msg, msg_tried(msg), &want);
	rc = path_get(msg->cpt, &want, &path);
	if (!rc)
		msg_use_path(msg, &path);
	return rc;
}

/* The way to its gateway, on the CPT that owns that. */
static int msg_choose_gateway_path(struct lnet_msg *msg)
{
	struct path_want want;
	struct path path;
	int rc;

	msg_path_want(msg, msg_tried(msg), &want);
	want.src = &msg->gateway_from;
	want.dst = &msg->gateway;
	want.hop = NULL;
	want.flags = (want.flags & ~(PATH_EXACT | PATH_FORWARD)) | PATH_HOP;
	rc = path_get(msg->cpt, &want, &path);
	if (rc)
		return rc;
	msg_set_path(msg, path.ni, path.lpni);
	return 0;
}

/* To this node itself: through 0@lo. The source it was given stays, so that
 * entries that name a NID of ours match. */
static void msg_send_self(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;

	if (!lnet_nid_is_any(&msg->want_ni) &&
	    !config_ni(cpt->config, &msg->want_ni)) {
		msg_fail_later(msg, -EINVAL, LNET_CAUSE_LOCAL_ERROR);
		return;
	}
	msg->ni = cpt->config->ni[0];
	ni_ref(msg->ni, cpt->index);
	msg->hdr.src_nid =
		lnet_nid_is_any(&msg->want_ni) ? msg->target : msg->want_ni;
	msg->lnd.next_hop = msg->ni->lnd.nid;
	msg->lnd.next_pid = cpt->node->conf.pid;
	loop_timer_arm(cpt->loop, &msg->timer, msg->lnd.deadline);
	msg_transmit(msg);
}

/* Is this process the destination? A NID of this node may be that of other
 * processes, too: of those that only call if this one listens, and also of the
 * one that listens if this one only calls. */
static bool msg_is_to_self(const struct lnet_msg *msg)
{
	const struct lnet_cpt *cpt = msg->cpt;

	if (!config_is_mine(cpt->config, &msg->target))
		return false;
	return pid_is_same(msg->hdr.dest_pid, cpt->node->conf.pid) ||
	       lnet_nid_is_lo(&msg->target);
}

struct lnet_cpt *msg_sender(struct lnet_cpt *cpt, const struct ulnet_nid *dst)
{
	struct lnet *node = cpt->node;

	if (lnet_nid_is_lo(dst))
		return cpt;
	return node->cpt[node_cpt_of(node, dst)];
}

/* The message has its path. Fault rules may have something else in mind. */
static void msg_depart(struct lnet_msg *msg)
{
	const struct msg_faults *faults = msg_cpt(msg->cpt)->faults;

	if (unlikely(faults) && faults->depart(msg))
		return;
	credit_take(msg);
}

void msg_go(struct lnet_msg *msg)
{
	if (unlikely(msg->role == MSG_FORWARD_OUT))
		msg_stages(msg)->goes(msg);
	msg->lnd.deadline = resend_deadline(msg);
	loop_timer_arm(msg->cpt->loop, &msg->timer, msg->lnd.deadline);
	msg_depart(msg);
}

static void msg_go_if(struct lnet_msg *msg, int rc)
{
	if (likely(!rc))
		msg_go(msg);
	else
		msg_fail_later(msg, rc, cause_of_select(rc));
}

/* It may have been on its way here when it was given up. */
static bool msg_is_given_up(struct lnet_msg *msg)
{
	if (likely(!atomic_load(&msg->forsaken)))
		return false;
	msg_fail_later(msg, msg->op->cancel_status, msg->op->cancel_cause);
	return true;
}

/* On the CPT that owned the gateway when the message was passed to it. */
static void msg_send_by_gateway(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct lnet_cpt *owner = msg_sender(msg->cpt, &msg->gateway);

	if (msg->cpt->closing)
		msg_fail_later(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
	else if (owner != msg->cpt)
		msg_pass(msg, owner, msg_send_by_gateway);
	else if (!msg_is_given_up(msg))
		msg_go_if(msg, msg_choose_gateway_path(msg));
}

/* By whatever path is best now. */
static void msg_send_by_choice(struct lnet_msg *msg)
{
	int rc = msg_choose_path(msg);

	if (likely(rc || msg->lpni)) {
		msg_go_if(msg, rc);
		return;
	}
	/* Of a path that it had before, which needed no gateway. */
	if (timer_armed(&msg->timer))
		loop_timer_cancel(msg->cpt->loop, &msg->timer);
	msg_pass(msg, msg_sender(msg->cpt, &msg->gateway), msg_send_by_gateway);
}

/* On the CPT that owned the destination when the message was passed to it. */
static void msg_send(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct lnet_cpt *owner;

	if (msg->cpt->closing) {
		msg_fail_later(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
		return;
	}
	if (likely(msg_take_only_path(msg))) {
		if (unlikely(msg->role == MSG_FORWARD_OUT))
			msg_stages(msg)->goes(msg);
		loop_timer_arm(msg->cpt->loop, &msg->timer, msg->lnd.deadline);
		msg_depart(msg);
		return;
	}
	if (msg_is_given_up(msg))
		return;
	owner = msg_sender(msg->cpt, &msg->target);
	if (unlikely(owner != msg->cpt)) {
		msg_pass(msg, owner, msg_send);
		return;
	}
	if (msg_is_to_self(msg)) {
		msg_send_self(msg);
		return;
	}
	if (msg_awaits(msg))
		return;
	msg_send_by_choice(msg);
}

void msg_withdraw(struct lnet_msg *msg, enum msg_state to)
{
	struct loop *loop = msg->cpt->loop;

	if (msg->fsm.state == MSG_DELAYED) /* it was the delay's timer */
		loop_timer_arm(loop, &msg->timer, msg->lnd.deadline);
	msg_release(msg);
	if (unlikely(msg->copy))
		copy_end(msg, false);
	msg_move(msg, to);
	msg_forget_path(msg);
	msg->lnd.again = false;
}

/* What went by a gateway is not on the CPT of its target. */
void msg_send_anew(struct lnet_msg *msg)
{
	if (!(msg->flags & MSG_ROUTED)) {
		msg_send_by_choice(msg);
		return;
	}
	if (timer_armed(&msg->timer))
		loop_timer_cancel(msg->cpt->loop, &msg->timer);
	msg_launch(msg);
}

void msg_launch(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;

	msg->lnd.cpt = cpt->index;
	msg_pass(msg, msg_sender(cpt, &msg->target), msg_send);
}

void upcall_send_again(struct lnd_msg *lnd)
{
	struct lnet_msg *msg = msg_of(lnd);

	BUG_ON(!msg->lpni || lnd->again);
	lnd->again = true;
	msg->tries--;
	msg_move(msg, MSG_CONNECTING);
	list_add(&msg->lpni->connecting, &msg->link);
	peer_connecting(msg->lpni, msg->ni->bit);
	credit_refund(msg);
}

/* Does @msg wait for a connection of @ni's to @peer? */
static bool msg_waits_for(const struct lnet_msg *msg, const struct lnet_ni *ni,
			  const struct ulnet_id *peer)
{
	return msg->ni == ni &&
	       (peer->pid == LNET_PID_ANY || msg->lnd.next_pid == peer->pid);
}

void upcall_peer_connected(struct lnd_ni *lnd, const struct ulnet_id *peer,
			   int status, enum ulnet_cause cause)
{
	struct lnet_ni *ni = ni_of(lnd);
	struct lnet_cpt *cpt = node_cpt_here(ni->node);
	struct lnet_peer_ni *lpni = peer_find(cpt, &peer->nid);
	struct lnet_msg *msg, *next;
	struct list waiting;

	BUG_ON((status == 0) != (cause == LNET_CAUSE_OK));
	if (!lpni)
		return;
	peer_connected(lpni, ni->bit, !status);
	/* What users' handlers send meanwhile waits for the next attempt. */
	list_init(&waiting);
	list_for_each_entry_safe (msg, next, &lpni->connecting, link) {
		if (!msg_waits_for(msg, ni, peer))
			continue;
		list_del(&msg->link);
		list_add_tail(&waiting, &msg->link);
	}
	while (!list_empty(&waiting)) {
		msg = list_first(&waiting, struct lnet_msg, link);
		list_del(&msg->link);
		if (!status) {
			lpni->nconnecting--;
			credit_take(msg);
			continue;
		}
		msg->tries++; /* of connecting: its event names the path */
		msg_finalize(msg, status, cause);
	}
}

/* ---- receiving ---- */

void msg_recv(struct lnet_msg *msg, work_fn done)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct msg_cpt *mc = msg_cpt(cpt);
	struct lnet_msg *outer = mc->receiving;

	msg_move(msg, MSG_RECV);
	msg->done = done;
	msg->lnd.incoming = true;
	msg->lnd.ni = &msg->ni->lnd;
	mc->receiving = msg;
	msg->lnd.ni->lnd->recv(msg->lnd.ni, msg->rx, &msg->lnd,
			       msg->hdr.payload_length);
	/* Most messages are over by now, and need no timer. */
	if (unlikely(mc->receiving == msg))
		loop_timer_arm(cpt->loop, &msg->timer, msg->lnd.deadline);
	mc->receiving = outer;
}

bool msg_is_answerable(const struct lnet_msg *msg)
{
	const struct lnd *lnd = msg->ni->lnd.lnd;

	return lnd->answer && !lnd->answer(&msg->ni->lnd, msg->rx, NULL);
}

int msg_answer(struct lnet_msg *msg)
{
	const struct lnd *lnd = msg->ni->lnd.lnd;
	struct loop *loop = msg->cpt->loop;
	int rc;

	if (likely(!lnd->answer))
		return -EOPNOTSUPP;
	msg->lnd.incoming = false;
	msg->lnd.ni = &msg->ni->lnd;
	rc = lnd->answer(msg->lnd.ni, msg->rx, &msg->lnd);
	if (rc)
		return rc;
	msg->rx = NULL;
	msg_move(msg, MSG_ANSWERING);
	loop_timer_arm(loop, &msg->timer, msg->lnd.deadline);
	return 0;
}

void msg_discard(struct lnet_msg *msg)
{
	msg->ni->lnd.lnd->recv(&msg->ni->lnd, msg->rx, NULL,
			       msg->hdr.payload_length);
	msg->rx = NULL;
}
