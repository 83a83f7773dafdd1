/* SPDX-License-Identifier: BSD-3-Clause */
/* How a call ends, whatever the server and the network do. */
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/call_rig.h"

static struct call_rig g;
static struct note n, many[600];

static void succeeds(void)
{
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
}

/* Returns a bulk for a call, of memory that the server may write. */
static struct ulrpc_bulk *lend(void)
{
	static uint8_t memory[3000];
	static struct iovec iov = { memory, sizeof(memory) };
	struct ulrpc_bulk_conf conf = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SINK };
	struct ulrpc_bulk *bulk;

	cr_assert_eq(ulrpc_bulk_new(g.rpc, &conf, &bulk), 0);
	return bulk;
}

Test(call, is_connected_opened_sent_and_answered)
{
	rig_open(&g);
	succeeds();
	cr_assert_eq(g.fake->connects, 1);
	cr_assert_eq(g.fake->opens, 1);
	cr_assert_eq(n.outcome.attempts, 1);
	cr_assert_eq(n.outcome.paths, 1, "%u", n.outcome.paths);
	cr_assert(nid_is(&n.outcome.local, "10.0.0.1@tcp"));
	cr_assert(nid_is(&n.outcome.target, "10.0.0.2@tcp"));
	cr_assert_eq(g.fake->calls[0].method, 77);
	cr_assert_eq(g.fake->calls[0].xid, 1);
	cr_assert_eq(g.fake->calls[0].attempt, 0);
	cr_assert_leq(g.fake->calls[0].remaining, 1000000);
	/* The next call uses the same connection. */
	succeeds();
	cr_assert_eq(g.fake->connects, 1);
	cr_assert_eq(g.fake->opens, 1);
	rig_close(&g);
	cr_assert_eq(g.crashed, false);
}

Test(call, made_together_travels_together)
{
	rig_open(&g);
	succeeds();
	for (unsigned int i = 0; i < 100; i++)
		call(&g, &many[i], 1000000);
	run(&g, 100 * MSEC);
	for (unsigned int i = 0; i < 100; i++)
		ended_well(&many[i]);
	cr_assert_eq(g.fake->ncalls, 101);
	/* a message of 64 calls, and one of 36 */
	cr_assert_eq(g.fake->messages, 1 + 2);
	rig_close(&g);
}

/* Makes @count calls in one turn. They must arrive in @messages messages, of at
 * most @most calls. */
static void travel_in(unsigned int count, unsigned int messages, uint32_t most)
{
	struct ulrpc_call_conf conf = within(1000000);

	succeeds();
	conf.reply_max = 64;
	for (unsigned int i = 0; i < count; i++)
		call_with(&g, &many[i], &conf, "hello", 5);
	run(&g, 100 * MSEC);
	for (unsigned int i = 0; i < count; i++)
		ended_well(&many[i]);
	cr_assert_eq(g.fake->ncalls, 1 + count);
	cr_assert_eq(g.fake->messages, 1 + messages, "%u", g.fake->messages);
	cr_assert_eq(g.fake->most, most, "%u", g.fake->most);
}

Test(call, in_ever_longer_messages_the_more_of_them_wait)
{
	rig_open(&g);
	travel_in(600, 5, 256); /* calls per message: 64, 64, 128, 256, 88 */
	rig_close(&g);
}

Test(call, in_messages_as_long_as_the_service_takes)
{
	rig_open(&g);
	g.fake->message_max = 8192;
	/* Calls per message: 64, 64, and then 80, as 101 bytes are counted for
	 * each call. */
	travel_in(600, 8, 80);
	rig_close(&g);
}

Test(call, in_messages_as_long_as_the_user_wants)
{
	rig_open(&g);
	g.client->batch_max = 7;
	travel_in(600, 86, 7);
	rig_close(&g);
}

/* If the calls of a message have many bytes, half of them go first, so that the
 * server can start on them while the rest is being copied. */
