/* SPDX-License-Identifier: BSD-3-Clause */
/* What one caller, one method or one server takes from the others. */
#include "tests/unit/rpc/replicas/servers.h"

/* Calls @index of the server that @key chooses. */
static void call_keyed(unsigned int index, uint32_t key)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 10000000 },
		.key = &key,
		.key_length = sizeof(key),
	};

	ulrpc_replicas_call_put(call_with(index, &how));
}

/* Returns how many of 30 calls, which have to go well, are at server @i. */
static unsigned int share_of(unsigned int i)
{
	unsigned int before = servers[i].executed;

	for (int k = 0; k < 30; k++)
		goes_to();
	return servers[i].executed - before;
}

static void delays(uint64_t ns)
{
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = ns;
}

/* Ends the test, when all handlers have answered. */
static void end(void)
{
	lnet_sim_run(sim, 200 * SEC);
	sim_close();
}

/* Five calls fail at server 1. */
static void fail_five(void)
{
	servers[1].delay = 50 * SEC;
	while (servers[1].executed < 5) {
		call(1, 200000, ULRPC_AT_MOST_ONCE);
		lnet_sim_run(sim, 300 * MSEC);
	}
	servers[1].delay = 0;
}

Test(replicas_fair, a_trial_that_lasts_keeps_no_server_away)
{
	unsigned int tried;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(2);
	fail_five();
	cr_assert_eq(goes_to(), 2, "server 1 is left");
	/* The call that tries it takes long. */
	lnet_sim_run(sim, 2 * SEC);
	tried = servers[1].executed;
	servers[1].delay = 150 * SEC;
	call(2, ULRPC_NEVER, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(servers[1].executed, tried + 1);
	delays(0);
	cr_assert_geq(share_of(1), 13, "others use it");
	cr_assert_eq(calls[2].n, 0);
	end();
}

/* The first of two trials ends before the second one has passed. */
Test(replicas_fair, a_trial_that_fails_takes_nothing_from_the_next)
{
	unsigned int before;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(2);
	fail_five();
	cr_assert_eq(goes_to(), 2, "server 1 is left");
	lnet_sim_run(sim, 2 * SEC);
	before = servers[1].executed;
	servers[1].delay = 50 * SEC;
	call(2, 3000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 2 * SEC);
	servers[1].delay = 1100 * MSEC;
	call(3, ULRPC_NEVER, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 1050 * MSEC);
	cr_assert_eq(servers[1].executed, before + 2, "both try it");
	cr_assert_eq(calls[2].o.call.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_eq(calls[3].n, 0);
	lnet_sim_run(sim, 100 * MSEC);
	went_well(3);
	/* It is in use before the pause after the first trial is over. */
	delays(0);
	call(4, 1000000, ULRPC_AT_MOST_ONCE);
	call(5, 1000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 10 * MSEC);
	went_well(4);
	went_well(5);
	cr_assert_neq(calls[4].answer, calls[5].answer);
	end();
}

Test(replicas_fair, short_deadlines_of_one_caller_leave_no_server)
{
	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(2);
	/* Nobody knows yet how long the method takes. */
	servers[1].delay = 20 * MSEC;
	for (unsigned int i = 1; i <= 20; i++)
		call(i, 10000, ULRPC_AT_MOST_ONCE);
	/* not so long that one that is left would be tried again */
	lnet_sim_run(sim, 50 * MSEC);
	for (unsigned int i = 1; i <= 20; i++)
		cr_assert_eq(calls[i].o.call.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_eq(goes_to(), 1);
	end();
}

/* Calls that wait for something, and end at the same time without it. */
Test(replicas_fair, a_server_that_answers_others_is_not_left)
{
	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(2);
	for (unsigned int i = 0; i < 60; i++) {
		call(i, 10000000, ULRPC_AT_MOST_ONCE);
		if (i % 20 == 19)
			lnet_sim_run(sim, SEC);
	}
	servers[1].executed = 0;
	called = "other";
	servers[1].delay = 50 * SEC;
	for (unsigned int i = 1; i <= 6; i++)
		call(i, 3000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 500 * MSEC);
	cr_assert_eq(servers[1].executed, 6);
	called = "work";
	servers[1].delay = MSEC;
	cr_assert_eq(goes_to(), 1);
	lnet_sim_run(sim, 1600 * MSEC);
	for (unsigned int i = 1; i <= 6; i++)
		cr_assert_eq(calls[i].o.call.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_eq(goes_to(), 1);
	end();
}

/* All calls of a method that takes long go to one server. */
Test(replicas_fair, a_method_that_takes_long_makes_no_server_slow)
{
	unsigned int at = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(3);
	for (int i = 0; i < 60; i++) {
		called = "other";
		delays(200 * MSEC);
		call_keyed(1, 7);
		lnet_sim_run(sim, 210 * MSEC);
		went_well(1);
		cr_assert(!at || calls[1].answer == at,
			  "its key keeps its server");
		at = calls[1].answer;
		called = "work";
		delays(2 * MSEC);
		call(2, 10000000, ULRPC_AT_MOST_ONCE);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(2);
	}
	cr_assert_eq(share_of(at), 10);
	end();
}

/* How many of ten calls, each slower than those before, are hedged. */
static unsigned int hedged_of_ten(const char *method)
{
	unsigned int hedged = 0;

	called = method;
	for (unsigned int i = 1; i <= 10; i++) {
		delays(servers[1].delay + 100 * MSEC);
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 5 * SEC);
		went_well(i);
		hedged += calls[i].o.hedged;
	}
	delays(MSEC);
	return hedged;
}

Test(replicas_fair, a_slow_method_hedges_what_its_own_calls_have_earned)
{
	unsigned int slow;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	conf.hedge = 50;
	open_nids(3);
	delays(MSEC);
	for (unsigned int i = 0; i < 40; i++) {
		called = i % 2 ? "work" : "other";
		call(1, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(1);
	}
	slow = hedged_of_ten("work");
	cr_assert_eq(slow, 1, "there were 30 calls of it: %u", slow);
	slow = hedged_of_ten("other");
	cr_assert_eq(slow, 1, "there were 30 calls of it, too: %u", slow);
	end();
}

/* One of three is slow, but not so slow that it is left. */
Test(replicas_fair, a_slow_server_does_not_end_hedging)
{
	unsigned int hedged = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	conf.hedge = 50;
	open_nids(3);
	delays(2 * MSEC);
	servers[3].delay = 10 * MSEC;
	for (unsigned int i = 0; i < 660; i++) {
		call(1, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 15 * MSEC);
		went_well(1);
		hedged += calls[1].o.hedged;
		cr_assert(!calls[1].o.hedged || calls[1].answer != 3);
	}
	cr_assert(hedged >= 10 && hedged <= 33, "%u of 660", hedged);
	end();
}

/* ---- the queue ---- */

#define QUEUE 20u

/* Begins a set that chooses in turn, and whose server 1 does not answer. */
static void begin_hanging(void)
{
	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	conf.client.queue_max = QUEUE;
	open_nids(3);
	delays(MSEC);
	servers[1].delay = 100 * SEC;
}

Test(replicas_fair, a_server_that_hangs_does_not_fill_the_queue)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 60000000 },
	};
	unsigned int hang = 0;

	begin_hanging();
	for (unsigned int i = 1; i < CALLS; i++) {
		ulrpc_replicas_call_put(call_with(i, &how));
		lnet_sim_run(sim, 20 * MSEC);
		hang += !calls[i].n;
	}
	cr_assert(hang >= QUEUE / 2 && hang <= QUEUE / 2 + 1, "%u calls hang",
		  hang);
	end();
}

/* Makes a call with @key. Returns as ulrpc_replicas_call(). */
static int ask_keyed(unsigned int index, uint32_t key)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 60000000 },
		.key = &key,
		.key_length = sizeof(key),
	};
	const uint32_t body = index;

	calls[index] = (struct one){ .began = lnet_sim_now(sim) };
	return ulrpc_replicas_call(rs, ulrpc_method(called), &body,
				   sizeof(body), &how, on_end, &calls[index],
				   NULL);
}

