/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams with a hostile peer, over simulated nodes. The first byte says which
 * side it is: 0, the client; else the server. Then come records: a byte that
 * says what to do, two of the length, and so many bytes. What no fuzzer would
 * guess is filled in here: the name of the channel, and, unless the record says
 * that it is raw, the number of the batch.
 *
 * The other side must not crash, and in the end every stream has ended once,
 * and nothing is left of the channel.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "rpc/stream/frame.h"
#include "rpc/stream/streams.h"
#include "ulnet/sim.h"

#define SEC	UINT64_C(1000000000)
#define MSEC	UINT64_C(1000000)
#define KEY	UINT64_C(0x1234)
#define RECORDS 64
#define HELD	16
#define STREAMS 3
#define RAW	0x80

enum { OPEN, PUSH, PULL, PAUSE, KINDS };

struct record {
	uint8_t what;
	const uint8_t *bytes;
	size_t length;
};

struct trial {
	struct lnet_sim *sim;
	struct ulrpc *rpc[2];
	const uint8_t *p, *end;
	unsigned int nrecords;
	/* how many streams the side under test has, and how many have ended */
	unsigned int opened, ended;
	uint64_t making, number;
	/* the hostile server: all streams have been opened; pushes so far */
	bool ready;
	unsigned int pushes;
	struct ulrpc_request *held[HELD];
	unsigned int nheld;
	struct ulrpc_stream *kept[RECORDS]; /* that the service holds */
	unsigned int nkept;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool record_next(struct trial *t, struct record *r)
{
	if (t->end - t->p < 3 || t->nrecords++ == RECORDS)
		return false;
	r->what = t->p[0];
	r->length = t->p[1] | (size_t)t->p[2] << 8;
	r->bytes = t->p + 3;
	r->length = MIN(r->length, (size_t)(t->end - r->bytes));
	t->p = r->bytes + r->length;
	return true;
}

/* Returns a batch, with @front bytes in front of it, which the caller frees. */
static uint8_t *batch_of(struct trial *t, const struct record *r, size_t front,
			 size_t *length_p)
{
	size_t head = r->what & RAW ? 0 : BATCH_HEAD;
	uint8_t *batch = calloc(1, front + head + r->length + 1);

	BUG_ON(!batch);
	if (head)
		store_le64(batch + front, t->number++);
	memcpy(batch + front + head, r->bytes, r->length);
	*length_p = front + head + r->length;
	return batch;
}

/* ---- the side under test: sends back what comes ---- */

static void on_ready(void *arg, struct ulrpc_stream *stream)
{
	const void *body;
	size_t length;
	int rc;

	(void)arg;
	while ((rc = ulrpc_stream_next(stream, &body, &length)) == 1)
		(void)ulrpc_stream_send(stream, body, length);
	if (rc)
		return;
	/* Only one of them does something. */
	ulrpc_stream_end(stream, 0, "that was all");
	(void)ulrpc_stream_close_send(stream);
}

static void on_over(void *arg, struct ulrpc_stream *stream,
		    const struct ulrpc_stream_outcome *o)
{
	struct trial *t = arg;

	(void)stream;
	BUG_ON(o->delivered + o->undelivered > o->sent);
	t->ended++;
}

static const struct ulrpc_stream_events events_of_all = {
	.readable = on_ready,
	.ended = on_over,
};

static void serve(void *arg, struct ulrpc_stream *stream, bool reads)
{
	struct ulrpc_stream_events events = events_of_all;

	((struct trial *)arg)->opened++;
	events.arg = arg;
	if (!reads)
		events.readable = NULL;
	ulrpc_stream_watch(stream, &events);
	if (!reads)
		ulrpc_stream_put(stream);
}

static void serve_echo(void *arg, struct ulrpc_stream *stream, const void *body,
		       size_t length)
{
	struct trial *t = arg;

	(void)ulrpc_stream_send(stream, body, length);
	serve(arg, stream, true);
	t->kept[t->nkept++] = stream;
}

static void serve_drop(void *arg, struct ulrpc_stream *stream, const void *body,
		       size_t length)
{
	(void)body;
	(void)length;
	serve(arg, stream, false);
}

/* ---- a hostile client ---- */

static void on_answer(void *arg, const struct ulrpc_outcome *outcome,
		      const void *reply, size_t length)
{
	struct trial *t = arg;

	if (!outcome->cause && length == OPENED_SIZE)
		t->making = load_le64((const uint8_t *)reply + 12);
}

static void call(struct trial *t, struct ulrpc_client *client,
		 const char *method, const void *body, size_t length)
{
	const struct ulrpc_retry once = { .max = 0 };
	const struct ulrpc_call_conf conf = { .deadline = 2000000,
					      .reply_max = BATCH_MAX,
					      .retry = &once };

	if (ulrpc_call(client, ulrpc_method(method), body, length, &conf,
		       on_answer, t, NULL))
		return;
	lnet_sim_run(t->sim, MSEC);
}

static void open_raw(struct trial *t, struct ulrpc_client *client,
		     const struct record *r)
{
	uint8_t *copy = malloc(r->length + 1);

	BUG_ON(!copy);
	memcpy(copy, r->bytes, r->length);
	if (r->length >= 8)
		store_le64(copy, KEY);
	call(t, client, r->what & RAW ? "drop" : "echo", copy, r->length);
	free(copy);
}

static void pull_raw(struct trial *t, struct ulrpc_client *carrier,
		     const struct record *r)
{
	uint8_t body[PULL_SIZE] = { 0 };

	memcpy(body + 16, r->bytes, MIN(r->length, PULL_SIZE - 16u));
	store_le64(body, KEY);
	store_le64(body + 8, t->making);
	call(t, carrier, STREAM_PULL, body,
	     r->what & RAW ? MIN(r->length, PULL_SIZE) : PULL_SIZE);
}

static void push_raw(struct trial *t, struct ulrpc_client *carrier,
		     const struct record *r)
{
	size_t length;
	uint8_t *body = batch_of(t, r, PUSH_HEAD, &length);

	store_le64(body, KEY);
	store_le64(body + 8, t->making);
	call(t, carrier, STREAM_PUSH, body, length);
	free(body);
}

static struct ulrpc_client *client_of(struct trial *t, const char *service)
{
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;

