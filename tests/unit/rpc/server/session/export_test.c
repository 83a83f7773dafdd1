/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports: connections as a server keeps them, seen by raw clients. */
#include <errno.h>

#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

static struct raw_client a, b, third;

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

static void rig(struct serve_rig *g, const struct ulrpc_conf *conf,
		unsigned int cpts)
{
	rig_of_one(g, cpts, conf);
	raw_client_init(&b, g->sim, CALLER, SERVER);
	/* This one is another process on the same node, but the answers to both
	 * come to @a. */
	b.client++;
	memset(b.client_id, 99, sizeof(b.client_id));
}

static struct exports *exports(struct serve_rig *g)
{
	return g->rpc[SERVER]->shards[0].exports;
}

Test(export, connect_and_open)
{
	const struct wire_connected *c;
	const struct wire_opened *o;
	struct serve_rig g;

	rig(&g, NULL, 1);
	c = raw_client_connect(&a);
	cr_assert_eq(c->status, WIRE_OK);
	cr_assert_neq(c->connection, 0);
	cr_assert_not(c->reconnected);
	cr_assert_eq(c->version, WIRE_VERSION);
	cr_assert_eq(c->keepalive, 10000000);
	cr_assert_eq(c->lease, 30000000);
	cr_assert_eq(c->clients, 1);
	cr_assert_eq(memcmp(c->server_id, g.rpc[SERVER]->server_id, 16), 0);
	o = raw_client_open(&a, "test");
	cr_assert_eq(o->status, WIRE_OK);
	cr_assert_eq(o->portal, ulrpc_service_portal(g.service));
	cr_assert_eq(o->request_max, 65536);
	cr_assert_eq(o->window, 1024);
	cr_assert_geq(o->message_max, 65536);
	cr_assert_eq(raw_client_open(&a, "nothing")->status, WIRE_NO_SERVICE);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	serve_fini(&g);
}

Test(export, epochs)
{
	uint64_t connection;
	struct serve_rig g;

	rig(&g, NULL, 1);
	a.epoch = 5;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	connection = a.connection;
	/* The client asks again, as if the answer had been lost. */
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_eq(a.connection, connection);
	cr_assert_not(a.control.connected.reconnected);
	a.epoch = 4;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_STALE_EPOCH);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_STALE_EPOCH);
	a.epoch = 7;
	cr_assert_eq(raw_client_keepalive(&a), WIRE_STALE_EPOCH);
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert(a.control.connected.reconnected);
	cr_assert_eq(a.connection, connection);
	/* The answer to a repeated Connect is the same. */
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert(a.control.connected.reconnected);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	cr_assert_eq(exports(&g)->table.used, 1);
	serve_fini(&g);
}

/* A Connect with the same client id and another handle replaces the connection.
 */
Test(export, another_handle_replaces)
{
	uint64_t connection, client;
	struct serve_rig g;

	rig(&g, NULL, 1);
	a.epoch = 3;
	raw_client_connect(&a);
	connection = a.connection;
	client = a.client;
	a.client++;
	a.epoch = 1; /* as a process that was restarted */
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_not(a.control.connected.reconnected);
	cr_assert_neq(a.connection, connection);
	cr_assert_eq(exports(&g)->table.used, 1);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	a.connection = connection;
	a.client = client;
	cr_assert_eq(raw_client_keepalive(&a), WIRE_NOT_CONNECTED);
	/* A late copy of a Connect of the handle before is refused. */
	a.epoch = 4;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_STALE_EPOCH);
	cr_assert_eq(exports(&g)->table.used, 1);
	serve_fini(&g);
}

/* Handles are random: clients that know some cannot guess others. */
Test(export, handles_are_random)
{
	uint32_t upper[64];
	struct serve_rig g;

	rig(&g, NULL, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(upper); i++) {
		a.client_id[0] = (uint8_t)i;
		a.client = i;
		cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
		upper[i] = (uint32_t)(a.connection >> 32);
		cr_assert_neq(upper[i], 0);
		for (unsigned int j = 0; j < i; j++)
			cr_assert_neq(upper[i], upper[j]);
	}
	serve_fini(&g);
}

