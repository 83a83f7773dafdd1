/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels at the client: the calls that carry messages, and what comes. */
#include "rpc/stream/called.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/stream/streams.h"
#include "rpc/streaming.h"
#include "rpc/text.h"

/* ms for which the server may keep a pull call: at first, and at most. It
 * doubles as long as nothing comes */
#define HOLD_MIN 250u
#define HOLD_MAX 4000u
/* A server that does not keep pull calls, and has no batches, would have this
 * side make them as fast as it can. A few such replies in a row are usual. */
#define HASTY_US  (HOLD_MIN * UINT64_C(1000) / 2)
#define HASTY_MAX 100u
/* bytes of a reply to a pull call, at most, while nothing comes */
#define ROOM_QUIET 4096u

/* CLOSE frames in channel.out for streams that this side does not know any
 * more, at most */
#define STRAYS_MAX 1024u

/* ---- calls of the channel ---- */

/* Returns how the channel ends when a call of it has ended with @o. */
static struct stream_end end_of(const struct ulrpc_outcome *o)
{
	enum ulrpc_cause cause = o->cause;

	if (cause == ULRPC_CAUSE_HANDLER && o->status == -ENOENT)
		cause = ULRPC_CAUSE_FORGOTTEN;
	else if (cause == ULRPC_CAUSE_HANDLER && o->status == -ESHUTDOWN)
		cause = ULRPC_CAUSE_SHUTDOWN;
	else if (cause == ULRPC_CAUSE_HANDLER)
		cause = ULRPC_CAUSE_BAD_REQUEST;
	return (struct stream_end){ cause_status(cause), cause };
}

/* Ends the channel if @o, with which a call of it has ended, is not good.
 * Returns whether it is. */
static bool is_good(struct channel *ch, const struct ulrpc_outcome *o)
{
	struct stream_end end = end_of(o);

	if (!end.cause)
		return true;
	channel_say(ch, o->text);
	channel_end(ch, end.status, end.cause);
	return false;
}

static void on_pushed(void *arg, const struct ulrpc_outcome *outcome,
		      const void *reply, size_t length)
{
	struct push *p = arg;
	struct channel *ch = &p->called->ch;

	(void)reply;
	(void)length;
	channel_lock(ch);
	p->busy = false;
	p->called->npush--;
	(void)is_good(ch, outcome);
	channel_kick(ch);
	channel_unlock(ch);
	channel_put(ch);
}

/* @took: us from the call to its reply. */
static int on_batch_pulled(struct called *c, const void *reply, size_t length,
			   uint64_t took)
{
	c->hasty = length || took >= HASTY_US ? 0 : c->hasty + 1;
	if (c->hasty > HASTY_MAX)
		return -EPROTO;
	if (length) {
		c->want = PULLS_MAX;
		c->hold = HOLD_MIN;
		return channel_receive(&c->ch, reply, length);
	}
	c->want = 1;
	c->hold = MIN(2 * c->hold, HOLD_MAX);
	return 0;
}

static void on_pulled(void *arg, const struct ulrpc_outcome *outcome,
		      const void *reply, size_t length)
{
	struct pull *p = arg;
	struct called *c = p->called;
	struct channel *ch = &c->ch;
	struct ulrpc_call *call;
	int rc = 0;

	channel_lock(ch);
	p->busy = false;
	c->npull--;
	call = p->call;
	p->call = NULL;
	if (is_good(ch, outcome) && !ch->ended)
		rc = on_batch_pulled(c, reply, length, outcome->total);
	if (rc == -ENOMEM)
		channel_end(ch, rc, ULRPC_CAUSE_NO_MEMORY);
	else if (rc)
		channel_end(ch, rc, ULRPC_CAUSE_BAD_REPLY);
	channel_kick(ch);
	channel_unlock(ch);
	ulrpc_call_put(call);
	channel_put(ch);
}

/* Returns the number of the oldest batch that may not have arrived. */
static uint64_t oldest(const struct called *c)
{
	uint64_t number = c->ch.next_out;

	for (unsigned int i = 0; i < PUSHES; i++)
		if (c->push[i].busy)
			number = MIN(number, c->push[i].number);
	return number;
}

/* Makes a call to the carrier. The lock is released meanwhile. */
static int carry(struct called *c, const char *method, const void *body,
		 size_t length, const struct ulrpc_call_conf *conf,
		 ulrpc_done_fn done, void *arg, struct ulrpc_call **call_p)
{
	struct ulrpc_client *const *carriers =
		c->st->named ? c->carriers : c->st->carriers;
	struct ulrpc_client *client = carriers[MAX(c->flavour, c->st->least)];
	int rc;

	/* The service has named a flavour that this node cannot have. */
	if (!client)
		return -EPROTO;
	channel_get(&c->ch);
	channel_unlock(&c->ch);
	rc = ulrpc_call(client, ulrpc_method(method), body, length, conf, done,
			arg, call_p);
	channel_lock(&c->ch);
	if (rc)
		channel_put(&c->ch);
	return rc;
}

