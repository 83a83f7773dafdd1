/* SPDX-License-Identifier: BSD-3-Clause */
/* Metadata of streams: with the opening, and with the end. */
#include "tests/unit/rpc/stream/stream_rig.h"

#define MINUTE UINT64_C(60000000) /* us */

static struct serve_rig g;
static struct ulrpc_streams *streams;
static struct ulrpc_stream_service *service;
static unsigned int ended;
static struct ulrpc_stream_outcome outcome;

#define TYPE "test.Refusal"

/* Adds the details of a failure. */
static void refuse(struct ulrpc_stream *s)
{
	const struct ulrpc_details d = { TYPE, "\1\0\2", 3 },
				   unnamed = { "", "", 0 };

	cr_expect_eq(ulrpc_stream_add_details(s, &unnamed), -EINVAL);
	cr_assert_eq(ulrpc_stream_add_details(s, &d), 0);
	cr_expect_eq(ulrpc_stream_add_details(s, &d), -EALREADY);
	ulrpc_stream_end_status(s, ULRPC_STATUS_NOT_FOUND, "no such key");
	cr_expect_eq(ulrpc_stream_add_details(s, &d), -EPIPE);
}

/* Sends all pairs back with the end, with "re-" before their names. Fails if
 * there is a body. */
static void back(void *arg, struct ulrpc_stream *s, const void *body,
		 size_t length)
{
	char name[ULRPC_METADATA_NAME + 3];
	struct ulrpc_metadata m;

	(void)arg;
	(void)body;
	for (unsigned int i = 0; !ulrpc_stream_metadata(s, i, &m); i++) {
		snprintf(name, sizeof(name), "re-%s", m.name);
		cr_assert_eq(ulrpc_stream_add(s, name, m.value, m.length), 0);
	}
	cr_expect_eq(ulrpc_stream_add(s, "A", "", 0), -EINVAL);
	cr_expect_eq(ulrpc_stream_send(s, "x", 1), 0);
	if (length)
		refuse(s);
	else
		ulrpc_stream_end(s, 0, NULL);
	cr_expect_eq(ulrpc_stream_add(s, "late", "", 0), -EPIPE);
	ulrpc_stream_put(s);
}

static void on_ended(void *arg, struct ulrpc_stream *s,
		     const struct ulrpc_stream_outcome *o)
{
	(void)arg;
	(void)s;
	ended++;
	outcome = *o;
}

static void begin(enum ulrpc_run run)
{
	const struct ulrpc_stream_method method = { "back", back, NULL, run,
						    0 };
	const struct ulrpc_stream_service_conf conf = {
		.service = { .name = "flow" },
		.methods = &method,
		.nmethods = 1,
	};
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	const struct ulrpc_streams_conf from = {
		.client = { .nids = &nid, .nnids = 1, .service = "flow" }
	};

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	cr_assert_eq(ulrpc_open(g.node[CALLER], NULL, &g.rpc[CALLER]), 0);
	cr_assert_eq(ulrpc_stream_serve(g.rpc[SERVER], &conf, &service), 0);
	cr_assert_eq(ulrpc_streams_open(g.rpc[CALLER], &from, &streams), 0);
	ended = 0;
}

static int open_with(struct ulrpc_context *x, size_t length,
		     struct ulrpc_stream **s)
{
	const struct ulrpc_stream_conf conf = {
		.deadline = MINUTE,
		.events = { .ended = on_ended },
		.context = x,
	};

	return ulrpc_stream_open(streams, "back", "body", length, &conf, s);
}

static void end(struct ulrpc_context *x)
{
	ulrpc_context_free(x);
	ulrpc_streams_close(streams);
	serve_fini(&g);
}

static struct ulrpc_context *some_context(void)
{
	struct ulrpc_context *x;

	cr_assert_eq(ulrpc_context_new(&x), 0);
	cr_assert_eq(ulrpc_context_add(x, "tenant", "blue", 4), 0);
	cr_assert_eq(ulrpc_context_add(x, "key-bin", "\0\n\0", 3), 0);
	return x;
}

