/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/forward.h"

#include <errno.h>
#include <stdlib.h>

#include "base/share.h"
#include "lnet/message/msgs.h"
#include "lnet/net/net.h"

/* NIDs to which the last message failed share 1 / FAILING_PART of each pool. */
#define FAILING_PART 4

struct router_buf {
	/* in router_pool.spare while no message has the buffer */
	struct list link;
	struct iovec iov;
	char bytes[];
};

static struct router *router_of(const struct lnet_cpt *cpt)
{
	return &msg_cpt(cpt)->router;
}

struct router_pool *router_pool_of(struct lnet_cpt *cpt, uint32_t length)
{
	struct router_pool *pool = router_of(cpt)->pool;

	while (pool->size < length)
		pool++;
	return pool;
}

static struct router_pool *pool_of(const struct msg_in *msg)
{
	return router_pool_of(msg->out.home, msg->out.hdr.payload_length);
}

/* ---- buffers ---- */

/* Returns a spare buffer, or a new one. NULL: there is no memory. */
static struct router_buf *buf_get(struct router_pool *pool)
{
	struct router_buf *buf;

	if (!list_empty(&pool->spare)) {
		buf = list_first(&pool->spare, struct router_buf, link);
		list_del(&buf->link);
		return buf;
	}
	buf = malloc(sizeof(*buf) + pool->size);
	if (!buf)
		return NULL;
	list_init(&buf->link);
	buf->iov = (struct iovec){ buf->bytes, pool->size };
	pool->made++;
	return buf;
}

static void pool_trim(struct router_pool *pool, uint32_t max)
{
	while (pool->made > max && !list_empty(&pool->spare)) {
		struct router_buf *buf =
			list_first(&pool->spare, struct router_buf, link);

		list_del(&buf->link);
		free(buf);
		pool->made--;
	}
}

static void pool_note(struct router_pool *pool)
{
	int64_t left = (int64_t)pool->max - pool->used - pool->waits;

	pool->free_min = MIN(pool->free_min, left);
}

/* ---- shares ---- */

bool forward_has_room(const struct msg_in *msg)
{
	const struct router_pool *pool = pool_of(msg);
	const struct lnet_quota *from = &msg->sender->has;
	const struct lnet_quota *to = &msg->dest->has;

	if (from->forwards >= msg->out.ni->peer_buffer_credits)
		return false;
	if (!share_allows(from->forwards, pool->used, pool->max, 1) ||
	    !share_allows(to->forwards_to, pool->used, pool->max, 1))
		return false;
	return !to->forwards_fail ||
	       pool->failing < MAX(pool->max / FAILING_PART, 1);
}

static void note_sender(struct lnet_quota *has)
{
	has->forwards_max =
		MAX(has->forwards_max, has->forwards + has->forward_waits);
}

static void forward_take(struct msg_in *msg, struct router_buf *buf)
{
	struct router_pool *pool = pool_of(msg);

	msg->buf = buf;
	pool->used++;
	pool_note(pool);
	msg->sender->has.forwards++;
	note_sender(&msg->sender->has);
	msg->dest->has.forwards_to++;
	msg->counts_failing = false;
	if (msg->dest->has.forwards_fail) {
		msg->counts_failing = true;
		pool->failing++;
	}
}

static void forward_wake_later(struct lnet_cpt *cpt);

/* Returns the buffer of @msg, which then does not count in the shares any more.
 */
static void forward_end(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	const struct lnet_observer *o = cpt->node->observer;
	struct router_pool *pool = pool_of(msg);

	if (msg->buf) {
		if (unlikely(o))
			o->forwarded(o->arg, cpt->node, &msg->out.lnd);
		list_add(&pool->spare, &msg->buf->link);
		pool_trim(pool, router_of(cpt)->on ? pool->max : 0);
		msg->buf = NULL;
		pool->used--;
		msg->sender->has.forwards--;
		msg->dest->has.forwards_to--;
		pool->failing -= msg->counts_failing;
		forward_wake_later(cpt);
	}
	peer_unref(msg->dest);
	msg->dest = NULL;
}

