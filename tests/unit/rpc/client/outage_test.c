/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of calls while a link or a server fails for some time. Client
 * and service are both real. */
#include "rpc/stats/stat.h"
#include "tests/unit/rpc/client/call_rig.h"
#include "ulnet/service.h"

static struct lnet_sim *sim;
static struct ulrpc *server;
static unsigned int executed;

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
	unsigned int left; /* calls that are still to be made */
	/* calls that have ended with success, and with another outcome */
	unsigned int ok, other;
	uint64_t last;		      /* ns: when the last call ended */
	struct ulrpc_outcome outcome; /* of the last call */
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

/* Connects the caller, by a call that is served. */
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

/* ---- numbers of calls ---- */

/* Calls that are not delivered are overtaken by thousands of calls of another
 * client, on the same connection. The server must not take the late ones for
 * copies of calls that it has forgotten. */
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

/* ---- connections that the server does not know ---- */

/* The server has restarted without the client's knowledge. Its answer says for
 * how long it has not known the connection: a call that was sent later was not
 * executed. */
Test(outage, server_proves_that_it_has_not_executed_a_call)
{
	static const struct ulnet_sim_link deaf = { .loss = LNET_SIM_ALWAYS };

	for (unsigned int sure = 0; sure < 2; sure++) {
		struct caller a;

		begin(&a);
		executed = 0;
		link_is(&deaf); /* loses the server's Goodbye */
		cr_assert_eq(ulrpc_close(server), 0);
		link_is(&good);
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

/* ---- how soon calls are served again ---- */

static const uint64_t outages[] = { SEC, 5 * SEC, 60 * SEC };

/* Makes calls while the link is @bad, for @outage ns. Returns the ns from the
 * end of the outage until the last call is served. */
static uint64_t served_after(struct caller *c, const struct ulnet_sim_link *bad,
			     uint64_t outage)
{
	uint64_t back;

	link_is(bad);
	c->ok = 0;
	for (unsigned int i = 0; i < 10; i++) {
		lnet_sim_run(sim, outage / 10);
		caller_call(c, 120000000);
	}
	cr_assert_eq(c->ok, 0);
	link_is(&good);
	back = lnet_sim_now(sim);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(c->ok, 10);
	cr_assert_eq(c->other, 0);
	return c->last - back;
}

Test(outage, of_a_link_that_refuses_is_over_at_once)
{
	struct ulnet_sim_link bad = { .latency = 10000,
				      .refuse = LNET_SIM_ALWAYS };

	for (unsigned int i = 0; i < ARRAY_SIZE(outages); i++) {
		struct caller c;

		begin(&c);
		cr_assert_leq(served_after(&c, &bad, outages[i]), 200 * MSEC);
		end(&c);
	}
}

/* The server's node crashes. When it is back, it drops messages until RPC is
 * opened, 50 ms later. */
Test(outage, of_a_server_is_over_at_once)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(outages); i++) {
		struct caller c;
		uint64_t back;

		begin(&c);
		cr_assert_eq(lnet_sim_crash(sim, SERVER), 0);
		lnet_sim_run(sim, MSEC);
		caller_call(&c, 120000000);
		lnet_sim_run(sim, outages[i]);
		cr_assert_eq(lnet_sim_restart(sim, SERVER), 0);
		lnet_sim_run(sim, 50 * MSEC);
		server_open();
		back = lnet_sim_now(sim);
		lnet_sim_run(sim, SEC);
		cr_assert_eq(c.ok, 2);
		cr_assert_leq(c.last - back, 200 * MSEC);
		end(&c);
	}
}

/* A server that shuts down refuses connections, until it is opened again. */
Test(outage, of_a_server_that_shut_down_is_over_at_once)
{
	struct caller c;
	uint64_t back;

	begin(&c);
	ulrpc_client_close(c.client);
	lnet_sim_run(sim, MSEC);
	caller_client(&c);
	cr_assert_eq(ulrpc_shutdown(server, 10000000, NULL, NULL), 0);
	caller_call(&c, 120000000);
	lnet_sim_run(sim, 2 * SEC);
	cr_assert_gt(server_counted(RPC_STAT_clients_refused), 20);
	cr_assert_eq(ulrpc_close(server), 0);
	lnet_sim_run(sim, 2 * SEC);
	server_open();
	back = lnet_sim_now(sim);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(c.ok, 2);
	cr_assert_leq(c.last - back, 200 * MSEC);
	end(&c);
}

/* Many messages that fail at the same moment count as one failure. */
Test(outage, that_is_short_is_soon_over_however_many_messages_it_hits)
{
	struct ulnet_sim_link bad = { .latency = 10000,
				      .refuse = LNET_SIM_ALWAYS };
	struct caller c;
	uint64_t back;

	begin(&c);
	c.client->batch_max = 1;
	link_is(&bad);
	for (unsigned int i = 0; i < 1000; i++)
		caller_call(&c, 10000000);
	lnet_sim_run(sim, MSEC);
	cr_assert_leq(c.client->imp->failures, 3, "%u",
		      c.client->imp->failures);
	link_is(&good);
	back = lnet_sim_now(sim);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(c.ok, 1001);
	cr_assert_leq(c.last - back, 40 * MSEC);
	cr_assert_eq(c.client->imp->failures, 0);
	end(&c);
}

