/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/end.h"

#include <errno.h>
#include <stdlib.h>

#include "lnd/lnd.h"
#include "lnet/message/out.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"
#include "lnet/portal/md.h"
#include "lnet/route/route.h"
#include "ulnet/loop.h"

#define PAUSE_MIN (10 * NSEC_PER_MSEC)
#define PAUSE_MAX NSEC_PER_SEC
/* The shortest time for an attempt, unless the message has less time left. */
#define ATTEMPT_MIN (50 * NSEC_PER_MSEC)
/* The longest time that a repeat over the only path waits for a connection. */
#define SAME_CONNECT NSEC_PER_SEC

static uint32_t retry_count(const struct msg_out *msg)
{
	return settings_retry_count(&msg->cpt->node->settings);
}

static uint32_t repeats(const struct msg_out *msg)
{
	return msg->retries ? msg->retries->repeats : 0;
}

/* ---- is there another attempt? ---- */

enum resend_how {
	RESEND_NOT,
	RESEND_ELSEWHERE, /* over a path that was not tried */
	RESEND_REPEAT,	  /* over one of several paths that were tried */
	RESEND_SAME	  /* over the only path */
};

struct resend_plan {
	enum resend_how how;
	uint64_t at; /* ns: when the next attempt is to begin */
	/* the attempts that have failed, including the present one */
	struct failed_paths failed;
	struct path_request request;
	struct path path; /* path of the next attempt */
};

/* Returns how many of the attempts in @failed went over @path. If another CPT
 * owns the gateway of @path: how many went over any path to that gateway. */
static unsigned int attempts_over(const struct msg_out *msg,
				  const struct failed_paths *failed,
				  const struct path *path)
{
	const struct ulnet_nid *hop =
		path->route ? &path->route->gateway : &msg->target;

	if (!path->ni)
		return failed_paths_by(msg->cpt, failed, hop);
	return failed_paths_count(failed, &path->ni->lnd.nid,
				  path->lpni ? &path->lpni->nid : hop);
}

/* Did all attempts in @failed go over one path? @n: what attempts_over()
 * returns for that path. */
static bool is_only_path(const struct failed_paths *failed, unsigned int n)
{
	return n == MIN(failed->n, FAILED_PATHS_MAX);
}

/* Returns whether and how @msg is sent again, and selects plan->path. */
static enum resend_how resend_how(const struct msg_out *msg,
				  struct resend_plan *plan)
{
	const struct failed_paths *failed = &plan->failed;
	unsigned int n;

	out_path_request(msg, failed, &plan->request);
	if (path_select(msg->cpt, &plan->request, &plan->path, NULL))
		return RESEND_NOT;
	n = attempts_over(msg, failed, &plan->path);
	if (!n && failed->n < FAILED_PATHS_MAX)
		return RESEND_ELSEWHERE;
	if (repeats(msg) >= retry_count(msg))
		return RESEND_NOT;
	return is_only_path(failed, n) ? RESEND_SAME : RESEND_REPEAT;
}

/* Plans what is done if the present attempt of @msg fails. Returns false if
 * @msg is not sent again. */
static bool resend_plan(const struct msg_out *msg, struct resend_plan *plan)
{
	if (msg->flags & MSG_ONCE || atomic_load(&msg->abandoned))
		return false;
	plan->failed.n = 0;
	if (msg->retries)
		plan->failed = msg->retries->failed;
	failed_paths_add(&plan->failed, &msg->ni->lnd.nid, &msg->lpni->nid);
	plan->how = resend_how(msg, plan);
	plan->at = loop_now(msg->cpt->loop);
	if (plan->how != RESEND_ELSEWHERE)
		plan->at += MIN(PAUSE_MIN << MIN(repeats(msg), 16), PAUSE_MAX);
	return plan->how != RESEND_NOT && plan->at < msg->deadline;
}

bool resend_could(const struct msg_out *msg)
{
	struct resend_plan plan;

	return resend_plan(msg, &plan) && plan.how != RESEND_SAME;
}

/* ---- the only path ---- */

/* Does the owner of @msg want to hear of a failure at once, rather than that
 * @msg is sent again over its only path? */