static int push_one(struct called *c, struct push *p)
{
	struct channel *ch = &c->ch;
	struct ulrpc_call_conf conf = { .deadline =
						atomic_load(&c->st->patience),
					.reply_max = 64 };
	size_t length;
	uint8_t *frames = channel_next(ch, BATCH_MAX - BATCH_HEAD, &length);
	uint8_t *begin = frames - CHUNK_FRONT;
	int rc;

	store_le64(begin, ch->key);
	store_le64(begin + 8, ch->making);
	store_le64(begin + PUSH_HEAD, ch->next_out);
	store_le64(begin + PUSH_HEAD + 8, 0);
	p->busy = true;
	p->number = ch->next_out;
	c->npush++;
	/* The lock is released meanwhile, but other threads only add to the
	 * chunk. */
	rc = carry(c, STREAM_PUSH, begin, CHUNK_FRONT + length, &conf,
		   on_pushed, p, NULL);
	if (rc) {
		p->busy = false;
		c->npush--;
		return rc;
	}
	channel_sent(ch, length);
	return 0;
}

/* Returns the bytes that a reply to a pull call may bring at once. What is
 * longer is fetched, as far as the node does that at all. */
static uint32_t pull_room(const struct called *c)
{
	bool fetches = c->ch.shard->rpc->conf.reply_bytes_max >= BATCH_MAX;

	return c->want == 1 && fetches ? ROOM_QUIET : BATCH_MAX;
}

static int pull_one(struct called *c, struct pull *p)
{
	struct ulrpc_call_conf conf = {
		.deadline = atomic_load(&c->st->patience) +
			    c->hold * UINT64_C(1000),
		.reply_max = pull_room(c),
	};
	uint8_t body[PULL_SIZE];
	struct ulrpc_call *call;
	int rc;

	store_le64(body, c->ch.key);
	store_le64(body + 8, c->ch.making);
	store_le64(body + 16, c->ch.next_in);
	store_le32(body + 24, c->hold);
	p->busy = true;
	c->npull++;
	rc = carry(c, STREAM_PULL, body, sizeof(body), &conf, on_pulled, p,
		   &call);
	if (rc) {
		p->busy = false;
		c->npull--;
		return rc;
	}
	p->call = call;
	return 0;
}

static int make_calls(struct called *c)
{
	struct channel *ch = &c->ch;
	int rc = 0;

	for (unsigned int i = 0; i < PUSHES && !rc; i++)
		if (!c->push[i].busy && !list_empty(&ch->out) &&
		    ch->next_out < oldest(c) + BATCHES_AHEAD)
			rc = push_one(c, &c->push[i]);
	for (unsigned int i = 0; i < PULLS_MAX && !rc; i++)
		if (!c->pull[i].busy && c->npull < c->want && ch->streams.count)
			rc = pull_one(c, &c->pull[i]);
	return rc;
}

static void called_on_ended(struct called *c)
{
	for (unsigned int i = 0; i < PULLS_MAX; i++)
		if (c->pull[i].call)
			ulrpc_cancel(c->pull[i].call);
	called_unbind(c);
	if (c->retiring)
		streams_finish(c->st);
}

/* Is another server to be taken as soon as @c has no streams? */
static bool is_astray(const struct called *c)
{
	return c->bound && !c->ch.ended && client_is_astray(c->st->client);
}

static void called_flush(struct channel *ch)
{
	struct called *c = called_of(ch);
	int rc = 0;

	if (!ch->streams.count && (c->retiring || is_astray(c)))
		c->closing = true;
	if (!ch->ended && c->live)
		rc = make_calls(c);
	if (rc == -EPROTO)
		channel_end(ch, rc, ULRPC_CAUSE_BAD_REPLY);
	else if (rc)
		channel_end(ch, rc,
			    rc == -ENOMEM ? ULRPC_CAUSE_NO_MEMORY
					  : ULRPC_CAUSE_SHUTDOWN);
	else if (c->closing && !c->npush && (list_empty(&ch->out) || !c->live))
		channel_end(ch, -ECANCELED, ULRPC_CAUSE_CANCELED);
	if (ch->ended)
		called_on_ended(c);
}

/* ---- what comes ---- */

static int on_end_frame(struct ulrpc_stream *s, const struct frame *f)
{
	struct wire_view text = { f->body + END_SIZE, f->body + f->length };
	uint32_t negated, cause;

	if (f->length < END_SIZE || s->ending)
		return -EPROTO;
	negated = load_le32(f->body);
	cause = load_le32(f->body + 4);
	if (cause & END_ANNEX && !rpc_stream_end_annex(s, &text))
		return -EPROTO;
	cause &= ~END_ANNEX;
	if (negated > INT32_MAX || cause >= ULRPC_CAUSE_COUNT ||
	    !negated != !cause || rpc_stream_on_read(s, load_le64(f->body + 8)))
		return -EPROTO;
	if (s->over)
		return 0;
	s->ending = true;
	s->execution = ULRPC_EXECUTED;
	s->end = (struct stream_end){ -(int)negated, (enum ulrpc_cause)cause };
	if (s->canceled)
		s->end =
			(struct stream_end){ -ECANCELED, ULRPC_CAUSE_CANCELED };
	rpc_stream_text_set(s, text.p, view_length(text));
	rpc_stream_no_more(s);
	rpc_stream_writable(s);
	rpc_stream_settle(s);
	return 0;
}

