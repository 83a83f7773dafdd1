/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/await.h"

#include <errno.h>

#include "lnet/core/setting.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"

bool msg_awaits(struct lnet_msg *msg)
{
	const struct msg_discovery *d = msg_cpt(msg->cpt)->discovery;

	/* Answers go where the question came from, and what LNet itself sends
	 * is what the others wait for. */
	return d && msg->role == MSG_OP && msg->hdr.portal != PING_PORTAL &&
	       !(msg->flags & MSG_AWAITED) && d->waits(msg);
}

void msg_await(struct lnet_msg *msg, struct list *waiting)
{
	struct lnet_cpt *cpt = msg->cpt;
	uint64_t now = loop_now(cpt->loop);
	uint64_t left = msg->deadline - MIN(now, msg->deadline);
	uint32_t tries = MAX(settings_retry_count(&cpt->node->settings) + 1, 2);

	fsm_move(&msg->fsm, msg_states, MSG_DISCOVERING);
	msg->flags |= MSG_AWAITED;
	list_add_tail(waiting, &msg->link);
	loop_timer_arm(cpt->loop, &msg->timer, now + left / tries);
	cpt_stat(cpt, STAT_discovery_waits);
}

static void await_leave(struct lnet_msg *msg)
{
	list_del(&msg->link);
	if (timer_armed(&msg->timer))
		loop_timer_cancel(msg->cpt->loop, &msg->timer);
	fsm_move(&msg->fsm, msg_states, MSG_NEW);
	msg_launch(msg);
}

void await_late(struct lnet_msg *msg)
{
	cpt_stat(msg->cpt, STAT_discovery_late);
	await_leave(msg);
}

void await_over(struct list *waiting)
{
	while (!list_empty(waiting))
		await_leave(list_first(waiting, struct lnet_msg, link));
}