static bool is_in_a_hurry(const struct msg_out *msg)
{
	return msg->role == OUT_FORWARD ||
	       (msg->role == OUT_OP && msg->op->md->options & LNET_MD_OF_LAYER);
}

/* Returns until when (ns) the LND pauses before it connects to the next hop of
 * @msg again; 0: it does not pause. */
static uint64_t lnd_paused_until(const struct msg_out *msg)
{
	const struct lnd *lnd = msg->ni->lnd.lnd;
	struct ulnet_id peer = { msg->lnd.next_hop, msg->lnd.next_pid };

	if (!lnd->paused_until)
		return 0;
	return lnd->paused_until(&msg->ni->lnd, msg->cpt->index, &peer);
}

/* The present attempt of @msg has failed, and another one would take the same
 * path, the only one: would it be of use? If the LND pauses, the next attempt
 * must begin after the pause, since the LND does not connect before; and it is
 * of use only if there was no way to the peer, which may change soon, and not
 * if the peer has refused. */
static bool same_may_help(const struct msg_out *msg,
			  const struct resend_plan *plan, int status,
			  enum ulnet_cause cause)
{
	uint64_t paused;

	if (status == -ETIMEDOUT || is_in_a_hurry(msg) ||
	    lnd_judge(status, cause).blame == LND_BLAME_NOBODY)
		return false;
	paused = lnd_paused_until(msg);
	if (paused && status != -EHOSTUNREACH && status != -ENETUNREACH)
		return false;
	return paused <= plan->at;
}

/* Is the path of @msg the only one that it has tried? */
static bool is_same_again(const struct msg_out *msg)
{
	const struct failed_paths *failed;

	if (!msg->retries || !msg->lpni)
		return false;
	failed = &msg->retries->failed;
	return is_only_path(
		failed,
		failed_paths_count(failed, &msg->ni->lnd.nid, &msg->lpni->nid));
}

bool resend_waits_to_repeat(const struct msg_out *msg)
{
	return msg->fsm.state == OUT_CONNECTING && is_same_again(msg);
}

uint64_t resend_connect_until(const struct msg_out *msg)
{
	return MIN(loop_now(msg->cpt->loop) + SAME_CONNECT, msg->lnd.deadline);
}

/* ---- the pause ---- */

/* Records the failed attempt in @msg. Returns false if there is no memory.
 * (msg->retries does not come from a pool, because @msg may end on another
 * CPT.) */
static bool resend_note(struct msg_out *msg, const struct resend_plan *plan,
			int status, enum ulnet_cause cause)
{
	if (!msg->retries)
		msg->retries = calloc(1, sizeof(*msg->retries));
	if (!msg->retries)
		return false;
	msg->retries->failed = plan->failed;
	msg->retries->peer = msg->hdr.dest_nid;
	msg->retries->repeats += plan->how != RESEND_ELSEWHERE;
	msg->retries->status = status;
	msg->retries->cause = cause;
	msg->nsends = plan->failed.n;
	return true;
}

static int32_t path_health(const struct msg_out *msg)
{
	return ni_health(msg->ni) + msg->lpni->health;
}

/* Takes the next path now, if this CPT owns the target and the gateway.
 * Otherwise returns false, and a path is chosen after the pause. */
static bool resend_takes_path(struct msg_out *msg, struct resend_plan *plan)
{
	struct lnet_cpt *cpt = msg->cpt;

	return plan->path.ni && out_sender(cpt, &msg->target) == cpt &&
	       !path_take(cpt, &plan->request, &plan->path);
}

static void count_resend(const struct msg_out *msg, enum resent why)
{
	static const enum lnet_stat stats[RESENT_COUNT] = {
		[RESENT_TIMEOUT] = STAT_resends_timeout,
		[RESENT_LOCAL] = STAT_resends_local,
		[RESENT_REMOTE] = STAT_resends_remote,
	};
	struct lnet_cpt *cpt = msg->cpt;

	stat_inc(&msg->ni->cpt[cpt->index].traffic.resent[why]);
	stat_inc(&msg->lpni->traffic.resent[why]);
	cpt_stat(cpt, STAT_resend_count);
	cpt_stat(cpt, stats[why]);
}

/* Makes @msg pause before another attempt, and returns true; or returns false:
 * the failure is final. */
