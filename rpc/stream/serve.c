/* SPDX-License-Identifier: BSD-3-Clause */
/* Services with streams: how they are started and stopped, and how streams are
 * opened. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/context/scope.h"
#include "rpc/stream/serving.h"
#include "rpc/streaming.h"
#include "rpc/stream/streams.h"

#define WINDOW_MESSAGES 64u
#define WINDOW_BYTES	65536u
#define STREAMS_MAX	65536u

/* ---- opening ---- */

struct opening {
	uint64_t key;
	uint32_t id;
	struct credit window;
	uint64_t time_left; /* in us */
	bool known;	    /* the client has used the channel before */
	bool annexes;	    /* it reads END_ANNEX */
	bool longs;	    /* it takes long messages */
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
		.annexes = load_le32(p + 20) & OPEN_ANNEX,
		.longs = load_le32(p + 20) & OPEN_LONG,
	};
	return o->id && o->window.messages && o->window.bytes && o->time_left;
}

/* Makes the stream, with a reference for the handler and one for the caller.
 * The lock is held. */
static int stream_make(struct serving *v, const struct stream_entry *e,
		       const struct opening *o, const struct ulrpc_request *r,
		       struct ulrpc_stream **stream_p)
{
	struct ulrpc_stream_service *svc = e->service;
	const struct credit grant = rpc_stream_service_grant(svc);
	struct ulrpc_request_info info;
	uint64_t now = shard_now(v->ch.shard);
	enum ulrpc_flavour flavour = request_flavour(r);
	const uint8_t *trace = request_trace_of(r);
	struct ulrpc_stream *s;

	/* Checked with the lock held: either end_streams() sees the new stream,
	 * or this sees @stopping. */
	if (atomic_load(&svc->stopping))
		return -ESHUTDOWN;
	if (v->ch.ended || channel_find(&v->ch, o->id))
		return -EINVAL;
	s = rpc_stream_new(&v->ch, o->id, &grant,
			   rpc_at(now, rpc_ns(o->time_left)));
	if (!s)
		return -ENOMEM;
	ulrpc_request_info(r, &info);
	s->service = svc;
	s->method = e->name;
	s->flavour = flavour;
	s->quota = rpc_stream_service_take(svc, &info.source, true, now);
	if (trace)
		s->scope = scope_new(s->deadline, trace);
	if (!s->quota || (trace && !s->scope) || rpc_stream_link(s)) {
		serving_unlinked(s);
		rpc_stream_unref(s);
		return -EBUSY;
	}
	s->refs++;
	s->serving = true;
	s->annexes = o->annexes;
	s->execution = ULRPC_EXECUTED;
	rpc_stream_open(s, &o->window, o->longs);
	v->flavour = MAX(v->flavour, flavour);
	channel_kick(&v->ch);
	*stream_p = s;
	return 0;
}

static void answer_opening(const struct ulrpc_stream *s,
			   struct ulrpc_request *r)
{
	uint8_t reply[OPENED_SIZE];

