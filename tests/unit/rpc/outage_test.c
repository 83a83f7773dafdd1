/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that meet a link, or a server, which is not there for a while: client and
 * service are both real. */
#include "rpc/stat.h"
#include "rpc/xids.h"
#include "tests/unit/rpc/call_rig.h"
#include "ulnet/service.h"

static struct lnet_sim *sim;
static struct ulrpc *server;
static unsigned int executed;

TestSuite(outage, .timeout = 60);

/* ---- the server ---- */

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	executed++;
	ulrpc_reply(request, body, length);
}

static void server_open(void)
{
	struct ulrpc_method_conf method = { .name = "echo", .handler = echo };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *svc;

	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, SERVER), NULL, &server), 0);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	cr_assert_eq(ulrpc_service_start(server, &conf, &svc), 0);
}

static uint64_t server_counted(enum rpc_stat stat)
{
	return server->shards[0].stats->counts[stat];
}

/* ---- callers ---- */

struct caller {
	struct ulrpc *rpc;
	struct ulrpc_client *client;
	unsigned int left;	      /* calls to be made */
	unsigned int ok, other;	      /* that have ended */
	uint64_t last;		      /* ns: when the last one did */
	struct ulrpc_outcome outcome; /* of that one */
};

static void caller_on_done(void *arg, const struct ulrpc_outcome *o,
			   const void *reply, size_t length);

static void caller_call(struct caller *c, uint64_t us)
{
	struct ulrpc_call_conf conf = within(us);

	cr_assert_eq(ulrpc_call(c->client, ulrpc_method("echo"), "hello", 5,
				&conf, caller_on_done, c, NULL),
		     0);
}

static void caller_on_done(void *arg, const struct ulrpc_outcome *o,
			   const void *reply, size_t length)
{
	struct caller *c = arg;

	(void)reply;
	(void)length;
	c->outcome = *o;
	c->last = lnet_sim_now(sim);
	o->cause == ULRPC_CAUSE_OK ? c->ok++ : c->other++;
	if (c->left && c->left--)
		caller_call(c, 10000000);
}

static void caller_client(struct caller *c)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf;

	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(c->rpc, &conf, &c->client), 0);
}

static void caller_open(struct caller *c, unsigned int node)
{
	*c = (struct caller){ 0 };
	cr_assert_eq(ulrpc_open(lnet_sim_node(sim, node), NULL, &c->rpc), 0);
	caller_client(c);
}

/* One is served: there is a connection. */
static void caller_served(struct caller *c)
{
	caller_call(c, 1000000);
	lnet_sim_run(sim, 100 * MSEC);
	cr_assert_eq(c->ok, 1);
}

static void link_is(const struct ulnet_sim_link *link)
{
	cr_assert_eq(lnet_sim_link_set(sim, &LNET_NID_ANY, &LNET_NID_ANY, link),
		     0);
}

static const struct ulnet_sim_link good = { .latency = 10000 };

static void begin(struct caller *c)
{
	sim = cluster(2);
	link_is(&good);
	server_open();
	caller_open(c, CLIENT);
	caller_served(c);
}

static void end(struct caller *c)
{
	ulrpc_client_close(c->client);
	cr_assert_eq(ulrpc_close(c->rpc), 0);
	cr_assert_eq(ulrpc_close(server), 0);
	cluster_end(sim);
}

/* ---- numbers ---- */

/* What is not delivered is overtaken by thousands of calls of another client, on
 * the same connection: the server does not take it for a copy. */
Test(outage, link_that_refuses_loses_no_call)
{
	struct ulnet_sim_link bad = { .latency = 10000,
				      .refuse = LNET_SIM_ALWAYS };
	struct caller a[3];

	begin(&a[0]);
	for (unsigned int i = 1; i < 3; i++) {
		a[i] = (struct caller){ .rpc = a[0].rpc };
		caller_client(&a[i]);
		cr_assert_eq(a[i].client->imp, a[0].client->imp);
	}
	link_is(&bad);
	for (unsigned int i = 0; i < 2; i++) {
		a[i].client->batch_max = 1;
		for (unsigned int j = 0; j < 1000; j++)
			caller_call(&a[i], 10000000);
	}
	lnet_sim_run(sim, 60 * MSEC);
	link_is(&good);
	a[2].left = 20000 - 512;
	for (unsigned int i = 0; i < 512; i++)
		caller_call(&a[2], 10000000);
	lnet_sim_run(sim, 20 * SEC);
	cr_assert_eq(a[0].ok, 1 + 1000);
	cr_assert_eq(a[1].ok, 1000);
	cr_assert_eq(a[2].ok, 20000);
	cr_assert_eq(executed, 1 + 22000);
	cr_assert_eq(server_counted(RPC_STAT_requests_doubtful), 0);
	ulrpc_client_close(a[1].client);
	ulrpc_client_close(a[2].client);
	end(&a[0]);
}

/* A message is stuck in LNet: no number is given that would have the server forget
 * its calls' numbers. When it has ended, calls go on. */
Test(outage, numbers_stay_within_what_a_server_remembers)
{
	struct ulnet_sim_link stuck = { .latency = 10000,
					.stall = LNET_SIM_ALWAYS };
	struct ulnet_nid from = nth_id(CLIENT).nid, to = nth_id(SERVER).nid;
	struct caller a, b;
	uint64_t first;

	begin(&a);
	first = a.client->imp->xid + 1;
	b = (struct caller){ .rpc = a.rpc };
	caller_client(&b);
	lnet_sim_link_set(sim, &from, &to, &stuck);
	caller_call(&a, 5000000);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(a.client->imp->xid, first);
	link_is(&good);
	lnet_sim_link_set(sim, &from, &to, &good);
	b.left = 10000 - 64;
	for (unsigned int i = 0; i < 64; i++)
		caller_call(&b, 20000000);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(a.client->imp->xid, first + XIDS_SPAN - 1);
	cr_assert_eq(b.ok, XIDS_SPAN - 1);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(a.other, 1);
	cr_assert_eq(b.ok, 10000);
	cr_assert_eq(server_counted(RPC_STAT_requests_doubtful), 0);
	ulrpc_client_close(b.client);
	end(&a);
}

/* ---- connections that are not known ---- */

/* The server has been opened anew, which the client does not know. It says how
 * long it has been there: a call that was sent after that was not executed. */
Test(outage, server_proves_that_it_has_not_executed_a_call)
{
	for (unsigned int sure = 0; sure < 2; sure++) {
		struct caller a;

		begin(&a);
		executed = 0;
		cr_assert_eq(ulrpc_close(server), 0);
		server_open();
		lnet_sim_run(sim, sure ? 250 * MSEC : 150 * MSEC);
		caller_call(&a, 5000000);
		lnet_sim_run(sim, 5 * SEC);
		cr_assert_eq(a.outcome.cause,
			     sure ? ULRPC_CAUSE_OK : ULRPC_CAUSE_RESTARTED);
		cr_assert_eq(a.outcome.execution,
			     sure ? ULRPC_EXECUTED : ULRPC_EXECUTION_UNKNOWN);
		cr_assert_eq(executed, sure);
		end(&a);
	}
}
