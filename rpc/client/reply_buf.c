/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory where replies land: see struct reply_buf in batch.h. */
#include "rpc/client/batch.h"

#include <errno.h>

#include "rpc/client/client.h"
#include "rpc/client/import.h"

/* How many buffers an import keeps, at most; bytes of each; bytes that must be
 * left for another reply. */
#define KEPT_MAX  4
#define KEPT_SIZE 4096
#define KEPT_ROOM 768

/* ---- the end ---- */

static void reply_buf_leave(struct reply_buf *rb)
{
	struct batch *p = rb->batch;
	struct reply_buf **at = &p->bufs;

	if (p->current == rb)
		p->current = NULL;
	while (*at != rb)
		at = &(*at)->next;
	*at = rb->next;
	rb->batch = NULL;
}

/* Frees a buffer that had its last event. */
static void reply_buf_free(struct reply_buf *rb)
{
	struct shard *s = rb->shard;

	if (rb->batch)
		reply_buf_leave(rb);
	list_del(&rb->link);
	slab_put(&s->imports->slab, rb, rb->size);
	shard_release(s);
}

/* Unlinks a buffer, which is freed at its last event. LNetMDUnlink() fails if
 * that event is on the way already. */
static void reply_buf_unlink(struct reply_buf *rb, struct import *imp)
{
	if (rb->kept)
		imp->nreply_bufs--;
	(void)LNetMDUnlink(rb->md);
}

void reply_bufs_drop(struct import *imp)
{
	struct reply_buf *rb;

	while ((rb = list_pop(&imp->reply_bufs, struct reply_buf, link)))
		reply_buf_unlink(rb, imp);
}

/* ---- attaching ---- */

static void on_reply_event(const struct ulnet_event *ev);

static struct ulnet_md reply_buf_md_of(struct reply_buf *rb,
				       const struct batch *p, uint32_t room)
{
	struct ulnet_md md = {
		.start = rb->bytes,
		.length = room,
		.threshold = LNET_MD_THRESH_INF,
		.options = LNET_MD_OP_PUT | LNET_MD_OF_LAYER,
		.user_ptr = rb,
		.handler = on_reply_event,
	};

	/* The MD is used up by one reply, unless a call has bulk: such a call
	 * reads the reply after the event. */
	if (!rb->kept && p->n == 1 && !p->bulk)
		md.threshold = 1;
	return md;
}

static void reply_buf_join(struct reply_buf *rb, struct batch *p)
{
	rb->batch = p;
	rb->next = p->bufs;
	p->bufs = rb;
	p->current = rb;
}

static int reply_buf_new(struct batch *p, bool kept)
{
	uint32_t room = kept ? KEPT_SIZE : p->need;
	size_t size = sizeof(struct reply_buf) + room;
	struct reply_buf *rb = slab_get(&p->shard->imports->slab, size);
	struct ulnet_me_handle me;
	struct ulnet_md md;
	int rc;

	if (!rb)
		return -ENOMEM;
	rb->users = p->shard->imports->reply_buf_users;
	rb->shard = p->shard;
	rb->kept = kept;
	rb->room = room;
	rb->match = p->match;
	rb->peer = p->peer;
	rb->size = size;
	list_init(&rb->link);
	md = reply_buf_md_of(rb, p, room);
	rc = LNetMEAttach(p->shard->node, ULRPC_PORTAL_REPLY, p->peer, p->match,
			  0, LNET_UNLINK, LNET_INS_LOCAL, &me);
	if (!rc)
		rc = LNetMDAttach(me, &md, LNET_UNLINK, &rb->md);
	if (rc) {
		slab_put(&p->shard->imports->slab, rb, size);
		return rc;
	}
	reply_buf_join(rb, p);
	shard_hold(p->shard);
	return 0;
}

/* Returns a kept buffer to which the peer of @p may reply; NULL: there is none.
 */
static struct reply_buf *kept_find(const struct batch *p, struct import *imp)
{
	struct reply_buf *rb;

	if (unlikely(list_empty(&imp->reply_bufs)))
		return NULL;
	rb = list_first(&imp->reply_bufs, struct reply_buf, link);
	if (likely(rb->peer.pid == p->peer.pid &&
		   lnet_nid_eq(&rb->peer.nid, &p->peer.nid)))
		return rb;
	/* The import uses another NID of the server now. */
	reply_bufs_drop(imp);
	return NULL;
}

