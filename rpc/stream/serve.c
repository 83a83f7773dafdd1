/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The service's side of streams.
 *
 * A stream is opened by an ordinary call of its method, so rules, flavours and
 * policies of the service hold for it. The client names its channel by a random
 * number. That is no secret: a channel is only found for the process that has
 * opened its first stream, with the same proof of who it is (rpc/owner.h), and
 * what comes for it must have at least the flavour of the channel's streams. So
 * the carrier itself takes any flavour: who has no stream can do nothing there,
 * and a service for which strangers may open streams is served, too.
 *
 * Whose share: a host may have as many streams of a service as it leaves free
 * (rpc/quota.h); a channel counts as one more, of the service that it was made
 * for. Beyond that, opening a stream is refused as overloaded. A stream counts
 * until its END was sent, even if the client has closed it: so who has opened a
 * stream can make this node keep its window, read or not, as much to be sent,
 * and a few frames. Early batches are charged to the host by their bytes, at
 * the node; beyond its share, they are to be sent again later. If the one that
 * is missing does not come, the channel ends.
 */
#include <errno.h>
#include <stdlib.h>

#include "rpc/owner.h"
#include "rpc/quota.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/streams.h"
#include "rpc/text.h"

#define WINDOW_MESSAGES 64u
#define WINDOW_BYTES	65536u
#define STREAMS_MAX	65536u

/* ms: no pull call is kept longer */
#define HOLD_MOST 5000u
/* A client that makes no pull call for so long is gone. */
#define SILENT_NS (60 * NSEC_PER_SEC)
/* So is a batch that does not come, though later ones have: its client sends it
 * again as long as others, and gives up earlier. */
#define GAP_NS SILENT_NS
/* how much each client may have under way at the carrier */
#define CARRIER_WINDOW 64u
/* kept pull calls */
#define CARRIER_QUEUE 65536u

struct ulrpc_stream_service {
	/* immutable after start */
	struct ulrpc *rpc;
	struct ulrpc_service *service;
	struct credit grant;
	void (*ended)(void *arg); /* of the user; NULL: none */
	void *ended_arg;

	atomic_uint refs; /* the service, and streams */
	atomic_bool stopping;
	pthread_mutex_t lock; /* of quotas; innermost */
	struct quotas quotas;
	char *name;
	unsigned int nentries;
	struct entry {
		struct ulrpc_stream_service *service;
		ulrpc_stream_fn handler;
		void *arg;
		char *name;
	} entries[];
};

struct held {
	struct ulrpc_request *request;
	uint64_t until; /* ns */
	uint32_t room;	/* bytes of the reply */
	enum ulrpc_flavour flavour;
};

/* A channel, as the server has it. */
struct serving {
	struct channel ch;
	struct hash_node by_key; /* streams_node.by_key; with that lock */
	/* of the process that has opened it; its connection is the one that the
	 * last call came by */
	struct rpc_owner owner;
	struct ulrpc_stream_service *service; /* that it was made for */
	struct quota *quota;
	struct ulnet_nid source;    /* the host that is charged */
	struct quota *early;	    /* of its early batches, if there are any */
	uint64_t gap;		    /* the batch that is missing */
	uint64_t gap_since;	    /* ns; 0: none is missing */
	enum ulrpc_flavour flavour; /* the highest of its streams */
	uint64_t heard;		    /* ns: of the last pull call */
	uint64_t wanted;	    /* the batch that the client waits for */
	unsigned int nheld;	    /* the oldest first */
	struct held held[PULLS_MAX];
};

static struct serving *serving_of(struct channel *ch)
{
	return container_of(ch, struct serving, ch);
}

/* ---- services and their quotas ---- */

static void service_put(struct ulrpc_stream_service *svc)
{
	if (atomic_fetch_sub(&svc->refs, 1) != 1)
		return;
	quotas_fini(&svc->quotas);
	pthread_mutex_destroy(&svc->lock);
	for (unsigned int i = 0; i < svc->nentries; i++)
		free(svc->entries[i].name);
	free(svc->name);
	free(svc);
}

