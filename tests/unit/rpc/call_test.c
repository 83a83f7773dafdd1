/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of calls, whatever the server does. */
#include "rpc/stat.h"
#include "tests/unit/rpc/call_rig.h"

static struct call_rig g;
static struct note n, many[600];

TestSuite(call, .timeout = 60);

static void succeeds(void)
{
	call(&g, &n, 1000000);
	run(&g, 100 * MSEC);
	ended_well(&n);
}

/* Memory for a call, as its configuration has it. */
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

/* Calls that are not answered: one that may be executed once, and one that may
 * be repeated. */
static void call_both_kinds(void)
{
	struct ulrpc_call_conf conf = within(100000000);

	g.fake->mute_calls = true;
	call_with(&g, &many[0], &conf, "hello", 5);
	conf.semantics = ULRPC_IDEMPOTENT;
	call_with(&g, &many[1], &conf, "hello", 5);
	run(&g, 100 * MSEC);
}

/* The server knows no connection any more. */
static void server_forgets(void)
{
	g.fake->forgets = true;
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	g.fake->mute_calls = false;
}

static struct arrived *last_call(void)
{
	return &g.fake->calls[(g.fake->ncalls - 1) % CALLS_SEEN];
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
	/* The next one needs no connection. */
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
	cr_assert_eq(g.fake->messages, 1 + 4);
	rig_close(&g);
}

/* ... but half of what is much goes first, to be served while the rest is
 * still being copied. */
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
	static uint8_t body[200000];
	struct ulrpc_call_conf conf = within(1000000);

	rig_open(&g);
	g.fake->request_max = sizeof(body);
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
	/* Longer than the service takes. */
	g.fake->request_max = 0;
	call_with(&g, &n, &conf, body, sizeof(body));
	run(&g, 100 * MSEC);
	ended_by(&n, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(ulrpc_call(g.client, 1, body, ULRPC_BODY_MAX + 1, &conf,
				note_end, &n, NULL),
		     -EMSGSIZE);
	rig_close(&g);
}

static unsigned int said_too_long;

static void on_line(int level, const char *line, void *arg)
{
	(void)level;
	(void)arg;
	said_too_long += strstr(line, "a request of 101 bytes is not sent: "
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
		/* It is lent already. */
		cr_assert_eq(ulrpc_call(g.client, 1, NULL, 0, &conf, note_end,
					&n, NULL),
			     -EBUSY);
		run(&g, 100 * MSEC);
		ended_well(&n);
	}
	ulrpc_bulk_close(bulk, NULL, NULL);
	rig_close(&g);
}

/* Somebody has made @portal one for wildcards: nothing can be lent there. */
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
	cr_assert_eq(n.outcome.attempts, 1);
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

/* In whatever order deadlines come, and others end. */
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
	/* And when it does not answer any more at all. */
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
	/* Would be the default if it was cut to a byte. */
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
	ulrpc_cancel(many[1].call); /* in flight */
	run(&g, 10 * MSEC);
	ended_by(&many[1], ULRPC_CAUSE_CANCELED, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(g.fake->ncalls, 2);
	g.fake->mute_calls = false;
	/* What comes for it now is for nobody. */
	fake_echo(g.fake, &g.fake->calls[0]);
	fake_echo(g.fake, &g.fake->calls[1]);
	run(&g, 10 * MSEC);
	cr_assert_eq(many[2].ended, 1);
	ulrpc_cancel(many[2].call); /* has ended */
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
		{ WIRE_SHUTTING_DOWN, ULRPC_CAUSE_SHUTDOWN,
		  ULRPC_NOT_EXECUTED },
		{ WIRE_BAD_REQUEST, ULRPC_CAUSE_BAD_REQUEST,
		  ULRPC_NOT_EXECUTED },
		{ WIRE_REFUSED, ULRPC_CAUSE_REFUSED, ULRPC_NOT_EXECUTED },
		{ WIRE_TOO_LONG, ULRPC_CAUSE_TOO_LONG, ULRPC_EXECUTED },
		{ WIRE_BULK_FAILED, ULRPC_CAUSE_BULK, ULRPC_EXECUTED },
		{ WIRE_VERSION_UNKNOWN, ULRPC_CAUSE_BAD_REQUEST,
		  ULRPC_NOT_EXECUTED },
		{ 99, ULRPC_CAUSE_BAD_REPLY, ULRPC_EXECUTION_UNKNOWN },
	};

	rig_open(&g);
	g.fake->retry_after = 4321;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		g.fake->call_status = cases[i].status;
		call(&g, &n, 1000000);
		run(&g, 100 * MSEC);
		ended_by(&n, cases[i].cause, cases[i].execution);
		cr_assert_eq(n.outcome.retry_after, 4321);
		if (cases[i].status == WIRE_FAILED)
			cr_assert_eq(n.outcome.status, -EDOM);
	}
	rig_close(&g);
}

