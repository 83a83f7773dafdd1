/* SPDX-License-Identifier: BSD-3-Clause */
/* Interceptors of streams: they see the call that opens a stream, and then the
 * end of the stream; the calls that carry it they do not see. */
#include "tests/unit/rpc/stream/stream_rig.h"
#include "ulnet/intercept.h"

#define MINUTE UINT64_C(60000000) /* us */

struct witness {
	unsigned int begun, ended;
	int refuse;
	const char *why; /* NULL: no text */
	size_t length;
	bool stream;
	enum ulrpc_cause cause;
	int status;
	size_t received, sent;
	char service[ULRPC_SERVICE_NAME], method[32];
	struct flow *flow; /* a stream that is watched from within the end */
};

static struct stream_rig g;
static struct witness at_client, at_service;

static unsigned int late_ends;

static void on_late_end(void *arg, struct ulrpc_stream *s,
			const struct ulrpc_stream_outcome *o)
{
	(void)o;
	cr_expect_eq(s, ((struct flow *)arg)->stream);
	late_ends++;
}

/* What another thread may do while the interceptors hear of the end. */
static void flow_watch_late(struct flow *f)
{
	const struct ulrpc_stream_events events = { .ended = on_late_end,
						    .arg = f };

	ulrpc_stream_watch(f->stream, &events);
}

static int call_begin(void *arg, struct ulrpc_call_start *s)
{
	struct witness *x = arg;

	x->begun++;
	x->stream = s->stream;
	x->length = s->length;
	if (s->length)
		cr_expect_arr_eq(s->body, "body", 4);
	s->state = x;
	return x->refuse;
}

static void call_end(void *arg, void *state, const struct ulrpc_call_end *e)
{
	struct witness *x = arg;

	cr_expect_eq(state, x);
	x->ended++;
	cr_expect(e->stream);
	x->cause = e->outcome->cause;
	x->status = e->outcome->status;
	x->received = e->length;
	snprintf(x->service, sizeof(x->service), "%s", e->service);
	if (x->flow)
		flow_watch_late(x->flow);
}

static int request_begin(void *arg, struct ulrpc_request_start *s)
{
	struct witness *x = arg;

	x->begun++;
	x->stream = s->stream;
	x->length = s->length;
	if (s->length)
		cr_expect_arr_eq(s->body, "body", 4);
	s->state = x;
	if (x->why)
		snprintf(s->text, sizeof(s->text), "%s", x->why);
	return x->refuse;
}

static void request_end(void *arg, void *state,
			const struct ulrpc_request_end *e)
{
	struct witness *x = arg;

	cr_expect_eq(state, x);
	x->ended++;
	cr_expect(e->stream);
	x->cause = e->cause;
	x->status = e->status;
	x->received = e->received;
	x->sent = e->sent;
	snprintf(x->service, sizeof(x->service), "%s", e->service);
	snprintf(x->method, sizeof(x->method), "%s", e->method);
}

static void begin(unsigned int cpts)
{
	const struct ulrpc_call_interceptor calls = { call_begin, call_end,
						      &at_client };
	const struct ulrpc_request_interceptor requests = { request_begin,
							    request_end,
							    &at_service };
	const struct ulrpc_conf caller = { .call_interceptors = &calls,
					   .ncall_interceptors = 1 };
	const struct ulrpc_conf server = { .request_interceptors = &requests,
					   .nrequest_interceptors = 1 };
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	const struct ulrpc_streams_conf conf = {
		.client = { .nids = &nid, .nnids = 1, .service = "flow" }
	};

	memset(&g, 0, sizeof(g));
	at_client = at_service = (struct witness){ 0 };
	serve_init(&g.s, 1, cpts);
	serve_open(&g.s, &server);
	stream_rig_serve(&g, NULL);
	cr_assert_eq(ulrpc_open(g.s.node[CALLER], &caller, &g.s.rpc[CALLER]),
		     0);
	cr_assert_eq(ulrpc_streams_open(g.s.rpc[CALLER], &conf, &g.streams), 0);
}

Test(stream_intercept, until_the_end)
{
	for (unsigned int cpts = 1; cpts < 3; cpts++) {
		struct flow f = { .to_send = 100, .open_ended = true };

		begin(cpts);
		flow_open(&g, &f, "echo", "body", 4, MINUTE);
		lnet_sim_run(g.s.sim, SEC);
		cr_expect_eq(f.received, 100);
		cr_expect_eq(at_client.begun, 1);
		cr_expect_eq(at_service.begun, 1);
		cr_expect(at_client.stream && at_service.stream);
		cr_expect_eq(at_client.length, 4);
		cr_expect_eq(at_service.length, 4);
		cr_expect_eq(at_client.ended, 0);
		cr_expect_eq(at_service.ended, 0);
		cr_assert_eq(ulrpc_stream_close_send(f.stream), 0);
		flow_finish(&f);
		lnet_sim_run(g.s.sim, SEC);
		cr_expect_eq(f.outcome.cause, ULRPC_CAUSE_OK);
		cr_expect_eq(at_client.ended, 1);
		cr_expect_eq(at_client.cause, ULRPC_CAUSE_OK);
		cr_expect_str_eq(at_client.service, "flow");
		cr_expect_eq(at_client.received, 6400);
		cr_expect_eq(at_service.ended, 1);
		cr_expect_eq(at_service.cause, ULRPC_CAUSE_OK);
		cr_expect_eq(at_service.received, 6400);
		cr_expect_eq(at_service.sent, 6400);
		cr_expect_str_eq(at_service.service, "flow");
		cr_expect_str_eq(at_service.method, "echo");
		stream_rig_fini(&g);
	}
}

