/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls to several servers: where they go, and where they go on. */
#include "tests/unit/rpc/replicas/servers.h"
#include "ulnet/intercept.h"

Test(replicas, the_first_and_in_turn)
{
	unsigned int n[SERVERS + 1] = { 0 };

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(3);
	for (int i = 0; i < 5; i++)
		cr_assert_eq(goes_to(), 1);
	ulrpc_replicas_close(rs);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(3);
	for (int i = 0; i < 9; i++)
		n[goes_to()]++;
	for (int i = 1; i <= SERVERS; i++)
		cr_assert_eq(n[i], 3);
	sim_close();
}

Test(replicas, on_several_cpts_too)
{
	unsigned int n[SERVERS + 1] = { 0 };

	sim_open(4);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(3);
	for (int i = 0; i < 9; i++)
		n[goes_to()]++;
	for (int i = 1; i <= SERVERS; i++)
		cr_assert_eq(n[i], 3);
	sim_close();
}

Test(replicas, bad_configurations_are_refused)
{
	const struct ulnet_nid twice[] = { server_nid(1), server_nid(1) };
	struct ulnet_conf_error err;

	sim_open(1);
	conf.client.err = &err;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), -EINVAL);
	cr_assert_str_eq(err.what, "nids: there are none");
	conf.client.nids = twice;
	conf.client.nnids = 2;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), -EINVAL);
	cr_assert_str_eq(err.what, "nids: 10.0.0.2@tcp comes twice");
	conf.client.target = "servers";
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), -EINVAL);
	cr_assert_str_eq(err.what, "nids: target is set, too");
	conf.client.nnids = 0;
	conf.client.nids = NULL;
	conf.hedge = 1001;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), -EINVAL);
	cr_assert_str_eq(err.what, "hedge: 1001 is more than 1000");
	conf.hedge = 0;
	conf.choice = (enum ulrpc_choice)3;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), -EINVAL);
	cr_assert_str_eq(err.what, "choice: 3 is none");
	conf.choice = ULRPC_CHOOSE_LEAST;
	conf.client.service = NULL;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), -EINVAL);
	cr_assert_str_eq(err.what, "service: a name is expected");
	rs = NULL;
	sim_close();
}

Test(replicas, a_server_that_is_not_there_is_passed_over)
{
	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	open_nids(3);
	cr_assert_eq(goes_to(), 2);
	cr_assert_eq(calls[0].o.moves, 1);
	cr_assert_leq(calls[0].took, 150 * MSEC);
	cr_assert_eq(goes_to(), 2);
	cr_assert_leq(calls[0].took, 150 * MSEC);
	/* It comes back, and is called again after a while. */
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	for (int i = 0; i < 60 && goes_to() != 1; i++)
		;
	cr_assert_eq(goes_to(), 1);
	sim_close();
}

Test(replicas, a_call_with_bulk_goes_on_too)
{
	char memory[100] = "";
	const struct iovec iov = { memory, sizeof(memory) };
	const struct ulrpc_bulk_conf source = {
		.iov = &iov,
		.niov = 1,
		.access = ULRPC_BULK_SOURCE,
	};
	struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 10000000, .nbulks = 1 },
	};
	struct ulrpc_bulk *bulk;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	open_nids(3);
	cr_assert_eq(ulrpc_bulk_new(rpc, &source, &bulk), 0);
	how.call.bulks = &bulk;
	ulrpc_replicas_call_put(call_with(0, &how));
	lnet_sim_run(sim, SEC);
	went_well(0);
	cr_assert_eq(calls[0].answer, 2);
	cr_assert_eq(calls[0].o.moves, 1);
	cr_assert(calls[0].o.call.bulk_free);
	ulrpc_bulk_close(bulk, NULL, NULL);
	sim_close();
}

Test(replicas, a_call_with_a_context_goes_on_too)
{
	struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 30000000 },
	};
	struct ulrpc_context *context;

	sim_open(1);
	open_nids(3);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
	cr_assert_eq(ulrpc_context_new(&context), 0);
	cr_assert_eq(ulrpc_context_add(context, "user", "anna", 4), 0);
	how.call.context = context;
	ulrpc_replicas_call_put(call_with(0, &how));
	/* The call has what it needs. */
	ulrpc_context_free(context);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(calls[0].n, 0);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_restart(sim, i), 0);
	lnet_sim_run(sim, 5 * SEC);
	went_well(0);
	cr_assert_str_eq(said, "anna");
	sim_close();
}

