/* SPDX-License-Identifier: BSD-3-Clause */
/* A server whose answers about connections and services are nonsense, come too
 * late or too often, or come from another node. Calls of the same node to an
 * honest server must go on meanwhile. */
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/hostile_server.h"

static void control(const struct wire_control *m)
{
	uint8_t out[WIRE_CONTROL_BOUND];
	uint64_t hdr_data;
	size_t length = wire_control_encode(m, out, &hdr_data);

	fake_put(g.fake, LNET_NID_ANY, nth_id(CLIENT), ULRPC_PORTAL_CONTROL, 0,
		 hdr_data, out, length);
}

/* Makes a call, which the server answers at once. */
static void served(void)
{
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
}

/* Makes a call that may not be sent again, and so does not wait for a service
 * that is not there. */
static void call_once(uint64_t us)
{
	static const struct ulrpc_retry no_retries = { .max = 0 };
	struct ulrpc_call_conf conf = within(us);

	conf.retry = &no_retries;
	call_with(&g, &n, &conf, "hello", 5);
}

/* ---- Connected ---- */

static uint32_t epoch_off;
static uint64_t handle_off;

static void another_connect(struct fake *f, struct wire_connected *c)
{
	(void)f;
	c->epoch += epoch_off;
	c->client += handle_off;
}

/* A Connected that answers another Connect is ignored. */
Test(hostile_answer, connected_for_something_else)
{
	open_rig();
	g.fake->on_connected = another_connect;
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t before = counted(RPC_STAT_control_unexpected);

		epoch_off = (uint32_t[]){ 1, UINT32_MAX, 0, 0 }[i];
		handle_off = (uint64_t[]){ 0, 0, 1, UINT64_MAX }[i];
		call(&g, &n, 1000000);
		run(&g, 1100 * MSEC);
		ended_by(&n, ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
		cr_assert_gt(counted(RPC_STAT_control_unexpected), before);
		run(&g, 60 * SEC);
	}
	g.fake->on_connected = NULL;
	served();
	close_rig();
}

/* A second Connected does not make a second connection. */
Test(hostile_answer, connected_again)
{
	struct wire_control m = { .kind = WIRE_CONNECTED };
	uint64_t made;

	open_rig();
	served();
	made = counted(RPC_STAT_connections_made);
	m.connected.client = g.client->imp->handle;
	m.connected.epoch = g.client->imp->epoch;
	m.connected.version = WIRE_VERSION;
	m.connected.connection = HANDLE + 1;
	memset(m.connected.server_id, 99, WIRE_ID_SIZE);
	for (unsigned int i = 0; i < 100; i++) {
		m.connected.status = i % 15;
		control(&m);
	}
	run(&g, 10 * MSEC);
	cr_assert_eq(counted(RPC_STAT_connections_made), made);
	cr_assert_eq(g.client->imp->connection, HANDLE);
	served();
	close_rig();
}

static struct wire_connected said;

static void say(struct fake *f, struct wire_connected *c)
{
	(void)f;
	c->status = said.status;
	c->version = said.version;
	c->keepalive = said.keepalive;
	c->lease = said.lease;
	c->retry_after = said.retry_after;
	c->clients = said.clients;
	c->connection = said.connection;
}

Test(hostile_answer, connected_with_odd_values)
{
	static const struct wire_connected cases[] = {
		{ .keepalive = 0 },
		{ .keepalive = 1, .lease = 1 },
		{ .keepalive = UINT64_MAX, .lease = UINT64_MAX },
		{ .keepalive = UINT64_MAX / 1000 },
		{ .keepalive = UINT64_MAX / 1000 + 1 },
		{ .clients = UINT32_MAX, .retry_after = UINT64_MAX },
		{ .connection = UINT64_MAX },
	};

	open_rig();
	g.fake->on_connected = say;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned int before;

		said = cases[i];
		said.version = WIRE_VERSION;
		served();
		before = sent();
		run(&g, 10 * SEC);
		/* At most one message each 10 ms was sent. */
		cr_assert_leq(sent() - before, 1000, "case %u: %u", i,
			      sent() - before);
		served();
		/* The client loses the connection, and makes another one soon.
		 */
		g.fake->call_status = WIRE_NOT_CONNECTED;
		call(&g, &n, 100000000);
		run(&g, MSEC);
		g.fake->call_status = WIRE_OK;
		run(&g, 62 * SEC);
		ended_well(&n);
	}
	close_rig();
}

