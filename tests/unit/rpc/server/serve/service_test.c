/* SPDX-License-Identifier: BSD-3-Clause */
/* Estimates of how long the methods of a service take, and what clients are
 * told of them. */
#include "rpc/client/client.h"
#include "rpc/estimate.h"
#include "rpc/server/serve/service.h"
#include "rpc/run.h"
#include "tests/unit/rpc/server/request_rig.h"

static struct serve_rig g;
static unsigned int ended;

static void rig_begin(void)
{
	ended = 0;
	serve_init(&g, 1, 1);
	lnet_sim_run(g.sim, MSEC); /* so that no request begins at time 0 */
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
}

static void rig_end(void)
{
	serve_release(&g.served);
	ulrpc_client_close(g.client);
	serve_fini(&g);
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	(void)arg;
	(void)o;
	(void)reply;
	(void)length;
	ended++;
}

static void begin_call(const char *method)
{
	struct ulrpc_call_conf conf = { .deadline = 100000000 };

	cr_assert_eq(ulrpc_call(g.client, ulrpc_method(method), "hello", 5,
				&conf, on_end, NULL, NULL),
		     0);
}

/* Makes a call of @method whose handler takes @ns, and waits for its end. */
static void call_taking(const char *method, uint64_t ns)
{
	unsigned int before = ended;

	begin_call(method);
	lnet_sim_run(g.sim, 10 * MSEC);
	lnet_sim_run(g.sim, ns);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(ended, before + 1);
}

static uint64_t estimate_of(const char *method)
{
	struct service_cpt *sc = cpt0(&g);
	const struct ulrpc_method *m =
		service_method(g.service, ulrpc_method(method));

	run_fold(sc->shard, STAT_REQUESTS);
	return estimate_read(&sc->estimates[m - g.service->methods],
			     lnet_sim_now(g.sim));
}

/* Whether @is is @exact, but for the width of a bucket of the histogram and the
 * time that call_taking() adds. */
static bool is_near(uint64_t is, uint64_t exact)
{
	return is >= exact && is <= exact + exact * 2 / 5;
}

Test(estimates, by_method)
{
	rig_begin();
	call_taking("hold", 100 * MSEC);
	call_taking("park", 300 * MSEC);
	call_taking("echo", 0);
	cr_expect(is_near(estimate_of("hold"), 100 * MSEC));
	cr_expect(is_near(estimate_of("park"), 300 * MSEC));
	cr_expect_neq(estimate_of("echo"), 0);
	cr_expect_leq(estimate_of("echo"), 2 * NSEC_PER_USEC);
	cr_expect_eq(estimate_of("low"), 0);
	rig_end();
}

/* The handler refuses work at once, which says nothing of how long the method
 * takes; a failure does. */
Test(estimates, not_of_refusals)
{
	rig_begin();
	begin_call("full");
	/* the client sends it again and again */
	lnet_sim_run(g.sim, 100 * SEC);
	cr_assert_eq(ended, 1);
	cr_expect_eq(estimate_of("full"), 0);
	call_taking("fail", 0);
	cr_expect_neq(estimate_of("fail"), 0);
	rig_end();
}

Test(estimates, of_the_queue_too)
{
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.workers_min = conf.workers_max = 1;
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start_with(&g, &conf);
	serve_client(&g);
	ended = 0;
	begin_call("park");
	begin_call("work");
	lnet_sim_run(g.sim, 200 * MSEC);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(ended, 2);
	cr_expect(estimate_of("work") > 150 * MSEC);
	rig_end();
}

/* A reply advertises the longest estimate of all methods. */
Test(estimates, clients_are_told)
{
	rig_begin();
	call_taking("hold", 100 * MSEC);
	call_taking("park", 300 * MSEC);
	lnet_sim_run(g.sim, SEC);
	call_taking("echo", 0);
	cr_expect(is_near(g.client->timeouts.advertised, 300 * MSEC));
	rig_end();
}

Test(estimates, clients_are_told_when_they_open_the_service)
{
	rig_begin();
	call_taking("hold", 100 * MSEC);
	lnet_sim_run(g.sim, SEC);
	ulrpc_client_close(g.client);
	serve_client(&g);
	cr_expect_eq(g.client->timeouts.advertised, 0);
	begin_call("park");
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_expect(is_near(g.client->timeouts.advertised, 100 * MSEC));
	rig_end();
}

/* Requests are collected in a run while they are alike; the estimate includes
 * them before the run ends. */
Test(estimates, of_a_run_that_goes_on)
{
	rig_begin();
	for (unsigned int i = 0; i < 300; i++) {
		call_taking("echo", SEC);
		cr_assert_neq(cpt0(&g)->estimate == 0, i > 0);
	}
	rig_end();
}