/* Charges a stream or a channel, which gets a reference; NULL: the host has its
 * share. */
static struct quota *service_take(struct ulrpc_stream_service *svc,
				  const struct ulnet_nid *nid, uint64_t now)
{
	struct quota *q;

	pthread_mutex_lock(&svc->lock);
	q = quota_take(&svc->quotas, nid, 1, now);
	pthread_mutex_unlock(&svc->lock);
	if (q)
		atomic_fetch_add(&svc->refs, 1);
	return q;
}

static void service_give_back(struct ulrpc_stream_service *svc, struct quota *q)
{
	pthread_mutex_lock(&svc->lock);
	quota_put(&svc->quotas, q, 1);
	pthread_mutex_unlock(&svc->lock);
	service_put(svc);
}

static void serving_unlinked(struct ulrpc_stream *s)
{
	if (s->quota)
		service_give_back(s->service, s->quota);
	s->quota = NULL;
	s->service = NULL;
}

/* ---- early batches ---- */

static bool serving_keep(struct channel *ch, size_t n)
{
	struct streams_node *node = ch->streams_node;
	struct serving *v = serving_of(ch);
	struct quota *q;

	pthread_mutex_lock(&node->lock);
	q = quota_take(&node->early, &v->source, (uint32_t)n,
		       shard_now(ch->shard));
	pthread_mutex_unlock(&node->lock);
	if (q)
		v->early = q;
	return q;
}

static void serving_let_go(struct channel *ch, size_t n)
{
	struct streams_node *node = ch->streams_node;

	pthread_mutex_lock(&node->lock);
	quota_put(&node->early, serving_of(ch)->early, (uint32_t)n);
	pthread_mutex_unlock(&node->lock);
}

/* ---- kept pull calls ---- */

/* Takes the call @i out of serving.held. */
static struct held held_take(struct serving *v, unsigned int i)
{
	struct held h = v->held[i];

	v->nheld--;
	memmove(&v->held[i], &v->held[i + 1],
		(v->nheld - i) * sizeof(v->held[0]));
	return h;
}

/* Answers the call @i, without the lock. */
static void held_answer(struct serving *v, unsigned int i, const void *body,
			size_t length)
{
	struct held h = held_take(v, i);

	v->heard = shard_now(v->ch.shard);
	channel_unlock(&v->ch);
	ulrpc_reply(h.request, body, length);
	channel_lock(&v->ch);
}

/* The client has given up the call, or is gone. */
static void on_held_canceled(void *arg, struct ulrpc_request *request)
{
	struct serving *v = arg;
	bool mine = false;

	channel_get(&v->ch);
	channel_lock(&v->ch);
	for (unsigned int i = 0; i < v->nheld && !mine; i++)
		if (v->held[i].request == request) {
			held_take(v, i);
			mine = true;
		}
	if (mine)
		channel_end(&v->ch, -ECANCELED, ULRPC_CAUSE_CANCELED);
	channel_unlock(&v->ch);
	if (mine)
		ulrpc_reply(request, NULL, 0);
	channel_put(&v->ch);
}

static void serving_send(struct serving *v)
{
	struct channel *ch = &v->ch;

	while (v->nheld && !list_empty(&ch->out) &&
	       ch->next_out - v->wanted < BATCHES_AHEAD) {
		size_t room = v->held[0].room - BATCH_HEAD, length;
		uint8_t *frames = channel_next(ch, room, &length);
		uint8_t *begin = frames - BATCH_HEAD;

		store_le64(begin, ch->next_out);
		store_le64(begin + 8, 0);
		/* Other threads only add to the chunk meanwhile. */
		held_answer(v, 0, begin, BATCH_HEAD + length);
		if (ch->ended)
			break;
		channel_sent(ch, length);
	}
}

/* Calls with a flavour that is too low must not carry anything any more. */
static void held_answer_low(struct serving *v)
{
	for (unsigned int i = 0; i < v->nheld;)
		if (v->held[i].flavour < v->flavour)
			held_answer(v, i, NULL, 0);
		else
			i++;
}

