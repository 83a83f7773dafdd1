/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls whose bulk is lost for longer than their service waits for it. Such a
 * call is executed once more if both the caller and the method are idempotent.
 * Client and service are both real.
 */
#include "tests/unit/rpc/serve_rig.h"

#define LENGTH	     100000
#define BULK_TIMEOUT 200000 /* us: how long the service waits for bulk */

static struct {
	struct serve_rig g;
	unsigned int runs;
	/* the request whose bulk was lost; the test answers it */
	struct ulrpc_request *failed;
	int status;
	uint8_t *got, *lent;
	struct ulrpc_bulk *bulk;
	struct called call;
} w;

/* ---- the service ---- */

static void on_got(void *arg, int status, uint64_t moved)
{
	struct ulrpc_request *r = arg;

	w.status = status;
	if (status) {
		w.failed = r;
		return;
	}
	cr_assert_eq(moved, LENGTH);
	cr_assert_eq(memcmp(w.got, w.lent, LENGTH), 0);
	ulrpc_reply(r, NULL, 0);
}

static void take(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct iovec iov = { w.got, LENGTH };

	(void)arg;
	(void)body;
	(void)length;
	w.runs++;
	cr_assert_eq(ulrpc_bulk_timeout(r, 0, BULK_TIMEOUT), 0);
	cr_assert_eq(ulrpc_bulk_get(r, 0, 0, &iov, 1, on_got, r), 0);
}

/* ---- the caller ---- */

static void hears(uint32_t loss)
{
	link_set(w.g.sim, SERVER, CALLER,
		 &(struct ulnet_sim_link){ .latency = MSEC, .loss = loss });
}

static void open_all(void)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "again",
		  .handler = take,
		  .run = ULRPC_RUN_INLINE,
		  .semantics = ULRPC_IDEMPOTENT },
		{ .name = "once", .handler = take, .run = ULRPC_RUN_INLINE },
		{ .name = "echo",
		  .handler = echo,
		  .arg = &w.g.served,
		  .run = ULRPC_RUN_INLINE },
	};

	memset(&w, 0, sizeof(w));
	serve_init(&w.g, 1, 1);
	serve_open(&w.g, NULL);
	serve_methods(&w.g, methods, ARRAY_SIZE(methods));
	serve_client(&w.g);
	w.got = lnet_sim_buf(w.g.sim, LENGTH);
	w.lent = lnet_sim_buf(w.g.sim, LENGTH);
	for (unsigned int i = 0; i < LENGTH; i++)
		w.lent[i] = (uint8_t)(i * 7);
	hears(0);
}

static void call(const char *method, enum ulrpc_semantics semantics,
		 const struct ulrpc_retry *retry)
{
	struct iovec iov = { w.lent, LENGTH };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf conf = { .deadline = 10000000,
					.semantics = semantics,
					.retry = retry,
					.bulks = &w.bulk,
					.nbulks = 1 };

	cr_assert_eq(ulrpc_bulk_new(w.g.rpc[CALLER], &lend, &w.bulk), 0);
	cr_assert_eq(ulrpc_call(w.g.client, ulrpc_method(method), NULL, 0,
				&conf, on_called, &w.call, NULL),
		     0);
}

/* Makes a call whose bulk is lost, and has the service report that. */
static void lose_bulk(const char *method, enum ulrpc_semantics semantics,
		      const struct ulrpc_retry *retry)
{
	open_all();
	serve_call(&w.g, "echo", "x", 1, 1000000, ULRPC_PRIORITY_NORMAL,
		   &w.call);
	lnet_sim_run(w.g.sim, 100 * MSEC);
	cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_OK);
	w.call = (struct called){ 0 };
	hears(LNET_SIM_ALWAYS);
	call(method, semantics, retry);
	while (!w.failed)
		lnet_sim_run(w.g.sim, MSEC);
	cr_assert_eq(w.runs, 1);
	cr_assert_eq(w.status, -ETIMEDOUT);
	hears(0);
	ulrpc_fail(w.failed, w.status);
	lnet_sim_run(w.g.sim, 5 * SEC);
	cr_assert_eq(w.call.ended, 1);
	ulrpc_bulk_close(w.bulk, NULL, NULL);
}

static void close_all(void)
{
	lnet_sim_buf_retire(w.g.sim, w.got);
	lnet_sim_buf_retire(w.g.sim, w.lent);
	serve_fini(&w.g);
}

static void ended_without_bulk(void)
{
	cr_assert_eq(w.runs, 1);
	cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_BULK);
	cr_assert_eq(w.call.outcome.status, -ETIMEDOUT);
	cr_assert_eq(w.call.outcome.execution, ULRPC_EXECUTED);
	cr_assert_eq(w.call.outcome.retries, 0);
}

Test(bulk_again, if_call_and_method_are_idempotent)
{
	lose_bulk("again", ULRPC_IDEMPOTENT, NULL);
	cr_assert_eq(w.call.outcome.cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(w.call.outcome.cause));
	cr_assert_eq(w.runs, 2);
	cr_assert_eq(w.call.outcome.retries, 1);
	close_all();
}

/* The server has kept its answer to the call, and repeats it for the query. */
Test(bulk_again, not_if_the_method_is_not_idempotent)
{
	lose_bulk("once", ULRPC_IDEMPOTENT, NULL);
	ended_without_bulk();
	close_all();
}

Test(bulk_again, not_if_the_call_is_not_idempotent)
{
	lose_bulk("again", ULRPC_AT_MOST_ONCE, NULL);
	ended_without_bulk();
	close_all();
}

Test(bulk_again, not_if_the_caller_wants_no_retries)
{
	static const struct ulrpc_retry none = { .max = 0 };

	lose_bulk("again", ULRPC_IDEMPOTENT, &none);
	ended_without_bulk();
	close_all();
}
