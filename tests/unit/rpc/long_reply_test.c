/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies that are longer than their calls have room for: the server holds
 * them, and the client fetches them. Client and service are both real. */
#include "rpc/client/fetch.h"
#include "rpc/run.h"
#include "tests/unit/rpc/long_reply_rig.h"

/* ---- replies that arrive ---- */

/* How long a long reply takes to arrive, if it does at all, does not count as a
 * round trip. */
Test(long_reply, says_nothing_of_round_trips)
{
	const struct ulnet_sim_link narrow = { .latency = MSEC,
					       .bandwidth = 3 * LONG };
	struct asked a;

	open_with(0);
	slow_link();
	ask(&a, 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	asked_ended(&a, ULRPC_CAUSE_OK, 1);
	cr_assert_eq(a.outcome.fetch, 0);
	cluster_links(g.sim, &narrow);
	for (unsigned int i = 0; i < 10; i++) {
		ask(&a, LONG, i < 5 ? 5000 : 200);
		lnet_sim_run(g.sim, 10 * SEC);
		asked_ended(&a, i < 5 ? ULRPC_CAUSE_OK : ULRPC_CAUSE_DEADLINE,
			    i < 5 ? LONG : 0);
		cr_assert_geq(a.outcome.fetch, 190000);
		cr_assert_leq(a.outcome.wire, 10000);
	}
	run_fold(g.client->shard, STAT_CALLS);
	cr_assert_leq(import_rtt(g.client->imp), 10 * MSEC);
	fini();
}

Test(long_reply, fetched)
{
	static const uint32_t lengths[] = {
		0,    1,    ROOM - 1,		ROOM,	       ROOM + 1,
		4096, LONG, ULRPC_BODY_MAX - 1, ULRPC_BODY_MAX
	};
	struct asked a;
	unsigned int n = 0;

	open_with(0);
	slow_link();
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		bool over = lengths[i] > ROOM;

		ask(&a, lengths[i], 5000);
		lnet_sim_run(g.sim, 100 * MSEC);
		asked_ended(&a, ULRPC_CAUSE_OK, lengths[i]);
		cr_assert_eq(a.outcome.attempts, 1);
		cr_assert_eq(a.outcome.reply_needed, 0);
		n += over;
		cr_assert_eq(held(), 0, "the client has said that it has it");
	}
	cr_assert_eq(g.served.runs, ARRAY_SIZE(lengths));
	cr_assert_eq(server_counted(RPC_STAT_replies_held), n);
	cr_assert_eq(server_counted(RPC_STAT_held_fetched), n);
	cr_assert_eq(client_counted(RPC_STAT_replies_fetched), n);
	cr_assert_eq(client_counted(RPC_STAT_fetches_retried), 0);
	cr_assert_eq(serve_ended(cpt0(), WIRE_OK), ARRAY_SIZE(lengths));
	fini();
}

/* What is longer than a message is got in pieces, as far as the caller wants
 * it. */
Test(long_reply, fetched_in_pieces)
{
	static const uint32_t lengths[] = { ULRPC_BODY_MAX + 1,
					    2 * ULRPC_BODY_MAX,
					    3 * ULRPC_BODY_MAX + 5, LIMIT };
	struct ulrpc_call_conf conf = conf_within(60000);
	struct asked a;

	open_with(0);
	slow_link();
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		conf.reply_limit = lengths[i];
		ask_of(i % 2 ? "work" : "make", &a, lengths[i], &conf);
		lnet_sim_run(g.sim, SEC);
		asked_ended(&a, ULRPC_CAUSE_OK, lengths[i]);
		cr_assert_eq(server_counted(RPC_STAT_held_fetched), i + 1);
		cr_assert_eq(held(), 0);
		conf.reply_limit = lengths[i] - 1;
		ask_of("make", &a, lengths[i], &conf);
		lnet_sim_run(g.sim, SEC);
		asked_ended(&a, ULRPC_CAUSE_TOO_LONG, 0);
		cr_assert_eq(a.outcome.reply_needed, lengths[i]);
	}
	cr_assert_str_eq(a.outcome.text,
			 "the reply has 16777216 bytes, and the caller takes "
			 "up to 16777215");
	cr_assert_eq(held(), 0);
	fini();
}

