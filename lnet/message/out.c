/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/out.h"

#include <errno.h>

#include "lnet/message/end.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/net/net.h"
#include "lnet/nid/nid.h"
#include "lnet/path/health.h"
#include "lnet/portal/md.h"
#include "lnet/route/route.h"

/* The states that may follow when a message with a path takes its credits. */
#define TO_CREDITS \
	(FSM_TO(OUT_PEER_QUEUE) | FSM_TO(OUT_NI_QUEUE) | FSM_TO(OUT_LND))
/* The states that may follow when an attempt ends. */
#define TO_END (FSM_TO(OUT_PAUSED) | FSM_TO(OUT_DONE))

const struct fsm_state out_states[OUT_STATES] = {
	[OUT_NEW] = { "new", TO_CREDITS | FSM_TO(OUT_DELAYED) |
				     FSM_TO(OUT_DISCOVERING) | TO_END },
	[OUT_DISCOVERING] = { "waits for discovery",
			      FSM_TO(OUT_NEW) | FSM_TO(OUT_DONE) },
	[OUT_DELAYED] = { "delayed", TO_CREDITS | FSM_TO(OUT_NEW) | TO_END },
	[OUT_PEER_QUEUE] = { "waits for peer credit",
			     FSM_TO(OUT_NI_QUEUE) | FSM_TO(OUT_LND) |
				     FSM_TO(OUT_NEW) | TO_END },
	[OUT_NI_QUEUE] = { "waits for NI credit",
			   FSM_TO(OUT_LND) | FSM_TO(OUT_NEW) | TO_END },
	[OUT_CONNECTING] = { "waits for a connection",
			     TO_CREDITS | FSM_TO(OUT_NEW) | TO_END },
	[OUT_LND] = { "sending",
		      FSM_TO(OUT_REFUSED) | FSM_TO(OUT_CONNECTING) | TO_END },
	[OUT_REFUSED] = { "refused", TO_END },
	[OUT_PAUSED] = { "waits for another attempt",
			 FSM_TO(OUT_NEW) | FSM_TO(OUT_DONE) },
	[OUT_DONE] = { "done", 0 },
};

/* ---- life ---- */

void out_init(struct msg_out *msg, struct lnet_cpt *cpt, struct list *active,
	      timer_fn late)
{
	msg->home = cpt;
	msg->cpt = cpt;
	msg->done_cpt = cpt;
	msg->hop = NULL;
	msg->fsm.state = OUT_NEW;
	msg->ni = NULL;
	msg->lpni = NULL;
	msg->op = NULL;
	msg->nsends = 0;
	msg->copy = NULL;
	msg->retries = NULL;
	msg->flags = 0;
	atomic_init(&msg->abandoned, false);
	msg->lnd.again = false;
	msg->lnd.iov = NULL;
	msg->lnd.niov = 0;
	msg->lnd.mem = NULL;
	msg->lnd.offset = 0;
	msg->lnd.length = 0;
	msg->lnd.mark = NULL;
	list_init(&msg->link);
	list_init(&msg->lnd.link);
	timer_init(&msg->timer, late);
	list_add_tail(active, &msg->active);
	cpt_count_begun(cpt);
}

void out_fini(struct msg_out *msg)
{
	if (unlikely(msg->retries))
		resend_end(msg);
	BUG_ON(timer_armed(&msg->timer) || !list_empty(&msg->link));
	list_del(&msg->active);
	cpt_count_gone(msg->home);
	cpt_ended_one(msg->home);
}

void out_post(struct msg_out *msg, struct lnet_cpt *cpt, work_fn fn)
{
	msg->lnd.cpt = cpt->index;
	msg->work.fn = fn;
	__atomic_store_n(&msg->cpt, cpt, __ATOMIC_RELEASE);
	loop_post(cpt->loop, &msg->work);
}

void out_set_payload(struct msg_out *msg, const struct lnet_md *md,
		     uint32_t offset, uint32_t length)
{
	msg->lnd.iov = md->iov;
	msg->lnd.niov = md->niov;
	msg->lnd.mem = mem_range(md->mem);
	msg->lnd.offset = offset;
	msg->lnd.length = length;
}

