/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of one host, whose exports are on several CPTs of the server. */
#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

static struct raw_client a, third;

static void rig_of_one(struct serve_rig *g, unsigned int cpts,
		       const struct ulrpc_conf *conf)
{
	struct ulrpc_service_conf c;

	serve_init(g, 1, cpts);
	serve_open(g, conf);
	c = serve_conf(g);
	serve_start(g, &c);
	raw_client_init(&a, g->sim, CALLER, SERVER);
}

#define SPREAD_CPTS 4
#define CROWD_TEST  200

/* Makes client @i of the caller's node connect; its id is made of @mark. */
static unsigned int connect_nth(unsigned int i, uint8_t mark)
{
	a.client = 1000 + i;
	memset(a.client_id, 0, sizeof(a.client_id));
	memcpy(a.client_id, &i, sizeof(i));
	a.client_id[15] = mark;
	a.epoch = 1;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	return export_cpt(a.connection);
}

static unsigned int clients_of(const struct serve_rig *g, unsigned int cpt)
{
	const struct shard *s = &g->rpc[SERVER]->shards[cpt];

	cr_assert_eq(s->clients, s->exports->table.used);
	return s->exports->table.used;
}

static unsigned int owner_of_caller(const struct serve_rig *g)
{
	struct ulnet_id caller = nth_id(CALLER);

	return (unsigned int)lnet_cpt_of(g->node[SERVER], &caller.nid);
}

/* The first four clients of a host stay; the others are spread evenly, and all
 * can be served: also when their messages come to another CPT. Once there, they
 * stay when they connect again. */
Test(crowd, is_spread)
{
	unsigned int home, cpt[CROWD_TEST], runs = 0;
	struct serve_rig g;

	rig_of_one(&g, SPREAD_CPTS, NULL);
	home = owner_of_caller(&g);
	for (unsigned int i = 0; i < CROWD_TEST; i++) {
		cpt[i] = connect_nth(i, 1);
		cr_assert(i >= 4 || cpt[i] == home);
		cr_assert_eq(a.control.connected.clients, i + 1);
		cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
		raw_client_call(&a, i + 1, "echo", "x");
		lnet_sim_run(g.sim, MSEC);
		cr_assert_eq(g.served.runs, ++runs);
		cr_assert_eq(raw_client_reply(&a, i + 1)->status, WIRE_OK);
		cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	}
	for (unsigned int i = 0; i < SPREAD_CPTS; i++) {
		cr_assert_geq(clients_of(&g, i), CROWD_TEST / 6);
		cr_assert_leq(clients_of(&g, i), CROWD_TEST / 2);
	}
	for (unsigned int i = 0; i < CROWD_TEST; i++) {
		a.client = 1000 + i;
		memcpy(a.client_id, &i, sizeof(i));
		a.epoch = 2;
		cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
		cr_assert(a.control.connected.reconnected);
		cr_assert_eq(export_cpt(a.connection), cpt[i]);
	}
	serve_fini(&g);
}

/* Who learns which ids lead to which CPT, and chooses only those of one CPT,
 * gets no more of it than of the one that his NID belongs to. */
Test(crowd, of_chosen_ids)
{
	unsigned int home, victim, got = 0, tried = 0;
	struct serve_rig g;

	rig_of_one(&g, SPREAD_CPTS, NULL);
	home = owner_of_caller(&g);
	victim = (home + 1) % SPREAD_CPTS;
	while (got < 50 && tried < 1000) {
		unsigned int cpt = connect_nth(tried++, 2);

		if (cpt == victim || cpt == home)
			got++;
		else
			raw_client_disconnect(&a);
	}
	cr_assert_eq(got, 50);
	cr_assert_leq(clients_of(&g, victim), clients_of(&g, home));
	serve_fini(&g);
}

/* A client whose CPT has no room is refused, also if the CPT is not the one
 * that its message has come to: on each CPT its host has its share. */
Test(crowd, has_a_share_on_each_cpt)
{
	const struct ulrpc_conf conf = { .exports_max = 20,
					 .spread = ULRPC_SPREAD_CLIENTS };
	struct serve_rig g;

	rig_of_one(&g, SPREAD_CPTS, &conf);
	for (unsigned int i = 0; i < CROWD_TEST; i++) {
		a.client = 1000 + i;
		memcpy(a.client_id, &i, sizeof(i));
		(void)raw_client_connect(&a);
	}
	for (unsigned int i = 0; i < SPREAD_CPTS; i++)
		cr_assert_eq(clients_of(&g, i), 11);
	raw_client_init(&third, g.sim, serve_node_add(&g, 2), SERVER);
	cr_assert_eq(raw_client_connect(&third)->status, WIRE_OK);
	serve_fini(&g);
}

Test(crowd, is_not_spread)
{
	const struct ulrpc_conf conf = { .spread = ULRPC_SPREAD_NIDS };
	struct serve_rig g;

	rig_of_one(&g, SPREAD_CPTS, &conf);
	for (unsigned int i = 0; i < 20; i++)
		cr_assert_eq(connect_nth(i, 3), owner_of_caller(&g));
	serve_fini(&g);
}
