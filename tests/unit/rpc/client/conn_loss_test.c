/* SPDX-License-Identifier: BSD-3-Clause */
/* The LND's connection to a server is lost, with all messages that were under
 * way: the client sends queries about its calls soon, but not too often. Client
 * and service are both real. */
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/call_rig.h"
#include "ulnet/service.h"

#define LATENCY (2 * MSEC)
#define RTT	(2 * LATENCY)
#define CONNECT (3 * MSEC)
/* ns within which a call is answered after a loss: a pause of a round trip at
 * most, a new connection, a query, and the call once more. */
#define SOON (RTT + CONNECT + 2 * RTT + MSEC)

static struct lnet_sim *sim;
static struct ulrpc *server;
static struct ulrpc *rpc;
static struct ulrpc_client *client;
/* the last request of method "keep", which the test answers */
static struct ulrpc_request *waiting;
static unsigned int executed;

/* ---- the server ---- */

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	executed++;
	ulrpc_reply(request, body, length);
}

static void keep(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	executed++;
	waiting = request;
}

static void server_open(void)
{
	struct ulrpc_method_conf methods[] = {
		{ .name = "echo", .handler = echo, .run = ULRPC_RUN_INLINE },
		{ .name = "keep", .handler = keep, .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *svc;

	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, SERVER), NULL, &server), 0);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	cr_assert_eq(ulrpc_service_start(server, &conf, &svc), 0);
}

/* ---- the client ---- */

static struct ulrpc_client *client_of(const struct ulnet_nid *nids,
				      unsigned int n)
{
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	ulrpc_client_conf_init(&conf);
	conf.nids = nids;
	conf.nnids = n;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &c), 0);
	return c;
}

static void client_open(void)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;

	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, CLIENT), NULL, &rpc), 0);
	client = client_of(&nid, 1);
}

static void call_of(struct note *n, const char *method)
{
	struct ulrpc_call_conf conf = { .deadline = 10000000,
					.semantics = ULRPC_AT_MOST_ONCE };

	*n = (struct note){ .sim = sim };
	cr_assert_eq(ulrpc_call(client, ulrpc_method(method), "hello", 5, &conf,
				note_end, n, &n->call),
		     0);
}

static void run_for(uint64_t ns)
{
	lnet_sim_run(sim, ns);
}

static uint64_t counted(enum rpc_stat stat)
{
	return client->shard->stats->counts[stat];
}

/* Makes some calls, so that the client is connected, knows the round trip, and
 * uses the shortest T. */
static void begin(void)
{
	const struct ulnet_sim_link link = { .latency = LATENCY,
					     .connect = CONNECT };
	struct note n;

	sim = cluster(2);
	cr_assert_eq(
		lnet_sim_link_set(sim, &LNET_NID_ANY, &LNET_NID_ANY, &link), 0);
	server_open();
	client_open();
	for (unsigned int i = 0; i < 20; i++) {
		call_of(&n, "echo");
		run_for(100 * MSEC);
		ended_well(&n);
	}
	executed = 0;
	cr_assert_eq(counted(RPC_STAT_queries_sent), 0);
}

static void end(void)
{
	ulrpc_client_close(client);
	cr_assert_eq(ulrpc_close(rpc), 0);
	cr_assert_eq(ulrpc_close(server), 0);
	cluster_end(sim);
}

static void cut(void)
{
	lnet_sim_cut(sim, &LNET_NID_ANY, &LNET_NID_ANY);
}

/* ---- what is lost ---- */

Test(conn_loss, request_is_lost)
{
	struct note n;
	uint64_t at;

	begin();
	call_of(&n, "echo");
	run_for(LATENCY / 2);
	at = lnet_sim_now(sim);
	cut();
	run_for(SEC);
	ended_well(&n);
	cr_assert_leq(n.at, at + SOON);
	cr_assert_eq(executed, 1);
	cr_assert_eq(n.outcome.queries, 1);
	cr_assert_eq(n.outcome.retries, 1);
	end();
}