Test(replicas, nothing_is_lost_when_a_server_is_killed)
{
	uint64_t longest = 0;
	unsigned int moved = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(3);
	for (int i = 0; i < 6; i++)
		goes_to();
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = 10 * MSEC;
	for (unsigned int i = 0; i < 16; i++)
		call(i, 30000000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, 5 * MSEC);
	cr_assert_eq(lnet_sim_crash(sim, 2), 0);
	lnet_sim_run(sim, 40 * SEC);
	for (unsigned int i = 0; i < 16; i++) {
		went_well(i);
		longest = MAX(longest, calls[i].took);
		moved += calls[i].o.moves;
	}
	cr_assert_geq(moved, 5);
	cr_assert_leq(longest, 200 * MSEC, "the longest took %u ms",
		      (unsigned int)(longest / MSEC));
	sim_close();
}

Test(replicas, what_may_have_run_is_not_made_again)
{
	const struct ulnet_nid nid = server_nid(1);
	unsigned int lost = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(3);
	cr_assert_eq(goes_to(), 1);
	servers[1].delay = 10 * MSEC;
	for (unsigned int i = 0; i < 8; i++)
		call(i, 5000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 5 * MSEC);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	lnet_sim_run(sim, 10 * SEC);
	for (unsigned int i = 0; i < 8; i++) {
		cr_assert_eq(calls[i].executed, 1);
		if (calls[i].by != 1) { /* it had not been sent */
			went_well(i);
			continue;
		}
		lost++;
		cr_assert_eq(calls[i].n, 1);
		cr_assert_neq(calls[i].o.call.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(calls[i].o.call.execution,
			     ULRPC_EXECUTION_UNKNOWN);
		cr_assert_eq(calls[i].o.moves, 0);
		cr_assert(lnet_nid_eq(&calls[i].o.server, &nid));
	}
	cr_assert(lost && lost < 8, "%u were under way", lost);
	cr_assert_eq(goes_to(), 2, "what comes then goes elsewhere");
	sim_close();
}

static void on_shut(void *arg, int status)
{
	(void)status;
	*(bool *)arg = true;
}

Test(replicas, a_server_that_shuts_down_is_left_before_it_is_gone)
{
	bool shut = false;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(3);
	cr_assert_eq(goes_to(), 1);
	servers[1].delay = 100 * MSEC;
	call(0, 5000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(ulrpc_shutdown(servers[1].rpc, 10000000, on_shut, &shut),
		     0);
	for (unsigned int i = 1; i <= 8; i++)
		call(i, 5000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 20 * MSEC);
	cr_assert_not(shut, "it still has a call");
	for (unsigned int i = 1; i <= 8; i++) {
		went_well(i);
		cr_assert_eq(calls[i].answer, 2);
		cr_assert_eq(calls[i].executed, 1);
	}
	lnet_sim_run(sim, SEC);
	cr_assert(shut);
	went_well(0);
	cr_assert_eq(calls[0].answer, 1);
	cr_assert_eq(goes_to(), 2);
	sim_close();
}

Test(replicas, a_key_keeps_its_server)
{
	unsigned int first[20], n[SERVERS + 1] = { 0 };

	sim_open(1);
	open_nids(3);
	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 20; i++) {
			const struct ulrpc_replicas_call_conf how = {
				.call = { .deadline = 10000000 },
				.key = &i,
				.key_length = sizeof(i),
			};

			ulrpc_replicas_call_put(call_with(i, &how));
		}
		if (round == 2)
			cr_assert_eq(lnet_sim_crash(sim, 3), 0);
		lnet_sim_run(sim, 20 * SEC);
		for (unsigned int i = 0; i < 20; i++) {
			went_well(i);
			if (!round)
				n[first[i] = calls[i].answer]++;
			else if (round == 1 || first[i] != 3)
				cr_assert_eq(calls[i].answer, first[i]);
			else
				cr_assert_neq(calls[i].answer, 3);
		}
	}
	for (int i = 1; i <= SERVERS; i++)
		cr_assert(n[i] > 2, "server %d has %u keys", i, n[i]);
	sim_close();
}

