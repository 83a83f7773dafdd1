/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/stream/under.h"
#include "rpc/streaming.h"
#include "rpc/text.h"
#include "ulnet/intercept.h"

/* ---- the longest message ---- */

/* Returns the bytes of the longest message for which there is ever room in
 * @window. Any stream takes ULRPC_STREAM_MESSAGE_MAX bytes. */
static uint32_t longest(const struct credit *window)
{
	return (uint32_t)MAX(ULRPC_STREAM_MESSAGE_MAX,
			     MIN(window->bytes, ULRPC_STREAM_LONG_MAX));
}

void rpc_stream_open(struct ulrpc_stream *s, const struct credit *window,
		     bool longs)
{
	s->open = true;
	s->window.messages = MIN(window->messages, s->grant.messages);
	s->window.bytes = MIN(window->bytes, s->grant.bytes);
	s->longs = longs;
	s->longest_out = longs ? longest(&s->window) : ULRPC_STREAM_MESSAGE_MAX;
}

uint32_t ulrpc_stream_message_max(struct ulrpc_stream *stream)
{
	uint32_t length;

	channel_lock(stream->ch);
	length = stream->longest_out;
	channel_unlock(stream->ch);
	return length;
}

/* ---- life ---- */

struct ulrpc_stream *rpc_stream_new(struct channel *ch, uint32_t id,
				    const struct credit *grant,
				    uint64_t deadline)
{
	struct ulrpc_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->ch = channel_get(ch);
	s->id = id;
	s->grant = *grant;
	s->longest_in = s->longest_out = longest(grant);
	s->deadline = deadline;
	s->refs = 1;
	s->held = true;
	s->unread = true;
	s->execution = ULRPC_EXECUTION_UNKNOWN;
	list_init(&s->of_events);
	list_init(&s->of_opening);
	return s;
}

/* bytes of a block for several messages */
#define BLOCK 4000u

static bool has_message(const struct ulrpc_stream *s)
{
	return s->first && (s->first->at < s->first->len || s->first->next);
}

/* Frees the first block. */
static void first_free(struct ulrpc_stream *s)
{
	struct messages *b = s->first;

	s->first = b->next;
	if (!s->first)
		s->last = NULL;
	free(b);
}

static void messages_free(struct ulrpc_stream *s)
{
	struct messages *mine = s->current;

	if (mine)
		s->first = mine->next;
	while (s->first)
		first_free(s);
	if (!mine)
		return;
	mine->at = mine->len;
	mine->next = NULL;
	s->first = s->last = mine;
}

static void seen_free(struct ulrpc_stream *s)
{
	if (s->call_seen)
		client_seen_put(s->call_seen);
	if (s->request_seen)
		request_seen_put(s->request_seen);
	s->call_seen = NULL;
	s->request_seen = NULL;
}

void rpc_stream_unref(struct ulrpc_stream *s)
{
	if (--s->refs)
		return;
	s->current = NULL;
	messages_free(s);
	seen_free(s);
	under_leave(s);
	if (s->scope)
		scope_put(s->scope);
	if (s->adds)
		annex_fini(s->adds);
	free(s->adds);
	free(s->came_bytes);
	free(s->elsewhere);
	free(s->text);
	channel_put(s->ch);
	free(s);
}

int rpc_stream_link(struct ulrpc_stream *s)
{
	struct channel *ch = s->ch;
	int rc = hash_add(&ch->streams, &s->by_id, channel_hash(ch, s->id));

	if (rc)
		return rc;
	s->linked = true;
	s->refs++;
	ch->batch_max = MAX(ch->batch_max, batch_of_one(s->longest_in));
	if (s->deadline != TIME_NEVER) {
		s->timed = true;
		heap_add(&ch->deadlines, &s->due, s->deadline);
		channel_kick(ch);
	}
	return 0;
}

static void untime(struct ulrpc_stream *s)
{
	if (s->timed)
		heap_del(&s->ch->deadlines, &s->due);
	s->timed = false;
}

void rpc_stream_unlink(struct ulrpc_stream *s)
{
	untime(s);
	if (!s->linked)
		return;
	s->linked = false;
	hash_del(&s->ch->streams, &s->by_id);
	if (s->ch->ops->unlinked)
		s->ch->ops->unlinked(s);
	rpc_stream_unref(s);
}

