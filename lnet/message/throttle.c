/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/throttle.h"

#include "base/share.h"
#include "lnet/message/unexpected.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"

#define THROTTLE_LOG_PAUSE (60 * NSEC_PER_SEC)

static uint32_t throttled_max(const struct lnet *node)
{
	return node->conf.messages_max - node->conf.messages_max / 16;
}

bool throttle_has_room(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	struct msg_cpt *mc = msg_cpt(cpt);
	const struct lnet_quota *has = in_quota(msg);
	/* The rest of the messages is reserved for answers to operations of
	 * this node. */
	uint32_t max =
		cpt->node->conf.messages_max - cpt->node->conf.messages_max / 8;
	/* Throttled messages are not counted, since they would wait for each
	 * other. Neither is @msg itself. */
	uint32_t itself = msg->fsm.state != IN_THROTTLED;
	uint32_t used = mc->msg_pool.used - mc->has_all.throttled - itself;

	if (!msg->sender)
		return used < max;
	if (unlikely(has->full))
		return false;
	return share_allows(has->msgs - has->throttled - itself, used, max, 1);
}

bool throttle_admits(const struct msg_in *msg)
{
	if (unlikely(msg->sender && msg->sender->has.throttled))
		return false;
	return throttle_has_room(msg);
}

static void throttle_count(struct msg_in *msg, int n)
{
	msg->sender->has.throttled += (uint32_t)n;
	msg_cpt(msg->out.home)->has_all.throttled += (uint32_t)n;
	if (!msg->bounced)
		msg->sender->has.throttled_unread += (uint32_t)n;
}

/* Logs that the sender of @msg has used up its share, unless that was logged a
 * short time ago. */
static void throttle_log(const struct msg_in *msg, uint64_t *quiet_until,
			 const char *what)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct msg_cpt *mc = msg_cpt(cpt);
	struct lnet_quota *has = in_quota(msg);
	uint64_t now = loop_now(cpt->loop);
	char nid[LNET_NIDSTR_SIZE];

	if (now < *quiet_until)
		return;
	*quiet_until = now + THROTTLE_LOG_PAUSE;
	if (!msg->sender) {
		log_warn_limited(&cpt->limits_log, now, "limits",
				 "what this node sends to itself is dropped: "
				 "%u of %u messages are in use",
				 mc->msg_pool.used,
				 cpt->node->conf.messages_max);
		return;
	}
	if (has->full) {
		log_warn_limited(&cpt->limits_log, now, "limits",
				 "%s %s: the layer above LNet has more of its "
				 "messages than it handles in time",
				 lnet_nid_format(&msg->from, nid, sizeof(nid)),
				 what);
		return;
	}
	log_warn_limited(&cpt->limits_log, now, "limits",
			 "%s %s: %u of the %u messages in use came from it, "
			 "and at most %u can be in use; does it read the "
			 "answers of this node?",
			 lnet_nid_format(&msg->from, nid, sizeof(nid)), what,
			 has->msgs, mc->msg_pool.used,
			 cpt->node->conf.messages_max);
}

static void throttle_drop(struct msg_in *msg)
{
	throttle_log(msg, &in_quota(msg)->drops_quiet_until,
		     "is not listened to");
	in_drop(msg, STAT_drop_no_memory);
}

/* ---- answers that may be queued behind requests ---- */

/* May the sender owe this node an answer? */
static bool throttle_blocks_answers(const struct msg_in *msg)
{
	return msg->sender->peer->asked_until > loop_now(msg->out.home->loop);
}

/* Has no throttled request of the sender proceeded for @ns? */
static bool throttle_stuck_for(const struct msg_in *msg, uint64_t ns)
{
	const struct lnet_quota *has = &msg->sender->has;

	return has->throttled &&
	       has->stuck_since + ns <= loop_now(msg->out.home->loop);
}

bool throttle_is_stuck(const struct msg_in *msg, uint64_t since)
{
	const uint64_t most = 2 * THROTTLE_STUCK + NSEC_PER_MSEC;
	uint64_t now = loop_now(msg->out.home->loop);

	return !msg->bounced && throttle_blocks_answers(msg) &&
	       throttle_stuck_for(msg, most) && since <= now &&
	       now - since >= most;
}

/* Copies the payload of @msg, so that its connection is read on. Returns false
 * if the sender's share is used up. */
static bool throttle_bounce(struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;

	return share_allows(msg->sender->has.throttled,
			    msg_cpt(cpt)->has_all.throttled,
			    cpt->node->conf.messages_max / 16, 1) &&
	       unexpected_bounce(msg);
}

static void throttle_unlink(struct msg_in *msg)
{
	list_del(&msg->out.link);
	throttle_count(msg, -1);
	unexpected_unbounce(msg);
}

/* May @msg stop the reading of its connection? The first message of a sender
 * may; further ones may as long as the sender's share of all messages is not
 * used up. Without this bound, a sender could use up messages by opening and
 * closing connections: when a connection ends, its message remains here. */