/* Everything that is not the answer to this very attempt. */
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
	/* Late, and again. */
	for (unsigned int i = 0; i < 2; i++)
		fake_echo(g.fake, &g.fake->calls[i]);
	run(&g, 10 * MSEC);
	cr_assert_eq(many[0].ended, 1);
	cr_assert_eq(many[1].ended, 1);
	rig_close(&g);
}

/* What is repeated takes room, but nobody else's. */
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

/* A shorter answer overtakes it, and leaves too little room behind itself for
 * what is missing: the buffer is renewed under what is landing in it. */
Test(call, whose_reply_lands_while_its_buffer_is_renewed_ends_well)
{
	/* The long one lands from 30 to 70 ms, the short one at 40. */
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

/* ---- another attempt ---- */

/* In a message with others: they are answered by theirs. */
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

Test(call, that_was_not_delivered_is_sent_again)
{
	struct ulnet_sim_link bad = { .refuse = LNET_SIM_ALWAYS }, good = { 0 };

	rig_open(&g);
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &bad);
	call(&g, &n, 20000000);
	run(&g, MSEC);
	cr_assert_eq(n.ended, 0);
	lnet_sim_link_set(g.sim, &LNET_NID_ANY, &LNET_NID_ANY, &good);
	run(&g, 20 * SEC);
	cr_assert_gt(n.outcome.attempts, 1);
	ended_well(&n);
	cr_assert_eq(g.fake->ncalls, 2);
	/* To the server it is a new one. */
	cr_assert_eq(g.fake->calls[1].flags, 0);
	cr_assert_eq(g.fake->calls[1].xid,
		     g.fake->calls[0].xid + n.outcome.attempts);
	rig_close(&g);
}

Test(call, of_a_connection_that_is_not_known_is_sent_again)
{
	static const uint32_t statuses[] = { WIRE_NOT_CONNECTED,
					     WIRE_STALE_EPOCH };

	rig_open(&g);
	for (unsigned int i = 0; i < ARRAY_SIZE(statuses); i++) {
		unsigned int connects = g.fake->connects;
		uint32_t epoch = g.fake->epoch;

		call(&g, &n, 10000000);
		run(&g, 10 * SEC);
		ended_well(&n);
		g.fake->mute_calls = true;
		call(&g, &n, 40000000);
		run(&g, 100 * MSEC);
		g.fake->mute_calls = false;
		fake_answer(g.fake, last_call(), statuses[i], NULL, 0);
		run(&g, 40 * SEC);
		ended_well(&n);
		cr_assert_eq(n.outcome.attempts, 2);
		cr_assert_gt(g.fake->epoch, epoch);
		cr_assert_gt(g.fake->connects, connects);
	}
	rig_close(&g);
}

/* Being told that is no sign that the service works. */
Test(call, of_a_connection_that_is_not_known_is_no_success)
{
	rig_open(&g);
	call(&g, &n, 10000000);
	run(&g, 10 * SEC);
	ended_well(&n);
	for (unsigned int i = 0; i < 2; i++) {
		g.client->imp->failures = 5;
		g.fake->mute_calls = true;
		call(&g, &n, 1000000);
		run(&g, 100 * MSEC);
		fake_answer(g.fake, last_call(),
			    i ? WIRE_OVERLOADED : WIRE_STALE_EPOCH, NULL, 0);
		run(&g, 1 * MSEC);
		cr_assert_eq(g.client->imp->failures, i ? 0 : 6);
		run(&g, 40 * SEC);
		cr_assert_eq(n.ended, 1);
		ulrpc_call_put(n.call);
	}
	rig_close(&g);
}

/* Nor is each such answer a sign that the server can be reached again: many calls
 * are told the same, and the client asks no sooner for that. */
