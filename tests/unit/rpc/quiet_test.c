/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that makes no more calls: its server stops keeping replies for it,
 * and the client knows how many clients the server has. */
#include "rpc/client/client.h"
#include "rpc/client/import.h"
#include "tests/unit/rpc/serve_rig.h"

#define CALLS 50

static struct serve_rig g;
static struct called c[CALLS];

static void begin(void)
{
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
}

static void calls(void)
{
	for (unsigned int i = 0; i < CALLS; i++)
		serve_call(&g, i % 2 ? "echo" : "work", "x", 1, 60000000, 0,
			   &c[i]);
	lnet_sim_run(g.sim, 100 * MSEC);
	for (unsigned int i = 0; i < CALLS; i++)
		cr_assert_eq(c[i].ended, 1);
}

static uint64_t kept(void)
{
	return atomic_load(&g.service->cpt[0].kept_bytes);
}

static uint64_t control_come(void)
{
	return serve_counted(&g.service->cpt[0], RPC_STAT_control_received);
}

static void link_is(unsigned int loss)
{
	struct ulnet_nid from = nth_id(CALLER).nid, to = nth_id(SERVER).nid;
	struct ulnet_sim_link link = { .loss = loss };

	cr_assert_eq(lnet_sim_link_set(g.sim, &from, &to, &link), 0);
}

/* The server keeps the replies for a second at most; to free them takes one
 * message of the client each time. Then no more messages are sent. */
Test(quiet, nothing_is_kept)
{
	uint64_t before;

	begin();
	for (unsigned int i = 0; i < 3; i++) {
		before = control_come() + (i == 0 ? 2 : 0);
		calls();
		cr_assert_gt(kept(), 0);
		lnet_sim_run(g.sim, 900 * MSEC);
		cr_assert_eq(kept(), 0);
		cr_assert_eq(atomic_load(&g.service->cpt[0].used_bytes), 0);
		cr_assert_eq(control_come(), before + 1);
		lnet_sim_run(g.sim, 8 * SEC);
		cr_assert_eq(control_come(), before + 1);
	}
	serve_fini(&g);
}

/* The server frees the replies also if connections without calls end soon. */
Test(quiet, before_it_is_idle)
{
	struct ulrpc_conf conf;

	ulrpc_conf_init(&conf);
	conf.idle = 5000000; /* us: less than the interval of keepalives */
	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	cr_assert_eq(ulrpc_open(g.node[CALLER], &conf, &g.rpc[CALLER]), 0);
	serve_client(&g);
	calls();
	lnet_sim_run(g.sim, 900 * MSEC);
	cr_assert_eq(kept(), 0);
	serve_fini(&g);
}

/* While one call takes long, the server frees the replies of the calls before
 * it. */
Test(quiet, but_for_one_call)
{
	struct called slow;
	uint64_t before;

	begin();
	calls();
	serve_call(&g, "hold", "x", 1, 60000000, 0, &slow);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(kept(), 0);
	before = control_come();
	/* The client does not repeat that nothing has changed. */
	lnet_sim_run(g.sim, 8 * SEC);
	cr_assert_leq(control_come(), before + 1);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(slow.ended, 1);
	cr_assert_eq(kept(), 0);
	serve_fini(&g);
}

/* If the client goes on calling, its calls say which replies it has, and no
 * further messages are needed. */
Test(quiet, traffic_says_it)
{
	uint64_t before;

	begin();
	calls();
	before = control_come();
	for (unsigned int i = 0; i < 40; i++)
		calls();
	cr_assert_eq(control_come(), before);
	serve_fini(&g);
}

/* The message that lets the server free the replies is lost, and repeated. */
Test(quiet, lost)
{
	begin();
	calls();
	link_is(LNET_SIM_ALWAYS);
	lnet_sim_run(g.sim, SEC);
	cr_assert_gt(kept(), 0);
	link_is(0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(kept(), 0);
	serve_fini(&g);
}

static uint32_t clients_known(void)
{
	return g.client->imp->server_clients;
}

/* A quiet or busy client learns from the server how many other clients have
 * come and gone since. */
Test(quiet, census)
{
	static struct ulrpc *rpc[20];
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf;
	struct called other;

	begin();
	calls();
	cr_assert_eq(clients_known(), 1);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	for (unsigned int i = 0; i < ARRAY_SIZE(rpc); i++) {
		unsigned int node = serve_node_add(&g, 2 + i);
		struct ulrpc_client *mine = g.client;

		cr_assert_eq(
			ulrpc_open(lnet_sim_node(g.sim, node), NULL, &rpc[i]),
			0);
		cr_assert_eq(ulrpc_client_open(rpc[i], &conf, &g.client), 0);
		serve_call(&g, "echo", "x", 1, 60000000, 0, &other);
		lnet_sim_run(g.sim, 10 * MSEC);
		cr_assert_eq(other.ended, 1);
		g.client = mine;
	}
	if (clients_known() != 1)
		cr_assert_fail("too early: nobody has told it");
	for (unsigned int i = 0; i < 700; i++) /* 70 s */
		calls();
	cr_assert_eq(clients_known(), 1 + ARRAY_SIZE(rpc));
	for (unsigned int i = 0; i < ARRAY_SIZE(rpc); i++)
		cr_assert_eq(ulrpc_close(rpc[i]), 0);
	calls();
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(clients_known(), 1);
	serve_fini(&g);
}
