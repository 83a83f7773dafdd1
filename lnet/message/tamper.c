/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/tamper.h"

#include <errno.h>
#include <stdlib.h>

#include "base/iov.h"
#include "base/share.h"
#include "lnet/message/credit.h"
#include "lnet/message/end.h"
#include "lnet/message/msgs.h"
#include "lnet/message/park.h"
#include "lnet/message/request.h"
#include "lnet/net/net.h"

/* ---- copies ---- */

struct copy {
	struct msg_copy lent;
	bool again;
	/* What the message had before: */
	const struct iovec *iov;
	unsigned int niov;
	const struct span *mem;
	uint32_t offset;
	struct iovec own;
	uint8_t data[];
};

/* What a copy of @msg takes, bytes. */
static uint64_t copy_size(const struct msg_out *msg)
{
	return sizeof(struct copy) + msg->lnd.length;
}

/* The peer NI that @msg goes to, in whose share copies of it count. */
static struct lnet_peer_ni *copy_quota(const struct msg_out *msg)
{
	return msg->lpni ? msg->lpni
			 : container_of(msg, struct msg_in, out)->sender;
}

static void copy_count(struct msg_out *msg, uint64_t bytes)
{
	copy_quota(msg)->has.copied_bytes += bytes;
	msg_cpt(msg->cpt)->has_all.copied_bytes += bytes;
}

static void copy_lend(struct msg_out *msg, struct copy *copy)
{
	msg->copy = &copy->lent;
	msg->lnd.iov = &copy->own;
	msg->lnd.niov = 1;
	msg->lnd.mem = NULL;
	msg->lnd.offset = 0;
}

static void copy_end(struct msg_out *msg, bool sent);

bool tamper_copy(struct msg_out *msg)
{
	const struct lnet_cpt *cpt = msg->cpt;
	uint64_t size = copy_size(msg);
	struct copy *copy;

	if (!share_allows(copy_quota(msg)->has.copied_bytes,
			  msg_cpt(cpt)->has_all.copied_bytes,
			  cpt->node->conf.lazy_bytes_max, size))
		return false;
	copy = malloc(size);
	if (!copy)
		return false;
	copy->lent.end = copy_end;
	copy->again = false;
	copy->iov = msg->lnd.iov;
	copy->niov = msg->lnd.niov;
	copy->mem = msg->lnd.mem;
	copy->offset = msg->lnd.offset;
	copy->own = (struct iovec){ copy->data, msg->lnd.length };
	iov_gather(copy->data, copy->iov, copy->niov, copy->offset,
		   msg->lnd.length);
	copy_lend(msg, copy);
	copy_count(msg, size);
	return true;
}

static struct copy *copy_of(const struct msg_out *msg)
{
	return container_of(msg->copy, struct copy, lent);
}

void tamper_flip(struct msg_out *msg, uint64_t bit)
{
	bit %= UINT64_C(8) * msg->lnd.length;
	copy_of(msg)->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
}

void tamper_send_twice(struct msg_out *msg)
{
	copy_of(msg)->again = true;
}

static void copy_go(struct work *w)
{
	struct msg_out *msg = container_of(w, struct msg_out, work);
	struct lnet_cpt *cpt = msg->cpt;

	if (cpt->closing || msg->ni->cpt[cpt->index].stopped) {
		out_finalize(msg, -ESHUTDOWN, LNET_CAUSE_SHUTDOWN);
		return;
	}
	loop_timer_arm(cpt->loop, &msg->timer, msg->lnd.deadline);
	credit_take(msg);
}

/* A message that no operation owns, which takes the copy of @msg and goes the
 * same way. NULL: all messages are in use. */
static struct msg_out *copy_twin(struct msg_out *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct msg_in *in = in_new(cpt, out_late);
	struct msg_out *twin;

	if (!in)
		return NULL;
	twin = &in->out;
	twin->role = OUT_TWIN;
	twin->done = in_free_work;
	twin->hdr = msg->hdr;
	twin->flags = MSG_ONCE;
	twin->want_ni = msg->want_ni;
	twin->ni = msg->ni;
	ni_ref(twin->ni, cpt->index);
	twin->lpni = msg->lpni;
	peer_ref(twin->lpni);
	twin->lnd.cpt = cpt->index;
	twin->lnd.next_hop = msg->lnd.next_hop;
	twin->lnd.next_pid = msg->lnd.next_pid;
	twin->lnd.length = msg->lnd.length;
	twin->target = msg->target;
	twin->deadline = msg->deadline;
	twin->lnd.deadline = msg->deadline;
	return twin;
}