void rpc_stream_text_set(struct ulrpc_stream *s, const void *text,
			 size_t length)
{
	free(s->text);
	s->text = length ? malloc(ULRPC_TEXT_MAX) : NULL;
	if (s->text)
		text_take(s->text, text, length);
}

/* ---- events ---- */

static bool stream_wants(const struct ulrpc_stream *s, unsigned int event)
{
	if (!s->watched)
		return false;
	switch (event) {
	case EVENT_READABLE:
		return s->user.readable;
	case EVENT_WRITABLE:
		return s->user.writable;
	default:
		return s->user.ended;
	}
}

static bool stream_is_seen(const struct ulrpc_stream *s)
{
	return unlikely((uintptr_t)s->call_seen | (uintptr_t)s->request_seen);
}

/* Wakes threads that wait for something of @s. */
static void wake(const struct ulrpc_stream *s)
{
	if (s->ch->waiters)
		wait_wake(&s->ch->wait);
}

void rpc_stream_event(struct ulrpc_stream *s, unsigned int event)
{
	struct channel *ch = s->ch;

	wake(s);
	if (!stream_wants(s, event) && event != EVENT_GIVEN_UP &&
	    !(event == EVENT_ENDED && stream_is_seen(s)))
		return;
	s->events |= (uint8_t)event;
	if (!list_empty(&s->of_events))
		return;
	s->refs++;
	list_add_tail(&ch->events, &s->of_events);
	channel_kick(ch);
}

static void call_seen_over(struct ulrpc_stream *s,
			   const struct ulrpc_stream_outcome *from,
			   uint64_t total)
{
	struct ulrpc_outcome o = {
		.status = from->status,
		.cause = from->cause,
		.execution = from->execution,
		.bulk_free = true,
		.local = LNET_NID_ANY,
		.target = from->server,
		.total = total,
		.service = total,
	};

	memcpy(o.text, from->text, sizeof(o.text));
	client_seen_over(s->call_seen, &o, s->read.bytes);
}

static void request_seen_told(struct ulrpc_stream *s,
			      const struct ulrpc_stream_outcome *from,
			      uint64_t total)
{
	struct ulrpc_request_end end = {
		.cause = from->cause,
		.status = from->status,
		.service_time = total,
		.received = s->read.bytes,
		.sent = s->sent.bytes,
	};

	request_seen_over(s->request_seen, &end);
}

void rpc_stream_seen_over(struct ulrpc_stream *s)
{
	struct ulrpc_stream_outcome o;
	uint64_t now = shard_now(s->ch->shard);
	uint64_t total = now > s->began ? (now - s->began) / NSEC_PER_USEC : 0;

	if (!stream_is_seen(s))
		return;
	BUG_ON(ulrpc_stream_outcome(s, &o));
	if (s->call_seen)
		call_seen_over(s, &o, total);
	if (s->request_seen)
		request_seen_told(s, &o, total);
	channel_lock(s->ch);
	seen_free(s);
	channel_unlock(s->ch);
}

/* Called when ulrpc_stream_next() has something to return: tells the user. */
static void readable(struct ulrpc_stream *s)
{
	if (s->unread)
		rpc_stream_event(s, EVENT_READABLE);
	s->unread = false;
}

void rpc_stream_writable(struct ulrpc_stream *s)
{
	if (!s->unsent)
		return;
	s->unsent = false;
	rpc_stream_event(s, EVENT_WRITABLE);
}

void rpc_stream_no_more(struct ulrpc_stream *s)
{
	s->recv_closed = true;
	readable(s);
}

void rpc_stream_drop(struct ulrpc_stream *s)
{
	s->canceled = true;
	messages_free(s);
	wake(s);
}

/* Called when @s ends: unless its handler has done that, cancels what was made
 * for it. */
static void give_up(struct ulrpc_stream *s)
{
	if (!s->serving || s->answered || s->given_up)
		return;
	s->given_up = true;
	if (s->scope)
		rpc_stream_event(s, EVENT_GIVEN_UP);
}

void rpc_stream_over(struct ulrpc_stream *s, int status, enum ulrpc_cause cause)
{
	if (s->over)
		return;
	s->over = true;
	under_leave(s);
	give_up(s);
	s->end = (struct stream_end){ status, cause };
	untime(s);
	messages_free(s);
	readable(s);
	rpc_stream_event(s, EVENT_ENDED);
}