Test(export, unknown_handles)
{
	struct serve_rig g;

	rig(&g, NULL, 1);
	raw_client_connect(&a);
	a.client++;
	cr_assert_eq(raw_client_keepalive(&a), WIRE_NOT_CONNECTED,
		     "another client's");
	a.client--;
	for (unsigned int i = 0; i < 64; i++) {
		a.connection ^= UINT64_C(1) << i;
		cr_assert_eq(raw_client_keepalive(&a), WIRE_NOT_CONNECTED);
		cr_assert_eq(raw_client_open(&a, "test")->status,
			     WIRE_NOT_CONNECTED);
		a.connection ^= UINT64_C(1) << i;
	}
	cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	serve_fini(&g);
}

Test(export, disconnect)
{
	struct wire_control m = { .kind = WIRE_DISCONNECT };
	struct serve_rig g;

	rig(&g, NULL, 1);
	raw_client_connect(&a);
	m.disconnect.connection = a.connection;
	m.disconnect.client = a.client;
	m.disconnect.epoch = a.epoch;
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(raw_client_ask(&a, &m)->kind, WIRE_DISCONNECTED);
	cr_assert_eq(exports(&g)->table.used, 0);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_NOT_CONNECTED);
	serve_fini(&g);
}

Test(export, versions)
{
	struct wire_control m = { .kind = WIRE_CONNECT,
				  .connect = { .client_id = { 1 },
					       .epoch = 1,
					       .version_min = 2,
					       .version_max = 9 } };
	const struct wire_control *answer;
	struct serve_rig g;

	rig(&g, NULL, 1);
	answer = raw_client_ask(&a, &m);
	cr_assert_eq(answer->connected.status, WIRE_VERSION_UNKNOWN);
	cr_assert_eq(answer->connected.version, WIRE_VERSION);
	m.connect.version_min = 0;
	cr_assert_eq(raw_client_ask(&a, &m)->connected.status, WIRE_OK);
	serve_fini(&g);
}

/* A client at another NID cannot use the connection, even if it knows all that
 * identifies it. */
Test(export, cannot_be_used_from_another_nid)
{
	struct wire_control bye = { .kind = WIRE_DISCONNECT };
	struct serve_rig g;

	rig(&g, NULL, 1);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	raw_client_init(&b, g.sim, serve_node_add(&g, 2), SERVER);
	b.client = a.client;
	b.connection = a.connection;
	b.portal = a.portal;
	memcpy(b.client_id, a.client_id, sizeof(b.client_id));
	cr_assert_eq(raw_client_keepalive(&b), WIRE_NOT_CONNECTED);
	cr_assert_eq(raw_client_open(&b, "test")->status, WIRE_NOT_CONNECTED);
	raw_client_call(&b, 1, "echo", "x");
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_reply(&b, 1)->status, WIRE_NOT_CONNECTED);
	bye.disconnect.connection = a.connection;
	bye.disconnect.client = a.client;
	bye.disconnect.epoch = a.epoch;
	raw_client_ask(&b, &bye);
	cr_assert_eq(exports(&g)->table.used, 1);
	/* It cannot replace the connection by a Connect of a later epoch,
	 * either. */
	b.epoch = 100;
	b.client++;
	cr_assert_eq(raw_client_connect(&b)->status, WIRE_REFUSED);
	cr_assert_eq(exports(&g)->table.used, 1);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	raw_client_call(&a, 1, "echo", "x");
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_reply(&a, 1)->status, WIRE_OK);
	serve_fini(&g);
}

Test(export, has_an_id)
{
	struct serve_rig g;

	rig(&g, NULL, 1);
	memset(a.client_id, 0, sizeof(a.client_id));
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_BAD_REQUEST);
	cr_assert_eq(exports(&g)->table.used, 0);
	serve_fini(&g);
}

static unsigned int nlogged;
static char logged[256];

static void log_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	nlogged++;
	snprintf(logged, sizeof(logged), "%s", line);
}

/* Two processes connect with the same client id, on any CPTs. The second is
 * refused, and told when to try again at the latest; the log names both, once.
 * When a keepalive of the first one is overdue the second one is accepted. */