	store_le32(reply, (uint32_t)s->grant.messages);
	store_le32(reply + 4, (uint32_t)s->grant.bytes);
	store_le32(reply + 8,
		   request_flavour(r) | (s->longs ? OPENED_LONG : 0));
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

/* Interceptors hear of the end of the stream, not of @r. */
static void take_seen(struct ulrpc_stream *s, struct ulrpc_request *r)
{
	struct request_seen *seen = request_seen_take(r);

	if (!seen)
		return;
	channel_lock(s->ch);
	s->request_seen = seen;
	s->began = shard_now(s->ch->shard);
	if (s->over)
		rpc_stream_event(s, EVENT_ENDED);
	channel_unlock(s->ch);
}

/* Keeps the metadata of @r as long as the stream is there, in @came, which has
 * room for them. */
static void keep_metadata(struct ulrpc_stream *s, const struct ulrpc_request *r,
			  uint8_t *came)
{
	size_t length;
	const void *annex = request_metadata_of(r, &length);

	s->came_bytes = came;
	if (!annex)
		return;
	memcpy(came, annex, length);
	s->came = (struct wire_view){ came, came + length };
}

/* Answers @r, and gives the stream to the handler. @copy gets the body, which
 * is gone when @r is answered. */
static void serve_stream(const struct stream_entry *e, struct ulrpc_stream *s,
			 const struct opening *o, struct ulrpc_request *r,
			 const uint8_t *body, size_t length, uint8_t *copy)
{
	struct ulrpc_stream_info info;

	if (length)
		memcpy(copy, body, length);
	stream_info_fill(&info, r, o);
	s->info = &info;
	take_seen(s, r);
	answer_opening(s, r);
	e->handler(e->arg, s, copy, length);
	s->info = NULL;
}

static void on_opening(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	const struct stream_entry *e = arg;
	struct ulrpc_stream_service *svc = e->service;
	struct ulrpc_stream *s;
	struct serving *v = NULL;
	struct opening o;
	uint8_t *copy, *came = NULL;
	size_t more;
	int rc;

	if (!opening_read(body, length, &o)) {
		ulrpc_refuse(r);
		return;
	}
	(void)request_metadata_of(r, &more);
	copy = malloc(length);
	if (more)
		came = malloc(more);
	rc = copy && (came || !more) ? serving_get(svc, o.key, o.known, r, &v)
				     : -ENOMEM;
	if (!rc) {
		channel_lock(&v->ch);
		rc = stream_make(v, e, &o, r, &s);
		channel_unlock(&v->ch);
	}
	if (rc) {
		refuse_opening(r, rc);
		free(came);
	} else {
		keep_metadata(s, r, came);
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

static void service_leave(struct ulrpc_stream_service *svc)
{
	pthread_mutex_lock(&svc->node->lock);
	list_del(&svc->of_node);
	pthread_mutex_unlock(&svc->node->lock);
}

static void on_service_ended(void *arg)
{
	struct ulrpc_stream_service *svc = arg;

	service_leave(svc);
	if (svc->ended)
		svc->ended(svc->ended_arg);
	rpc_stream_service_put(svc);
}

/* If there is no name, ulrpc_service_start() complains. */
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
	svc->node = rpc->streams;
	atomic_fetch_add(&svc->node->refs, 1);
	list_init(&svc->of_node);
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

		svc->entries[i] =
			(struct stream_entry){ svc, m->handler, m->arg,
					       name_copy(m->name) };
		if (!svc->entries[i].name)
			goto err;
	}
	if (svc->name)
		return svc;

err:
	rpc_stream_service_put(svc);
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
	rc = methods ? serving_carrier_start(rpc, mine.err) : -ENOMEM;
	if (!rc) {
		methods_fill(svc, conf, methods);
		mine.methods = methods;
		mine.ended = on_service_ended;
		mine.ended_arg = svc;
		if (!mine.request_max)
			mine.request_max = OPEN_HEAD + ULRPC_STREAM_MESSAGE_MAX;
		pthread_mutex_lock(&svc->node->lock);
		list_add_tail(&svc->node->services, &svc->of_node);
		pthread_mutex_unlock(&svc->node->lock);
		rc = service_start_streams(rpc, &mine, conf->nmethods,
					   OPEN_HEAD, &svc->service);
		if (rc)
			service_leave(svc);
	}
	free(methods);
	if (rc)
		rpc_stream_service_put(svc);
	else if (service_p)
		*service_p = svc;
	return rc;
}

static void end_streams(struct channel *ch, void *arg)
{
	struct ulrpc_stream *s;

	hash_for_each (s, &ch->streams, by_id)
		if (s->service == arg)
			serving_cut(s, -ESHUTDOWN, ULRPC_CAUSE_SHUTDOWN, NULL);
}

static int turn(void *arg)
{
	(void)arg;
	return 0;
}

/* Waits until the users of streams have been told everything that has happened:
 * lets each CPT make its turns, and run the work that these have deferred. */
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
