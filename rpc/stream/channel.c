/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stream/channel.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/context/scope.h"
#include "rpc/stream/stream.h"
#include "rpc/text.h"

/* bytes of the chunk for the first frames, and of those that are made because
 * the chunk before is full */
#define CHUNK_FIRST 2048u
#define CHUNK_NEXT  (PUSH_HEAD + BATCH_MAX)

static void channel_on_work(struct ulnet_work *work);
static void channel_on_timer(struct ulnet_timer *timer);

int channel_init(struct channel *ch, struct shard *s,
		 const struct channel_ops *ops)
{
	int rc = wait_init(&ch->wait);

	if (rc)
		return rc;
	atomic_store_explicit(&ch->wait.cpt, s->cpt, memory_order_relaxed);
	ch->shard = s;
	ch->ops = ops;
	ch->server = LNET_NID_ANY;
	ch->batch_max = BATCH_MAX;
	atomic_init(&ch->refs, 1);
	list_init(&ch->of_node);
	list_init(&ch->out);
	list_init(&ch->events);
	hash_init(&ch->streams);
	heap_init(&ch->deadlines);
	ch->work.fn = channel_on_work;
	lnet_timer_init(&ch->timer, channel_on_timer);
	return 0;
}

/* Takes the early batch out of @e. Returns its bytes, which the caller frees;
 * NULL: there is none. */
static uint8_t *early_take(struct channel *ch, struct early *e)
{
	uint8_t *bytes = e->bytes;

	if (!bytes)
		return NULL;
	e->bytes = NULL;
	ch->nearly--;
	if (ch->ops->let_go)
		ch->ops->let_go(ch, e->length);
	return bytes;
}

static void channel_drop_batches(struct channel *ch)
{
	struct chunk *c;

	while ((c = list_pop(&ch->out, struct chunk, link)))
		free(c);
	for (unsigned int i = 0; i < BATCHES_AHEAD; i++)
		free(early_take(ch, &ch->early[i]));
}

void channel_fini(struct channel *ch)
{
	channel_drop_batches(ch);
	hash_fini(&ch->streams);
	free(ch->why);
	wait_fini(&ch->wait);
}

void channel_put(struct channel *ch)
{
	if (atomic_fetch_sub(&ch->refs, 1) == 1)
		ch->ops->free(ch);
}

void channel_kick(struct channel *ch)
{
	struct shard *s = ch->shard;

	if (ch->given || ch->dead)
		return;
	ch->given = true;
	channel_get(ch);
	if (shard_owned(s)) {
		/* Does what shard_give() does, but the work runs at the end of
		 * this turn. */
		atomic_fetch_add(&s->rpc->posted, 1);
		shard_defer(s, &ch->work);
	} else {
		shard_give(s, &ch->work);
	}
}

struct ulrpc_stream *channel_find(const struct channel *ch, uint32_t id)
{
	struct ulrpc_stream *s;

	hash_for_each_equal (s, &ch->streams, channel_hash(ch, id), by_id)
		if (s->id == id)
			return s;
	return NULL;
}

/* ---- frames that go out ---- */

/* Returns a chunk with room for @need bytes; NULL: no memory. */
static struct chunk *chunk_for(struct channel *ch, size_t need)
{
	struct chunk *c = NULL;
	size_t cap = CHUNK_FIRST;

	if (!list_empty(&ch->out)) {
		c = list_entry(ch->out.prev, struct chunk, link);
		if (c->cap - c->len >= need)
			return c;
		cap = CHUNK_NEXT;
	}
	cap = MAX(cap, CHUNK_FRONT + need);
	c = malloc(sizeof(*c) + cap);
	if (!c)
		return NULL;
	c->off = c->len = CHUNK_FRONT;
	c->cap = (uint32_t)cap;
	list_add_tail(&ch->out, &c->link);
	return c;
}

int channel_frame_two(struct channel *ch, uint32_t stream, enum frame_kind kind,
		      const void *head, size_t size, const void *body,
		      size_t length)
{
	struct chunk *c = chunk_for(ch, FRAME_HEAD + size + length);
	uint8_t *p;

	if (!c)
		return -ENOMEM;
	p = c->bytes + c->len;
	frame_head(p, stream, kind, (uint32_t)(size + length));
	p += FRAME_HEAD;
	if (size)
		memcpy(p, head, size);
	if (length)
		memcpy(p + size, body, length);
	c->len += (uint32_t)(FRAME_HEAD + size + length);
	channel_kick(ch);
	return 0;
}

int channel_frame(struct channel *ch, uint32_t stream, enum frame_kind kind,
		  const void *body, size_t length)
{
	return channel_frame_two(ch, stream, kind, NULL, 0, body, length);
}

void channel_end_soon(struct channel *ch, enum ulrpc_cause cause)
{
	if (ch->ended)
		return;
	ch->end = (struct stream_end){ cause_status(cause), cause };
	channel_kick(ch);
}

