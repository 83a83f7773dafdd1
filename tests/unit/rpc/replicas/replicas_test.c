/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls to several servers: where they go, and where they go on. Node 0 calls,
 * nodes 1 to 3 serve. */
#include "ulnet/replicas.h"

#include "tests/unit/lnet/cluster.h"
#include "ulnet/context.h"
#include "ulnet/service.h"

#define SEC	(1000 * MSEC)
#define SERVERS 3
#define CALLS	64

struct server {
	struct ulrpc *rpc;
	unsigned int life;
	uint64_t delay; /* ns of a call of "work" */
	unsigned int executed;
};

struct one {
	unsigned int n;		   /* how often it has ended */
	uint64_t began, took;	   /* ns */
	unsigned int executed, by; /* how often, and by which server last */
	struct ulrpc_replicas_outcome o;
	uint32_t answer;
};

struct later {
	struct ulrpc_request *request;
	unsigned int server, life;
	uint32_t answer;
};

static struct lnet_sim *sim;
static struct ulrpc *rpc;
static struct ulrpc_replicas *rs;
static struct ulrpc_replicas_conf conf;
static struct server servers[SERVERS + 1];
static struct one calls[CALLS];
static char said[16]; /* metadata of the last request */

TestSuite(replicas, .timeout = 60);

static void reply_later(void *arg)
{
	struct later *l = arg;

	if (lnet_sim_node(sim, l->server) && servers[l->server].life == l->life)
		ulrpc_reply(l->request, &l->answer, sizeof(l->answer));
	free(l);
}

/* Answers with the number of the server, after its delay. */
static void work(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct server *s = arg;
	struct later *l = malloc(sizeof(*l));
	struct ulrpc_metadata pair;
	uint32_t index;

	cr_assert_eq(length, sizeof(index));
	memcpy(&index, body, sizeof(index));
	calls[index].executed++;
	if (!ulrpc_request_find(r, "user", &pair))
		snprintf(said, sizeof(said), "%.*s", (int)pair.length,
			 (const char *)pair.value);
	calls[index].by = (unsigned int)(s - servers);
	s->executed++;
	*l = (struct later){ r, (unsigned int)(s - servers), s->life,
			     (uint32_t)(s - servers) };
	cr_assert_eq(lnet_sim_at(sim, s->delay, reply_later, l), 0);
}

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct server *s = &servers[index];
	const struct ulrpc_method_conf methods[] = {
		{ .name = "work", .handler = work, .arg = s },
	};
	struct ulrpc_service_conf service;
	struct ulrpc_service *svc;

	(void)arg;
	s->life++;
	cr_assert_eq(ulrpc_open(node, NULL, &s->rpc), 0);
	if (!index) {
		rpc = s->rpc;
		return 0;
	}
	ulrpc_service_conf_init(&service);
	service.name = "test";
	service.methods = methods;
	service.nmethods = ARRAY_SIZE(methods);
	cr_assert_eq(ulrpc_service_start(s->rpc, &service, &svc), 0);
	return 0;
}

static struct ulnet_nid server_nid(unsigned int index)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
			     0x0a000000 + index + 1);
}

/* @apart: each node has turns of its own, and so can be late. */
static void sim_open_as(unsigned int cpts, bool apart)
{
	static const struct ulnet_sim_link link = { .latency = 50000,
						    .connect = 100000 };
	char nid[LNET_NIDSTR_SIZE];

	memset(servers, 0, sizeof(servers));
	memset(calls, 0, sizeof(calls));
	said[0] = 0;
	cr_assert_eq(lnet_sim_new(7, cpts, &sim), 0);
	if (apart)
		lnet_sim_apart(sim);
	cr_assert_eq(
		lnet_sim_link_set(sim, &LNET_NID_ANY, &LNET_NID_ANY, &link), 0);
	for (unsigned int i = 0; i <= SERVERS; i++) {
		struct ulnet_nid own = server_nid(i);

		lnet_nid_format(&own, nid, sizeof(nid));
		cr_assert_eq(lnet_sim_node_add(sim, nid, NULL, start, NULL),
			     (int)i);
	}
	ulrpc_replicas_conf_init(&conf);
	conf.client.service = "test";
}

static void sim_open(unsigned int cpts)
{
	sim_open_as(cpts, false);
}