static bool throttle_may_stay_unread(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	const struct lnet_quota *has = &msg->sender->has;

	return !has->throttled_unread ||
	       share_allows(has->msgs - 1, msg_cpt(cpt)->msg_pool.used - 1,
			    throttled_max(cpt->node), 1);
}

/* The function of msg_cpt.throttle_timer: copies or drops unread messages that
 * block answers. */
static void throttle_look(struct timer *t)
{
	struct msg_cpt *mc = container_of(t, struct msg_cpt, throttle_timer);
	struct lnet_cpt *cpt = &mc->path.peer.portal.cpt;
	struct msg_in *msg, *next;

	list_for_each_entry_safe (msg, next, &mc->throttled, out.link) {
		if (msg->bounced || !throttle_blocks_answers(msg))
			continue;
		if (throttle_bounce(msg)) {
			msg->sender->has.throttled_unread--;
		} else if (throttle_stuck_for(msg, THROTTLE_STUCK)) {
			throttle_unlink(msg);
			throttle_drop(msg);
		}
	}
	if (!list_empty(&mc->throttled))
		loop_timer_arm(cpt->loop, t,
			       loop_now(cpt->loop) + THROTTLE_STUCK);
}

/* ---- waiting, and proceeding ---- */

void throttle_request(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct msg_cpt *mc = msg_cpt(cpt);
	struct lnet_quota *has;
	bool blocks;

	if (!msg->sender || mc->msg_pool.used > throttled_max(cpt->node)) {
		throttle_drop(msg);
		return;
	}
	has = &msg->sender->has;
	msg->bounced = false;
	blocks = throttle_blocks_answers(msg) && !throttle_bounce(msg);
	if (!msg->bounced &&
	    (!throttle_may_stay_unread(msg) ||
	     (blocks && throttle_stuck_for(msg, THROTTLE_STUCK)))) {
		throttle_drop(msg);
		return;
	}
	throttle_log(msg, &has->msgs_quiet_until, "waits");
	in_move(msg, IN_THROTTLED);
	cpt_stat(cpt, STAT_parked);
	if (!has->throttled)
		has->stuck_since = loop_now(cpt->loop);
	throttle_count(msg, 1);
	list_add_tail(&mc->throttled, &msg->out.link);
	if (!timer_armed(&mc->throttle_timer))
		loop_timer_arm(cpt->loop, &mc->throttle_timer,
			       loop_now(cpt->loop) + THROTTLE_STUCK);
}

/* Returns the first throttled message for which there is room, or NULL. */
static struct msg_in *throttle_next(struct lnet_cpt *cpt)
{
	struct msg_in *msg;

	list_for_each_entry (msg, &msg_cpt(cpt)->throttled, out.link)
		if (throttle_has_room(msg))
			return msg;
	return NULL;
}

/* Considers each throttled message once, and handles those for which there is
 * room. If messages that end meanwhile make room for further ones, this
 * function is run again. No message overtakes another one of the same sender.
 */
static void throttle_wake(struct work *w)
{
	struct msg_cpt *mc = container_of(w, struct msg_cpt, unthrottle);
	struct lnet_cpt *cpt = &mc->path.peer.portal.cpt;
	uint64_t round = ++mc->unthrottle_round;
	struct lnet_quota *has;
	struct list throttled;
	struct msg_in *msg;

	list_init(&throttled);
	list_splice_tail(&throttled, &mc->throttled);
	while (!list_empty(&throttled)) {
		msg = list_first(&throttled, struct msg_in, out.link);
		has = &msg->sender->has;
		if (has->passed_over == round || !throttle_has_room(msg)) {
			has->passed_over = round;
			list_del(&msg->out.link);
			list_add_tail(&mc->throttled, &msg->out.link);
			continue;
		}
		throttle_unlink(msg);
		has->stuck_since = loop_now(cpt->loop);
		in_move(msg, IN_NEW);
		unexpected_or_deliver(msg);
	}
	mc->unthrottling = false;
	if (throttle_next(cpt))
		throttle_wake_later(cpt);
}

void throttle_peer(struct lnet_cpt *cpt, const struct ulnet_nid *nid, bool full)
{
	struct lnet_peer_ni *lpni = peer_find(cpt, nid);

	if (!lpni)
		return;
	lpni->has.full = full;
	if (!full)
		throttle_wake_later(cpt);
}

void throttle_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	struct msg_cpt *mc = msg_cpt(cpt);
	struct msg_in *msg, *next;

	list_for_each_entry_safe (msg, next, &mc->throttled, out.link) {
		if (ni && msg->out.ni != ni)
			continue;
		throttle_unlink(msg);
		in_drop(msg, STAT_drop_closing);
	}
	if (list_empty(&mc->throttled))
		loop_timer_cancel(cpt->loop, &mc->throttle_timer);
}

void throttle_init(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	list_init(&mc->throttled);
	mc->unthrottle.fn = throttle_wake;
	timer_init(&mc->throttle_timer, throttle_look);
}
