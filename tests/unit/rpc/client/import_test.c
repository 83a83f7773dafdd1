/* SPDX-License-Identifier: BSD-3-Clause */
/* An import makes a connection, keeps it, makes it again after a loss, and
 * gives it up. */
#include "rpc/control.h"
#include "tests/unit/rpc/client/call_rig.h"
#include "ulnet/service.h"

static struct call_rig g;
static struct note n, many[100];

/* ---- keepalives ---- */

Test(import, probes_a_silent_server)
{
	rig_open(&g);
	g.fake->keepalive = 1000000;
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_assert_eq(import_state_of(&g), IMPORT_FULL);
	run(&g, 10 * SEC);
	cr_assert_geq(g.fake->keepalives, 9);
	cr_assert_leq(g.fake->keepalives, 10);
	cr_assert_eq(import_state_of(&g), IMPORT_FULL);
	cr_assert_eq(g.fake->connects, 1);
	rig_close(&g);
}

/* While the client hears from a server, it sends it a keepalive in each sixth
 * interval only, to say how many clients it has. */
Test(import, does_not_probe_a_server_it_hears_from)
{
	rig_open(&g);
	g.fake->keepalive = 1000000;
	for (unsigned int i = 0; i < 100; i++) {
		call(&g, &n, 1000000);
		run(&g, 100 * MSEC);
		ended_well(&n);
	}
	cr_assert_eq(g.fake->keepalives, 1);
	rig_close(&g);
}

Test(import, gives_up_a_server_that_does_not_answer_and_connects_again)
{
	rig_open(&g);
	g.fake->keepalive = 400000;
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	g.fake->mute_alive = true;
	g.fake->mute_open = true;
	g.fake->mute_calls = true;
	call(&g, &n, 60000000);
	run(&g, 650 * MSEC);
	cr_assert_eq(import_state_of(&g), IMPORT_SUSPECT);
	/* The server has not restarted, so it may still answer the call. */
	run(&g, 5 * SEC);
	cr_assert_gt(g.fake->connects, 1);
	cr_assert_eq(n.ended, 0);
	fake_echo(g.fake, &g.fake->calls[1]);
	run(&g, SEC);
	ended_well(&n);
	cr_assert_eq(n.outcome.attempts, 1 + n.outcome.queries);
	cr_assert_eq(g.fake->ncalls, 2);
	cr_assert_eq(call_counted(&g, RPC_STAT_connections_begun),
		     g.fake->connects);
	cr_assert_eq(call_counted(&g, RPC_STAT_connections_remade),
		     g.fake->connects - 1);
	rig_close(&g);
}

/* Probes of a distant server are at least a round trip apart; otherwise the
 * client would give up the connection before the first answer. */
Test(import, waits_for_a_server_that_is_far_away)
{
	const struct ulnet_sim_link far = { .latency = 100 * MSEC };
	unsigned int connects;

	rig_open(&g);
	cr_assert_eq(
		lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &far),
		0);
	g.fake->keepalive = 40000;
	for (unsigned int i = 0; i < 20; i++) {
		call(&g, &n, 10000000);
		run(&g, SEC);
		ended_well(&n);
	}
	/* The client knows the round trip now. */
	connects = g.fake->connects;
	run(&g, 5 * SEC);
	cr_assert_gt(g.fake->keepalives, 20);
	cr_assert_eq(import_state_of(&g), IMPORT_FULL);
	cr_assert_eq(g.fake->connects, connects);
	rig_close(&g);
}

/* LNet reports that it does not know whether probes have arrived; the server
 * answers most. */
Test(import, survives_probes_that_may_be_lost)
{
	const struct ulnet_sim_link link = { .error = LNET_SIM_ALWAYS / 2 };
	const struct ulnet_nid from = nth_id(CLIENT).nid;
	const struct ulnet_nid to = nth_id(SERVER).nid;

	rig_open(&g);
	g.fake->keepalive = 400000;
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_assert_eq(lnet_sim_link_set(g.sim, &from, &to, &link), 0);
	run(&g, 5 * SEC);
	cr_assert_gt(g.fake->keepalives, 5);
	cr_assert_eq(import_state_of(&g), IMPORT_FULL);
	cr_assert_eq(g.fake->connects, 1);
	rig_close(&g);
}

/* ---- idle connections ---- */