Test(call, of_many_bytes_travel_in_two_halves)
{
	struct ulrpc_call_conf conf = within(1000000);
	static uint8_t body[4096];

	rig_open(&g);
	succeeds();
	for (unsigned int i = 0; i < 16; i++)
		call_with(&g, &many[i], &conf, body, sizeof(body));
	run(&g, 10 * MSEC);
	cr_assert_eq(g.fake->messages, 1 + 2);
	for (unsigned int i = 0; i < 16; i++)
		ended_by(&many[i], ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	rig_close(&g);
}

Test(call, of_any_size_arrives_whole)
{
	static uint8_t body[ULRPC_BODY_MAX + 1];
	const size_t most = 200000;
	struct ulrpc_call_conf conf = within(1000000);

	rig_open(&g);
	g.fake->request_max = most;
	for (size_t i = 0; i < sizeof(body); i++)
		body[i] = (uint8_t)(i * 7);
	for (unsigned int i = 0; i < 10; i++)
		call_with(&g, &many[i], &conf, body, i * i * 1000);
	run(&g, 100 * MSEC);
	for (unsigned int i = 0; i < 10; i++) {
		ended_by(&many[i], ULRPC_CAUSE_OK, ULRPC_EXECUTED);
		cr_assert_eq(g.fake->calls[i].length, i * i * 1000);
		cr_assert_eq(memcmp(many[i].reply, body, many[i].length), 0);
	}
	/* A body of the maximum that the service advertised when it was opened.
	 */
	call_with(&g, &n, &conf, body, most);
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	/* The server is of a release that gets no bodies. */
	call_with(&g, &n, &conf, body, sizeof(body));
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_BAD_REQUEST, ULRPC_NOT_EXECUTED);
	cr_assert_str_eq(n.outcome.text,
			 "a request of 983041 bytes is too long: the service "
			 "takes up to 200000, in messages of up to 1048576 "
			 "bytes");
	cr_assert_eq(ulrpc_call(g.client, 1, body, (size_t)ULRPC_LENT_MAX + 1,
				&conf, note_end, &n, NULL),
		     -EMSGSIZE);
	rig_close(&g);
}

static unsigned int said_too_long;

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	said_too_long += strstr(line, "a request of 101 bytes is too long: "
				      "the service takes up to 100") != NULL;
}

Test(call, longer_than_the_service_takes_is_not_sent)
{
	struct ulrpc_call_conf conf = within(1000000);
	static uint8_t body[101];

	rig_open(&g);
	g.fake->request_max = 100;
	lnet_log_set(LNET_LOG_WARN, on_line, NULL);
	call_with(&g, &many[0], &conf, body, 101);
	call_with(&g, &many[1], &conf, "hello", 5);
	call_with(&g, &many[2], &conf, body, 101);
	run(&g, 100 * MSEC);
	ended_by(&many[0], ULRPC_CAUSE_BAD_REQUEST, ULRPC_NOT_EXECUTED);
	ended_by(&many[2], ULRPC_CAUSE_BAD_REQUEST, ULRPC_NOT_EXECUTED);
	cr_assert(strstr(many[0].outcome.text, "of 101 bytes is too long: the "
					       "service takes up to 100,"),
		  "%s", many[0].outcome.text);
	ended_well(&many[1]);
	cr_assert_eq(g.fake->ncalls, 1);
	cr_assert_eq(said_too_long, 1);
	rig_close(&g);
}

Test(call, with_bulk_has_its_reply_and_its_memory_at_the_end)
{
	struct ulrpc_call_conf conf = within(1000000);
	struct ulrpc_bulk *bulk;

	rig_open(&g);
	bulk = lend();
	conf.bulks = &bulk;
	conf.nbulks = 1;
	for (unsigned int i = 0; i < 5; i++) {
		call_with(&g, &n, &conf, "hello", 5);
		/* The call under way has the bulk: another call must not use
		 * it. */
		cr_assert_eq(ulrpc_call(g.client, 1, NULL, 0, &conf, note_end,
					&n, NULL),
			     -EBUSY);
		run(&g, 100 * MSEC);
		ended_well(&n);
	}
	ulrpc_bulk_close(bulk, NULL, NULL);
	rig_close(&g);
}

