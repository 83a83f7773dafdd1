/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams in all three directions, and how they end (requirements J3). */
#include "base/buf.h"
#include "tests/unit/rpc/stream/stream_rig.h"

#define MINUTE UINT64_C(60000000) /* us */

static void list_open(struct stream_rig *g, struct flow *f, uint32_t n,
		      uint32_t size)
{
	uint8_t body[8];

	store_le32(body, n);
	store_le32(body + 4, size);
	flow_open(g, f, "list", body, sizeof(body), MINUTE);
}

Test(stream, from_the_service)
{
	struct stream_rig g;
	struct flow f = { 0 };

	stream_rig_init(&g, 1, 1);
	list_open(&g, &f, 5000, 64);
	flow_finish(&f);
	flow_went_well(&f, 0, 5000);
	stream_rig_fini(&g);
	cr_assert_eq(g.served_outcome.delivered, 5000);
	cr_assert_eq(g.served_outcome.cause, ULRPC_CAUSE_OK);
}

Test(stream, from_the_client)
{
	struct stream_rig g;
	/* The one answer is not numbered. */
	struct flow f = { .to_send = 5000, .lazy = true };
	const void *body;
	size_t length;

	stream_rig_init(&g, 1, 2);
	flow_open(&g, &f, "sum", NULL, 0, MINUTE);
	while (ulrpc_stream_next(f.stream, &body, &length) != 1)
		lnet_sim_run(g.s.sim, MSEC);
	cr_assert_eq(length, 4);
	cr_assert_eq(load_le32(body), 5000);
	flow_finish(&f);
	cr_assert_eq(f.outcome.delivered, 5000);
	cr_assert_eq(f.outcome.received, 1);
	stream_rig_fini(&g);
}

Test(stream, both_ways)
{
	struct stream_rig g;
	struct flow f[3] = { { .to_send = 3000 },
			     { .to_send = 100, .size = 30000 },
			     { .to_send = 20,
			       .size = ULRPC_STREAM_MESSAGE_MAX } };

	stream_rig_init(&g, 1, 1);
	for (int i = 0; i < 3; i++)
		flow_open(&g, &f[i], "echo", NULL, 0, ULRPC_NEVER);
	for (int i = 0; i < 3; i++) {
		flow_finish(&f[i]);
		flow_went_well(&f[i], f[i].to_send, f[i].to_send);
	}
	stream_rig_fini(&g);
}

/* The sides hold up to @service and @client bytes of a stream unread; 0: the
 * default. */
static void wide_init(struct stream_rig *g, uint32_t service, uint32_t client,
		      uint64_t reply_bytes_max)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_stream_service_conf more;
	struct ulrpc_streams_conf conf;

	memset(g, 0, sizeof(*g));
	g->reply_bytes_max = reply_bytes_max;
	serve_init(&g->s, 1, 1);
	ulrpc_stream_service_conf_init(&more);
	more.window_bytes = service;
	stream_rig_open(g, &more);
	ulrpc_streams_close(g->streams);
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = "flow";
	/* This is for the program's own calls. */
	conf.client.reply_limit = 5000;
	conf.window_bytes = client;
	cr_assert_eq(ulrpc_streams_open(g->s.rpc[CALLER], &conf, &g->streams),
		     0);
}

/* Messages are as long as the windows of both sides allow; the carrier moves
 * them as calls move long bodies and replies. */
Test(stream, long_messages)
{
	struct stream_rig g;
	struct flow f[3] = { { .to_send = 20, .size = ULRPC_STREAM_LONG_MAX },
			     { .to_send = 30, .size = 65537 },
			     { .to_send = 1000 } };

	wide_init(&g, 1 << 20, 1 << 20, 0);
	for (int i = 0; i < 3; i++)
		flow_open(&g, &f[i], "echo", NULL, 0, ULRPC_NEVER);
	lnet_sim_run(g.s.sim, MSEC);
	cr_assert_eq(ulrpc_stream_message_max(f[0].stream),
		     ULRPC_STREAM_LONG_MAX);
	cr_assert_eq(
		ulrpc_stream_send(f[0].stream, "", ULRPC_STREAM_LONG_MAX + 1),
		-EMSGSIZE);
	for (int i = 0; i < 3; i++) {
		flow_finish(&f[i]);
		flow_went_well(&f[i], f[i].to_send, f[i].to_send);
	}
	stream_rig_fini(&g);
}