Test(import, is_given_up_when_idle_and_made_again_when_wanted)
{
	struct ulrpc_conf conf;

	ulrpc_conf_init(&conf);
	conf.idle = 2000000;
	rig_open_with(&g, &conf);
	for (unsigned int i = 1; i < 4; i++) {
		call(&g, &n, 1000000);
		run(&g, 100 * MSEC);
		ended_well(&n);
		run(&g, 1800 * MSEC);
		cr_assert_eq(import_state_of(&g), IMPORT_FULL);
		run(&g, 200 * MSEC);
		cr_assert_eq(import_state_of(&g), IMPORT_IDLE);
		cr_assert_eq(g.fake->disconnects, i);
		cr_assert_eq(g.fake->connects, i);
	}
	rig_close(&g);
}

Test(import, says_good_bye)
{
	rig_open(&g);
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	ulrpc_client_close(g.client);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->disconnects, 1);
	rig_client(&g, 0);
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	rig_close(&g);
	cr_assert_eq(g.crashed, false);
}

/* ---- attempts to connect ---- */

static uint64_t connect_times[4000];
static unsigned int nconnects;

/* Records in connect_times when Connects arrive, for 60 s. */
static void watch_connects(void)
{
	unsigned int seen = g.fake->connects;

	nconnects = 0;
	for (unsigned int i = 0; i < 60000; i++) {
		run(&g, MSEC);
		if (g.fake->connects == seen)
			continue;
		seen = g.fake->connects;
		connect_times[nconnects++] = lnet_sim_now(g.sim);
	}
}

Test(import, tries_again_after_short_random_pauses)
{
	struct ulrpc_call_conf conf = within(ULRPC_NEVER);
	uint32_t epoch = 0;

	rig_open(&g);
	g.fake->connect_status = WIRE_OVERLOADED;
	call_with(&g, &n, &conf, "hello", 5);
	watch_connects();
	cr_assert_geq(nconnects, 60 * 15, "%u", nconnects);
	cr_assert_leq(nconnects, 60 * 25, "%u", nconnects);
	for (unsigned int i = 1; i < nconnects; i++)
		cr_assert_leq(connect_times[i] - connect_times[i - 1],
			      102 * MSEC);
	cr_assert_eq(n.ended, 0);
	epoch = g.fake->epoch;
	cr_assert_geq(epoch, nconnects);
	/* The call is served as soon as the server accepts the connection. */
	g.fake->connect_status = WIRE_OK;
	run(&g, 200 * MSEC);
	ended_well(&n);
	cr_assert_eq(g.fake->epoch, epoch + 1);
	rig_close(&g);
}

Test(import, waits_as_long_as_the_server_says)
{
	struct ulrpc_call_conf conf = within(ULRPC_NEVER);

	rig_open(&g);
	g.fake->connect_status = WIRE_SHUTTING_DOWN;
	g.fake->retry_after = 10000000;
	call_with(&g, &n, &conf, "hello", 5);
	watch_connects();
	for (unsigned int i = 1; i < nconnects; i++)
		cr_assert_geq(connect_times[i] - connect_times[i - 1],
			      10 * SEC - MSEC);
	ulrpc_cancel(n.call);
	run(&g, SEC);
	ended_by(&n, ULRPC_CAUSE_CANCELED, ULRPC_NOT_EXECUTED);
	rig_close(&g);
}

Test(import, repeats_a_connect_or_open_that_was_lost)
{
	rig_open(&g);
	g.fake->mute_connect = true;
	call(&g, &n, 60000000);
	run(&g, SEC);
	cr_assert_eq(g.fake->connects, 11);
	cr_assert_eq(g.fake->epoch, 1);
	g.fake->mute_connect = false;
	g.fake->mute_open = true;
	run(&g, 2 * SEC);
	cr_assert_geq(g.fake->opens, 2);
	cr_assert_eq(g.fake->epoch, 1);
	g.fake->mute_open = false;
	run(&g, 2 * SEC);
	ended_well(&n);
	rig_close(&g);
}

Test(import, that_is_refused_ends_its_calls)
{
	rig_open(&g);
	g.fake->connect_status = WIRE_REFUSED;
	call(&g, &n, 10000000);
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_REFUSED, ULRPC_NOT_EXECUTED);
	rig_close(&g);
}

/* A server that has accepted the client before refuses its connection. The
 * client tries again: the server may take it for connected for a while. */
