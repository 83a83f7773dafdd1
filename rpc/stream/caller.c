/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's side of streams: opens them, and makes the calls that carry
 * their messages. */
#include <errno.h>
#include <stdlib.h>

#include "rpc/flavour.h"
#include "rpc/keys.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/streams.h"
#include "rpc/streaming.h"
#include "rpc/text.h"

#define WINDOW_MESSAGES 64u
#define WINDOW_BYTES	65536u
/* default of ulrpc_streams_conf.patience, in us */
#define PATIENCE (60 * UINT64_C(1000000))

/* push calls that may be under way at a time */
#define PUSHES 4u
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

#define FLAVOURS (ULRPC_FLAVOUR_PRIVACY + 1)

struct called;

struct push {
	struct called *called;
	bool busy;
	uint64_t number; /* number of the batch that the call carries */
};

struct pull {
	struct called *called;
	bool busy;
	struct ulrpc_call *call;
};

/* A channel, as the client has it. */
struct called {
	struct channel ch;
	struct ulrpc_streams *st;
	uint32_t last_id; /* id of the stream that was made last */
	/* of ulrpc_stream.of_opening: streams whose opening call is under way
	 */
	struct list opening;
	bool live;	      /* the server knows the channel */
	bool closing;	      /* ulrpc_streams_close() was called */
	bool retiring; /* streams_retire() was called: ends with its streams */
	unsigned int flavour; /* the highest flavour of the channel's streams */
	unsigned int npush, npull;
	unsigned int want; /* how many pull calls to have under way */
	/* ms for which the server may keep the next pull call */
	uint32_t hold;
	/* how many pull calls in a row had no batch, and were hardly kept */
	unsigned int hasty;
	struct push push[PUSHES];
	struct pull pull[PULLS_MAX];
};

struct ulrpc_streams {
	/* immutable: */
	struct shard *shard; /* shard of the carriers */
	/* client of the service, which opens streams */
	struct ulrpc_client *client;
	/* Clients of the carrier: one for each flavour from @least on; NULL:
	 * this node cannot have that flavour. All are on one CPT, which may be
	 * another one than that of @client, as a NID may get another owner at
	 * any time. */
	struct ulrpc_client *carriers[FLAVOURS];
	unsigned int least;
	struct credit grant;
	/* us: time-out of push calls, and of opening a stream */
	uint64_t patience;

	/* one reference of the user, until the streams are closed, and one of
	 * each channel */
	atomic_uint refs;
	struct list of_node;

	/* guards what follows; taken before the lock of a channel */
	pthread_mutex_t lock;
	uint64_t key; /* key of the last channel that was made */
	bool closed;
	/* the channel of new streams; NULL: none was made yet, or the last one
	 * has ended */
	struct called *called;
};

static struct called *called_of(struct channel *ch)
{
	return container_of(ch, struct called, ch);
}

/* ---- struct ulrpc_streams ---- */

void ulrpc_streams_conf_init(struct ulrpc_streams_conf *conf)
{
	*conf = (struct ulrpc_streams_conf){ 0 };
	ulrpc_client_conf_init(&conf->client);
}

