/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Streams in trees of calls. The service calls itself, for a request or for a
 * stream: the first byte of what it gets says how many nodes of the tree are
 * still below, and each node makes a stream and a call of the kind "node" for
 * itself, in turn. The last ones wait.
 */
#include "tests/unit/rpc/stream/stream_rig.h"

#define DEPTH  4
#define MINUTE UINT64_C(60000000) /* us */
#define TRACE  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

/* A node of the tree, which a stream or a call has made, and what it makes. */
struct node {
	struct ulrpc_stream *served;   /* NULL: a request, or it is over */
	struct ulrpc_request *request; /* NULL: a stream, or it was answered */
	struct ulrpc_context *context; /* of what it makes; NULL: nothing */
	struct ulrpc_stream *stream;   /* that it has opened */
	bool makes;
	unsigned int made_ended, served_ended;
	enum ulrpc_cause made_cause, served_cause;
	uint64_t time_left; /* us: of what it was made by */
	char trace[ULRPC_TRACE_SIZE];
};

static struct serve_rig g;
static struct ulrpc_streams *streams, *self_streams;
static struct ulrpc_client *client, *self;
static struct ulrpc_stream_service *service;
static struct node nodes[DEPTH];
static unsigned int nnodes;
static bool end_first; /* before what was made has ended */

static void node_made_ended(struct node *n, enum ulrpc_cause cause)
{
	n->made_ended++;
	n->made_cause = cause;
	if (n->request)
		ulrpc_fail(n->request, -EIO);
	n->request = NULL;
}

static void on_made_stream(void *arg, struct ulrpc_stream *s,
			   const struct ulrpc_stream_outcome *o)
{
	struct node *n = arg;

	n->stream = NULL;
	ulrpc_stream_put(s);
	node_made_ended(n, o->cause);
}

static void on_made_call(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	(void)reply;
	(void)length;
	node_made_ended(arg, o->cause);
}

static int make_stream(struct node *n, uint8_t left)
{
	const struct ulrpc_stream_conf conf = {
		.deadline = ULRPC_NEVER,
		.events = { .ended = on_made_stream, .arg = n },
		.context = n->context,
	};

	return ulrpc_stream_open(self_streams, "stream", &left, 1, &conf,
				 &n->stream);
}

static int make_call(struct node *n, uint8_t left)
{
	const struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER,
					      .context = n->context };

	return ulrpc_call(self, ulrpc_method("call"), &left, 1, &conf,
			  on_made_call, n, NULL);
}

static struct node *node_new(const void *body, size_t length, uint8_t *left)
{
	struct node *n = &nodes[nnodes++];

	cr_assert_leq(nnodes, DEPTH);
	cr_assert_eq(length, 1);
	memcpy(left, body, 1);
	*n = (struct node){ .makes = *left };
	cr_assert_eq(ulrpc_context_new(&n->context), 0);
	cr_assert_eq(ulrpc_context_pass(n->context, "tenant"), 0);
	return n;
}

static void on_served_ended(void *arg, struct ulrpc_stream *s,
			    const struct ulrpc_stream_outcome *o)
{
	struct node *n = arg;

	n->served_ended++;
	n->served_cause = o->cause;
	n->served = NULL;
	ulrpc_stream_put(s);
}

static void on_stream(void *arg, struct ulrpc_stream *s, const void *body,
		      size_t length)
{
	uint8_t left;
	struct node *n = node_new(body, length, &left);
	const struct ulrpc_stream_events events = { .ended = on_served_ended,
						    .arg = n };
	struct ulrpc_stream_info info;

	(void)arg;
	n->served = s;
	cr_assert_eq(ulrpc_stream_info(s, &info), 0);
	n->time_left = info.time_left;
	cr_assert_eq(ulrpc_context_under_stream(n->context, s), 0);
	if (left)
		cr_assert_eq(make_call(n, left - 1), 0);
	ulrpc_stream_watch(s, &events);
	if (end_first)
		ulrpc_stream_end(s, 0, NULL);
}

static void on_call(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	uint8_t left;
	struct node *n = node_new(body, length, &left);
	struct ulrpc_request_info info;

	(void)arg;
	n->request = r;
	ulrpc_request_info(r, &info);
	n->time_left = info.time_left;
	memcpy(n->trace, info.trace, sizeof(n->trace));
	cr_assert_eq(ulrpc_context_under(n->context, r), 0);
	if (left)
		cr_assert_eq(make_stream(n, left - 1), 0);
	if (!end_first)
		return;
	n->request = NULL;
	ulrpc_reply(r, NULL, 0);
}