static void sim_close(void)
{
	ulrpc_replicas_close(rs);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

/* The servers of this test are numbers 1 to @n. */
static void open_nids(unsigned int n)
{
	struct ulnet_nid nids[SERVERS];

	for (unsigned int i = 0; i < n; i++)
		nids[i] = server_nid(i + 1);
	conf.client.nids = nids;
	conf.client.nnids = n;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
}

static void on_end(void *arg, const struct ulrpc_replicas_outcome *o,
		   const void *reply, size_t length)
{
	struct one *one = arg;

	one->n++;
	one->o = *o;
	one->took = lnet_sim_now(sim) - one->began;
	if (length == sizeof(one->answer))
		memcpy(&one->answer, reply, length);
}

static struct ulrpc_replicas_call *call_with(
	unsigned int index, const struct ulrpc_replicas_call_conf *how)
{
	const uint32_t body = index;
	struct ulrpc_replicas_call *call;

	calls[index] = (struct one){ .began = lnet_sim_now(sim) };
	cr_assert_eq(ulrpc_replicas_call(rs, ulrpc_method("work"), &body,
					 sizeof(body), how, on_end,
					 &calls[index], &call),
		     0);
	return call;
}

static void call(unsigned int index, uint64_t deadline,
		 enum ulrpc_semantics semantics)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = deadline, .semantics = semantics },
	};

	ulrpc_replicas_call_put(call_with(index, &how));
}

/* It went well, at the server that it says. */
static void went_well(unsigned int index)
{
	const struct one *one = &calls[index];
	struct ulnet_nid nid = server_nid(one->answer);

	cr_assert_eq(one->n, 1, "call %u has ended %u times", index, one->n);
	cr_assert_eq(one->o.call.cause, ULRPC_CAUSE_OK, "call %u: %s %s", index,
		     ulrpc_cause_name(one->o.call.cause), one->o.call.text);
	cr_assert(lnet_nid_eq(&one->o.server, &nid));
}

/* A call, which has to go well, and the server that has answered. */
static unsigned int goes_to(void)
{
	call(0, 30000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, SEC);
	went_well(0);
	cr_assert_eq(calls[0].executed, 1);
	return calls[0].answer;
}

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

Test(replicas, a_slow_call_is_made_at_a_second_server)
{
	unsigned int hedged = 0;
	uint64_t longest = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	conf.hedge = 100;
	open_nids(3);
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = MSEC;
	for (unsigned int i = 0; i < 60; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(i);
		cr_assert_not(calls[i].o.hedged, "it was not slow");
	}
	servers[2].delay = SEC;
	for (unsigned int i = 0; i < 6; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 20 * MSEC);
		went_well(i);
		hedged += calls[i].o.hedged;
		longest = MAX(longest, calls[i].took);
	}
	cr_assert_eq(hedged, 2, "one call of three is slow: %u", hedged);
	cr_assert_leq(longest, 10 * MSEC);
	/* Others are not, although they are slow, too. */
	for (unsigned int i = 0; i < 3; i++)
		call(i, 10000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, 3 * SEC);
	for (unsigned int i = 0; i < 3; i++) {
		went_well(i);
		cr_assert_not(calls[i].o.hedged);
		cr_assert_eq(calls[i].executed, 1);
	}
	sim_close();
}

Test(replicas, only_a_share_is_hedged)
{
	unsigned int hedged = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_TURNS;
	conf.hedge = 50;
	open_nids(3);
	for (unsigned int i = 0; i < 20; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
	}
	/* From now on all are slow, and each call is slower than most. */
	for (unsigned int i = 0; i < 20; i++) {
		for (int k = 1; k <= SERVERS; k++)
			servers[k].delay += 20 * MSEC;
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, SEC);
		went_well(i);
		hedged += calls[i].o.hedged;
	}
	cr_assert_eq(hedged, 2, "one of 20 calls, and there were 40: %u",
		     hedged);
	sim_close();
}

