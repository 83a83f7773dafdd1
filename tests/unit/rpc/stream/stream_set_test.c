/* SPDX-License-Identifier: BSD-3-Clause */
/* What streams have is changed, and counted, while they are open. */
#include "rpc/service_set.h"
#include "rpc/stats/stats.h"
#include "tests/unit/rpc/stream/stream_rig.h"

#define SECONDS UINT64_C(1000000) /* us */

static struct stream_rig g;

static void begin(void)
{
	memset(&g, 0, sizeof(g));
	stream_rig_init(&g, 1, 1);
}

struct job {
	struct ulrpc *rpc;
	struct service_set service;
	struct client_set clients;
};

static int run_service(void *arg)
{
	struct job *job = arg;

	return job->rpc->server->set(&job->rpc->shards[0], &job->service);
}

static int run_clients(void *arg)
{
	struct job *job = arg;

	job->rpc->client->set_clients(&job->rpc->shards[0], &job->clients);
	return 0;
}

/* Sets @item of the service @name to @value. Returns as lnetctl does; *@set is
 * what the service has then. */
static int set_service(const char *name, enum service_set_item item,
		       uint64_t value, struct service_set *set)
{
	struct job job = { .rpc = g.s.rpc[SERVER], .service.service = name };
	int rc;

	job.service.given = 1u << item;
	job.service.values[item] = value;
	rc = lnet_call(job.rpc->node, 0, run_service, &job);
	free(job.service.policy_now);
	*set = job.service;
	return rc;
}

/* Sets @item of the clients, and returns what they have. */
static struct client_set set_clients(enum client_set_item item, uint64_t value)
{
	struct job job = { .rpc = g.s.rpc[CALLER],
			   .clients.service = "flow" };

	job.clients.given = 1u << item;
	job.clients.values[item] = value;
	cr_assert_eq(lnet_call(job.rpc->node, 0, run_clients, &job), 0);
	cr_assert_eq(job.clients.streams, 1);
	return job.clients;
}

/* Opens a stream that nobody reads. Returns how many messages its client may
 * send. */
static unsigned int sent_to_nobody(struct flow *f)
{
	unsigned int n = 0;

	*f = (struct flow){ .open_ended = true, .lazy = true };
	flow_open(&g, f, "park", NULL, 0, FLOW_FOREVER);
	lnet_sim_run(g.s.sim, SEC);
	while (!ulrpc_stream_send(f->stream, "hello", 5))
		n++;
	return n;
}

static void end_all(struct flow *f, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		ulrpc_stream_put(f[i].stream);
	lnet_sim_run(g.s.sim, SEC);
	stream_rig_fini(&g);
}

/* The window of either side is the smaller one of both, for streams that are
 * opened from now on. */
Test(stream_set, windows)
{
	struct service_set set;
	struct flow f[4];

	begin();
	cr_expect_eq(sent_to_nobody(&f[0]), 64);
	cr_assert_eq(set_service("flow", SERVICE_SET_window_messages, 5, &set),
		     0);
	cr_expect_eq(set.values[SERVICE_SET_window_messages], 5);
	cr_expect_eq(set.values[SERVICE_SET_window_bytes], 65536);
	cr_expect_eq(sent_to_nobody(&f[1]), 5);
	cr_assert_eq(set_service("flow", SERVICE_SET_window_bytes, 11, &set), 0);
	cr_expect_eq(set.values[SERVICE_SET_window_messages], 5);
	cr_expect_eq(sent_to_nobody(&f[2]), 3);
	cr_assert_eq(set_service("flow", SERVICE_SET_window_bytes, 1000, &set),
		     0);
	cr_expect_eq(
		set_clients(CLIENT_SET_window_messages, 2)
			.now[CLIENT_SET_window_messages],
		2);
	cr_expect_eq(sent_to_nobody(&f[3]), 2);
	/* The first ones have what they were opened with. */
	cr_expect_eq(ulrpc_stream_send(f[0].stream, "hello", 5), -EAGAIN);
	end_all(f, 4);
}