static void serving_flush(struct channel *ch)
{
	struct serving *v = serving_of(ch);

	if (!ch->ended)
		held_answer_low(v);
	if (!ch->ended)
		serving_send(v);
	while (ch->ended && v->nheld) {
		struct held h = held_take(v, 0);

		/* Who has crashed answers nobody. */
		if (shard_is_mute(ch->shard))
			continue;
		channel_unlock(ch);
		ulrpc_fail(h.request, -ESHUTDOWN);
		channel_lock(ch);
	}
}

/* Returns when a batch will be missing for too long. */
static uint64_t gap_until(struct serving *v, uint64_t now)
{
	const struct channel *ch = &v->ch;

	if (!ch->nearly) {
		v->gap_since = 0;
		return TIME_NEVER;
	}
	if (!v->gap_since || v->gap != ch->next_in) {
		v->gap = ch->next_in;
		v->gap_since = now;
	}
	return v->gap_since + GAP_NS;
}

static uint64_t serving_tick(struct channel *ch, uint64_t now)
{
	struct serving *v = serving_of(ch);
	uint64_t gap = gap_until(v, now);

	if (gap <= now)
		channel_end(ch, -ETIMEDOUT, ULRPC_CAUSE_LOST);
	while (!ch->ended && v->nheld && v->held[0].until <= now)
		held_answer(v, 0, NULL, 0);
	if (ch->ended)
		return TIME_NEVER;
	if (v->nheld)
		return MIN(v->held[0].until, gap);
	if (now < v->heard + SILENT_NS)
		return MIN(v->heard + SILENT_NS, gap);
	channel_end(ch, -ETIMEDOUT, ULRPC_CAUSE_LOST);
	return TIME_NEVER;
}

/* ---- frames ---- */

static int on_close_frame(struct ulrpc_stream *s, const struct frame *f)
{
	if (f->length != CLOSE_SIZE ||
	    rpc_stream_on_read(s, load_le64(f->body)))
		return -EPROTO;
	s->undelivered = s->sent.messages - s->delivered.messages;
	if (s->send_closed)
		rpc_stream_over(s, s->end.status, s->end.cause);
	rpc_stream_end_frame(s, -ECANCELED, ULRPC_CAUSE_CANCELED, NULL);
	rpc_stream_over(s, -ECANCELED, ULRPC_CAUSE_CANCELED);
	s->closed = true;
	if (s->end_sent)
		rpc_stream_unlink(s);
	return 0;
}

static int serving_on_frame(struct channel *ch, struct ulrpc_stream *s,
			    const struct frame *f)
{
	(void)ch;
	/* CLOSE may come for a stream whose opening has not come. */
	if (!s)
		return f->kind == FRAME_CLOSE ? 0 : -EPROTO;
	if (f->kind == FRAME_CLOSE)
		return on_close_frame(s, f);
	if (f->kind != FRAME_HALF || f->length ||
	    (s->recv_closed && !s->send_closed))
		return -EPROTO;
	rpc_stream_no_more(s);
	return 0;
}

static void serving_on_deadline(struct ulrpc_stream *s)
{
	bool ended = s->send_closed;

	rpc_stream_end_frame(s, -ETIMEDOUT, ULRPC_CAUSE_DEADLINE, NULL);
	/* The client says how much it has read, if it is still there. */
	if (!ended)
		rpc_stream_over(s, -ETIMEDOUT, ULRPC_CAUSE_DEADLINE);
}

/* ---- channels ---- */

static void serving_on_end(struct channel *ch)
{
	struct serving *v = serving_of(ch);
	struct streams_node *n = ch->streams_node;

	pthread_mutex_lock(&n->lock);
	hash_del(&n->by_key, &v->by_key);
	pthread_mutex_unlock(&n->lock);
	service_give_back(v->service, v->quota);
}

static void serving_abandon(struct channel *ch)
{
	(void)ch;
}

static void serving_free(struct channel *ch)
{
	channel_fini(ch);
	streams_del(ch);
	free(serving_of(ch));
}