void out_release(struct msg_out *msg)
{
	switch ((enum out_state)msg->fsm.state) {
	case OUT_PEER_QUEUE:
	case OUT_NI_QUEUE:
	case OUT_LND:
	case OUT_REFUSED:
		credit_return(msg);
		break;
	case OUT_DELAYED:
	case OUT_DISCOVERING:
	case OUT_PAUSED:
		list_del(&msg->link);
		break;
	case OUT_CONNECTING:
		list_del(&msg->link);
		msg->lpni->nconnecting--;
		break;
	default:
		break;
	}
}

static enum ulnet_cause cause_of_select(int rc)
{
	switch (rc) {
	case -EHOSTUNREACH:
		return LNET_CAUSE_LOCAL_NO_ROUTE;
	case -ENETDOWN:
		return LNET_CAUSE_LOCAL_DROPPED;
	case -ESHUTDOWN:
		return LNET_CAUSE_SHUTDOWN;
	default:
		return LNET_CAUSE_LOCAL_ERROR;
	}
}

static out_of_line void out_gateway_used(struct lnet_cpt *cpt,
					 struct lnet_peer_ni *lpni)
{
	const struct health_watch *watch = path_cpt(cpt)->watch;

	if (watch && !lpni->recovery)
		watch->gateway_used(cpt, lpni);
}

/* Sets the path of @msg, from @ni to @lpni. Takes over the references to both.
 */
static void out_set_path(struct msg_out *msg, struct lnet_ni *ni,
			 struct lnet_peer_ni *lpni)
{
	msg->ni = ni;
	msg->lpni = lpni;
	if (msg->role == OUT_OP && !wire_handle_is_none(&msg->hdr.wmd))
		peer_asked(lpni->peer, msg->deadline);
	if (likely(msg->role != OUT_FORWARD))
		msg->hdr.src_nid = ni->lnd.nid;
	msg->lnd.next_hop = lpni->nid;
	msg->lnd.next_pid = msg->hdr.dest_pid;
	if (unlikely(msg->flags & MSG_ROUTED)) {
		msg->lnd.next_pid = LNET_PID_LUSTRE;
		out_gateway_used(msg->cpt, lpni);
	}
}

/* If the path to the target is known to be the only one, takes it without a
 * selection. */
static bool out_take_only_path(struct msg_out *msg)
{
	struct lnet_peer_ni *lpni =
		path_get_only(msg->cpt, &msg->local_nid, &msg->target);

	if (!lpni)
		return false;
	msg->flags &= ~MSG_ROUTED;
	out_set_path(msg, lpni->only, lpni);
	return true;
}

static unsigned int out_path_flags(const struct msg_out *msg)
{
	unsigned int flags = 0;

	if (msg->flags & MSG_EXACT)
		flags |= PATH_EXACT;
	if (msg->role == OUT_OP && msg->hdr.portal == 0)
		flags |= PATH_PORTAL0;
	if (unlikely(msg->role == OUT_FORWARD))
		flags |= PATH_FORWARD;
	if (msg->hdr.dest_pid & LNET_PID_USERFLAG)
		flags |= PATH_CALLER;
	return flags;
}

/* Is the local NI that the sender named configured and up? While the CPT
 * closes, none is: some may have been freed already. */
static bool out_has_ni(const struct msg_out *msg)
{
	const struct lnet_ni *ni;

	if (unlikely(msg->cpt->closing))
		return false;
	ni = config_ni(msg->cpt->config, &msg->local_nid);
	return ni && ni_is_up(ni);
}

bool out_keeps_path(const struct msg_out *msg)
{
	return out_has_ni(msg) &&
	       !(msg->flags & MSG_PREFER_PATH && msg->retries);
}

void out_path_request(const struct msg_out *msg,
		      const struct failed_paths *failed,
		      struct path_request *request)
{
	static const struct ulnet_nid any = LNET_NID_ANY;
	bool leaves =
		msg->flags & MSG_PREFER_PATH && (failed || !out_has_ni(msg));