Test(call, of_a_connection_that_is_never_known_does_not_flood_the_server)
{
	rig_open(&g);
	g.fake->call_status = WIRE_NOT_CONNECTED;
	for (unsigned int i = 0; i < 600; i++)
		call(&g, &many[i], 4000000);
	run(&g, 5 * SEC);
	cr_assert_geq(g.fake->connects, 20);
	cr_assert_leq(g.fake->connects, 200, "%u", g.fake->connects);
	for (unsigned int i = 0; i < 600; i++) {
		cr_assert_eq(many[i].ended, 1);
		cr_assert_eq(many[i].outcome.execution, ULRPC_NOT_EXECUTED);
		ulrpc_call_put(many[i].call);
	}
	rig_close(&g);
}

/* The connection was made anew because of another call. Nothing else happens
 * that would have it sent. */
Test(call, of_a_connection_that_was_replaced_is_sent_again_at_once)
{
	struct arrived late;
	unsigned int connects;

	rig_open(&g);
	g.fake->mute_calls = true;
	call(&g, &many[0], 40000000);
	run(&g, 100 * MSEC);
	late = g.fake->calls[0];
	call(&g, &many[1], 40000000);
	run(&g, 100 * MSEC);
	cr_assert_eq(g.fake->ncalls, 2);
	g.fake->mute_calls = false;
	fake_answer(g.fake, &g.fake->calls[1], WIRE_STALE_EPOCH, NULL, 0);
	run(&g, 2 * SEC);
	ended_well(&many[1]);
	connects = g.fake->connects;
	fake_answer(g.fake, &late, WIRE_STALE_EPOCH, NULL, 0);
	run(&g, 100 * MSEC);
	ended_well(&many[0]);
	cr_assert_eq(g.fake->connects, connects);
	rig_close(&g);
}

/* ---- waiting for its bulk, to be sent again ---- */

static uint8_t lent[1000], got[1000];

static void on_get(const struct ulnet_event *ev)
{
	if (ev->type == LNET_EVENT_REPLY)
		cr_assert_eq(ev->status, 0);
}

/* The server gets what the last call has lent, which takes a second; meanwhile
 * the call is refused so that it has to be sent again. */
static void fence(void)
{
	const struct arrived *a =
		&g.fake->calls[(g.fake->ncalls - 1) % CALLS_SEEN];
	struct ulnet_nid from = nth_id(CLIENT).nid, to = nth_id(SERVER).nid;
	struct ulnet_sim_link slow = { .bandwidth = sizeof(lent) };
	struct ulnet_md md = { .start = got,
			       .length = sizeof(got),
			       .threshold = 2,
			       .handler = on_get };
	struct ulnet_md_handle mdh;

	lnet_sim_link_set(g.sim, &from, &to, &slow);
	cr_assert_eq(LNetMDBind(g.fake->node, &md, LNET_UNLINK, &mdh), 0);
	cr_assert_eq(LNetGet(LNET_NID_ANY, mdh, nth_id(CLIENT),
			     ULRPC_PORTAL_BULK, a->bulk_match, 0),
		     0);
	run(&g, 10 * MSEC);
	fake_answer(g.fake, a, WIRE_STALE_EPOCH, NULL, 0);
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 0);
	cr_assert_eq(n.call->fsm.state, CALL_FENCE);
}

static struct ulrpc_bulk *call_in_fence(uint64_t deadline)
{
	struct iovec iov = { lent, sizeof(lent) };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf conf = within(deadline);
	struct ulrpc_bulk *bulk;

	rig_open(&g);
	cr_assert_eq(ulrpc_bulk_new(g.rpc, &lend, &bulk), 0);
	conf.bulks = &bulk;
	conf.nbulks = 1;
	memset(lent, 7, sizeof(lent));
	g.fake->mute_calls = true;
	call_with(&g, &n, &conf, "hello", 5);
	run(&g, 100 * MSEC);
	g.fake->mute_calls = false;
	fence();
	return bulk;
}

