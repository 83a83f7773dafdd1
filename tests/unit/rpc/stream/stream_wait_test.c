/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams whose users wait: threads, and handlers on workers. */
#include "base/buf.h"
#include "tests/unit/rpc/stream/stream_rig.h"

#define MESSAGES 500
#define MINUTE	 UINT64_C(60000000) /* us */

struct waiter {
	struct stream_rig *g;
	struct ulrpc_stream *stream;
	const char *method;
	unsigned int received;
	struct ulrpc_stream_outcome outcome;
	bool done;
};

static void send_all(void *arg)
{
	struct waiter *w = arg;
	uint8_t body[64] = { 0 };

	for (uint32_t i = 0; i < MESSAGES; i++) {
		store_le32(body, i);
		cr_assert_eq(
			ulrpc_stream_send_wait(w->stream, body, sizeof(body)),
			0);
	}
	cr_assert_eq(ulrpc_stream_close_send(w->stream), 0);
}

static void read_all(void *arg)
{
	struct waiter *w = arg;
	const void *body;
	size_t length;

	while (ulrpc_stream_next_wait(w->stream, &body, &length) == 1)
		cr_assert_eq(load_le32(body), w->received++);
	cr_assert_eq(ulrpc_stream_outcome_wait(w->stream, &w->outcome), 0);
	w->done = true;
}

static void open_stream(struct waiter *w, uint64_t deadline)
{
	const struct ulrpc_stream_conf conf = { .deadline = deadline };

	cr_assert_eq(ulrpc_stream_open(w->g->streams, w->method, NULL, 0, &conf,
				       &w->stream),
		     0);
}

static void two_threads(const char *method)
{
	struct stream_rig g;
	struct waiter w = { .g = &g, .method = method };
	struct ulnet_thread *sender, *reader;

	stream_rig_init(&g, 1, 1);
	open_stream(&w, MINUTE);
	cr_assert_eq(lnet_thread_start(g.s.node[CALLER], send_all, &w, &sender),
		     0);
	cr_assert_eq(lnet_thread_start(g.s.node[CALLER], read_all, &w, &reader),
		     0);
	while (!w.done)
		lnet_sim_run(g.s.sim, MSEC);
	lnet_thread_join(sender);
	lnet_thread_join(reader);
	cr_assert_eq(w.received, MESSAGES);
	cr_assert_eq(w.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(w.outcome.delivered, MESSAGES);
	ulrpc_stream_put(w.stream);
	stream_rig_fini(&g);
}

Test(stream_wait, threads_with_an_inline_handler)
{
	two_threads("echo");
}

Test(stream_wait, threads_with_a_worker)
{
	two_threads("work");
}

/* The thread that makes the turns waits, too. */
Test(stream_wait, the_thread_that_drives_the_nodes)
{
	struct stream_rig g;
	struct waiter w = { .g = &g, .method = "work" };

	stream_rig_init(&g, 1, 1);
	open_stream(&w, MINUTE);
	for (int i = 0; i < 10; i++) {
		const void *body;
		size_t length;

		cr_assert_eq(ulrpc_stream_send_wait(w.stream, "hello", 5), 0);
		cr_assert_eq(ulrpc_stream_next_wait(w.stream, &body, &length),
			     1);
		cr_assert_eq(length, 5);
	}
	cr_assert_eq(ulrpc_stream_close_send(w.stream), 0);
	cr_assert_eq(ulrpc_stream_outcome_wait(w.stream, &w.outcome), 0);
	cr_assert_eq(w.outcome.cause, ULRPC_CAUSE_OK);
	ulrpc_stream_put(w.stream);
	stream_rig_fini(&g);
}

Test(stream_wait, ends_with_rpc)
{
	struct stream_rig g;
	struct waiter w = { .g = &g, .method = "work" };
	struct ulnet_thread *reader;

	stream_rig_init(&g, 1, 1);
	open_stream(&w, ULRPC_NEVER);
	cr_assert_eq(lnet_thread_start(g.s.node[CALLER], read_all, &w, &reader),
		     0);
	lnet_sim_run(g.s.sim, SEC);
	cr_assert_eq(g.served, 1);
	/* The handler waits on a worker, and RPC of its node ends. */
	cr_assert_eq(ulrpc_close(g.s.rpc[SERVER]), 0);
	g.s.rpc[SERVER] = NULL;
	while (!w.done)
		lnet_sim_run(g.s.sim, MSEC);
	lnet_thread_join(reader);
	cr_assert_neq(w.outcome.cause, ULRPC_CAUSE_OK);
	ulrpc_stream_put(w.stream);
	stream_rig_fini(&g);
}