void rpc_stream_close_frame(struct ulrpc_stream *s)
{
	uint8_t body[CLOSE_SIZE];

	if (s->close_sent)
		return;
	s->close_sent = true;
	s->send_closed = true;
	store_le64(body, s->read.messages);
	channel_frame_sure(s->ch, s->id, FRAME_CLOSE, body, sizeof(body));
}

void rpc_stream_end_frame(struct ulrpc_stream *s, int status,
			  enum ulrpc_cause cause, const char *text)
{
	size_t length = text ? text_fit(text, ULRPC_TEXT_MAX - 1) : 0;
	uint8_t body[END_SIZE + ANNEX_HEAD + ULRPC_METADATA_MAX +
		     ULRPC_TEXT_MAX];
	bool has = s->annexes && s->adds && s->adds->length;
	const struct annex *adds = has ? s->adds : NULL;
	uint8_t *p = body + END_SIZE;

	if (s->send_closed)
		return;
	s->send_closed = true;
	s->recv_closed = true;
	give_up(s);
	rpc_stream_drop(s);
	s->end = (struct stream_end){ status, cause };
	store_le32(body, (uint32_t)-status);
	store_le32(body + 4, cause | (adds ? END_ANNEX : 0));
	store_le64(body + 8, s->read.messages);
	if (adds)
		p = annex_put(p, adds);
	if (length)
		p = mempcpy(p, text, length);
	channel_frame_sure(s->ch, s->id, FRAME_END, body, (size_t)(p - body));
	readable(s);
}

void rpc_stream_settle(struct ulrpc_stream *s)
{
	if (!s->ending || has_message(s) || s->over)
		return;
	rpc_stream_close_frame(s);
	s->undelivered = s->sent.messages - s->delivered.messages;
	rpc_stream_over(s, s->end.status, s->end.cause);
	if (!s->opening)
		rpc_stream_unlink(s);
}

/* ---- what comes ---- */

/* Returns room for a message of @length bytes, as struct messages has it; NULL:
 * no memory. */
static uint8_t *message_room(struct ulrpc_stream *s, uint32_t length)
{
	uint32_t need = 8 + (length + 7) / 8 * 8;
	struct messages *b = s->last;
	uint32_t cap = need;

	if (!b || b->cap - b->len < need) {
		if (has_message(s))
			cap = MAX(need, BLOCK);
		b = malloc(sizeof(*b) + cap);
		if (!b)
			return NULL;
		*b = (struct messages){ .cap = cap };
		if (s->last)
			s->last->next = b;
		else
			s->first = b;
		s->last = b;
	}
	b->len += need;
	return b->bytes + b->len - need;
}

int rpc_stream_on_message(struct ulrpc_stream *s, const struct frame *f)
{
	uint8_t *room;

	if (s->ending || (s->recv_closed && !s->send_closed) ||
	    f->length > s->longest_in)
		return -EPROTO;
	/* After this side has given up, messages are dropped. */
	if (s->canceled || s->over)
		return 0;
	if (s->received.messages - s->read.messages >= s->grant.messages ||
	    s->received.bytes - s->read.bytes >= s->grant.bytes)
		return -EPROTO;
	room = message_room(s, f->length);
	if (!room)
		return -ENOMEM;
	store_le64(room, f->length);
	memcpy(room + 8, f->body, f->length);
	s->received.messages++;
	s->received.bytes += f->length;
	readable(s);
	return 0;
}

int rpc_stream_on_read(struct ulrpc_stream *s, uint64_t messages)
{
	if (messages < s->delivered.messages || messages > s->sent.messages)
		return -EPROTO;
	s->delivered.messages = messages;
	return 0;
}

int rpc_stream_on_credit(struct ulrpc_stream *s, const struct frame *f)
{
	uint64_t bytes;

	if (f->length != CREDIT_SIZE || s->ending)
		return -EPROTO;
	bytes = load_le64(f->body + 8);
	if (bytes < s->delivered.bytes || bytes > s->sent.bytes)
		return -EPROTO;
	s->delivered.bytes = bytes;
	if (rpc_stream_on_read(s, load_le64(f->body)))
		return -EPROTO;
	rpc_stream_writable(s);
	return 0;
}