/* Bytes that the server has got, by the statistics. */
static uint64_t counted_sent(void)
{
	const struct stat_shard *st = g.rpc->shards[0].stats;
	const struct stat_peer *p =
		list_first(&st->peers[STAT_CALLS], struct stat_peer, link);
	const struct stat_service *sv = list_first(&st->services[STAT_CALLS],
						   struct stat_service, link);
	uint32_t bucket = 0;
	const struct stat_method *m = stat_method_walk(sv, &bucket, NULL);

	cr_assert_eq(m->counts[STAT_COUNT_bulk_sent_bytes],
		     p->counts[STAT_COUNT_bulk_sent_bytes]);
	return p->counts[STAT_COUNT_bulk_sent_bytes];
}

Test(call, in_fence_goes_on_when_its_bulk_is_free)
{
	struct ulrpc_bulk *bulk = call_in_fence(100000000);
	unsigned int messages = g.fake->messages;

	run(&g, 500 * MSEC);
	cr_assert_eq(n.call->fsm.state, CALL_FENCE);
	cr_assert_eq(g.fake->messages, messages);
	run(&g, 50 * SEC);
	cr_assert_eq(n.outcome.attempts, 2);
	ended_well(&n);
	cr_assert_eq(counted_sent(), sizeof(lent));
	cr_assert_eq(memcmp(lent, got, sizeof(got)), 0);
	ulrpc_bulk_close(bulk, NULL, NULL);
	rig_close(&g);
}

static void on_released(void *arg)
{
	unsigned int *released = arg;

	++*released;
}

