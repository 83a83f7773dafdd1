/* SPDX-License-Identifier: BSD-3-Clause */
/* How long connections last: keepalives, leases and goodbyes, and what services
 * hear of clients that are gone. Seen by a raw client. */
#include <errno.h>

#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/server/raw_client.h"

static struct raw_client a;

static void rig(struct serve_rig *g, const struct ulrpc_conf *conf)
{
	serve_init(g, 1, 1);
	serve_open(g, conf);
	serve_start_with(g, NULL);
	raw_client_init(&a, g->sim, CALLER, SERVER);
}

static struct exports *exports(struct serve_rig *g)
{
	return g->rpc[SERVER]->shards[0].exports;
}

/* ---- keepalives and leases ---- */

Test(lease, silence)
{
	struct ulrpc_conf conf = { .keepalive = 1000000 };
	struct serve_rig g;

	rig(&g, &conf);
	raw_client_connect(&a);
	for (unsigned int i = 0; i < 10; i++) {
		lnet_sim_run(g.sim, 2 * SEC);
		cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	}
	/* While the first client is silent another one is heard all the time.
	 */
	a.client_id[0] = 200;
	a.client = 200;
	raw_client_connect(&a);
	for (unsigned int i = 0; i < 5; i++) {
		lnet_sim_run(g.sim, SEC);
		cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	}
	cr_assert_eq(exports(&g)->table.used, 1);
	cr_assert_eq(
		g.rpc[SERVER]->shards[0].stats->counts[RPC_STAT_clients_lost],
		1);
	serve_fini(&g);
}

static void keepalive_of(uint64_t ours, uint64_t wish, uint64_t agreed)
{
	struct ulrpc_conf conf = { .keepalive = ours };
	const struct wire_connected *c;
	struct serve_rig g;

	rig(&g, &conf);
	a.keepalive = wish;
	c = raw_client_connect(&a);
	cr_assert_eq(c->status, WIRE_OK);
	cr_assert_eq(c->keepalive, agreed);
	cr_assert_eq(c->lease, 3 * agreed);
	/* No other client is heard, so the server waits for two leases. */
	lnet_sim_run(g.sim, 5 * agreed * NSEC_PER_USEC);
	cr_assert_eq(exports(&g)->table.used, 1);
	lnet_sim_run(g.sim, 3 * agreed * NSEC_PER_USEC);
	cr_assert_eq(exports(&g)->table.used, 0);
	serve_fini(&g);
}

/* The shorter keepalive of client's and server's counts for both, but a client
 * cannot make it shorter than 100 ms. */
Test(lease, keepalive_is_agreed_on)
{
	keepalive_of(10000000, 1000000, 1000000);
	keepalive_of(10000000, 20000000, 10000000);
	keepalive_of(10000000, 0, 10000000);
	keepalive_of(10000000, 1, 100000);
	keepalive_of(10000000, UINT64_MAX, 10000000);
	keepalive_of(20000, 1, 20000);
	keepalive_of(20000, 10000000, 20000);
}

/* A real client sends a keepalive when it has heard nothing for as long as its
 * own keepalive. */
Test(lease, keepalive_of_a_client)
{
	struct called c = { 0 };
	struct serve_rig g;
	uint64_t heard;

	serve_init(&g, 1, 1);
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	serve_client(&g);
	g.rpc[CALLER]->conf.keepalive = 1000000;
	serve_call(&g, "echo", "x", 1, 1000000, ULRPC_PRIORITY_DEFAULT, &c);
	lnet_sim_run(g.sim, 2 * SEC);
	cr_assert_eq(c.ended, 1);
	heard = exports(&g)->heard;
	lnet_sim_run(g.sim, 2 * SEC);
	cr_assert_geq(exports(&g)->heard, heard + SEC);
	serve_fini(&g);
}

/* Each client has its own keepalive, and agrees on it anew with each Connect.
 */
Test(lease, keepalives_of_many)
{
	struct ulrpc_conf conf = { .keepalive = 10000000 };
	struct serve_rig g;

	rig(&g, &conf);
	raw_client_connect(&a);
	a.client_id[0] = 200;
	a.client = 200;
	a.keepalive = 1000000;
	raw_client_connect(&a);
	cr_assert_eq(exports(&g)->table.used, 2);
	lnet_sim_run(g.sim, 8 * SEC);
	cr_assert_eq(exports(&g)->table.used, 1);
	a.client = 201;
	raw_client_connect(&a);
	a.epoch++;
	a.keepalive = 4000000;
	cr_assert_eq(raw_client_connect(&a)->keepalive, 4000000);
	lnet_sim_run(g.sim, 8 * SEC);
	cr_assert_eq(exports(&g)->table.used, 2);
	a.epoch++;
	a.keepalive = 500000;
	cr_assert_eq(raw_client_connect(&a)->keepalive, 500000);
	lnet_sim_run(g.sim, 4 * SEC);
	cr_assert_eq(exports(&g)->table.used, 1);
	serve_fini(&g);
}