/* Makes @portal one of wildcard entries, so that the library cannot link its
 * buffers there. */
static void occupy(unsigned int portal)
{
	struct ulnet_me_handle me;

	cr_assert_eq(LNetMEAttach(g.node, portal, ANY_ID, 1, 0, LNET_RETAIN,
				  LNET_INS_AFTER, &me),
		     0);
}

Test(call, whose_bulk_cannot_be_lent_ends_and_others_go_on)
{
	struct ulrpc_call_conf conf = within(60000000);
	struct ulrpc_bulk *bulk;

	rig_open(&g);
	occupy(ULRPC_PORTAL_BULK);
	bulk = lend();
	conf.bulks = &bulk;
	conf.nbulks = 1;
	call(&g, &many[0], 1000000);
	call_with(&g, &n, &conf, "hello", 5);
	call(&g, &many[1], 1000000);
	run(&g, 100 * MSEC);
	ended_well(&many[0]);
	ended_well(&many[1]);
	ended_by(&n, ULRPC_CAUSE_BULK, ULRPC_NOT_EXECUTED);
	ulrpc_bulk_close(bulk, NULL, NULL);
	rig_close(&g);
}

Test(call, whose_reply_could_not_land_is_not_sent)
{
	rig_open(&g);
	occupy(ULRPC_PORTAL_REPLY);
	call(&g, &n, 60000000);
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_NO_MEMORY, ULRPC_NOT_EXECUTED);
	cr_assert_eq(g.fake->ncalls, 0);
	rig_close(&g);
}

Test(call, without_memory_now_goes_later_and_by_itself)
{
	rig_open(&g);
	g.fake->mute_open = true;
	call(&g, &many[0], 60000000);
	call(&g, &many[1], 60000000);
	call(&g, &many[2], 60000000);
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	client_stall(g.client, many[0].call);
	client_stall(g.client, n.call);
	run(&g, 2 * SEC);
	ended_by(&n, ULRPC_CAUSE_NO_MEMORY, ULRPC_NOT_EXECUTED);
	g.fake->mute_open = false;
	run(&g, 20 * SEC);
	for (unsigned int i = 0; i < 3; i++)
		ended_well(&many[i]);
	cr_assert_eq(g.fake->messages, 2);
	succeeds();
	rig_close(&g);
}

/* ---- deadlines ---- */

