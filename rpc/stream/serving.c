/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/stream/serving.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/stream/streams.h"

/* ms: a pull call is kept for so long, at most */
#define HOLD_MOST 5000u
/* A client that makes no pull call for so long counts as gone. */
#define SILENT_NS (60 * NSEC_PER_SEC)
/* A batch that does not come for so long, while later ones have come, counts as
 * lost: its client gives up earlier. */
#define GAP_NS SILENT_NS
/* calls of each client to the carrier that may be under way */
#define CARRIER_WINDOW 64u
/* requests in the carrier's queue, at most: kept pull calls */
#define CARRIER_QUEUE 65536u

static struct serving *serving_of(struct channel *ch)
{
	return container_of(ch, struct serving, ch);
}

/* ---- services and their quotas ---- */

void rpc_stream_service_put(struct ulrpc_stream_service *svc)
{
	if (atomic_fetch_sub(&svc->refs, 1) != 1)
		return;
	quotas_fini(&svc->quotas);
	pthread_mutex_destroy(&svc->lock);
	for (unsigned int i = 0; i < svc->nentries; i++)
		free(svc->entries[i].name);
	free(svc->name);
	streams_node_put(svc->node);
	free(svc);
}

struct credit rpc_stream_service_grant(struct ulrpc_stream_service *svc)
{
	struct credit grant;

	pthread_mutex_lock(&svc->lock);
	grant = svc->grant;
	pthread_mutex_unlock(&svc->lock);
	return grant;
}

struct quota *rpc_stream_service_take(struct ulrpc_stream_service *svc,
				      const struct ulnet_nid *nid, bool stream,
				      uint64_t now)
{
	struct quota *q;

	pthread_mutex_lock(&svc->lock);
	q = quota_take(&svc->quotas, nid, 1, now);
	svc->nstreams += q && stream;
	pthread_mutex_unlock(&svc->lock);
	if (q)
		atomic_fetch_add(&svc->refs, 1);
	return q;
}

static void service_give_back(struct ulrpc_stream_service *svc, struct quota *q,
			      bool stream)
{
	pthread_mutex_lock(&svc->lock);
	quota_put(&svc->quotas, q, 1);
	svc->nstreams -= stream;
	pthread_mutex_unlock(&svc->lock);
	rpc_stream_service_put(svc);
}

void serving_unlinked(struct ulrpc_stream *s)
{
	if (s->quota)
		service_give_back(s->service, s->quota, true);
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

/* Takes the call number @i out of serving.held. */
static struct held held_take(struct serving *v, unsigned int i)
{
	struct held h = v->held[i];

	v->nheld--;
	memmove(&v->held[i], &v->held[i + 1],
		(v->nheld - i) * sizeof(v->held[0]));
	return h;
}

/* Answers the call number @i. The lock is released meanwhile. */
static void held_answer(struct serving *v, unsigned int i, const void *body,
			size_t length)
{
	struct held h = held_take(v, i);

	v->heard = shard_now(v->ch.shard);
	channel_unlock(&v->ch);
	ulrpc_reply(h.request, body, length);
	channel_lock(&v->ch);
}

/* Called when the client has canceled a kept call, or is gone: ends the
 * channel. */
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
		/* The lock is released meanwhile, but other threads only add to
		 * the chunk. */
		held_answer(v, 0, begin, BATCH_HEAD + length);
		if (ch->ended)
			break;
		channel_sent(ch, length);
	}
}

/* Answers kept calls whose flavour has become too low for the channel: they
 * must not carry anything any more. */
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

		/* A node that has crashed answers nobody. */
		if (shard_is_mute(ch->shard))
			continue;
		channel_unlock(ch);
		ulrpc_fail(h.request, -ESHUTDOWN);
		channel_lock(ch);
	}
}

/* Returns when (ns) a batch will have been missing for too long. */
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
	/* CLOSE may come for a stream that was never opened here. */
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
	/* If the client is still there, its CLOSE will tell how much it has
	 * read. */
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
	service_give_back(v->service, v->quota, false);
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

/* Returns the channel @key of @owner, with a reference; NULL: there is none.
 * The caller holds the node's lock. */
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

/* Makes a channel. The node does not find it yet. Returns NULL if there is no
 * memory, or the host has used up its share. */
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
	v->quota = rpc_stream_service_take(svc, &info.source, false, v->heard);
	if (v->quota)
		return v;
	channel_put(&v->ch);
	return NULL;
}

/* Frees a channel that was never used. */
static void serving_drop(struct serving *v)
{
	service_give_back(v->service, v->quota, false);
	channel_put(&v->ch);
}

/* Looks for the channel again before adding a new one, because another thread
 * may open another stream of the channel at the same time. */
int serving_get(struct ulrpc_stream_service *svc, uint64_t key, bool known,
		const struct ulrpc_request *r, struct serving **v_p)
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

/* Returns the channel that @r is for, locked and with a reference. Returns NULL
 * if there is none that @r may use: then @r was refused. */
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
	else if (request_flavour(r) < v->flavour)
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
	/* The client sends the batch again; by then the missing one may have
	 * come. */
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
			.flavour = request_flavour(r),
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

/* Ends the channels whose clients' connections have ended. @client is not used:
 * a client that is gone may have claimed the NID and pid of another one. */
static void on_gone(void *arg, const struct ulnet_id *client)
{
	struct ulrpc *rpc = arg;

	(void)client;
	streams_each(rpc->streams, gone, NULL);
}

int serving_carrier_start(struct ulrpc *rpc, struct ulnet_conf_error *err)
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
		.request_limit = PUSH_HEAD + BATCH_LONG,
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

void serving_cut(struct ulrpc_stream *s, int status, enum ulrpc_cause cause,
		 const char *text)
{
	bool ended = s->send_closed;

	rpc_stream_end_frame(s, status, cause, text);
	if (!ended)
		rpc_stream_over(s, status, cause);
}

static void judge(struct channel *ch, void *arg)
{
	struct ulrpc_stream *s;

	if (ch->ops != &serving_ops || ch->shard != arg || ch->ended)
		return;
	hash_for_each (s, &ch->streams, by_id)
		if (!owner_may(ch->shard, &serving_of(ch)->owner, s->flavour,
			       s->service->name, s->method))
			serving_cut(s, -EPERM, ULRPC_CAUSE_REFUSED,
				    "no rule allows it any more");
}

void streams_on_rules(struct shard *s)
{
	if (s->exports && s->rpc->streams)
		streams_each(s->rpc->streams, judge, s);
}