void channel_frame_sure(struct channel *ch, uint32_t stream,
			enum frame_kind kind, const void *body, size_t length)
{
	if (ch->ended || !channel_frame(ch, stream, kind, body, length))
		return;
	channel_end_soon(ch, ULRPC_CAUSE_NO_MEMORY);
}

uint8_t *channel_next(struct channel *ch, size_t room, size_t *length_p)
{
	struct chunk *c;
	size_t at;
	struct frame f;

	if (list_empty(&ch->out))
		return NULL;
	c = list_first(&ch->out, struct chunk, link);
	for (at = c->off; at < c->len;) {
		size_t n = frame_read(c->bytes + at, c->len - at, &f);

		if (at > c->off && at + n - c->off > room)
			break;
		at += n;
	}
	*length_p = at - c->off;
	return c->bytes + c->off;
}

static void on_frame_sent(struct channel *ch, const struct frame *f)
{
	struct ulrpc_stream *s;

	if (f->kind == FRAME_MESSAGE)
		return;
	s = channel_find(ch, f->stream);
	if (s)
		rpc_stream_on_sent(s, f->kind);
	else if (f->kind == FRAME_CLOSE && ch->strays)
		ch->strays--;
}

void channel_sent(struct channel *ch, size_t length)
{
	struct chunk *c = list_first(&ch->out, struct chunk, link);
	struct frame f;
	size_t n;

	ch->next_out++;
	for (size_t at = 0; at < length; at += n) {
		n = frame_read(c->bytes + c->off + at, length - at, &f);
		BUG_ON(!n);
		on_frame_sent(ch, &f);
	}
	c->off += (uint32_t)length;
	if (c->off < c->len)
		return;
	list_del(&c->link);
	free(c);
}

/* Called when the channel ends: counts the messages that were never sent as
 * undelivered. */
static void channel_count_unsent(struct channel *ch)
{
	struct chunk *c;

	list_for_each_entry (c, &ch->out, link) {
		struct frame f;
		size_t n;

		for (size_t at = c->off; at < c->len; at += n) {
			struct ulrpc_stream *s;

			n = frame_read(c->bytes + at, c->len - at, &f);
			BUG_ON(!n);
			s = channel_find(ch, f.stream);
			if (f.kind == FRAME_MESSAGE && s && !s->over)
				s->undelivered++;
		}
	}
}

/* ---- frames that come in ---- */

static int on_frame(struct channel *ch, const struct frame *f)
{
	struct ulrpc_stream *s = channel_find(ch, f->stream);

	if (s && s->closed)
		s = NULL;
	if (s && f->kind == FRAME_MESSAGE)
		return rpc_stream_on_message(s, f);
	if (s && f->kind == FRAME_CREDIT)
		return rpc_stream_on_credit(s, f);
	return ch->ops->on_frame(ch, s, f);
}

static int on_batch(struct channel *ch, const uint8_t *p, size_t left)
{
	struct frame f;
	int rc = 0;

	ch->next_in++;
	p += BATCH_HEAD;
	left -= BATCH_HEAD;
	while (left && !rc) {
		size_t n = frame_read(p, left, &f);

		if (!n)
			return -EPROTO;
		rc = on_frame(ch, &f);
		p += n;
		left -= n;
	}
	return rc;
}

/* Handles the early batches whose turn has come. Returns 0 or -errno. */
static int on_early(struct channel *ch)
{
	int rc = 0;

	while (!rc) {
		struct early *e = &ch->early[ch->next_in % BATCHES_AHEAD];
		uint8_t *bytes = early_take(ch, e);

		if (!bytes)
			break;
		rc = on_batch(ch, bytes, e->length);
		free(bytes);
	}
	return rc;
}

int channel_receive(struct channel *ch, const uint8_t *bytes, size_t length)
{
	struct early *e;
	uint64_t number;
	int rc;

	if (length < BATCH_HEAD || length > ch->batch_max)
		return -EPROTO;
	number = load_le64(bytes);
	if (number == ch->next_in) {
		rc = on_batch(ch, bytes, length);
		return rc ? rc : on_early(ch);
	}
	e = &ch->early[number % BATCHES_AHEAD];
	if (number - ch->next_in >= BATCHES_AHEAD || e->bytes)
		return -EPROTO;
	if (ch->ops->keep && !ch->ops->keep(ch, length))
		return -EBUSY;
	e->bytes = malloc(length);
	if (!e->bytes) {
		if (ch->ops->let_go)
			ch->ops->let_go(ch, length);
		return -ENOMEM;
	}
	memcpy(e->bytes, bytes, length);
	e->length = length;
	ch->nearly++;
	channel_kick(ch);
	return 0;
}

/* ---- the end ---- */

/* Calls @fn for each stream, which may leave the table. */
static void each_stream(struct channel *ch, void (*fn)(struct ulrpc_stream *s))
{
	uint32_t bucket = 0;
	struct hash_node *n = hash_walk(&ch->streams, &bucket, NULL);

	while (n) {
		struct ulrpc_stream *s =
			container_of(n, struct ulrpc_stream, by_id);

		n = hash_walk(&ch->streams, &bucket, n);
		fn(s);
	}
}