/* Makes the same call again when it has ended. */
static uint64_t again_until;

static void on_end_again(void *arg, const struct ulrpc_replicas_outcome *o,
			 const void *reply, size_t length)
{
	struct one *one = arg;
	const uint32_t index = (uint32_t)(one - calls);
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 10000000 },
	};

	cr_assert_eq(o->call.cause, ULRPC_CAUSE_OK);
	on_end(arg, o, reply, length);
	if (lnet_sim_now(sim) < again_until)
		cr_assert_eq(ulrpc_replicas_call(rs, ulrpc_method("work"),
						 &index, sizeof(index), &how,
						 on_end_again, one, NULL),
			     0);
}

Test(replicas, servers_of_unequal_speed_get_what_they_can_do)
{
	const struct ulrpc_replicas_outcome ok = {
		.call = { .cause = ULRPC_CAUSE_OK },
	};
	unsigned int all;

	sim_open(1);
	open_nids(3);
	for (int i = 0; i < 6; i++)
		goes_to();
	for (int i = 1; i <= SERVERS; i++) {
		servers[i].delay = (MSEC / 2) << i; /* 1, 2 and 4 ms */
		servers[i].executed = 0;
	}
	again_until = lnet_sim_now(sim) + 2 * SEC;
	memset(calls, 0, sizeof(calls));
	for (unsigned int i = 0; i < 24; i++) {
		calls[i].began = lnet_sim_now(sim);
		on_end_again(&calls[i], &ok, NULL, 0);
	}
	lnet_sim_run(sim, 10 * SEC);
	all = servers[1].executed + servers[2].executed + servers[3].executed;
	/* Shares of 4, 2 and 1 of 7, within a fifth of each. */
	for (unsigned int i = 1; i <= SERVERS; i++) {
		unsigned int due = all * (8U >> i) / 7;

		cr_assert(servers[i].executed > due * 4 / 5 &&
				  servers[i].executed < due * 6 / 5,
			  "server %u: %u of %u calls", i, servers[i].executed,
			  all);
	}
	sim_close();
}

Test(replicas, a_slow_server_is_left_and_tried_again)
{
	unsigned int before;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(3);
	servers[1].delay = servers[2].delay = MSEC;
	servers[3].delay = 50 * MSEC;
	for (int i = 0; i < 60; i++) {
		call(1, 10000000, ULRPC_AT_MOST_ONCE);
		lnet_sim_run(sim, 100 * MSEC);
		went_well(1);
	}
	before = servers[3].executed;
	cr_assert(before >= 16 && before <= 19, "%u calls", before);
	/* It is as fast as the others now, and one call finds out. */
	servers[3].delay = MSEC;
	for (int i = 0; i < 60; i++) {
		call(1, 10000000, ULRPC_AT_MOST_ONCE);
		lnet_sim_run(sim, 100 * MSEC);
		went_well(1);
	}
	cr_assert_geq(servers[3].executed, before + 15);
	sim_close();
}

Test(replicas, servers_come_and_go_with_the_name)
{
	sim_open(1);
	set_servers(SERVERS_OF(3, 2));
	conf.client.target = "servers";
	conf.choice = ULRPC_CHOOSE_FIRST;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	cr_assert_eq(goes_to(), 3);
	/* A new order moves nothing. */
	set_servers(SERVERS_OF(1, 2, 3));
	cr_assert_eq(goes_to(), 3);
	/* What is under way at a server that goes is answered by it. */
	servers[3].delay = 100 * MSEC;
	call(1, 10000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 10 * MSEC);
	set_servers(SERVERS_OF(1, 2));
	cr_assert_eq(goes_to(), 2);
	lnet_sim_run(sim, SEC);
	went_well(1);
	cr_assert_eq(calls[1].answer, 3);
	cr_assert_eq(calls[1].executed, 1);
	/* It may come back at once. */
	set_servers(SERVERS_OF(3));
	servers[3].delay = 0;
	cr_assert_eq(goes_to(), 3);
	sim_close();
}

