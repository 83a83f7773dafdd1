/* SPDX-License-Identifier: BSD-3-Clause */
/* A service is changed while requests of it wait and run, and its clients while
 * they make calls. */
#include <string.h>
#include "rpc/client/client.h"
#include "rpc/client/set.h"
#include "rpc/server/set.h"
#include "tests/unit/rpc/server/request_rig.h"

#define CALLS 5

static struct serve_rig g;
static struct called calls[CALLS];

static void call(unsigned int i, const char *method, uint64_t deadline)
{
	const uint32_t word = i;

	serve_call(&g, method, &word, sizeof(word), deadline,
		   ULRPC_PRIORITY_DEFAULT, &calls[i]);
	lnet_sim_run(g.sim, 10 * MSEC);
}

static void begin(const char *policy)
{
	const struct ulrpc_service_conf conf = { .policy = policy,
						 .workers_min = 1,
						 .workers_max = 1 };

	serve_init(&g, 1, 1);
	lnet_sim_run(g.sim, MSEC); /* as the time 0 stands for "never" */
	serve_open(&g, NULL);
	serve_start_with(&g, &conf);
	serve_client(&g);
	/* These end the client's slow start. */
	for (unsigned int i = 0; i < 20; i++)
		call(0, "echo", 100000000);
	cr_assert_gt(calls[0].ended, 0);
	memset(calls, 0, sizeof(calls));
	g.served.runs = 0;
}

static void end(void)
{
	for (unsigned int i = 0; i < CALLS; i++) {
		serve_release(&g.served);
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	ulrpc_client_close(g.client);
	serve_fini(&g);
}

static unsigned int ended(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < CALLS; i++)
		n += calls[i].ended;
	return n;
}

struct job {
	struct service_set set;
	struct shard *shard;
};

static int run(void *arg)
{
	struct job *job = arg;

	return services_set(job->shard, &job->set);
}

/* Changes the service, and sets *@set to what it has then. */
static int change(struct service_set *set)
{
	struct job job = { .set = *set, .shard = &g.rpc[SERVER]->shards[0] };
	int rc;

	if (!job.set.service)
		job.set.service = "test";
	rc = lnet_call(g.rpc[SERVER]->node, 0, run, &job);
	*set = job.set;
	free(set->policy_now);
	lnet_sim_run(g.sim, 10 * MSEC);
	return rc;
}

static void change_policy(const char *policy)
{
	struct service_set set = { .policy = policy };

	cr_assert_eq(change(&set), 0, "%s", set.why);
}

static void change_workers(unsigned int min, unsigned int max)
{
	struct service_set set = { .given = 1u << SERVICE_SET_workers_min |
					    1u << SERVICE_SET_workers_max,
				   .values = { min, max } };

	cr_assert_eq(change(&set), 0, "%s", set.why);
	cr_assert_eq(set.values[SERVICE_SET_workers_max], max);
}