static void forward_drop(struct msg_in *msg, enum lnet_stat why)
{
	if (msg->dest)
		forward_end(msg);
	in_drop(msg, why);
}

/* ---- receiving and sending ---- */

/* Ends @msg. @why: the counter of the reason for which it was not sent;
 * STAT_COUNT: it was sent. */
static void forward_over(struct msg_in *msg, enum lnet_stat why)
{
	struct lnet_cpt *cpt = msg->out.home;

	if (why != STAT_COUNT) {
		cpt_stat(cpt, STAT_drop_count);
		stat_add(&cpt->stats[STAT_drop_length],
			 msg->out.hdr.payload_length);
		cpt_stat(cpt, why);
	}
	forward_end(msg);
	in_free(msg);
}

static void forward_sent(struct work *w)
{
	struct msg_in *msg = in_of_work(w);
	int status = msg->out.status;

	msg->dest->has.forwards_fail = status != 0;
	forward_over(msg, !status		 ? STAT_COUNT
			  : status == -ETIMEDOUT ? STAT_drop_route_late
						 : STAT_drop_route_failed);
}

/* Sends @msg, whose payload is in its buffer. */
static void forward_out(struct msg_in *msg)
{
	struct msg_out *out = &msg->out;

	in_turn(msg, OUT_FORWARD, forward_sent);
	out->flags = MSG_EXACT;
	out->local_nid = LNET_NID_ANY;
	out_address(out, &out->hdr.dest_nid, out->deadline);
	out_launch(out);
}

/* The payload of the message has been received, or could not be received. */
static void forward_received(struct work *w)
{
	struct msg_in *msg = in_of_work(w);

	if (msg->out.status)
		forward_over(msg, STAT_drop_route_failed);
	else
		forward_out(msg);
}

static void forward_in(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	const struct lnet_observer *o = cpt->node->observer;
	struct router_buf *buf = buf_get(pool_of(msg));

	if (!buf) {
		forward_drop(msg, STAT_drop_no_memory);
		return;
	}
	forward_take(msg, buf);
	if (unlikely(o))
		o->forward(o->arg, cpt->node, &msg->out.ni->lnd, msg->rx,
			   &msg->out.lnd);
	msg->out.lnd.iov = &buf->iov;
	msg->out.lnd.niov = 1;
	msg->out.lnd.offset = 0;
	msg->out.lnd.length = msg->out.hdr.payload_length;
	traffic_add(&msg->out.ni->cpt[cpt->index].traffic.recv,
		    msg->out.hdr.type, msg->out.hdr.payload_length);
	if (msg->out.hdr.payload_length) {
		msg->out.lnd.deadline = msg->out.deadline;
		in_recv(msg, cpt, forward_received);
		return;
	}
	in_let_go(msg);
	forward_out(msg);
}

/* ---- waiting ---- */

static void wait_begin(struct msg_in *msg)
{
	struct router_pool *pool = pool_of(msg);

	in_move(msg, IN_BUFFERLESS);
	list_add_tail(&pool->waiting, &msg->out.link);
	pool->waits++;
	pool_note(pool);
	msg->sender->has.forward_waits++;
	note_sender(&msg->sender->has);
	loop_timer_arm(msg->out.home->loop, &msg->out.timer, msg->out.deadline);
}

static void wait_end(struct msg_in *msg)
{
	list_del(&msg->out.link);
	pool_of(msg)->waits--;
	msg->sender->has.forward_waits--;
	loop_timer_cancel(msg->out.home->loop, &msg->out.timer);
	in_move(msg, IN_NEW);
}