Test(replicas, each_nid_of_a_text_is_a_server)
{
	sim_open(1);
	conf.client.target = "10.0.0.3@tcp,10.0.0.2@tcp";
	conf.choice = ULRPC_CHOOSE_TURNS;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	cr_assert_eq(goes_to(), 2);
	cr_assert_eq(goes_to(), 1);
	cr_assert_eq(goes_to(), 2);
	sim_close();
}

Test(replicas, a_name_that_is_not_known_is_a_cause)
{
	const struct ulrpc_retry none = { .max = 0 };
	const struct ulrpc_replicas_call_conf once = {
		.call = { .deadline = 20000000, .retry = &none },
	};

	sim_open(1);
	conf.client.target = "servers";
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	call(0, 2000000, ULRPC_AT_MOST_ONCE);
	call(1, 20000000, ULRPC_AT_MOST_ONCE);
	ulrpc_replicas_call_put(call_with(2, &once));
	lnet_sim_run(sim, SEC);
	ulrpc_replicas_call_put(call_with(3, &once));
	cr_assert_eq(calls[3].n, 0, "not inside of the function");
	lnet_sim_run(sim, 2 * SEC);
	for (unsigned int i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		cr_assert_eq(calls[i].n, 1, "call %u", i);
		cr_assert_eq(calls[i].o.call.cause, ULRPC_CAUSE_NAME);
		cr_assert_eq(calls[i].o.call.execution, ULRPC_NOT_EXECUTED);
		cr_assert_str_eq(calls[i].o.call.text,
				 "servers: there is no such name");
		cr_assert(lnet_nid_is_any(&calls[i].o.server));
	}
	cr_assert_eq(calls[1].n, 0);
	set_servers(SERVERS_OF(2));
	lnet_sim_run(sim, SEC);
	went_well(1);
	sim_close();
}