/* A message from the server ends the pause before the client connects again. */
Test(outage, is_over_with_a_sign_of_life)
{
	struct ulnet_sim_link bad = { .latency = 10000,
				      .refuse = LNET_SIM_ALWAYS };
	struct caller c, back;
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid = nth_id(CLIENT).nid;
	const struct ulrpc_retry no_retries = { .max = 0 };
	struct ulrpc_call_conf call = within(1000000);

	call.retry = &no_retries;
	begin(&c);
	/* Pauses are longest if a server has many clients. */
	c.client->imp->server_clients = 10000;
	link_is(&bad);
	caller_call(&c, 120000000);
	lnet_sim_run(sim, 5 * SEC);
	while (c.client->imp->fsm.state != IMPORT_DISCONN)
		lnet_sim_run(sim, 10000);
	link_is(&good);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(c.client->imp->fsm.state, IMPORT_DISCONN);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "none";
	back = (struct caller){ .rpc = server };
	cr_assert_eq(ulrpc_client_open(server, &conf, &back.client), 0);
	cr_assert_eq(ulrpc_call(back.client, 1, NULL, 0, &call, caller_on_done,
				&back, NULL),
		     0);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(c.ok, 2);
	cr_assert_eq(back.outcome.cause, ULRPC_CAUSE_NO_SERVICE);
	ulrpc_client_close(back.client);
	end(&c);
}

/* ---- calls that do not wait ---- */

/* As caller_call(), of one that does not wait for a server. */
static void hasty_call(struct caller *c, uint64_t us)
{
	struct ulrpc_call_conf conf = within(us);

	conf.wait_for_ready = ULRPC_WAIT_NOT;
	cr_assert_eq(ulrpc_call(c->client, ulrpc_method("echo"), "hello", 5,
				&conf, caller_on_done, c, NULL),
		     0);
}

static void was_unreachable(const struct caller *c, int error)
{
	char text[ULRPC_TEXT_MAX];

	snprintf(text, sizeof(text), "10.0.0.2@tcp: %s", strerror(error));
	cr_assert_eq(c->outcome.cause, ULRPC_CAUSE_UNREACHABLE, "%s",
		     ulrpc_cause_name(c->outcome.cause));
	cr_assert_eq(c->outcome.execution, ULRPC_NOT_EXECUTED);
	cr_assert_eq(c->outcome.status, -EHOSTUNREACH);
	cr_assert_str_eq(c->outcome.text, text);
}

Test(outage, ends_calls_that_do_not_wait)
{
	const struct ulnet_sim_link bad = { .latency = 10000,
					    .refuse = LNET_SIM_ALWAYS };
	struct caller c;

	begin(&c);
	link_is(&bad);
	caller_call(&c, 120000000);
	hasty_call(&c, 120000000);
	lnet_sim_run(sim, 200 * MSEC);
	cr_assert_eq(c.other, 1);
	was_unreachable(&c, EHOSTUNREACH);
	/* The last attempt has shown that nobody is there. */
	while (c.client->imp->fsm.state != IMPORT_DISCONN)
		lnet_sim_run(sim, 10000);
	hasty_call(&c, 120000000);
	cr_assert_eq(c.other, 1, "not inside of the function");
	lnet_sim_run(sim, 0);
	cr_assert_eq(c.other, 2);
	was_unreachable(&c, EHOSTUNREACH);
	/* The other one has waited. */
	link_is(&good);
	lnet_sim_run(sim, 200 * MSEC);
	cr_assert_eq(c.ok, 2);
	hasty_call(&c, 120000000);
	lnet_sim_run(sim, MSEC);
	cr_assert_eq(c.ok, 3);
	cr_assert_eq(executed, 3);
	end(&c);
}

Test(outage, without_any_word_ends_them_after_the_connect_timeout)
{
	const struct ulnet_sim_link silent = { .latency = 10000,
					       .loss = LNET_SIM_ALWAYS };
	struct caller c;

	sim = cluster(2);
	link_is(&silent);
	server_open();
	caller_open(&c, CLIENT);
	hasty_call(&c, 120000000);
	lnet_sim_run(sim, 4999 * MSEC);
	cr_assert_eq(c.other, 0);
	lnet_sim_run(sim, 2 * MSEC);
	cr_assert_eq(c.other, 1);
	was_unreachable(&c, ETIMEDOUT);
	end(&c);
}