/* What waits is served in the order of the new policy. */
Test(set, order)
{
	static const uint32_t order[CALLS] = { 0, 4, 3, 2, 1 };

	begin("fifo");
	for (unsigned int i = 0; i < CALLS; i++)
		call(i, "park", 100000000 - i * 1000000);
	cr_assert_eq(g.served.runs, 1);
	change_policy("edf");
	end();
	cr_assert_eq(ended(), CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		cr_expect_eq(g.served.order[i], order[i], "%u: %u", i,
			     g.served.order[i]);
}

/* What was in the lanes of one policy is in those of the next, and back. */
Test(set, there_and_back)
{
	static const uint32_t order[CALLS] = { 0, 1, 2, 3, 4 };

	begin(NULL);
	for (unsigned int i = 0; i < CALLS; i++)
		call(i, "park", 100000000 - i * 1000000);
	change_policy("edf");
	change_policy("rr quantum=2");
	change_policy("fair");
	change_policy("fifo");
	end();
	cr_assert_eq(ended(), CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		cr_expect_eq(g.served.order[i], order[i], "%u: %u", i,
			     g.served.order[i]);
}

Test(set, the_gate_opens)
{
	begin("tbf rate=1 depth=1");
	for (unsigned int i = 0; i < 3; i++)
		call(i, "work", 100000000);
	cr_assert_eq(ended(), 1);
	change_policy("fair");
	cr_assert_eq(ended(), 3);
	/* The time in the gate is none in the queue. */
	cr_expect_geq(calls[1].outcome.server_throttled, 10000);
	cr_expect_lt(calls[1].outcome.server_queue, 5000);
	end();
}

/* What waits in the gate goes to the new one; what has passed, does not. */
Test(set, another_gate)
{
	begin("tbf method=work rate=1 depth=1");
	for (unsigned int i = 0; i < 3; i++)
		call(i, "work", 100000000);
	call(3, "park", 100000000);
	call(4, "park", 100000000);
	cr_assert_eq(ended(), 1);
	change_policy("fifo tbf rate=2 depth=1");
	cr_assert_eq(g.served.parked, 1, "%u", g.served.parked);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * MSEC);
	/* the second one to park, and the one that a full bucket let through */
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(ended(), 4);
	lnet_sim_run(g.sim, 600 * MSEC);
	cr_assert_eq(ended(), 5);
	end();
}

Test(set, workers)
{
	begin(NULL);
	for (unsigned int i = 0; i < 4; i++)
		call(i, "park", 100000000);
	cr_assert_eq(g.served.parked, 1, "%u", g.served.parked);
	change_workers(1, 3);
	cr_assert_eq(g.served.parked, 3, "%u", g.served.parked);
	change_workers(1, 1);
	serve_release(&g.served);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(ended(), 3);
	cr_assert_eq(g.served.parked, 1, "%u", g.served.parked);
	call(0, "park", 100000000);
	cr_assert_eq(g.served.parked, 1, "%u", g.served.parked);
	end();
}

/* ---- limits of bodies ---- */

#define BODY 100000

static void call_long(struct called *c, enum ulrpc_cause cause)
{
	static const uint8_t body[BODY];
	const struct ulrpc_call_conf conf = { .deadline = 1000000,
					      .reply_max = 100 };

	*c = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("echo"), body, BODY,
				&conf, on_called, c, NULL),
		     0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(c->ended, 1);
	cr_assert_eq(c->outcome.cause, cause, "%s: %s",
		     ulrpc_cause_name(c->outcome.cause), c->outcome.text);
}

static void change_limit(enum service_set_item item, uint64_t value)
{
	struct service_set set = { .given = 1u << item };

	set.values[item] = value;
	cr_assert_eq(change(&set), 0, "%s", set.why);
	cr_assert_eq(set.values[item], value);
}