	request->src = leaves ? &any : &msg->local_nid;
	request->dst = &msg->target;
	request->failed = failed;
	request->hop = msg->hop;
	request->flags = out_path_flags(msg);
	if (leaves)
		request->flags &= PATH_CALLER;
	else if (msg->flags & MSG_PREFER_PATH)
		request->flags |= PATH_KEEP;
	if (msg->role == OUT_OP && msg->op->md->options & LNET_MD_NUMA_NODE) {
		request->flags |= PATH_NEAR;
		request->numa_node = msg->op->md->numa_node;
	}
}

static const struct failed_paths *out_failed_paths(const struct msg_out *msg)
{
	return msg->retries ? &msg->retries->failed : NULL;
}

int out_select(const struct msg_out *msg, struct path *path)
{
	struct path_request request;

	out_path_request(msg, out_failed_paths(msg), &request);
	return path_select(msg->cpt, &request, path, NULL);
}

bool out_can_leave(const struct msg_out *msg)
{
	struct path path;

	return msg->role != OUT_DUPLICATE && !out_select(msg, &path);
}

static void out_set_gateway(struct msg_out *msg, const struct path *path)
{
	if (likely(!path->route)) {
		msg->flags &= ~MSG_ROUTED;
		return;
	}
	msg->flags |= MSG_ROUTED;
	msg->gateway = path->route->gateway;
	msg->gateway_from = path->from ? path->from->lnd.nid : LNET_NID_ANY;
}

void out_use_path(struct msg_out *msg, const struct path *path)
{
	out_set_gateway(msg, path);
	if (path->dst)
		msg->hdr.dest_nid = path->dst->nid;
	else if (!path->route)
		msg->hdr.dest_nid = path->lpni->nid;
	if (path->ni)
		out_set_path(msg, path->ni, path->lpni);
}

void out_forget_path(struct msg_out *msg)
{
	peer_unref(msg->lpni);
	ni_unref(msg->ni, msg->cpt->index);
	msg->lpni = NULL;
	msg->ni = NULL;
}

/* Takes a path for the next attempt of @msg. If the path leads through a
 * gateway that another CPT owns, only sets the gateway, and msg->lpni stays
 * NULL. @to_gateway: takes the path to msg->gateway, which this CPT owns.
 * Returns 0, or an error of path_get(). */
static in_line int out_choose_path(struct msg_out *msg, bool to_gateway)
{
	struct path_request request;
	struct path path;
	int rc;

	out_path_request(msg, out_failed_paths(msg), &request);
	if (to_gateway) {
		request.src = &msg->gateway_from;
		request.dst = &msg->gateway;
		request.hop = NULL;
		request.flags &= ~(PATH_EXACT | PATH_FORWARD);
		request.flags |= PATH_HOP;
	}
	rc = path_get(msg->cpt, &request, &path);
	if (rc)
		return rc;
	if (to_gateway)
		out_set_path(msg, path.ni, path.lpni);
	else
		out_use_path(msg, &path);
	return 0;
}

/* Sends @msg to this node itself, through 0@lo. Its source remains the NID that
 * the sender asked for, so that match entries that name a NID of this node
 * match. */
static void out_send_self(struct msg_out *msg)
{
	struct lnet_cpt *cpt = msg->cpt;

	if (!lnet_nid_is_any(&msg->local_nid) &&
	    !config_ni(cpt->config, &msg->local_nid)) {
		out_fail_later(msg, -EINVAL, LNET_CAUSE_LOCAL_ERROR);
		return;
	}
	msg->ni = cpt->config->ni[0];
	ni_ref(msg->ni, cpt->index);
	msg->hdr.src_nid =
		lnet_nid_is_any(&msg->local_nid) ? msg->target : msg->local_nid;
	msg->lnd.next_hop = msg->ni->lnd.nid;
	msg->lnd.next_pid = cpt->node->conf.pid;
	loop_timer_arm(cpt->loop, &msg->timer, msg->lnd.deadline);
	credit_transmit(msg);
}

/* Is this process the destination? Other processes on the host may have the
 * same NIDs: one process that listens, and several that only call. */
static bool out_is_to_self(const struct msg_out *msg)
{
	const struct lnet_cpt *cpt = msg->cpt;

	if (!config_is_mine(cpt->config, &msg->target))
		return false;
	return pid_is_same(msg->hdr.dest_pid, cpt->node->conf.pid) ||
	       lnet_nid_is_lo(&msg->target);
}