static void streams_put(struct ulrpc_streams *st)
{
	if (atomic_fetch_sub(&st->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&st->lock);
	free(st);
}

static void carriers_close(struct ulrpc_streams *st)
{
	for (unsigned int i = 0; i < FLAVOURS; i++) {
		ulrpc_client_close(st->carriers[i]);
		st->carriers[i] = NULL;
	}
}

/* Opens a client of the carrier for each flavour that a service may want, by
 * @opener, unless it is NULL. Returns 0; or -errno, and none is open; -EAGAIN:
 * they would be on several CPTs. */
static int carriers_try(struct ulrpc_streams *st, struct ulrpc *rpc,
			const struct ulrpc_client_conf *from,
			const struct carrier_opener *opener)
{
	struct ulrpc_client_conf conf = *from;
	unsigned int most =
		rpc_has_keys(rpc) ? ULRPC_FLAVOUR_PRIVACY : st->least;
	int rc = 0;

	conf.service = RPC_STREAM_CARRIER;
	conf.inflight_max = conf.inflight_begin = conf.batch_max = 0;
	conf.queue_max = 0;
	conf.queue_bytes = 0;
	/* Whether a stream waits for a server is a matter of its opening. */
	if (conf.wait_for_ready == ULRPC_WAIT_NOT)
		conf.wait_for_ready = ULRPC_WAIT_READY;
	for (unsigned int f = st->least; f <= most && !rc; f++) {
		conf.flavour = (enum ulrpc_flavour)f;
		rc = opener ? opener->open(opener->arg, &conf, &st->carriers[f])
			    : ulrpc_client_open(rpc, &conf, &st->carriers[f]);
		if (!rc && ulrpc_client_cpt(st->carriers[f]) !=
				   ulrpc_client_cpt(st->carriers[st->least]))
			rc = -EAGAIN;
	}
	if (rc)
		carriers_close(st);
	return rc;
}

static int carriers_open(struct ulrpc_streams *st, struct ulrpc *rpc,
			 const struct ulrpc_client_conf *conf,
			 const struct carrier_opener *opener)
{
	int rc;

	st->least = flavour_meant(conf->flavour, rpc_has_keys(rpc));
	do
		rc = carriers_try(st, rpc, conf, opener);
	while (rc == -EAGAIN);
	return rc;
}

static int key_draw(void *arg)
{
	struct ulrpc_streams *st = arg;

	lnet_random(st->shard->node, st->shard->cpt, &st->key, sizeof(st->key));
	return 0;
}

/* Sets what is known when the carriers are open. */
static void streams_set(struct ulrpc_streams *st, struct ulrpc *rpc,
			const struct ulrpc_streams_conf *conf)
{
	st->shard = &rpc->shards[ulrpc_client_cpt(st->carriers[st->least])];
	st->grant.messages =
		conf->window_messages ? conf->window_messages : WINDOW_MESSAGES;
	st->grant.bytes =
		conf->window_bytes ? conf->window_bytes : WINDOW_BYTES;
	st->patience = conf->patience ? conf->patience : PATIENCE;
	/* limited, so that a pull call can have more time than this */
	st->patience = MIN(st->patience, ULRPC_NEVER / 2);
}

/* Makes the node know @st, and lets it be used. */
static void streams_enter(struct ulrpc_streams *st)
{
	struct streams_node *n = st->shard->rpc->streams;

	atomic_init(&st->refs, 1);
	pthread_mutex_init(&st->lock, NULL);
	pthread_mutex_lock(&n->lock);
	list_add_tail(&n->callers, &st->of_node);
	pthread_mutex_unlock(&n->lock);
}

int ulrpc_streams_open(struct ulrpc *rpc, const struct ulrpc_streams_conf *conf,
		       struct ulrpc_streams **streams_p)
{
	struct ulrpc_streams *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	rc = ulrpc_client_open(rpc, &conf->client, &st->client);
	if (rc)
		goto err_free;
	client_opens_streams(st->client, OPEN_HEAD);
	rc = carriers_open(st, rpc, &conf->client, NULL);
	if (rc)
		goto err_close;
	streams_set(st, rpc, conf);
	rc = lnet_call(rpc->node, st->shard->cpt, key_draw, st);
	if (rc)
		goto err_carriers;
	streams_enter(st);
	*streams_p = st;
	return 0;

err_carriers:
	carriers_close(st);
err_close:
	ulrpc_client_close(st->client);
err_free:
	free(st);
	return rc;
}

int streams_open_at(struct ulrpc *rpc, const struct carrier_opener *opener,
		    const struct ulrpc_client_conf *conf,
		    struct ulrpc_streams **streams_p)
{
	const struct ulrpc_streams_conf rest = { .window_messages = 0 };
	struct ulrpc_streams *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	rc = carriers_open(st, rpc, conf, opener);
	if (rc) {
		free(st);
		return rc;
	}
	streams_set(st, rpc, &rest);
	key_draw(st);
	streams_enter(st);
	*streams_p = st;
	return 0;
}

unsigned int ulrpc_streams_cpt(const struct ulrpc_streams *streams)
{
	return streams->shard->cpt;
}

/* Called when nothing is sent any more: closes the clients, and drops the
 * user's reference. A second call has no effect. */
static void streams_finish(struct ulrpc_streams *st)
{
	struct streams_node *n = st->shard->rpc->streams;
	bool was;

	pthread_mutex_lock(&n->lock);
	was = !list_empty(&st->of_node);
	list_del(&st->of_node);
	pthread_mutex_unlock(&n->lock);
	if (!was)
		return;
	ulrpc_client_close(st->client);
	carriers_close(st);
	streams_put(st);
}

void callers_free(struct streams_node *n)
{
	struct ulrpc_streams *st;

	while ((st = list_pop(&n->callers, struct ulrpc_streams, of_node))) {
		if (st->called)
			channel_put(&st->called->ch);
		streams_put(st);
	}
}

/* Refuses new streams, and ends @streams: now, or when no stream is left. */
static void streams_leave(struct ulrpc_streams *streams, bool now)
{
	struct called *c;
	bool ended = true;

	pthread_mutex_lock(&streams->lock);
	streams->closed = true;
	c = streams->called;
	if (c) {
		channel_get(&c->ch);
		streams->called = NULL;
	}
	pthread_mutex_unlock(&streams->lock);
	if (c) {
		channel_lock(&c->ch);
		ended = c->ch.ended;
		c->closing = now;
		c->retiring = true;
		if (now)
			channel_cancel_streams(&c->ch);
		channel_kick(&c->ch);
		channel_unlock(&c->ch);
	}
	if (ended)
		streams_finish(streams);
	if (c)
		channel_put(&c->ch);
	if (c)
		channel_put(&c->ch); /* the reference of streams.called */
}

void ulrpc_streams_close(struct ulrpc_streams *streams)
{
	if (streams)
		streams_leave(streams, true);
}

void streams_retire(struct ulrpc_streams *streams)
{
	streams_leave(streams, false);
}

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

static void on_pushed(void *arg, const struct ulrpc_outcome *outcome,
		      const void *reply, size_t length)
{
	struct push *p = arg;
	struct channel *ch = &p->called->ch;
	struct stream_end end = end_of(outcome);

	(void)reply;
	(void)length;
	channel_lock(ch);
	p->busy = false;
	p->called->npush--;
	if (end.cause)
		channel_end(ch, end.status, end.cause);
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
	struct stream_end end = end_of(outcome);
	struct ulrpc_call *call;
	int rc = 0;

	channel_lock(ch);
	p->busy = false;
	c->npull--;
	call = p->call;
	p->call = NULL;
	if (end.cause)
		channel_end(ch, end.status, end.cause);
	else if (!ch->ended)
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
	struct ulrpc_client *client =
		c->st->carriers[MAX(c->flavour, c->st->least)];
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
	struct ulrpc_call_conf conf = { .deadline = c->st->patience,
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

static int pull_one(struct called *c, struct pull *p)
{
	struct ulrpc_call_conf conf = {
		.deadline = c->st->patience + c->hold * UINT64_C(1000),
		.reply_max = c->want > 1 ? BATCH_MAX : ROOM_QUIET,
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
	if (c->retiring)
		streams_finish(c->st);
}

static void called_flush(struct channel *ch)
{
	struct called *c = called_of(ch);
	int rc = 0;

	if (c->retiring && !ch->streams.count)
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

static int called_on_frame(struct channel *ch, struct ulrpc_stream *s,
			   const struct frame *f)
{
	struct called *c = called_of(ch);
	uint8_t none[CLOSE_SIZE] = { 0 };

	if (f->kind == FRAME_HALF || f->kind == FRAME_CLOSE ||
	    (!s && (!f->stream || f->stream > c->last_id)))
		return -EPROTO;
	if (s)
		return on_end_frame(s, f);
	/* A frame of a stream that this side has given up. If the server has
	 * got no CLOSE, because the stream was opened too late, it gets one
	 * now; if too many CLOSE frames already wait, a later message of the
	 * stream causes it. */
	if (f->kind == FRAME_MESSAGE && ch->strays < STRAYS_MAX) {
		ch->strays++;
		channel_frame_sure(ch, f->stream, FRAME_CLOSE, none,
				   sizeof(none));
	}
	return 0;
}

static uint64_t called_tick(struct channel *ch, uint64_t now)
{
	(void)ch;
	(void)now;
	return TIME_NEVER;
}

static void called_on_deadline(struct ulrpc_stream *s)
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
	.on_end = called_on_end,
	.abandon = called_abandon,
	.free = called_free,
};

/* ---- opening ---- */

static int called_new(struct ulrpc_streams *st, struct called **called_p)
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

/* Is @c useless for a new stream? It is if it has ended; or if it is idle,
 * because the server may have forgotten it. */
static bool called_is_old(struct called *c)
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

/* Gets the channel for a new stream. Returns 0, with a reference to the
 * channel, or -errno. */
static int called_get(struct ulrpc_streams *st, struct called **called_p)
{
	int rc = 0;

	pthread_mutex_lock(&st->lock);
	if (st->closed || atomic_load(&st->shard->rpc->state) != RPC_OPEN) {
		rc = -ESHUTDOWN;
	} else if (st->called && called_is_old(st->called)) {
		channel_put(&st->called->ch);
		st->called = NULL;
	}
	if (!rc && !st->called) {
		rc = called_new(st, &st->called);
		if (!rc)
			/* the reference of st->called */
			channel_get(&st->called->ch);
	}
	if (!rc) {
		channel_get(&st->called->ch);
		*called_p = st->called;
	}
	pthread_mutex_unlock(&st->lock);
	return rc;
}

/* Called when the handler has got the stream. Like on_not_open(), on any CPT.
 */
static void on_open(struct called *c, struct ulrpc_stream *s,
		    const uint8_t *reply)
{
	struct channel *ch = &c->ch;
	unsigned int flavour = load_le32(reply + 8);
	uint64_t making = load_le64(reply + 12);

	s->execution = ULRPC_EXECUTED;
	s->open = true;
	s->window.messages = MIN(load_le32(reply), s->grant.messages);
	s->window.bytes = MIN(load_le32(reply + 4), s->grant.bytes);
	c->flavour = MAX(c->flavour, MIN(flavour, (unsigned int)FLAVOURS - 1));
	if (c->live && ch->making != making) {
		/* The server has made the channel anew, and forgotten its other
		 * streams. */
		channel_end_soon(ch, ULRPC_CAUSE_FORGOTTEN);
		return;
	}
	ch->making = making;
	c->live = true;
	if (s->over || s->canceled)
		rpc_stream_close_frame(s);
	else if (s->send_closed)
		channel_frame_sure(s->ch, s->id, FRAME_HALF, NULL, 0);
	else
		rpc_stream_writable(s);
}

static void on_not_open(struct ulrpc_stream *s, const struct ulrpc_outcome *o)
{
	enum ulrpc_cause cause = o->cause ? o->cause : ULRPC_CAUSE_BAD_REPLY;

	/* The server has forgotten the channel, and so all of its streams. */
	if (cause == ULRPC_CAUSE_HANDLER && o->status == -ENOENT)
		channel_end_soon(s->ch, ULRPC_CAUSE_FORGOTTEN);
	if (s->ending)
		return;
	s->execution = cause == ULRPC_CAUSE_HANDLER ? ULRPC_NOT_EXECUTED
						    : o->execution;
	if (s->over)
		return;
	s->undelivered = s->sent.messages;
	rpc_stream_text_set(s, o->text, strlen(o->text));
	rpc_stream_over(s, o->status ? o->status : cause_status(cause), cause);
}

/* Interceptors hear of the end of @s, if it was opened, not of that of the call
 * that has opened it; one to several servers says nothing of its interceptors.
 */
static void call_seen_take(struct ulrpc_stream *s,
			   const struct ulrpc_outcome *outcome)
{
	struct ulrpc_client *client = called_of(s->ch)->st->client;

	s->began = shard_now(s->ch->shard);
	if (client && !outcome->cause && !s->over)
		s->call_seen = client_seen_take(client);
}

bool streams_opened(struct ulrpc_stream *s, const struct ulrpc_outcome *outcome,
		    const void *reply, size_t length)
{
	struct channel *ch = channel_get(s->ch);
	bool open;

	channel_lock(ch);
	s->opening = false;
	list_del(&s->of_opening);
	call_seen_take(s, outcome);
	if (!outcome->cause && length == OPENED_SIZE)
		on_open(called_of(ch), s, reply);
	else
		on_not_open(s, outcome);
	if (s->late && !s->over)
		called_on_deadline(s);
	if (s->over)
		rpc_stream_unlink(s);
	open = s->open;
	channel_kick(ch);
	rpc_stream_unref(s);
	channel_unlock(ch);
	channel_put(ch);
	return open;
}

static void on_opened(void *arg, const struct ulrpc_outcome *outcome,
		      const void *reply, size_t length)
{
	(void)streams_opened(arg, outcome, reply, length);
}

/* Makes a stream, with one reference for the user, and one for the call that
 * opens it. Returns 0; -EAGAIN: the channel has just ended, and the next one
 * has to be used; or another -errno. */
static int stream_make(struct ulrpc_streams *st,
		       const struct ulrpc_stream_conf *conf,
		       struct ulrpc_stream **stream_p)
{
	struct called *c;
	struct ulrpc_stream *s;
	int rc = called_get(st, &c);

	if (rc)
		return rc;
	channel_lock(&c->ch);
	s = rpc_stream_new(&c->ch, c->last_id + 1, &st->grant,
			   rpc_at(lnet_now(st->shard->node, st->shard->cpt),
				  rpc_ns(conf->deadline)));
	rc = s ? 0 : -ENOMEM;
	if (s && c->ch.ended) {
		/* The channel has just ended: the caller tries again with a new
		 * one. */
		s->over = true;
		rc = -EAGAIN;
	}
	if (!rc)
		rc = rpc_stream_link(s);
	if (!rc) {
		c->last_id++;
		s->user = conf->events;
		s->watched = true;
		s->opening = true;
		s->refs++;
		list_add_tail(&c->opening, &s->of_opening);
		*stream_p = s;
	} else if (s) {
		rpc_stream_unref(s);
	}
	channel_unlock(&c->ch);
	channel_put(&c->ch);
	return rc;
}

static bool called_is_live(struct called *c)
{
	bool live;

	channel_lock(&c->ch);
	live = c->live;
	channel_unlock(&c->ch);
	return live;
}

/* Undoes stream_make(), because the opening call could not be made. */
static void stream_unmake(struct ulrpc_stream *s)
{
	struct channel *ch = channel_get(s->ch);

	channel_lock(ch);
	s->watched = false;
	s->over = true;
	list_del(&s->of_opening);
	rpc_stream_unlink(s);
	rpc_stream_unref(s);
	rpc_stream_unref(s);
	channel_unlock(ch);
	channel_put(ch);
}

/* Writes what the service has to know of @s: OPEN_HEAD bytes. */
static void open_head(const struct ulrpc_streams *st,
		      const struct ulrpc_stream *s, uint8_t *body,
		      uint64_t deadline)
{
	bool known = called_is_live(called_of(s->ch));

	store_le64(body, s->ch->key);
	store_le32(body + 8, s->id);
	store_le32(body + 12, (uint32_t)st->grant.messages);
	store_le32(body + 16, (uint32_t)st->grant.bytes);
	store_le32(body + 20, OPEN_ANNEX | (known ? OPEN_KNOWN : 0));
	store_le64(body + 24, deadline);
}

int streams_begin(struct ulrpc_streams *st, uint64_t deadline, uint8_t *head,
		  struct ulrpc_stream **stream_p)
{
	const struct ulrpc_stream_conf conf = { .deadline = deadline };
	int rc;

	do
		rc = stream_make(st, &conf, stream_p);
	while (rc == -EAGAIN);
	if (!rc)
		open_head(st, *stream_p, head, deadline);
	return rc;
}

void streams_forget(struct ulrpc_stream *s)
{
	struct channel *ch = channel_get(s->ch);

	channel_lock(ch);
	s->watched = false;
	s->held = false;
	rpc_stream_unref(s);
	channel_unlock(ch);
	channel_put(ch);
}

static int open_call(struct ulrpc_streams *st, const char *method,
		     struct ulrpc_stream *s, uint8_t *body, size_t length,
		     uint64_t deadline, struct ulrpc_context *context)
{
	struct ulrpc_call_conf conf = {
		.deadline = MIN(deadline, st->patience),
		.reply_max = ULRPC_TEXT_MAX,
		.context = context,
	};

	open_head(st, s, body, deadline);
	return ulrpc_call(st->client, ulrpc_method(method), body,
			  OPEN_HEAD + length, &conf, on_opened, s, NULL);
}

int ulrpc_stream_open(struct ulrpc_streams *streams, const char *method,
		      const void *body, size_t length,
		      const struct ulrpc_stream_conf *conf,
		      struct ulrpc_stream **stream_p)
{
	struct ulrpc_stream *s;
	uint8_t *whole;
	int rc;

	if (!conf->deadline)
		return -EINVAL;
	if (length > ULRPC_STREAM_MESSAGE_MAX)
		return -EMSGSIZE;
	whole = malloc(OPEN_HEAD + length);
	if (!whole)
		return -ENOMEM;
	if (length)
		memcpy(whole + OPEN_HEAD, body, length);
	do
		rc = stream_make(streams, conf, &s);
	while (rc == -EAGAIN);
	if (!rc) {
		rc = open_call(streams, method, s, whole, length,
			       conf->deadline, conf->context);
		if (rc)
			stream_unmake(s);
		else
			*stream_p = s;
	}
	free(whole);
	return rc;
}