Test(export, an_id_is_one_process)
{
	char want[2][LNET_NIDSTR_SIZE + 16];
	char nid[LNET_NIDSTR_SIZE];
	struct serve_rig g;
	struct exports *x;
	unsigned int all;

	for (unsigned int i = 0; i < 4; i++) {
		nlogged = 0;
		rig_of_one(&g, 4, NULL);
		lnet_log_set(LNET_LOG_WARN, log_line, NULL);
		for (unsigned int n = 2; n < 2 + i; n++)
			serve_node_add(&g, n);
		raw_client_init(&b, g.sim, serve_node_add(&g, 2 + i), SERVER);
		memcpy(b.client_id, a.client_id, sizeof(b.client_id));
		cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
		raw_client_open(&a, "test");
		for (unsigned int n = 0; n < 3; n++) {
			lnet_sim_run(g.sim, 10 * SEC);
			cr_assert_eq(raw_client_connect(&b)->status,
				     WIRE_REFUSED);
			cr_assert_leq(b.control.connected.retry_after,
				      20000000);
			cr_assert_gt(b.control.connected.retry_after, 9000000);
			cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
		}
		cr_assert_eq(nlogged, 1);
		for (unsigned int n = 0; n < 2; n++) {
			struct ulnet_id id = nth_id(n ? 2 + i : CALLER);

			lnet_nid_format(&id.nid, nid, sizeof(nid));
			snprintf(want[n], sizeof(want[n]), "%s, pid", nid);
			cr_assert_not_null(strstr(logged, want[n]), "%s",
					   logged);
		}
		raw_client_call(&a, 1, "echo", "x");
		lnet_sim_run(g.sim, 21 * SEC);
		cr_assert_eq(raw_client_connect(&b)->status, WIRE_OK);
		cr_assert_not(b.control.connected.reconnected);
		all = 0;
		for (unsigned int cpt = 0; cpt < 4; cpt++) {
			x = g.rpc[SERVER]->shards[cpt].exports;
			all += x->table.used;
		}
		cr_assert_eq(all, 1);
		cr_assert_eq(raw_client_keepalive(&a), WIRE_NOT_CONNECTED);
		raw_client_open(&b, "test");
		raw_client_call(&b, 1, "echo", "x");
		lnet_sim_run(g.sim, MSEC);
		cr_assert_eq(raw_client_reply(&b, 1)->status, WIRE_OK);
		lnet_log_set(LNET_LOG_ERR, NULL, NULL);
		serve_fini(&g);
	}
}

/* The second of two processes with one id hears each time, and at once, that it
 * is refused, however long the first one stays; when that has gone, the second
 * one is served. */
