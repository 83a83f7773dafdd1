/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress that callers are told of calls that take long, and of which
 * calls they are told nothing. Client and service are both real. */
#include "tests/unit/rpc/serve_rig.h"

struct heard {
	unsigned int times;
	struct ulrpc_call_progress last;
	const struct called *call; /* which must not have ended */
};

static void on_progress(void *arg, const struct ulrpc_call_progress *progress)
{
	struct heard *h = arg;

	cr_assert_eq(h->call->ended, 0);
	h->times++;
	h->last = *progress;
}

static void call_and_hear(struct serve_rig *g, const char *method,
			  struct called *c, struct heard *h)
{
	struct ulrpc_call_conf conf = { .deadline = 3600000000,
					.progress = on_progress,
					.progress_arg = h };

	*c = (struct called){ 0 };
	*h = (struct heard){ .call = c };
	cr_assert_eq(ulrpc_call(g->client, ulrpc_method(method), "x", 1, &conf,
				on_called, c, NULL),
		     0);
}

Test(progress_pair, is_heard_of)
{
	struct serve_rig g;
	struct heard quick, running;
	struct called c[2];

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start_with(&g,
			 &(struct ulrpc_service_conf){ .stuck = ULRPC_NEVER });
	serve_client(&g);
	call_and_hear(&g, "echo", &c[0], &quick);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(c[0].ended, 1);
	call_and_hear(&g, "hold", &c[1], &running);
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_geq(running.times, 2);
	cr_assert_eq(running.last.stage, ULRPC_STAGE_RUNNING);
	cr_assert_eq(running.last.permille, 0);
	ulrpc_progress(g.served.park[0], 420);
	lnet_sim_run(g.sim, 20 * SEC);
	cr_assert_eq(running.last.permille, 420);
	ulrpc_progress(g.served.park[0], 5000);
	lnet_sim_run(g.sim, 60 * SEC);
	cr_assert_eq(running.last.permille, 1000);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 100 * SEC);
	cr_assert_eq(c[1].outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(c[1].outcome.extensions, running.times);
	cr_assert_eq(quick.times, 0);
	ulrpc_client_close(g.client);
	serve_fini(&g);
}