/* The smaller window counts, in both directions. */
Test(stream, as_long_as_both_windows)
{
	const uint32_t windows[][2] = { { 100000, 200000 },
					{ 200000, 100000 },
					{ 200000, 0 },
					{ 1000, 200000 } };
	static const uint8_t body[200000];

	for (unsigned int i = 0; i < ARRAY_SIZE(windows); i++) {
		const uint32_t max = i < 2 ? 100000 : ULRPC_STREAM_MESSAGE_MAX;
		struct flow f = { .to_send = 0, .open_ended = true };
		struct stream_rig g;

		wide_init(&g, windows[i][0], windows[i][1], 0);
		flow_open(&g, &f, "park", NULL, 0, MINUTE);
		lnet_sim_run(g.s.sim, SEC);
		cr_assert_eq(g.nparked, 1);
		cr_assert_eq(ulrpc_stream_message_max(f.stream), max);
		cr_assert_eq(ulrpc_stream_message_max(g.parked[0]), max);
		cr_assert_eq(ulrpc_stream_send(f.stream, body, max + 1),
			     -EMSGSIZE);
		cr_assert_eq(ulrpc_stream_send(f.stream, body, max), 0);
		cr_assert_eq(ulrpc_stream_send(g.parked[0], body, max + 1),
			     -EMSGSIZE);
		ulrpc_stream_end(g.parked[0], 0, NULL);
		flow_finish(&f);
		stream_rig_fini(&g);
	}
}

/* A message comes in a reply: if the client's node takes no replies as long as
 * the window, the stream has no long messages, and goes on. */
Test(stream, as_long_as_replies)
{
	static const struct {
		uint64_t reply_bytes_max;
		uint32_t max;
	} cases[] = { { 300024, 300000 },
		      { 300023, ULRPC_STREAM_MESSAGE_MAX },
		      { 10000, ULRPC_STREAM_MESSAGE_MAX } };
	static const uint8_t body[300000];

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint32_t max = cases[i].max;
		struct flow f = { .to_send = 0, .open_ended = true };
		struct stream_rig g;

		wide_init(&g, 1 << 20, 300000, cases[i].reply_bytes_max);
		flow_open(&g, &f, "park", NULL, 0, MINUTE);
		cr_assert_eq(ulrpc_stream_message_max(f.stream), max);
		lnet_sim_run(g.s.sim, SEC);
		cr_assert_eq(ulrpc_stream_message_max(f.stream), max);
		cr_assert_eq(ulrpc_stream_message_max(g.parked[0]), max);
		cr_assert_eq(ulrpc_stream_send(f.stream, body, max), 0);
		cr_assert_eq(ulrpc_stream_send(g.parked[0], body, max), 0);
		ulrpc_stream_end(g.parked[0], 0, NULL);
		flow_finish(&f);
		cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_OK, "%s",
			     ulrpc_cause_name(f.outcome.cause));
		cr_assert_eq(f.received, 1);
		stream_rig_fini(&g);
	}
}

Test(stream, without_any_message)
{
	struct stream_rig g;
	struct flow f = { 0 };

	stream_rig_init(&g, 1, 1);
	flow_open(&g, &f, "echo", NULL, 0, MINUTE);
	flow_finish(&f);
	flow_went_well(&f, 0, 0);
	stream_rig_fini(&g);
}

