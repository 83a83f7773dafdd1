/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that stands still, as its process is stopped or its machine is
 * suspended, for longer than the lease of its clients. When it goes on, timers
 * run before it reads anything, but it must not forget clients that have sent
 * something meanwhile. */
#include <errno.h>

#include "tests/unit/rpc/serve_rig.h"

#define CALLS	 13
#define DEADLINE UINT64_C(260000000) /* us */

static struct serve_rig g;
static struct called calls[CALLS];

/* Makes calls that are executed, but not answered yet. @conf: of the server. */
static void begin_with(const struct ulrpc_conf *conf)
{
	g = (struct serve_rig){ .served.lock = PTHREAD_MUTEX_INITIALIZER };
	cr_assert_eq(lnet_cond_init(&g.served.unparked), 0);
	cr_assert_eq(lnet_sim_new(1, 1, &g.sim), 0);
	lnet_sim_apart(g.sim);
	for (unsigned int i = 0; i < 2; i++)
		g.node[i] = lnet_sim_node(g.sim, serve_node_add(&g, i));
	serve_open(&g, conf);
	serve_start_with(&g, NULL);
	serve_client(&g);
	cluster_links(g.sim, &(struct ulnet_sim_link){ .latency = MSEC });
	for (unsigned int i = 0; i < CALLS; i++)
		serve_call(&g, "hold", "x", 1, DEADLINE, 0, &calls[i]);
	lnet_sim_run(g.sim, 5 * SEC); /* slow start */
	cr_assert_eq(g.served.parked, CALLS);
}

static void begin(void)
{
	begin_with(NULL);
}

static void end(void)
{
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * SEC);
	for (unsigned int i = 0; i < CALLS; i++) {
		const struct ulrpc_outcome *o = &calls[i].outcome;

		cr_assert_eq(calls[i].ended, 1);
		cr_assert_eq(o->cause, ULRPC_CAUSE_OK, "call %u: %s, %s", i,
			     ulrpc_cause_name(o->cause),
			     ulrpc_execution_name(o->execution));
	}
	cr_assert_eq(g.served.runs, CALLS);
	serve_fini(&g);
}

static uint64_t counted(enum rpc_stat stat)
{
	return serve_counted(&g.service->cpt[0], stat);
}

/* Whatever the moment at which the server is stopped, and for how long, its
 * client is not forgotten. */
Test(pause_pair, a_server_that_slept_forgets_nobody)
{
	for (unsigned int s = 20; s <= 180; s += 20)
		for (unsigned int i = 0; i < 10; i++) {
			begin();
			lnet_sim_run(g.sim, i * SEC);
			cr_assert_eq(lnet_sim_pause(g.sim, SERVER, s * SEC), 0);
			lnet_sim_run(g.sim, (s + 5) * SEC);
			cr_assert_eq(counted(RPC_STAT_clients_lost), 0,
				     "after %u s, for %u s", i, s);
			end();
		}
}

/* A client that has asked in vain for longer than its lease thinks that the
 * way is long, and asks more rarely; but once it is answered, its lease counts
 * again. */
Test(pause_pair, a_short_lease)
{
	struct ulrpc_conf conf;

	ulrpc_conf_init(&conf);
	conf.keepalive = 34000;
	for (unsigned int i = 0; i < 100; i++) {
		begin_with(&conf);
		lnet_sim_run(g.sim, i * MSEC);
		cr_assert_eq(
			lnet_sim_pause(g.sim, SERVER, (200 + 10 * i) * MSEC),
			0);
		lnet_sim_run(g.sim, 5 * SEC);
		cr_assert_eq(counted(RPC_STAT_clients_lost), 0, "run %u", i);
		end();
	}
}

/* A client that has gone meanwhile is forgotten after another lease, which is
 * twice as long as nobody is heard. */
Test(pause_pair, a_client_that_has_gone_is_forgotten)
{
	begin();
	cr_assert_eq(lnet_sim_pause(g.sim, SERVER, 120 * SEC), 0);
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_eq(lnet_sim_crash(g.sim, CALLER), 0);
	g.rpc[CALLER] = NULL;
	lnet_sim_run(g.sim, 115 * SEC);
	cr_assert_eq(counted(RPC_STAT_clients_lost), 0);
	lnet_sim_run(g.sim, 75 * SEC);
	cr_assert_eq(counted(RPC_STAT_clients_lost), 1);
	serve_release(&g.served);
	serve_fini(&g);
}

/* A client that sleeps is forgotten by a server that does not: no server has
 * restarted. */
Test(pause_pair, forgotten_is_not_restarted)
{
	begin();
	cr_assert_eq(lnet_sim_pause(g.sim, CALLER, 120 * SEC), 0);
	lnet_sim_run(g.sim, 130 * SEC);
	cr_assert_eq(counted(RPC_STAT_clients_lost), 1);
	for (unsigned int i = 0; i < CALLS; i++) {
		const struct ulrpc_outcome *o = &calls[i].outcome;

		cr_assert_eq(calls[i].ended, 1);
		cr_assert_eq(o->cause, ULRPC_CAUSE_FORGOTTEN, "%s",
			     ulrpc_cause_name(o->cause));
		cr_assert_eq(o->execution, ULRPC_EXECUTION_UNKNOWN);
	}
	serve_release(&g.served);
	serve_fini(&g);
}

/* Nodes that share loops cannot be paused one by one. */
Test(pause_pair, who_can_be_paused)
{
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL),
		     0);
	cr_assert_eq(lnet_sim_pause(sim, 0, SEC), -EINVAL);
	lnet_sim_apart(sim);
	cr_assert_eq(lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, NULL, NULL),
		     1);
	cr_assert_eq(lnet_sim_pause(sim, 1, SEC), 0);
	cr_assert_eq(lnet_sim_pause(sim, 2, SEC), -ENOENT);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	cr_assert_eq(lnet_sim_pause(sim, 1, SEC), -ENOENT);
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	cr_assert_eq(lnet_sim_free(sim), 0);
}
