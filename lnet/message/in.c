/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/in.h"

#include <errno.h>

#include "lnet/message/end.h"
#include "lnet/message/msgs.h"
#include "lnet/message/throttle.h"
#include "lnet/net/net.h"

const struct fsm_state in_states[IN_STATES] = {
	[IN_NEW] = { "new", FSM_TO(IN_DELAYED) | FSM_TO(IN_THROTTLED) |
				    FSM_TO(IN_BUFFERLESS) | FSM_TO(IN_OFFERED) |
				    FSM_TO(IN_RECV) | FSM_TO(IN_DONE) },
	[IN_DELAYED] = { "delayed", FSM_TO(IN_NEW) },
	[IN_THROTTLED] = { "waits for its sender's share", FSM_TO(IN_NEW) },
	[IN_BUFFERLESS] = { "waits for a router's buffer", FSM_TO(IN_NEW) },
	[IN_OFFERED] = { "asks for a buffer", FSM_TO(IN_UNEXPECTED) |
						      FSM_TO(IN_NEW) |
						      FSM_TO(IN_RECV) },
	[IN_UNEXPECTED] = { "unexpected",
			    FSM_TO(IN_OFFERED) | FSM_TO(IN_RECV) },
	[IN_RECV] = { "receiving", FSM_TO(IN_DONE) },
	[IN_DONE] = { "done", 0 },
};

/* Payloads of at least this size stay unread in their connection for a moment
 * before they are copied. */
#define BOUNCE_MIN   16384
#define BOUNCE_AFTER NSEC_PER_MSEC

/* ---- life ---- */

struct msg_in *in_new(struct lnet_cpt *cpt, timer_fn late)
{
	struct msg_cpt *mc = msg_cpt(cpt);
	struct msg_in *msg = pool_get(&mc->msg_pool);

	if (unlikely(!msg))
		return NULL;
	out_init(&msg->out, cpt, &mc->active_in, late);
	msg->fsm.state = IN_NEW;
	msg->sender = NULL;
	msg->md = NULL;
	msg->buf = NULL;
	return msg;
}

void in_free_work(struct work *w)
{
	struct msg_in *msg = in_of_work(w);
	struct lnet_cpt *cpt = msg->out.home;

	if (msg->sender) {
		msg->sender->has.msgs--;
		peer_unref(msg->sender);
	}
	out_fini(&msg->out);
	pool_put(&msg_cpt(cpt)->msg_pool, msg);
	throttle_wake_later(cpt);
}

void in_free(struct msg_in *msg)
{
	in_pass(msg, msg->out.home, in_free_work);
}

/* ---- its payload ---- */

void in_count(const struct msg_in *msg, uint32_t length)
{
	struct lnet_cpt *cpt = msg->out.cpt;

	cpt_stat(cpt, STAT_recv_count);
	stat_add(&cpt->stats[STAT_recv_length], length);
	traffic_add(&msg->out.ni->cpt[cpt->index].traffic.recv,
		    msg->out.hdr.type, length);
}

void in_recv(struct msg_in *msg, struct lnet_cpt *cpt, work_fn done)
{
	struct lnet_cpt *home = msg->out.cpt;
	struct msg_cpt *mc = msg_cpt(home);
	struct msg_in *outer = mc->receiving;
	struct lnd_msg *lnd = &msg->out.lnd;

	in_move(msg, IN_RECV);
	msg->out.done = done;
	msg->out.done_cpt = cpt;
	lnd->incoming = true;
	lnd->ni = &msg->out.ni->lnd;
	mc->receiving = msg;
	lnd->ni->lnd->recv(lnd->ni, msg->rx, lnd, msg->out.hdr.payload_length);
	/* Most messages have been received by now; they need no timer. */
	if (unlikely(mc->receiving == msg))
		loop_timer_arm(home->loop, &msg->out.timer, lnd->deadline);
	mc->receiving = outer;
}