int reply_buf_attach(struct batch *p)
{
	struct import *imp = p->client->imp;
	struct reply_buf *rb;
	int rc;

	if (p->n > 1 || p->bulk || p->need > KEPT_ROOM)
		return reply_buf_new(p, false);
	rb = kept_find(p, imp);
	if (likely(rb)) {
		list_del(&rb->link);
		p->match = rb->match;
		reply_buf_join(rb, p);
		return 0;
	}
	if (imp->nreply_bufs == KEPT_MAX)
		return reply_buf_new(p, false);
	rc = reply_buf_new(p, true);
	if (!rc)
		imp->nreply_bufs++;
	return rc;
}

void reply_buf_release(struct batch *p)
{
	struct import *imp = p->client->imp;
	struct reply_buf *rb = p->current;

	p->current = NULL;
	if (!rb)
		return;
	if (!rb->kept || rb->room < KEPT_ROOM || !p->landing ||
	    !import_is_up(imp) || p->shard->aborted) {
		reply_buf_unlink(rb, imp);
		return;
	}
	reply_buf_leave(rb);
	list_add(&imp->reply_bufs, &rb->link);
}

/* Called when a late copy, or a message for another batch, has taken the room
 * that the replies to @p need: attaches another buffer. That cannot be one that
 * the import keeps, as the server was told another match value. */
static void reply_buf_renew(struct batch *p)
{
	reply_buf_unlink(p->current, p->client->imp);
	p->current = NULL;
	/* If there is no memory, the calls wait until the server is asked about
	 * them. */
	(void)reply_buf_new(p, false);
}

/* ---- events ---- */

/* Frees a buffer, and then its batch if the batch is over. */
static void reply_buf_end(struct reply_buf *rb)
{
	const struct reply_buf_users *users = rb->users;
	struct batch *p = rb->batch;

	reply_buf_free(rb);
	users->check(p);
}

static void on_reply_buf_over(struct ulnet_work *work)
{
	reply_buf_end(container_of(work, struct reply_buf, work));
}

/* Called after the last event of a buffer. */
static out_of_line void reply_buf_ends(struct reply_buf *rb,
				       const struct ulnet_event *ev)
{
	if (unlikely(ev->type == LNET_EVENT_PUT && rb->batch->bulk)) {
		/* Calls with bulk use the reply until the end of this turn. */
		rb->work.fn = on_reply_buf_over;
		shard_defer(rb->shard, &rb->work);
		return;
	}
	reply_buf_end(rb);
}

static void on_batch_event(struct reply_buf *rb, struct batch *p,
			   const struct ulnet_event *ev)
{
	bool put = ev->type == LNET_EVENT_PUT;
	/* A message that is reported as canceled is whole if it unlinks the
	 * buffer: the buffer was renewed while the message was landing, and all
	 * of it has come. */
	bool whole =
		put && (ev->status == 0 ||
			(ev->unlinked && ev->cause == LNET_CAUSE_CANCELED));

	p->landing = true;
	if (whole && p->open)
		rb->users->on_replies(p, ev);
	else if (put)
		stat_count(p->shard, RPC_STAT_replies_late);
	if (p->open && p->current == rb && (ev->unlinked || rb->room < p->need))
		reply_buf_renew(p);
	p->landing = false;
	if (ev->unlinked)
		reply_buf_ends(rb, ev);
	else
		rb->users->check(p);
}

/* Messages land one behind the other, but their events may come in another
 * order. */
static uint32_t room_behind(const struct reply_buf *rb,
			    const struct ulnet_event *ev)
{
	size_t behind = rb->size - sizeof(*rb) - ev->offset - ev->mlength;

	return MIN(rb->room, (uint32_t)behind);
}

static void on_reply_event(const struct ulnet_event *ev)
{
	struct reply_buf *rb = ev->user_ptr;
	bool put = ev->type == LNET_EVENT_PUT;

	if (put) {
		stat_count(rb->shard, RPC_STAT_replies_received);
		rb->room = room_behind(rb, ev);
	}
	if (likely(rb->batch)) {
		on_batch_event(rb, rb->batch, ev);
		return;
	}
	if (put)
		stat_count(rb->shard, RPC_STAT_replies_late);
	if (ev->unlinked)
		reply_buf_free(rb);
}
