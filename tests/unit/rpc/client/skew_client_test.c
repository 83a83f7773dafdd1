/* SPDX-License-Identifier: BSD-3-Clause */
/* A client with servers of other versions of the protocol. */
#include "tests/unit/rpc/wire/wire_skew.h"

#include "tests/unit/rpc/client/hostile_server.h"

/* The client ignores unknown fields in the server's messages. */
Test(skew_client, says_more)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(skews); i++) {
		open_rig();
		g.fake->keepalive = 1000000;
		g.fake->rewrite = skews[i];
		for (unsigned int j = 0; j < 20; j++)
			call(&g, &many[j], 1000000);
		run(&g, 100 * MSEC);
		for (unsigned int j = 0; j < 20; j++)
			ended_well(&many[j]);
		run(&g, 10 * SEC);
		cr_assert_eq(g.fake->connects, 1);
		cr_assert_gt(g.fake->keepalives, 5);
		for (uint32_t status = 1; status < WIRE_STATUSES; status++) {
			if (status == WIRE_NO_SERVICE ||
			    status == WIRE_SHUTTING_DOWN ||
			    status == WIRE_NOT_CONNECTED ||
			    status == WIRE_STALE_EPOCH ||
			    status == WIRE_UNKNOWN_CALL ||
			    status == WIRE_HELD || status == WIRE_ANNEXED ||
			    status == WIRE_HELD_ANNEXED ||
			    status == WIRE_UNKNOWN_SET)
				continue;
			g.fake->call_status = status;
			call(&g, &n, 1000000);
			run(&g, SEC);
			cr_assert_eq(n.ended, 1);
			cr_assert_neq(n.outcome.cause, ULRPC_CAUSE_BAD_REPLY);
			ulrpc_call_put(n.call);
		}
		cr_assert_eq(unreadable(), 0);
		cr_assert_eq(counted(RPC_STAT_control_unexpected), 0);
		close_rig();
	}
}

static void say_little(struct fake *f, struct wire_connected *c)
{
	(void)f;
	*c = (struct wire_connected){ .client = c->client,
				      .epoch = c->epoch,
				      .version = c->version,
				      .connection = c->connection };
}

/* The server's Connected has no keepalive interval, lease, slots, number of
 * clients, server id, nor whether it knew the client. */
Test(skew_client, says_less)
{
	open_rig();
	g.fake->on_connected = say_little;
	for (unsigned int i = 0; i < 3; i++) {
		call(&g, &n, 1000000);
		run(&g, 100 * MSEC);
		ended_well(&n);
		run(&g, 15 * SEC);
		cr_assert_eq(g.fake->connects, i + 1);
		cr_assert_geq(g.fake->keepalives, i + 1);
		g.fake->call_status = WIRE_NOT_CONNECTED;
		call(&g, &n, 100000000);
		run(&g, MSEC);
		g.fake->call_status = WIRE_OK;
		run(&g, 32 * SEC);
		ended_well(&n);
		g.fake->connects = i + 2;
	}
	cr_assert_eq(counted(RPC_STAT_servers_restarted), 0);
	close_rig();
}