Test(call, ends_by_its_deadline_while_connecting)
{
	rig_open(&g);
	g.fake->mute_connect = true;
	call(&g, &n, 700000);
	run(&g, 699 * MSEC);
	cr_assert_eq(n.ended, 0);
	run(&g, 2 * MSEC);
	ended_by(&n, ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	cr_assert_eq(n.at, 700 * MSEC);
	cr_assert_eq(n.outcome.connecting, 700000);
	rig_close(&g);
}

Test(call, ends_by_its_deadline_while_the_service_is_asked_for)
{
	rig_open(&g);
	g.fake->mute_open = true;
	call(&g, &n, 700000);
	run(&g, 10 * SEC);
	ended_by(&n, ULRPC_CAUSE_DEADLINE, ULRPC_NOT_EXECUTED);
	cr_assert_eq(n.at, 700 * MSEC);
	cr_assert_gt(g.fake->opens, 1);
	rig_close(&g);
}

Test(call, ends_by_its_deadline_without_an_answer)
{
	rig_open(&g);
	g.fake->mute_calls = true;
	call(&g, &n, 300000);
	run(&g, 10 * SEC);
	ended_by(&n, ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(n.at, 300 * MSEC);
	cr_assert_eq(n.outcome.queries, 1);
	cr_assert_eq(n.outcome.attempts, 2);
	rig_close(&g);
}

Test(call, ends_by_its_deadline_while_there_is_no_place_in_flight)
{
	rig_open(&g);
	g.fake->mute_calls = true;
	g.fake->window = 2;
	for (unsigned int i = 0; i < 5; i++)
		call(&g, &many[i], 300000 + i);
	run(&g, 300 * MSEC - 1);
	cr_assert_eq(g.fake->ncalls, 2);
	run(&g, 10 * SEC);
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_eq(many[i].at, 300 * MSEC + i * USEC);
	ended_by(&many[0], ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	ended_by(&many[1], ULRPC_CAUSE_DEADLINE, ULRPC_EXECUTION_UNKNOWN);
	for (unsigned int i = 2; i < 5; i++)
		cr_assert_eq(many[i].ended, 1);
	for (unsigned int i = 2; i < 5; i++)
		ulrpc_call_put(many[i].call);
	cr_assert_eq(many[4].outcome.execution, ULRPC_EXECUTION_UNKNOWN);
	rig_close(&g);
}

/* Calls end at their deadlines in whatever order these come, and while other
 * calls end. */
Test(call, ends_by_its_deadline_before_others_that_came_first)
{
	rig_open(&g);
	call(&g, &n, 60000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < 20; i++)
		call(&g, &many[i], (i * 7 % 20 + 1) * 100000);
	run(&g, 5 * MSEC);
	ulrpc_cancel(many[0].call);
	ulrpc_cancel(many[7].call);
	run(&g, 60 * SEC);
	for (unsigned int i = 0; i < 20; i++) {
		cr_assert_eq(many[i].ended, 1);
		if (i != 0 && i != 7)
			cr_assert_eq(many[i].at,
				     10 * MSEC + (i * 7 % 20 + 1) * 100 * MSEC);
		ulrpc_call_put(many[i].call);
	}
	rig_close(&g);
}

Test(call, ends_by_its_deadline_while_there_is_no_connection)
{
	struct ulnet_sim_link cut = { .refuse = LNET_SIM_ALWAYS };

	rig_open(&g);
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &cut);
	for (unsigned int i = 0; i < 20; i++)
		call(&g, &many[i], (i + 1) * 100000);
	run(&g, 60 * SEC);
	for (unsigned int i = 0; i < 20; i++) {
		cr_assert_eq(many[i].at, (i + 1) * 100 * MSEC);
		ended_by(&many[i], ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	}
	rig_close(&g);
}

Test(call, to_a_server_that_is_shutting_down_ends_so_unless_it_comes_back)
{
	rig_open(&g);
	g.fake->connect_status = WIRE_SHUTTING_DOWN;
	call(&g, &many[0], 4000000);
	call(&g, &many[1], 100000000);
	run(&g, 10 * SEC);
	ended_by(&many[0], ULRPC_CAUSE_SHUTDOWN, ULRPC_NOT_EXECUTED);
	g.fake->connect_status = WIRE_OK;
	run(&g, 60 * SEC);
	ended_well(&many[1]);
	/* The server does not know the connection any more, and says so in its
	 * answers to keepalives. */
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	g.fake->connect_status = WIRE_SHUTTING_DOWN;
	run(&g, 30 * SEC);
	call(&g, &many[0], 2000000);
	run(&g, 5 * SEC);
	ended_by(&many[0], ULRPC_CAUSE_SHUTDOWN, ULRPC_NOT_EXECUTED);
	g.fake->mute_connect = true;
	call(&g, &many[0], 100000000);
	run(&g, 101 * SEC);
	ended_by(&many[0], ULRPC_CAUSE_UNREACHABLE, ULRPC_NOT_EXECUTED);
	rig_close(&g);
}

Test(call, without_a_deadline_has_to_say_so)
{
	struct ulrpc_call_conf conf = within(0);

	rig_open(&g);
	cr_assert_eq(
		ulrpc_call(g.client, 1, NULL, 0, &conf, note_end, &n, NULL),
		-EINVAL);
	conf.deadline = ULRPC_NEVER;
	g.fake->mute_calls = true;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, 1000 * SEC);
	cr_assert_eq(n.ended, 0);
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, SEC);
	ended_well(&n);
	rig_close(&g);
}

Test(call, that_makes_no_sense_is_not_made)
{
	struct ulrpc_call_conf bad[4];

	rig_open(&g);
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = within(1000000);
	bad[0].priority = ULRPC_PRIORITY_BACKGROUND + 1;
	bad[1].semantics = ULRPC_EXACTLY_ONCE + 1;
	/* 256 cut to a byte would be the default priority. */
	bad[2].priority = (enum ulrpc_priority)256;
	bad[3].nbulks = 1;
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++)
		cr_assert_eq(ulrpc_call(g.client, 1, NULL, 0, &bad[i], note_end,
					&n, NULL),
			     -EINVAL);
	bad[0] = within(1000000);
	cr_assert_eq(
		ulrpc_call(g.client, 1, NULL, 0, &bad[0], NULL, NULL, NULL),
		-EINVAL, "nobody to tell");
	rig_close(&g);
}