Test(import, that_is_refused_later_waits)
{
	rig_open(&g);
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
	g.fake->forgets = true;
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	g.fake->connect_status = WIRE_REFUSED;
	g.fake->call_status = WIRE_NOT_CONNECTED;
	call(&g, &n, 10000000);
	run(&g, 2 * SEC);
	cr_assert_eq(n.ended, 0);
	cr_assert_geq(g.fake->connects, 3);
	cr_assert_eq(call_counted(&g, RPC_STAT_connections_refused),
		     g.fake->connects - 1);
	g.fake->connect_status = g.fake->call_status = WIRE_OK;
	run(&g, 2 * SEC);
	ended_well(&n);
	rig_close(&g);
}

/* Calls wait for a service that may start soon, unless their rules allow no
 * retries. */
Test(import, waits_for_a_service_that_is_not_there_yet)
{
	static const uint32_t statuses[] = { WIRE_NO_SERVICE,
					     WIRE_SHUTTING_DOWN };
	static const struct ulrpc_retry no_retries = { .max = 0 };
	static const enum ulrpc_cause causes[] = { ULRPC_CAUSE_NO_SERVICE,
						   ULRPC_CAUSE_SHUTDOWN };
	struct ulrpc_call_conf conf = within(10000000);
	struct note at_once, short_one;

	conf.retry = &no_retries;
	for (unsigned int i = 0; i < ARRAY_SIZE(statuses); i++) {
		rig_open(&g);
		g.fake->open_status = statuses[i];
		call(&g, &n, 10000000);
		call_with(&g, &at_once, &conf, "hello", 5);
		call(&g, &short_one, 500000);
		run(&g, 100 * MSEC);
		ended_by(&at_once, causes[i], ULRPC_NOT_EXECUTED);
		run(&g, 400 * MSEC);
		ended_by(&short_one, causes[i], ULRPC_NOT_EXECUTED);
		run(&g, 4500 * MSEC);
		cr_assert_eq(n.ended, 0);
		/* The client opens the service at growing, but limited
		 * intervals. */
		cr_assert_geq(g.fake->opens, 50);
		cr_assert_leq(g.fake->opens, 200);
		/* This later call allows no retries. */
		call_with(&g, &at_once, &conf, "hello", 5);
		run(&g, 120 * MSEC);
		ended_by(&at_once, causes[i], ULRPC_NOT_EXECUTED);
		g.fake->open_status = WIRE_OK;
		run(&g, 120 * MSEC);
		ended_well(&n);
		cr_assert_eq(n.outcome.attempts, 1);
		rig_close(&g);
	}
}

/* The first answer ends a call that does not wait, whatever it is. */
Test(import, an_answer_ends_a_call_that_does_not_wait)
{
	static const struct {
		uint32_t connect, open;
		enum ulrpc_cause cause;
	} rows[] = {
		{ WIRE_OK, WIRE_NO_SERVICE, ULRPC_CAUSE_NO_SERVICE },
		{ WIRE_OK, WIRE_OVERLOADED, ULRPC_CAUSE_OVERLOADED },
		{ WIRE_OK, WIRE_SHUTTING_DOWN, ULRPC_CAUSE_SHUTDOWN },
		{ WIRE_SHUTTING_DOWN, WIRE_OK, ULRPC_CAUSE_SHUTDOWN },
		{ WIRE_OVERLOADED, WIRE_OK, ULRPC_CAUSE_OVERLOADED },
	};
	struct ulrpc_call_conf conf = within(10000000);
	struct note hasty, later;

	conf.wait_for_ready = ULRPC_WAIT_NOT;
	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		rig_open(&g);
		g.fake->connect_status = rows[i].connect;
		g.fake->open_status = rows[i].open;
		call(&g, &n, 10000000);
		call_with(&g, &hasty, &conf, "hello", 5);
		run(&g, 100 * MSEC);
		ended_by(&hasty, rows[i].cause, ULRPC_NOT_EXECUTED);
		call_with(&g, &later, &conf, "hello", 5);
		run(&g, 200 * MSEC);
		ended_by(&later, rows[i].cause, ULRPC_NOT_EXECUTED);
		cr_assert_eq(n.ended, 0);
		g.fake->connect_status = g.fake->open_status = WIRE_OK;
		run(&g, SEC);
		ended_well(&n);
		rig_close(&g);
	}
}

/* Uses up what may be under way to the server, by messages that the server does
 * not take. */
