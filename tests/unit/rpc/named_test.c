/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of servers that have names: which server they call, and what calls
 * are told when there is none. Node 0 calls, nodes 1 to 3 serve. */
#include "rpc/client/client.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/stream.h"

#define SEC	(1000 * MSEC)
#define SERVERS 3

struct ended {
	unsigned int n;
	struct ulrpc_outcome o;
};

static struct lnet_sim *sim;
static struct ulrpc *rpc;
static struct ulrpc_client *client;
static struct ulrpc_request *parked;

static void echo(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
}

static void park(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	(void)arg, (void)body, (void)length;
	parked = r;
}

static int start(void *arg, unsigned int index, struct lnet *node)
{
	static const struct ulrpc_method_conf methods[] = {
		{ .name = "echo", .handler = echo },
		{ .name = "park", .handler = park },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *svc;
	struct ulrpc *own;

	(void)arg;
	cr_assert_eq(ulrpc_open(node, NULL, &own), 0);
	if (!index) {
		rpc = own;
		return 0;
	}
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	cr_assert_eq(ulrpc_service_start(own, &conf, &svc), 0);
	return 0;
}

static struct ulnet_nid server_nid(unsigned int index)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
			     0x0a000000 + index + 1);
}

static void sim_open(unsigned int cpts)
{
	char nid[LNET_NIDSTR_SIZE];

	parked = NULL;
	cr_assert_eq(lnet_sim_new(7, cpts, &sim), 0);
	for (unsigned int i = 0; i <= SERVERS; i++) {
		struct ulnet_nid own = server_nid(i);

		lnet_nid_format(&own, nid, sizeof(nid));
		cr_assert_eq(lnet_sim_node_add(sim, nid, NULL, start, NULL),
			     (int)i);
	}
}

static void sim_close(void)
{
	ulrpc_client_close(client);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

/* The name stands for these servers, which end with 0. */
static void set_servers(uint64_t delay, const unsigned int *servers)
{
	struct ulnet_address addresses[SERVERS] = { 0 };
	struct ulnet_name_answer a = { .addresses = addresses };

	for (; servers[a.n]; a.n++)
		addresses[a.n].nid = server_nid(servers[a.n]);
	cr_assert_eq(lnet_sim_name_set(sim, "servers", &a, delay), 0);
}

#define SERVERS_OF(...) ((const unsigned int[]){ __VA_ARGS__, 0 })

static void client_open(const char *target)
{
	struct ulrpc_client_conf conf;

	ulrpc_client_conf_init(&conf);
	conf.target = target;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), 0);
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct ended *e = arg;

	(void)reply, (void)length;
	e->n++;
	e->o = *o;
}

static void call(const char *method, struct ended *e, uint64_t deadline,
		 const struct ulrpc_retry *retry)
{
	const struct ulrpc_call_conf conf = { .deadline = deadline,
					      .retry = retry };

	*e = (struct ended){ 0 };
	cr_assert_eq(ulrpc_call(client, ulrpc_method(method), "x", 1, &conf,
				on_end, e, NULL),
		     0);
}

/* As call(), of one that does not wait for a server. */
static void hasty_call(const char *method, struct ended *e, uint64_t deadline)
{
	const struct ulrpc_call_conf conf = { .deadline = deadline,
					      .wait_for_ready =
						      ULRPC_WAIT_NOT };

	*e = (struct ended){ 0 };
	cr_assert_eq(ulrpc_call(client, ulrpc_method(method), "x", 1, &conf,
				on_end, e, NULL),
		     0);
}

static void answered_by(const struct ended *e, unsigned int server)
{
	struct ulnet_nid nid = server_nid(server);

	cr_assert_eq(e->n, 1, "ended %u times", e->n);
	cr_assert_eq(e->o.cause, ULRPC_CAUSE_OK, "%s: %s",
		     ulrpc_cause_name(e->o.cause), e->o.text);
	cr_assert(lnet_nid_eq(&e->o.target, &nid));
}

/* Makes a call, which @server has to answer. */
static void goes_to(unsigned int server)
{
	struct ended e;

	call("echo", &e, 30000000, NULL);
	lnet_sim_run(sim, 30 * SEC);
	answered_by(&e, server);
}

Test(named, calls_wait_for_the_name_and_go_to_the_first)
{
	struct ended e;

	sim_open(1);
	set_servers(2 * SEC, SERVERS_OF(2, 1));
	client_open("servers");
	call("echo", &e, 10000000, NULL);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(e.n, 0);
	lnet_sim_run(sim, 2 * SEC);
	answered_by(&e, 2);
	goes_to(2);
	sim_close();
}