Test(export, a_second_client_with_one_id)
{
	const struct ulrpc_conf conf = { .client_id = "who I am always",
					 .client_generation = 1 };
	struct ulrpc_client *clients[2];
	struct ulrpc *second;
	struct serve_rig g;
	struct called c;

	serve_init(&g, 1, 2);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	cr_assert_eq(ulrpc_open(g.node[CALLER], &conf, &g.rpc[CALLER]), 0);
	cr_assert_eq(ulrpc_open(lnet_sim_node(g.sim, serve_node_add(&g, 2)),
				&conf, &second),
		     0);
	clients[0] = serve_client_of(g.rpc[CALLER], "test");
	clients[1] = serve_client_of(second, "test");
	for (unsigned int i = 0; i < 20; i++) {
		g.client = clients[i % 2];
		serve_call(&g, "echo", "x", 1, 3000000, ULRPC_PRIORITY_NORMAL,
			   &c);
		lnet_sim_run(g.sim, 4 * SEC);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(c.outcome.cause,
			     i % 2 ? ULRPC_CAUSE_REFUSED : ULRPC_CAUSE_OK, "%u",
			     i);
		cr_assert_leq(c.outcome.total, 2000000);
	}
	cr_assert_eq(g.served.runs, 10);
	cr_assert_eq(ulrpc_close(g.rpc[CALLER]), 0);
	g.rpc[CALLER] = second;
	serve_call(&g, "echo", "x", 1, 3000000, ULRPC_PRIORITY_NORMAL, &c);
	lnet_sim_run(g.sim, 4 * SEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	serve_fini(&g);
}

struct told {
	const char *name;
	uint64_t value;
};

static void tell(void *arg, const struct ulrpc_counter *c)
{
	struct told *told = arg;

	if (!c->service && !strcmp(c->name, told->name))
		told->value = c->value;
}

static uint64_t told_by(struct ulrpc *rpc, const char *name)
{
	struct told told = { name, UINT64_MAX };

	cr_assert_eq(ulrpc_counters(rpc, tell, &told), 0);
	return told.value;
}

/* What there is of clients, calls, connections and requests is counted as long
 * as it is there, and not reset. */
Test(export, objects)
{
	struct serve_rig g;
	struct called c;

	serve_init(&g, 1, 2);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(told_by(g.rpc[CALLER], "clients_open"), 1);
		cr_assert_eq(told_by(g.rpc[CALLER], "servers_known"), 1);
		cr_assert_eq(told_by(g.rpc[CALLER], "calls_under_way"), 0);
		cr_assert_eq(told_by(g.rpc[SERVER], "clients_connected"), i);
		serve_call(&g, "hold", "x", 1, 60000000, ULRPC_PRIORITY_NORMAL,
			   &c);
		lnet_sim_run(g.sim, 100 * MSEC);
		cr_assert_eq(ulrpc_stats_reset(g.rpc[CALLER]), 0);
		cr_assert_eq(ulrpc_stats_reset(g.rpc[SERVER]), 0);
		cr_assert_eq(told_by(g.rpc[CALLER], "calls_under_way"), 1);
		cr_assert_eq(told_by(g.rpc[SERVER], "requests_under_way"), 1);
		cr_assert_eq(told_by(g.rpc[SERVER], "clients_connected"), 1);
		serve_release(&g.served);
		lnet_sim_run(g.sim, 100 * MSEC);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(told_by(g.rpc[SERVER], "requests_under_way"), 0);
	}
	ulrpc_client_close(g.client);
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(told_by(g.rpc[CALLER], "clients_open"), 0);
	cr_assert_eq(told_by(g.rpc[CALLER], "servers_known"), 0);
	cr_assert_eq(told_by(g.rpc[SERVER], "clients_connected"), 0);
	serve_fini(&g);
}

/* A client that reconnects from another NID goes on, with its records. */
Test(export, a_client_that_moves)
{
	struct wire_call c = raw_client_call_of(1, "echo", 0);
	struct serve_rig g;

	rig_of_one(&g, 4, NULL);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	raw_client_call(&a, 1, "echo", "x");
	lnet_sim_run(g.sim, SEC);
	raw_client_init(&b, g.sim, serve_node_add(&g, 2), SERVER);
	b.client = a.client;
	b.portal = a.portal;
	b.epoch = 2;
	memcpy(b.client_id, a.client_id, sizeof(b.client_id));
	cr_assert_eq(raw_client_connect(&b)->status, WIRE_OK);
	cr_assert(b.control.connected.reconnected);
	c.attempt = 1;
	c.flags = WIRE_CALL_QUERY;
	raw_client_send(&b, &c, 1, "", 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_reply(&b, 1)->status, WIRE_OK);
	cr_assert_eq(g.served.runs, 1);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_STALE_EPOCH);
	serve_fini(&g);
}

/* A client id that the user has configured stays the same after a restart. */
Test(export, configured_client_id)
{
	struct ulrpc_conf conf = { .client_id = "who I am always" };
	struct ulrpc_conf none = { .client_generation = 1 };
	uint64_t xid = 0;
	struct stat_shard *stats;
	struct serve_rig g;
	struct called c;

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	stats = g.rpc[SERVER]->shards[0].stats;
	cr_assert_eq(ulrpc_open(g.node[CALLER], &conf, &g.rpc[CALLER]),
		     -EINVAL);
	cr_assert_eq(ulrpc_open(g.node[CALLER], &none, &g.rpc[CALLER]),
		     -EINVAL);
	for (unsigned int i = 0; i < 3; i++) {
		conf.client_generation++;
		cr_assert_eq(ulrpc_open(g.node[CALLER], &conf, &g.rpc[CALLER]),
			     0);
		serve_client(&g);
		serve_call(&g, "echo", "x", 1, 1000000, ULRPC_PRIORITY_NORMAL,
			   &c);
		lnet_sim_run(g.sim, 100 * MSEC);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(exports(&g)->table.used, 1);
		cr_assert_eq(stats->counts[RPC_STAT_clients_accepted],
			     2 * i + 1);
		/* The numbers of calls only ever rise, even if the client is
		 * closed and opened again. */
		cr_assert_gt(g.served.info.xid, xid);
		xid = g.served.info.xid;
		ulrpc_client_close(g.client);
		lnet_sim_run(g.sim, 100 * MSEC);
		serve_client(&g);
		serve_call(&g, "echo", "x", 1, 1000000, ULRPC_PRIORITY_NORMAL,
			   &c);
		lnet_sim_run(g.sim, 100 * MSEC);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
		cr_assert_gt(g.served.info.xid, xid);
		xid = g.served.info.xid;
		/* The node crashes, and is restarted. */
		cr_assert_eq(lnet_sim_crash(g.sim, CALLER), 0);
		cr_assert_eq(lnet_sim_restart(g.sim, CALLER), 0);
		g.node[CALLER] = lnet_sim_node(g.sim, CALLER);
		g.rpc[CALLER] = NULL;
	}
	serve_fini(&g);
}