/* The user of the stream looks for nothing, and gives it up. */
Test(stream_intercept, failed_and_canceled)
{
	struct flow f[2] = { { .lazy = true }, { .lazy = true } };

	begin(1);
	flow_open(&g, &f[0], "fail", NULL, 0, MINUTE);
	lnet_sim_run(g.s.sim, SEC);
	cr_expect_eq(at_client.ended, 1);
	cr_expect_eq(at_client.cause, ULRPC_CAUSE_HANDLER);
	cr_expect_eq(at_client.status, -42);
	cr_expect_eq(at_service.ended, 1);
	cr_expect_eq(at_service.status, -42);
	ulrpc_stream_put(f[0].stream);
	flow_open(&g, &f[1], "park", NULL, 0, MINUTE);
	lnet_sim_run(g.s.sim, SEC);
	ulrpc_stream_put(f[1].stream);
	lnet_sim_run(g.s.sim, SEC);
	cr_expect_eq(at_client.ended, 2);
	cr_expect_eq(at_client.cause, ULRPC_CAUSE_CANCELED);
	cr_expect_eq(at_service.ended, 2);
	cr_expect_eq(at_service.cause, ULRPC_CAUSE_CANCELED);
	/* "fail" is not counted by the rig */
	stream_rig_fini(&g);
}

/* What the service does not find is not the channel of the stream that is
 * open, with a text or without. */
static void refuse_as_not_found(const char *why, const char *text)
{
	struct flow f[2] = { { .to_send = 1, .open_ended = true },
			     { .lazy = true } };

	begin(1);
	flow_open(&g, &f[0], "echo", NULL, 0, MINUTE);
	lnet_sim_run(g.s.sim, SEC);
	at_service.refuse = -ENOENT;
	at_service.why = why;
	flow_open(&g, &f[1], "echo", NULL, 0, MINUTE);
	flow_finish(&f[1]);
	cr_expect_eq(f[1].outcome.cause, ULRPC_CAUSE_HANDLER);
	cr_expect_eq(f[1].outcome.status, -ENOENT);
	cr_expect_eq(f[1].outcome.execution, ULRPC_NOT_EXECUTED);
	cr_expect_str_eq(f[1].outcome.text, text);
	at_service.refuse = 0;
	cr_expect_eq(f[0].ended, 0);
	cr_assert_eq(ulrpc_stream_close_send(f[0].stream), 0);
	flow_finish(&f[0]);
	flow_went_well(&f[0], 1, 1);
	stream_rig_fini(&g);
}

Test(stream_intercept, refused_as_not_found)
{
	refuse_as_not_found("no such room", "no such room");
	refuse_as_not_found(NULL, "refused by an interceptor");
}

Test(stream_intercept, refused)
{
	struct flow f[3] = { { .lazy = true },
			     { .lazy = true },
			     { .lazy = true } };

	begin(1);
	at_client.refuse = -EPERM;
	flow_open(&g, &f[0], "echo", NULL, 0, MINUTE);
	flow_finish(&f[0]);
	cr_expect_eq(f[0].outcome.cause, ULRPC_CAUSE_INTERCEPTED);
	cr_expect_eq(f[0].outcome.status, -EPERM);
	cr_expect_eq(f[0].outcome.execution, ULRPC_NOT_EXECUTED);
	at_client.refuse = 0;
	at_service.refuse = -EACCES;
	flow_open(&g, &f[1], "echo", NULL, 0, MINUTE);
	flow_finish(&f[1]);
	cr_expect_eq(f[1].outcome.cause, ULRPC_CAUSE_HANDLER);
	cr_expect_eq(f[1].outcome.status, -EACCES);
	cr_expect_eq(g.served, 0);
	cr_expect_eq(at_client.ended, 1);
	cr_expect_eq(at_client.status, -EACCES);
	cr_expect_eq(at_service.ended, 0);
	at_service.refuse = 0;
	/* the service is stopped while a stream is open */
	flow_open(&g, &f[2], "park", NULL, 0, MINUTE);
	lnet_sim_run(g.s.sim, SEC);
	cr_assert_eq(ulrpc_stream_service_stop(g.service, 1000), 0);
	flow_finish(&f[2]);
	cr_expect_eq(at_service.ended, 1);
	cr_expect_eq(at_service.cause, ULRPC_CAUSE_SHUTDOWN);
	cr_expect_str_eq(at_service.service, "flow");
	stream_rig_fini(&g);
}

/* The user begins to watch the stream while the interceptors hear of its end.
 */
Test(stream_intercept, watched_at_the_end)
{
	struct flow f = { .lazy = true };

	begin(1);
	late_ends = 0;
	at_client.flow = &f;
	flow_open(&g, &f, "fail", NULL, 0, MINUTE);
	lnet_sim_run(g.s.sim, SEC);
	cr_expect_eq(at_client.ended, 1);
	cr_expect_eq(late_ends, 1);
	ulrpc_stream_put(f.stream);
	stream_rig_fini(&g);
}