static void use_up_control(void)
{
	struct wire_control m = { .kind = WIRE_KEEPALIVE };
	struct import *imp = g.client->imp;
	unsigned int sent = 0;
	int rc;

	do
		rc = control_send(imp->shard, NULL, LNET_NID_ANY,
				  import_target(imp), &m);
	while (!rc && ++sent < 100000);
	cr_assert_eq(rc, -ENOMEM);
}

Test(import, is_not_lost_for_want_of_memory)
{
	const struct ulnet_sim_link stuck = { .stall = LNET_SIM_ALWAYS };
	const struct ulnet_sim_link good = { .latency = MSEC };

	rig_open(&g);
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
	cluster_links(g.sim, &stuck);
	use_up_control();
	import_suspect(g.client->imp, g.client->imp->epoch);
	run(&g, 3 * SEC);
	cr_assert(import_is_up(g.client->imp));
	cr_assert_eq(g.fake->keepalives, 0);
	cluster_links(g.sim, &good);
	run(&g, 10 * SEC);
	cr_assert_eq(import_state_of(&g), IMPORT_FULL);
	cr_assert_geq(g.fake->keepalives, 1);
	cr_assert_eq(g.fake->connects, 1);
	rig_close(&g);
}

/* ---- several NIDs, several CPTs ---- */

Test(import, tries_all_nids_of_a_node)
{
	struct ulnet_nid nids[] = { nid_of("10.0.0.9@tcp"),
				    nid_of("10.0.0.8@tcp"),
				    nth_id(SERVER).nid };
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	rig_open(&g);
	ulrpc_client_conf_init(&conf);
	conf.nids = nids;
	conf.nnids = ARRAY_SIZE(nids);
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(g.rpc, &conf, &c), 0);
	ulrpc_client_close(g.client);
	g.client = c;
	call(&g, &n, 60000000);
	run(&g, 60 * SEC);
	ended_well(&n);
	cr_assert(nid_is(&n.outcome.target, "10.0.0.2@tcp"));
	rig_close(&g);
}

/* Nobody listens there. What was found is forgotten with the last call: later
 * calls find out anew for how long nobody listens. */
Test(import, forgets_at_rest_that_nobody_listens)
{
	const struct ulnet_sim_link connected = { .connect = MSEC };
	const struct ulnet_nid nobody = nid_of("10.0.0.9@tcp");
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	rig_open(&g);
	cluster_links(g.sim, &connected);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nobody;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(g.rpc, &conf, &c), 0);
	ulrpc_client_close(g.client);
	g.client = c;
	call(&g, &n, 1000000);
	run(&g, 900 * MSEC);
	cr_assert_gt(c->imp->nobody, 1);
	run(&g, SEC);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(import_state_of(&g), IMPORT_IDLE);
	cr_expect_eq(c->imp->nobody, 0);
	rig_close(&g);
}

/* Nobody listens at any NID. At first the text of a call that does not wait has
 * what came of the last attempt to connect; later, since when that is so. */
