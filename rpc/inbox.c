/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/inbox.h"

#include <errno.h>
#include <stdatomic.h>

#include "rpc/rpc.h"

/* A buffer that could not be posted, because there was no memory, is tried
 * again after this time. */
#define AGAIN_NS (10 * NSEC_PER_MSEC)

struct inbox_buffer {
	struct inbox *in;
	struct list all;
	struct list waiting;
	struct ulnet_md_handle md;
	/* one reference of the inbox, and one of each kept pin */
	_Atomic unsigned int refs;
	unsigned int pins;
	bool linked;
	uint8_t *memory;
};

static void inbox_on_event(const struct ulnet_event *ev);

static int inbox_post(struct inbox_buffer *b)
{
	struct inbox *in = b->in;
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_md md = {
		.start = b->memory,
		.length = in->buffer_size,
		.threshold = LNET_MD_THRESH_INF,
		.max_size = in->message_max,
		.options = LNET_MD_OP_PUT | LNET_MD_MAX_SIZE |
			   LNET_MD_ACK_DISABLE | LNET_MD_OF_LAYER |
			   (in->heads ? LNET_MD_TRUNCATE : 0),
		.user_ptr = b,
		.handler = inbox_on_event,
	};
	struct ulnet_me_handle me;
	int rc;

	rc = LNetMEAttach(in->shard->node, in->portal, any, 0, ~UINT64_C(0),
			  LNET_UNLINK, LNET_INS_LOCAL, &me);
	if (rc)
		return rc;
	/* If LNetMDAttach() fails, LNet unlinks the entry. */
	rc = LNetMDAttach(me, &md, LNET_UNLINK, &b->md);
	if (rc)
		return rc;
	b->linked = true;
	in->linked++;
	return 0;
}

static void inbox_repost(struct inbox_buffer *b)
{
	struct inbox *in = b->in;

	if (unlikely(atomic_load(&b->refs) > 1))
		/* someone still reads the buffer, and has called
		 * inbox_pin_keep() */
		return;
	if (!inbox_post(b))
		return;
	list_add_tail(&in->waiting, &b->waiting);
	if (!lnet_timer_armed(&in->again))
		shard_arm(in->shard, &in->again,
			  shard_now(in->shard) + AGAIN_NS);
}

static void inbox_post_again(struct ulnet_timer *t)
{
	struct inbox *in = container_of(t, struct inbox, again);
	struct list waiting;

	list_init(&waiting);
	list_splice_tail(&waiting, &in->waiting);
	while (!list_empty(&waiting)) {
		struct inbox_buffer *b =
			list_first(&waiting, struct inbox_buffer, waiting);

		list_del(&b->waiting);
		inbox_repost(b);
	}
}

/* ---- the end ---- */

static void buffers_free(struct inbox *in)
{
	while (!list_empty(&in->all)) {
		struct inbox_buffer *b =
			list_first(&in->all, struct inbox_buffer, all);

		list_del(&b->all);
		inbox_kept_put(b);
	}
}

static void inbox_closed(struct ulnet_work *w)
{
	struct inbox *in = container_of(w, struct inbox, work);
	struct shard *s = in->shard;

	buffers_free(in);
	if (in->done)
		in->done(in->done_arg);
	shard_release(s);
}

static void check_closed(struct inbox *in)
{
	if (!in->closing || in->linked || in->pinned || in->calling ||
	    in->close_scheduled)
		return;
	in->close_scheduled = true;
	shard_defer(in->shard, &in->work);
}

void inbox_close(struct inbox *in, void (*done)(void *arg), void *arg)
{
	struct inbox_buffer *b;

	BUG_ON(in->closing);
	in->closing = true;
	in->done = done;
	in->done_arg = arg;
	shard_cancel(in->shard, &in->again);
	list_for_each_entry (b, &in->all, all)
		if (b->linked)
			LNetMDUnlink(b->md);
	check_closed(in);
}