void in_received(struct msg_in *msg, int status, enum ulnet_cause cause)
{
	struct lnet_cpt *cpt = msg->out.cpt;

	msg->out.status = status;
	msg->out.cause = cause;
	if (msg_cpt(cpt)->receiving == msg)
		msg_cpt(cpt)->receiving = NULL;
	if (timer_armed(&msg->out.timer))
		loop_timer_cancel(cpt->loop, &msg->out.timer);
	in_move(msg, IN_DONE);
	ni_unref(msg->out.ni, cpt->index);
	msg->out.ni = NULL;
	in_pass(msg, msg->out.done_cpt, msg->out.done);
}

void in_cancel(struct msg_in *msg, int status)
{
	struct lnd_msg *lnd = &msg->out.lnd;

	if (msg->fsm.state == IN_RECV)
		lnd->ni->lnd->cancel(lnd->ni, lnd, status);
}

bool in_stays_unread(struct msg_in *msg)
{
	struct loop *l = msg->out.home->loop;

	if (msg->out.hdr.payload_length < BOUNCE_MIN)
		return false;
	loop_timer_arm(l, &msg->out.timer, loop_now(l) + BOUNCE_AFTER);
	return true;
}

int in_bounce(struct msg_in *msg)
{
	struct lnd_ni *ni = &msg->out.ni->lnd;

	if (msg->out.hdr.payload_length)
		cpt_stat(msg->out.home, STAT_aside);
	return ni->lnd->eager_recv(ni, msg->rx);
}

void in_discard(struct msg_in *msg)
{
	struct lnd_ni *ni = &msg->out.ni->lnd;

	ni->lnd->recv(ni, msg->rx, NULL, msg->out.hdr.payload_length);
	msg->rx = NULL;
}

void in_let_go(struct msg_in *msg)
{
	in_discard(msg);
	ni_unref(msg->out.ni, msg->out.cpt->index);
	msg->out.ni = NULL;
}

/* ---- becoming an outgoing message ---- */

void in_turn(struct msg_in *msg, enum out_role role, work_fn done)
{
	struct msg_out *out = &msg->out;

	if (msg->fsm.state != IN_DONE)
		in_move(msg, IN_DONE);
	out->role = role;
	out->hop = &msg->from;
	out->done = done;
	out->done_cpt = out->home;
	out->timer.fn = out_late;
}

bool in_is_answerable(const struct msg_in *msg)
{
	struct lnd_ni *ni = &msg->out.ni->lnd;

	return ni->lnd->answer && !ni->lnd->answer(ni, msg->rx, NULL);
}

int in_answer(struct msg_in *msg)
{
	struct msg_out *out = &msg->out;
	const struct lnd *lnd = out->ni->lnd.lnd;
	int rc;

	if (likely(!lnd->answer))
		return -EOPNOTSUPP;
	out->lnd.incoming = false;
	out->lnd.ni = &out->ni->lnd;
	rc = lnd->answer(out->lnd.ni, msg->rx, &out->lnd);
	if (rc)
		return rc;
	msg->rx = NULL;
	out_move(out, OUT_LND);
	loop_timer_arm(out->cpt->loop, &out->timer, out->lnd.deadline);
	return 0;
}

/* ---- dropping ---- */

static void drop_count(struct lnet_cpt *cpt, struct lnet_ni *ni, uint32_t type,
		       uint32_t length, enum lnet_stat why)
{
	cpt_stat(cpt, STAT_drop_count);
	stat_add(&cpt->stats[STAT_drop_length], length);
	cpt_stat(cpt, why);
	traffic_add(&ni->cpt[cpt->index].traffic.drop, type, length);
}

void rx_drop(struct lnet_cpt *cpt, struct lnet_ni *ni, void *rx, uint32_t type,
	     uint32_t length, enum lnet_stat why)
{
	drop_count(cpt, ni, type, length, why);
	ni->lnd.lnd->recv(&ni->lnd, rx, NULL, length);
}

void in_drop(struct msg_in *msg, enum lnet_stat why)
{
	const struct lnet_hdr *hdr = &msg->out.hdr;
	struct lnet_cpt *cpt = msg->out.cpt;

	if (msg->sender)
		traffic_add(&msg->sender->traffic.drop, hdr->type,
			    hdr->payload_length);
	drop_count(cpt, msg->out.ni, hdr->type, hdr->payload_length, why);
	in_let_go(msg);
	in_free(msg);
}
