/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/end.h"

#include <errno.h>
#include <stdlib.h>

#include "lnd/lnd.h"
#include "lnet/message/await.h"
#include "lnet/message/copy.h"
#include "lnet/message/leave.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"
#include "lnet/portal/md.h"
#include "lnet/route/route.h"

#define PAUSE_MIN (10 * NSEC_PER_MSEC)
#define PAUSE_MAX NSEC_PER_SEC
/* No try is given less time, as long as there is any. */
#define TRY_MIN (50 * NSEC_PER_MSEC)

static uint32_t retry_count(const struct lnet_msg *msg)
{
	return settings_retry_count(&msg->cpt->node->settings);
}

static uint32_t repeats(const struct lnet_msg *msg)
{
	return msg->again ? msg->again->repeats : 0;
}

/* ---- is there another try? ---- */

enum resend_how { RESEND_NOT, RESEND_ELSEWHERE, RESEND_REPEAT };

struct resend_plan {
	enum resend_how how;
	uint64_t at;		  /* ns: when the next try begins */
	struct paths_tried tried; /* then */
	struct path_want want;
	struct path path; /* its path */
};

/* How often @tried knows of a try over @path, for @msg; of a gateway that
 * another CPT owns, over any path to it. */
static unsigned int tries_over(const struct lnet_msg *msg,
			       const struct paths_tried *tried,
			       const struct path *path)
{
	const struct ulnet_nid *hop =
		path->route ? &path->route->gateway : &msg->target;

	if (!path->ni)
		return path_tries_by(msg->cpt, tried, hop);
	return tried_count(tried, &path->ni->lnd.nid,
			   path->lpni ? &path->lpni->nid : hop);
}

/* How @msg, whose path is one of plan->tried now, goes on. */
static enum resend_how resend_how(const struct lnet_msg *msg,
				  struct resend_plan *plan)
{
	const struct paths_tried *tried = &plan->tried;
	unsigned int n;

	msg_path_want(msg, tried, &plan->want);
	if (path_select(msg->cpt, &plan->want, &plan->path))
		return RESEND_NOT;
	n = tries_over(msg, tried, &plan->path);
	if (!n && tried->n < PATHS_TRIED_MAX)
		return RESEND_ELSEWHERE;
	if (n == MIN(tried->n, PATHS_TRIED_MAX)) /* there is no other path */
		return RESEND_NOT;
	return repeats(msg) < retry_count(msg) ? RESEND_REPEAT : RESEND_NOT;
}

static uint64_t pause_before(const struct lnet_msg *msg, enum resend_how how)
{
	if (how != RESEND_REPEAT)
		return 0;
	return MIN(PAUSE_MIN << MIN(repeats(msg), 16), PAUSE_MAX);
}

static bool is_wanted(const struct lnet_msg *msg)
{
	return !(msg->flags & MSG_ONCE) && !atomic_load(&msg->forsaken) &&
	       !msg->cpt->closing;
}

/* How @msg goes on if its try fails now. False: it does not. */
static bool resend_plan(const struct lnet_msg *msg, struct resend_plan *plan)
{
	uint64_t now = loop_now(msg->cpt->loop);

	if (!is_wanted(msg))
		return false;
	plan->tried.n = 0;
	if (msg->again)
		plan->tried = msg->again->tried;
	tried_add(&plan->tried, &msg->ni->lnd.nid, &msg->lpni->nid);
	plan->how = resend_how(msg, plan);
	plan->at = now + pause_before(msg, plan->how);
	return plan->how != RESEND_NOT && plan->at < msg->deadline;
}

bool resend_could(const struct lnet_msg *msg)
{
	struct resend_plan plan;

	return resend_plan(msg, &plan);
}

/* ---- the pause ---- */

/* By malloc(), since the message may end on another CPT. False: no memory. */
static bool resend_note(struct lnet_msg *msg, const struct resend_plan *plan)
{
	if (!msg->again)
		msg->again = calloc(1, sizeof(*msg->again));
	if (!msg->again)
		return false;
	msg->again->tried = plan->tried;
	msg->again->repeats += plan->how == RESEND_REPEAT;
	msg->tries = plan->tried.n;
	return true;
}

static int32_t path_health(const struct lnet_msg *msg)
{
	return ni_health(msg->ni) + msg->lpni->health;
}

/* Only on the CPT that owns the target, and if no other one owns the gateway,
 * the path is there to be taken; else it is chosen after the pause. */
