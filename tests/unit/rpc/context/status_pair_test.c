/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses between a real service and a real client. */
#include "tests/unit/rpc/serve_rig.h"
#include "ulnet/context.h"

static struct serve_rig g;

/* Fails with the status that the request names. */
static void fail_with(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	uint8_t status;

	(void)arg;
	cr_assert_eq(length, 1);
	memcpy(&status, body, 1);
	ulrpc_fail_status(r, (enum ulrpc_status)status,
			  status % 2 ? "an odd status" : NULL);
}

/* gRPC's test case "status code and message", with each status. */
Test(status_pair, code_and_message)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "inline",
		  .handler = fail_with,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "worker", .handler = fail_with },
	};

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_methods(&g, methods, 2);
	serve_client(&g);
	for (uint8_t i = 1; i < ULRPC_STATUS_COUNT; i++) {
		struct called c = { 0 };

		serve_call(&g, methods[i / 2 % 2].name, &i, 1, SEC,
			   ULRPC_PRIORITY_DEFAULT, &c);
		lnet_sim_run(g.sim, 2 * SEC);
		cr_assert_eq(c.ended, 1);
		cr_expect_eq(c.outcome.cause, ULRPC_CAUSE_HANDLER);
		cr_expect_eq(c.outcome.execution, ULRPC_EXECUTED);
		cr_expect_eq(ulrpc_status_of(&c.outcome), i);
		cr_expect_str_eq(c.outcome.text, i % 2 ? "an odd status" : "");
	}
	serve_fini(&g);
}