Test(named, on_several_cpts_the_cpt_of_the_address_is_taken)
{
	const struct ulnet_nid third = server_nid(3);

	sim_open(4);
	set_servers(0, SERVERS_OF(3));
	client_open("servers");
	cr_assert_eq((int)ulrpc_client_cpt(client),
		     lnet_cpt_of(lnet_sim_node(sim, 0), &third));
	goes_to(3);
	/* An address of another CPT is as good. */
	set_servers(0, SERVERS_OF(1));
	goes_to(1);
	set_servers(0, SERVERS_OF(2));
	goes_to(2);
	sim_close();
}

Test(named, a_text_may_be_nids)
{
	sim_open(1);
	client_open("10.0.0.2@tcp,10.0.9.2@tcp");
	goes_to(1);
	sim_close();
}

Test(named, a_name_that_is_not_known_is_a_cause)
{
	const struct ulrpc_retry none = { .max = 0 };
	struct ended e, once;

	sim_open(1);
	client_open("servers");
	call("echo", &e, 2000000, NULL);
	call("echo", &once, 2000000, &none);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(e.n, 0);
	cr_assert_eq(once.n, 1, "without retries it does not wait");
	lnet_sim_run(sim, 2 * SEC);
	for (int i = 0; i < 2; i++) {
		const struct ended *one = i ? &e : &once;

		cr_assert_eq(one->n, 1);
		cr_assert_eq(one->o.cause, ULRPC_CAUSE_NAME, "%s",
			     ulrpc_cause_name(one->o.cause));
		cr_assert_str_eq(one->o.text, "servers: there is no such name");
		cr_assert_eq(one->o.execution, ULRPC_NOT_EXECUTED);
		cr_assert_eq(one->o.status, -EADDRNOTAVAIL);
	}
	/* Nor does it wait for the name to be looked up again. */
	call("echo", &once, 2000000, &none);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(once.n, 1);
	cr_assert_eq(once.o.cause, ULRPC_CAUSE_NAME);
	/* A name server that is silent. */
	cr_assert_eq(lnet_sim_name_set(sim, "mute", NULL, 0), 0);
	ulrpc_client_close(client);
	client_open("mute");
	call("echo", &e, 2000000, NULL);
	lnet_sim_run(sim, 3 * SEC);
	cr_assert_eq(e.o.cause, ULRPC_CAUSE_NAME);
	cr_assert_str_eq(e.o.text, "mute: nobody has answered yet");
	/* It is known at last. */
	ulrpc_client_close(client);
	client_open("servers");
	call("echo", &e, 2000000, NULL);
	lnet_sim_run(sim, SEC);
	set_servers(0, SERVERS_OF(3));
	lnet_sim_run(sim, SEC);
	answered_by(&e, 3);
	sim_close();
}

static void on_stream_end(void *arg, struct ulrpc_stream *stream,
			  const struct ulrpc_stream_outcome *o)
{
	struct ulrpc_stream_outcome *end = arg;

	(void)stream;
	*end = *o;
}

/* Opens a stream, which has a second; runs for @ns. */
static struct ulrpc_stream_outcome stream_by_name(
	const struct ulrpc_retry *retry, uint64_t ns)
{
	struct ulrpc_stream_outcome end = { .cause = ULRPC_CAUSE_COUNT };
	struct ulrpc_stream_conf limits = {
		.deadline = 1000000,
		.events = { .ended = on_stream_end, .arg = &end },
	};
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;
	struct ulrpc_stream *stream;

	ulrpc_streams_conf_init(&conf);
	conf.client.target = "servers";
	conf.client.service = "test";
	conf.client.retry = retry;
	cr_assert_eq(ulrpc_streams_open(rpc, &conf, &streams), 0);
	/* until the name has been looked up */
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(
		ulrpc_stream_open(streams, "echo", "x", 1, &limits, &stream),
		0);
	lnet_sim_run(sim, ns);
	ulrpc_stream_put(stream);
	ulrpc_streams_close(streams);
	return end;
}

static void stream_had_no_name(struct ulrpc_stream_outcome end)
{
	cr_assert_eq(end.cause, ULRPC_CAUSE_NAME, "%d", end.cause);
	cr_assert_str_eq(end.text, "servers: there is no such name");
	cr_assert_eq(end.status, -EADDRNOTAVAIL);
	cr_assert_eq(end.execution, ULRPC_NOT_EXECUTED);
}

Test(named, a_stream_by_a_name_that_is_not_known)
{
	const struct ulrpc_retry none = { .max = 0 };

	sim_open(2);
	/* as calls: at once without retries, and else at the deadline */
	stream_had_no_name(stream_by_name(&none, 10 * MSEC));
	stream_had_no_name(stream_by_name(NULL, SEC + 10 * MSEC));
	sim_close();
}

