/* SPDX-License-Identifier: BSD-3-Clause */
/* How long replies may be: what services, clients and calls allow, and the
 * share of a client that does not fetch its replies. */
#include "tests/unit/rpc/long_reply_rig.h"

/* Callers who say nothing get what the service may send. What is longer is not
 * even copied, and the caller hears both sizes. */
Test(long_reply_limit, limit_of_the_service)
{
	static const char *const methods[] = { "make", "work" };
	static const uint32_t limits[] = { 0, ULRPC_BODY_MAX + 7, 20 << 20,
					   5000 };
	struct ulrpc_call_conf conf = conf_within(60000);
	struct asked a;

	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(limits); i++) {
		uint32_t limit = limits[i / 2] ? limits[i / 2] : LIMIT;
		char text[100];

		open_limited(limits[i / 2]);
		slow_link();
		ask_of(methods[i % 2], &a, limit, &conf);
		lnet_sim_run(g.sim, SEC);
		asked_ended(&a, ULRPC_CAUSE_OK, limit);
		cr_assert_eq(server_counted(RPC_STAT_replies_held), 1);
		ask_of(methods[i % 2], &a, limit + 1, &conf);
		lnet_sim_run(g.sim, SEC);
		asked_ended(&a, ULRPC_CAUSE_TOO_LONG, 0);
		cr_assert_eq(a.outcome.reply_needed, limit + 1);
		snprintf(text, sizeof(text),
			 "the reply has %u bytes, and the service's replies "
			 "may have up to %u",
			 limit + 1, limit);
		cr_assert_str_eq(a.outcome.text, text);
		cr_assert_eq(server_counted(RPC_STAT_replies_held), 1);
		cr_assert_eq(serve_ended(cpt0(), WIRE_TOO_LONG), 1);
		cr_assert_eq(held(), 0);
		fini();
	}
}

/* Makes the client one whose replies have up to @limit bytes. */
static void limit_client(uint32_t limit)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf = { .nids = &nid,
					  .nnids = 1,
					  .service = "test",
					  .reply_limit = limit };

	ulrpc_client_close(g.client);
	cr_assert_eq(ulrpc_client_open(g.rpc[CALLER], &conf, &g.client), 0);
}

/* The server knows how long a reply its caller takes, and holds nothing that
 * nobody will get. What a call says goes before what its client says. */
Test(long_reply_limit, limit_of_the_caller_is_told)
{
	static const uint32_t limits[] = { 0, 1000, 2 * ULRPC_BODY_MAX };
	struct ulrpc_call_conf conf = conf_within(60000);
	struct asked a;

	open_with(0);
	limit_client(50000);
	slow_link();
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(limits); i++) {
		uint32_t limit = limits[i / 2] ? limits[i / 2] : 50000;
		char text[100];

		conf.reply_limit = limits[i / 2];
		ask_of(i % 2 ? "work" : "make", &a, limit, &conf);
		lnet_sim_run(g.sim, SEC);
		asked_ended(&a, ULRPC_CAUSE_OK, limit);
		cr_assert_eq(server_counted(RPC_STAT_replies_held), i + 1);
		ask_of(i % 2 ? "work" : "make", &a, limit + 1, &conf);
		lnet_sim_run(g.sim, SEC);
		asked_ended(&a, ULRPC_CAUSE_TOO_LONG, 0);
		cr_assert_eq(a.outcome.reply_needed, limit + 1);
		snprintf(text, sizeof(text),
			 "the reply has %u bytes, and the caller takes up to "
			 "%u",
			 limit + 1, limit);
		cr_assert_str_eq(a.outcome.text, text);
		cr_assert_eq(server_counted(RPC_STAT_replies_held), i + 1);
	}
	cr_assert_eq(g.served.info.reply_limit, 2 * ULRPC_BODY_MAX);
	fini();
}

/* A client of an earlier release says no limit: the server holds up to 16 MiB
 * for it, as servers did. */