static bool resend_takes_path(struct lnet_msg *msg, struct resend_plan *plan)
{
	struct lnet_cpt *cpt = msg->cpt;

	return plan->path.ni && msg_sender(cpt, &msg->target) == cpt &&
	       !path_take(cpt, &plan->want, &plan->path);
}

static bool resend_after(struct lnet_msg *msg, int status,
			 enum ulnet_cause cause)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct resend_plan plan;
	bool taken;

	if (!lnd_rule(status, cause).not_delivered)
		return false;
	if (!resend_plan(msg, &plan) || !resend_note(msg, &plan))
		return false;
	stat_inc(&msg->ni->cpt[cpt->index].traffic.resent);
	stat_inc(&msg->lpni->traffic.resent);
	cpt_stat(cpt, STAT_resend_count);
	taken = resend_takes_path(msg, &plan);
	msg_withdraw(msg, MSG_PAUSED);
	if (taken) {
		msg_use_path(msg, &plan.path);
		msg->again->topology = cpt->topology;
		msg->again->health = path_health(msg);
	}
	list_add_tail(&msg_cpt(cpt)->paused, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, plan.at);
	return true;
}

/* A path that has become worse since it was chosen is not taken: several paths
 * may have failed in one turn. */
static bool resend_has_path(const struct lnet_msg *msg)
{
	return msg->lpni && ni_is_up(msg->ni) &&
	       msg->again->topology == msg->cpt->topology &&
	       msg->again->health <= path_health(msg);
}

static void resend_due(struct lnet_msg *msg)
{
	if (loop_now(msg->cpt->loop) >= msg->deadline) {
		msg_finalize(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
		return;
	}
	list_del(&msg->link);
	msg_move(msg, MSG_NEW);
	if (resend_has_path(msg)) {
		msg_go(msg);
		return;
	}
	if (msg->lpni)
		msg_forget_path(msg);
	msg_address(msg, &msg->target, msg->deadline);
	msg_launch(msg);
}

void resend_leave(struct lnet_cpt *cpt, const struct lnet_ni *ni,
		  const struct lnet_peer_ni *lpni)
{
	struct lnet_msg *msg;

	list_for_each_entry (msg, &msg_cpt(cpt)->paused, link)
		if (msg->lpni && (msg->ni == ni || msg->lpni == lpni))
			msg_forget_path(msg);
}

/* ---- the end of a try ---- */

/* Of LNET_CAUSE_LOCAL_TIMEOUT: who has not served the message in time. A queue
 * in an LND is that of a connection: it is the peer that does not read. */
static const enum lnd_blame late_blame[MSG_STATES] = {
	[MSG_PEER_QUEUE] = LND_BLAME_PEER,
	[MSG_NI_QUEUE] = LND_BLAME_LOCAL,
	[MSG_CONNECTING] = LND_BLAME_PEER,
	[MSG_LND] = LND_BLAME_PEER,
};

static enum lnd_blame blame(const struct lnet_msg *msg, int status,
			    enum ulnet_cause cause)
{
	enum lnd_blame b = lnd_rule(status, cause).blame;

	if (cause == LNET_CAUSE_LOCAL_TIMEOUT && b != LND_BLAME_NOBODY)
		return late_blame[msg->fsm.state];
	return b;
}

/* Was this try's transmission begun? */
static bool has_left(const struct lnet_msg *msg)
{
	return msg->tries > (msg->again ? msg->again->tried.n : 0);
}

static void count_peer_ni(struct lnet_peer_ni *lpni, enum ulnet_cause cause)
{
	switch (cause) {
	case LNET_CAUSE_REMOTE_DROPPED:
		stat_inc(&lpni->failed.dropped);
		break;
	case LNET_CAUSE_REMOTE_ERROR:
		stat_inc(&lpni->failed.error);
		break;
	case LNET_CAUSE_REMOTE_TIMEOUT:
		stat_inc(&lpni->failed.timeout);
		break;
	case LNET_CAUSE_NETWORK_TIMEOUT:
		stat_inc(&lpni->failed.network_timeout);
		break;
	default:
		break;
	}
}

/* Of a message that was given up an LND knows only how far it had come, which
 * would be counted as if the network had been late. */
static enum ulnet_cause counted_as(const struct lnet_msg *msg, int status,
				   enum ulnet_cause cause)
{
	if (likely(!atomic_load(&msg->forsaken)) ||
	    status != msg->op->cancel_status)
		return cause;
	return msg->op->cancel_cause;
}

static void count(struct lnet_msg *msg, enum ulnet_cause cause)
{
	enum lnet_stat s = stat_of_cause(cause);

	if (s != STAT_COUNT)
		cpt_stat(msg->cpt, s);
	if (msg->ni)
		stat_inc(&msg->ni->cpt[msg->cpt->index].failed[cause]);
	if (msg->lpni)
		count_peer_ni(msg->lpni, cause);
}

static void lower_health(struct lnet_msg *msg, enum lnd_blame blame)
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

/* The first part of the end of a message that was to be sent, and could not be:
 * @msg is still as it was. In this order:
 *	1. it is counted, and noted whether the peer may have got the message;
 *	2. whose fault it may be loses health: see lnd/cause.h; a message that
 *	   was too late was so for want of what it waited for;
 *	3. what was not delivered is sent again, if it may and can be.
 * True: there will be another try; the message waits for that (MSG_PAUSED),
 * with the path of that, but without anything else that it had. */
static bool try_failed(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	if (msg->fsm.state == MSG_PAUSED && msg->lpni)
		msg_forget_path(msg); /* which was not tried yet */
	count(msg, counted_as(msg, status, cause));
	if (has_left(msg) && !lnd_rule(status, cause).not_delivered)
		msg->flags |= MSG_DOUBTED;
	if (!msg->lpni)
		return false;
	if (!(msg->flags & MSG_PROBE))
		lower_health(msg, blame(msg, status, cause));
	return resend_after(msg, status, cause);
}

uint64_t resend_deadline(const struct lnet_msg *msg)
{
	uint64_t now = loop_now(msg->cpt->loop);
	uint64_t left = msg->deadline > now ? msg->deadline - now : 0;
	uint32_t retries = retry_count(msg);
	uint64_t tries = UINT64_C(1) + retries - MIN(repeats(msg), retries);

	if (msg->flags & MSG_ONCE)
		return msg->deadline;
	return now + MIN(left, MAX(left / tries, TRY_MIN));
}

void resend_end(struct lnet_msg *msg)
{
	cpt_stat(msg->home,
		 msg->status ? STAT_failed_resends : STAT_successful_resends);
	free(msg->again);
	msg->again = NULL;
}

void resend_discard(struct lnet_cpt *cpt)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, &msg_cpt(cpt)->paused, link)
		msg_finalize_post(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}