static struct reply_room *room(void)
{
	return &g.client->shard->imports->reply_room;
}

/* Replies for which the client has no room yet wait at the server, and all
 * come, in the order in which they were announced. */
Test(long_reply, room_of_the_client)
{
	static struct asked a[20];
	const uint32_t n = 1 << 20;
	struct ulrpc_call_conf conf = conf_within(60000);
	uint64_t most = 0;

	open_with(0);
	room()->max = 5 * n;
	slow_link();
	conf.reply_limit = n;
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		ask_of(i % 2 ? "work" : "make", &a[i], n, &conf);
	for (unsigned int i = 0; i < 20000; i++) {
		lnet_sim_run(g.sim, MSEC / 10);
		most = MAX(most, room()->used);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		asked_ended(&a[i], ULRPC_CAUSE_OK, n);
	/* more as long as no more is held than is free */
	cr_assert_eq(most, 3 * n);
	cr_assert_gt(client_counted(RPC_STAT_fetches_queued), 5);
	cr_assert_eq(room()->used, 0);
	cr_assert_eq(g.client->imp->reply_bytes, 0);
	cr_assert_eq(g.client->imp->replies_waiting, 0);
	fini();
}

/* Calls whose replies wait for room may end meanwhile. */
Test(long_reply, end_without_room)
{
	static struct asked a[9];
	const uint32_t n = 1 << 20;
	struct ulrpc_call_conf conf = conf_within(1000);

	open_with(0);
	room()->max = n;
	slow_link();
	conf.reply_limit = n;
	ask(&a[0], 1, 1000);
	lnet_sim_run(g.sim, 100 * MSEC);
	asked_ended(&a[0], ULRPC_CAUSE_OK, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		ask_of("make", &a[i], n, &conf);
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		while (!a[i].ended && a[i].call->fsm.state != CALL_FETCH)
			lnet_sim_run(g.sim, MSEC / 100);
	deafen();
	ulrpc_cancel(a[8].call);
	lnet_sim_run(g.sim, SEC);
	asked_ended(&a[8], ULRPC_CAUSE_CANCELED, 0);
	for (unsigned int i = 0; i < 8; i++) {
		cr_assert_eq(a[i].ended, 1);
		asked_ended(&a[i], a[i].outcome.cause, a[i].length);
	}
	cr_assert_eq(a[7].outcome.cause, ULRPC_CAUSE_DEADLINE);
	hear_again();
	lnet_sim_run(g.sim, 5 * SEC);
	cr_assert_eq(room()->used, 0);
	cr_assert_eq(g.client->imp->replies_waiting, 0);
	cr_assert_eq(held(), 0);
	fini();
}

/* While the server goes through a long reply, to prove it, others are served;
 * and the call may be canceled, or the server crash. */
Test(long_reply, is_proved_in_turns)
{
	struct ulrpc_call_conf conf = conf_within(60000);
	struct asked a, b;

	for (unsigned int i = 0; i < 3; i++) {
		open_with(0);
		slow_link();
		ask(&a, 1, 1000);
		lnet_sim_run(g.sim, 100 * MSEC);
		asked_ended(&a, ULRPC_CAUSE_OK, 1);
		g.client->checked = g.client->marked = true;
		conf.reply_limit = LIMIT;
		ask_of(i % 2 ? "work" : "make", &a, LIMIT, &conf);
		ask(&b, 1, 1000);
		lnet_sim_run(g.sim, 100 * MSEC);
		asked_ended(&b, ULRPC_CAUSE_OK, 1);
		if (i == 2)
			ulrpc_cancel(a.call);
		lnet_sim_run(g.sim, SEC);
		if (i == 2)
			ulrpc_call_put(a.call);
		else
			asked_ended(&a, ULRPC_CAUSE_OK, LIMIT);
		cr_assert_eq(held(), 0);
		fini();
	}
}

/* Each piece may be lost, or come late. */
Test(long_reply, pieces_are_lost)
{
	const struct ulnet_sim_link bad = { .latency = MSEC,
					    .jitter = 3 * MSEC,
					    .loss = LNET_SIM_ALWAYS / 5,
					    .error = LNET_SIM_ALWAYS / 20,
					    .duplicate = LNET_SIM_ALWAYS / 10,
					    .reorder = LNET_SIM_ALWAYS / 10,
					    .reorder_window = 5 * MSEC };
	struct ulrpc_call_conf conf = conf_within(600000);
	struct asked a;

	open_with(0);
	conf.reply_limit = LIMIT;
	cluster_links(g.sim, &bad);
	for (unsigned int i = 0; i < 10; i++) {
		ask_of("make", &a, 10 * ULRPC_BODY_MAX + i, &conf);
		lnet_sim_run(g.sim, 600 * SEC);
		asked_ended(&a, ULRPC_CAUSE_OK, 10 * ULRPC_BODY_MAX + i);
	}
	cr_assert_eq(g.served.runs, 10);
	fini();
}

/* Many long replies at the same time, from workers and inline methods. */
Test(long_reply, many)
{
	static struct asked a[50];
	struct ulrpc_call_conf conf = conf_within(5000);

	open_with(0);
	slow_link();
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		ask_of(i % 2 ? "make" : "work", &a[i], 50000 + i, &conf);
	lnet_sim_run(g.sim, 1000 * MSEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(a); i++)
		asked_ended(&a[i], ULRPC_CAUSE_OK, 50000 + i);
	cr_assert_eq(held(), 0);
	cr_assert_eq(g.served.runs, ARRAY_SIZE(a));
	fini();
}

/* ulrpc_call_wait_alloc() allocates memory for a reply of any length. */
Test(long_reply, waited_for)
{
	struct ulrpc_call_conf conf = conf_within(5000);
	struct ulrpc_outcome o;
	size_t length = 1;
	uint32_t n = LONG;
	uint8_t *reply;
	void *p = &n;

	open_with(0);
	cr_assert_eq(ulrpc_call_wait_alloc(g.client, ulrpc_method("make"), &n,
					   sizeof(n), &conf, &p, &length, &o),
		     0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(length, LONG);
	reply = p;
	for (size_t i = 0; i < length; i++)
		cr_assert_eq(reply[i], nth_byte(i));
	free(p);
	n = 0;
	cr_assert_eq(ulrpc_call_wait_alloc(g.client, ulrpc_method("make"), &n,
					   sizeof(n), &conf, &p, &length, &o),
		     0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_OK);
	cr_assert_null(p);
	cr_assert_eq(length, 0);
	conf.deadline = 0;
	cr_assert_eq(ulrpc_call_wait_alloc(g.client, ulrpc_method("make"), &n,
					   sizeof(n), &conf, &p, &length, &o),
		     -EINVAL);
	fini();
}

/* ---- messages that are lost ---- */

/* The client's GET, the REPLY to it, or the message that the client has the
 * reply is lost, duplicated, or late. The GET is repeated until the deadline,
 * and the call is executed once. */
Test(long_reply, messages_are_lost_or_late)
{
	const struct ulnet_sim_link bad = { .latency = MSEC,
					    .loss = 500000,
					    .duplicate = 300000,
					    .cut = 200000,
					    .refuse = 200000,
					    .reorder = 300000,
					    .reorder_window = 2000 * MSEC };

	for (unsigned int i = 0; i < 60; i++) {
		struct asked a;

		open_with(0);
		slow_link();
		ask(&a, LONG, 60000);
		until_held(&a);
		lnet_sim_run(g.sim, lnet_sim_random(g.sim, i + 1) * MSEC / 20);
		if (i % 3 != 1)
			link_set(g.sim, CALLER, SERVER, &bad);
		if (i % 3 != 0)
			link_set(g.sim, SERVER, CALLER, &bad);
		while (!a.ended)
			lnet_sim_run(g.sim, MSEC);
		asked_ended(&a, ULRPC_CAUSE_OK, LONG);
		cr_assert_eq(g.served.runs, 1);
		cr_assert_eq(lnet_sim_check(g.sim), 0);
		fini();
	}
}

/* The client's first GET is lost, and repeated after @within ns: a second if
 * the client has fetched no reply yet (@known is false), else what follows from
 * the time that fetches took. */
static void lost_once(bool known, uint64_t within)
{
	struct asked a;

	open_with(0);
	slow_link();
	if (known) {
		ask(&a, LONG, 60000);
		lnet_sim_run(g.sim, 100 * MSEC);
		asked_ended(&a, ULRPC_CAUSE_OK, LONG);
	}
	ask_deaf(&a, 60000);
	hear_again();
	lnet_sim_run(g.sim, within - 100 * MSEC);
	cr_assert_eq(a.ended, 0);
	lnet_sim_run(g.sim, 200 * MSEC);
	asked_ended(&a, ULRPC_CAUSE_OK, LONG);
	cr_assert_eq(client_counted(RPC_STAT_fetches_retried), 1);
	fini();
}

Test(long_reply, lost_once)
{
	lost_once(false, 1000 * MSEC);
	lost_once(true, 200 * MSEC);
}

/* The message that the client has the reply is lost: the next call also says
 * so. */
Test(long_reply, acknowledged_later)
{
	struct asked a;

	open_with(0);
	slow_link();
	ask(&a, LONG, 60000);
	while (!server_counted(RPC_STAT_held_fetched))
		lnet_sim_run(g.sim, MSEC / 10);
	deafen();
	lnet_sim_run(g.sim, 500 * MSEC);
	asked_ended(&a, ULRPC_CAUSE_OK, LONG);
	cr_assert_gt(held(), LONG);
	hear_again();
	ask(&a, 1, 1000);
	lnet_sim_run(g.sim, 10 * MSEC);
	asked_ended(&a, ULRPC_CAUSE_OK, 1);
	cr_assert_eq(held(), 0);
	fini();
}

/* The client never says that it has the reply: the server holds that until the
 * deadline. */
Test(long_reply, let_go_at_the_deadline)
{
	struct asked a;

	open_with(0);
	ask_deaf(&a, 10000);
	lnet_sim_run(g.sim, 9900 * MSEC);
	cr_assert_eq(a.ended, 0);
	cr_assert_gt(held(), LONG);
	cr_assert_gt(client_counted(RPC_STAT_fetches_retried), 0);
	lnet_sim_run(g.sim, 200 * MSEC);
	asked_ended(&a, ULRPC_CAUSE_DEADLINE, 0);
	cr_assert_eq(held(), 0);
	hear_again();
	fini();
}

/* ---- calls, clients, services and nodes that end ---- */

/* If the call is canceled or its client closed, the client stops fetching, and
 * the server frees the reply. */
Test(long_reply, canceled)
{
	for (unsigned int i = 0; i < 30; i++) {
		struct asked a;

		open_with(0);
		cluster_links(g.sim, &(struct ulnet_sim_link){
					     .latency = MSEC,
					     .bandwidth = 100000000 });
		ask(&a, LONG, 60000);
		until_held(&a);
		lnet_sim_run(g.sim, i * MSEC / 5);
		if (a.ended) {
			asked_ended(&a, ULRPC_CAUSE_OK, LONG);
		} else {
			if (i % 2)
				ulrpc_cancel(a.call);
			else
				ulrpc_client_close(g.client);
			lnet_sim_run(g.sim, MSEC / 1000);
			asked_ended(&a, ULRPC_CAUSE_CANCELED, 0);
		}
		lnet_sim_run(g.sim, 100 * MSEC);
		cr_assert_eq(held(), 0);
		fini();
	}
}

/* When the client disconnects, the server frees the replies that it holds for
 * it. */
Test(long_reply, client_leaves)
{
	struct asked a;

	open_with(0);
	ask_deaf(&a, 60000);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_gt(held(), LONG);
	hear_again();
	cr_assert_eq(ulrpc_close(g.rpc[CALLER]), 0);
	g.rpc[CALLER] = NULL;
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(held(), 0);
	asked_ended(&a, ULRPC_CAUSE_CANCELED, 0);
	cr_assert_eq(ulrpc_close(g.rpc[SERVER]), 0);
	lnet_sim_run_all(g.sim);
	cr_assert_eq(lnet_sim_free(g.sim), 0);
}

/* The node of the client or of the server crashes at some moment of a fetch. */
Test(long_reply, crash)
{
	for (unsigned int i = 0; i < 40; i++) {
		unsigned int gone = i % 2, left = !gone;
		struct asked a;

		open_with(0);
		cluster_links(g.sim, &(struct ulnet_sim_link){
					     .latency = MSEC,
					     .bandwidth = 100000000,
					     .refuse = i % 3 ? 0 : 500000 });
		ask(&a, LONG, 2000);
		lnet_sim_run(g.sim, i * MSEC / 2);
		cr_assert_eq(lnet_sim_crash(g.sim, gone), 0);
		lnet_sim_run(g.sim, 60000 * MSEC);
		if (gone == SERVER)
			cr_assert_eq(a.ended, 1);
		else
			cr_assert_eq(held(), 0);
		ulrpc_call_put(a.call);
		cr_assert_eq(ulrpc_close(g.rpc[left]), 0);
		lnet_sim_run_all(g.sim);
		cr_assert_eq(lnet_sim_free(g.sim), 0);
	}
}

/* The server restarts, and its held replies are lost. The call is executed
 * again if that does no harm, and its caller allows retries. */
Test(long_reply, server_restarts)
{
	static const struct ulrpc_retry none = { 0 };

	for (unsigned int i = 0; i < 3; i++) {
		struct ulrpc_call_conf conf = conf_within(60000);
		bool again = i == 1;
		struct asked a;

		open_with(0);
		slow_link();
		conf.semantics = i ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE;
		conf.retry = i == 2 ? &none : NULL;
		ask_of("again", &a, LONG, &conf);
		until_held(&a);
		cr_assert_eq(lnet_sim_crash(g.sim, SERVER), 0);
		lnet_sim_run(g.sim, 500 * MSEC);
		cr_assert_eq(lnet_sim_restart(g.sim, SERVER), 0);
		g.node[SERVER] = lnet_sim_node(g.sim, SERVER);
		serve_long(0, 0);
		lnet_sim_run(g.sim, 59000 * MSEC);
		if (again)
			asked_ended(&a, ULRPC_CAUSE_OK, LONG);
		else
			asked_ended(&a, ULRPC_CAUSE_RESTARTED, 0);
		cr_assert_eq(g.served.runs, again ? 2 : 1);
		fini();
	}
}

/* The NID from which the server answered cannot be reached any more: the client
 * fetches the reply from the NID to which it is connected. */
Test(long_reply, of_a_server_that_is_reached_another_way)
{
	struct asked a;

	open_with(0);
	ask_deaf(&a, 20000);
	a.call->fetch->holder.peer.nid = nth_id(9).nid;
	hear_again();
	lnet_sim_run(g.sim, 19000 * MSEC);
	asked_ended(&a, ULRPC_CAUSE_OK, LONG);
	fini();
}

/* The service has stopped, and its held replies are lost, but the connection
 * stays. A call without a deadline must not go on fetching for ever. */
Test(long_reply, nobody_holds_it_any_more)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct asked a;

		open_with(0);
		ask_deaf(&a, i ? 4000 : ULRPC_NEVER);
		cr_assert_eq(ulrpc_service_stop(g.service, 100000), -ETIMEDOUT);
		hear_again();
		lnet_sim_run(g.sim, 5000 * MSEC);
		cr_assert_eq(a.ended, i);
		lnet_sim_run(g.sim, 1000000 * MSEC);
		asked_ended(&a,
			    i ? ULRPC_CAUSE_DEADLINE : ULRPC_CAUSE_FORGOTTEN,
			    0);
		cr_assert_eq(g.served.runs, 2);
		fini();
	}
}

/* A service that stops waits until its replies are fetched, for as long as it
 * was told to at most. */
Test(long_reply, service_stops)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct asked a;
		int rc;

		open_with(0);
		ask_deaf(&a, 3000);
		lnet_sim_run(g.sim, 10 * MSEC);
		cr_assert_gt(held(), LONG);
		if (i == 0)
			hear_again();
		rc = ulrpc_service_stop(g.service, 2000000);
		cr_assert_eq(rc, i ? -ETIMEDOUT : 0, "%d", rc);
		lnet_sim_run(g.sim, 5000 * MSEC);
		if (i)
			asked_ended(&a, ULRPC_CAUSE_DEADLINE, 0);
		else
			asked_ended(&a, ULRPC_CAUSE_OK, LONG);
		fini();
	}
}