Test(stream_set, how_many)
{
	struct service_set set;
	struct flow f[3] = { 0 };

	begin();
	cr_assert_eq(set_service("flow", SERVICE_SET_streams_max, 4, &set), 0);
	cr_expect_eq(set.values[SERVICE_SET_streams_max], 4);
	/* A host gets no more than others leave, and the channel is one. */
	for (unsigned int i = 0; i < 3; i++)
		flow_open(&g, &f[i], "park", NULL, 0, 5 * SECONDS);
	lnet_sim_run(g.s.sim, SEC);
	cr_expect_eq(g.nparked, 2);
	/* Those that wait are let in. */
	cr_assert_eq(set_service("flow", SERVICE_SET_streams_max, 100, &set),
		     0);
	lnet_sim_run(g.s.sim, 3 * SEC);
	cr_expect_eq(g.nparked, 3);
	end_all(f, 3);
}

Test(stream_set, patience)
{
	struct ulnet_nid a = nth_id(CALLER).nid, b = nth_id(SERVER).nid;
	struct client_set set;
	struct flow f;

	begin();
	set = set_clients(CLIENT_SET_patience, 2 * SECONDS);
	cr_expect_eq(set.now[CLIENT_SET_patience], 2 * SECONDS);
	(void)sent_to_nobody(&f);
	cr_assert_eq(lnet_sim_partition(g.s.sim, &a, &b, true), 0);
	lnet_sim_run(g.s.sim, 12 * SEC);
	cr_expect_eq(f.ended, 1);
	cr_assert_eq(lnet_sim_partition(g.s.sim, &a, &b, false), 0);
	end_all(&f, 1);
}

Test(stream_set, service_without_streams)
{
	struct service_set set;

	begin();
	cr_expect_eq(set_service("ulrpc.streams", SERVICE_SET_streams_max, 7,
				 &set),
		     -EINVAL);
	cr_expect_str_eq(set.why, "streams_max: the service has no streams");
	cr_expect_eq(set_service("flaw", SERVICE_SET_streams_max, 7, &set),
		     -ENOENT);
	end_all(NULL, 0);
}

/* ---- how many there are ---- */

static void are_open(unsigned int n)
{
	for (enum stat_side side = 0; side < STAT_SIDES; side++) {
		struct ulrpc *rpc =
			g.s.rpc[side == STAT_CALLS ? CALLER : SERVER];
		struct stats_sum *sum;

		cr_assert_eq(stats_sum(rpc, false, &sum), 0);
		cr_expect_eq(sum->all.counts[side == STAT_CALLS
						     ? RPC_STAT_streams_open
						     : RPC_STAT_streams_served],
			     n);
		cr_expect_eq(stat_service_get(&sum->all, side, "flow")->streams,
			     n);
		stats_sum_free(sum);
	}
}

static bool says(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

Test(stream_set, counted)
{
	struct flow f[3];
	char *text;

	begin();
	are_open(0);
	for (unsigned int i = 0; i < 3; i++)
		(void)sent_to_nobody(&f[i]);
	are_open(3);
	cr_assert_eq(ulrpc_stats(g.s.rpc[SERVER], &text), 0);
	cr_expect(says(text, "    streams_served:\n"
			     "    -   service: \"flow\"\n"
			     "        open: 3\n"),
		  "%s", text);
	free(text);
	cr_assert_eq(ulrpc_stats(g.s.rpc[CALLER], &text), 0);
	cr_expect(says(text, "    streams:\n"
			     "    -   service: \"flow\"\n"
			     "        open: 3\n"),
		  "%s", text);
	free(text);
	ulrpc_stream_cancel(f[0].stream);
	ulrpc_stream_end(g.parked[1], 0, NULL);
	lnet_sim_run(g.s.sim, SEC);
	ulrpc_stream_put(g.parked[0]);
	ulrpc_stream_put(g.parked[1]);
	g.parked[0] = g.parked[1] = NULL;
	lnet_sim_run(g.s.sim, SEC);
	are_open(1);
	end_all(f, 3);
}