/* If no client at all is heard the server itself may be cut off, so it waits
 * for two leases. */
Test(lease, patience_when_all_is_silent)
{
	struct ulrpc_conf conf = { .keepalive = 1000000 };
	struct serve_rig g;

	rig(&g, &conf);
	raw_client_connect(&a);
	lnet_sim_run(g.sim, 5 * SEC);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_OK);
	lnet_sim_run(g.sim, 8 * SEC);
	cr_assert_eq(raw_client_keepalive(&a), WIRE_NOT_CONNECTED);
	serve_fini(&g);
}

/* ---- what others hear ---- */

struct gone {
	unsigned int times;
	struct ulnet_id client;
};

static void on_gone(void *arg, const struct ulnet_id *client)
{
	struct gone *gone = arg;

	cr_assert(lnet_in_turn());
	gone->times++;
	gone->client = *client;
}

/* A service is told once of each of its clients that has gone without a
 * Disconnect, and of no other client. */
Test(lease, services_are_told)
{
	struct ulrpc_conf conf = { .keepalive = 1000000 };
	static const struct ulrpc_method_conf echoes = {
		.name = "echo", .handler = echo, .run = ULRPC_RUN_INLINE
	};
	struct gone gone[2] = { 0 };
	struct ulrpc_service_conf c = { .name = "one",
					.methods = &echoes,
					.nmethods = 1,
					.gone = on_gone };
	const struct ulnet_nid caller = nth_id(CALLER).nid;
	struct serve_rig g;

	rig(&g, &conf);
	for (unsigned int i = 0; i < 2; i++) {
		c.name = i ? "other" : "one";
		c.gone_arg = &gone[i];
		cr_assert_eq(ulrpc_service_start(g.rpc[SERVER], &c, NULL), 0);
	}
	raw_client_connect(&a);
	cr_assert_eq(raw_client_open(&a, "one")->status, WIRE_OK);
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
	/* gone() is not called for a reconnect, nor for a Disconnect, but for a
	 * client whose connection a new handle replaces. */
	a.epoch++;
	raw_client_connect(&a);
	cr_assert_eq(gone[0].times, 0);
	raw_client_disconnect(&a);
	cr_assert_eq(gone[0].times, 0);
	raw_client_connect(&a);
	cr_assert_eq(raw_client_open(&a, "one")->status, WIRE_OK);
	a.client++;
	a.epoch++;
	cr_assert_eq(raw_client_connect(&a)->status, WIRE_OK);
	cr_assert_eq(gone[0].times, 1);
	cr_assert(lnet_nid_eq(&gone[0].client.nid, &caller));
	/* The new handle has not opened "one". */
	cr_assert_eq(raw_client_open(&a, "test")->status, WIRE_OK);
	lnet_sim_run(g.sim, 20 * SEC);
	cr_assert_eq(exports(&g)->table.used, 0);
	cr_assert_eq(gone[0].times, 1);
	cr_assert_eq(gone[1].times, 0);
	raw_client_connect(&a);
	cr_assert_eq(raw_client_open(&a, "other")->status, WIRE_OK);
	lnet_sim_run(g.sim, 20 * SEC);
	cr_assert_eq(gone[0].times, 1);
	cr_assert_eq(gone[1].times, 1);
	serve_fini(&g);
}

/* A server that is closed sends a Goodbye to all clients that are connected. It
 * says from which call on none was executed: not one that was refused. */
Test(lease, goodbye)
{
	struct serve_rig g;

	rig(&g, NULL);
	raw_client_connect(&a);
	raw_client_open(&a, "test");
	raw_client_call(&a, 7, "echo", "x");
	raw_client_call(&a, 9, "nothing", "x");
	lnet_sim_run(g.sim, MSEC);
	a.controls = 0;
	cr_assert_eq(ulrpc_close(g.rpc[SERVER]), 0);
	g.rpc[SERVER] = NULL;
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(a.controls, 1);
	cr_assert_eq(a.control.kind, WIRE_GOODBYE);
	cr_assert_eq(a.control.goodbye.client, a.client);
	cr_assert_eq(a.control.goodbye.connection, a.connection);
	cr_assert_eq(a.control.goodbye.epoch, a.epoch);
	cr_assert_eq(a.control.goodbye.status, WIRE_SHUTTING_DOWN);
	cr_assert_eq(a.control.goodbye.unexecuted, 8);
	serve_fini(&g);
}
