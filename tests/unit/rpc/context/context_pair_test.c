/* SPDX-License-Identifier: BSD-3-Clause */
/* Metadata and details between a real service and a real client. */
#include "rpc/client/client.h"
#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/context.h"

#define LONG 20000

static struct serve_rig g;

/* Sends all pairs of the request back, with "re-" before their names, and the
 * body. If that is "fail", fails with details. */
static void back(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	const struct ulrpc_details d = { "ulrpc.test.Why", "\0\1\2", 3 };
	char name[ULRPC_METADATA_NAME + 3];
	struct ulrpc_metadata m;

	note_request(arg, r, body, MIN(length, 63));
	for (unsigned int i = 0; !ulrpc_request_metadata(r, i, &m); i++) {
		snprintf(name, sizeof(name), "re-%s", m.name);
		cr_assert_eq(ulrpc_reply_add(r, name, m.value, m.length), 0);
	}
	cr_assert_eq(ulrpc_request_metadata(r, ULRPC_METADATA_PAIRS, &m),
		     -ENOENT);
	if (length != 4 || memcmp(body, "fail", 4)) {
		ulrpc_reply(r, body, length);
		return;
	}
	cr_assert_eq(ulrpc_reply_details(r, &d), 0);
	ulrpc_fail_status(r, ULRPC_STATUS_NOT_FOUND, "no such key");
}

static const char *const kinds[] = { "inline", "worker", "again" };

static void begin(void)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "inline",
		  .handler = back,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "worker", .handler = back, .arg = &g.served },
		{ .name = "again",
		  .handler = back,
		  .arg = &g.served,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "hold",
		  .handler = hold,
		  .arg = &g.served,
		  .run = ULRPC_RUN_INLINE },
	};

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_methods(&g, methods, 4);
	serve_client(&g);
}

struct answer {
	struct called called;
	char reply[LONG];
};

static void on_answer(void *arg, const struct ulrpc_outcome *o,
		      const void *reply, size_t length)
{
	struct answer *a = arg;

	a->called.ended++;
	a->called.outcome = *o;
	a->called.length = length;
	cr_assert_leq(length, sizeof(a->reply));
	if (length)
		memcpy(a->reply, reply, length);
}

static int call(struct ulrpc_context *x, const char *method, const void *body,
		size_t length, uint32_t reply_max, struct answer *a)
{
	const struct ulrpc_call_conf conf = {
		.deadline = 10000000,
		.context = x,
		.reply_max = reply_max,
		.semantics = ULRPC_IDEMPOTENT,
	};

	memset(&a->called, 0, sizeof(a->called));
	return ulrpc_call(g.client, ulrpc_method(method), body, length, &conf,
			  on_answer, a, NULL);
}

static struct ulrpc_context *context_of(const char *name, const char *value)
{
	struct ulrpc_context *x;

	cr_assert_eq(ulrpc_context_new(&x), 0);
	cr_assert_eq(ulrpc_context_add(x, name, value, strlen(value)), 0);
	return x;
}

static void has(const struct ulrpc_context *x, const char *name,
		const char *value)
{
	struct ulrpc_metadata m;

	cr_assert_eq(ulrpc_context_find(x, name, &m), 0, "%s", name);
	cr_expect_eq(m.length, strlen(value));
	cr_expect_str_eq(m.value, value);
}

static struct answer a;

/* gRPC's test case "custom metadata". */
Test(context_pair, custom_metadata)
{
	struct ulrpc_metadata m;
	struct ulrpc_context *x;

	begin();
	for (unsigned int i = 0; i < 3; i++) {
		x = context_of("tenant", "blue");
		cr_assert_eq(ulrpc_context_add(x, "key-bin", "\0\n\0", 3), 0);
		cr_assert_eq(call(x, kinds[i], "ping", 4, 0, &a), 0);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(a.called.ended, 1);
		cr_assert_eq(a.called.outcome.cause, ULRPC_CAUSE_OK, "%s",
			     ulrpc_cause_name(a.called.outcome.cause));
		cr_assert_eq(a.called.length, 4);
		cr_expect_arr_eq(a.reply, "ping", 4);
		cr_expect_str_eq(g.served.body, "ping");
		has(x, "re-tenant", "blue");
		cr_assert_eq(ulrpc_context_metadata(x, 1, &m), 0);
		cr_expect_str_eq(m.name, "re-key-bin");
		cr_assert_eq(m.length, 3);
		cr_expect_arr_eq(m.value, "\0\n\0", 3);
		cr_expect_eq(ulrpc_context_metadata(x, 2, &m), -ENOENT);
		ulrpc_context_free(x);
	}
	serve_fini(&g);
}