Test(long_reply_limit, limit_is_not_told)
{
	struct export *e;
	uint32_t pos = 0;
	struct ulrpc_call_conf conf = conf_within(60000);
	struct asked a;

	open_limited(20 << 20);
	slow_link();
	ask(&a, 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	asked_ended(&a, ULRPC_CAUSE_OK, 1);
	e = id_walk(&g.rpc[SERVER]->shards[0].exports->table, &pos);
	cr_assert_eq(e->reply_limit, ULRPC_REPLY_MAX);
	e->reply_limit = LIMIT;
	ask_of("make", &a, LIMIT, &conf);
	lnet_sim_run(g.sim, SEC);
	asked_ended(&a, ULRPC_CAUSE_OK, LIMIT);
	cr_assert_eq(server_counted(RPC_STAT_replies_held), 1);
	ask_of("make", &a, LIMIT + 1, &conf);
	lnet_sim_run(g.sim, SEC);
	asked_ended(&a, ULRPC_CAUSE_TOO_LONG, 0);
	cr_assert_eq(server_counted(RPC_STAT_replies_held), 1);
	cr_assert_eq(held(), 0);
	fini();
}

/* Calls with limits of their own and calls without one may go in one message.
 */
Test(long_reply_limit, limits_in_one_message)
{
	static struct asked a[30];
	struct ulrpc_call_conf conf = conf_within(60000);

	open_with(0);
	slow_link();
	ask(&a[0], 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	asked_ended(&a[0], ULRPC_CAUSE_OK, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++) {
		conf.reply_limit = i % 3 ? 1000 * i : 0;
		ask_of("make", &a[i], 15000, &conf);
	}
	lnet_sim_run(g.sim, 5 * SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++) {
		bool good = i % 3 == 0 || 1000 * i >= 15000;

		asked_ended(&a[i], good ? ULRPC_CAUSE_OK : ULRPC_CAUSE_TOO_LONG,
			    good ? 15000 : 0);
	}
	cr_assert_eq(held(), 0);
	fini();
}

Test(long_reply_limit, limit_of_the_caller)
{
	static const uint32_t limits[] = { 1, LONG - 1, LONG,
					   ULRPC_BODY_MAX + 1 };

	open_with(0);
	slow_link();
	for (unsigned int i = 0; i < ARRAY_SIZE(limits); i++) {
		struct ulrpc_call_conf conf = conf_within(1000);
		struct asked a;

		conf.reply_limit = limits[i];
		ask_of("make", &a, LONG, &conf);
		lnet_sim_run(g.sim, 100 * MSEC);
		if (limits[i] >= LONG) {
			asked_ended(&a, ULRPC_CAUSE_OK, LONG);
		} else {
			asked_ended(&a, ULRPC_CAUSE_TOO_LONG, 0);
			cr_assert_eq(a.outcome.reply_needed, LONG);
		}
		cr_assert_eq(held(), 0, "the server is told at once");
	}
	fini();
}

/* No reply is longer than the room of the client, whatever the caller says. */
Test(long_reply_limit, longer_than_the_room)
{
	struct ulrpc_call_conf conf = conf_within(1000);
	struct asked a;

	open_with(0);
	g.rpc[CALLER]->conf.reply_bytes_max = 1 << 20;
	slow_link();
	ask_of("make", &a, (1 << 20) + 1, &conf);
	lnet_sim_run(g.sim, SEC);
	asked_ended(&a, ULRPC_CAUSE_TOO_LONG, 0);
	cr_assert_str_eq(a.outcome.text,
			 "the reply has 1048577 bytes, and the caller takes up "
			 "to 1048576");
	cr_assert_eq(server_counted(RPC_STAT_replies_held), 0);
	fini();
}

/* A client that does not fetch its replies uses up its share of memory. For
 * more replies it is told their length only; when nothing is left, its requests
 * are refused before they are executed. */
Test(long_reply_limit, share_of_the_client)
{
	static uint8_t reply[LONG];
	static struct asked a[20];
	struct ulrpc_call_conf conf = conf_within(20000);
	unsigned int fetching = 0, told = 0;
	struct asked b;

	for (unsigned int i = 0; i < LONG; i++)
		reply[i] = nth_byte(i);
	open_with(LONG * 4);
	slow_link();
	/* Makes calls until the window allows as many as this test makes at a
	 * time. */
	for (unsigned int i = 0; i < 2 * ARRAY_SIZE(a); i++) {
		ask(&b, 1, 1000);
		lnet_sim_run(g.sim, 10 * MSEC);
		asked_ended(&b, ULRPC_CAUSE_OK, 1);
	}
	g.served.runs = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		ask_of("hold", &a[i], 0, &conf);
	lnet_sim_run(g.sim, 100 * MSEC);
	deafen();
	cr_assert_eq(g.served.parked, ARRAY_SIZE(a));
	while (g.served.parked)
		ulrpc_reply(unpark(&g.served), reply, LONG);
	lnet_sim_run(g.sim, 100 * MSEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++) {
		fetching += !a[i].ended;
		told += a[i].ended &&
			a[i].outcome.cause == ULRPC_CAUSE_TOO_LONG;
	}
	cr_assert_eq(fetching + told, ARRAY_SIZE(a));
	cr_assert_geq(fetching, 3);
	cr_assert_geq(told, 10);
	cr_assert_eq(server_counted(RPC_STAT_held_refused), told);
	cr_assert_eq(server_counted(RPC_STAT_replies_held), fetching);
	cr_assert_leq(held(), 6 * (uint64_t)LONG);
	hear_again();
	ask(&b, 1, 30);
	lnet_sim_run(g.sim, 40 * MSEC);
	cr_assert_eq(b.ended, 1);
	cr_assert_neq(b.outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(b.outcome.execution, ULRPC_NOT_EXECUTED);
	ulrpc_call_put(b.call);
	lnet_sim_run(g.sim, 10000 * MSEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		asked_ended(&a[i], a[i].outcome.cause,
			    a[i].outcome.cause ? 0 : LONG);
	cr_assert_eq(held(), 0);
	fini();
}
