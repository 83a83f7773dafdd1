/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of Connects: late ones, and those that come by several rails. */
#include "rpc/control.h"
#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

#define CPTS 4

static struct raw_client a, b;

static void rig_of_one(struct serve_rig *g)
{
	struct ulrpc_service_conf c;

	serve_init(g, 1, CPTS);
	serve_open(g, NULL);
	c = serve_conf(g);
	serve_start(g, &c);
	raw_client_init(&a, g->sim, CALLER, SERVER);
}

/* A late copy of a Connect of an earlier process takes the connection over. The
 * client gets it back when it connects again, from the same node or another
 * one. */
Test(export, late_copy_of_a_connect)
{
	struct serve_rig g;
	uint64_t client, connection;

	for (unsigned int moves = 0; moves < 2; moves++) {
		struct raw_client *now = moves ? &b : &a;

		rig_of_one(&g);
		raw_client_init(&b, g.sim, serve_node_add(&g, 2), SERVER);
		memcpy(b.client_id, a.client_id, sizeof(b.client_id));
		client = a.client;
		cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
		cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
		a.client++;
		cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
		now->client = client;
		now->epoch = 2;
		cr_assert_eq(raw_client_connect(now)->status, WIRE_OK);
		cr_assert_not(now->control.connected.reconnected);
		cr_assert_eq(raw_client_keepalive(now), WIRE_OK);
		/* Another copy of that Connect is refused. */
		connection = now->connection;
		a.client = client + 1;
		cr_assert_neq(raw_client_connect(&a)->status, WIRE_OK);
		now->client = client;
		now->connection = connection;
		cr_assert_eq(raw_client_keepalive(now), WIRE_OK);
		serve_fini(&g);
	}
}

/* ---- by several rails ---- */

static unsigned int owner_of(const struct serve_rig *g, unsigned int node)
{
	struct ulnet_id id = nth_id(node);

	return (unsigned int)lnet_cpt_of(g->node[SERVER], &id.nid);
}

static unsigned int exports(const struct serve_rig *g)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < CPTS; i++)
		n += g->rpc[SERVER]->shards[i].exports->table.used;
	return n;
}

/* Adds nodes until there is one whose NID another CPT owns than @home and
 * @place. */
static unsigned int node_elsewhere(struct serve_rig *g, unsigned int home,
				   unsigned int place)
{
	unsigned int node = 2, cpt;

	for (;; node++) {
		cpt = owner_of(g, serve_node_add(g, node));
		if (cpt != home && cpt != place)
			return node;
	}
}

/* Makes clients of the caller's host connect until the next one that connects
 * has its place on another CPT than its NID. Returns that place. */
static unsigned int crowd(struct serve_rig *g)
{
	unsigned int home = owner_of(g, CALLER), i = 0, place;

	do {
		a.client = 1000 + ++i;
		memcpy(a.client_id, &i, sizeof(i));
		cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
		place = export_cpt(a.connection);
	} while (place == home);
	raw_client_disconnect(&a);
	return place;
}

/* Gives the Connect of @a, as if it came from @node, to the server's @cpt. */
static void connect_from(const struct serve_rig *g, unsigned int node,
			 unsigned int cpt)
{
	struct wire_control m = { .kind = WIRE_CONNECT,
				  .connect = { .client = a.client,
					       .epoch = a.epoch,
					       .version_min = WIRE_VERSION,
					       .version_max = WIRE_VERSION } };
	struct ulnet_event ev = { .type = LNET_EVENT_PUT,
				  .initiator = nth_id(node),
				  .source = nth_id(node).nid,
				  .target = nth_id(SERVER) };
	uint8_t bytes[CONTROL_MESSAGE_MAX];
	size_t length;

	memcpy(m.connect.client_id, a.client_id, sizeof(a.client_id));
	length = wire_control_encode(&m, bytes, &ev.hdr_data);
	control_on_message(&g->rpc[SERVER]->shards[cpt], &ev, bytes, length);
}

/* One Connect comes from two NIDs, to two CPTs, in the same turn. From the one
 * the client belongs to a crowd, and is sent on to a third CPT; from the other
 * it does not. Whichever copy is read first: there is one connection, and both
 * answers are of it. */
Test(export, copies_of_a_connect)
{
	for (unsigned int first = 0; first < 2; first++) {
		unsigned int node[2], cpt[2], place, before;
		uint64_t connection;
		struct serve_rig g;

		rig_of_one(&g);
		place = crowd(&g);
		node[0] = CALLER;
		cpt[0] = owner_of(&g, CALLER);
		node[1] = node_elsewhere(&g, cpt[0], place);
		cpt[1] = owner_of(&g, node[1]);
		raw_client_init(&b, g.sim, node[1], SERVER);
		before = exports(&g);
		a.controls = 0;
		for (unsigned int i = 0; i < 2; i++)
			connect_from(&g, node[i ^ first], cpt[i ^ first]);
		lnet_sim_run(g.sim, MSEC);
		cr_assert_eq(exports(&g), before + 1);
		cr_assert_eq(a.controls, 1);
		cr_assert_eq(b.controls, 1);
		cr_assert_eq(a.control.connected.status, WIRE_OK);
		cr_assert_eq(b.control.connected.status, WIRE_OK);
		connection = a.control.connected.connection;
		cr_assert_eq(b.control.connected.connection, connection);
		/* and both NIDs are rails of the client */
		a.connection = connection;
		cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
		b.client = a.client;
		b.epoch = a.epoch;
		b.connection = connection;
		cr_assert_eq(raw_client_keepalive(&b), WIRE_OK);
		serve_fini(&g);
	}
}

/* A Connect is on its way to the place that was chosen for it when its copy
 * comes, for which another place is chosen, as the clients of the CPTs have
 * changed. */
Test(export, copies_of_a_connect_by_one_rail)
{
	struct serve_rig g;
	unsigned int home, before;
	struct shard *s;

	rig_of_one(&g);
	(void)crowd(&g);
	home = owner_of(&g, CALLER);
	s = &g.rpc[SERVER]->shards[home];
	before = exports(&g);
	a.controls = 0;
	connect_from(&g, CALLER, home);
	cr_assert_eq(exports(&g), before, "it is on its way");
	for (unsigned int i = 0; i < CPTS; i++)
		if (i != home)
			s->rpc->shards[i].clients += 100;
	connect_from(&g, CALLER, home);
	cr_assert_eq(exports(&g), before + 1);
	for (unsigned int i = 0; i < CPTS; i++)
		if (i != home)
			s->rpc->shards[i].clients -= 100;
	a.control.connected.status = WIRE_OK;
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(exports(&g), before + 1);
	cr_assert_eq(a.controls, 2);
	cr_assert_eq(a.control.connected.status, WIRE_OK);
	cr_assert_eq(serve_counted(&g.service->cpt[home],
				   RPC_STAT_clients_refused),
		     0);
	serve_fini(&g);
}