static out_of_line struct lnet_cpt *out_sender_of(struct lnet *node,
						  const struct ulnet_nid *dst)
{
	return node->cpt[node_cpt_of(node, dst)];
}

struct lnet_cpt *out_sender(struct lnet_cpt *cpt, const struct ulnet_nid *dst)
{
	if (cpt->node->cpts == 1 || lnet_nid_is_lo(dst))
		return cpt;
	return out_sender_of(cpt->node, dst);
}

/* Makes @msg, which has a path, go straight, or take its credits, by
 * lnd.deadline, unless a fault rule takes @msg over. */
static void out_depart(struct msg_out *msg)
{
	const struct msg_faults *faults = msg_cpt(msg->cpt)->faults;

	if (likely(!faults && credit_push(msg)))
		return;
	loop_timer_arm(msg->cpt->loop, &msg->timer, msg->lnd.deadline);
	if (unlikely(faults) && faults->depart(msg))
		return;
	credit_take(msg);
}

/* @msg is for another node. If its next hop has failed lately, makes its
 * deadline earlier, provided that health counts: the router does not keep @msg
 * for long. */
static void out_shorten_deadline(struct msg_out *msg)
{
	uint64_t until = loop_now(msg->cpt->loop) + FORWARD_SUSPECT;

	if (msg->lpni->health == LNET_HEALTH_MAX ||
	    !settings_health_is_on(&msg->cpt->node->settings))
		return;
	msg->deadline = MIN(msg->deadline, until);
	msg->lnd.deadline = MIN(msg->lnd.deadline, msg->deadline);
}

void out_go(struct msg_out *msg)
{
	if (unlikely(msg->role == OUT_FORWARD))
		out_shorten_deadline(msg);
	msg->lnd.deadline = resend_deadline(msg);
	out_depart(msg);
}

static void out_go_if(struct msg_out *msg, int rc)
{
	if (likely(!rc))
		out_go(msg);
	else
		out_fail_later(msg, rc, cause_of_select(rc));
}

/* Was the operation of @msg abandoned while @msg was being passed to this CPT?
 * If so, @msg fails. */
static bool out_is_abandoned(struct msg_out *msg)
{
	if (likely(!atomic_load(&msg->abandoned)))
		return false;
	out_fail_later(msg, msg->op->cancel_status, msg->op->cancel_cause);
	return true;
}