/* ---- sending ---- */

static bool has_credit(const struct ulrpc_stream *s)
{
	return s->sent.messages - s->delivered.messages < s->window.messages &&
	       s->sent.bytes - s->delivered.bytes < s->window.bytes;
}

static inline int send_locked(struct ulrpc_stream *s, const void *body,
			      size_t length)
{
	int rc;

	if (length > s->longest_out)
		return -EMSGSIZE;
	if (s->over || s->send_closed || s->canceled || s->ending)
		return -EPIPE;
	if (!s->open || !has_credit(s)) {
		s->unsent = true;
		return -EAGAIN;
	}
	rc = channel_frame(s->ch, s->id, FRAME_MESSAGE, body, length);
	if (rc)
		return rc;
	s->sent.messages++;
	s->sent.bytes += length;
	return 0;
}

int ulrpc_stream_send(struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	int rc;

	channel_lock(stream->ch);
	rc = send_locked(stream, body, length);
	channel_unlock(stream->ch);
	return rc;
}

int ulrpc_stream_close_send(struct ulrpc_stream *stream)
{
	struct channel *ch = stream->ch;
	int rc = 0;

	if (stream->serving)
		return -EINVAL;
	channel_lock(ch);
	if (stream->over || stream->canceled || stream->send_closed)
		rc = -EPIPE;
	else if (stream->open)
		rc = channel_frame(ch, stream->id, FRAME_HALF, NULL, 0);
	if (!rc) {
		stream->send_closed = true;
		wake(stream);
	}
	channel_unlock(ch);
	return rc;
}

/* ---- reading ---- */

static void tell_read(struct ulrpc_stream *s)
{
	uint64_t messages = s->read.messages - s->told.messages;
	uint64_t bytes = s->read.bytes - s->told.bytes;
	uint8_t body[CREDIT_SIZE];

	if (s->recv_closed || s->ending || s->over || s->canceled ||
	    s->credit_out ||
	    (2 * messages < s->grant.messages && 2 * bytes < s->grant.bytes))
		return;
	s->told = s->read;
	s->credit_out = true;
	store_le64(body, s->read.messages);
	store_le64(body + 8, s->read.bytes);
	channel_frame_sure(s->ch, s->id, FRAME_CREDIT, body, sizeof(body));
}

void rpc_stream_on_sent(struct ulrpc_stream *s, uint32_t kind)
{
	if (kind == FRAME_CREDIT) {
		s->credit_out = false;
		tell_read(s);
	} else if (kind == FRAME_END) {
		s->end_sent = true;
		if (s->closed)
			rpc_stream_unlink(s);
	}
}

static int next_locked(struct ulrpc_stream *s, const void **body_p,
		       size_t *length_p)
{
	struct messages *b;
	uint32_t length;

	s->current = NULL;
	if (s->first && s->first->at == s->first->len)
		first_free(s);
	b = s->first;
	if (!b) {
		if (s->over || s->recv_closed || s->canceled || s->ending)
			return 0;
		s->unread = true;
		return -EAGAIN;
	}
	s->current = b;
	length = (uint32_t)load_le64(b->bytes + b->at);
	*body_p = b->bytes + b->at + 8;
	*length_p = length;
	b->at += 8 + (length + 7) / 8 * 8;
	s->read.messages++;
	s->read.bytes += length;
	tell_read(s);
	rpc_stream_settle(s);
	return 1;
}

int ulrpc_stream_next(struct ulrpc_stream *stream, const void **body_p,
		      size_t *length_p)
{
	int rc;

	channel_lock(stream->ch);
	rc = next_locked(stream, body_p, length_p);
	channel_unlock(stream->ch);
	return rc;
}

/* ---- waiting ---- */

struct waiting {
	struct ulrpc_stream *s;
	const void *body;
	size_t length;
	struct ulrpc_stream_outcome *outcome;
	int rc;
};

static bool try_send(void *arg)
{
	struct waiting *w = arg;

	w->rc = send_locked(w->s, w->body, w->length);
	return w->rc != -EAGAIN;
}

static bool try_next(void *arg)
{
	struct waiting *w = arg;

	w->rc = next_locked(w->s, &w->body, &w->length);
	return w->rc != -EAGAIN;
}