Test(named, goes_to_the_next_when_one_cannot_be_connected_to)
{
	struct ulnet_nid own, first;

	sim_open(1);
	own = server_nid(0);
	first = server_nid(1);
	set_servers(0, SERVERS_OF(1, 2, 3));
	client_open("servers");
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	goes_to(2);
	/* It stays there, also when the first has come back. */
	cr_assert_eq(lnet_sim_restart(sim, 1), 0);
	goes_to(2);
	cr_assert_eq(lnet_sim_crash(sim, 2), 0);
	cr_assert_eq(lnet_sim_partition(sim, &own, &first, true), 0);
	goes_to(3);
	cr_assert_eq(lnet_sim_crash(sim, 3), 0);
	cr_assert_eq(lnet_sim_partition(sim, &own, &first, false), 0);
	goes_to(1);
	sim_close();
}

Test(named, a_call_that_does_not_wait_goes_to_all_of_them_first)
{
	struct ended e, out;

	sim_open(1);
	client_open("servers");
	hasty_call("echo", &e, 60000000);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.o.cause, ULRPC_CAUSE_NAME);
	cr_assert_str_eq(e.o.text, "servers: there is no such name");
	set_servers(0, SERVERS_OF(1, 2, 3));
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	cr_assert_eq(lnet_sim_crash(sim, 2), 0);
	hasty_call("echo", &e, 60000000);
	lnet_sim_run(sim, 20 * SEC);
	answered_by(&e, 3);
	/* One that may have been executed goes on asking. */
	hasty_call("park", &out, 30000000);
	lnet_sim_run(sim, SEC);
	cr_assert(parked);
	cr_assert_eq(lnet_sim_crash(sim, 3), 0);
	hasty_call("echo", &e, 60000000);
	lnet_sim_run(sim, 20 * SEC);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.o.cause, ULRPC_CAUSE_UNREACHABLE, "%s",
		     ulrpc_cause_name(e.o.cause));
	cr_assert_eq(e.o.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(out.n, 0);
	lnet_sim_run(sim, 20 * SEC);
	cr_assert_eq(out.n, 1);
	cr_assert_eq(out.o.execution, ULRPC_EXECUTION_UNKNOWN);
	/* none at all */
	hasty_call("echo", &e, 60000000);
	lnet_sim_run(sim, 20 * SEC);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.o.cause, ULRPC_CAUSE_UNREACHABLE);
	sim_close();
}

Test(named, none_of_them_can_be_connected_to)
{
	struct ended e;

	sim_open(1);
	set_servers(0, SERVERS_OF(1, 2, 3));
	client_open("servers");
	for (unsigned int i = 1; i <= SERVERS; i++)
		cr_assert_eq(lnet_sim_crash(sim, i), 0);
	call("echo", &e, 60000000, NULL);
	lnet_sim_run(sim, 61 * SEC);
	cr_assert_eq(e.n, 1);
	cr_assert_eq(e.o.cause, ULRPC_CAUSE_UNREACHABLE, "%s",
		     ulrpc_cause_name(e.o.cause));
	cr_assert_eq(e.o.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(lnet_sim_restart(sim, 3), 0);
	goes_to(3);
	sim_close();
}

Test(named, moves_when_the_name_changes_and_nothing_is_under_way)
{
	struct ended held, e;

	sim_open(1);
	set_servers(0, SERVERS_OF(1));
	client_open("servers");
	goes_to(1);
	call("park", &held, 600000000, NULL);
	lnet_sim_run(sim, SEC);
	cr_assert_not_null(parked);
	set_servers(0, SERVERS_OF(2, 3));
	/* A call is under way that server 2 knows nothing of. */
	call("echo", &e, 10000000, NULL);
	lnet_sim_run(sim, SEC);
	answered_by(&e, 1);
	cr_assert_eq(held.n, 0);
	ulrpc_reply(parked, "y", 1);
	lnet_sim_run(sim, SEC);
	answered_by(&held, 1);
	goes_to(2);
	/* Its server is still one of them: it stays. */
	set_servers(0, SERVERS_OF(3, 2));
	goes_to(2);
	/* Nothing is known any more: it stays, too. */
	cr_assert_eq(lnet_sim_name_set(
			     sim, "servers",
			     &(struct ulnet_name_answer){ .status = -ENOENT },
			     0),
		     0);
	goes_to(2);
	sim_close();
}

/* Calls that may have been executed stay with their server, though it is gone;
 * those that were not go to the next. */
Test(named, calls_that_were_not_sent_go_with_the_client)
{
	struct ended held, e;

	sim_open(1);
	set_servers(0, SERVERS_OF(1, 2));
	client_open("servers");
	call("park", &held, 40000000, NULL);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(lnet_sim_crash(sim, 1), 0);
	lnet_sim_run(sim, 30 * SEC);
	call("echo", &e, 60000000, NULL);
	lnet_sim_run(sim, 60 * SEC);
	cr_assert_eq(held.n, 1);
	cr_assert_eq(held.o.execution, ULRPC_EXECUTION_UNKNOWN);
	answered_by(&e, 2);
	sim_close();
}

Test(named, a_node_crashes_that_looks_a_name_up)
{
	struct ended e;

	sim_open(1);
	set_servers(SEC, SERVERS_OF(1));
	client_open("servers");
	call("echo", &e, 60000000, NULL);
	cr_assert_eq(lnet_sim_crash(sim, 0), 0);
	lnet_sim_run(sim, 2 * SEC);
	cr_assert_eq(e.n, 0);
	cr_assert_eq(lnet_sim_restart(sim, 0), 0);
	client_open("servers");
	goes_to(1);
	sim_close();
}

Test(named, mistakes)
{
	struct ulnet_nid nid = server_nid(1);
	struct ulnet_conf_error err;
	struct ulrpc_client_conf conf;

	sim_open(1);
	ulrpc_client_conf_init(&conf);
	conf.service = "test";
	conf.target = "host:x";
	conf.err = &err;
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), -EINVAL);
	cr_assert_str_eq(err.what, "target: 'x': a number was expected");
	conf.target = "host";
	conf.nids = &nid;
	conf.nnids = 1;
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), -EINVAL);
	cr_assert_str_eq(err.what, "nids: target is set, too");
	client = NULL;
	sim_close();
}