static void open_clients(struct ulrpc *rpc, struct ulrpc_streams **streams_p,
			 struct ulrpc_client **client_p)
{
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	const struct ulrpc_streams_conf from = {
		.client = { .nids = &nid, .nnids = 1, .service = "tree" }
	};

	cr_assert_eq(ulrpc_streams_open(rpc, &from, streams_p), 0);
	*client_p = serve_client_of(rpc, "tree");
}

static void begin(unsigned int cpts, enum ulrpc_run run)
{
	const struct ulrpc_method_conf call = { .name = "call",
						.handler = on_call,
						.run = run };
	const struct ulrpc_stream_method stream = { "stream", on_stream, NULL,
						    run, 0 };
	const struct ulrpc_stream_service_conf conf = {
		.service = { .name = "tree", .methods = &call, .nmethods = 1 },
		.methods = &stream,
		.nmethods = 1,
	};

	serve_init(&g, 1, cpts);
	serve_open(&g, NULL);
	cr_assert_eq(ulrpc_open(g.node[CALLER], NULL, &g.rpc[CALLER]), 0);
	cr_assert_eq(ulrpc_stream_serve(g.rpc[SERVER], &conf, &service), 0);
	open_clients(g.rpc[CALLER], &streams, &client);
	open_clients(g.rpc[SERVER], &self_streams, &self);
	nnodes = 0;
	end_first = false;
}

/* ---- the root ---- */

static struct ulrpc_context *with; /* of a stream; NULL: none */
static unsigned int root_ended;
static enum ulrpc_cause root_cause;

static void on_root_stream(void *arg, struct ulrpc_stream *s,
			   const struct ulrpc_stream_outcome *o)
{
	(void)arg;
	(void)s;
	root_ended++;
	root_cause = o->cause;
}

static void on_root_call(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	(void)arg;
	(void)reply;
	(void)length;
	root_ended++;
	root_cause = o->cause;
}

static void wait_for(unsigned int n)
{
	/* With workers, windows open slowly. */
	for (int i = 0; i < 50 && nnodes < n; i++)
		lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(nnodes, n, "%u of %u", nnodes, n);
	lnet_sim_run(g.sim, 100 * MSEC);
}

static struct ulrpc_stream *root_stream(uint8_t depth, uint64_t deadline)
{
	const struct ulrpc_stream_conf conf = {
		.deadline = deadline,
		.events = { .ended = on_root_stream },
		.context = with,
	};
	struct ulrpc_stream *s;

	root_ended = 0;
	depth--;
	cr_assert_eq(ulrpc_stream_open(streams, "stream", &depth, 1, &conf, &s),
		     0);
	return s;
}

static struct ulrpc_call *root_call(uint8_t depth, uint64_t deadline)
{
	const struct ulrpc_call_conf conf = { .deadline = deadline,
					      .trace = TRACE };
	struct ulrpc_call *call;

	root_ended = 0;
	depth--;
	cr_assert_eq(ulrpc_call(client, ulrpc_method("call"), &depth, 1, &conf,
				on_root_call, NULL, &call),
		     0);
	return call;
}

/* The last node is left by what has made it, and so is what was made above. */
static void all_gone(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct node *x = &nodes[i];

		cr_expect_eq(x->made_ended, x->makes, "%u", i);
		if (x->makes)
			cr_expect_eq(x->made_cause, ULRPC_CAUSE_CANCELED,
				     "%u: %s", i,
				     ulrpc_cause_name(x->made_cause));
		cr_expect_null(x->served, "%u", i);
		if (x->request) {
			cr_expect(ulrpc_request_canceled(x->request));
			ulrpc_fail(x->request, -EIO);
			x->request = NULL;
		}
	}
}

static void end(void)
{
	for (unsigned int i = 0; i < nnodes; i++) {
		if (nodes[i].request)
			ulrpc_fail(nodes[i].request, -EIO);
		ulrpc_context_free(nodes[i].context);
	}
	ulrpc_streams_close(streams);
	ulrpc_streams_close(self_streams);
	ulrpc_client_close(client);
	ulrpc_client_close(self);
	lnet_sim_run(g.sim, 10 * SEC);
	for (unsigned int i = 0; i < nnodes; i++)
		cr_expect_null(nodes[i].served);
	serve_fini(&g);
}

