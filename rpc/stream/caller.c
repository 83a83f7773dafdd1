/* SPDX-License-Identifier: BSD-3-Clause */
/* The streams of a service, as the client has them: their clients and channels,
 * and how a stream is opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/context/context.h"
#include "rpc/flavour.h"
#include "rpc/keys.h"
#include "rpc/stream/called.h"
#include "rpc/stream/streams.h"
#include "rpc/stream/under.h"
#include "rpc/streaming.h"
#include "rpc/text.h"

#define WINDOW_MESSAGES 64u
#define WINDOW_BYTES	65536u
/* default of ulrpc_streams_conf.patience, in us */
#define PATIENCE (60 * UINT64_C(1000000))

/* ---- struct ulrpc_streams ---- */

void ulrpc_streams_conf_init(struct ulrpc_streams_conf *conf)
{
	*conf = (struct ulrpc_streams_conf){ 0 };
	ulrpc_client_conf_init(&conf->client);
}

void streams_put(struct ulrpc_streams *st)
{
	if (atomic_fetch_sub(&st->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&st->lock);
	free(st->kept_server);
	free(st);
}

static void carriers_close(struct ulrpc_client **carriers)
{
	for (unsigned int i = 0; i < FLAVOURS; i++) {
		ulrpc_client_close(carriers[i]);
		carriers[i] = NULL;
	}
}

static struct ulrpc_client_conf carrier_conf(
	const struct ulrpc_client_conf *from)
{
	struct ulrpc_client_conf conf = *from;

	conf.service = RPC_STREAM_CARRIER;
	conf.inflight_max = conf.inflight_begin = conf.batch_max = 0;
	conf.queue_max = 0;
	conf.queue_bytes = 0;
	/* That of the program's own calls: carriers have another one. */
	conf.reply_limit = 0;
	/* Whether a stream waits for a server is a matter of its opening. */
	if (conf.wait_for_ready == ULRPC_WAIT_NOT)
		conf.wait_for_ready = ULRPC_WAIT_READY;
	return conf;
}

/* Opens a client of the carrier for each flavour that a service may want, by
 * @opener, unless it is NULL. Returns 0; or -errno, and none is open; -EAGAIN:
 * they would be on several CPTs. */
static int carriers_try(const struct ulrpc_streams *st, struct ulrpc *rpc,
			const struct ulrpc_client_conf *from,
			const struct carrier_opener *opener,
			struct ulrpc_client **carriers)
{
	struct ulrpc_client_conf conf = carrier_conf(from);
	unsigned int most =
		rpc_has_keys(rpc) ? ULRPC_FLAVOUR_PRIVACY : st->least;
	int rc = 0;

	for (unsigned int f = st->least; f <= most && !rc; f++) {
		conf.flavour = (enum ulrpc_flavour)f;
		rc = opener ? opener->open(opener->arg, &conf, &carriers[f])
			    : ulrpc_client_open(rpc, &conf, &carriers[f]);
		if (!rc)
			client_carries_streams(carriers[f], st);
		if (!rc && ulrpc_client_cpt(carriers[f]) !=
				   ulrpc_client_cpt(carriers[st->least]))
			rc = -EAGAIN;
	}
	if (rc)
		carriers_close(carriers);
	return rc;
}

static int carriers_open(struct ulrpc_streams *st, struct ulrpc *rpc,
			 const struct ulrpc_client_conf *conf,
			 const struct carrier_opener *opener)
{
	int rc;

	st->least = flavour_meant(conf->flavour, rpc_has_keys(rpc));
	do
		rc = carriers_try(st, rpc, conf, opener, st->carriers);
	while (rc == -EAGAIN);
	return rc;
}

/* ---- servers that have names ---- */

/* Keeps what is needed of @conf to open carriers later. */
static int named_keep(struct ulrpc_streams *st, struct ulrpc *rpc,
		      const struct ulrpc_client_conf *conf)
{
	st->least = flavour_meant(conf->flavour, rpc_has_keys(rpc));
	st->kept = *conf;
	st->kept.target = NULL;
	st->kept.interceptors = NULL;
	st->kept.ninterceptors = 0;
	st->kept.err = NULL;
	if (conf->retry) {
		st->kept_retry = *conf->retry;
		st->kept.retry = &st->kept_retry;
	}
	if (conf->server)
		st->kept.server = st->kept_server = strdup(conf->server);
	return conf->server && !st->kept_server ? -ENOMEM : 0;
}

/* The function for carrier_opener.open. */
static int open_beside(void *arg, const struct ulrpc_client_conf *conf,
		       struct ulrpc_client **client_p)
{
	return client_open_beside(arg, conf, client_p);
}

int called_bind(struct called *c)
{
	struct ulrpc_streams *st = c->st;
	const struct carrier_opener opener = { open_beside, st->client };
	struct ulnet_nid server = client_server(st->client);
	int rc;

	if (c->bound)
		return lnet_nid_eq(&c->ch.server, &server) ? 0 : -ESTALE;
	rc = carriers_try(st, st->shard->rpc, &st->kept, &opener, c->carriers);
	if (rc)
		return rc;
	channel_lock(&c->ch);
	c->ch.server = server;
	c->bound = true;
	/* It may have ended meanwhile. */
	channel_kick(&c->ch);
	channel_unlock(&c->ch);
	st->npins++;
	client_pin(st->client);
	return 0;
}

static void on_closed_elsewhere(void *arg, const struct ulrpc_outcome *outcome,
				const void *reply, size_t length)
{
	(void)outcome, (void)reply, (void)length;
	ulrpc_client_close(arg);
}

/* Ends the stream @id of @c at the server that has just answered the client,
 * with @reply, and is not that of the channel. The server has made a channel
 * for such streams, which gets only what this function sends. If that fails,
 * or if such channels of two servers alternate, of which only the last one is
 * known, the stream ends there when the server hears nothing of the client. */
static void close_elsewhere(struct called *c, uint32_t id, const uint8_t *reply)
{
	struct ulrpc_streams *st = c->st;
	struct ulrpc_client_conf conf = carrier_conf(&st->kept);
	const struct ulrpc_call_conf how = { .deadline =
						     atomic_load(&st->patience),
					     .reply_max = 64 };
	uint8_t body[PUSH_HEAD + BATCH_HEAD + FRAME_HEAD + CLOSE_SIZE] = { 0 };
	uint64_t making = load_le64(reply + 12);
	struct ulrpc_client *client;

	conf.flavour = (enum ulrpc_flavour)MAX(
		st->least,
		MIN(load_le32(reply + 8) & ~OPENED_LONG, FLAVOURS - 1u));
	if (client_open_beside(st->client, &conf, &client))
		return;
	if (c->stray_making != making)
		c->nstray = 0;
	c->stray_making = making;
	store_le64(body, c->ch.key);
	store_le64(body + 8, making);
	store_le64(body + PUSH_HEAD, c->nstray);
	frame_head(body + PUSH_HEAD + BATCH_HEAD, id, FRAME_CLOSE, CLOSE_SIZE);
	if (ulrpc_call(client, ulrpc_method(STREAM_PUSH), body, sizeof(body),
		       &how, on_closed_elsewhere, client, NULL))
		ulrpc_client_close(client);
	else
		c->nstray++;
}

void called_unbind(struct called *c)
{
	struct ulrpc_streams *st = c->st;

	if (!c->bound || !c->carriers[st->least])
		return;
	carriers_close(c->carriers);
	/* If the streams are being closed, so is the client. */
	if (--st->npins == 0 && !c->retiring)
		client_unpin(st->client);
}

/* ---- opening struct ulrpc_streams ---- */

static int key_draw(void *arg)
{
	struct ulrpc_streams *st = arg;

	lnet_random(st->shard->node, st->shard->cpt, &st->key, sizeof(st->key));
	return 0;
}

uint64_t streams_patience(const struct ulrpc_streams_conf *conf)
{
	return patience_limit(conf->patience ? conf->patience : PATIENCE);
}

struct credit streams_window(const struct ulrpc_streams_conf *conf)
{
	return (struct credit){
		conf->window_messages ? conf->window_messages : WINDOW_MESSAGES,
		conf->window_bytes ? conf->window_bytes : WINDOW_BYTES,
	};
}

static bool is_named(const struct ulrpc_client_conf *conf)
{
	struct ulnet_nid server = client_conf_server(conf);

	return lnet_nid_is_any(&server);
}

/* Sets what is known when the carriers are open. */
static void streams_set(struct ulrpc_streams *st, struct ulrpc *rpc,
			const struct ulrpc_streams_conf *conf)
{
	const struct ulrpc_client *any =
		st->named ? st->client : st->carriers[st->least];
	struct credit window = streams_window(conf);

	st->server = client_conf_server(&conf->client);
	st->shard = &rpc->shards[ulrpc_client_cpt(any)];
	text_copy(st->service, sizeof(st->service), conf->client.service);
	atomic_init(&st->window_messages, (uint32_t)window.messages);
	atomic_init(&st->window_bytes, (uint32_t)window.bytes);
	atomic_init(&st->patience, streams_patience(conf));
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
	client_opens_streams(st->client, OPEN_HEAD, st);
	st->named = is_named(&conf->client);
	rc = st->named ? named_keep(st, rpc, &conf->client)
		       : carriers_open(st, rpc, &conf->client, NULL);
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
	carriers_close(st->carriers);
err_close:
	ulrpc_client_close(st->client);
err_free:
	free(st->kept_server);
	free(st);
	return rc;
}

int streams_open_at(struct ulrpc *rpc, const struct carrier_opener *opener,
		    const struct ulrpc_streams_conf *conf,
		    struct ulrpc_streams **streams_p)
{
	struct ulrpc_streams *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return -ENOMEM;
	rc = carriers_open(st, rpc, &conf->client, opener);
	if (rc) {
		free(st);
		return rc;
	}
	streams_set(st, rpc, conf);
	key_draw(st);
	streams_enter(st);
	*streams_p = st;
	return 0;
}

const atomic_uint *streams_count(const struct ulrpc_streams *st)
{
	return &st->open;
}

unsigned int ulrpc_streams_cpt(const struct ulrpc_streams *streams)
{
	return streams->shard->cpt;
}

void streams_finish(struct ulrpc_streams *st)
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
	carriers_close(st->carriers);
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

/* ---- opening ---- */

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
	const struct credit window = { load_le32(reply), load_le32(reply + 4) };
	struct channel *ch = &c->ch;
	unsigned int flavour = load_le32(reply + 8) & ~OPENED_LONG;
	uint64_t making = load_le64(reply + 12);

	s->execution = ULRPC_EXECUTED;
	rpc_stream_open(s, &window, load_le32(reply + 8) & OPENED_LONG);
	if (s->linked) {
		s->counted = true;
		atomic_fetch_add_explicit(&c->st->open, 1,
					  memory_order_relaxed);
	}
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

/* Notes at which server the stream @s, whose opening has failed with @o, may
 * be, if that is not the server of its channel. */
static void note_elsewhere(struct ulrpc_stream *s,
			   const struct ulrpc_outcome *o)
{
	struct channel *ch = s->ch;

	if (!called_of(ch)->st->named || lnet_nid_is_any(&o->target) ||
	    shard_same_peer(ch->shard, &o->target, &ch->server))
		return;
	s->elsewhere = malloc(sizeof(*s->elsewhere));
	if (s->elsewhere)
		*s->elsewhere = o->target;
}

/* An interceptor that refuses it likewise gives a text. */
bool streams_forgotten(const struct ulrpc_stream *s,
		       const struct ulrpc_outcome *o)
{
	return s->known && o->cause == ULRPC_CAUSE_HANDLER &&
	       o->status == -ENOENT && !o->text[0];
}

static void on_not_open(struct ulrpc_stream *s, const struct ulrpc_outcome *o)
{
	enum ulrpc_cause cause = o->cause ? o->cause : ULRPC_CAUSE_BAD_REPLY;
	int status = o->status ? o->status : cause_status(cause);

	if (streams_forgotten(s, o)) {
		cause = ULRPC_CAUSE_FORGOTTEN;
		status = cause_status(cause);
		channel_end_soon(s->ch, cause);
	}
	if (s->ending)
		return;
	s->execution = o->cause == ULRPC_CAUSE_HANDLER ? ULRPC_NOT_EXECUTED
						       : o->execution;
	if (s->execution != ULRPC_NOT_EXECUTED)
		note_elsewhere(s, o);
	/* The service may have got the stream, and nobody would end it. */
	if (s->execution != ULRPC_NOT_EXECUTED && called_of(s->ch)->live &&
	    !s->elsewhere)
		called_close_stray(s->ch, s->id);
	if (s->over)
		return;
	s->undelivered = s->sent.messages;
	rpc_stream_text_set(s, o->text, strlen(o->text));
	rpc_stream_over(s, status, cause);
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
	if (ch->ended && !s->ending)
		channel_cut(s);
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
	struct ulrpc_stream *s = arg;
	struct called *c = called_of(s->ch);
	struct ulrpc_outcome own = *outcome;
	int rc = 0;

	if (c->st->named && !outcome->cause)
		rc = called_bind(c);
	if (rc == -ESTALE) {
		own.target = client_server(c->st->client);
		if (length == OPENED_SIZE)
			close_elsewhere(c, s->id, reply);
	}
	if (rc) {
		own.cause = rc == -ESTALE ? ULRPC_CAUSE_FORGOTTEN
					  : ULRPC_CAUSE_NO_MEMORY;
		own.status = cause_status(own.cause);
	}
	(void)streams_opened(s, &own, reply, length);
}

/* Returns ns: when a stream of @st ends that has @us, and is in @scope. */
static uint64_t deadline_of(const struct ulrpc_streams *st, uint64_t us,
			    const struct scope *scope)
{
	uint64_t at =
		rpc_at(lnet_now(st->shard->node, st->shard->cpt), rpc_ns(us));

	return scope ? MIN(at, scope->deadline) : at;
}

/* A message to this side comes in a reply to a pull call. If the node does not
 * take replies that are as long as @s allows, no long message is to come. */
static void take_long(struct ulrpc_stream *s)
{
	if (s->ch->shard->rpc->conf.reply_bytes_max <
	    batch_of_one(s->longest_in))
		s->longest_in = s->longest_out = ULRPC_STREAM_MESSAGE_MAX;
}

/* Makes a stream, with one reference for the user, and one for the call that
 * opens it. @scope: of what it is opened for; NULL: nothing. Returns 0;
 * -EAGAIN: the channel has just ended, and the next one has to be used; or
 * another -errno. */
static int stream_make(struct ulrpc_streams *st,
		       const struct ulrpc_stream_conf *conf,
		       struct scope *scope, struct ulrpc_stream **stream_p)
{
	const struct credit grant = { atomic_load(&st->window_messages),
				      atomic_load(&st->window_bytes) };
	struct called *c;
	struct ulrpc_stream *s;
	int rc = called_get(st, &c);

	if (rc)
		return rc;
	channel_lock(&c->ch);
	s = rpc_stream_new(&c->ch, c->last_id + 1, &grant,
			   deadline_of(st, conf->deadline, scope));
	rc = s ? 0 : -ENOMEM;
	if (s)
		take_long(s);
	if (s && c->ch.ended) {
		/* The channel has just ended: the caller tries again with a new
		 * one. */
		s->over = true;
		rc = -EAGAIN;
	}
	if (!rc && scope)
		rc = under_enter(s, scope);
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
static void open_head(const struct ulrpc_streams *st, struct ulrpc_stream *s,
		      uint8_t *body, uint64_t deadline)
{
	bool longs = s->longest_in > ULRPC_STREAM_MESSAGE_MAX;
	uint64_t now = lnet_now(st->shard->node, st->shard->cpt);

	s->known = called_is_live(called_of(s->ch));
	/* It is less if the stream is opened for something that ends earlier.
	 */
	if (s->deadline != TIME_NEVER)
		deadline = MIN(deadline,
			       MAX((s->deadline - MIN(now, s->deadline)) /
					   NSEC_PER_USEC,
				   1u));

	store_le64(body, s->ch->key);
	store_le32(body + 8, s->id);
	store_le32(body + 12, (uint32_t)s->grant.messages);
	store_le32(body + 16, (uint32_t)s->grant.bytes);
	store_le32(body + 20, OPEN_ANNEX | (longs ? OPEN_LONG : 0) |
				      (s->known ? OPEN_KNOWN : 0));
	store_le64(body + 24, deadline);
}

int streams_begin(struct ulrpc_streams *st, uint64_t deadline,
		  struct scope *scope, uint8_t *head,
		  struct ulrpc_stream **stream_p)
{
	const struct ulrpc_stream_conf conf = { .deadline = deadline };
	int rc;

	do
		rc = stream_make(st, &conf, scope, stream_p);
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
		.deadline = MIN(deadline, atomic_load(&st->patience)),
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
		rc = stream_make(streams, conf,
				 conf->context ? conf->context->scope : NULL,
				 &s);
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