/* The server answers with a version that the client does not know, or did not
 * offer. */
Test(hostile_answer, versions)
{
	static const struct {
		uint32_t status, version;
	} cases[] = {
		{ WIRE_OK, 0 },
		{ WIRE_OK, 2 },
		{ WIRE_OK, UINT32_MAX },
		{ WIRE_VERSION_UNKNOWN, 1 },
		{ WIRE_VERSION_UNKNOWN, 2 },
	};

	open_rig();
	g.fake->on_connected = say;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		said = (struct wire_connected){ .status = cases[i].status,
						.version = cases[i].version };
		call(&g, &n, 50000000);
		run(&g, 40 * SEC);
		ended_by(&n, ULRPC_CAUSE_REFUSED, ULRPC_NOT_EXECUTED);
		cr_assert_eq(g.fake->messages, 0);
	}
	g.fake->on_connected = NULL;
	run(&g, 60 * SEC);
	served();
	close_rig();
}

/* The client takes an unknown status for a refusal that may pass. */
Test(hostile_answer, statuses_of_later_versions)
{
	open_rig();
	for (unsigned int i = 0; i < 3; i++) {
		g.fake->connect_status =
			(uint32_t[]){ 14, 1000, UINT32_MAX }[i];
		refused_for_ever(ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	}
	close_rig();
}

/* The client waits for a limited time, however long the server asks it to. */
Test(hostile_answer, wait_for_ever)
{
	open_rig();
	g.fake->on_connected = say;
	said = (struct wire_connected){ .status = WIRE_OVERLOADED,
					.version = WIRE_VERSION,
					.retry_after = UINT64_MAX };
	call(&g, &n, 100000000);
	run(&g, SEC);
	said.status = WIRE_OK;
	run(&g, 62 * SEC);
	ended_well(&n);
	close_rig();
}

/* ---- a server that restarts at any moment ---- */

/* The server restarts while a call is under way. The call is repeated if it is
 * idempotent, or if the server's answer proves that it was not executed. */
Test(hostile_answer, restarts_between_all_answers)
{
	struct ulrpc_call_conf conf = within(200000000);

	open_rig();
	g.fake->unknown_for = 0;
	for (unsigned int i = 0; i < 40; i++) {
		bool sure = i % 8 / 4;

		conf.semantics =
			i % 4 / 2 ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE;
		g.fake->id++;
		g.fake->forgets = i % 2;
		g.fake->call_status =
			sure ? WIRE_STALE_EPOCH : WIRE_NOT_CONNECTED;
		call_with(&g, &n, &conf, "hello", 5);
		run(&g, MSEC);
		g.fake->id++;
		g.fake->call_status = WIRE_OK;
		run(&g, 100 * SEC);
		if (sure || conf.semantics == ULRPC_IDEMPOTENT)
			ended_well(&n);
		else
			ended_by(&n, ULRPC_CAUSE_RESTARTED,
				 ULRPC_EXECUTION_UNKNOWN);
	}
	cr_assert_geq(counted(RPC_STAT_servers_restarted), 39);
	close_rig();
}

/* ---- Opened ---- */

static struct wire_opened offer;

static void offer_it(struct fake *f, struct wire_opened *o)
{
	(void)f;
	o->portal = offer.portal;
	o->window = offer.window;
	o->request_max = offer.request_max;
	o->message_max = offer.message_max;
	o->status = offer.status;
	o->tag += offer.tag;
}

static void offer_usual(void)
{
	offer = (struct wire_opened){ .portal = PORTAL,
				      .window = 100,
				      .request_max = 65536,
				      .message_max = LNET_MTU };
	g.fake->on_opened = offer_it;
}

Test(hostile_answer, portals_that_are_none)
{
	static const uint32_t portals[] = {
		0,
		ULRPC_PORTAL_CONTROL,
		ULRPC_PORTAL_REPLY,
		ULRPC_PORTAL_BULK,
		LNET_PORTALS,
		LNET_PORTALS + PORTAL,
		UINT32_MAX,
	};

	open_rig();
	offer_usual();
	for (unsigned int i = 0; i < ARRAY_SIZE(portals); i++) {
		offer.portal = portals[i];
		call_once(1000000);
		run(&g, 100 * MSEC);
		ended_by(&n, ULRPC_CAUSE_NO_SERVICE, ULRPC_NOT_EXECUTED);
	}
	cr_assert_eq(g.fake->messages, 0);
	cr_assert_eq(g.fake->opens, ARRAY_SIZE(portals));
	offer.portal = PORTAL;
	run(&g, 100 * MSEC);
	served();
	close_rig();
}

/* Tells the client that its connection is not known: the client connects anew,
 * and opens the service again. */
static void forget(void)
{
	struct wire_control m = {
		.kind = WIRE_ALIVE,
		.alive = { .client = g.client->imp->handle,
			   .epoch = g.client->imp->epoch,
			   .status = WIRE_NOT_CONNECTED },
	};

	g.fake->forgets = true;
	control(&m);
	run(&g, 60 * SEC);
}

/* The service advertises limits of 0, or nearly 0. */
Test(hostile_answer, limits)
{
	open_rig();
	offer_usual();
	offer.window = 0; /* counts as 1 */
	for (unsigned int i = 0; i < 10; i++)
		call(&g, &many[i], 10000000);
	run(&g, SEC);
	for (unsigned int i = 0; i < 10; i++)
		ended_well(&many[i]);
	cr_assert_eq(g.fake->messages, 10);
	for (unsigned int i = 0; i < 5; i++) {
		offer_usual();
		if (i < 3)
			offer.message_max = (uint32_t[]){ 0, 1, 20 }[i];
		else
			offer.request_max = i == 3 ? 0 : 4;
		forget();
		call(&g, &n, 10000000);
		run(&g, SEC);
		ended_by(&n, ULRPC_CAUSE_BAD_REQUEST, ULRPC_NOT_EXECUTED);
	}
	cr_assert_eq(g.fake->messages, 10);
	offer_usual();
	offer.window = offer.request_max = offer.message_max = UINT32_MAX;
	forget();
	served();
	close_rig();
}

/* An Opened that answers another Open is ignored, as are copies, and those for
 * no client. */
Test(hostile_answer, opened_for_something_else)
{
	struct wire_control m = { .kind = WIRE_OPENED };

	open_rig();
	offer_usual();
	offer.tag = 1;
	call(&g, &n, 2000000);
	run(&g, SEC);
	cr_assert_eq(n.ended, 0);
	cr_assert_leq(g.fake->opens, 11);
	offer.tag = 0;
	run(&g, 900 * MSEC);
	ended_well(&n);
	m.opened.client = g.client->imp->handle;
	m.opened.epoch = g.client->imp->epoch;
	m.opened.portal = 7;
	for (unsigned int i = 0; i < 100; i++) {
		m.opened.status = i % 6;
		m.opened.tag = g.client->tag;
		control(&m);
	}
	run(&g, 10 * MSEC);
	served();
	close_rig();
}

Test(hostile_answer, open_statuses)
{
	static const struct {
		uint32_t status;
		enum ulrpc_cause cause;
	} cases[] = {
		{ WIRE_NO_SERVICE, ULRPC_CAUSE_NO_SERVICE },
		{ WIRE_SHUTTING_DOWN, ULRPC_CAUSE_SHUTDOWN },
		{ WIRE_FAILED, ULRPC_CAUSE_NO_SERVICE },
		{ 99, ULRPC_CAUSE_NO_SERVICE },
		{ UINT32_MAX, ULRPC_CAUSE_NO_SERVICE },
	};

	open_rig();
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		g.fake->open_status = cases[i].status;
		call_once(10000000);
		run(&g, 100 * MSEC);
		ended_by(&n, cases[i].cause, ULRPC_NOT_EXECUTED);
	}
	g.fake->open_status = WIRE_OK;
	run(&g, 100 * MSEC);
	served();
	close_rig();
}