static const struct channel_ops serving_ops = {
	.on_frame = serving_on_frame,
	.flush = serving_flush,
	.tick = serving_tick,
	.on_deadline = serving_on_deadline,
	.keep = serving_keep,
	.let_go = serving_let_go,
	.unlinked = serving_unlinked,
	.on_end = serving_on_end,
	.abandon = serving_abandon,
	.free = serving_free,
};

/* Returns the channel @key of @owner, with a reference, or NULL. The lock of
 * the node is held. */
static struct serving *serving_lookup(struct streams_node *n, uint64_t key,
				      unsigned int cpt,
				      const struct rpc_owner *owner)
{
	struct serving *v;

	hash_for_each_equal (v, &n->by_key, hash_u64(key, n->seed), by_key)
		if (v->ch.key == key && v->ch.shard->cpt == cpt &&
		    owner_same(&v->owner, owner)) {
			channel_get(&v->ch);
			return v;
		}
	return NULL;
}

static struct serving *serving_find(struct streams_node *n, uint64_t key,
				    unsigned int cpt,
				    const struct rpc_owner *owner)
{
	struct serving *v;

	pthread_mutex_lock(&n->lock);
	v = serving_lookup(n, key, cpt, owner);
	pthread_mutex_unlock(&n->lock);
	return v;
}

/* Makes a channel, which the node does not find yet. */
static struct serving *serving_new(struct ulrpc_stream_service *svc,
				   uint64_t key, const struct ulrpc_request *r,
				   const struct rpc_owner *owner)
{
	struct shard *s = &svc->rpc->shards[ulrpc_request_cpt(r)];
	struct ulrpc_request_info info;
	struct serving *v = calloc(1, sizeof(*v));

	if (!v || channel_init(&v->ch, s, &serving_ops)) {
		free(v);
		return NULL;
	}
	ulrpc_request_info(r, &info);
	v->owner = *owner;
	v->source = info.source;
	v->service = svc;
	v->heard = shard_now(s);
	v->ch.key = key;
	v->ch.making = atomic_fetch_add(&svc->rpc->streams->makings, 1);
	streams_add(&v->ch);
	v->quota = service_take(svc, &info.source, v->heard);
	if (v->quota)
		return v;
	channel_put(&v->ch);
	return NULL;
}

/* The channel was never used. */
static void serving_drop(struct serving *v)
{
	service_give_back(v->service, v->quota);
	channel_put(&v->ch);
}

/* Finds the channel, or makes it: another stream of it may be opened at the
 * same time, on another thread. 0, with a reference; -EBUSY; -ENOENT: it is
 * @known to the client, and was forgotten. */
static int serving_get(struct ulrpc_stream_service *svc, uint64_t key,
		       bool known, const struct ulrpc_request *r,
		       struct serving **v_p)
{
	struct streams_node *n = svc->rpc->streams;
	unsigned int cpt = ulrpc_request_cpt(r);
	struct serving *v, *fresh;
	struct rpc_owner owner;

	if (!request_owner(r, &owner))
		return -ENOENT;
	v = serving_find(n, key, cpt, &owner);
	if (!v && known)
		return -ENOENT;
	if (!v) {
		fresh = serving_new(svc, key, r, &owner);
		if (!fresh)
			return -EBUSY;
		pthread_mutex_lock(&n->lock);
		v = serving_lookup(n, key, cpt, &owner);
		if (!v && !hash_add(&n->by_key, &fresh->by_key,
				    hash_u64(key, n->seed))) {
			v = fresh;
			channel_get(&v->ch);
		}
		pthread_mutex_unlock(&n->lock);
		if (v != fresh)
			serving_drop(fresh);
	}
	*v_p = v;
	return v ? 0 : -EBUSY;
}

/* ---- the carrier ---- */

static enum ulrpc_flavour flavour_of(const struct ulrpc_request *r)
{
	struct ulrpc_peer peer;

	ulrpc_request_peer(r, &peer);
	return peer.flavour;
}

/* Returns the channel that @r is for, locked and with a reference; or NULL,
 * with @r refused. */