/* ---- tests ---- */

/* Requirement J4: a caller who gives up stops the whole tree, whatever it is
 * made of, and although its streams are open. */
Test(stream_under, canceled_down_the_tree)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct ulrpc_stream *s;

		begin(1 + i / 2, i % 2 ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE);
		s = root_stream(DEPTH, 60 * MINUTE);
		wait_for(DEPTH);
		ulrpc_stream_cancel(s);
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(root_ended, 1);
		cr_expect_eq(root_cause, ULRPC_CAUSE_CANCELED);
		all_gone(DEPTH);
		ulrpc_stream_put(s);
		end();
	}
}

Test(stream_under, canceled_with_a_call)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct ulrpc_call *call;

		begin(1 + i / 2, i % 2 ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE);
		call = root_call(DEPTH - 1, 60 * MINUTE);
		wait_for(DEPTH - 1);
		ulrpc_cancel(call);
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(root_cause, ULRPC_CAUSE_CANCELED);
		all_gone(DEPTH - 1);
		ulrpc_call_put(call);
		end();
	}
}

/* The service stops, or the handler gives the stream back without an end. */
Test(stream_under, given_up_by_the_service)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct ulrpc_stream *s;

		begin(1, ULRPC_RUN_INLINE);
		s = root_stream(2, 60 * MINUTE);
		wait_for(2);
		if (i)
			ulrpc_stream_cancel(nodes[0].served);
		else
			cr_expect_eq(ulrpc_stream_service_stop(service, 0),
				     -ETIMEDOUT);
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(root_cause,
			     i ? ULRPC_CAUSE_CANCELED : ULRPC_CAUSE_SHUTDOWN);
		if (i)
			cr_expect(ulrpc_request_canceled(nodes[1].request));
		cr_expect_eq(nodes[0].made_ended, 1);
		ulrpc_stream_put(s);
		end();
	}
}

/* The stream that is made is not known to be open yet: it ends at the service
 * as soon as it is. */
Test(stream_under, canceled_while_it_is_opened)
{
	struct node late = { .made_ended = 0 };
	struct ulrpc_call *call;
	struct ulrpc_stream_conf own = {
		.deadline = ULRPC_NEVER,
		.events = { .ended = on_made_stream, .arg = &late },
	};

	begin(1, ULRPC_RUN_INLINE);
	call = root_call(1, 60 * MINUTE);
	wait_for(1);
	own.context = nodes[0].context;
	cr_assert_eq(
		ulrpc_stream_open(streams, "stream", "", 1, &own, &late.stream),
		0);
	ulrpc_cancel(call);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(nnodes, 2);
	cr_expect_eq(nodes[1].served_ended, 1);
	cr_expect_eq(late.made_cause, ULRPC_CAUSE_CANCELED);
	all_gone(nnodes);
	ulrpc_call_put(call);
	end();
}

/* The deadline is the root's, though nothing below has one of its own, and so
 * is the trace. */
Test(stream_under, deadline_and_trace_are_inherited)
{
	struct ulrpc_call *call;

	begin(1, ULRPC_RUN_INLINE);
	call = root_call(3, 10000000);
	wait_for(3);
	for (unsigned int i = 1; i < 3; i++) {
		cr_expect_leq(nodes[i].time_left, 10000000);
		cr_expect_gt(nodes[i].time_left, 9000000);
	}
	cr_expect_str_eq(nodes[2].trace, TRACE);
	lnet_sim_run(g.sim, 11 * SEC);
	cr_expect_eq(root_cause, ULRPC_CAUSE_DEADLINE);
	for (unsigned int i = 0; i < 3; i++) {
		cr_expect_eq(nodes[i].made_ended, nodes[i].makes);
		cr_expect_null(nodes[i].served);
	}
	ulrpc_call_put(call);
	end();
}