/* ---- the end ---- */

static out_of_line void msg_time_sent(struct lnet_msg *msg)
{
	uint64_t took;

	if (msg->role != MSG_OP)
		return;
	took = loop_now(msg->cpt->loop) - msg->op->began;
	times_add(&msg->ni->cpt[msg->cpt->index].traffic.sending, took);
	times_add(&msg->lpni->traffic.sending, took);
}

static void msg_count_sent(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	uint32_t length = msg->hdr.payload_length;
	uint32_t type = msg->hdr.type;

	if (likely(msg->role != MSG_FORWARD_OUT)) {
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
		msg_time_sent(msg);
	traffic_add(&msg->lpni->traffic.send, type, length);
}

/* The CPT that deals with the end of @msg. */
static struct lnet_cpt *msg_done_cpt(const struct lnet_msg *msg)
{
	if (msg->op)
		return msg->op->cpt;
	if (msg->md)
		return msg->md->cpt;
	return msg->home;
}

/* All but telling those whose message it was. */
static void msg_finish(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	struct lnet_cpt *cpt = msg->cpt;
	bool received = msg->fsm.state == MSG_RECV;

	msg->status = status;
	msg->cause = cause;
	if (msg_cpt(cpt)->receiving == msg)
		msg_cpt(cpt)->receiving = NULL;
	if (timer_armed(&msg->timer))
		loop_timer_cancel(cpt->loop, &msg->timer);
	if (!received) {
		if (likely(status == 0))
			msg_count_sent(msg);
		msg_release(msg);
	}
	if (unlikely(msg->copy))
		copy_end(msg, status == 0);
	msg_move(msg, MSG_DONE);
	if (msg->lpni)
		peer_unref(cpt, msg->lpni);
	if (msg->ni)
		ni_unref(msg->ni, cpt->index);
	msg->lpni = NULL;
	msg->ni = NULL;
}

/* It has failed, and goes on: it will be sent again. */
static out_of_line bool msg_goes_on(struct lnet_msg *msg, int status,
				    enum ulnet_cause cause)
{
	return msg->fsm.state != MSG_RECV && try_failed(msg, status, cause);
}

void msg_finalize(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	if (unlikely(status) && msg_goes_on(msg, status, cause))
		return;
	msg_finish(msg, status, cause);
	msg_pass(msg, msg_done_cpt(msg), msg->done);
}

void msg_finalize_post(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	if (status && msg_goes_on(msg, status, cause))
		return;
	msg_finish(msg, status, cause);
	msg_post(msg, msg_done_cpt(msg), msg->done);
}

void upcall_finalize(struct lnd_msg *lnd, int status, enum ulnet_cause cause)
{
	struct lnet_msg *msg = msg_of(lnd);

	BUG_ON((msg->fsm.state != MSG_LND && msg->fsm.state != MSG_RECV &&
		msg->fsm.state != MSG_ANSWERING) ||
	       (status == 0) != (cause == LNET_CAUSE_OK));
	msg_finalize(msg, status, cause);
}

void msg_cancel(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	const struct lnd *lnd;

	switch ((enum msg_state)msg->fsm.state) {
	case MSG_PEER_QUEUE:
	case MSG_NI_QUEUE:
	case MSG_DELAYED:
	case MSG_DISCOVERING:
	case MSG_CONNECTING:
	case MSG_PAUSED:
		msg_finalize(msg, status, cause);
		break;
	case MSG_LND:
	case MSG_RECV:
	case MSG_ANSWERING:
		lnd = msg->ni->lnd.lnd;
		lnd->cancel(&msg->ni->lnd, &msg->lnd, status);
		break;
	case MSG_HELD:
		msg_stages(msg)->cancel_held(msg);
		break;
	default:
		/* About to end (msg_fail_later), or ended, or not begun. */
		break;
	}
}

static void msg_fail_work(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);

	msg_finalize(msg, msg->status, msg->cause);
}