static struct serving *serving_enter(struct ulrpc *rpc, struct ulrpc_request *r,
				     const void *body, size_t length,
				     size_t least)
{
	struct serving *v = NULL;
	struct rpc_owner owner;
	int rc;

	if (length < least) {
		ulrpc_refuse(r);
		return NULL;
	}
	if (request_owner(r, &owner))
		v = serving_find(rpc->streams, load_le64(body),
				 ulrpc_request_cpt(r), &owner);
	if (!v) {
		ulrpc_fail(r, -ENOENT);
		return NULL;
	}
	channel_lock(&v->ch);
	rc = 0;
	if (v->ch.ended || load_le64((const uint8_t *)body + 8) != v->ch.making)
		rc = -ENOENT;
	else if (flavour_of(r) < v->flavour)
		rc = -EPERM;
	if (!rc) {
		v->owner.connection = owner.connection;
		return v;
	}
	channel_unlock(&v->ch);
	channel_put(&v->ch);
	ulrpc_fail(r, rc);
	return NULL;
}

static void on_push(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct serving *v =
		serving_enter(arg, r, body, length, PUSH_HEAD + BATCH_HEAD);
	int rc;

	if (!v)
		return;
	rc = channel_receive(&v->ch, (const uint8_t *)body + PUSH_HEAD,
			     length - PUSH_HEAD);
	if (rc && rc != -EBUSY)
		channel_end(&v->ch, rc,
			    rc == -ENOMEM ? ULRPC_CAUSE_NO_MEMORY
					  : ULRPC_CAUSE_BAD_REQUEST);
	channel_unlock(&v->ch);
	channel_put(&v->ch);
	/* It is sent again, after the one that is missing, perhaps. */
	if (rc == -EBUSY)
		ulrpc_overloaded(r);
	else if (rc)
		ulrpc_fail(r, rc);
	else
		ulrpc_reply(r, NULL, 0);
}

static void on_pull(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct serving *v = serving_enter(arg, r, body, length, PULL_SIZE);
	const uint8_t *p = body;
	struct ulrpc_request_info info;
	uint64_t now, wanted;
	int rc;

	if (!v)
		return;
	ulrpc_request_info(r, &info);
	now = v->heard = shard_now(v->ch.shard);
	wanted = load_le64(p + 16);
	if (wanted > v->wanted && wanted <= v->ch.next_out)
		v->wanted = wanted;
	if (v->nheld == PULLS_MAX)
		held_answer(v, 0, NULL, 0);
	rc = v->ch.ended ? -ECANCELED
			 : ulrpc_request_on_cancel(r, on_held_canceled, v);
	if (!rc)
		v->held[v->nheld++] = (struct held){
			.request = r,
			.until = now + MIN(load_le32(p + 24), HOLD_MOST) *
					       NSEC_PER_MSEC,
			.room = MIN(MAX(info.reply_max, 256u), BATCH_MAX),
			.flavour = flavour_of(r),
		};
	channel_kick(&v->ch);
	channel_unlock(&v->ch);
	channel_put(&v->ch);
	if (rc)
		ulrpc_fail(r, rc);
}

static void gone(struct channel *ch, void *arg)
{
	(void)arg;
	if (ch->ops == &serving_ops && shard_owned(ch->shard) &&
	    owner_is_gone(ch->shard, &serving_of(ch)->owner))
		channel_end(ch, -ETIMEDOUT, ULRPC_CAUSE_LOST);
}

/* Whoever is gone may have claimed the NID and the pid of another client: which
 * connections there are says whose channels end. */
static void on_gone(void *arg, const struct ulnet_id *client)
{
	struct ulrpc *rpc = arg;

	(void)client;
	streams_each(rpc->streams, gone, NULL);
}