Test(stream, that_the_service_fails)
{
	struct stream_rig g;
	struct flow f = { .to_send = 10 };

	stream_rig_init(&g, 1, 1);
	flow_open(&g, &f, "fail", NULL, 0, MINUTE);
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_HANDLER);
	cr_assert_eq(f.outcome.status, -42);
	cr_assert_str_eq(f.outcome.text, "no more\nof this");
	cr_assert_eq(f.outcome.delivered, 0);
	cr_assert_eq(f.outcome.undelivered, f.outcome.sent);
	stream_rig_fini(&g);
}

Test(stream, of_no_method)
{
	struct stream_rig g;
	struct flow f = { 0 };

	stream_rig_init(&g, 1, 1);
	flow_open(&g, &f, "missing", NULL, 0, MINUTE);
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_NO_METHOD);
	cr_assert_eq(f.outcome.execution, ULRPC_NOT_EXECUTED);
	stream_rig_fini(&g);
}

Test(stream, wants_a_deadline_and_short_messages)
{
	static uint8_t body[ULRPC_STREAM_MESSAGE_MAX + 1];
	struct ulrpc_stream_conf conf = { 0 };
	struct ulrpc_stream *s;
	struct stream_rig g;

	stream_rig_init(&g, 1, 1);
	cr_assert_eq(ulrpc_stream_open(g.streams, "echo", NULL, 0, &conf, &s),
		     -EINVAL);
	conf.deadline = MINUTE;
	cr_assert_eq(ulrpc_stream_open(g.streams, "echo", body, sizeof(body),
				       &conf, &s),
		     -EMSGSIZE);
	cr_assert_eq(ulrpc_stream_open(g.streams, "echo", NULL, 0, &conf, &s),
		     0);
	cr_assert_eq(ulrpc_stream_send(s, body, 1), -EAGAIN);
	cr_assert_eq(ulrpc_stream_send(s, body, sizeof(body)), -EMSGSIZE);
	ulrpc_stream_put(s);
	lnet_sim_run(g.s.sim, SEC);
	stream_rig_fini(&g);
}

/* ---- flow control ---- */

static struct flow parked_flow(struct stream_rig *g, struct flow *f,
			       uint64_t deadline)
{
	*f = (struct flow){ .to_send = 1000 };
	flow_open(g, f, "park", NULL, 0, deadline);
	lnet_sim_run(g->s.sim, 100 * MSEC);
	return *f;
}

Test(stream, slow_reader_stops_only_its_own_writer)
{
	struct stream_rig g;
	struct flow slow, f = { .to_send = 2000 };
	const void *body;
	size_t length;

	stream_rig_init(&g, 1, 1);
	parked_flow(&g, &slow, MINUTE);
	cr_assert_eq(slow.sent, 64);
	flow_open(&g, &f, "echo", NULL, 0, MINUTE);
	flow_finish(&f);
	flow_went_well(&f, 2000, 2000);
	cr_assert_eq(slow.sent, 64);
	/* The handler reads one message in a while. */
	for (uint32_t i = 0; i < 1000; i++) {
		while (ulrpc_stream_next(g.parked[0], &body, &length) != 1)
			lnet_sim_run(g.s.sim, MSEC);
		cr_assert_eq(load_le32(body), i);
		cr_assert_leq(slow.sent, i + 1 + 64);
	}
	ulrpc_stream_end(g.parked[0], 0, NULL);
	flow_finish(&slow);
	flow_went_well(&slow, 1000, 0);
	stream_rig_fini(&g);
}

Test(stream, slow_client_stops_the_service)
{
	struct stream_rig g;
	struct flow f = { .lazy = true };

	stream_rig_init(&g, 1, 1);
	list_open(&g, &f, 1000, 20000);
	lnet_sim_run(g.s.sim, 2 * SEC);
	cr_assert_eq(f.ended, 0);
	while (!f.ended) {
		flow_read(&f);
		/* the window's bytes, and the last message beyond it */
		cr_assert_leq(f.received % 4, 3);
		lnet_sim_run(g.s.sim, MSEC);
	}
	flow_finish(&f);
	flow_went_well(&f, 0, 1000);
	stream_rig_fini(&g);
}