/* Called on the CPT that owned the gateway when @msg was passed to it. */
static void out_send_by_gateway(struct work *w)
{
	struct msg_out *msg = container_of(w, struct msg_out, work);
	struct lnet_cpt *owner = out_sender(msg->cpt, &msg->gateway);

	if (msg->cpt->closing)
		out_fail_later(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
	else if (owner != msg->cpt)
		out_pass(msg, owner, out_send_by_gateway);
	else if (!out_is_abandoned(msg))
		out_go_if(msg, out_choose_path(msg, true));
}

/* Sends @msg over the path that is best now. */
static void out_send_by_choice(struct msg_out *msg)
{
	int rc = out_choose_path(msg, false);

	if (likely(rc || msg->lpni)) {
		out_go_if(msg, rc);
		return;
	}
	/* The timer may be armed for an earlier path without a gateway. */
	if (timer_armed(&msg->timer))
		loop_timer_cancel(msg->cpt->loop, &msg->timer);
	out_pass(msg, out_sender(msg->cpt, &msg->gateway), out_send_by_gateway);
}

/* ---- waiting for discovery ---- */

static bool out_must_wait(struct msg_out *msg)
{
	const struct msg_discovery *d = msg_cpt(msg->cpt)->discovery;

	/* Answers go back to where the request came from, and messages to
	 * PING_PORTAL are discovery's own. */
	return d && msg->role == OUT_OP && msg->hdr.portal != PING_PORTAL &&
	       !(msg->flags & MSG_DISCOVERY_WAITED) && d->waits(msg);
}

void out_discovery_wait(struct msg_out *msg, struct list *waiting)
{
	struct lnet_cpt *cpt = msg->cpt;
	uint64_t now = loop_now(cpt->loop);
	uint64_t left = msg->deadline - MIN(now, msg->deadline);
	uint32_t attempts =
		MAX(settings_retry_count(&cpt->node->settings) + 1, 2);

	out_move(msg, OUT_DISCOVERING);
	msg->flags |= MSG_DISCOVERY_WAITED;
	list_add_tail(waiting, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, now + left / attempts);
	cpt_stat(cpt, STAT_discovery_waits);
}

static void discovery_wait_end(struct msg_out *msg)
{
	list_del(&msg->link);
	loop_timer_cancel(msg->cpt->loop, &msg->timer);
	out_move(msg, OUT_NEW);
	out_launch(msg);
}

void out_discovery_late(struct msg_out *msg)
{
	cpt_stat(msg->cpt, STAT_discovery_late);
	discovery_wait_end(msg);
}

void out_discovery_over(struct list *waiting)
{
	while (!list_empty(waiting))
		discovery_wait_end(list_first(waiting, struct msg_out, link));
}

/* ---- delays ---- */

void out_delay(struct msg_out *msg, uint64_t ns)
{
	struct lnet_cpt *cpt = msg->cpt;
	uint64_t until = loop_now(cpt->loop) + ns;

	out_move(msg, OUT_DELAYED);
	list_add_tail(&msg_cpt(cpt)->delayed_out, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, MIN(until, msg->lnd.deadline));
}

void out_delay_late(struct msg_out *msg)
{
	struct loop *loop = msg->cpt->loop;

	if (loop_now(loop) >= msg->lnd.deadline) {
		out_cancel(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
		return;
	}
	/* There was no other path when the NI went down (reroute.h), but there
	 * may be one by now. */
	if (!ni_is_up(msg->ni) && out_can_leave(msg)) {
		out_withdraw(msg, OUT_NEW);
		out_send_anew(msg);
		return;
	}
	list_del(&msg->link);
	loop_timer_arm(loop, &msg->timer, msg->lnd.deadline);
	credit_take(msg);
}

/* ---- launching ---- */

/* Called on the CPT that owned the target when @msg was passed to it. */
static void out_send(struct work *w)
{
	struct msg_out *msg = container_of(w, struct msg_out, work);
	struct lnet_cpt *owner;

	if (msg->cpt->closing) {
		out_fail_later(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
		return;
	}
	if (likely(out_take_only_path(msg))) {
		if (unlikely(msg->role == OUT_FORWARD))
			out_shorten_deadline(msg);
		out_depart(msg);
		return;
	}
	if (out_is_abandoned(msg))
		return;
	owner = out_sender(msg->cpt, &msg->target);
	if (unlikely(owner != msg->cpt)) {
		out_pass(msg, owner, out_send);
		return;
	}
	if (out_is_to_self(msg)) {
		out_send_self(msg);
		return;
	}
	if (out_must_wait(msg))
		return;
	out_send_by_choice(msg);
}

void out_withdraw(struct msg_out *msg, enum out_state to)
{
	struct loop *loop = msg->cpt->loop;

	/* the timer was armed for the delay */
	if (msg->fsm.state == OUT_DELAYED)
		loop_timer_arm(loop, &msg->timer, msg->lnd.deadline);
	out_release(msg);
	if (unlikely(msg->copy))
		msg->copy->end(msg, false);
	out_move(msg, to);
	out_forget_path(msg);
	msg->lnd.again = false;
}

/* A message that went through a gateway is not on the CPT that owns its target;
 * it has to be launched on that CPT. */
void out_send_anew(struct msg_out *msg)
{
	if (!(msg->flags & MSG_ROUTED)) {
		out_send_by_choice(msg);
		return;
	}
	if (timer_armed(&msg->timer))
		loop_timer_cancel(msg->cpt->loop, &msg->timer);
	out_launch(msg);
}

void out_launch(struct msg_out *msg)
{
	struct lnet_cpt *cpt = msg->cpt;

	msg->lnd.cpt = cpt->index;
	out_pass(msg, out_sender(cpt, &msg->target), out_send);
}