/* It ends at once, and its memory comes back when the server has got it. */
static void ends_in_fence(enum ulrpc_cause cause)
{
	bool late = cause == ULRPC_CAUSE_DEADLINE;
	struct ulrpc_bulk *bulk = call_in_fence(late ? 500000 : 100000000);
	struct ulrpc_call_conf conf = { .deadline = 1,
					.bulks = &bulk,
					.nbulks = 1 };
	unsigned int released = 0;

	if (!late)
		ulrpc_cancel(n.call);
	run(&g, late ? 400 * MSEC : 10 * MSEC);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(n.outcome.cause, cause);
	cr_assert_eq(n.outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert_not(n.outcome.bulk_free);
	cr_assert_eq(
		ulrpc_call(g.client, 1, NULL, 0, &conf, note_end, &n, NULL),
		-EBUSY);
	ulrpc_bulk_close(bulk, on_released, &released);
	run(&g, 100 * MSEC);
	cr_assert_eq(released, 0);
	cr_assert_eq(counted_sent(), 0);
	run(&g, 5 * SEC);
	cr_assert_eq(released, 1);
	cr_assert_eq(counted_sent(), sizeof(lent));
	cr_assert_eq(memcmp(lent, got, sizeof(got)), 0);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(g.fake->ncalls, 1, "nothing is sent again");
	ulrpc_call_put(n.call);
	rig_close(&g);
}

Test(call, canceled_in_fence)
{
	ends_in_fence(ULRPC_CAUSE_CANCELED);
}

Test(call, ends_by_its_deadline_in_fence)
{
	ends_in_fence(ULRPC_CAUSE_DEADLINE);
}

/* Closed, with its client, and then all of RPC: which waits for the memory. */
Test(call, closed_in_fence)
{
	struct ulrpc_bulk *bulk = call_in_fence(100000000);
	unsigned int released = 0;

	ulrpc_client_close(g.client);
	g.client = NULL;
	run(&g, 10 * MSEC);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(n.outcome.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_not(n.outcome.bulk_free);
	ulrpc_call_put(n.call);
	ulrpc_bulk_close(bulk, on_released, &released);
	cr_assert_eq(released, 0);
	rig_close(&g);
	cr_assert_eq(released, 1);
}

Test(call, of_a_server_that_restarted_is_repeated_only_if_that_is_allowed)
{
	unsigned int sent;

	rig_open(&g);
	call_both_kinds();
	sent = g.fake->ncalls;
	g.fake->id++;
	server_forgets();
	run(&g, 60 * SEC);
	ended_by(&many[0], ULRPC_CAUSE_RESTARTED, ULRPC_EXECUTION_UNKNOWN);
	ended_well(&many[1]);
	cr_assert_eq(many[1].outcome.attempts, 2);
	cr_assert_eq(g.fake->ncalls, sent + 1);
	rig_close(&g);
}

/* A server that does not know the connection knows nothing of copies that came
 * before; unless it has not known it since before the call was sent. */
Test(call, that_may_have_been_executed_is_repeated_only_if_that_is_allowed)
{
	struct ulrpc_call_conf conf = within(100000000);
	const uint64_t us = 10000; /* it takes that long to be answered */

	rig_open(&g);
	for (unsigned int i = 0; i < 4; i++) {
		bool sure = i % 2, idempotent = i / 2;

		g.fake->mute_calls = true;
		conf.semantics =
			idempotent ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE;
		call_with(&g, &n, &conf, "hello", 5);
		run(&g, us * USEC);
		g.fake->mute_calls = false;
		g.fake->absent = us + (sure ? 201000 : 199000);
		fake_answer(g.fake, last_call(), WIRE_NOT_CONNECTED, NULL, 0);
		run(&g, 60 * SEC);
		if (!sure && !idempotent) {
			ended_by(&n, ULRPC_CAUSE_RESTARTED,
				 ULRPC_EXECUTION_UNKNOWN);
			cr_assert_eq(n.outcome.attempts, 1);
			continue;
		}
		cr_assert_eq(last_call()->flags, sure ? 0 : WIRE_CALL_RESENT);
		ended_well(&n);
		cr_assert_eq(n.outcome.attempts, 2);
	}
	rig_close(&g);
}

/* Nor does it know of a number that is too old. */
Test(call, that_the_server_doubts_is_repeated_once_if_that_is_allowed)
{
	struct ulrpc_call_conf conf = within(100000000);

	rig_open(&g);
	g.fake->call_status = WIRE_DOUBTFUL;
	for (unsigned int i = 0; i < 2; i++) {
		conf.semantics = i ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE;
		call_with(&g, &n, &conf, "hello", 5);
		run(&g, SEC);
		ended_by(&n, ULRPC_CAUSE_RESTARTED, ULRPC_EXECUTION_UNKNOWN);
		cr_assert_eq(n.outcome.attempts, i + 1);
		cr_assert_eq(last_call()->flags, i ? WIRE_CALL_RESENT : 0);
	}
	rig_close(&g);
}

/* It is made as another client's call ends for the restart, and goes at once. */
static struct ulrpc_client *other;

static void call_other(void *arg, const struct ulrpc_outcome *o,
		       const void *reply, size_t length)
{
	struct ulrpc_call_conf conf = within(100000000);

	(void)arg;
	(void)reply;
	(void)length;
	cr_assert_eq(o->cause, ULRPC_CAUSE_RESTARTED);
	many[0] = (struct note){ .sim = g.sim };
	cr_assert_eq(ulrpc_call(other, 77, "hello", 5, &conf, note_end,
				&many[0], &many[0].call),
		     0);
}

Test(call, that_is_made_after_a_restart_is_not_ended_by_it)
{
	struct ulrpc_call_conf conf = within(100000000);
	struct ulrpc_client *first;

	rig_open(&g);
	first = g.client;
	rig_client(&g, 0);
	other = g.client;
	other->batch_max = 1;
	cr_assert_eq(other->imp, first->imp);
	call(&g, &n, 1000000);
	run(&g, 10 * MSEC);
	ended_well(&n);
	g.fake->mute_calls = true;
	cr_assert_eq(
		ulrpc_call(first, 77, "x", 1, &conf, call_other, NULL, NULL),
		0);
	run(&g, 100 * MSEC);
	g.fake->id++;
	g.fake->forgets = true;
	g.fake->alive_status = WIRE_NOT_CONNECTED;
	g.fake->mute_calls = false;
	run(&g, 60 * SEC);
	ended_well(&many[0]);
	cr_assert_eq(many[0].outcome.attempts, 1);
	ulrpc_client_close(first);
	rig_close(&g);
}

Test(call,
     of_a_server_that_has_forgotten_us_is_repeated_only_if_that_is_allowed)
{
	rig_open(&g);
	call_both_kinds();
	cr_assert_eq(g.fake->ncalls, 2);
	server_forgets();
	run(&g, 60 * SEC);
	ended_by(&many[0], ULRPC_CAUSE_RESTARTED, ULRPC_EXECUTION_UNKNOWN);
	ended_well(&many[1]);
	cr_assert_eq(g.fake->ncalls, 3);
	rig_close(&g);
}

/* ---- a network that loses, repeats, and mixes up ---- */

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