/* ---- cancel ---- */

Test(call, can_be_canceled_at_any_time)
{
	rig_open(&g);
	g.fake->mute_calls = true;
	g.fake->window = 1;
	call(&g, &many[0], 1000000);
	ulrpc_cancel(many[0].call);
	ulrpc_cancel(many[0].call);
	cr_assert_eq(many[0].ended, 0);
	run(&g, MSEC);
	ended_by(&many[0], ULRPC_CAUSE_CANCELED, ULRPC_NOT_EXECUTED);
	call(&g, &many[1], 1000000);
	call(&g, &many[2], 1000000);
	run(&g, 10 * MSEC);
	ulrpc_cancel(many[1].call); /* the call is in flight */
	run(&g, 10 * MSEC);
	ended_by(&many[1], ULRPC_CAUSE_CANCELED, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(g.fake->ncalls, 2);
	g.fake->mute_calls = false;
	/* The reply to a canceled call is dropped. */
	fake_echo(g.fake, &g.fake->calls[0]);
	fake_echo(g.fake, &g.fake->calls[1]);
	run(&g, 10 * MSEC);
	cr_assert_eq(many[2].ended, 1);
	ulrpc_cancel(many[2].call); /* the call has ended */
	run(&g, 10 * MSEC);
	ended_well(&many[2]);
	rig_close(&g);
}

/* ---- answers ---- */

Test(call, ends_as_the_server_says)
{
	static const struct {
		uint32_t status;
		enum ulrpc_cause cause;
		enum ulrpc_execution execution;
	} cases[] = {
		{ WIRE_FAILED, ULRPC_CAUSE_HANDLER, ULRPC_EXECUTED },
		{ WIRE_NO_METHOD, ULRPC_CAUSE_NO_METHOD, ULRPC_NOT_EXECUTED },
		{ WIRE_OVERLOADED, ULRPC_CAUSE_OVERLOADED, ULRPC_NOT_EXECUTED },
		{ WIRE_EXPIRED, ULRPC_CAUSE_EXPIRED, ULRPC_NOT_EXECUTED },
		{ WIRE_BAD_REQUEST, ULRPC_CAUSE_BAD_REQUEST,
		  ULRPC_NOT_EXECUTED },
		{ WIRE_REFUSED, ULRPC_CAUSE_REFUSED, ULRPC_NOT_EXECUTED },
		{ WIRE_TOO_LONG, ULRPC_CAUSE_TOO_LONG, ULRPC_EXECUTED },
		{ WIRE_BULK_FAILED, ULRPC_CAUSE_BULK, ULRPC_EXECUTED },
		{ WIRE_VERSION_UNKNOWN, ULRPC_CAUSE_BAD_REQUEST,
		  ULRPC_NOT_EXECUTED },
		/* The call has named no metadata. */
		{ WIRE_UNKNOWN_SET, ULRPC_CAUSE_BAD_REPLY,
		  ULRPC_EXECUTION_UNKNOWN },
		{ 99, ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTION_UNKNOWN },
	};

	rig_open(&g);
	g.fake->retry_after = 4321;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		g.fake->call_status = cases[i].status;
		call(&g, &n, 1000000);
		/* Long enough for the retries of those calls for which retries
		 * can help. */
		run(&g, SEC);
		ended_by(&n, cases[i].cause, cases[i].execution);
		cr_assert_eq(n.outcome.retry_after, 4321);
		if (cases[i].status == WIRE_FAILED)
			cr_assert_eq(n.outcome.status, -EDOM);
	}
	rig_close(&g);
}