static bool copy_send(struct msg_out *msg)
{
	struct copy *copy = copy_of(msg);
	struct msg_out *twin = copy_twin(msg);

	if (!twin) {
		cpt_stat(msg->cpt, STAT_faults_skipped);
		return false;
	}
	copy->again = false;
	copy_lend(twin, copy);
	twin->work.fn = copy_go;
	loop_defer(twin->cpt->loop, &twin->work);
	return true;
}

static void copy_end(struct msg_out *msg, bool sent)
{
	struct copy *copy = copy_of(msg);

	msg->lnd.iov = copy->iov;
	msg->lnd.niov = copy->niov;
	msg->lnd.mem = copy->mem;
	msg->lnd.offset = copy->offset;
	if (!sent || !copy->again || !copy_send(msg)) {
		copy_count(msg, -copy_size(msg));
		free(copy);
	}
	msg->copy = NULL;
}

/* ---- delays of what has come in ---- */

/* @msg, whose sender was not met yet (parse.c), counts as one of that sender's
 * messages, and so against its shares, until the delay is over. */
static bool delay_take_share(struct msg_in *msg)
{
	struct lnet_peer_ni *lpni = peer_get(msg->out.home, &msg->from);

	if (!lpni)
		return false;
	msg->sender = lpni;
	lpni->has.msgs++;
	msg->aside = false;
	return hold_aside(msg);
}

static void delay_give_share(struct msg_in *msg)
{
	if (!msg->sender)
		return;
	hold_not_aside(msg);
	msg->sender->has.msgs--;
	peer_unref(msg->out.home, msg->sender);
	msg->sender = NULL;
}

static void delay_late(struct timer *t);

/* During the delay, the timer of @msg is that of the delay. */
static void delay_begin(struct msg_in *msg, uint64_t until)
{
	struct lnet_cpt *cpt = msg->out.home;

	in_move(msg, IN_DELAYED);
	msg->out.timer.fn = delay_late;
	list_add_tail(&msg_cpt(cpt)->delayed_in, &msg->out.link);
	loop_timer_arm(cpt->loop, &msg->out.timer, until);
}

static void delay_end(struct msg_in *msg)
{
	loop_timer_cancel(msg->out.home->loop, &msg->out.timer);
	msg->out.timer.fn = in_late;
	list_del(&msg->out.link);
	in_move(msg, IN_NEW);
}

bool tamper_delay(struct msg_in *msg, uint64_t ns)
{
	if (!delay_take_share(msg)) {
		delay_give_share(msg);
		return false;
	}
	delay_begin(msg, loop_now(msg->out.home->loop) + ns);
	return true;
}

/* The sender of @msg was met (parse.c), and @msg counts as one of its
 * messages. */
bool tamper_delay_answer(struct msg_in *msg, uint64_t ns)
{
	uint64_t until = loop_now(msg->out.home->loop) + ns;

	msg->aside = false;
	if (!hold_aside(msg))
		return false;
	delay_begin(msg, MIN(until, msg->out.lnd.deadline));
	return true;
}

static void delay_answered(struct msg_in *msg)
{
	hold_not_aside(msg);
	if (loop_now(msg->out.home->loop) >= msg->out.lnd.deadline)
		request_forget_reply(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
	else
		request_give_reply(msg);
}

static void delay_arrived(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;

	delay_give_share(msg);
	in_arrived(msg);
	/* If it is parked now, it has been in the way of others until now. */
	park_wake_later(cpt);
}

static void delay_late(struct timer *t)
{
	struct msg_in *msg = container_of(t, struct msg_in, out.timer);

	delay_end(msg);
	if (msg->md)
		delay_answered(msg);
	else
		delay_arrived(msg);
}

void tamper_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	struct msg_in *msg, *next;

	list_for_each_entry_safe (msg, next, &msg_cpt(cpt)->delayed_in,
				  out.link) {
		if (ni && msg->out.ni != ni)
			continue;
		delay_end(msg);
		hold_not_aside(msg);
		if (msg->md)
			request_forget_reply(msg, -ESHUTDOWN,
					     LNET_CAUSE_SHUTDOWN);
		else
			in_drop(msg, STAT_drop_closing);
	}
}