Test(replicas, none_is_there_and_one_comes)
{
	const struct ulrpc_retry none = { .max = 0 };
	const struct ulrpc_replicas_call_conf once = {
		.call = { .deadline = 20000000, .retry = &none },
	};

	sim_open(1);
	open_nids(3);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
	call(0, 2000000, ULRPC_AT_MOST_ONCE);
	call(1, 60000000, ULRPC_AT_MOST_ONCE);
	ulrpc_replicas_call_put(call_with(2, &once));
	lnet_sim_run(sim, 15 * SEC);
	cr_assert_eq(calls[0].n, 1);
	cr_assert_eq(calls[0].o.call.cause, ULRPC_CAUSE_UNREACHABLE, "%s",
		     ulrpc_cause_name(calls[0].o.call.cause));
	cr_assert_eq(calls[0].o.call.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(calls[0].took, 2 * SEC);
	cr_assert_eq(calls[2].n, 1, "without retries it was at each once");
	cr_assert_eq(calls[2].o.call.execution, ULRPC_NOT_EXECUTED);
	cr_assert_leq(calls[2].took, SEC);
	cr_assert_eq(calls[1].n, 0);
	cr_assert_eq(lnet_sim_restart(sim, 2), 0);
	lnet_sim_run(sim, 10 * SEC);
	went_well(1);
	sim_close();
}

Test(replicas, a_call_that_does_not_wait_ends_when_all_are_away)
{
	const struct ulrpc_replicas_call_conf hasty = {
		.call = { .deadline = 60000000,
			  .wait_for_ready = ULRPC_WAIT_NOT },
	};
	struct ulrpc_replicas_call_conf bad = hasty;

	sim_open(1);
	open_nids(3);
	bad.call.wait_for_ready = (enum ulrpc_wait)3;
	cr_assert_eq(
		ulrpc_replicas_call(rs, 1, NULL, 0, &bad, on_end, NULL, NULL),
		-EINVAL);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	cr_assert_eq(lnet_sim_crash(sim, 2), 0);
	ulrpc_replicas_call_put(call_with(0, &hasty));
	lnet_sim_run(sim, 10 * SEC);
	went_well(0);
	cr_assert_eq(calls[0].answer, 3);
	cr_assert_eq(lnet_sim_crash(sim, 3), 0);
	lnet_sim_run(sim, SEC);
	ulrpc_replicas_call_put(call_with(1, &hasty));
	call(2, 60000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(calls[1].n, 1);
	cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_UNREACHABLE, "%s",
		     ulrpc_cause_name(calls[1].o.call.cause));
	cr_assert_eq(calls[1].o.call.execution, ULRPC_NOT_EXECUTED);
	cr_assert_leq(calls[1].took, 2 * SEC);
	cr_assert_eq(calls[2].n, 0);
	cr_assert_eq(lnet_sim_restart(sim, 2), 0);
	lnet_sim_run(sim, 20 * SEC);
	went_well(2);
	sim_close();
}

/* Connections are made, but it takes longer than a call stays with a server
 * that is not connected. */
Test(replicas, a_call_that_does_not_wait_waits_for_connections)
{
	const struct ulnet_sim_link slow = { .latency = 150 * MSEC };
	const struct ulrpc_replicas_call_conf hasty = {
		.call = { .deadline = 60000000,
			  .wait_for_ready = ULRPC_WAIT_NOT },
	};

	sim_open(1);
	cr_assert_eq(
		lnet_sim_link_set(sim, &LNET_NID_ANY, &LNET_NID_ANY, &slow), 0);
	open_nids(3);
	ulrpc_replicas_call_put(call_with(0, &hasty));
	lnet_sim_run(sim, 20 * SEC);
	went_well(0);
	sim_close();
}

Test(replicas, only_so_many_calls_wait)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 60000000 },
	};
	uint32_t body = 3;

	sim_open(1);
	conf.client.queue_max = 2;
	open_nids(3);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
	call(0, 60000000, ULRPC_AT_MOST_ONCE);
	call(1, 60000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(ulrpc_replicas_call(rs, ulrpc_method("work"), &body,
					 sizeof(body), &how, on_end, &calls[3],
					 NULL),
		     -EAGAIN);
	cr_assert_eq(lnet_sim_restart(sim, 2), 0);
	lnet_sim_run(sim, 20 * SEC);
	went_well(0);
	went_well(1);
	call(2, 60000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, SEC);
	went_well(2);
	sim_close();
}

Test(replicas, cancel_and_close)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = ULRPC_NEVER,
			  .semantics = ULRPC_IDEMPOTENT },
	};
	struct ulrpc_replicas_call *some[4];

	sim_open(1);
	open_nids(3);
	goes_to();
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = 10 * SEC;
	for (unsigned int i = 0; i < 4; i++)
		some[i] = call_with(i, &how);
	lnet_sim_run(sim, 10 * MSEC);
	ulrpc_replicas_cancel(some[1]);
	ulrpc_replicas_cancel(some[1]);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(calls[0].n, 0);
	cr_assert_eq(calls[1].n, 1);
	cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_CANCELED);
	cr_assert_eq(calls[1].o.call.execution, ULRPC_EXECUTION_UNKNOWN);
	ulrpc_replicas_close(rs);
	rs = NULL;
	lnet_sim_run(sim, MSEC);
	for (unsigned int i = 0; i < 4; i++) {
		cr_assert_eq(calls[i].n, 1);
		cr_assert_eq(calls[i].o.call.cause, ULRPC_CAUSE_CANCELED);
		ulrpc_replicas_cancel(some[i]);
		ulrpc_replicas_call_put(some[i]);
	}
	lnet_sim_run(sim, 20 * SEC);
	sim_close();
}