Test(import, says_that_nobody_listens)
{
	const struct ulnet_sim_link connected = { .connect = MSEC };
	const struct ulnet_nid nids[] = { nid_of("10.0.0.9@tcp"),
					  nid_of("10.0.0.8@tcp") };
	struct ulrpc_call_conf how = within(10000000);
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;
	struct note hasty;

	rig_open(&g);
	cluster_links(g.sim, &connected);
	ulrpc_client_conf_init(&conf);
	conf.nids = nids;
	conf.nnids = ARRAY_SIZE(nids);
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(g.rpc, &conf, &c), 0);
	ulrpc_client_close(g.client);
	g.client = c;
	how.wait_for_ready = ULRPC_WAIT_NOT;
	call_with(&g, &hasty, &how, "hello", 5);
	call(&g, &n, 3500000);
	run(&g, 100 * MSEC);
	ended_by(&hasty, ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	cr_expect_str_eq(hasty.outcome.text,
			 "10.0.0.8@tcp: Connection refused");
	run(&g, 4 * SEC);
	ended_by(&n, ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	cr_expect_str_eq(n.outcome.text,
			 "10.0.0.9@tcp and the server's other NIDs: nobody has "
			 "listened there for 3 s");
	rig_close(&g);
}

Test(import, is_shared_by_clients_of_the_same_node)
{
	struct ulrpc_client *first;

	rig_open(&g);
	first = g.client;
	rig_client(&g, 0);
	cr_assert_eq(first->imp, g.client->imp);
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
	cr_assert_eq(g.fake->connects, 1);
	ulrpc_client_close(first);
	run(&g, SEC);
	cr_assert_eq(g.fake->disconnects, 0);
	rig_close(&g);
}

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static struct ulrpc_service *echo_start(struct ulrpc *rpc)
{
	struct ulrpc_method_conf method = { .name = "echo",
					    .handler = echo,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *svc;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	cr_assert_eq(ulrpc_service_start(rpc, &conf, &svc), 0);
	return svc;
}

/* Loses the LND's connection between client and @server while a call is under
 * way: the client must send a query at once. */
static void asks_after_a_cut(struct lnet_sim *sim, struct ulrpc_client *c,
			     const struct ulnet_nid *server)
{
	struct ulnet_nid own = nth_id(0).nid;
	struct ulrpc_call_conf cc = within(60000000);
	struct note end = { .sim = sim, .inside = true };

	cr_assert_eq(c->imp->conn_loss.last.at, 0);
	cr_assert_eq(ulrpc_call(c, ulrpc_method("echo"), "x", 1, &cc, note_end,
				&end, &end.call),
		     0);
	end.inside = false;
	lnet_sim_run(sim, MSEC / 2);
	lnet_sim_cut(sim, &own, server);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_gt(c->imp->conn_loss.last.at, 0);
	cr_assert_eq(end.ended, 1);
	cr_assert_eq(end.outcome.cause, ULRPC_CAUSE_OK);
	ulrpc_call_put(end.call);
}

/* Opens a client of node 0, which has @cpts CPTs. The client has two NIDs of a
 * server: the first does not exist, the second is owned by another CPT than the
 * first. */
static void serves_from_another_cpt(unsigned int cpts)
{
	const struct ulnet_sim_link link = { .latency = MSEC,
					     .connect = 2 * MSEC };
	struct lnet_sim *sim = cluster_with(2, cpts, NULL);
	struct lnet *node = lnet_sim_node(sim, 0);
	struct ulnet_nid nids[2] = { nth_id(8).nid, nth_id(1).nid };
	struct ulrpc_client_conf conf;
	struct ulrpc *rpc, *served;
	struct ulrpc_service *svc;
	struct ulrpc_client *c;

	cluster_links(sim, &link);
	for (unsigned int i = 9;
	     lnet_cpt_of(node, &nids[0]) == lnet_cpt_of(node, &nids[1]); i++)
		nids[0] = nth_id(i).nid;
	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, 1), NULL, &served), 0);
	svc = echo_start(served);
	ulrpc_client_conf_init(&conf);
	conf.nids = nids;
	conf.nnids = 2;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &c), 0);
	cr_assert_eq((int)ulrpc_client_cpt(c), lnet_cpt_of(node, &nids[0]));
	for (unsigned int i = 0; i < 3; i++) {
		struct ulrpc_call_conf cc = within(60000000);
		struct ulrpc_outcome o;
		char reply[SIZE];
		size_t length;

		cr_assert_eq(ulrpc_call_wait(c, ulrpc_method("echo"), "hello",
					     5, &cc, reply, sizeof(reply),
					     &length, &o),
			     0);
		cr_assert_eq(o.cause, ULRPC_CAUSE_OK, "%s",
			     ulrpc_cause_name(o.cause));
		cr_assert(lnet_nid_eq(&o.target, &nids[1]));
	}
	asks_after_a_cut(sim, c, &nids[1]);
	ulrpc_client_close(c);
	cr_assert_eq(ulrpc_service_stop(svc, 1000000), 0);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cr_assert_eq(ulrpc_close(served), 0);
	cluster_end(sim);
}

Test(import, a_server_whose_nids_belong_to_several_cpts)
{
	serves_from_another_cpt(2);
	serves_from_another_cpt(4);
}

/* ---- answers of other nodes ---- */