/* gRPC's test case "special status message", with details; and a context that
 * serves one call after the other. */
Test(context_pair, failures_have_details)
{
	struct ulrpc_details d;
	struct ulrpc_context *x;

	begin();
	for (unsigned int i = 0; i < 6; i++) {
		/* the second half has no room for them in the reply */
		uint32_t reply_max = i < 3 ? 0 : 20;

		x = context_of("tenant", "green");
		cr_assert_eq(call(x, kinds[i % 3], "fail", 4, reply_max, &a),
			     0);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(a.called.ended, 1);
		cr_expect_eq(a.called.outcome.cause, ULRPC_CAUSE_HANDLER);
		cr_expect_eq(a.called.outcome.execution, ULRPC_EXECUTED);
		cr_expect_eq(ulrpc_status_of(&a.called.outcome),
			     ULRPC_STATUS_NOT_FOUND);
		cr_expect_str_eq(a.called.outcome.text, "no such key");
		cr_expect_eq(a.called.length, 0);
		cr_assert_eq(ulrpc_context_details(x, &d), 0);
		cr_expect_str_eq(d.type, "ulrpc.test.Why");
		cr_assert_eq(d.length, 3);
		cr_expect_arr_eq(d.bytes, "\0\1\2", 3);
		has(x, "re-tenant", "green");

		/* the next call says nothing of that any more */
		cr_assert_eq(call(x, "hold", "", 0, 0, &a), 0);
		cr_expect_eq(ulrpc_context_details(x, &d), -EBUSY);
		lnet_sim_run(g.sim, SEC);
		serve_release(&g.served);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(a.called.outcome.cause, ULRPC_CAUSE_OK);
		cr_expect_eq(ulrpc_context_details(x, &d), -ENOENT);
		ulrpc_context_free(x);
	}
	serve_fini(&g);
}

/* A caller without a context hears of the failure as always. */
Test(context_pair, nobody_wants_it)
{
	begin();
	cr_assert_eq(call(NULL, "inline", "fail", 4, 0, &a), 0);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(a.called.outcome.cause, ULRPC_CAUSE_HANDLER);
	cr_expect_eq(a.called.outcome.status, -ENOENT);
	cr_expect_str_eq(a.called.outcome.text, "no such key");
	serve_fini(&g);
}