/* Chosen metadata go on from stream to call, and from call to stream. */
Test(stream_under, chosen_metadata_go_on)
{
	struct ulrpc_stream *s;
	struct ulrpc_metadata m;

	begin(1, ULRPC_RUN_INLINE);
	cr_assert_eq(ulrpc_context_new(&with), 0);
	cr_assert_eq(ulrpc_context_add(with, "secret", "s", 1), 0);
	cr_assert_eq(ulrpc_context_add(with, "tenant", "blue", 4), 0);
	s = root_stream(3, 60 * MINUTE);
	wait_for(3);
	/* also when the handler has returned */
	cr_assert_eq(ulrpc_stream_find(nodes[0].served, "secret", &m), 0);
	cr_assert_eq(ulrpc_request_metadata(nodes[1].request, 0, &m), 0);
	cr_assert_eq(ulrpc_stream_metadata(nodes[2].served, 0, &m), 0);
	cr_expect_str_eq(m.name, "tenant");
	cr_expect_str_eq(m.value, "blue");
	cr_assert_eq(ulrpc_stream_metadata(nodes[2].served, 1, &m), -ENOENT);
	ulrpc_stream_put(s);
	lnet_sim_run(g.sim, SEC);
	all_gone(3);
	ulrpc_context_free(with);
	with = NULL;
	end();
}

/* The stream has ended well before what was made for it: that goes on, and
 * nobody cancels it. */
Test(stream_under, parent_ends_first)
{
	struct ulrpc_stream *s;
	const void *body;
	size_t length;

	begin(1, ULRPC_RUN_INLINE);
	end_first = true;
	s = root_stream(3, 60 * MINUTE);
	wait_for(3);
	cr_expect_eq(ulrpc_stream_next(s, &body, &length), 0);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(root_cause, ULRPC_CAUSE_OK);
	ulrpc_stream_put(s);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(nodes[0].made_cause, ULRPC_CAUSE_OK);
	cr_expect_eq(nodes[1].made_ended, 1);
	cr_expect_eq(nodes[1].made_cause, ULRPC_CAUSE_OK);
	end();
}

/* What would be made too late is not made. */
Test(stream_under, too_late)
{
	struct ulrpc_stream *s, *client_side;
	struct node late = { .made_ended = 0 };

	begin(1, ULRPC_RUN_INLINE);
	s = root_stream(1, 60 * MINUTE);
	wait_for(1);
	cr_assert_eq(ulrpc_context_new(&late.context), 0);
	cr_expect_eq(ulrpc_context_under_stream(late.context, s), -EINVAL);
	cr_assert_eq(ulrpc_context_under_stream(late.context, nodes[0].served),
		     0);
	ulrpc_stream_cancel(nodes[0].served);
	lnet_sim_run(g.sim, 0);
	cr_expect_eq(make_stream(&late, 0), -ECANCELED);
	cr_expect_eq(make_call(&late, 0), -ECANCELED);
	/* also if the context comes under it only then */
	client_side = s;
	s = root_stream(1, 60 * MINUTE);
	wait_for(2);
	ulrpc_stream_cancel(nodes[1].served);
	cr_expect_eq(ulrpc_context_under_stream(late.context, nodes[1].served),
		     0);
	cr_expect_eq(make_stream(&late, 0), -ECANCELED);
	ulrpc_stream_put(s);
	ulrpc_stream_put(client_side);
	lnet_sim_run(g.sim, SEC);
	/* and not under one that has ended well */
	s = root_stream(1, 60 * MINUTE);
	wait_for(3);
	ulrpc_stream_end(nodes[2].served, 0, NULL);
	cr_expect_eq(ulrpc_context_under_stream(late.context, nodes[2].served),
		     -EPIPE);
	ulrpc_stream_put(s);
	ulrpc_context_free(late.context);
	end();
}

/* A node that crashes with open streams of trees leaves nothing. */
Test(stream_under, a_crash_leaves_nothing)
{
	struct ulrpc_stream *s;

	begin(1, ULRPC_RUN_INLINE);
	s = root_stream(DEPTH, 60 * MINUTE);
	wait_for(DEPTH);
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
	g.rpc[SERVER] = NULL;
	for (unsigned int i = 0; i < nnodes; i++) {
		ulrpc_stream_put(nodes[i].served);
		ulrpc_stream_put(nodes[i].stream);
		ulrpc_context_free(nodes[i].context);
	}
	ulrpc_stream_cancel(s);
	lnet_sim_run(g.sim, 200 * SEC);
	cr_expect_eq(root_ended, 1);
	ulrpc_stream_put(s);
	ulrpc_streams_close(streams);
	ulrpc_client_close(client);
	cr_assert_eq(ulrpc_close(g.rpc[CALLER]), 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(lnet_sim_free(g.sim), 0);
}