/* ---- Alive ---- */

Test(hostile_answer, alive_but_not_connected_for_ever)
{
	struct ulrpc_conf conf;
	unsigned int before;

	ulrpc_conf_init(&conf);
	conf.idle = ULRPC_NEVER;
	open_with(&conf);
	g.fake->keepalive = 1000000;
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	served();
	before = sent();
	run(&g, 300 * SEC);
	cr_assert_leq(sent() - before, 600);
	g.fake->alive_status = WIRE_OK;
	close_rig();
}

/* An Alive that answers no Keepalive is ignored. */
Test(hostile_answer, alive_unasked)
{
	struct wire_control m = { .kind = WIRE_ALIVE };
	unsigned int before;

	open_rig();
	served();
	m.alive.client = g.client->imp->handle;
	m.alive.epoch = g.client->imp->epoch;
	before = sent();
	for (unsigned int i = 0; i < 1000; i++) {
		m.alive.sequence = i;
		control(&m);
	}
	run(&g, 10 * MSEC);
	cr_assert_eq(sent(), before);
	m.alive.epoch++;
	m.alive.status = WIRE_NOT_CONNECTED;
	control(&m);
	m.alive.epoch--;
	m.alive.client++;
	control(&m);
	m.kind = WIRE_DISCONNECTED;
	control(&m);
	run(&g, 10 * MSEC);
	cr_assert_eq(import_state_of(&g), IMPORT_FULL);
	served();
	close_rig();
}

