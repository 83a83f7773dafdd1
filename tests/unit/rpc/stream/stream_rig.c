/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/rpc/stream/stream_rig.h"

#include "base/buf.h"

/* ---- the service ---- */

/* A stream, as a handler has it. */
struct server {
	struct stream_rig *g;
	struct ulrpc_stream *stream;
	uint32_t to_send, sent, received;
	uint32_t size;
	bool echoes;
	uint8_t *kept; /* a message that could not be echoed yet */
	size_t kept_length;
};

static void server_ended(void *arg, struct ulrpc_stream *stream,
			 const struct ulrpc_stream_outcome *o)
{
	struct server *v = arg;

	v->g->served_ended++;
	v->g->served_outcome = *o;
	ulrpc_stream_put(stream);
	free(v->kept);
	free(v);
}

static void number(uint8_t *bytes, uint32_t size, uint32_t n)
{
	memset(bytes, (int)n, size);
	store_le32(bytes, n);
}

static void server_send(void *arg, struct ulrpc_stream *stream)
{
	struct server *v = arg;
	static uint8_t body[ULRPC_STREAM_LONG_MAX];

	while (v->sent < v->to_send) {
		int rc;

		number(body, v->size, v->sent);
		rc = ulrpc_stream_send(stream, body, v->size);
		if (rc)
			return;
		v->sent++;
	}
	if (v->to_send)
		ulrpc_stream_end(stream, 0, NULL);
}

static struct server *server_new(void *arg, struct ulrpc_stream *stream)
{
	struct server *v = calloc(1, sizeof(*v));

	cr_assert(v);
	v->g = arg;
	v->g->served++;
	v->stream = stream;
	return v;
}

static void watch(struct server *v,
		  void (*readable)(void *arg, struct ulrpc_stream *s),
		  void (*writable)(void *arg, struct ulrpc_stream *s))
{
	const struct ulrpc_stream_events events = { .readable = readable,
						    .writable = writable,
						    .ended = server_ended,
						    .arg = v };

	ulrpc_stream_watch(v->stream, &events);
}

static void list(void *arg, struct ulrpc_stream *stream, const void *body,
		 size_t length)
{
	struct server *v = server_new(arg, stream);

	cr_assert_eq(length, 8);
	v->to_send = load_le32(body);
	v->size = load_le32((const uint8_t *)body + 4);
	watch(v, NULL, server_send);
	server_send(v, stream);
}

static void sum_read(void *arg, struct ulrpc_stream *stream)
{
	struct server *v = arg;
	const void *body;
	size_t length;
	uint8_t answer[4];
	int rc;

	while ((rc = ulrpc_stream_next(stream, &body, &length)) == 1)
		cr_assert_eq(load_le32(body), v->received++);
	if (rc)
		return;
	store_le32(answer, v->received);
	if (!ulrpc_stream_send(stream, answer, sizeof(answer)))
		ulrpc_stream_end(stream, 0, NULL);
}

static void sum(void *arg, struct ulrpc_stream *stream, const void *body,
		size_t length)
{
	(void)body;
	(void)length;
	watch(server_new(arg, stream), sum_read, NULL);
}

/* Returns whether there is room for more. */
static bool echo_one(struct server *v, const void *body, size_t length)
{
	int rc = ulrpc_stream_send(v->stream, body, length);

	if (rc != -EAGAIN)
		return !rc;
	v->kept = malloc(length);
	cr_assert(v->kept);
	memcpy(v->kept, body, length);
	v->kept_length = length;
	return false;
}

static void echo_go(void *arg, struct ulrpc_stream *stream)
{
	struct server *v = arg;
	uint8_t *kept = v->kept;
	const void *body;
	size_t length;
	int rc = 1;

	v->kept = NULL;
	if (kept && !echo_one(v, kept, v->kept_length))
		rc = -EAGAIN;
	free(kept);
	while (rc == 1) {
		rc = ulrpc_stream_next(stream, &body, &length);
		if (rc == 1 && !echo_one(v, body, length))
			rc = -EAGAIN;
	}
	if (!rc)
		ulrpc_stream_end(stream, 0, NULL);
}

static void echo_stream(void *arg, struct ulrpc_stream *stream,
			const void *body, size_t length)
{
	(void)body;
	(void)length;
	watch(server_new(arg, stream), echo_go, echo_go);
}

static void park_stream(void *arg, struct ulrpc_stream *stream,
			const void *body, size_t length)
{
	struct stream_rig *g = arg;

	(void)body;
	(void)length;
	cr_assert_lt(g->nparked, PARKED);
	g->served++;
	g->parked[g->nparked++] = stream;
}

static void fail_stream(void *arg, struct ulrpc_stream *stream,
			const void *body, size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	ulrpc_stream_end(stream, -42, "no more\nof this");
	ulrpc_stream_put(stream);
}

static void work(void *arg, struct ulrpc_stream *stream, const void *body,
		 size_t length)
{
	struct stream_rig *g = arg;
	const void *message;
	int rc;

	(void)body;
	g->served++;
	while ((rc = ulrpc_stream_next_wait(stream, &message, &length)) == 1)
		if (ulrpc_stream_send_wait(stream, message, length))
			break;
	ulrpc_stream_end(stream, rc, NULL);
	ulrpc_stream_put(stream);
	g->served_ended++;
}