Test(replicas, rpc_that_closes_ends_calls)
{
	sim_open(1);
	open_nids(3);
	goes_to();
	for (int i = 1; i <= SERVERS; i++) {
		servers[i].delay = 10 * SEC;
		if (i > 1)
			cr_assert_eq(lnet_sim_crash(sim, (unsigned int)i), 0);
	}
	for (unsigned int i = 0; i < 9; i++)
		call(i, 100000000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(ulrpc_close(rpc), 0);
	for (unsigned int i = 0; i < 9; i++)
		cr_assert_eq(calls[i].n, 1);
	rs = NULL;
	lnet_sim_run(sim, 20 * SEC);
	sim_close();
}

Test(replicas, a_crash_of_the_caller_leaves_nothing)
{
	sim_open(1);
	open_nids(3);
	goes_to();
	cr_assert_eq(lnet_sim_crash(sim, 3), 0);
	servers[1].delay = 10 * SEC;
	for (unsigned int i = 0; i < 9; i++)
		call(i, 100000000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, 10 * MSEC);
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	rs = NULL;
	lnet_sim_run(sim, 20 * SEC);
	sim_close();
}

Test(replicas, a_call_may_wait)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 10000000 },
	};
	struct ulrpc_replicas_outcome o;
	const uint32_t body = 0;
	uint32_t answer;
	size_t length;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(3);
	cr_assert_eq(ulrpc_replicas_call_wait(rs, ulrpc_method("work"), &body,
					      sizeof(body), &how, &answer,
					      sizeof(answer), &length, &o),
		     0);
	cr_assert_eq(o.call.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(length, sizeof(answer));
	cr_assert_eq(answer, 1);
	cr_assert_eq(ulrpc_replicas_rpc(rs), rpc);
	cr_assert_eq(ulrpc_replicas_cpt(rs), 0);
	sim_close();
}

/* The server of a name is out of reach, and the name gets more servers. */
Test(replicas, a_call_leaves_a_lone_server_for_new_ones)
{
	const struct ulnet_nid cut = server_nid(1), own = server_nid(0);

	sim_open(1);
	set_servers(SERVERS_OF(1));
	cr_assert_eq(lnet_sim_partition(sim, &cut, &own, true), 0);
	conf.client.target = "servers";
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	call(1, 300000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 10 * MSEC);
	set_servers(SERVERS_OF(1, 2, 3));
	lnet_sim_run(sim, 40 * MSEC);
	cr_assert_eq(calls[1].n, 0, "it waits for the one that it is at");
	lnet_sim_run(sim, SEC);
	went_well(1);
	cr_assert_leq(calls[1].took, 150 * MSEC);
	/* So it is if the others come later than that. */
	set_servers(SERVERS_OF(1));
	call(1, 300000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(calls[1].n, 0);
	set_servers(SERVERS_OF(1, 2));
	lnet_sim_run(sim, 100 * MSEC);
	went_well(1);
	sim_close();
}

Test(replicas, deadlines_too_short_say_nothing_of_servers)
{
	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(3);
	servers[1].delay = 10 * MSEC;
	for (int i = 0; i < 24; i++)
		cr_assert_eq(goes_to(), 1);
	for (unsigned int i = 0; i < 20; i++) {
		call(1, 1000, ULRPC_AT_MOST_ONCE);
		lnet_sim_run(sim, 50 * MSEC);
		cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_DEADLINE);
	}
	cr_assert_eq(goes_to(), 1);
	/* It does not answer in the time that it takes. */
	servers[1].delay = SEC;
	for (unsigned int i = 0; i < 5; i++) {
		call(1, 100000, ULRPC_AT_MOST_ONCE);
		lnet_sim_run(sim, 150 * MSEC);
		cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_DEADLINE);
	}
	cr_assert_eq(goes_to(), 2);
	lnet_sim_run(sim, 5 * SEC);
	sim_close();
}

Test(replicas, the_shortest_pause_that_is_asked_for_counts)
{
	static const uint64_t hour = UINT64_C(3600000000);
	unsigned int n = 0;

	sim_open(1);
	for (unsigned int i = 1; i <= 2; i++) {
		servers[i].delay = 20 * MSEC;
		servers[i].retry_after = i == 1 ? 1000000 : hour;
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
		cr_assert_eq(lnet_sim_restart(sim, i), 0);
	}
	open_nids(2);
	for (unsigned int i = 0; i < 40; i++)
		call(i, 2 * hour, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 60 * SEC);
	for (unsigned int i = 0; i < 40; i++)
		n += calls[i].n;
	cr_assert_eq(n, 40, "%u of 40", n);
	/* If all ask for an hour, the pause is half a minute. */
	for (unsigned int i = 1; i <= 2; i++) {
		servers[i].retry_after = hour;
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
		cr_assert_eq(lnet_sim_restart(sim, i), 0);
	}
	lnet_sim_run(sim, 40 * SEC);
	for (unsigned int i = 0; i < 8; i++)
		call(i, 2 * hour, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 600 * SEC);
	for (unsigned int i = 0; i < 8; i++)
		cr_assert_eq(calls[i].n, 1, "call %u", i);
	sim_close();
}

