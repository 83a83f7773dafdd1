/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/forward.h"

#include <errno.h>
#include <stdlib.h>

#include "base/share.h"
#include "lnet/message/msg.h"
#include "lnet/message/msgs.h"
#include "lnet/message/request.h"
#include "lnet/net/net.h"

/* So long a message may wait for a next hop that has failed lately. */
#define FORWARD_ILL (250 * NSEC_PER_MSEC)
/* The part of a pool that is for NIDs to which the last message failed. */
#define FAILING_PART 4

struct router_buf {
	struct list link; /* router_pool.spare, while nobody has it */
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

static struct router_pool *pool_of(const struct lnet_msg *msg)
{
	return router_pool_of(msg->home, msg->hdr.payload_length);
}

/* ---- buffers ---- */

static struct router_buf *buf_make(struct router_pool *pool)
{
	struct router_buf *buf = malloc(sizeof(*buf) + pool->size);

	if (!buf)
		return NULL;
	list_init(&buf->link);
	buf->iov = (struct iovec){ buf->bytes, pool->size };
	pool->made++;
	return buf;
}

static struct router_buf *buf_get(struct router_pool *pool)
{
	struct router_buf *buf;

	if (list_empty(&pool->spare))
		return buf_make(pool);
	buf = list_first(&pool->spare, struct router_buf, link);
	list_del(&buf->link);
	return buf;
}

static void buf_free(struct router_pool *pool, struct router_buf *buf)
{
	free(buf);
	pool->made--;
}

/* Buffers that are too many go when they are given back. */
static void buf_put(const struct router *r, struct router_pool *pool,
		    struct router_buf *buf)
{
	if (r->on && pool->made <= pool->max)
		list_add(&pool->spare, &buf->link);
	else
		buf_free(pool, buf);
}

static void pool_trim(struct router_pool *pool, uint32_t max)
{
	while (pool->made > max && !list_empty(&pool->spare)) {
		struct router_buf *buf =
			list_first(&pool->spare, struct router_buf, link);

		list_del(&buf->link);
		buf_free(pool, buf);
	}
}

static void pool_note(struct router_pool *pool)
{
	int64_t left = (int64_t)pool->max - pool->used - pool->waits;

	pool->free_min = MIN(pool->free_min, left);
}

/* ---- shares ---- */

static bool pool_allows(const struct router_pool *pool, uint32_t held)
{
	return share_allows(held, pool->used, pool->max, 1);
}

bool forward_has_room(const struct lnet_msg *msg)
{
	const struct router_pool *pool = pool_of(msg);
	const struct lnet_holdings *from = &msg->sender->has;
	const struct lnet_holdings *to = &msg->dest->has;

	if (from->forwards >= ni_buffer_credits(msg->ni))
		return false;
	if (!pool_allows(pool, from->forwards) ||
	    !pool_allows(pool, to->forwards_to))
		return false;
	return !to->forwards_fail ||
	       pool->failing < MAX(pool->max / FAILING_PART, 1);
}

bool forward_has_buffer(const struct lnet_msg *msg)
{
	return (msg->role == MSG_FORWARD_IN || msg->role == MSG_FORWARD_OUT) &&
	       msg->buf;
}

static void note_sender(struct lnet_holdings *has)
{
	has->forwards_max =
		MAX(has->forwards_max, has->forwards + has->forward_waits);
}

static void forward_take(struct lnet_msg *msg, struct router_buf *buf)
{
	struct router_pool *pool = pool_of(msg);

	msg->buf = buf;
	pool->used++;
	pool_note(pool);
	msg->sender->has.forwards++;
	note_sender(&msg->sender->has);
	msg->dest->has.forwards_to++;
	if (msg->dest->has.forwards_fail) {
		msg->flags |= MSG_SCARCE;
		pool->failing++;
	}
}

static void forward_wake_later(struct lnet_cpt *cpt);

/* Gives back what it has. */
static void forward_end(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->home;
	const struct lnet_observer *o = cpt->node->observer;
	struct router_pool *pool = pool_of(msg);

	if (msg->buf) {
		if (unlikely(o))
			o->forwarded(o->arg, cpt->node, &msg->lnd);
		buf_put(router_of(cpt), pool, msg->buf);
		msg->buf = NULL;
		pool->used--;
		msg->sender->has.forwards--;
		msg->dest->has.forwards_to--;
		pool->failing -= !!(msg->flags & MSG_SCARCE);
		forward_wake_later(cpt);
	}
	peer_unref(cpt, msg->dest);
	msg->dest = NULL;
}

static void forward_drop(struct lnet_msg *msg, enum lnet_stat why)
{
	if (msg->dest)
		forward_end(msg);
	drop_msg(msg, why);
}

/* ---- through the node ---- */

void forward_goes(struct lnet_msg *msg)
{
	if (msg->lpni->health == LNET_HEALTH_MAX)
		return;
	msg->deadline =
		MIN(msg->deadline, loop_now(msg->cpt->loop) + FORWARD_ILL);
	msg->lnd.deadline = MIN(msg->lnd.deadline, msg->deadline);
}

/* It has been sent on, or could not be. */
static void forward_sent(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	struct lnet_cpt *cpt = msg->home;

	msg->dest->has.forwards_fail = msg->status != 0;
	if (msg->status) {
		cpt_stat(cpt, STAT_drop_count);
		stat_add(&cpt->stats[STAT_drop_length],
			 msg->hdr.payload_length);
		cpt_stat(cpt, msg->status == -ETIMEDOUT
				      ? STAT_drop_route_late
				      : STAT_drop_route_failed);
	}
	forward_end(msg);
	msg_free(msg);
}

/* @msg, whose payload is in its buffer, is sent. */
static void forward_out(struct lnet_msg *msg)
{
	msg->role = MSG_FORWARD_OUT;
	msg->done = forward_sent;
	msg->flags = MSG_EXACT | (msg->flags & MSG_SCARCE);
	msg->want_ni = LNET_NID_ANY;
	msg_address(msg, &msg->hdr.dest_nid, msg->deadline);
	msg_launch(msg);
}

/* Its payload is here, or will not come. */
static void forward_received(struct work *w)
{
	struct lnet_msg *msg = container_of(w, struct lnet_msg, work);
	if (msg->status) {
		cpt_stat(msg->home, STAT_drop_count);
		stat_add(&msg->home->stats[STAT_drop_length],
			 msg->hdr.payload_length);
		cpt_stat(msg->home, STAT_drop_route_failed);
		forward_end(msg);
		msg_free(msg);
		return;
	}
	fsm_move(&msg->fsm, msg_states, MSG_NEW);
	forward_out(msg);
}

static void forward_in(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->home;
	const struct lnet_observer *o = cpt->node->observer;
	struct router_buf *buf = buf_get(pool_of(msg));

	if (!buf) {
		forward_drop(msg, STAT_drop_no_memory);
		return;
	}
	forward_take(msg, buf);
	if (unlikely(o))
		o->forward(o->arg, cpt->node, &msg->ni->lnd, msg->rx,
			   &msg->lnd);
	msg->lnd.iov = &buf->iov;
	msg->lnd.niov = 1;
	msg->lnd.offset = 0;
	msg->lnd.length = msg->hdr.payload_length;
	traffic_add(&msg->ni->cpt[cpt->index].traffic.recv, msg->hdr.type,
		    msg->hdr.payload_length);
	if (msg->hdr.payload_length) {
		msg->lnd.deadline = msg->deadline;
		msg_recv(msg, forward_received);
		return;
	}
	msg_discard(msg);
	ni_unref(msg->ni, cpt->index);
	msg->ni = NULL;
	forward_out(msg);
}

/* ---- waiting ---- */

static void wait_begin(struct lnet_msg *msg)
{
	struct router_pool *pool = pool_of(msg);

	fsm_move(&msg->fsm, msg_states, MSG_BUFFERLESS);
	list_add_tail(&pool->waiting, &msg->link);
	pool->waits++;
	pool_note(pool);
	msg->sender->has.forward_waits++;
	note_sender(&msg->sender->has);
	loop_timer_arm(msg->home->loop, &msg->timer, msg->deadline);
}

static void wait_end(struct lnet_msg *msg)
{
	list_del(&msg->link);
	pool_of(msg)->waits--;
	msg->sender->has.forward_waits--;
	if (timer_armed(&msg->timer))
		loop_timer_cancel(msg->home->loop, &msg->timer);
	fsm_move(&msg->fsm, msg_states, MSG_NEW);
}

void forward_msg(struct lnet_msg *msg)
{
	struct lnet_cpt *cpt = msg->home;
	const struct settings *s = &cpt->node->settings;

	/* It was turned off while a fault rule kept the message back. */
	if (!router_of(cpt)->on || !msg->sender) {
		drop_msg(msg, STAT_drop_not_mine);
		return;
	}
	msg->dest = peer_get(cpt, &msg->hdr.dest_nid);
	if (!msg->dest) {
		drop_msg(msg, STAT_drop_no_memory);
		return;
	}
	msg->deadline =
		loop_now(cpt->loop) + (msg->dest->has.forwards_fail
					       ? FORWARD_ILL
					       : settings_lnd_timeout(s));
	/* Those that are about to be woken were first. */
	if (!router_of(cpt)->waking && forward_has_room(msg))
		forward_in(msg);
	else
		wait_begin(msg);
}

void forward_late(struct lnet_msg *msg)
{
	wait_end(msg);
	forward_drop(msg, STAT_drop_route_late);
}

/* Each message is looked at once. What goes on may end, and wake others: they
 * have their turn later. */
static void pool_wake(struct router_pool *pool)
{
	struct list waiting;

	list_init(&waiting);
	list_splice_tail(&waiting, &pool->waiting);
	while (!list_empty(&waiting)) {
		struct lnet_msg *msg =
			list_first(&waiting, struct lnet_msg, link);

		if (forward_has_room(msg)) {
			wait_end(msg);
			forward_in(msg);
			continue;
		}
		list_del(&msg->link);
		list_add_tail(&pool->waiting, &msg->link);
	}
}

static void forward_wake(struct work *w)
{
	struct router *r = container_of(w, struct router, wake);

	r->waking = false;
	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		pool_wake(&r->pool[i]);
}

/* At the end of the turn, once for all that ended in it. */
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
	struct lnet_msg *msg, *next;

	for (unsigned int i = 0; i < LNET_BUFFER_KINDS; i++)
		list_for_each_entry_safe (msg, next, &r->pool[i].waiting,
					  link) {
			if (ni && msg->ni != ni)
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