/* Only the answer to its last attempt ends a call. */
Test(call, is_not_answered_by_what_is_not_its_answer)
{
	struct arrived a;

	rig_open(&g);
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < 2; i++)
		call(&g, &many[i], 1000000);
	run(&g, 10 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	cr_assert_eq(g.fake->messages, 1);
	a = g.fake->calls[0];
	a.xid = 99;
	fake_answer(g.fake, &a, WIRE_OK, "xid", 3);
	a = g.fake->calls[0];
	a.attempt++;
	fake_answer(g.fake, &a, WIRE_OK, "attempt", 7);
	a = g.fake->calls[0];
	a.client++;
	fake_answer(g.fake, &a, WIRE_OK, "client", 6);
	a = g.fake->calls[0];
	a.match += 256;
	fake_answer(g.fake, &a, WIRE_OK, "match", 5);
	a = g.fake->calls[0];
	fake_put(g.fake, a.local, (struct ulnet_id){ a.source, a.pid },
		 ULRPC_PORTAL_REPLY, a.match, 0, "nonsense", 8);
	run(&g, 10 * MSEC);
	cr_assert_eq(many[0].ended, 0);
	cr_assert_eq(many[1].ended, 0);
	fake_echo(g.fake, &g.fake->calls[1]);
	fake_echo(g.fake, &g.fake->calls[1]);
	run(&g, 10 * MSEC);
	cr_assert_eq(many[0].ended, 0);
	ended_well(&many[1]);
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 10 * MSEC);
	ended_well(&many[0]);
	/* Late answers and copies are ignored. */
	for (unsigned int i = 0; i < 2; i++)
		fake_echo(g.fake, &g.fake->calls[i]);
	run(&g, 10 * MSEC);
	cr_assert_eq(many[0].ended, 1);
	cr_assert_eq(many[1].ended, 1);
	rig_close(&g);
}

/* Copies of a reply take room in its buffer, but leave the room of other calls'
 * replies. */
Test(call, is_answered_after_any_number_of_repetitions)
{
	rig_open(&g);
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < 3; i++)
		call(&g, &many[i], 1000000);
	run(&g, 10 * MSEC);
	for (unsigned int i = 0; i < 400; i++)
		fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 10 * MSEC);
	ended_well(&many[0]);
	for (unsigned int i = 0; i < 400; i++)
		fake_echo(g.fake, &g.fake->calls[1]);
	fake_echo(g.fake, &g.fake->calls[2]);
	run(&g, 10 * MSEC);
	ended_well(&many[1]);
	ended_well(&many[2]);
	rig_close(&g);
}

/* A shorter reply overtakes a long one, and leaves too little room behind
 * itself for a reply that is still missing: the client renews the buffer while
 * the long reply lands in the old one. */
Test(call, whose_reply_lands_while_its_buffer_is_renewed_ends_well)
{
	/* The long reply lands from 30 to 70 ms, the short one at 40 ms. */
	const struct ulnet_sim_link slow = { .latency = 30 * MSEC,
					     .bandwidth = 1000000 };
	struct ulrpc_call_conf conf = within(1000000);
	static uint8_t body[40000];

	rig_open(&g);
	g.fake->mute_calls = true;
	conf.reply_max = 5;
	call_with(&g, &many[0], &conf, "hello", 5);
	conf.reply_max = 50000;
	call_with(&g, &many[1], &conf, "hello", 5);
	run(&g, 10 * MSEC);
	cr_assert_eq(g.fake->messages, 1);
	cr_assert_eq(g.fake->ncalls, 2);
	cluster_links(g.sim, &slow);
	fake_answer(g.fake, &g.fake->calls[1], WIRE_OK, body, sizeof(body));
	run(&g, MSEC);
	cluster_links(g.sim, &(struct ulnet_sim_link){ 0 });
	fake_echo(g.fake, &g.fake->calls[0]);
	run(&g, 50 * MSEC);
	ended_well(&many[0]);
	cr_assert_eq(many[1].ended, 0, "this was to overtake");
	run(&g, 50 * MSEC);
	ended_by(&many[1], ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(many[1].length, sizeof(body));
	rig_close(&g);
}

Test(call, with_a_reply_that_nobody_can_read_ends)
{
	struct arrived *a = NULL;

	rig_open(&g);
	g.fake->mute_calls = true;
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	a = &g.fake->calls[0];
	fake_put(g.fake, a->local, (struct ulnet_id){ a->source, a->pid },
		 ULRPC_PORTAL_REPLY, a->match, UINT64_C(1) << 56 | 2ul << 48,
		 "nonsense", 8);
	run(&g, 10 * MSEC);
	ended_by(&n, ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTION_UNKNOWN);
	rig_close(&g);
}

Test(call, whose_reply_is_longer_than_asked_for_ends)
{
	struct ulrpc_call_conf conf = within(1000000);

	conf.reply_max = 4;
	rig_open(&g);
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTED);
	rig_close(&g);
}