/* The client ignores messages that only servers get. */
Test(hostile_answer, messages_for_servers)
{
	open_rig();
	served();
	for (unsigned int i = 0; i < 100; i++) {
		struct wire_control m = { .kind = (enum wire_control_kind[]){
						  WIRE_CONNECT, WIRE_OPEN,
						  WIRE_DISCONNECT,
						  WIRE_KEEPALIVE }[i % 4] };

		control(&m);
	}
	run(&g, 10 * MSEC);
	served();
	close_rig();
}

/* ---- Goodbye ---- */

/* A Goodbye of an earlier connection, from a server that had answered the same
 * Connect, is ignored. A Goodbye of this connection ends the calls under way.
 */
Test(hostile_answer, goodbye_of_another_connection)
{
	const struct import *imp;
	struct wire_control m = { .kind = WIRE_GOODBYE };

	open_rig();
	served();
	imp = g.client->imp;
	m.goodbye = (struct wire_goodbye){ .client = imp->handle,
					   .connection = imp->connection + 1,
					   .epoch = imp->epoch,
					   .status = WIRE_SHUTTING_DOWN };
	g.fake->mute_calls = true;
	call(&g, &n, 10000000);
	run(&g, 10 * MSEC);
	control(&m);
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 0);
	cr_assert(import_is_up(imp));
	m.goodbye.connection = imp->connection;
	control(&m);
	run(&g, 10 * MSEC);
	ended_by(&n, ULRPC_CAUSE_RESTARTED, ULRPC_EXECUTION_UNKNOWN);
	g.fake->mute_calls = false;
	close_rig();
}
