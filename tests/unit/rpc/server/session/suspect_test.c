/* SPDX-License-Identifier: BSD-3-Clause */
/* The LND's connection with a client ends while a request of that client is
 * under way. Client and service are both real; a lease is 30 seconds. */
#include "rpc/server/serve/cancel.h"
#include "tests/unit/rpc/serve_rig.h"

#define HOUR UINT64_C(3600000000) /* us */

static struct serve_rig g;
static struct called c;

/* As serve_init(), but the caller's node accepts no connections. */
static void init_with_caller(void)
{
	struct ulnet_conf only_calls;
	struct ulnet_id id = nth_id(CALLER);
	char text[LNET_NIDSTR_SIZE];

	lnet_conf_init(&only_calls);
	only_calls.accept = LNET_ACCEPT_NONE;
	g = (struct serve_rig){ .served.lock = PTHREAD_MUTEX_INITIALIZER };
	cr_assert_eq(lnet_cond_init(&g.served.unparked), 0);
	cr_assert_eq(lnet_sim_new(1, 1, &g.sim), 0);
	lnet_nid_format(&id.nid, text, sizeof(text));
	cr_assert_eq(lnet_sim_node_add(g.sim, text, &only_calls, NULL, NULL),
		     CALLER);
	serve_node_add(&g, SERVER);
	for (unsigned int i = 0; i < 2; i++)
		g.node[i] = lnet_sim_node(g.sim, i);
}

static void begin_call(const char *method)
{
	cluster_links(g.sim, &(struct ulnet_sim_link){ .latency = MSEC,
						       .connect = 3 * MSEC });
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
	serve_call(&g, method, "x", 1, HOUR, ULRPC_PRIORITY_DEFAULT, &c);
	lnet_sim_run(g.sim, 100 * MSEC);
}

static void begin(const char *method)
{
	serve_init(&g, 1, 1);
	begin_call(method);
}

static void cut(void)
{
	const struct ulnet_id a = nth_id(CALLER), b = nth_id(SERVER);

	lnet_sim_cut(g.sim, &a.nid, &b.nid);
}

static void partition(bool on)
{
	const struct ulnet_id a = nth_id(CALLER), b = nth_id(SERVER);

	cr_assert_eq(lnet_sim_partition(g.sim, &a.nid, &b.nid, on), 0);
}

static void crash(void)
{
	cr_assert_eq(lnet_sim_crash(g.sim, CALLER), 0);
	g.rpc[CALLER] = NULL;
}

static uint64_t counted(enum rpc_stat stat)
{
	return serve_counted(&g.service->cpt[0], stat);
}

static bool is_canceled(void)
{
	return ulrpc_request_canceled(g.served.park[0]);
}

static void ends_well(void)
{
	cr_assert_not(is_canceled());
	cr_assert_eq(counted(RPC_STAT_clients_lost), 0);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	serve_fini(&g);
}

/* The client has crashed: the server finds out long before the lease is over.
 */
Test(suspect, client_dies)
{
	begin("hold");
	crash();
	lnet_sim_run(g.sim, 1990 * MSEC);
	cr_assert_not(is_canceled());
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert(is_canceled());
	cr_assert_eq(counted(RPC_STAT_clients_vanished), 1);
	cr_assert_eq(counted(RPC_STAT_clients_lost), 1);
	serve_release(&g.served);
	serve_fini(&g);
}

Test(suspect, connection_is_made_again)
{
	begin("hold");
	for (unsigned int i = 0; i < 20; i++) {
		cut();
		lnet_sim_run(g.sim, 200 * MSEC);
	}
	lnet_sim_run(g.sim, 5 * SEC);
	ends_well();
}

/* It takes the client 1.5 s to connect again. */
Test(suspect, connection_is_made_later)
{
	begin("hold");
	cut();
	partition(true);
	lnet_sim_run(g.sim, 1500 * MSEC);
	partition(false);
	lnet_sim_run(g.sim, 10 * SEC);
	ends_well();
}

/* If messages are lost in both directions that does not prove that the client
 * has gone: only the lease ends it. */
Test(suspect, silence_is_no_death)
{
	begin("hold");
	cut();
	partition(true);
	lnet_sim_run(g.sim, 20 * SEC);
	cr_assert_not(is_canceled());
	lnet_sim_run(g.sim, 60 * SEC);
	cr_assert(is_canceled());
	cr_assert_eq(counted(RPC_STAT_clients_lost), 1);
	cr_assert_eq(counted(RPC_STAT_clients_vanished), 0);
	partition(false);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * SEC);
	serve_fini(&g);
}

static void lose_caller(bool dies)
{
	init_with_caller();
	begin_call("hold");
	cr_assert_eq(g.served.parked, 1);
	if (dies)
		crash();
	else
		cut();
}

/* The client has crashed, and the server cannot connect to it anyway. */
Test(suspect, caller_dies)
{
	lose_caller(true);
	lnet_sim_run(g.sim, 3 * SEC);
	cr_assert(is_canceled());
	cr_assert_eq(counted(RPC_STAT_clients_vanished), 1);
	serve_release(&g.served);
	serve_fini(&g);
}

/* The server's own interface is down, which says nothing of the client. */
Test(suspect, server_interface_is_down)
{
	const struct ulnet_nid here = nth_id(SERVER).nid;

	lose_caller(false);
	cr_assert_eq(lnet_sim_ni_set(g.sim, &here, false), 0);
	lnet_sim_run(g.sim, 5 * SEC);
	cr_assert_not(is_canceled());
	cr_assert_eq(lnet_sim_ni_set(g.sim, &here, true), 0);
	lnet_sim_run(g.sim, 10 * SEC);
	ends_well();
}

/* A client without requests under way is given up only after its lease. */
Test(suspect, idle_client_dies)
{
	begin("echo");
	cr_assert_eq(c.ended, 1);
	crash();
	lnet_sim_run(g.sim, 10 * SEC);
	cr_assert_eq(counted(RPC_STAT_clients_lost), 0);
	serve_fini(&g);
}