void stream_rig_serve(struct stream_rig *g,
		      const struct ulrpc_stream_service_conf *more)
{
	const struct ulrpc_stream_method methods[] = {
		{ "list", list, g, ULRPC_RUN_INLINE, 0 },
		{ "sum", sum, g, ULRPC_RUN_INLINE, 0 },
		{ "echo", echo_stream, g, ULRPC_RUN_INLINE, 0 },
		{ "park", park_stream, g, ULRPC_RUN_INLINE, 0 },
		{ "fail", fail_stream, g, ULRPC_RUN_INLINE, 0 },
		{ "work", work, g, ULRPC_RUN_WORKER, 0 },
	};
	struct ulrpc_stream_service_conf conf;

	ulrpc_stream_service_conf_init(&conf);
	if (more)
		conf = *more;
	conf.service.name = "flow";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	cr_assert_eq(ulrpc_stream_serve(g->s.rpc[SERVER], &conf, &g->service),
		     0);
}

/* ---- the rig ---- */

void stream_rig_open(struct stream_rig *g,
		     const struct ulrpc_stream_service_conf *more)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_streams_conf conf;
	struct ulrpc_conf caller;

	serve_open(&g->s, NULL);
	stream_rig_serve(g, more);
	ulrpc_conf_init(&caller);
	caller.reply_bytes_max = g->reply_bytes_max;
	cr_assert_eq(ulrpc_open(g->s.node[CALLER], &caller, &g->s.rpc[CALLER]),
		     0);
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = "flow";
	cr_assert_eq(ulrpc_streams_open(g->s.rpc[CALLER], &conf, &g->streams),
		     0);
}

void stream_rig_init(struct stream_rig *g, uint64_t seed, unsigned int cpts)
{
	memset(g, 0, sizeof(*g));
	serve_init(&g->s, seed, cpts);
	stream_rig_open(g, NULL);
}

void stream_rig_fini(struct stream_rig *g)
{
	ulrpc_streams_close(g->streams);
	for (unsigned int i = 0; i < g->nparked; i++)
		ulrpc_stream_put(g->parked[i]);
	serve_fini(&g->s);
	/* Each stream that a handler got is over for it. */
	cr_assert_eq(g->served, g->served_ended + g->nparked);
}

/* ---- the client's side ---- */

void flow_read(struct flow *f)
{
	const void *body;
	size_t length;

	while (ulrpc_stream_next(f->stream, &body, &length) == 1) {
		cr_assert_geq(length, 4);
		cr_assert_eq(load_le32(body), f->received,
			     "message %u came as the %u-th", load_le32(body),
			     f->received);
		f->received++;
	}
}

void flow_send(struct flow *f)
{
	static uint8_t body[ULRPC_STREAM_LONG_MAX];

	while (f->sent < f->to_send) {
		number(body, f->size, f->sent);
		if (ulrpc_stream_send(f->stream, body, f->size))
			return;
		f->sent++;
	}
	if (!f->open_ended)
		(void)ulrpc_stream_close_send(f->stream);
}

static void on_readable(void *arg, struct ulrpc_stream *stream)
{
	struct flow *f = arg;

	(void)stream;
	if (!f->lazy)
		flow_read(f);
}

static void on_writable(void *arg, struct ulrpc_stream *stream)
{
	(void)stream;
	flow_send(arg);
}

static void on_ended(void *arg, struct ulrpc_stream *stream,
		     const struct ulrpc_stream_outcome *outcome)
{
	struct flow *f = arg;

	(void)stream;
	f->ended++;
	f->outcome = *outcome;
}

void flow_open(struct stream_rig *g, struct flow *f, const char *method,
	       const void *body, size_t length, uint64_t deadline)
{
	const struct ulrpc_stream_conf conf = {
		.deadline = deadline,
		.events = { on_readable, on_writable, on_ended, f },
	};

	f->g = g;
	f->size = f->size ? f->size : 64;
	cr_assert_eq(ulrpc_stream_open(g->streams, method, body, length, &conf,
				       &f->stream),
		     0);
	flow_send(f);
}

void flow_finish(struct flow *f)
{
	while (!f->ended)
		lnet_sim_run(f->g->s.sim, MSEC);
	cr_assert_eq(f->ended, 1);
	ulrpc_stream_put(f->stream);
}

void flow_went_well(const struct flow *f, uint32_t sent, uint32_t received)
{
	const struct ulrpc_stream_outcome *o = &f->outcome;
	const struct ulnet_nid server = nth_id(SERVER).nid;

	cr_assert(lnet_nid_eq(&o->server, &server));
	cr_assert_eq(o->cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(o->cause));
	cr_assert_eq(o->status, 0);
	cr_assert_eq(o->execution, ULRPC_EXECUTED);
	cr_assert_eq(o->sent, sent);
	cr_assert_eq(o->delivered, sent);
	cr_assert_eq(o->undelivered, 0);
	cr_assert_eq(o->received, received);
	cr_assert_eq(f->received, received);
}