/* Other calls in the same message get their replies. */
Test(call, whose_reply_is_longer_than_asked_for_ends_alone)
{
	static uint8_t body[5000];

	rig_open(&g);
	g.fake->mute_calls = true;
	for (unsigned int i = 0; i < 3; i++)
		call(&g, &many[i], 60000000);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->messages, 1);
	cr_assert_eq(g.fake->ncalls, 3);
	fake_answer(g.fake, &g.fake->calls[1], WIRE_OK, body, sizeof(body));
	run(&g, 100 * MSEC);
	ended_by(&many[1], ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTED);
	fake_echo(g.fake, &g.fake->calls[0]);
	fake_echo(g.fake, &g.fake->calls[2]);
	run(&g, 100 * MSEC);
	ended_well(&many[0]);
	ended_well(&many[2]);
	rig_close(&g);
}

/* ---- a network that loses, duplicates and reorders ---- */

Test(call, ends_once_and_in_time_whatever_the_network_does)
{
	struct ulnet_sim_link bad = { .latency = 20000,
				      .jitter = 50000,
				      .loss = 50000,
				      .duplicate = 100000,
				      .reorder = 200000,
				      .reorder_window = 1000000,
				      .refuse = 30000,
				      .error = 20000,
				      .stall = 5000,
				      .mute = 5000 };
	unsigned int ok = 0;

	rig_open(&g);
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &bad);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		call(&g, &many[i], 2000000);
		if (i % 7 == 0)
			run(&g, lnet_sim_random(g.sim, 30 * MSEC));
		if (i % 50 == 17)
			ulrpc_cancel(many[i].call);
	}
	run(&g, 3 * SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(many); i++) {
		cr_assert_eq(many[i].ended, 1, "%u: %u", i, many[i].ended);
		cr_assert_leq(many[i].outcome.total, 2000000);
		ok += many[i].outcome.cause == ULRPC_CAUSE_OK;
		ulrpc_call_put(many[i].call);
	}
	cr_assert_gt(ok, ARRAY_SIZE(many) / 2, "%u", ok);
	rig_close(&g);
}

/* ---- how many calls there may be ---- */

/* Makes the client one that has at most @calls calls, with @bytes. */
static void queue_is(uint32_t calls, uint64_t bytes)
{
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf;

	ulrpc_client_close(g.client);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	conf.queue_max = calls;
	conf.queue_bytes = bytes;
	cr_assert_eq(ulrpc_client_open(g.rpc, &conf, &g.client), 0);
}

static int try_call(struct note *note, size_t length)
{
	static const char body[100];
	const struct ulrpc_call_conf conf = within(60000000);

	*note = (struct note){ .sim = g.sim };
	return ulrpc_call(g.client, 1, body, length, &conf, note_end, note,
			  NULL);
}

static void was_answered(const struct note *note)
{
	cr_assert_eq(note->ended, 1);
	cr_assert_eq(note->outcome.cause, ULRPC_CAUSE_OK);
}