Test(import, ignores_answers_of_other_nodes)
{
	struct wire_control m = {
		.kind = WIRE_CONNECTED,
		.connected = { .status = WIRE_OK,
			       .connection = 666,
			       .version = WIRE_VERSION },
	};
	uint8_t bytes[WIRE_CONTROL_BOUND];
	uint64_t hdr_data;
	struct fake other;
	size_t length;
	int index;

	rig_open(&g);
	index = lnet_sim_node_add(g.sim, "10.0.0.3@tcp", NULL, NULL, NULL);
	other.node = lnet_sim_node(g.sim, (unsigned int)index);
	g.fake->mute_connect = true;
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	cr_assert_eq(import_state_of(&g), IMPORT_CONNECTING);
	m.connected.client = g.client->imp->handle;
	m.connected.epoch = g.client->imp->epoch;
	length = wire_control_encode(&m, bytes, &hdr_data);
	fake_put(&other, LNET_NID_ANY, nth_id(CLIENT), ULRPC_PORTAL_CONTROL, 0,
		 hdr_data, bytes, length);
	/* The right server answers an earlier Connect. */
	m.connected.epoch--;
	length = wire_control_encode(&m, bytes, &hdr_data);
	fake_put(g.fake, LNET_NID_ANY, nth_id(CLIENT), ULRPC_PORTAL_CONTROL, 0,
		 hdr_data, bytes, length);
	fake_put(g.fake, LNET_NID_ANY, nth_id(CLIENT), ULRPC_PORTAL_CONTROL, 0,
		 1, "rubbish", 7);
	run(&g, 100 * MSEC);
	cr_assert_eq(import_state_of(&g), IMPORT_CONNECTING);
	run(&g, SEC);
	ended_by(&n, ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	rig_close(&g);
}

/* ---- the end of a client ---- */

static void call_all(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++)
		call(&g, &many[i], 5000000);
}

static void each_ended_once(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		cr_assert_eq(many[i].ended, 1);
		cr_assert_eq(many[i].outcome.cause, ULRPC_CAUSE_CANCELED);
		ulrpc_call_put(many[i].call);
	}
}

Test(import, ends_with_calls_in_any_state)
{
	for (unsigned int step = 0; step < 6; step++) {
		rig_open(&g);
		g.fake->mute_connect = step == 1;
		g.fake->mute_open = step == 2;
		g.fake->mute_calls = true;
		g.fake->window = 50;
		call_all();
		if (step)
			run(&g, 100 * MSEC);
		if (step == 4) /* A call is being sent at the same time. */
			call(&g, &n, 1000000);
		if (step == 5)
			ulrpc_client_close(g.client);
		cr_assert_eq(ulrpc_close(g.rpc), 0);
		each_ended_once();
		if (step == 4)
			ulrpc_call_put(n.call);
		cluster_end(g.sim);
		fake_free(g.fake);
	}
}

Test(import, leaves_nothing_when_its_node_crashes)
{
	struct ulrpc_set *set;
	struct ulrpc_call_conf conf = within(5000000);

	for (unsigned int step = 0; step < 6; step++) {
		rig_open(&g);
		cr_assert_eq(ulrpc_set_new(g.rpc, &set), 0);
		g.fake->mute_connect = step == 1;
		g.fake->mute_open = step == 2;
		g.fake->mute_calls = true;
		g.fake->window = 50;
		call_all();
		cr_assert_eq(ulrpc_set_call(set, g.client, 1, "x", 1, &conf,
					    NULL, NULL),
			     0);
		if (step)
			run(&g, 100 * MSEC);
		if (step == 4)
			call(&g, &n, 1000000);
		if (step == 5)
			ulrpc_client_close(g.client);
		cr_assert_eq(lnet_sim_crash(g.sim, CLIENT), 0);
		run(&g, SEC);
		for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
			cr_assert_eq(many[i].ended, 0);
			ulrpc_cancel(many[i].call);
			ulrpc_call_put(many[i].call);
		}
		if (step == 4)
			ulrpc_call_put(n.call);
		ulrpc_set_free(set);
		cluster_end(g.sim);
		fake_free(g.fake);
	}
}

Test(import, shuts_down_in_time)
{
	static int status;

	rig_open(&g);
	g.fake->mute_calls = true;
	call_all();
	run(&g, 100 * MSEC);
	status = 1;
	cr_assert_eq(ulrpc_shutdown(g.rpc, 500000, NULL, &status), 0);
	run(&g, 499 * MSEC);
	cr_assert_eq(many[0].ended, 0);
	run(&g, 2 * MSEC);
	each_ended_once();
	cr_assert_eq(ulrpc_close(g.rpc), 0);
	cluster_end(g.sim);
	fake_free(g.fake);
}