Test(conn_loss, reply_is_lost)
{
	struct note n;
	uint64_t at;

	begin();
	call_of(&n, "echo");
	run_for(LATENCY + LATENCY / 2);
	cr_assert_eq(executed, 1);
	at = lnet_sim_now(sim);
	cut();
	run_for(SEC);
	ended_well(&n);
	cr_assert_leq(n.at, at + SOON);
	cr_assert_eq(executed, 1);
	cr_assert_eq(n.outcome.queries, 1);
	cr_assert_eq(n.outcome.retries, 0);
	end();
}

/* The loss comes while the request is being served. The server sends the reply
 * to where the query came from. */
Test(conn_loss, nothing_is_lost)
{
	struct note n;

	begin();
	call_of(&n, "keep");
	run_for(RTT);
	cr_assert_eq(executed, 1);
	cut();
	run_for(SOON);
	cr_assert_eq(n.ended, 0);
	cr_assert_eq(counted(RPC_STAT_queries_sent), 1);
	ulrpc_reply(waiting, "hello", 5);
	run_for(RTT);
	ended_well(&n);
	cr_assert_eq(executed, 1);
	cr_assert_eq(
		server->shards[0].stats->counts[RPC_STAT_requests_canceled], 0);
	end();
}

Test(conn_loss, query_is_lost)
{
	struct note n;
	uint64_t at;

	begin();
	call_of(&n, "echo");
	run_for(LATENCY + LATENCY / 2);
	cut();
	while (counted(RPC_STAT_queries_sent) == 0)
		run_for(MSEC / 10);
	run_for(CONNECT + LATENCY / 2);
	at = lnet_sim_now(sim);
	cut();
	run_for(SEC);
	ended_well(&n);
	/* This is the second loss in a row, so the pause is longer. */
	cr_assert_leq(n.at, at + RTT + SOON + 10 * MSEC);
	cr_assert_eq(executed, 1);
	end();
}

/* The connection is lost @after ns after the client has learned that the reply
 * is longer than the call has room for: the client's GET of the reply is lost,
 * or the answer to the GET. */
static void fetch_is_lost(uint64_t after)
{
	static const uint8_t reply[5000];
	struct ulrpc_call_conf conf = { .deadline = 10000000, .reply_max = 16 };
	struct note n = { 0 };
	uint64_t at;

	begin();
	n.sim = sim;
	cr_assert_eq(ulrpc_call(client, ulrpc_method("keep"), "hello", 5, &conf,
				note_end, &n, &n.call),
		     0);
	run_for(RTT);
	ulrpc_reply(waiting, reply, sizeof(reply));
	run_for(LATENCY + after);
	cr_assert_eq(counted(RPC_STAT_replies_fetched), 1);
	cr_assert_eq(n.ended, 0);
	at = lnet_sim_now(sim);
	cut();
	run_for(SEC);
	ended_by(&n, ULRPC_CAUSE_OK, ULRPC_EXECUTED);
	cr_assert_eq(n.length, sizeof(reply));
	cr_assert_leq(n.at, at + SOON);
	cr_assert_eq(counted(RPC_STAT_fetches_retried), 1);
	cr_assert_eq(executed, 1);
	end();
}

Test(conn_loss, fetch_is_lost_on_its_way)
{
	fetch_is_lost(LATENCY / 2);
}

Test(conn_loss, what_is_fetched_is_lost)
{
	fetch_is_lost(LATENCY + LATENCY / 2);
}

/* No query is sent about calls that were sent after the loss, nor when no calls
 * are under way. */
