/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/tamper.h"

#include <errno.h>
#include <stdlib.h>

#include "base/iov.h"
#include "base/share.h"
#include "lnet/message/end.h"
#include "lnet/message/msgs.h"
#include "lnet/message/throttle.h"
#include "lnet/net/net.h"

/* ---- copies ---- */

struct copy {
	struct msg_copy lent;
	bool send_twice;
	/* The message's own payload, kept here while the copy is sent instead:
	 */
	const struct iovec *iov;
	unsigned int niov;
	const struct span *mem;
	uint32_t offset;
	struct iovec own;
	uint8_t data[];
};

/* Returns the number of bytes that a copy of @msg takes. */
static uint64_t copy_size(const struct msg_out *msg)
{
	return sizeof(struct copy) + msg->lnd.length;
}

/* Returns the peer NI to which @msg goes, in whose quota copies are counted. */
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
	copy->send_twice = false;
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
	copy_of(msg)->send_twice = true;
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

/* Makes a message for the same path as @msg, which belongs to no operation.
 * Returns NULL if all messages are in use. */
static struct msg_out *copy_duplicate(struct msg_out *msg)
{
	struct lnet_cpt *cpt = msg->cpt;
	struct msg_in *in = in_new(cpt, out_late);
	struct msg_out *dup;

	if (!in)
		return NULL;
	dup = &in->out;
	dup->role = OUT_DUPLICATE;
	dup->done = in_free_work;
	dup->hdr = msg->hdr;
	dup->flags = MSG_ONCE;
	dup->local_nid = msg->local_nid;
	dup->ni = msg->ni;
	ni_ref(dup->ni, cpt->index);
	dup->lpni = msg->lpni;
	peer_ref(dup->lpni);
	dup->lnd.cpt = cpt->index;
	dup->lnd.next_hop = msg->lnd.next_hop;
	dup->lnd.next_pid = msg->lnd.next_pid;
	dup->lnd.length = msg->lnd.length;
	dup->target = msg->target;
	dup->deadline = msg->deadline;
	dup->lnd.deadline = msg->deadline;
	return dup;
}

static bool copy_send(struct msg_out *msg)
{
	struct copy *copy = copy_of(msg);
	struct msg_out *dup = copy_duplicate(msg);

	if (!dup) {
		cpt_stat(msg->cpt, STAT_faults_skipped);
		return false;
	}
	copy->send_twice = false;
	copy_lend(dup, copy);
	dup->work.fn = copy_go;
	loop_defer(dup->cpt->loop, &dup->work);
	return true;
}

static void copy_end(struct msg_out *msg, bool sent)
{
	struct copy *copy = copy_of(msg);

	msg->lnd.iov = copy->iov;
	msg->lnd.niov = copy->niov;
	msg->lnd.mem = copy->mem;
	msg->lnd.offset = copy->offset;
	if (!sent || !copy->send_twice || !copy_send(msg)) {
		copy_count(msg, -copy_size(msg));
		free(copy);
	}
	msg->copy = NULL;
}

/* ---- delays of messages that have come in ---- */

/* Counts @msg as one of its sender's messages until the delay is over. (Without
 * a delay, parse.c does that.) */
static bool delay_take_share(struct msg_in *msg)
{
	struct lnet_peer_ni *lpni = peer_get(msg->out.home, &msg->from);

	if (!lpni)
		return false;
	msg->sender = lpni;
	lpni->has.msgs++;
	msg->bounced = false;
	return unexpected_bounce(msg);
}

static void delay_give_share(struct msg_in *msg)
{
	if (!msg->sender)
		return;
	unexpected_unbounce(msg);
	msg->sender->has.msgs--;
	peer_unref(msg->sender);
	msg->sender = NULL;
}

static void delay_late(struct timer *t);

/* Uses the timer of @msg for the delay. */
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

/* @msg->sender is set already, and @msg is counted as one of the sender's
 * messages. */
bool tamper_delay_answer(struct msg_in *msg, uint64_t ns)
{
	uint64_t until = loop_now(msg->out.home->loop) + ns;

	msg->bounced = false;
	if (!unexpected_bounce(msg))
		return false;
	delay_begin(msg, MIN(until, msg->out.lnd.deadline));
	return true;
}

static void delay_answered(struct msg_in *msg)
{
	unexpected_unbounce(msg);
	if (loop_now(msg->out.home->loop) >= msg->out.lnd.deadline)
		request_cancel_reply(msg, -ETIMEDOUT, LNET_CAUSE_LOCAL_TIMEOUT);
	else
		request_send_reply(msg);
}

static void delay_arrived(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;

	delay_give_share(msg);
	in_arrived(msg);
	/* Throttled messages may have had to wait because @msg was counted
	 * while it was delayed. */
	throttle_wake_later(cpt);
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
		unexpected_unbounce(msg);
		if (msg->md)
			request_cancel_reply(msg, -ESHUTDOWN,
					     LNET_CAUSE_SHUTDOWN);
		else
			in_drop(msg, STAT_drop_closing);
	}
}
