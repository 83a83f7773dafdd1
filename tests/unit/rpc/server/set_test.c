/* SPDX-License-Identifier: BSD-3-Clause */
/* A service is changed while requests of it wait and run. */
#include <string.h>
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