/* ---- ends ---- */

Test(stream, canceled_by_the_client)
{
	struct stream_rig g;
	struct ulrpc_stream_outcome o;
	const void *body;
	size_t length;
	struct flow f;

	stream_rig_init(&g, 1, 1);
	parked_flow(&g, &f, ULRPC_NEVER);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(ulrpc_stream_next(g.parked[0], &body, &length), 1);
	ulrpc_stream_cancel(f.stream);
	cr_assert_eq(ulrpc_stream_send(f.stream, "x", 1), -EPIPE);
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(f.outcome.status, -ECANCELED);
	cr_assert_eq(f.outcome.sent, 64);
	cr_assert_eq(f.outcome.delivered, 10);
	cr_assert_eq(f.outcome.undelivered, 54);
	cr_assert_eq(ulrpc_stream_next(g.parked[0], &body, &length), 0);
	cr_assert_eq(ulrpc_stream_send(g.parked[0], "x", 1), -EPIPE);
	cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(o.received, 10);
	stream_rig_fini(&g);
}

Test(stream, given_back_is_canceled)
{
	struct stream_rig g;
	struct ulrpc_stream_outcome o;
	struct flow f;

	stream_rig_init(&g, 1, 1);
	parked_flow(&g, &f, ULRPC_NEVER);
	ulrpc_stream_put(f.stream);
	lnet_sim_run(g.s.sim, 100 * MSEC);
	cr_assert_eq(f.ended, 1);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_CANCELED);
	stream_rig_fini(&g);
}

Test(stream, given_back_by_the_service)
{
	struct stream_rig g;
	struct flow f;

	stream_rig_init(&g, 1, 1);
	parked_flow(&g, &f, ULRPC_NEVER);
	ulrpc_stream_put(g.parked[0]);
	g.nparked = 0;
	g.served = 0;
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(f.outcome.execution, ULRPC_EXECUTED);
	stream_rig_fini(&g);
}

Test(stream, ends_at_its_deadline)
{
	struct stream_rig g;
	struct ulrpc_stream_outcome o;
	uint64_t began;
	struct flow f;

	stream_rig_init(&g, 1, 1);
	began = lnet_sim_now(g.s.sim);
	parked_flow(&g, &f, 3000000);
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_eq(f.outcome.status, -ETIMEDOUT);
	cr_assert_leq(lnet_sim_now(g.s.sim), began + 3 * SEC + 2 * MSEC);
	lnet_sim_run(g.s.sim, 100 * MSEC);
	cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
	stream_rig_fini(&g);
}

Test(stream, ends_with_its_service)
{
	struct stream_rig g;
	struct ulrpc_stream_outcome o;
	struct flow f, again = { 0 }, watched = { .open_ended = true };

	stream_rig_init(&g, 1, 1);
	parked_flow(&g, &f, ULRPC_NEVER);
	flow_open(&g, &watched, "echo", NULL, 0, MINUTE);
	lnet_sim_run(g.s.sim, 100 * MSEC);
	cr_assert_eq(g.served_ended, 0);
	cr_assert_eq(ulrpc_stream_service_stop(g.service, 1000000), 0);
	cr_assert_eq(g.served_ended, 1);
	flow_finish(&watched);
	cr_assert_eq(watched.outcome.cause, ULRPC_CAUSE_SHUTDOWN);
	flow_finish(&f);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_SHUTDOWN);
	cr_assert_eq(f.outcome.undelivered, f.outcome.sent);
	cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_SHUTDOWN);
	stream_rig_serve(&g, NULL);
	flow_open(&g, &again, "echo", NULL, 0, MINUTE);
	flow_finish(&again);
	flow_went_well(&again, 0, 0);
	stream_rig_fini(&g);
}

