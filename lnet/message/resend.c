/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/resend.h"

#include <errno.h>
#include <stdlib.h>

#include "lnd/lnd.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/op.h"
#include "lnet/net/net.h"
#include "lnet/path/health.h"
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

/* How @msg, whose path is one of @tried now, goes on. */
static enum resend_how resend_how(const struct lnet_msg *msg,
				  const struct paths_tried *tried)
{
	struct path_want want;
	struct path path;
	unsigned int n;

	msg_path_want(msg, tried, &want);
	if (path_select(msg->cpt, &want, &path))
		return RESEND_NOT;
	n = tries_over(msg, tried, &path);
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

/* How @msg goes on if its try fails now; @tried: the paths tried then. */
static enum resend_how resend_plan(const struct lnet_msg *msg,
				   struct paths_tried *tried)
{
	uint64_t now = loop_now(msg->cpt->loop);
	enum resend_how how;

	if (!is_wanted(msg))
		return RESEND_NOT;
	tried->n = 0;
	if (msg->again)
		*tried = msg->again->tried;
	tried_add(tried, &msg->ni->lnd.nid, &msg->lpni->nid);
	how = resend_how(msg, tried);
	return now + pause_before(msg, how) < msg->deadline ? how : RESEND_NOT;
}

bool resend_could(const struct lnet_msg *msg)
{
	struct paths_tried tried;

	return resend_plan(msg, &tried) != RESEND_NOT;
}

/* ---- the pause ---- */

/* By malloc(), since the message may end on another CPT. False: no memory, or
 * peers_max are in use. */
static bool resend_note(struct lnet_msg *msg, const struct paths_tried *tried)
{
	if (!msg->again)
		msg->again = calloc(1, sizeof(*msg->again));
	if (!msg->again)
		return false;
	msg->again->target = peer_get(msg->cpt, &msg->target);
	if (!msg->again->target)
		return false;
	msg->again->tried = *tried;
	msg->tries = tried->n;
	return true;
}

static void resend_pause(struct lnet_msg *msg, uint64_t ns)
{
	struct lnet_cpt *cpt = msg->cpt;

	cpt_stat(cpt, STAT_resend_count);
	if (timer_armed(&msg->timer))
		loop_timer_cancel(cpt->loop, &msg->timer);
	msg_withdraw(msg, MSG_PAUSED);
	list_add_tail(&msg_cpt(cpt)->paused, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, loop_now(cpt->loop) + ns);
}

static bool resend_after(struct lnet_msg *msg, int status,
			 enum ulnet_cause cause)
{
	struct paths_tried tried;
	enum resend_how how;
	uint64_t pause;

	if (!lnd_rule(status, cause).not_delivered)
		return false;
	how = resend_plan(msg, &tried);
	if (how == RESEND_NOT || !resend_note(msg, &tried))
		return false;
	stat_inc(&msg->ni->cpt[msg->cpt->index].traffic.resent);
	stat_inc(&msg->lpni->traffic.resent);
	pause = pause_before(msg, how);
	msg->again->repeats += how == RESEND_REPEAT;
	resend_pause(msg, pause);
	return true;
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

bool resend_failed(struct lnet_msg *msg, int status, enum ulnet_cause cause)
{
	bool has_path = msg->ni && msg->lpni;

	count(msg, counted_as(msg, status, cause));
	if (has_left(msg) && !lnd_rule(status, cause).not_delivered)
		msg->flags |= MSG_DOUBTED;
	if (!has_path)
		return false;
	if (!(msg->flags & MSG_PROBE))
		lower_health(msg, blame(msg, status, cause));
	return resend_after(msg, status, cause);
}

void resend_unpause(struct lnet_msg *msg)
{
	list_del(&msg->link);
	peer_unref(msg->cpt, msg->again->target);
	msg->again->target = NULL;
}

void resend_due(struct lnet_msg *msg)
{
	if (loop_now(msg->cpt->loop) >= msg->deadline) {
		msg_finalize(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
		return;
	}
	resend_unpause(msg);
	fsm_move(&msg->fsm, msg_states, MSG_NEW);
	msg_address(msg, &msg->target, msg->deadline);
	msg_launch(msg);
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
	cpt_stat(msg->home, msg->status ? STAT_failed_resends
					: STAT_successful_resends);
	free(msg->again);
	msg->again = NULL;
}

void resend_discard(struct lnet_cpt *cpt)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, &msg_cpt(cpt)->paused, link)
		msg_finalize_post(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
}