void channel_cancel_streams(struct channel *ch)
{
	each_stream(ch, rpc_stream_cancel);
}

void channel_cut(struct ulrpc_stream *s)
{
	const struct stream_end *end = &s->ch->end;

	s->cut |= !s->over;
	rpc_stream_over(s, end->status, end->cause);
}

static void end_stream(struct ulrpc_stream *s)
{
	/* The call that opens a stream tells better what has become of it. */
	if ((s->ending || s->opening) && !s->ch->closed)
		return;
	channel_cut(s);
	rpc_stream_unlink(s);
}

void channel_say(struct channel *ch, const char *why)
{
	if (!ch->ended && !ch->why && *why)
		ch->why = strdup(why);
}

void channel_end(struct channel *ch, int status, enum ulrpc_cause cause)
{
	if (ch->ended)
		return;
	ch->ended = true;
	ch->end = (struct stream_end){ status, cause };
	channel_count_unsent(ch);
	each_stream(ch, end_stream);
	channel_drop_batches(ch);
	ch->ops->on_end(ch);
	wait_wake(&ch->wait);
	channel_kick(ch);
	/* This is not the last reference: the posted work has one. */
	channel_put(ch);
}

void channel_close(struct channel *ch)
{
	ch->closed = true;
	channel_end(ch, -ESHUTDOWN, ULRPC_CAUSE_SHUTDOWN);
	each_stream(ch, end_stream);
	shard_cancel(ch->shard, &ch->timer);
}

/* ---- the work of the CPT ---- */

static void tell_user(struct channel *ch, struct ulrpc_stream *s)
{
	unsigned int events = s->events;
	/* A copy: from here on another thread may call ulrpc_stream_watch(),
	 * and what it sets is told of the end by an event of its own. */
	const struct ulrpc_stream_events u = s->user;
	struct ulrpc_stream_outcome outcome;

	s->events = 0;
	channel_unlock(ch);
	if (shard_is_mute(ch->shard))
		events = 0;
	if (events & EVENT_READABLE && u.readable)
		u.readable(u.arg, s);
	if (events & EVENT_WRITABLE && u.writable)
		u.writable(u.arg, s);
	/* The scope does not change while the stream is there. */
	if (events & EVENT_GIVEN_UP)
		scope_cancel(s->scope);
	if (events & EVENT_ENDED)
		rpc_stream_seen_over(s);
	if (events & EVENT_ENDED && u.ended) {
		BUG_ON(ulrpc_stream_outcome(s, &outcome));
		u.ended(u.arg, s, &outcome);
	}
	if (unlikely(shard_guard_is_late(ch->shard)))
		lnet_guard_end(ch->shard->node, ch->shard->cpt,
			       "a callback of a stream");
	channel_lock(ch);
}

/* Calls the users' callbacks. Events that the callbacks themselves cause are
 * told in the next turn. */
static void tell_users(struct channel *ch)
{
	struct list now;
	struct ulrpc_stream *s;

	list_init(&now);
	list_splice_tail(&now, &ch->events);
	while ((s = list_pop(&now, struct ulrpc_stream, of_events))) {
		tell_user(ch, s);
		rpc_stream_unref(s);
	}
}

static void channel_arm(struct channel *ch, uint64_t at)
{
	if (ch->closed || at == TIME_NEVER)
		shard_cancel(ch->shard, &ch->timer);
	else
		shard_arm(ch->shard, &ch->timer, at);
}

/* Handles the deadlines that have passed. Returns the next deadline, in ns;
 * TIME_NEVER: there is none. */
static uint64_t deadlines_pass(struct channel *ch, uint64_t now)
{
	struct heap_node *n;

	while ((n = heap_first(&ch->deadlines)) && n->key <= now) {
		struct ulrpc_stream *s =
			container_of(n, struct ulrpc_stream, due);

		heap_del(&ch->deadlines, n);
		s->timed = false;
		ch->ops->on_deadline(s);
	}
	return n ? n->key : TIME_NEVER;
}

static void channel_run(struct channel *ch)
{
	uint64_t now = shard_now(ch->shard), at, next;

	channel_lock(ch);
	if (!ch->ended && ch->end.cause)
		channel_end(ch, ch->end.status, ch->end.cause);
	tell_users(ch);
	at = deadlines_pass(ch, now);
	next = ch->ops->tick(ch, now);
	ch->ops->flush(ch);
	channel_arm(ch, MIN(at, next));
	channel_unlock(ch);
}

static void channel_on_work(struct ulnet_work *work)
{
	struct channel *ch = container_of(work, struct channel, work);
	struct shard *s = ch->shard;

	channel_lock(ch);
	ch->given = false;
	channel_unlock(ch);
	channel_run(ch);
	channel_put(ch);
	shard_taken(s);
}

static void channel_on_timer(struct ulnet_timer *timer)
{
	struct channel *ch = container_of(timer, struct channel, timer);

	channel_get(ch);
	channel_run(ch);
	channel_put(ch);
}