Test(stream, ends_with_rpc_of_either_side)
{
	for (int side = 0; side < 2; side++) {
		struct stream_rig g;
		struct ulrpc_stream_outcome o;
		struct flow f;

		stream_rig_init(&g, 1, 2);
		parked_flow(&g, &f, ULRPC_NEVER);
		cr_assert_eq(ulrpc_close(g.s.rpc[side]), 0);
		g.s.rpc[side] = NULL;
		if (side == CALLER)
			g.streams = NULL;
		lnet_sim_run(g.s.sim, SEC);
		cr_assert_eq(f.ended, 1, "side %d", side);
		cr_assert_neq(f.outcome.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
		cr_assert_neq(o.cause, ULRPC_CAUSE_OK);
		ulrpc_stream_put(f.stream);
		stream_rig_fini(&g);
	}
}

Test(stream, closing_with_streams_open)
{
	struct stream_rig g;
	struct ulrpc_stream_outcome o;
	struct flow f, opening = { 0 };

	stream_rig_init(&g, 1, 1);
	parked_flow(&g, &f, ULRPC_NEVER);
	flow_open(&g, &opening, "echo", NULL, 0, MINUTE);
	ulrpc_streams_close(g.streams);
	g.streams = NULL;
	flow_finish(&f);
	flow_finish(&opening);
	cr_assert_eq(f.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(opening.outcome.cause, ULRPC_CAUSE_CANCELED);
	lnet_sim_run(g.s.sim, SEC);
	cr_assert_eq(ulrpc_stream_outcome(g.parked[0], &o), 0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_CANCELED);
	stream_rig_fini(&g);
}

Test(stream, is_described_to_its_handler)
{
	struct stream_rig g;
	struct ulrpc_stream_info info;
	struct flow f;

	stream_rig_init(&g, 1, 1);
	parked_flow(&g, &f, ULRPC_NEVER);
	cr_assert_eq(ulrpc_stream_info(g.parked[0], &info), -EINVAL);
	cr_assert_eq(ulrpc_stream_info(f.stream, &info), -EINVAL);
	ulrpc_stream_put(f.stream);
	stream_rig_fini(&g);
}

/* ---- many ---- */

Test(stream, a_host_has_its_share)
{
	struct ulrpc_stream_service_conf conf;
	struct flow f[5] = { 0 };
	unsigned int refused = 0;
	struct stream_rig g = { 0 };

	serve_init(&g.s, 1, 1);
	ulrpc_stream_service_conf_init(&conf);
	conf.streams_max = 8; /* of which the channel is one */
	stream_rig_open(&g, &conf);
	for (int i = 0; i < 5; i++)
		flow_open(&g, &f[i], "park", NULL, 0, 2000000);
	for (int i = 0; i < 5; i++) {
		flow_finish(&f[i]);
		refused += f[i].outcome.cause == ULRPC_CAUSE_OVERLOADED;
	}
	cr_assert_gt(refused, 0);
	cr_assert_eq(g.nparked + refused, 5);
	stream_rig_fini(&g);
}

#define MANY 100000

Test(stream, a_hundred_thousand_of_one_client)
{
	struct ulrpc_stream_service_conf conf;
	struct flow *f = calloc(MANY, sizeof(*f));
	struct stream_rig g = { 0 };

	cr_assert(f);
	serve_init(&g.s, 1, 1);
	ulrpc_stream_service_conf_init(&conf);
	conf.streams_max = 4 * MANY;
	stream_rig_open(&g, &conf);
	for (int i = 0; i < MANY; i++) {
		f[i].to_send = 1;
		f[i].open_ended = true;
		flow_open(&g, &f[i], "echo", NULL, 0, 10 * MINUTE);
	}
	for (int i = 0; i < MANY; i++)
		while (f[i].received < 1)
			lnet_sim_run(g.s.sim, MSEC);
	cr_assert_eq(g.served, MANY);
	cr_assert_eq(g.served_ended, 0);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(ulrpc_stream_close_send(f[i].stream), 0);
	for (int i = 0; i < MANY; i++) {
		flow_finish(&f[i]);
		flow_went_well(&f[i], 1, 1);
	}
	stream_rig_fini(&g);
	free(f);
}