/* One host can make only so many connections as its share: others find room,
 * and the log names the host once. */
Test(export, as_many_as_allowed)
{
	struct ulrpc_conf conf = { .exports_max = 100 };
	struct serve_rig g;

	rig(&g, &conf, 1);
	lnet_log_set(LNET_LOG_WARN, log_line, NULL);
	for (unsigned int i = 0; i < 150; i++) {
		uint32_t status;

		a.client_id[0] = (uint8_t)i;
		a.client = i;
		status = raw_client_connect(&a)->status;
		cr_assert_eq(status, i < 51 ? WIRE_OK : WIRE_OVERLOADED);
		if (i >= 51)
			cr_assert_gt(a.control.connected.retry_after, 0);
	}
	cr_assert_eq(exports(&g)->table.used, 51);
	cr_assert_eq(nlogged, 1);
	cr_assert_not_null(strstr(logged, "10.0.0.1@tcp has 51 of 100"), "%s",
			   logged);
	raw_client_init(&third, g.sim, serve_node_add(&g, 2), SERVER);
	for (unsigned int i = 0; i < 30; i++) {
		third.client_id[0] = (uint8_t)i;
		third.client = i;
		cr_assert_eq(raw_client_connect(&third)->status,
			     i < 25 ? WIRE_OK : WIRE_OVERLOADED);
	}
	/* A client that is connected already can reconnect. */
	a.client_id[0] = 5;
	a.client = 5;
	a.epoch = 2;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	serve_fini(&g);
}

static void opens(struct raw_client *c, const char *service, uint32_t status)
{
	cr_assert_eq(raw_client_open(c, service)->status, status, "%s",
		     service);
}

static void start_more(struct serve_rig *g)
{
	static const char *const more[] = { "s1", "s2", "s3" };

	for (unsigned int i = 0; i < 3; i++) {
		struct ulrpc_service_conf c = serve_conf(g);

		c.name = more[i];
		cr_assert_eq(ulrpc_service_start(g->rpc[SERVER], &c, NULL), 0);
	}
}

/* A host can open only as many services as its share: others find room, and
 * the log names the host. What it has opened, it may open again, and what its
 * connections have opened is given back with them. */
Test(export, as_many_services_as_allowed)
{
	struct serve_rig g;
	struct quotas *opened;

	rig(&g, NULL, 1);
	start_more(&g);
	raw_client_init(&third, g.sim, serve_node_add(&g, 2), SERVER);
	lnet_log_set(LNET_LOG_WARN, log_line, NULL);
	opened = &exports(&g)->pools[EXPORT_PROVED].opened;
	cr_assert_eq(opened->max, OPENED_MAX);
	opened->max = 3;
	raw_client_connect(&a);
	opens(&a, "test", WIRE_OK);
	opens(&a, "s1", WIRE_OK);
	opens(&a, "s2", WIRE_OVERLOADED);
	cr_assert_not_null(strstr(logged, "10.0.0.1@tcp has 2 of 3 services"),
			   "%s", logged);
	opens(&a, "test", WIRE_OK);
	opens(&a, "nothing", WIRE_NO_SERVICE);
	raw_client_connect(&third);
	opens(&third, "s2", WIRE_OK);
	opens(&third, "s3", WIRE_OVERLOADED);
	cr_assert_eq(opened->used, 3);
	cr_assert_eq(g.rpc[SERVER]
			     ->shards[0]
			     .stats->counts[RPC_STAT_clients_refused],
		     2);
	raw_client_disconnect(&a);
	cr_assert_eq(opened->used, 1);
	opens(&third, "s3", WIRE_OK);
	serve_fini(&g);
}