/* Returns a key that leads to server 1, or to another one. */
static uint32_t key_of(bool first)
{
	uint32_t key = 0;

	do
		call_keyed(0, ++key);
	while (lnet_sim_run(sim, SEC), (calls[0].answer == 1) != first);
	return key;
}

Test(replicas_fair, calls_of_one_key_do_not_fill_the_queue)
{
	uint32_t one, other;
	unsigned int n = 1;

	begin_hanging();
	servers[1].delay = MSEC;
	one = key_of(true);
	other = key_of(false);
	servers[1].delay = 100 * SEC;
	while (n < CALLS / 2 && !ask_keyed(n, one)) {
		lnet_sim_run(sim, MSEC);
		n++;
	}
	cr_assert_eq(n - 1, QUEUE / 2, "%u calls were taken", n - 1);
	cr_assert_eq(ask_keyed(0, one), -EAGAIN);
	for (unsigned int i = 0; i < QUEUE; i++) {
		cr_assert_eq(ask_keyed(0, other), 0);
		lnet_sim_run(sim, 20 * MSEC);
		went_well(0);
	}
	/* Those that hang have ended by their deadline. */
	lnet_sim_run(sim, 200 * SEC);
	servers[1].delay = MSEC;
	cr_assert_eq(ask_keyed(0, one), 0);
	lnet_sim_run(sim, 40 * SEC);
	went_well(0);
	end();
}