static bool try_over(void *arg)
{
	struct waiting *w = arg;

	w->rc = w->s->over ? 0 : -EAGAIN;
	return w->s->over;
}

/* Waits until @try(@w) returns true. Returns w->rc, which @try has set, or an
 * error of wait_until(). */
static int stream_wait(struct waiting *w, bool (*try)(void *arg))
{
	struct channel *ch = w->s->ch;
	int rc = 0;

	channel_lock(ch);
	if (!try(w)) {
		rc = ch->dead ? -ESHUTDOWN : 0;
		ch->waiters++;
		channel_unlock(ch);
		if (!rc)
			rc = wait_until(&ch->wait, ch->shard->node, try, w,
					TIME_NEVER);
		channel_lock(ch);
		ch->waiters--;
	}
	channel_unlock(ch);
	return rc ? rc : w->rc;
}

int ulrpc_stream_send_wait(struct ulrpc_stream *stream, const void *body,
			   size_t length)
{
	struct waiting w = { .s = stream, .body = body, .length = length };

	return stream_wait(&w, try_send);
}

int ulrpc_stream_next_wait(struct ulrpc_stream *stream, const void **body_p,
			   size_t *length_p)
{
	struct waiting w = { .s = stream };
	int rc = stream_wait(&w, try_next);

	if (rc == 1) {
		*body_p = w.body;
		*length_p = w.length;
	}
	return rc;
}

/* ---- the end ---- */

static void outcome_fill(const struct ulrpc_stream *s,
			 struct ulrpc_stream_outcome *o)
{
	*o = (struct ulrpc_stream_outcome){
		.status = s->end.status,
		.cause = s->end.cause,
		.execution = s->execution,
		.server = s->elsewhere ? *s->elsewhere : s->ch->server,
		.sent = s->sent.messages,
		.delivered = s->delivered.messages,
		.undelivered = s->undelivered,
		.received = s->read.messages,
	};
	if (s->text)
		text_copy(o->text, sizeof(o->text), s->text);
	else if (s->cut && s->ch->why)
		text_copy(o->text, sizeof(o->text), s->ch->why);
}

/* ---- metadata ---- */

bool rpc_stream_end_annex(struct ulrpc_stream *s, struct wire_view *rest)
{
	struct wire_view annex;
	size_t length;

	if (!annex_split(rest, &annex))
		return false;
	length = view_length(annex);
	if (s->came_bytes || !length)
		return true;
	s->came_bytes = malloc(length);
	if (!s->came_bytes)
		return true;
	memcpy(s->came_bytes, annex.p, length);
	s->came = (struct wire_view){ s->came_bytes, s->came_bytes + length };
	return true;
}

/* Sets *@annex to what has come. Returns 0, -ENOENT or -EAGAIN. */
static int stream_came(const struct ulrpc_stream *s, struct wire_view *annex)
{
	if (!s->serving && !s->over)
		return -EAGAIN;
	*annex = s->came;
	return s->came.p ? 0 : -ENOENT;
}

int ulrpc_stream_metadata(struct ulrpc_stream *stream, unsigned int index,
			  struct ulrpc_metadata *pair)
{
	struct wire_view annex;
	int rc;

	channel_lock(stream->ch);
	rc = stream_came(stream, &annex);
	channel_unlock(stream->ch);
	return rc ? rc : annex_pair(annex, index, pair);
}

int ulrpc_stream_find(struct ulrpc_stream *stream, const char *name,
		      struct ulrpc_metadata *pair)
{
	struct wire_view annex;
	int rc;

	channel_lock(stream->ch);
	rc = stream_came(stream, &annex);
	channel_unlock(stream->ch);
	return rc ? rc : annex_find(annex, name, pair);
}

int ulrpc_stream_details(struct ulrpc_stream *stream,
			 struct ulrpc_details *details)
{
	struct wire_view annex;
	int rc;

	channel_lock(stream->ch);
	rc = stream->serving ? -EINVAL : stream_came(stream, &annex);
	channel_unlock(stream->ch);
	return rc ? rc : annex_details(annex, details);
}

