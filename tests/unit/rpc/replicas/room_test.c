/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers that refuse, servers for which a set has no room, and sets that have
 * no room for calls. */
#include "rpc/replicas/replicas.h"
#include "rpc/service_set.h"
#include "tests/unit/rpc/replicas/servers.h"

static void refuse_work(unsigned int server)
{
	static const char *const other[] = { "other", NULL };
	const struct ulrpc_rule rule = { .methods = other };
	const struct ulrpc_rules_conf only = { .rules = &rule, .nrules = 1 };
	struct ulrpc_rules *rules;
	char why[256];

	cr_assert_eq(ulrpc_rules_new(&only, &rules, why, sizeof(why)), 0, "%s",
		     why);
	cr_assert_eq(ulrpc_use_rules(servers[server].rpc, rules), 0);
	ulrpc_rules_put(rules);
}

/* Rules are those of the service: what one server does not let the caller do,
 * the others do not either. */
Test(replicas_room, a_call_that_rules_refuse_goes_nowhere_else)
{
	const struct ulnet_nid first = server_nid(1);

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	open_nids(3);
	cr_assert_eq(goes_to(), 1);
	refuse_work(1);
	for (unsigned int i = 0; i < 10; i++) {
		call(1, 30000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, SEC);
		cr_assert_eq(calls[1].n, 1);
		cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_REFUSED);
		cr_assert_eq(calls[1].o.call.execution, ULRPC_NOT_EXECUTED);
		cr_assert_eq(calls[1].o.moves, 0);
		cr_assert_eq(calls[1].executed, 0);
		cr_assert(lnet_nid_eq(&calls[1].o.server, &first));
	}
	/* The server is not left for that. */
	cr_assert_eq(ulrpc_use_rules(servers[1].rpc, NULL), 0);
	cr_assert_eq(goes_to(), 1);
	sim_close();
}

/* A server that has not the method, of a service that the others have. */
Test(replicas_room, an_unknown_method_goes_nowhere_else)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 30000000,
			  .semantics = ULRPC_IDEMPOTENT },
	};

	sim_open(1);
	open_nids(3);
	calls[1] = (struct one){ .began = lnet_sim_now(sim) };
	cr_assert_eq(ulrpc_replicas_call(rs, ulrpc_method("none"), NULL, 0,
					 &how, on_end, &calls[1], NULL),
		     0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(calls[1].n, 1);
	cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_NO_METHOD);
	cr_assert_eq(calls[1].o.moves, 0);
	sim_close();
}

/* The name stands for @first, and for as many servers that are not there as
 * have room beside it. */
static void set_crowd(unsigned int first)
{
	static struct ulnet_address addresses[ULRPC_REPLICAS_MAX];
	const struct ulnet_name_answer a = { .n = ULRPC_REPLICAS_MAX,
					     .addresses = addresses };

	addresses[0] = (struct ulnet_address){ .nid = server_nid(first) };
	for (unsigned int i = 1; i < ULRPC_REPLICAS_MAX; i++)
		addresses[i] = (struct ulnet_address){
			.nid = server_nid(1000 + i),
			.priority = 1,
		};
	cr_assert_eq(lnet_sim_name_set(sim, "servers", &a, 0), 0);
}

Test(replicas_room, a_server_for_which_there_was_no_room_is_called_later)
{
	sim_open(1);
	set_crowd(1);
	conf.client.target = "servers";
	conf.choice = ULRPC_CHOOSE_FIRST;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	cr_assert_eq(goes_to(), 1);
	servers[1].delay = 10 * SEC;
	call(1, 30000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, MSEC);
	/* Server 1 has a call, so there is no room for server 2. */
	set_crowd(2);
	lnet_sim_run(sim, 20 * SEC);
	went_well(1);
	cr_assert_eq(goes_to(), 2);
	cr_assert_eq(calls[0].o.moves, 0);
	sim_close();
}

/* Makes @n calls, from number @i on, and lets time go on a little after each.
 */
static void call_some(unsigned int i, unsigned int n)
{
	while (n--) {
		call(i++, ULRPC_NEVER, ULRPC_AT_MOST_ONCE);
		lnet_sim_run(sim, 10 * MSEC);
	}
}

static unsigned int moves(unsigned int i, unsigned int n)
{
	unsigned int sum = 0;

	for (; n--; i++) {
		cr_assert_eq(calls[i].o.call.cause, ULRPC_CAUSE_OK);
		sum += calls[i].o.moves;
	}
	return sum;
}