/* What a client opens after it has connected from another NID is charged to the
 * NID that the connection is charged to. */
Test(export, opens_from_another_place)
{
	const struct ulnet_nid elsewhere = nth_id(7).nid;
	struct quotas *opened;
	struct serve_rig g;
	struct export *e;

	rig(&g, NULL, 1);
	start_more(&g);
	opened = &exports(&g)->pools[EXPORT_PROVED].opened;
	raw_client_connect(&a);
	opens(&a, "test", WIRE_OK);
	e = list_first(&exports(&g)->silent[33], struct export, link);
	cr_assert_eq(e->nopened, 1);
	e->stats.id.nid = elsewhere;
	opens(&a, "s1", WIRE_OK);
	cr_assert_eq(quota_used(opened, &elsewhere), 0);
	cr_assert_eq(opened->used, 2);
	raw_client_disconnect(&a);
	cr_assert_eq(opened->used, 0);
	serve_fini(&g);
}

/* The caller hears that there is no room, and is served when there is. */
Test(export, no_room_for_one_more_service)
{
	struct quotas *opened;
	struct ulrpc_call_conf conf = { .deadline = 1000000,
					.wait_for_ready = ULRPC_WAIT_NOT };
	struct serve_rig g;
	struct called c = { 0 };

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	opened = &exports(&g)->pools[EXPORT_PROVED].opened;
	opened->max = 0;
	serve_client(&g);
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("echo"), "x", 1, &conf,
				on_called, &c, NULL),
		     0);
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OVERLOADED);
	cr_assert_eq(c.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert_str_eq(c.outcome.text, "10.0.0.2@tcp has no room for one "
					 "more client of service test");
	serve_call(&g, "echo", "x", 1, 1000000, ULRPC_PRIORITY_NORMAL, &c);
	lnet_sim_run(g.sim, 2 * SEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OVERLOADED);
	serve_call(&g, "echo", "x", 1, 10000000, ULRPC_PRIORITY_NORMAL, &c);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(c.ended, 0);
	opened->max = 1;
	lnet_sim_run(g.sim, 9 * SEC);
	cr_assert_eq(c.outcome.cause, ULRPC_CAUSE_OK);
	serve_fini(&g);
}

/* A control message may come to any CPT; the connection is on the one that its
 * handle names. */
Test(export, other_cpts)
{
	struct ulnet_id caller;
	struct serve_rig g;

	rig(&g, NULL, 4);
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	caller = nth_id(CALLER);
	cr_assert_eq((int)export_cpt(a.connection),
		     lnet_cpt_of(g.node[SERVER], &caller.nid));
	cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	for (unsigned int cpt = 0; cpt < 6; cpt++) {
		uint64_t other = (a.connection & ~UINT64_C(0xff000000)) |
				 (uint64_t)cpt << 24;
		uint64_t mine = a.connection;

		if (other == mine)
			continue;
		a.connection = other;
		cr_assert_eq(raw_client_keepalive(&a), WIRE_NOT_CONNECTED);
		a.connection = mine;
	}
	serve_fini(&g);
}

Test(export, shutting_down)
{
	struct serve_rig g;

	rig(&g, NULL, 1);
	raw_client_connect(&a);
	cr_assert_eq(ulrpc_shutdown(g.rpc[SERVER], 1000000, NULL, NULL), 0);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_SHUTTING_DOWN);
	a.client_id[0]++;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_SHUTTING_DOWN);
	serve_fini(&g);
}

Test(export, crash)
{
	struct serve_rig g;

	rig(&g, NULL, 1);
	raw_client_connect(&a);
	cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
	g.rpc[SERVER] = NULL;
	serve_fini(&g);
}

/* Without the memory that LNet needs: the sizes of all that is allocated for
 * one client. */
Test(export, memory_of_an_idle_client)
{
	cr_assert_leq(sizeof(struct export) + sizeof(struct id_slot) +
			      sizeof(struct export_rail) + 4 * sizeof(void *),
		      680);
}
