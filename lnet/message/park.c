/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/park.h"

#include "base/share.h"
#include "lnet/message/hold.h"
#include "lnet/message/msgs.h"
#include "lnet/message/request.h"
#include "lnet/net/net.h"

#define PARK_LOG_PAUSE (60 * NSEC_PER_SEC)

/* Requests may take so many of the messages; the rest is for answers to our own
 * operations, which end what we wait for. */
static uint32_t requests_max(const struct lnet *node)
{
	return node->conf.messages_max - node->conf.messages_max / 8;
}

static uint32_t parked_max(const struct lnet *node)
{
	return node->conf.messages_max - node->conf.messages_max / 16;
}

bool park_has_room(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	struct msg_cpt *mc = msg_cpt(cpt);
	const struct lnet_holdings *has = in_quota(msg);
	uint32_t max = requests_max(cpt->node);
	/* Messages that are parked do not count, or they would wait for each
	 * other; nor does @msg itself, yet. */
	uint32_t itself = msg->fsm.state != IN_PARKED;
	uint32_t used = mc->msg_pool.used - mc->has_all.parked - itself;

	if (!msg->sender)
		return used < max;
	return share_allows(has->msgs - has->parked - itself, used, max, 1);
}

bool park_admits(const struct msg_in *msg)
{
	if (unlikely(msg->sender && msg->sender->has.parked))
		return false;
	return park_has_room(msg);
}

static void park_count(struct msg_in *msg, int n)
{
	msg->sender->has.parked += (uint32_t)n;
	msg_cpt(msg->out.home)->has_all.parked += (uint32_t)n;
	if (!msg->aside)
		msg->sender->has.stopped += (uint32_t)n;
}

/* Says once in a while who has reached its share. */
static void park_tell(const struct msg_in *msg, uint64_t *quiet_until,
		      const char *what)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct msg_cpt *mc = msg_cpt(cpt);
	struct lnet_holdings *has = in_quota(msg);
	uint64_t now = loop_now(cpt->loop);
	char nid[LNET_NIDSTR_SIZE];

	if (now < *quiet_until)
		return;
	*quiet_until = now + PARK_LOG_PAUSE;
	if (!msg->sender) {
		log_warn_limited(&cpt->limits_log, now, "limits",
				 "what this node sends to itself is dropped: "
				 "%u of %u messages are in use",
				 mc->msg_pool.used,
				 cpt->node->conf.messages_max);
		return;
	}
	log_warn_limited(&cpt->limits_log, now, "limits",
			 "%s %s: %u of the %u messages in use are its own, of "
			 "%u at most; does it read our answers?",
			 lnet_nid_format(&msg->from, nid, sizeof(nid)), what,
			 has->msgs, mc->msg_pool.used,
			 cpt->node->conf.messages_max);
}

static void park_drop(struct msg_in *msg)
{
	park_tell(msg, &in_quota(msg)->drops_quiet_until, "is not listened to");
	in_drop(msg, STAT_drop_no_memory);
}

/* ---- answers that may stand behind requests ---- */

static bool park_keeps_answers(const struct msg_in *msg)
{
	return msg->sender->peer->asked_until > loop_now(msg->out.home->loop);
}

/* Has none of the sender's requests gone on for so long? */
static bool park_stood(const struct msg_in *msg, uint64_t ns)
{
	const struct lnet_holdings *has = &msg->sender->has;

	return has->parked &&
	       has->still_since + ns <= loop_now(msg->out.home->loop);
}

static bool park_keeps_too_long(const struct msg_in *msg)
{
	return park_keeps_answers(msg) && park_stood(msg, PARK_STILL);
}

bool park_is_stuck(const struct msg_in *msg)
{
	return !msg->aside && park_keeps_answers(msg) &&
	       park_stood(msg, 2 * PARK_STILL + NSEC_PER_MSEC);
}

/* What comes behind @msg can be received, if its sender has a share left. */
static bool park_aside(struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;

	return share_allows(msg->sender->has.parked,
			    msg_cpt(cpt)->has_all.parked,
			    cpt->node->conf.messages_max / 16, 1) &&
	       hold_aside(msg);
}

static void park_unlink(struct msg_in *msg)
{
	list_del(&msg->out.link);
	park_count(msg, -1);
	hold_not_aside(msg);
}

/* May one more connection of the sender stand still? The first may. Others may
 * within the sender's share of all messages: a connection that ends leaves its
 * message here, so whoever opens many would have as many messages. */