void called_close_stray(struct channel *ch, uint32_t id)
{
	uint8_t none[CLOSE_SIZE] = { 0 };

	if (ch->strays >= STRAYS_MAX)
		return;
	ch->strays++;
	channel_frame_sure(ch, id, FRAME_CLOSE, none, sizeof(none));
}

static int called_on_frame(struct channel *ch, struct ulrpc_stream *s,
			   const struct frame *f)
{
	struct called *c = called_of(ch);

	if (f->kind == FRAME_HALF || f->kind == FRAME_CLOSE ||
	    (!s && (!f->stream || f->stream > c->last_id)))
		return -EPROTO;
	if (s)
		return on_end_frame(s, f);
	/* A frame of a stream that this side has given up. If the server has
	 * got no CLOSE, because the stream was opened too late, it gets one
	 * now; if too many CLOSE frames already wait, a later message of the
	 * stream causes it. */
	if (f->kind == FRAME_MESSAGE)
		called_close_stray(ch, f->stream);
	return 0;
}

static uint64_t called_tick(struct channel *ch, uint64_t now)
{
	(void)ch;
	(void)now;
	return TIME_NEVER;
}

void called_on_deadline(struct ulrpc_stream *s)
{
	/* The call that opens the stream has the same deadline, and tells
	 * better why the stream is not open: the name may be unknown, for
	 * example. */
	if (s->opening && !s->canceled) {
		s->late = true;
		return;
	}
	rpc_stream_drop(s);
	if (s->open)
		rpc_stream_close_frame(s);
	rpc_stream_over(s, -ETIMEDOUT, ULRPC_CAUSE_DEADLINE);
	if (!s->opening)
		rpc_stream_unlink(s);
}

static void called_unlinked(struct ulrpc_stream *s)
{
	if (!s->counted)
		return;
	s->counted = false;
	atomic_fetch_sub_explicit(&called_of(s->ch)->st->open, 1,
				  memory_order_relaxed);
}

static void called_on_end(struct channel *ch)
{
	(void)ch;
}

static void called_abandon(struct channel *ch)
{
	struct called *c = called_of(ch);
	struct ulrpc_stream *s;

	while ((s = list_pop(&c->opening, struct ulrpc_stream, of_opening)))
		rpc_stream_unref(s);
	for (unsigned int i = 0; i < PUSHES; i++)
		if (c->push[i].busy)
			channel_put(ch);
	for (unsigned int i = 0; i < PULLS_MAX; i++) {
		if (c->pull[i].busy)
			channel_put(ch);
		ulrpc_call_put(c->pull[i].call);
	}
}

static void called_free(struct channel *ch)
{
	struct called *c = called_of(ch);

	streams_del(ch);
	channel_fini(ch);
	streams_put(c->st);
	free(c);
}

static const struct channel_ops called_ops = {
	.on_frame = called_on_frame,
	.flush = called_flush,
	.tick = called_tick,
	.on_deadline = called_on_deadline,
	.unlinked = called_unlinked,
	.on_end = called_on_end,
	.abandon = called_abandon,
	.free = called_free,
};

/* ---- life ---- */

int called_new(struct ulrpc_streams *st, struct called **called_p)
{
	struct called *c = calloc(1, sizeof(*c));
	int rc = c ? channel_init(&c->ch, st->shard, &called_ops) : -ENOMEM;

	if (rc) {
		free(c);
		return rc;
	}
	list_init(&c->opening);
	c->st = st;
	atomic_fetch_add(&st->refs, 1);
	c->ch.key = ++st->key;
	c->ch.server = st->server;
	c->want = 1;
	c->hold = HOLD_MIN;
	for (unsigned int i = 0; i < PUSHES; i++)
		c->push[i].called = c;
	for (unsigned int i = 0; i < PULLS_MAX; i++)
		c->pull[i].called = c;
	streams_add(&c->ch);
	*called_p = c;
	return 0;
}

bool called_is_old(struct called *c)
{
	struct channel *ch = &c->ch;
	bool old;

	channel_lock(ch);
	old = ch->ended || ch->end.cause;
	if (!old && c->live && !ch->streams.count && !c->npush && !c->npull) {
		old = true;
		ch->end =
			(struct stream_end){ -ECANCELED, ULRPC_CAUSE_CANCELED };
		channel_kick(ch);
	}
	channel_unlock(ch);
	return old;
}

bool called_is_live(struct called *c)
{
	bool live;

	channel_lock(&c->ch);
	live = c->live;
	channel_unlock(&c->ch);
	return live;
}