/* The reply has to be fetched, with its metadata. */
Test(context_pair, long_replies)
{
	static char body[LONG];
	struct ulrpc_context *x;

	begin();
	for (unsigned int i = 0; i < LONG; i++)
		body[i] = (char)(i * 7);
	for (unsigned int i = 0; i < 3; i++) {
		x = context_of("tenant", "red");
		cr_assert_eq(call(x, kinds[i], body, LONG, LONG, &a), 0);
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(a.called.ended, 1);
		cr_assert_eq(a.called.outcome.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(a.called.length, LONG);
		cr_expect_arr_eq(a.reply, body, LONG);
		has(x, "re-tenant", "red");
		ulrpc_context_free(x);
	}
	serve_fini(&g);
}

Test(context_pair, one_call_at_a_time)
{
	struct ulrpc_context *x = NULL;
	struct ulrpc_metadata m;
	static struct answer b;

	begin();
	x = context_of("n", "v");
	cr_assert_eq(call(x, "hold", "", 0, 0, &a), 0);
	cr_expect_eq(call(x, "inline", "", 0, 0, &b), -EBUSY);
	cr_expect_eq(ulrpc_context_add(x, "n", "v", 1), -EBUSY);
	cr_expect_eq(ulrpc_context_find(x, "n", &m), -EBUSY);
	/* the call goes on without its maker's reference */
	ulrpc_context_free(x);
	lnet_sim_run(g.sim, SEC);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(a.called.outcome.cause, ULRPC_CAUSE_OK);
	serve_fini(&g);
}

/* A call that cannot be made leaves the context as it was. */
Test(context_pair, call_not_made)
{
	struct ulrpc_context *x;
	struct ulrpc_call_conf conf = { .deadline = 1000, .nbulks = 1 };
	static char body[1];

	begin();
	x = context_of("n", "v");
	conf.context = x;
	cr_expect_eq(
		ulrpc_call(g.client, 1, NULL, 0, &conf, on_answer, &a, NULL),
		-EINVAL);
	conf.nbulks = 0;
	/* With the metadata, that is one byte more than there may be. */
	cr_expect_eq(ulrpc_call(g.client, 1, body, ULRPC_LENT_MAX, &conf,
				on_answer, &a, NULL),
		     -EMSGSIZE);
	conf.trace = "no trace";
	cr_expect_eq(
		ulrpc_call(g.client, 1, NULL, 0, &conf, on_answer, &a, NULL),
		-EINVAL);
	cr_expect_eq(ulrpc_context_add(x, "n", "v", 1), 0);
	ulrpc_context_free(x);
	serve_fini(&g);
}

/* ---- peers of a release without metadata ---- */

/* The call is not sent: its body would be taken for another one. */
Test(context_pair, old_server)
{
	struct ulrpc_context *x = NULL;

	begin();
	cr_assert_eq(call(NULL, "inline", "", 0, 0, &a), 0);
	lnet_sim_run(g.sim, SEC);
	g.client->imp->annexes = false;
	x = context_of("n", "v");
	cr_assert_eq(call(x, "inline", "", 0, 0, &a), 0);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(a.called.outcome.cause, ULRPC_CAUSE_BAD_REQUEST);
	cr_expect_eq(a.called.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_expect_str_eq(a.called.outcome.text,
			 "the server is of a release that takes no metadata");
	cr_expect_eq(g.served.runs, 1);
	ulrpc_context_free(x);
	serve_fini(&g);
}

/* It gets replies and failures as it always has. */
Test(context_pair, old_client)
{
	struct exports *x;
	uint32_t pos = 0;
	struct export *e;

	begin();
	cr_assert_eq(call(NULL, "inline", "", 0, 0, &a), 0);
	lnet_sim_run(g.sim, SEC);
	x = g.rpc[SERVER]->shards[0].exports;
	e = id_walk(&x->table, &pos);
	cr_assert(e->annexes);
	e->annexes = false;
	cr_assert_eq(call(NULL, "worker", "fail", 4, 0, &a), 0);
	lnet_sim_run(g.sim, SEC);
	cr_expect_eq(a.called.outcome.status, -ENOENT);
	cr_expect_str_eq(a.called.outcome.text, "no such key");
	serve_fini(&g);
}

/* ---- hostile clients ---- */

/* An annex that is none: refused before the handler, and not executed. */
Test(context_pair, malformed_annex)
{
	struct ulrpc_context *x;
	struct ulrpc_call *c;

	begin();
	for (unsigned int i = 0; i < 3; i++) {
		x = context_of("n", "v");
		cr_assert_eq(call(x, kinds[i], "ping", 4, 0, &a), 0);
		/* it has not been sent yet */
		cr_assert_not(list_empty(&g.client->queue));
		c = list_first(&g.client->queue, struct ulrpc_call, link);
		call_body(c)[5] = 'N';
		lnet_sim_run(g.sim, SEC);
		cr_expect_eq(a.called.outcome.cause, ULRPC_CAUSE_BAD_REQUEST);
		cr_expect_eq(a.called.outcome.execution, ULRPC_NOT_EXECUTED);
		ulrpc_context_free(x);
	}
	cr_expect_eq(g.served.runs, 0);
	serve_fini(&g);
}