/* ---- messages ---- */

/* Does @ev say that a whole message has come? A buffer may be unlinked while a
 * message is being received into it: LNet then reports that message as
 * canceled, to this handler only, although it has received all of it. So such a
 * message counts as well. */
static bool has_come(const struct inbox *in, const struct ulnet_event *ev)
{
	if (ev->type != LNET_EVENT_PUT)
		return false;
	if (shard_is_mute(in->shard))
		return false;
	if (likely(!in->closing))
		return !ev->status;
	return !in->shard->aborted &&
	       (!ev->status ||
		(ev->unlinked && ev->cause == LNET_CAUSE_CANCELED));
}

static void inbox_on_event(const struct ulnet_event *ev)
{
	struct inbox_buffer *b = ev->user_ptr;
	struct inbox *in = b->in;

	if (likely(has_come(in, ev))) {
		in->current = b;
		in->calling = true;
		in->fn(in->arg, ev, b->memory + ev->offset, ev->mlength);
		in->calling = false;
		in->current = NULL;
	}
	if (unlikely(ev->unlinked)) {
		b->linked = false;
		in->linked--;
		if (!in->closing && !b->pins)
			inbox_repost(b);
	}
	if (unlikely(in->closing))
		check_closed(in);
}

struct inbox_buffer *inbox_pin(struct inbox *in)
{
	struct inbox_buffer *b = in->current;

	BUG_ON(!b);
	if (!b->pins) {
		if (in->pinned >= in->pinned_max)
			return NULL;
		in->pinned++;
	}
	b->pins++;
	return b;
}

void inbox_unpin(struct inbox_buffer *b)
{
	struct inbox *in = b->in;

	BUG_ON(!b->pins);
	if (--b->pins)
		return;
	in->pinned--;
	if (in->closing)
		check_closed(in);
	else if (!b->linked)
		inbox_repost(b);
}

void inbox_pin_keep(struct inbox_buffer *b)
{
	atomic_fetch_add(&b->refs, 1);
	inbox_unpin(b);
}

void inbox_kept_put(struct inbox_buffer *b)
{
	if (atomic_fetch_sub(&b->refs, 1) > 1)
		return;
	free(b->memory);
	free(b);
}

/* ---- the beginning ---- */

static int buffer_add(struct inbox *in)
{
	struct inbox_buffer *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->memory = malloc(in->buffer_size);
	if (!b->memory) {
		free(b);
		return -ENOMEM;
	}
	b->in = in;
	b->refs = 1;
	list_init(&b->waiting);
	list_add_tail(&in->all, &b->all);
	return 0;
}

/* If the first buffer cannot be posted, the inbox cannot be opened. The other
 * buffers are tried again until they can be posted. */
static int post_all(struct inbox *in)
{
	struct inbox_buffer *b;
	int rc;

	list_for_each_entry (b, &in->all, all) {
		if (in->linked) {
			inbox_repost(b);
			continue;
		}
		rc = inbox_post(b);
		if (rc)
			return rc;
	}
	return 0;
}

int inbox_open(struct inbox *in)
{
	struct shard *s = in->shard;
	int rc;

	if (in->buffers < 2 || !in->message_max ||
	    in->message_max > in->buffer_size)
		return -EINVAL;
	in->pinned_max = MAX(in->buffers / 4, 1);
	list_init(&in->all);
	list_init(&in->waiting);
	lnet_timer_init(&in->again, inbox_post_again);
	in->work.fn = inbox_closed;
	rc = LNetSetLazyPortal(s->node, in->portal);
	if (!rc)
		atomic_fetch_or(&s->rpc->lazy, UINT64_C(1) << in->portal);
	for (unsigned int i = 0; i < in->buffers && !rc; i++)
		rc = buffer_add(in);
	if (!rc)
		rc = post_all(in);
	if (rc)
		buffers_free(in);
	else
		shard_hold(s);
	return rc;
}