static bool park_may_stop(const struct msg_in *msg)
{
	const struct lnet_cpt *cpt = msg->out.home;
	const struct lnet_holdings *has = &msg->sender->has;

	return !has->stopped ||
	       share_allows(has->msgs - 1, msg_cpt(cpt)->msg_pool.used - 1,
			    parked_max(cpt->node), 1);
}

/* A parked message keeps answers back: it is put aside, if there is a share. */
static bool park_aside_late(struct msg_in *msg)
{
	if (!park_aside(msg))
		return false;
	msg->sender->has.stopped--;
	return true;
}

/* Messages that keep answers back are put aside, or dropped. */
static void park_look(struct timer *t)
{
	struct msg_cpt *mc = container_of(t, struct msg_cpt, park_timer);
	struct lnet_cpt *cpt = &mc->path.peer.portal.cpt;
	struct msg_in *msg, *next;

	list_for_each_entry_safe (msg, next, &mc->parked, out.link) {
		if (msg->aside || !park_keeps_answers(msg) ||
		    park_aside_late(msg) || !park_stood(msg, PARK_STILL))
			continue;
		park_unlink(msg);
		park_drop(msg);
	}
	if (!list_empty(&mc->parked))
		loop_timer_arm(cpt->loop, t, loop_now(cpt->loop) + PARK_STILL);
}

/* ---- parking, and going on ---- */

void park_request(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	struct msg_cpt *mc = msg_cpt(cpt);
	struct lnet_holdings *has;
	bool aside;

	if (!msg->sender || mc->msg_pool.used > parked_max(cpt->node)) {
		park_drop(msg);
		return;
	}
	has = &msg->sender->has;
	msg->aside = false;
	aside = park_keeps_answers(msg) && park_aside(msg);
	if (!aside && (!park_may_stop(msg) || park_keeps_too_long(msg))) {
		park_drop(msg);
		return;
	}
	park_tell(msg, &has->msgs_quiet_until, "waits");
	in_move(msg, IN_PARKED);
	cpt_stat(cpt, STAT_parked);
	if (!has->parked)
		has->still_since = loop_now(cpt->loop);
	park_count(msg, 1);
	list_add_tail(&mc->parked, &msg->out.link);
	if (!timer_armed(&mc->park_timer))
		loop_timer_arm(cpt->loop, &mc->park_timer,
			       loop_now(cpt->loop) + PARK_STILL);
}

/* The first message that may go on, or NULL. */
static struct msg_in *park_next(struct lnet_cpt *cpt)
{
	struct msg_in *msg;

	list_for_each_entry (msg, &msg_cpt(cpt)->parked, out.link)
		if (park_has_room(msg))
			return msg;
	return NULL;
}

/* Each message is looked at once, however many there are. Messages that go on
 * make room for others, whose turn it is then. No message overtakes another one
 * of its sender. */
static void park_wake(struct work *w)
{
	struct msg_cpt *mc = container_of(w, struct msg_cpt, unpark);
	struct lnet_cpt *cpt = &mc->path.peer.portal.cpt;
	uint64_t round = ++mc->unpark_round;
	struct lnet_holdings *has;
	struct list parked;
	struct msg_in *msg;

	list_init(&parked);
	list_splice_tail(&parked, &mc->parked);
	while (!list_empty(&parked)) {
		msg = list_first(&parked, struct msg_in, out.link);
		has = &msg->sender->has;
		if (has->passed_over == round || !park_has_room(msg)) {
			has->passed_over = round;
			list_del(&msg->out.link);
			list_add_tail(&mc->parked, &msg->out.link);
			continue;
		}
		park_unlink(msg);
		has->still_since = loop_now(cpt->loop);
		in_move(msg, IN_NEW);
		hold_request(msg);
	}
	mc->unparking = false;
	if (park_next(cpt))
		park_wake_later(cpt);
}

void park_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	struct msg_cpt *mc = msg_cpt(cpt);
	struct msg_in *msg, *next;

	list_for_each_entry_safe (msg, next, &mc->parked, out.link) {
		if (ni && msg->out.ni != ni)
			continue;
		park_unlink(msg);
		in_drop(msg, STAT_drop_closing);
	}
	if (list_empty(&mc->parked))
		loop_timer_cancel(cpt->loop, &mc->park_timer);
}

void park_init(struct lnet_cpt *cpt)
{
	struct msg_cpt *mc = msg_cpt(cpt);

	list_init(&mc->parked);
	mc->unpark.fn = park_wake;
	timer_init(&mc->park_timer, park_look);
}