	ulrpc_client_conf_init(&conf);
	conf.target = "10.0.0.2@tcp";
	conf.service = service;
	BUG_ON(ulrpc_client_open(t->rpc[0], &conf, &client));
	return client;
}

static void serve_streams(struct trial *t)
{
	const struct ulrpc_stream_method methods[] = {
		{ "echo", serve_echo, t, ULRPC_RUN_INLINE, 0 },
		{ "drop", serve_drop, t, ULRPC_RUN_INLINE, 0 },
	};
	struct ulrpc_stream_service_conf conf;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "flow";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.streams_max = 16;
	BUG_ON(ulrpc_stream_serve(t->rpc[1], &conf, NULL));
}

static void hostile_client(struct trial *t)
{
	struct ulrpc_client *flow, *carrier;
	struct record r;

	serve_streams(t);
	flow = client_of(t, "flow");
	carrier = client_of(t, RPC_STREAM_CARRIER);
	while (record_next(t, &r))
		switch (r.what % KINDS) {
		case OPEN:
			open_raw(t, flow, &r);
			break;
		case PUSH:
			push_raw(t, carrier, &r);
			break;
		case PULL:
			pull_raw(t, carrier, &r);
			break;
		default:
			lnet_sim_run(t->sim, r.length * MSEC);
		}
	/* It is silent, and so is gone. */
	lnet_sim_run(t->sim, 80 * SEC);
	BUG_ON(t->rpc[1]->streams->by_key.count);
	BUG_ON(t->rpc[1]->streams->early.used);
	ulrpc_client_close(flow);
	ulrpc_client_close(carrier);
}

/* ---- a hostile server ---- */

static void hold(struct trial *t, struct ulrpc_request *r)
{
	if (t->nheld == HELD)
		ulrpc_fail(r, -EIO);
	else
		t->held[t->nheld++] = r;
}

static void answer_opening(void *arg, struct ulrpc_request *r, const void *body,
			   size_t length)
{
	struct trial *t = arg;
	uint8_t reply[OPENED_SIZE] = { 0 };
	struct record record;

	(void)body;
	(void)length;
	store_le32(reply, 64);
	store_le32(reply + 4, 65536);
	store_le64(reply + 12, 7);
	if (t->p < t->end && *t->p % KINDS == OPEN && record_next(t, &record))
		memcpy(reply, record.bytes, MIN(record.length, sizeof(reply)));
	ulrpc_reply(r, reply, sizeof(reply));
}

static void answer_push(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	struct trial *t = arg;

	(void)body;
	(void)length;
	/* the ninth and each ninth one are not answered */
	if (t->pushes++ % 9 == 8)
		hold(t, r);
	else
		ulrpc_reply(r, NULL, 0);
}

static void answer_pull(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	struct trial *t = arg;
	struct ulrpc_request_info info;
	struct record record;
	uint8_t *reply;
	size_t n;

	(void)body;
	(void)length;
	if (!t->ready || !record_next(t, &record)) {
		hold(t, r);
		return;
	}
	if (record.what % KINDS == PAUSE) {
		ulrpc_reply(r, NULL, 0);
		return;
	}
	ulrpc_request_info(r, &info);
	reply = batch_of(t, &record, 0, &n);
	ulrpc_reply(r, reply, MIN(n, info.reply_max));
	free(reply);
}

static void serve_as(struct trial *t, const char *name,
		     const struct ulrpc_method_conf *methods, unsigned int n)
{
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = name;
	conf.methods = methods;
	conf.nmethods = n;
	conf.request_max = PUSH_HEAD + BATCH_MAX;
	BUG_ON(ulrpc_service_start(t->rpc[1], &conf, NULL));
}

/* The streams are open: what waits gets answers. */
static void begin(struct trial *t)
{
	unsigned int n = t->nheld;

	t->ready = true;
	t->nheld = 0;
	for (unsigned int i = 0; i < n; i++)
		answer_pull(t, t->held[i], NULL, 0);
}

static void hostile_server(struct trial *t)
{
	const struct ulrpc_method_conf flow = { "echo", answer_opening, t,
						.run = ULRPC_RUN_INLINE };
	const struct ulrpc_method_conf carrier[] = {
		{ STREAM_PUSH, answer_push, t, .run = ULRPC_RUN_INLINE },
		{ STREAM_PULL, answer_pull, t, .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_stream_conf limits = { .deadline = 30000000,
					    .events = events_of_all };
	struct ulrpc_stream *stream[STREAMS] = { NULL };
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;

	serve_as(t, "flow", &flow, 1);
	serve_as(t, RPC_STREAM_CARRIER, carrier, 2);
	ulrpc_streams_conf_init(&conf);
	conf.client.target = "10.0.0.2@tcp";
	conf.client.service = "flow";
	BUG_ON(ulrpc_streams_open(t->rpc[0], &conf, &streams));
	limits.events.arg = t;
	for (int i = 0; i < STREAMS; i++) {
		t->opened++;
		BUG_ON(ulrpc_stream_open(streams, "echo", "x", 1, &limits,
					 &stream[i]));
		lnet_sim_run(t->sim, 5 * MSEC);
		(void)ulrpc_stream_send(stream[i], "hello", 5);
	}
	begin(t);
	lnet_sim_run(t->sim, 80 * SEC);
	for (int i = 0; i < STREAMS; i++)
		ulrpc_stream_put(stream[i]);
	ulrpc_streams_close(streams);
	for (unsigned int i = 0; i < t->nheld; i++)
		ulrpc_fail(t->held[i], -EIO);
	lnet_sim_run(t->sim, 80 * SEC);
	BUG_ON(!list_empty(&t->rpc[0]->streams->channels));
}

/* ---- both ---- */

static void node_new(struct trial *t, int index, const char *nid)
{
	const struct ulnet_conf conf = { .discovery = LNET_DISCOVERY_OFF };

	BUG_ON(lnet_sim_node_add(t->sim, nid, &conf, NULL, NULL) != index);
	BUG_ON(ulrpc_open(lnet_sim_node(t->sim, (unsigned int)index), NULL,
			  &t->rpc[index]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trial t = { .p = data + 1, .end = data + size };

	if (!size)
		return 0;
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	BUG_ON(lnet_sim_new(1, 1, &t.sim));
	node_new(&t, 0, "10.0.0.1@tcp");
	node_new(&t, 1, "10.0.0.2@tcp");
	if (data[0])
		hostile_server(&t);
	else
		hostile_client(&t);
	BUG_ON(t.ended != t.opened);
	while (t.nkept)
		ulrpc_stream_put(t.kept[--t.nkept]);
	BUG_ON(lnet_sim_free(t.sim));
	return 0;
}