/* Makes s->adds, unless it is there. Returns 0, -EINVAL, -EPIPE or -ENOMEM. */
static int stream_adds(struct ulrpc_stream *s)
{
	if (!s->serving)
		return -EINVAL;
	if (s->send_closed || s->over)
		return -EPIPE;
	if (s->adds)
		return 0;
	s->adds = malloc(sizeof(*s->adds));
	if (!s->adds)
		return -ENOMEM;
	annex_init(s->adds);
	return 0;
}

int ulrpc_stream_add(struct ulrpc_stream *stream, const char *name,
		     const void *value, size_t length)
{
	int rc;

	channel_lock(stream->ch);
	rc = stream_adds(stream);
	if (!rc)
		rc = annex_add(stream->adds, name, value, length);
	channel_unlock(stream->ch);
	return rc;
}

int ulrpc_stream_add_details(struct ulrpc_stream *stream,
			     const struct ulrpc_details *details)
{
	int rc;

	channel_lock(stream->ch);
	rc = stream_adds(stream);
	if (!rc)
		rc = annex_add_details(stream->adds, details);
	channel_unlock(stream->ch);
	return rc;
}

int ulrpc_stream_outcome(struct ulrpc_stream *stream,
			 struct ulrpc_stream_outcome *outcome)
{
	int rc = -EAGAIN;

	channel_lock(stream->ch);
	if (stream->over) {
		outcome_fill(stream, outcome);
		rc = 0;
	}
	channel_unlock(stream->ch);
	return rc;
}

int ulrpc_stream_outcome_wait(struct ulrpc_stream *stream,
			      struct ulrpc_stream_outcome *outcome)
{
	struct waiting w = { .s = stream };
	int rc = stream_wait(&w, try_over);

	return rc ? rc : ulrpc_stream_outcome(stream, outcome);
}

void rpc_stream_cancel(struct ulrpc_stream *s)
{
	if (s->over || s->canceled)
		return;
	if (s->serving) {
		rpc_stream_end_frame(s, -ECANCELED, ULRPC_CAUSE_CANCELED, NULL);
		return;
	}
	rpc_stream_drop(s);
	if (s->ending) {
		/* END has come, but not all messages were read. */
		s->end =
			(struct stream_end){ -ECANCELED, ULRPC_CAUSE_CANCELED };
		rpc_stream_settle(s);
	} else {
		if (s->open)
			rpc_stream_close_frame(s);
		readable(s);
	}
}

void ulrpc_stream_cancel(struct ulrpc_stream *stream)
{
	channel_lock(stream->ch);
	rpc_stream_cancel(stream);
	channel_unlock(stream->ch);
}

void ulrpc_stream_end(struct ulrpc_stream *stream, int status, const char *text)
{
	struct channel *ch = stream->ch;

	channel_lock(ch);
	if (stream->serving && !stream->over && !stream->send_closed) {
		stream->answered = true;
		if (text)
			rpc_stream_text_set(stream, text,
					    text_fit(text, ULRPC_TEXT_MAX - 1));
		rpc_stream_end_frame(
			stream, status,
			status ? ULRPC_CAUSE_HANDLER : ULRPC_CAUSE_OK, text);
	}
	channel_unlock(ch);
}

void ulrpc_stream_end_status(struct ulrpc_stream *stream,
			     enum ulrpc_status status, const char *text)
{
	ulrpc_stream_end(stream, ulrpc_status_errno(status), text);
}

enum ulrpc_status ulrpc_stream_status_of(
	const struct ulrpc_stream_outcome *outcome)
{
	const struct ulrpc_outcome o = { .status = outcome->status,
					 .cause = outcome->cause };

	return ulrpc_status_of(&o);
}

void ulrpc_stream_put(struct ulrpc_stream *stream)
{
	struct channel *ch;

	if (!stream)
		return;
	ch = channel_get(stream->ch);
	channel_lock(ch);
	rpc_stream_cancel(stream);
	stream->held = false;
	rpc_stream_unref(stream);
	channel_unlock(ch);
	channel_put(ch);
}

void ulrpc_stream_watch(struct ulrpc_stream *stream,
			const struct ulrpc_stream_events *events)
{
	struct channel *ch = stream->ch;

	channel_lock(ch);
	stream->user = *events;
	stream->watched = true;
	if (!stream->unread)
		rpc_stream_event(stream, EVENT_READABLE);
	if (stream->over)
		rpc_stream_event(stream, EVENT_ENDED);
	channel_unlock(ch);
}