/* The client does not know that less is taken now: the service says so. */
Test(set, limits_of_bodies)
{
	struct called c;

	begin(NULL);
	call_long(&c, ULRPC_CAUSE_OK);
	change_limit(SERVICE_SET_reply_limit, BODY - 1);
	call_long(&c, ULRPC_CAUSE_TOO_LONG);
	cr_assert_str_eq(c.outcome.text,
			 "the reply has 100000 bytes, and the service's "
			 "replies may have up to 99999");
	cr_assert_eq(g.served.runs, 2);
	change_limit(SERVICE_SET_reply_limit, UINT32_MAX);
	call_long(&c, ULRPC_CAUSE_OK);
	change_limit(SERVICE_SET_request_limit, BODY - 1);
	call_long(&c, ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_str_eq(c.outcome.text,
			 "a request of 100000 bytes is too long: the service "
			 "takes up to 99999");
	cr_assert_eq(g.served.runs, 3);
	change_limit(SERVICE_SET_request_limit, BODY);
	call_long(&c, ULRPC_CAUSE_OK);
	end();
}

/* A client that connects later hears of the limit, and sends nothing longer. */
Test(set, limit_that_is_known)
{
	struct called c;
	unsigned int before;

	begin(NULL);
	ulrpc_client_close(g.client);
	change_limit(SERVICE_SET_request_limit, BODY - 1);
	g.client = serve_client_of(g.rpc[CALLER], "test");
	serve_call(&g, "echo", "x", 1, 1000000, ULRPC_PRIORITY_DEFAULT, &c);
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert_eq(c.ended, 1);
	before = g.served.runs;
	call_long(&c, ULRPC_CAUSE_BAD_REQUEST);
	cr_assert_eq(c.outcome.attempts, 0);
	cr_assert_eq(g.served.runs, before);
	end();
}

/* ---- clients ---- */

struct clients_job {
	struct client_set set;
	struct shard *shard;
};

static int clients_run(void *arg)
{
	struct clients_job *job = arg;

	clients_set(job->shard, &job->set);
	return 0;
}

/* Sets an item of the clients of @service, unless @item is CLIENT_SET_ITEMS.
 * Returns what they have then. */
static struct client_set change_clients(const char *service,
					enum client_set_item item,
					uint64_t value)
{
	struct clients_job job = { .set.service = service,
				   .shard = &g.rpc[CALLER]->shards[0] };

	if (item != CLIENT_SET_ITEMS) {
		job.set.given = 1u << item;
		job.set.values[item] = value;
	}
	cr_assert_eq(lnet_call(g.rpc[CALLER]->node, 0, clients_run, &job), 0);
	lnet_sim_run(g.sim, 10 * MSEC);
	return job.set;
}

/* Makes CALLS calls that are held. Returns how many the client has sent. */
static unsigned int sent(void)
{
	unsigned int parked;

	memset(calls, 0, sizeof(calls));
	for (unsigned int i = 0; i < CALLS; i++)
		call(i, "hold", 100000000);
	parked = g.served.parked;
	for (unsigned int i = 0; i < CALLS; i++) {
		serve_release(&g.served);
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	cr_assert_eq(ended(), CALLS);
	return parked;
}

Test(set, window_of_clients)
{
	struct client_set set;

	begin(NULL);
	cr_assert_eq(sent(), CALLS);
	set = change_clients("test", CLIENT_SET_ITEMS, 0);
	cr_assert_eq(set.clients, 1);
	cr_assert_eq(set.now[CLIENT_SET_inflight_max], 1024);
	cr_assert_eq(set.now[CLIENT_SET_queue_max], 1 << 20);
	cr_assert_eq(set.now[CLIENT_SET_queue_bytes], 1 << 30);
	set = change_clients("other", CLIENT_SET_inflight_max, 2);
	cr_assert_eq(set.clients, 0);
	cr_assert_eq(sent(), CALLS);
	set = change_clients("test", CLIENT_SET_inflight_max, 2);
	cr_assert_eq(set.now[CLIENT_SET_inflight_max], 2);
	cr_assert_eq(sent(), 2);
	change_clients("test", CLIENT_SET_inflight_max, 1000);
	/* a slow start */
	for (unsigned int i = 0; i < 20; i++)
		call(0, "echo", 1000000);
	cr_assert_eq(sent(), CALLS);
	end();
}

static int try_call(struct called *c, size_t length)
{
	static const char body[1000];
	const struct ulrpc_call_conf conf = { .deadline = 100000000 };

	return ulrpc_call(g.client, ulrpc_method("hold"), body, length, &conf,
			  on_called, c, NULL);
}

/* Returns how many calls with @length bytes the client takes. */
static unsigned int taken(size_t length)
{
	static struct called c[2 * CALLS];
	unsigned int n = 0;

	while (n < ARRAY_SIZE(c) && !try_call(&c[n], length)) {
		n++;
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	for (unsigned int i = 0; i < n; i++) {
		serve_release(&g.served);
		lnet_sim_run(g.sim, 10 * MSEC);
	}
	return n;
}

/* What a client may have that has not ended; what is more already, stays. */
Test(set, queue_of_clients)
{
	struct called c[4] = { 0 };

	begin(NULL);
	change_clients("test", CLIENT_SET_queue_max, 3);
	cr_assert_eq(taken(1), 3);
	change_clients("test", CLIENT_SET_queue_max, 5);
	cr_assert_eq(taken(1), 5);
	change_clients("test", CLIENT_SET_queue_bytes, 2000);
	cr_assert_eq(taken(1000), 2);
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(try_call(&c[i], 1), 0);
	lnet_sim_run(g.sim, 10 * MSEC);
	change_clients("test", CLIENT_SET_queue_max, 1);
	cr_assert_eq(try_call(&c[2], 1), -EAGAIN);
	change_clients("test", CLIENT_SET_queue_max, 10);
	cr_assert_eq(try_call(&c[3], 1), 0);
	for (unsigned int i = 0; i < 3; i++) {
		lnet_sim_run(g.sim, 10 * MSEC);
		serve_release(&g.served);
	}
	lnet_sim_run(g.sim, 10 * MSEC);
	cr_assert(c[0].ended && c[1].ended && !c[2].ended && c[3].ended);
	end();
}

static void call_limited(uint32_t own, enum ulrpc_cause cause)
{
	static const uint8_t body[BODY];
	const struct ulrpc_call_conf conf = { .deadline = 1000000,
					      .reply_max = 100,
					      .reply_limit = own };
	struct called c = { 0 };

	cr_assert_eq(ulrpc_call(g.client, ulrpc_method("echo"), body, BODY,
				&conf, on_called, &c, NULL),
		     0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.cause, cause, "%s: %s",
		     ulrpc_cause_name(c.outcome.cause), c.outcome.text);
	if (cause == ULRPC_CAUSE_TOO_LONG)
		cr_assert_str_eq(c.outcome.text,
				 "the reply has 100000 bytes, and the caller "
				 "takes up to 99999");
}

/* The limit of a client is that of its calls without one. */
Test(set, replies_of_clients)
{
	struct client_set set;
	uint64_t all;

	begin(NULL);
	set = change_clients("test", CLIENT_SET_ITEMS, 0);
	all = set.now[CLIENT_SET_reply_limit];
	cr_assert_eq(all, ULRPC_REPLY_MAX);
	call_limited(0, ULRPC_CAUSE_OK);
	set = change_clients("test", CLIENT_SET_reply_limit, BODY - 1);
	cr_assert_eq(set.now[CLIENT_SET_reply_limit], BODY - 1);
	call_limited(0, ULRPC_CAUSE_TOO_LONG);
	call_limited(BODY, ULRPC_CAUSE_OK);
	/* What the node takes in any case is no limit any more. */
	set = change_clients("test", CLIENT_SET_reply_limit, UINT32_MAX);
	cr_assert_eq(set.now[CLIENT_SET_reply_limit], all);
	cr_assert_eq(g.client->marks, 0);
	call_limited(0, ULRPC_CAUSE_OK);
	call_limited(BODY - 1, ULRPC_CAUSE_TOO_LONG);
	end();
}

/* A change is made whole, or not at all. */
Test(set, whole)
{
	static const struct {
		struct service_set set;
		int rc;
		const char *why;
	} wrong[] = {
		{ { .given = 1u << SERVICE_SET_window,
		    .values = { [SERVICE_SET_window] = 5 },
		    .policy = "fifo tbf method=wrok rate=1" },
		  -EINVAL,
		  "policy: 'fifo tbf method=wrok rate=1', at byte 16: rule 1: "
		  "method: there is no 'wrok'" },
		{ { .given = 1u << SERVICE_SET_window, .policy = "best" },
		  -EOPNOTSUPP,
		  "policy: 'best', at byte 0: 'best' is no policy: fair, rr, "
		  "fifo, edf or tbf is expected" },
		{ { .given = 1u << SERVICE_SET_workers_min |
			     1u << SERVICE_SET_window,
		    .values = { 4 },
		    .policy = "edf" },
		  -EINVAL,
		  "workers_max: 1 is less than workers_min, 4" },
		{ { .given = 1u << SERVICE_SET_queue_bytes_max,
		    .values = { [SERVICE_SET_queue_bytes_max] = 100 } },
		  -EINVAL,
		  "queue_bytes_max: 100 is less than request_max, 65536" },
		{ { .given = 1u << SERVICE_SET_queue_bytes_max,
		    .values = { [SERVICE_SET_queue_bytes_max] = 1 << 20 } },
		  -EINVAL,
		  "queue_bytes_max: 1048576 is less than request_limit, "
		  "16777216" },
		{ { .given = 1u << SERVICE_SET_request_limit |
			     1u << SERVICE_SET_window,
		    .values = { [SERVICE_SET_request_limit] = 65535,
				[SERVICE_SET_window] = 5 } },
		  -EINVAL,
		  "request_limit: 65535 is less than request_max, 65536" },
		{ { .given = 1u << SERVICE_SET_request_limit |
			     1u << SERVICE_SET_reply_limit,
		    .values = { [SERVICE_SET_request_limit] = 1 << 30,
				[SERVICE_SET_reply_limit] = 5 } },
		  -EINVAL,
		  "queue_bytes_max: 33554432 is less than request_limit, "
		  "1073741824" },
		{ { .service = "tset" },
		  -ENOENT,
		  "service: there is no 'tset'" },
	};
	struct service_set before = { .given = 0 };

	begin("rr");
	cr_assert_eq(change(&before), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct service_set set = wrong[i].set;
		struct service_set now = { .given = 0 };

		cr_expect_eq(change(&set), wrong[i].rc);
		cr_expect_str_eq(set.why, wrong[i].why);
		cr_assert_eq(change(&now), 0);
		cr_expect_arr_eq(now.values, before.values, sizeof(now.values));
		cr_expect_str_eq(g.service->policy, "rr");
	}
	end();
}