static bool resend_after(struct msg_out *msg, int status,
			 enum ulnet_cause cause)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct resend_plan plan;
	bool taken;

	if (!lnd_judge(status, cause).not_delivered)
		return false;
	if (!resend_plan(msg, &plan) ||
	    (plan.how == RESEND_SAME &&
	     !same_may_help(msg, &plan, status, cause)) ||
	    !resend_note(msg, &plan, status, cause))
		return false;
	count_resend(msg, resent_by(cause));
	taken = resend_takes_path(msg, &plan);
	out_withdraw(msg, OUT_PAUSED);
	if (taken) {
		out_use_path(msg, &plan.path);
		msg->retries->topology = cpt->topology;
		msg->retries->health = path_health(msg);
	}
	list_add_tail(&msg_cpt(cpt)->paused, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, plan.at);
	return true;
}

/* Does @msg have a path that has not become worse since it was chosen? (Several
 * paths may have failed in the same turn.) */
static bool resend_has_path(const struct msg_out *msg)
{
	return msg->lpni && ni_is_up(msg->ni) &&
	       msg->retries->topology == msg->cpt->topology &&
	       msg->retries->health <= path_health(msg);
}

static void resend_due(struct msg_out *msg)
{
	if (loop_now(msg->cpt->loop) >= msg->deadline) {
		out_finalize(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
		return;
	}
	list_del(&msg->link);
	out_move(msg, OUT_NEW);
	if (resend_has_path(msg)) {
		out_go(msg);
		return;
	}
	if (msg->lpni)
		out_forget_path(msg);
	out_address(msg, &msg->target, msg->deadline);
	out_launch(msg);
}

void resend_leave(struct lnet_cpt *cpt, const struct lnet_ni *ni,
		  const struct lnet_peer_ni *lpni)
{
	struct msg_out *msg;

	list_for_each_entry (msg, &msg_cpt(cpt)->paused, link)
		if (msg->lpni && (msg->ni == ni || msg->lpni == lpni))
			out_forget_path(msg);
}

/* ---- the end of an attempt ---- */

/* Who is to blame for LNET_CAUSE_LOCAL_TIMEOUT, by the state in which the
 * message waited. In OUT_LND it was in the queue of a connection that the peer
 * does not read. */
static const enum lnd_blame late_blame[OUT_STATES] = {
	[OUT_PEER_QUEUE] = LND_BLAME_PEER,
	[OUT_NI_QUEUE] = LND_BLAME_LOCAL,
	[OUT_CONNECTING] = LND_BLAME_PEER,
	[OUT_LND] = LND_BLAME_PEER,
};

static enum lnd_blame blame(const struct msg_out *msg, int status,
			    enum ulnet_cause cause)
{
	enum lnd_blame b = lnd_judge(status, cause).blame;

	if (cause == LNET_CAUSE_LOCAL_TIMEOUT && b != LND_BLAME_NOBODY)
		return late_blame[msg->fsm.state];
	return b;
}

bool attempt_tells_of_peer(int status, enum ulnet_cause cause)
{
	enum lnd_blame b = lnd_judge(status, cause).blame;

	return b == LND_BLAME_PEER || b == LND_BLAME_BOTH ||
	       (b == LND_BLAME_LOCAL && cause == LNET_CAUSE_LOCAL_TIMEOUT);
}

/* Returns the cause that is counted. If @msg was canceled, the LND's cause only
 * says how far @msg had come; counting it would look as if the network had been
 * late. */
static enum ulnet_cause counted_as(const struct msg_out *msg, int status,
				   enum ulnet_cause cause)
{
	if (likely(!atomic_load(&msg->abandoned)) ||
	    status != msg->op->cancel_status)
		return cause;
	return msg->op->cancel_cause;
}

static void count(struct msg_out *msg, enum ulnet_cause cause)
{
	enum lnet_stat s = stat_of_cause(cause);

	if (s != STAT_COUNT)
		cpt_stat(msg->cpt, s);
	if (msg->ni)
		stat_inc(&msg->ni->cpt[msg->cpt->index].failed[cause]);
	if (msg->lpni && PEER_FAILED(cause) < PEER_FAILURES)
		stat_inc(&msg->lpni->failed[PEER_FAILED(cause)]);
}

static void lower_health(struct msg_out *msg, enum lnd_blame blame)
{
	switch (blame) {
	case LND_BLAME_NOBODY:
		break;
	case LND_BLAME_LOCAL:
		health_lose_ni(msg->cpt, msg->ni);
		break;
	case LND_BLAME_PEER:
		health_lose_peer_ni(msg->cpt, msg->lpni);
		break;
	case LND_BLAME_BOTH:
		health_lose_both(msg->cpt, msg->ni, msg->lpni);
		break;
	}
}

/* The attempt of @msg has failed; @msg is still in the state of the attempt.
 *	1. Counts the failure, and notes whether the peer may have received
 *	   @msg.
 *	2. Lowers the health of the NI to blame (lnd/cause.h). If @msg was too
 *	   late, that is the NI that it has waited for.
 *	3. If @msg was not delivered, plans another attempt.
 * Returns true if there will be another attempt: then @msg pauses (OUT_PAUSED),
 * and holds nothing except perhaps a path. */
static out_of_line bool attempt_failed(struct msg_out *msg, int status,
				       enum ulnet_cause cause)
{
	uint32_t ended = msg->retries ? msg->retries->failed.n : 0;

	if (msg->fsm.state == OUT_PAUSED && msg->lpni)
		out_forget_path(msg); /* no attempt over this path has begun */
	count(msg, counted_as(msg, status, cause));
	if (msg->nsends > ended && !lnd_judge(status, cause).not_delivered)
		msg->flags |= MSG_MAYBE_ARRIVED;
	if (!msg->lpni)
		return false;
	if (!(msg->flags & MSG_PROBE))
		lower_health(msg, blame(msg, status, cause));
	return resend_after(msg, status, cause);
}

uint64_t resend_deadline(const struct msg_out *msg)
{
	uint64_t now = loop_now(msg->cpt->loop);
	uint64_t left = msg->deadline > now ? msg->deadline - now : 0;
	uint32_t retries = retry_count(msg);
	uint64_t attempts = UINT64_C(1) + retries - MIN(repeats(msg), retries);

	if (msg->flags & MSG_ONCE)
		return msg->deadline;
	return now + MIN(left, MAX(left / attempts, ATTEMPT_MIN));
}

void resend_end(struct msg_out *msg)
{
	cpt_stat(msg->home,
		 msg->status ? STAT_failed_resends : STAT_successful_resends);
	free(msg->retries);
	msg->retries = NULL;
}

void resend_discard(struct lnet_cpt *cpt)
{
	struct msg_out *msg, *next;

	list_for_each_entry_safe (msg, next, &msg_cpt(cpt)->paused, link)
		out_finalize_post(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}

/* ---- the end of the message ---- */

static out_of_line void out_time_sent(struct msg_out *msg)
{
	uint64_t took;

	if (msg->role != OUT_OP)
		return;
	took = loop_now(msg->cpt->loop) - msg->op->began;
	times_add(&msg->ni->cpt[msg->cpt->index].traffic.sending, took);
	times_add(&msg->lpni->traffic.sending, took);
}

void out_count_sent(struct msg_out *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	uint32_t length = msg->hdr.payload_length;
	uint32_t type = msg->hdr.type;

	if (likely(msg->role != OUT_FORWARD)) {
		cpt_stat(cpt, STAT_send_count);
		stat_add(&cpt->stats[STAT_send_length], length);
	} else {
		cpt_stat(cpt, STAT_route_count);
		stat_add(&cpt->stats[STAT_route_length], length);
	}
	traffic_add(&msg->ni->cpt[cpt->index].traffic.send, type, length);
	if (!msg->lpni)
		return;
	if (unlikely(times_is_turn(&msg->lpni->traffic.send, type)))
		out_time_sent(msg);
	traffic_add(&msg->lpni->traffic.send, type, length);
}

/* Ends @msg, but does not call msg->done(). */
static void out_finish(struct msg_out *msg, int status, enum ulnet_cause cause)
{
	struct lnet_cpt *cpt = msg->cpt;

	msg->status = status;
	msg->cause = cause;
	if (timer_armed(&msg->timer))
		loop_timer_cancel(cpt->loop, &msg->timer);
	if (likely(status == 0))
		out_count_sent(msg);
	out_release(msg);
	if (unlikely(msg->copy))
		msg->copy->end(msg, status == 0);
	out_move(msg, OUT_DONE);
	if (msg->lpni)
		peer_unref(msg->lpni);
	if (msg->ni)
		ni_unref(msg->ni, cpt->index);
	msg->lpni = NULL;
	msg->ni = NULL;
}

void out_finalize(struct msg_out *msg, int status, enum ulnet_cause cause)
{
	if (unlikely(status) && attempt_failed(msg, status, cause))
		return;
	out_finish(msg, status, cause);
	out_pass(msg, msg->done_cpt, msg->done);
}

void out_finalize_post(struct msg_out *msg, int status, enum ulnet_cause cause)
{
	if (status && attempt_failed(msg, status, cause))
		return;
	out_finish(msg, status, cause);
	out_post(msg, msg->done_cpt, msg->done);
}

void out_pushed(struct msg_out *msg)
{
	out_finish(msg, 0, LNET_CAUSE_OK);
	if (unlikely(msg->done_cpt != msg->cpt)) {
		out_post(msg, msg->done_cpt, msg->done);
		return;
	}
	msg->work.fn = msg->done;
	loop_defer_last(msg->cpt->loop, &msg->work);
}

void resend_give_up(struct msg_out *msg)
{
	out_finish(msg, msg->retries->status, msg->retries->cause);
	out_post(msg, msg->done_cpt, msg->done);
}

static void out_fail_work(struct work *w)
{
	struct msg_out *msg = container_of(w, struct msg_out, work);

	out_finalize(msg, msg->status, msg->cause);
}

void out_fail_later(struct msg_out *msg, int status, enum ulnet_cause cause)
{
	msg->status = status;
	msg->cause = cause;
	msg->work.fn = out_fail_work;
	loop_defer(msg->cpt->loop, &msg->work);
}

void out_cancel(struct msg_out *msg, int status, enum ulnet_cause cause)
{
	switch ((enum out_state)msg->fsm.state) {
	case OUT_NEW:
	case OUT_REFUSED:
	case OUT_DONE:
		/* @msg has not begun, is about to end (out_fail_later()), or
		 * has ended. */
		break;
	case OUT_LND:
		msg->ni->lnd.lnd->cancel(&msg->ni->lnd, &msg->lnd, status);
		break;
	default:
		out_finalize(msg, status, cause);
		break;
	}
}

/* ---- timers ---- */

/* Has a part of @msg been sent? Then it is better to send the rest, too. */
static bool out_has_begun(const struct msg_out *msg)
{
	const struct lnd *lnd;

	if (msg->fsm.state != OUT_LND)
		return false;
	lnd = msg->ni->lnd.lnd;
	return !lnd->has_begun || lnd->has_begun(&msg->ni->lnd, &msg->lnd);
}

/* The deadline of the present attempt has passed. Returns true if the attempt
 * may go on until the deadline of the message. */
static bool out_takes_more_time(struct msg_out *msg)
{
	struct loop *loop = msg->cpt->loop;

	if (likely(loop_now(loop) >= msg->deadline))
		return false;
	if (!out_has_begun(msg) && resend_could(msg))
		return false;
	msg->lnd.deadline = msg->deadline;
	loop_timer_arm(loop, &msg->timer, msg->deadline);
	return true;
}

void out_late(struct timer *t)
{
	struct msg_out *msg = container_of(t, struct msg_out, timer);

	switch ((enum out_state)msg->fsm.state) {
	case OUT_DISCOVERING:
		out_discovery_late(msg);
		return;
	case OUT_DELAYED:
		out_delay_late(msg);
		return;
	case OUT_PAUSED:
		resend_due(msg);
		return;
	default:
		break;
	}
	if (resend_waits_to_repeat(msg)) {
		resend_give_up(msg);
		return;
	}
	/* Messages through 0@lo, and those given to answer(), are never sent
	 * again. */
	if (msg->lpni && loop_now(msg->cpt->loop) < msg->lnd.deadline)
		credit_connect_late(msg);
	else if (!msg->lpni || !out_takes_more_time(msg))
		out_cancel(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
}