void forward_msg(struct msg_in *msg)
{
	struct lnet_cpt *cpt = msg->out.home;
	const struct settings *s = &cpt->node->settings;

	/* Routing may have been turned off while a fault rule has delayed the
	 * message. */
	if (!router_of(cpt)->on || !msg->sender) {
		in_drop(msg, STAT_drop_not_mine);
		return;
	}
	msg->dest = peer_get(cpt, &msg->out.hdr.dest_nid);
	if (!msg->dest) {
		in_drop(msg, STAT_drop_no_memory);
		return;
	}
	msg->out.deadline =
		loop_now(cpt->loop) + (msg->dest->has.forwards_fail
					       ? FORWARD_SUSPECT
					       : settings_lnd_timeout(s));
	/* While messages are about to be woken, they come first. */
	if (!router_of(cpt)->waking && forward_has_room(msg))
		forward_in(msg);
	else
		wait_begin(msg);
}

void forward_late(struct msg_in *msg)
{
	wait_end(msg);
	forward_drop(msg, STAT_drop_route_late);
}

/* Considers each waiting message once. Messages that end meanwhile call
 * forward_wake_later() again. */
static void pool_wake(struct router_pool *pool)
{
	struct list waiting;

	list_init(&waiting);
	list_splice_tail(&waiting, &pool->waiting);
	while (!list_empty(&waiting)) {
		struct msg_in *msg =
			list_first(&waiting, struct msg_in, out.link);

		if (forward_has_room(msg)) {
			wait_end(msg);
			forward_in(msg);
			continue;
		}
		list_del(&msg->out.link);
		list_add_tail(&pool->waiting, &msg->out.link);
	}
}

static void forward_wake(struct work *w)
{
	struct router *r = container_of(w, struct router, wake);

	r->waking = false;
	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		pool_wake(&r->pool[i]);
}

/* To be called when a buffer was returned: at the end of the turn, gives it to
 * a message that may have one. */
static void forward_wake_later(struct lnet_cpt *cpt)
{
	struct router *r = router_of(cpt);
	uint32_t waits = 0;

	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		waits += r->pool[i].waits;
	if (!waits || r->waking)
		return;
	r->waking = true;
	loop_defer(cpt->loop, &r->wake);
}

void forward_discard(struct lnet_cpt *cpt, const struct lnet_ni *ni)
{
	struct router *r = router_of(cpt);
	struct msg_in *msg, *next;

	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		list_for_each_entry_safe (msg, next, &r->pool[i].waiting,
					  out.link) {
			if (ni && msg->out.ni != ni)
				continue;
			wait_end(msg);
			forward_drop(msg, STAT_drop_closing);
		}
}

/* ---- on and off ---- */

void router_init(struct lnet_cpt *cpt)
{
	static const uint32_t sizes[LNET_BUFFER_KINDS] = {
		[LNET_TINY_BUFFERS] = 0,
		[LNET_SMALL_BUFFERS] = LNET_SMALL_BUFFER,
		[LNET_LARGE_BUFFERS] = LNET_MTU,
	};
	struct router *r = router_of(cpt);

	r->wake.fn = forward_wake;
	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++) {
		r->pool[i].size = sizes[i];
		list_init(&r->pool[i].spare);
		list_init(&r->pool[i].waiting);
	}
}

void router_fini(struct lnet_cpt *cpt)
{
	struct router *r = router_of(cpt);

	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		pool_trim(&r->pool[i], 0);
}

void router_set(struct lnet_cpt *cpt, bool on,
		const uint32_t buffers[LNET_BUFFER_KINDS])
{
	struct router *r = router_of(cpt);

	if (on && !r->on)
		for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
			r->pool[i].free_min = buffers[i];
	r->on = on;
	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++) {
		r->pool[i].max = buffers[i];
		pool_trim(&r->pool[i], on ? buffers[i] : 0);
		pool_note(&r->pool[i]);
	}
	if (on)
		forward_wake_later(cpt);
	else
		forward_discard(cpt, NULL);
}