/* gRPC's test case "custom metadata", for streams. */
Test(stream_metadata, custom_metadata)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct ulrpc_context *x = some_context();
		struct ulrpc_details d;
		struct ulrpc_metadata m;
		struct ulrpc_stream *s;
		const void *body;
		size_t length;

		begin(i % 2 ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE);
		/* the second half fails, with a text and details */
		cr_assert_eq(open_with(x, i / 2 * 4, &s), 0);
		cr_expect_eq(ulrpc_context_add(x, "n", "v", 1), -EBUSY);
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(ulrpc_context_sent(x, 0, &m), 0);
		/* it is over when all was read */
		cr_expect_eq(ended, 0);
		cr_expect_eq(ulrpc_stream_find(s, "re-tenant", &m), -EAGAIN);
		cr_expect_eq(ulrpc_stream_details(s, &d), -EAGAIN);
		cr_assert_eq(ulrpc_stream_next(s, &body, &length), 1);
		cr_assert_eq(ulrpc_stream_next(s, &body, &length), 0);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(ended, 1);
		cr_expect_eq(outcome.status, i / 2 ? -ENOENT : 0);
		cr_expect_str_eq(outcome.text, i / 2 ? "no such key" : "");
		cr_expect_eq(ulrpc_stream_status_of(&outcome),
			     i / 2 ? ULRPC_STATUS_NOT_FOUND : ULRPC_STATUS_OK);
		cr_assert_eq(ulrpc_stream_details(s, &d), i / 2 ? 0 : -ENOENT);
		if (i / 2) {
			cr_expect_str_eq(d.type, TYPE);
			cr_assert_eq(d.length, 3);
			cr_expect_arr_eq(d.bytes, "\1\0\2", 3);
			cr_expect_eq(ulrpc_stream_add_details(s, &d), -EINVAL);
		}
		cr_assert_eq(ulrpc_stream_find(s, "re-tenant", &m), 0);
		cr_expect_str_eq(m.value, "blue");
		cr_assert_eq(ulrpc_stream_metadata(s, 1, &m), 0);
		cr_expect_str_eq(m.name, "re-key-bin");
		cr_assert_eq(m.length, 3);
		cr_expect_arr_eq(m.value, "\0\n\0", 3);
		cr_expect_eq(ulrpc_stream_metadata(s, 2, &m), -ENOENT);
		cr_expect_eq(ulrpc_stream_add(s, "n", "v", 1), -EINVAL);
		ulrpc_stream_put(s);
		end(x);
	}
}

/* Details go alone, too. */
Test(stream_metadata, details)
{
	struct ulrpc_details d;
	struct ulrpc_stream *s;
	const void *body;
	size_t length;

	begin(ULRPC_RUN_INLINE);
	cr_assert_eq(open_with(NULL, 4, &s), 0);
	lnet_sim_run(g.sim, SEC);
	while (ulrpc_stream_next(s, &body, &length) == 1)
		;
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(ended, 1);
	cr_assert_eq(ulrpc_stream_details(s, &d), 0);
	cr_expect_str_eq(d.type, TYPE);
	ulrpc_stream_put(s);
	end(NULL);
}

Test(stream_metadata, none)
{
	struct ulrpc_metadata m;
	struct ulrpc_stream *s;
	const void *body;
	size_t length;

	begin(ULRPC_RUN_INLINE);
	cr_assert_eq(open_with(NULL, 0, &s), 0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(ulrpc_stream_next(s, &body, &length), 1);
	cr_assert_eq(ulrpc_stream_next(s, &body, &length), 0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(ended, 1);
	cr_expect_eq(ulrpc_stream_metadata(s, 0, &m), -ENOENT);
	ulrpc_stream_put(s);
	end(NULL);
}

/* A context that a call has. */
Test(stream_metadata, busy)
{
	struct ulrpc_context *x = some_context();
	struct ulrpc_stream *s, *other;

	begin(ULRPC_RUN_INLINE);
	cr_assert_eq(open_with(x, 0, &s), 0);
	cr_expect_eq(open_with(x, 0, &other), -EBUSY);
	lnet_sim_run(g.sim, SEC);
	ulrpc_stream_put(s);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(ended, 1);
	end(x);
}