static int carrier_start(struct ulrpc *rpc, struct ulnet_conf_error *err)
{
	struct streams_node *n = rpc->streams;
	const struct ulrpc_method_conf methods[] = {
		{ .name = STREAM_PUSH,
		  .handler = on_push,
		  .arg = rpc,
		  .run = ULRPC_RUN_INLINE },
		{ .name = STREAM_PULL,
		  .handler = on_pull,
		  .arg = rpc,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf = {
		.name = RPC_STREAM_CARRIER,
		.methods = methods,
		.nmethods = ARRAY_SIZE(methods),
		.request_max = PUSH_HEAD + BATCH_MAX,
		.queue_max = CARRIER_QUEUE,
		.queue_bytes_max = (uint64_t)CARRIER_QUEUE * BATCH_MAX,
		.window = CARRIER_WINDOW,
		.gone = on_gone,
		.gone_arg = rpc,
		.flavour = ULRPC_FLAVOUR_NONE,
		.err = err,
	};
	int rc = 0;

	pthread_mutex_lock(&n->starting);
	if (!n->carrier)
		rc = ulrpc_service_start(rpc, &conf, NULL);
	n->carrier |= !rc;
	pthread_mutex_unlock(&n->starting);
	return rc;
}

/* ---- opening ---- */

struct opening {
	uint64_t key;
	uint32_t id;
	struct credit window;
	uint64_t time_left; /* us */
	bool known;	    /* the client has used the channel */
};

static bool opening_read(const uint8_t *p, size_t length, struct opening *o)
{
	if (length < OPEN_HEAD)
		return false;
	*o = (struct opening){
		.key = load_le64(p),
		.id = load_le32(p + 8),
		.window = { load_le32(p + 12), load_le32(p + 16) },
		.time_left = load_le64(p + 24),
		.known = load_le32(p + 20) & OPEN_KNOWN,
	};
	return o->id && o->window.messages && o->window.bytes && o->time_left;
}

/* Makes the stream, with references for the handler and the caller. The lock is
 * held. */
static int stream_make(struct serving *v, const struct entry *e,
		       const struct opening *o, const struct ulrpc_request *r,
		       struct ulrpc_stream **stream_p)
{
	struct ulrpc_stream_service *svc = e->service;
	struct ulrpc_request_info info;
	uint64_t now = shard_now(v->ch.shard);
	enum ulrpc_flavour flavour = flavour_of(r);
	struct ulrpc_stream *s;

	/* With the lock, so that end_streams() either is seen or sees. */
	if (atomic_load(&svc->stopping))
		return -ESHUTDOWN;
	if (v->ch.ended || channel_find(&v->ch, o->id))
		return -EINVAL;
	s = rpc_stream_new(&v->ch, o->id, &svc->grant,
			   rpc_at(now, rpc_ns(o->time_left)));
	if (!s)
		return -ENOMEM;
	ulrpc_request_info(r, &info);
	s->service = svc;
	s->method = e->name;
	s->flavour = flavour;
	s->quota = service_take(svc, &info.source, now);
	if (!s->quota || rpc_stream_link(s)) {
		serving_unlinked(s);
		rpc_stream_unref(s);
		return -EBUSY;
	}
	s->refs++;
	s->serving = true;
	s->open = true;
	s->execution = ULRPC_EXECUTED;
	s->window.messages = MIN(o->window.messages, svc->grant.messages);
	s->window.bytes = MIN(o->window.bytes, svc->grant.bytes);
	v->flavour = MAX(v->flavour, flavour);
	channel_kick(&v->ch);
	*stream_p = s;
	return 0;
}

static void answer_opening(const struct ulrpc_stream *s,
			   struct ulrpc_stream_service *svc,
			   struct ulrpc_request *r)
{
	uint8_t reply[OPENED_SIZE];

	store_le32(reply, (uint32_t)svc->grant.messages);
	store_le32(reply + 4, (uint32_t)svc->grant.bytes);
	store_le32(reply + 8, flavour_of(r));
	store_le64(reply + 12, s->ch->making);
	ulrpc_reply(r, reply, sizeof(reply));
}

static void refuse_opening(struct ulrpc_request *r, int rc)
{
	if (rc == -EBUSY || rc == -ENOMEM)
		ulrpc_overloaded(r);
	else if (rc == -EINVAL)
		ulrpc_refuse(r);
	else
		ulrpc_fail(r, rc);
}

static void stream_info_fill(struct ulrpc_stream_info *to,
			     const struct ulrpc_request *r,
			     const struct opening *o)
{
	struct ulrpc_request_info info;

	ulrpc_request_info(r, &info);
	to->client = info.client;
	to->time_left = o->time_left;
	ulrpc_request_peer(r, &to->peer);
}

/* Answers @r, and gives the stream to the handler. The body is copied, as it is
 * gone with the answer. */
static void serve_stream(const struct entry *e, struct ulrpc_stream *s,
			 const struct opening *o, struct ulrpc_request *r,
			 const uint8_t *body, size_t length, uint8_t *copy)
{
	struct ulrpc_stream_info info;

	if (length)
		memcpy(copy, body, length);
	stream_info_fill(&info, r, o);
	s->info = &info;
	answer_opening(s, e->service, r);
	e->handler(e->arg, s, copy, length);
	s->info = NULL;
}

static void on_opening(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	const struct entry *e = arg;
	struct ulrpc_stream_service *svc = e->service;
	struct ulrpc_stream *s;
	struct serving *v = NULL;
	struct opening o;
	uint8_t *copy;
	int rc;

	if (!opening_read(body, length, &o)) {
		ulrpc_refuse(r);
		return;
	}
	copy = malloc(length);
	rc = copy ? serving_get(svc, o.key, o.known, r, &v) : -ENOMEM;
	if (!rc) {
		channel_lock(&v->ch);
		rc = stream_make(v, e, &o, r, &s);
		channel_unlock(&v->ch);
	}
	if (rc) {
		refuse_opening(r, rc);
	} else {
		serve_stream(e, s, &o, r, (const uint8_t *)body + OPEN_HEAD,
			     length - OPEN_HEAD, copy);
		channel_lock(&v->ch);
		rpc_stream_unref(s);
		channel_unlock(&v->ch);
	}
	if (v)
		channel_put(&v->ch);
	free(copy);
}

int ulrpc_stream_info(const struct ulrpc_stream *stream,
		      struct ulrpc_stream_info *info)
{
	if (!stream->info)
		return -EINVAL;
	*info = *stream->info;
	return 0;
}

/* ---- services ---- */

void ulrpc_stream_service_conf_init(struct ulrpc_stream_service_conf *conf)
{
	*conf = (struct ulrpc_stream_service_conf){ 0 };
	ulrpc_service_conf_init(&conf->service);
}

static void on_service_ended(void *arg)
{
	struct ulrpc_stream_service *svc = arg;

	if (svc->ended)
		svc->ended(svc->ended_arg);
	service_put(svc);
}

/* Without a name, ulrpc_service_start() says what is wrong. */
static char *name_copy(const char *name)
{
	return strdup(name ? name : "");
}

static struct ulrpc_stream_service *service_new(
	struct ulrpc *rpc, const struct ulrpc_stream_service_conf *conf)
{
	struct ulrpc_stream_service *svc = calloc(
		1, sizeof(*svc) + conf->nmethods * sizeof(svc->entries[0]));

	if (!svc)
		return NULL;
	svc->rpc = rpc;
	svc->grant.messages =
		conf->window_messages ? conf->window_messages : WINDOW_MESSAGES;
	svc->grant.bytes =
		conf->window_bytes ? conf->window_bytes : WINDOW_BYTES;
	svc->ended = conf->service.ended;
	svc->ended_arg = conf->service.ended_arg;
	atomic_init(&svc->refs, 1);
	pthread_mutex_init(&svc->lock, NULL);
	quotas_init(&svc->quotas, "streams",
		    conf->streams_max ? conf->streams_max : STREAMS_MAX,
		    rpc->streams->seed);
	svc->nentries = conf->nmethods;
	svc->name = name_copy(conf->service.name);
	for (unsigned int i = 0; i < conf->nmethods; i++) {
		const struct ulrpc_stream_method *m = &conf->methods[i];

		svc->entries[i] = (struct entry){ svc, m->handler, m->arg,
						  name_copy(m->name) };
		if (!svc->entries[i].name)
			goto err;
	}
	if (svc->name)
		return svc;

err:
	service_put(svc);
	return NULL;
}

static void methods_fill(struct ulrpc_stream_service *svc,
			 const struct ulrpc_stream_service_conf *conf,
			 struct ulrpc_method_conf *methods)
{
	unsigned int n = conf->service.nmethods;

	for (unsigned int i = 0; i < n; i++)
		methods[i] = conf->service.methods[i];
	for (unsigned int i = 0; i < conf->nmethods; i++) {
		const struct ulrpc_stream_method *m = &conf->methods[i];

		methods[n + i] = (struct ulrpc_method_conf){
			.name = m->name,
			.handler = m->handler ? on_opening : NULL,
			.arg = &svc->entries[i],
			.run = m->run,
			.flavour = m->flavour,
		};
	}
}

int ulrpc_stream_serve(struct ulrpc *rpc,
		       const struct ulrpc_stream_service_conf *conf,
		       struct ulrpc_stream_service **service_p)
{
	struct ulrpc_service_conf mine = conf->service;
	struct ulrpc_stream_service *svc = service_new(rpc, conf);
	struct ulrpc_method_conf *methods;
	int rc;

	if (!svc)
		return -ENOMEM;
	mine.nmethods = conf->service.nmethods + conf->nmethods;
	methods = calloc(mine.nmethods + 1, sizeof(*methods));
	rc = methods ? carrier_start(rpc, mine.err) : -ENOMEM;
	if (!rc) {
		methods_fill(svc, conf, methods);
		mine.methods = methods;
		mine.ended = on_service_ended;
		mine.ended_arg = svc;
		if (!mine.request_max)
			mine.request_max = OPEN_HEAD + ULRPC_STREAM_MESSAGE_MAX;
		rc = ulrpc_service_start(rpc, &mine, &svc->service);
	}
	free(methods);
	if (rc)
		service_put(svc);
	else if (service_p)
		*service_p = svc;
	return rc;
}

/* The node ends @s, if the service has not. */
static void stream_cut(struct ulrpc_stream *s, int status,
		       enum ulrpc_cause cause, const char *text)
{
	bool ended = s->send_closed;

	rpc_stream_end_frame(s, status, cause, text);
	if (!ended)
		rpc_stream_over(s, status, cause);
}

static void end_streams(struct channel *ch, void *arg)
{
	struct ulrpc_stream *s;

	hash_for_each (s, &ch->streams, by_id)
		if (s->service == arg)
			stream_cut(s, -ESHUTDOWN, ULRPC_CAUSE_SHUTDOWN, NULL);
}

static void judge(struct channel *ch, void *arg)
{
	struct ulrpc_stream *s;

	if (ch->ops != &serving_ops || ch->shard != arg || ch->ended)
		return;
	hash_for_each (s, &ch->streams, by_id)
		if (!owner_may(ch->shard, &serving_of(ch)->owner, s->flavour,
			       s->service->name, s->method))
			stream_cut(s, -EPERM, ULRPC_CAUSE_REFUSED,
				   "no rule lets it any more");
}

void streams_on_rules(struct shard *s)
{
	if (s->exports && s->rpc->streams)
		streams_each(s->rpc->streams, judge, s);
}

static int turn(void *arg)
{
	(void)arg;
	return 0;
}

/* Waits until the users of streams have been told of all that has happened: in
 * the turns of each CPT that were due, and the work that these have deferred.
 */
static void users_wait(struct ulrpc *rpc)
{
	for (unsigned int i = 0; i < 2 * rpc->ncpts; i++)
		(void)lnet_call(rpc->node, i % rpc->ncpts, turn, NULL);
}

int ulrpc_stream_service_stop(struct ulrpc_stream_service *service,
			      uint64_t timeout)
{
	struct ulrpc *rpc = service->rpc;
	int rc;

	if (!rpc_may_manage(rpc->node))
		return -EDEADLK;
	atomic_store(&service->stopping, true);
	streams_each(rpc->streams, end_streams, service);
	rc = ulrpc_service_stop(service->service, timeout);
	if (rc != -EDEADLK)
		users_wait(rpc);
	return rc;
}