Test(conn_loss, what_is_sent_afterwards)
{
	struct note n[2];

	begin();
	cut();
	run_for(SEC);
	cr_assert_eq(counted(RPC_STAT_queries_sent), 0);
	call_of(&n[0], "echo");
	run_for(SEC);
	ended_well(&n[0]);
	cr_assert_eq(n[0].outcome.queries, 0);
	/* The client connects again. */
	call_of(&n[0], "echo");
	run_for(LATENCY / 2);
	cut();
	run_for(1);
	call_of(&n[1], "echo");
	run_for(SEC);
	ended_well(&n[0]);
	ended_well(&n[1]);
	cr_assert_eq(n[0].outcome.queries, 1);
	cr_assert_eq(n[1].outcome.queries, 0);
	cr_assert_eq(executed, 3);
	end();
}

/* The client reaches the server at the second of its NIDs: the loss of that
 * NID's connection counts. */
Test(conn_loss, at_another_nid)
{
	const struct ulnet_nid nids[] = { nth_id(SERVER + 1).nid,
					  nth_id(SERVER).nid };
	struct ulrpc_client *before;
	struct note n;
	uint64_t at;

	begin();
	before = client;
	client = client_of(nids, 2);
	for (unsigned int i = 0; i < 20; i++) {
		call_of(&n, "echo");
		run_for(SEC);
		ended_well(&n);
	}
	cr_assert_eq(client->imp->nid, 1);
	executed = 0;
	call_of(&n, "echo");
	run_for(LATENCY + LATENCY / 2);
	at = lnet_sim_now(sim);
	lnet_sim_cut(sim, &LNET_NID_ANY, &nids[0]);
	run_for(1);
	cr_assert_not(lnet_timer_armed(&client->imp->conn_loss.timer));
	lnet_sim_cut(sim, &LNET_NID_ANY, &nids[1]);
	run_for(SEC);
	ended_well(&n);
	cr_assert_leq(n.at, at + SOON);
	cr_assert_eq(n.outcome.queries, 1);
	cr_assert_eq(executed, 1);
	ulrpc_client_close(before);
	end();
}

/* The server's node restarts, as the client learns from its query. */
Test(conn_loss, server_restarts)
{
	struct note n;
	uint64_t at;

	begin();
	call_of(&n, "keep");
	run_for(RTT);
	cr_assert_eq(lnet_sim_crash(sim, SERVER), 0);
	cr_assert_eq(lnet_sim_restart(sim, SERVER), 0);
	server_open();
	at = lnet_sim_now(sim);
	run_for(SEC);
	ended_by(&n, ULRPC_CAUSE_RESTARTED, ULRPC_EXECUTION_UNKNOWN);
	/* The client also pauses before it connects again. */
	cr_assert_leq(n.at, at + SOON + 20 * MSEC + 2 * RTT);
	end();
}

/* ---- how often queries are sent ---- */

/* The connection ends CUTS times. At most @most queries about a call are sent.
 * @between is called after each loss. */
static void expect_rounds(uint64_t most, void (*between)(void))
{
	enum { CUTS = 1000 }; /* one each ms */
	struct note n;
	uint64_t before;

	begin();
	call_of(&n, "keep");
	run_for(RTT);
	before = counted(RPC_STAT_queries_sent);
	for (unsigned int i = 0; i < CUTS; i++) {
		cut();
		between();
		run_for(MSEC);
	}
	cr_assert_leq(counted(RPC_STAT_queries_sent) - before, most);
	cr_assert_gt(counted(RPC_STAT_queries_sent), before);
	cr_assert_eq(n.ended, 0);
	ulrpc_reply(waiting, "hello", 5);
	run_for(SEC);
	ended_well(&n);
	cr_assert_eq(executed, 1);
	end();
}

static void nothing(void)
{
}

/* Tells the import that a call was served, so that its pauses begin anew. */
static void served(void)
{
	import_served(client->imp);
}

Test(conn_loss, in_a_loop)
{
	/* The longest pauses are 4, 8, 16, 32, 64, and then 100 ms; on average
	 * a pause is half of that. */
	expect_rounds(40, nothing);
}

Test(conn_loss, in_a_loop_with_answers)
{
	expect_rounds(100, served);
}