Test(call, is_refused_when_too_many_have_not_ended)
{
	struct note notes[4];

	rig_open(&g);
	queue_is(3, 0);
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	/* It does not matter whether they wait, or are under way. */
	for (int round = 0; round < 2; round++) {
		g.fake->mute_connect = g.fake->mute_calls = true;
		for (int i = 0; i < 3; i++)
			cr_assert_eq(try_call(&notes[i], 5), 0);
		/* those that other threads make come in the next turn */
		run(&g, USEC);
		for (int i = 0; i < 5; i++)
			cr_assert_eq(try_call(&notes[3], 5), -EAGAIN);
		cr_assert_eq(call_counted(&g, RPC_STAT_calls_unqueued),
			     round * 5U);
		g.fake->mute_connect = g.fake->mute_calls = false;
		run(&g, 20 * SEC);
		for (int i = 0; i < 3; i++)
			was_answered(&notes[i]);
		cr_assert_eq(notes[3].ended, 0);
		cr_assert_eq(call_counted(&g, RPC_STAT_calls_unqueued),
			     round * 5U + 5);
	}
	rig_close(&g);
}

Test(call, is_refused_when_there_are_too_many_bytes)
{
	struct note notes[3];

	rig_open(&g);
	queue_is(0, 100);
	g.fake->query_status = WIRE_UNKNOWN_CALL;
	g.fake->mute_connect = g.fake->mute_calls = true;
	cr_assert_eq(try_call(&notes[0], 99), 0);
	run(&g, USEC);
	cr_assert_eq(try_call(&notes[1], 1), 0);
	run(&g, USEC);
	cr_assert_eq(try_call(&notes[2], 0), -EAGAIN);
	g.fake->mute_connect = g.fake->mute_calls = false;
	run(&g, 20 * SEC);
	was_answered(&notes[0]);
	was_answered(&notes[1]);
	g.fake->mute_calls = true;
	/* There is always room for one. */
	cr_assert_eq(try_call(&notes[2], 100), 0);
	run(&g, USEC);
	cr_assert_eq(try_call(&notes[0], 0), -EAGAIN);
	g.fake->mute_calls = false;
	run(&g, 20 * SEC);
	was_answered(&notes[2]);
	rig_close(&g);
}

static void make_next(void *arg, const struct ulrpc_outcome *o,
		      const void *reply, size_t length)
{
	(void)arg, (void)o, (void)reply, (void)length;
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(try_call(&many[i], 1), 0);
}

Test(call, that_has_ended_leaves_room_for_others_in_its_callback)
{
	const struct ulrpc_call_conf conf = within(60000000);

	rig_open(&g);
	queue_is(1, 0);
	g.fake->mute_connect = true;
	cr_assert_eq(ulrpc_call(g.client, 1, NULL, 0, &conf, make_next, NULL,
				NULL),
		     0);
	run(&g, USEC);
	cr_assert_eq(try_call(&n, 1), -EAGAIN);
	g.fake->mute_connect = false;
	run(&g, 20 * SEC);
	/* The second one of the same turn has counted at its end. */
	for (unsigned int i = 0; i < 2; i++)
		was_answered(&many[i]);
	rig_close(&g);
}

static void make_one(void *arg, const struct ulrpc_outcome *o,
		     const void *reply, size_t length)
{
	(void)arg, (void)o, (void)reply, (void)length;
	cr_assert_eq(try_call(&many[0], 1), 0);
}

/* The call that made another one in its callback does not count any more, even
 * if nothing is sent. */
Test(call, that_has_ended_does_not_stay_in_the_queue)
{
	const struct ulrpc_call_conf conf = within(1000000);

	rig_open(&g);
	queue_is(2, 0);
	g.fake->mute_connect = true;
	cr_assert_eq(
		ulrpc_call(g.client, 1, NULL, 0, &conf, make_one, NULL, NULL),
		0);
	run(&g, SEC + USEC);
	cr_assert_eq(try_call(&n, 1), 0);
	run(&g, USEC);
	cr_assert_eq(try_call(&n, 1), -EAGAIN);
	g.fake->mute_connect = false;
	run(&g, 20 * SEC);
	was_answered(&many[0]);
	was_answered(&n);
	rig_close(&g);
}