/* ---- the order of servers ---- */

static uint64_t draw(void *arg, uint64_t below)
{
	uint64_t *state = arg;

	*state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (*state >> 33) % below;
}

Test(named, weights_say_how_often_a_server_is_first)
{
	unsigned int first[4] = { 0 };
	uint64_t state = 1;

	for (unsigned int i = 0; i < 10000; i++) {
		struct ulnet_address a[] = {
			{ .port = 1, .weight = 70 },
			{ .port = 2, .weight = 20 },
			{ .port = 3, .weight = 10 },
			{ .port = 4 },
			{ .port = 5, .priority = 9 },
			{ .port = 6, .priority = 9 },
		};
		unsigned int ports = 0;

		target_order(a, ARRAY_SIZE(a), draw, &state);
		cr_assert_leq(a[0].port, 3, "not one of weight 0");
		first[a[0].port]++;
		for (unsigned int k = 0; k < 4; k++)
			ports |= 1u << a[k].port;
		cr_assert_eq(ports, 0x1e);
		cr_assert_eq(a[4].port, 5, "without weights in their order");
		cr_assert_eq(a[5].port, 6);
	}
	/* Of 10000, at 7 standard deviations. */
	cr_assert_gt(first[1], 6680);
	cr_assert_lt(first[1], 7320);
	cr_assert_gt(first[2], 1720);
	cr_assert_lt(first[2], 2280);
	cr_assert_gt(first[3], 790);
}

/* What an answer about a name may say of server 1. */
static int found_at(uint16_t port)
{
	struct ulnet_nid nid = server_nid(1);
	struct lnet *node = lnet_sim_node(sim, 0);
	int rc = lnet_peer_port_claim(node, &nid, port, LNET_PORT_FOUND);

	if (!rc)
		lnet_peer_port_release(node, &nid, LNET_PORT_FOUND);
	return rc;
}

Test(named, no_answer_moves_the_nids_of_a_client)
{
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid = server_nid(1);
	struct ended e;

	sim_open(1);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(found_at(7000), 0);
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), 0);
	cr_assert_eq(found_at(7000), -EEXIST);
	call("echo", &e, 60 * SEC, NULL);
	lnet_sim_run(sim, SEC);
	answered_by(&e, 1);
	cr_assert_eq(found_at(7000), -EEXIST);
	ulrpc_client_close(client);
	client = NULL;
	lnet_sim_run(sim, 60 * SEC);
	cr_assert_eq(found_at(7000), 0);
	sim_close();
}

/* The program says where a server is that it has looked up, and calls it by its
 * NID, too: answers that say the same are good. */
Test(named, answers_agree_with_what_the_program_has_set)
{
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid = server_nid(1);

	sim_open(1);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(lnet_peer_port_set(lnet_sim_node(sim, 0), &nid, 7000), 0);
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), 0);
	cr_assert_eq(found_at(7000), 0);
	cr_assert_eq(found_at(7001), -EEXIST);
	sim_close();
}