Test(replicas, a_call_that_moves_earns_one_share)
{
	unsigned int hedged = 0;

	sim_open(1);
	conf.choice = ULRPC_CHOOSE_FIRST;
	conf.hedge = 50;
	open_nids(3);
	for (unsigned int i = 0; i < 19; i++) {
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(i);
	}
	/* Nobody is there: the 20th call is at each server again and again. */
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
	call(0, 40000000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(calls[0].n, 0);
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_restart(sim, i), 0);
	lnet_sim_run(sim, 20 * SEC);
	went_well(0);
	for (unsigned int i = 0; i < 8; i++) {
		for (int k = 1; k <= SERVERS; k++)
			servers[k].delay += 100 * MSEC;
		call(i, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 2 * SEC);
		went_well(i);
		hedged += calls[i].o.hedged;
	}
	cr_assert_eq(hedged, 1, "there were less than 40 calls: %u", hedged);
	sim_close();
}

/* Calls of two servers, of which the first is chosen, are hedged from now on.
 */
static void hedge_all(void)
{
	conf.choice = ULRPC_CHOOSE_FIRST;
	conf.hedge = 1000;
	open_nids(2);
	for (int i = 1; i <= SERVERS; i++)
		servers[i].delay = MSEC;
	for (unsigned int i = 0; i < 40; i++) {
		call(0, 10000000, ULRPC_IDEMPOTENT);
		lnet_sim_run(sim, 10 * MSEC);
		went_well(0);
	}
}

Test(replicas, no_second_server_is_asked_behind_the_deadline)
{
	sim_open_as(1, true);
	hedge_all();
	servers[1].delay = 50 * SEC;
	servers[2].delay = 40 * SEC;
	call(1, 20000, ULRPC_IDEMPOTENT);
	lnet_sim_run(sim, MSEC / 2);
	/* It is late, and finds both to be over, hedge and deadline. */
	cr_assert_eq(lnet_sim_pause(sim, 0, 100 * MSEC), 0);
	lnet_sim_run(sim, 20 * SEC);
	cr_assert_eq(calls[1].n, 1);
	cr_assert_eq(calls[1].o.call.cause, ULRPC_CAUSE_DEADLINE);
	cr_assert_leq(calls[1].took, 200 * MSEC);
	cr_assert_eq(servers[2].executed, 0);
	lnet_sim_run(sim, 100 * SEC);
	sim_close();
}

struct told {
	const struct one *one;
	unsigned int before, after; /* the end of the call */
};

static void on_progress(void *arg, const struct ulrpc_call_progress *p)
{
	struct told *told = arg;

	(void)p;
	if (told->one->n)
		told->after++;
	else
		told->before++;
}

Test(replicas, progress_is_told_until_the_end)
{
	struct told told = { .one = &calls[1] };
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = 20000000,
			  .semantics = ULRPC_IDEMPOTENT,
			  .progress = on_progress,
			  .progress_arg = &told },
	};

	/* In some of these, the answer of one server and the report of the
	 * other one are found in the same turn. */
	for (unsigned int k = 0; k < 12; k++) {
		sim_open_as(1, true);
		hedge_all();
		servers[1].delay = 8 * SEC;
		servers[2].delay = (5 + k * 4) * MSEC;
		ulrpc_replicas_call_put(call_with(1, &how));
		lnet_sim_run(sim, 4 * MSEC);
		cr_assert_eq(lnet_sim_pause(sim, 0, 60 * MSEC), 0);
		lnet_sim_run(sim, 12 * SEC);
		went_well(1);
		cr_assert(calls[1].o.hedged);
		sim_close();
	}
	cr_assert_eq(told.after, 0, "%u times after the end", told.after);
	/* It is told at all. */
	sim_open(1);
	open_nids(2);
	servers[1].delay = servers[2].delay = 8 * SEC;
	told.before = 0;
	ulrpc_replicas_call_put(call_with(1, &how));
	lnet_sim_run(sim, 12 * SEC);
	went_well(1);
	cr_assert_gt(told.before, 0);
	sim_close();
}

/* The name stands for these servers, which end with 0. */
static void set_servers(const unsigned int *some)
{
	struct ulnet_address addresses[SERVERS] = { 0 };
	struct ulnet_name_answer a = { .addresses = addresses };

	for (; some[a.n]; a.n++)
		addresses[a.n].nid = server_nid(some[a.n]);
	cr_assert_eq(lnet_sim_name_set(sim, "servers", &a, 0), 0);
}

#define SERVERS_OF(...) ((const unsigned int[]){ __VA_ARGS__, 0 })

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
