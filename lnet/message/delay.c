/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/delay.h"

#include <errno.h>

#include "lnet/message/credit.h"
#include "lnet/message/end.h"
#include "lnet/message/hold.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/park.h"
#include "lnet/message/request.h"
#include "lnet/net/net.h"

static void delay_move(struct lnet_msg *msg, enum msg_state to)
{
	fsm_move(&msg->fsm, msg_states, to);
}

/* ---- what has come in ---- */

/* A message of a sender that was not met (parse.c) becomes one of its
 * messages, so that it counts against the sender's shares; and none again. */
static bool delay_take_share(struct lnet_msg *msg)
{
	struct lnet_peer_ni *lpni = peer_get(msg->home, &msg->from);

	if (!lpni)
		return false;
	msg->sender = lpni;
	lpni->has.msgs++;
	msg->aside = false;
	return hold_aside(msg);
}

static void delay_give_share(struct lnet_msg *msg)
{
	if (!msg->sender)
		return;
	hold_not_aside(msg);
	msg->sender->has.msgs--;
	peer_unref(msg->home, msg->sender);
	msg->sender = NULL;
}

bool delay_arrival(struct lnet_msg *msg, uint64_t ns)
{
	struct lnet_cpt *cpt = msg->home;

	if (!delay_take_share(msg)) {
		delay_give_share(msg);
		return false;
	}
	delay_move(msg, MSG_DELAYED);
	list_add_tail(&msg_cpt(cpt)->delayed_in, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, loop_now(cpt->loop) + ns);
	return true;
}

/* Its sender has been met, and has it among its messages. */
bool delay_answer(struct lnet_msg *msg, uint64_t ns)
{
	struct lnet_cpt *cpt = msg->home;
	uint64_t until = loop_now(cpt->loop) + ns;

	msg->aside = false;
	if (!hold_aside(msg))
		return false;
	delay_move(msg, MSG_DELAYED);
	list_add_tail(&msg_cpt(cpt)->delayed_in, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, MIN(until, msg->lnd.deadline));
	return true;
}

static void delay_answered(struct lnet_msg *msg)
{
	list_del(&msg->link);
	hold_not_aside(msg);
	delay_move(msg, MSG_NEW);
	if (loop_now(msg->home->loop) >= msg->lnd.deadline)
		request_forget_reply(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
	else
		request_give_reply(msg);
}

static void delay_arrived(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->home;

	list_del(&msg->link);
	delay_give_share(msg);
	delay_move(msg, MSG_NEW);
	msg_arrived(msg);
	/* If it is parked now, it has been in the way of others until now. */
	park_wake_later(cpt);
}

void delay_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	struct lnet_msg *msg, *next;

	list_for_each_entry_safe (msg, next, &msg_cpt(cpt)->delayed_in, link) {
		if (ni && msg->ni != ni)
			continue;
		list_del(&msg->link);
		loop_timer_cancel(cpt->loop, &msg->timer);
		hold_not_aside(msg);
		if (!msg->md) {
			drop_msg(msg, STAT_drop_closing);
			continue;
		}
		delay_move(msg, MSG_NEW);
		request_forget_reply(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
	}
}

/* ---- what is to go out ---- */

void delay_sending(struct lnet_msg *msg, uint64_t ns)
{
	struct lnet_cpt *cpt = msg->cpt;
	uint64_t until = loop_now(cpt->loop) + ns;

	delay_move(msg, MSG_DELAYED);
	list_add_tail(&msg_cpt(cpt)->delayed_out, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, MIN(until, msg->lnd.deadline));
}

static void delay_go_on(struct lnet_msg *msg)
{
	struct loop *loop = msg->cpt->loop;

	if (loop_now(loop) >= msg->lnd.deadline) {
		msg_cancel(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
		return;
	}
	/* Another path may have come since the NI of this one went down, when
	 * there was none (leave.h). */
	if (!ni_is_up(msg->ni) && msg->role != MSG_AGAIN_OUT &&
	    msg_has_path(msg)) {
		msg_withdraw(msg, MSG_NEW);
		msg_send_anew(msg);
		return;
	}
	list_del(&msg->link);
	loop_timer_arm(loop, &msg->timer, msg->lnd.deadline);
	credit_take(msg);
}

void delay_over(struct lnet_msg *msg)
{
	if (msg->lpni)
		delay_go_on(msg);
	else if (msg->md)
		delay_answered(msg);
	else
		delay_arrived(msg);
}