Test(outage, while_connecting_for_the_first_time_ends_no_call)
{
	const struct ulnet_sim_link slow = { .latency = 400 * MSEC };
	struct caller c;

	sim = cluster(2);
	link_is(&slow);
	server_open();
	caller_open(&c, CLIENT);
	hasty_call(&c, 120000000);
	lnet_sim_run(sim, 10 * SEC);
	cr_assert_eq(c.ok, 1);
	end(&c);
}

/* The client may say it, too, and what a call says counts more; both count more
 * than that there are no retries. */
Test(outage, ends_calls_as_they_or_their_client_say)
{
	const struct ulnet_sim_link bad = { .latency = 10000,
					    .refuse = LNET_SIM_ALWAYS };
	const struct ulrpc_retry none = { .max = 0 };
	const struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_call_conf call = within(60000000);
	struct ulrpc_client_conf conf;
	struct caller c;

	begin(&c);
	ulrpc_client_close(c.client);
	link_is(&bad);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	conf.wait_for_ready = (enum ulrpc_wait)3;
	cr_assert_eq(ulrpc_client_open(c.rpc, &conf, &c.client), -EINVAL);
	conf.wait_for_ready = ULRPC_WAIT_NOT;
	cr_assert_eq(ulrpc_client_open(c.rpc, &conf, &c.client), 0);
	call.wait_for_ready = (enum ulrpc_wait)3;
	cr_assert_eq(ulrpc_call(c.client, 1, NULL, 0, &call, caller_on_done, &c,
				NULL),
		     -EINVAL);
	caller_call(&c, 60000000);
	call.wait_for_ready = ULRPC_WAIT_READY;
	cr_assert_eq(ulrpc_call(c.client, ulrpc_method("echo"), NULL, 0, &call,
				caller_on_done, &c, NULL),
		     0);
	call.retry = &none;
	cr_assert_eq(ulrpc_call(c.client, ulrpc_method("echo"), NULL, 0, &call,
				caller_on_done, &c, NULL),
		     0);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(c.other, 1, "%u: %s", c.other,
		     ulrpc_cause_name(c.outcome.cause));
	was_unreachable(&c, EHOSTUNREACH);
	link_is(&good);
	lnet_sim_run(sim, SEC);
	cr_assert_eq(c.ok, 3);
	end(&c);
}

/* ---- herds of clients ---- */

#define HERD 5000

static struct caller herd[HERD];

static void herd_open(unsigned int n)
{
	sim = cluster(2 + n);
	link_is(&good);
	server_open();
	for (unsigned int i = 0; i < n; i++) {
		caller_open(&herd[i], 2 + i);
		caller_call(&herd[i], 1000000);
	}
	lnet_sim_run(sim, SEC);
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(herd[i].ok, 1);
}

static void herd_close(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		ulrpc_client_close(herd[i].client);
		cr_assert_eq(ulrpc_close(herd[i].rpc), 0);
	}
	cr_assert_eq(ulrpc_close(server), 0);
	cluster_end(sim);
}

/* Waits until all @n clients are connected. At most a quarter of them may
 * connect within the same 10 ms. */
static void herd_returns(unsigned int n, uint64_t within_ns)
{
	uint64_t end = lnet_sim_now(sim) + within_ns, before = 0;

	while (lnet_sim_now(sim) < end) {
		uint64_t now;

		lnet_sim_run(sim, 10 * MSEC);
		now = server_counted(RPC_STAT_clients_returned) +
		      server_counted(RPC_STAT_clients_accepted);
		cr_assert_leq(now - before, n / 4, "%lu of %u",
			      (unsigned long)(now - before), n);
		before = now;
	}
	for (unsigned int i = 0; i < n; i++)
		cr_assert_eq(herd[i].ok, 2);
}

/* Each of @n clients makes a call while the server cannot be reached.
 * @within_ns after the end of that all calls must be served. */
static void herd_waits(unsigned int n, uint64_t within_ns)
{
	struct ulnet_sim_link bad = { .latency = 10000,
				      .refuse = LNET_SIM_ALWAYS };

	herd_open(n);
	link_is(&bad);
	for (unsigned int i = 0; i < n; i++)
		caller_call(&herd[i], 60000000);
	lnet_sim_run(sim, 5 * SEC);
	link_is(&good);
	server->shards[0].stats->counts[RPC_STAT_clients_accepted] = 0;
	herd_returns(n, within_ns);
	herd_close(n);
}

Test(outage, herd_is_served_soon_and_spread)
{
	herd_waits(1000, SEC);
}

Test(outage, large_herd_is_served_soon_and_spread)
{
	herd_waits(HERD, 3 * SEC);
}

Test(outage, herd_of_a_server_that_restarts)
{
	const unsigned int n = 1000;

	herd_open(n);
	cr_assert_eq(lnet_sim_crash(sim, SERVER), 0);
	for (unsigned int i = 0; i < n; i++)
		caller_call(&herd[i], 60000000);
	lnet_sim_run(sim, 5 * SEC);
	cr_assert_eq(lnet_sim_restart(sim, SERVER), 0);
	server_open();
	herd_returns(n, SEC);
	herd_close(n);
}