void msg_fail_later(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	msg->status = status;
	msg->cause = cause;
	msg->work.fn = msg_fail_work;
	loop_defer(msg->cpt->loop, &msg->work);
}

/* Is it to be sent, and has a path? */
static bool msg_is_out(const struct lnet_msg *msg)
{
	switch ((enum msg_state)msg->fsm.state) {
	case MSG_PEER_QUEUE:
	case MSG_NI_QUEUE:
	case MSG_LND:
	case MSG_CONNECTING:
		return msg->lpni != NULL;
	default:
		return false;
	}
}

/* Has something of it left, so that it had better not be given up? */
static bool msg_has_begun(const struct lnet_msg *msg)
{
	const struct lnd *lnd;

	if (msg->fsm.state != MSG_LND)
		return false;
	lnd = msg->ni->lnd.lnd;
	return !lnd->has_begun || lnd->has_begun(&msg->ni->lnd, &msg->lnd);
}

/* The deadline of its try has passed. True: it may take the time of all. */
static bool msg_takes_more_time(struct lnet_msg *msg)
{
	struct loop *loop = msg->cpt->loop;

	if (likely(loop_now(loop) >= msg->deadline))
		return false;
	if (!msg_has_begun(msg) && resend_could(msg))
		return false;
	msg->lnd.deadline = msg->deadline;
	loop_timer_arm(loop, &msg->timer, msg->deadline);
	return true;
}

/* What it was waiting for has not come in time, or what it waits for is due. */
void msg_late(struct timer *t)
{
	struct lnet_msg *msg = container_of(t, struct lnet_msg, timer);
	const struct msg_stages *stages = msg_stages(msg);

	/* An answer that another CPT is looking at (parse.c), and has not
	 * returned yet: nothing but the LND's part of it is ours. */
	if (unlikely(msg->role == MSG_REPLY_IN && msg->fsm.state == MSG_NEW)) {
		(void)msg_put_aside(msg); /* without memory it stands */
		return;
	}
	if (unlikely(stages->late[msg->fsm.state])) {
		stages->late[msg->fsm.state](msg);
		return;
	}
	if (unlikely(msg->fsm.state == MSG_DISCOVERING)) {
		await_late(msg);
		return;
	}
	if (unlikely(msg->fsm.state == MSG_PAUSED)) {
		resend_due(msg);
		return;
	}
	if (msg_is_out(msg) && loop_now(msg->cpt->loop) < msg->lnd.deadline) {
		leave_soon(msg);
		return;
	}
	if (msg_is_out(msg) && msg_takes_more_time(msg))
		return;
	msg_cancel(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
}