/* It has less to do than the other one, as it does not take more. */
Test(replicas_room, a_server_that_is_full_comes_last_for_a_while)
{
	sim_open(1);
	servers[1].retry_after = 2000000;
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	conf.choice = ULRPC_CHOOSE_LEAST;
	open_nids(2);
	call_some(1, 40); /* ends the slow start of the clients */
	cr_assert_eq(moves(1, 40), 0);
	servers[1].delay = servers[2].delay = 5 * SEC;
	call_some(1, 20);
	lnet_sim_run(sim, 1900 * MSEC);
	/* After two seconds it is asked again, and is still full. */
	call_some(21, 10);
	lnet_sim_run(sim, 60 * SEC);
	cr_assert_eq(moves(1, 20), 1, "%u", moves(1, 20));
	cr_assert_eq(moves(21, 10), 1, "%u", moves(21, 10));
	servers[1].delay = servers[2].delay = 0;
	servers[1].executed = 0;
	call_some(1, 20);
	cr_assert_gt(servers[1].executed, 0, "it is used as before");
	sim_close();
}

/* ---- "rpc set" ---- */

static int change_run(void *arg)
{
	struct shard *s = rs->shard;

	s->rpc->client->set_clients(s, arg);
	return 0;
}

/* Sets an item of the set, unless @item is CLIENT_SET_ITEMS. Returns what it
 * has then. */
static struct client_set change(enum client_set_item item, uint64_t value)
{
	struct client_set set = { .service = "test" };

	if (item != CLIENT_SET_ITEMS) {
		set.given = 1u << item;
		set.values[item] = value;
	}
	cr_assert_eq(lnet_call(rpc->node, rs->shard->cpt, change_run, &set), 0);
	cr_assert_eq(set.sets, 1);
	return set;
}

/* Makes calls, from number @i on, until the set takes no more, but at most ten.
 * Returns how many. */
static unsigned int taken(unsigned int i)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = ULRPC_NEVER },
	};
	unsigned int n;
	int rc = 0;

	for (n = 0; n < 10; n++) {
		const uint32_t body = i + n;

		calls[body] = (struct one){ .began = lnet_sim_now(sim) };
		rc = ulrpc_replicas_call(rs, ulrpc_method("work"), &body,
					 sizeof(body), &how, on_end,
					 &calls[body], NULL);
		if (rc)
			break;
	}
	if (n < 10)
		cr_assert_eq(rc, -EAGAIN);
	lnet_sim_run(sim, MSEC);
	return n;
}

/* The queue is the set's, and no server has a limit of its own. */
Test(replicas_room, a_changed_queue_is_that_of_the_set)
{
	struct client_set now;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	open_nids(2);
	cr_assert_neq(goes_to(), goes_to());
	now = change(CLIENT_SET_ITEMS, 0);
	cr_assert_eq(now.clients, 2);
	cr_assert_eq(now.now[CLIENT_SET_queue_max], 1 << 20);
	cr_assert_eq(now.now[CLIENT_SET_queue_bytes], 1 << 30);
	cr_assert_eq(now.now[CLIENT_SET_inflight_max], 1024);
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = 5 * SEC;
	now = change(CLIENT_SET_queue_max, 3);
	cr_assert_eq(now.now[CLIENT_SET_queue_max], 3);
	cr_assert_eq(taken(1), 3);
	change(CLIENT_SET_queue_max, 5);
	cr_assert_eq(taken(11), 2);
	/* What is more already, stays. */
	change(CLIENT_SET_queue_max, 1);
	cr_assert_eq(taken(21), 0);
	lnet_sim_run(sim, 6 * SEC);
	for (unsigned int i = 1; i <= 3; i++)
		went_well(i);
	cr_assert_eq(taken(21), 1);
	change(CLIENT_SET_queue_max, 100);
	change(CLIENT_SET_queue_bytes, 4 * sizeof(uint32_t));
	cr_assert_eq(taken(31), 3);
	lnet_sim_run(sim, 6 * SEC);
	sim_close();
}

/* A set without servers has a queue, too, and servers that come later are
 * called as was set before. */
Test(replicas_room, a_change_counts_for_servers_that_come)
{
	struct client_set now;

	sim_open(1);
	conf.client.target = "servers";
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
	now = change(CLIENT_SET_inflight_max, 2);
	cr_assert_eq(now.clients, 0);
	now = change(CLIENT_SET_reply_limit, 12345);
	cr_assert_eq(now.now[CLIENT_SET_reply_limit], 12345);
	set_servers(SERVERS_OF(1));
	lnet_sim_run(sim, SEC);
	now = change(CLIENT_SET_ITEMS, 0);
	cr_assert_eq(now.clients, 1);
	cr_assert_eq(now.now[CLIENT_SET_inflight_max], 2);
	cr_assert_eq(now.now[CLIENT_SET_reply_limit], 12345);
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_eq(goes_to(), 1);
	servers[1].delay = 5 * SEC;
	servers[1].executed = 0;
	cr_assert_eq(taken(1), 10);
	cr_assert_eq(servers[1].executed, 2);
	lnet_sim_run(sim, 60 * SEC);
	for (unsigned int i = 1; i <= 10; i++)
		went_well(i);
	sim_close();
}