/* Outside of turns, time goes on inside of the function that makes a call. */
static void on_real_end(void *arg, const struct ulrpc_replicas_outcome *o,
			const void *reply, size_t length)
{
	(void)o;
	(void)reply;
	(void)length;
	++*(unsigned int *)arg;
}

#define SHORT_CALLS 2000

struct held {
	struct ulrpc_request *requests[SHORT_CALLS];
	unsigned int n;
};

static void hold(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct held *held = arg;

	(void)body;
	(void)length;
	cr_assert_lt(held->n, SHORT_CALLS);
	held->requests[held->n++] = r;
}

Test(replicas, the_shortest_deadlines_are_deadlines)
{
	static struct held held;
	const struct ulrpc_method_conf methods[] = {
		{ .name = "work",
		  .handler = hold,
		  .arg = &held,
		  .run = ULRPC_RUN_INLINE },
	};
	const struct ulnet_nid own = LNET_NID_LO;
	struct ulrpc_service_conf service;
	struct ulrpc_service *svc;
	struct ulnet_conf node_conf;
	unsigned int made = 0, ended = 0;
	struct lnet *node;

	lnet_conf_init(&node_conf);
	node_conf.run = LNET_RUN_POLL;
	cr_assert_eq(lnet_open(&node_conf, &node), 0);
	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	ulrpc_service_conf_init(&service);
	service.name = "test";
	service.methods = methods;
	service.nmethods = ARRAY_SIZE(methods);
	cr_assert_eq(ulrpc_service_start(rpc, &service, &svc), 0);
	ulrpc_replicas_conf_init(&conf);
	conf.client.service = "test";
	conf.client.nids = &own;
	conf.client.nnids = 1;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	for (; made < SHORT_CALLS; made++) {
		const struct ulrpc_replicas_call_conf how = {
			.call = { .deadline = 1 + made % 3 },
		};

		cr_assert_eq(ulrpc_replicas_call(rs, ulrpc_method("work"), NULL,
						 0, &how, on_real_end, &ended,
						 NULL),
			     0);
	}
	while (ended < made)
		lnet_poll(node, 10000);
	cr_assert_eq(ended, made);
	while (held.n)
		ulrpc_reply(held.requests[--held.n], NULL, 0);
	ulrpc_replicas_close(rs);
	lnet_close(node);
}

/* ---- interceptors ---- */

static unsigned int begun, ended;
static int refusal;

static int on_begin(void *arg, struct ulrpc_call_start *s)
{
	(void)arg;
	(void)s;
	begun++;
	return refusal;
}

static void on_attempt(void *arg, void *state, const struct ulrpc_call_end *e)
{
	(void)arg;
	(void)state;
	(void)e;
	ended++;
}

/* Each attempt is intercepted; one that is refused goes to no other server. */
Test(replicas, interceptors)
{
	struct ulrpc_call_interceptor one = { on_begin, on_attempt, NULL };

	sim_open(1);
	conf.client.interceptors = &one;
	conf.client.ninterceptors = 1;
	open_nids(SERVERS);
	/* a copy is used */
	memset(&one, 0, sizeof(one));
	call(0, 1000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, SEC);
	went_well(0);
	cr_expect_eq(begun, 1);
	cr_expect_eq(ended, 1);
	refusal = -EPERM;
	call(1, 1000000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, SEC);
	cr_expect_eq(calls[1].n, 1);
	cr_expect_eq(calls[1].o.call.cause, ULRPC_CAUSE_INTERCEPTED);
	cr_expect_eq(calls[1].o.call.status, -EPERM);
	cr_expect_eq(calls[1].executed, 0);
	cr_expect_eq(calls[1].o.moves, 0);
	cr_expect_eq(begun, 2);
	sim_close();
}
