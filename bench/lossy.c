/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls over a network that loses messages, which TCP does not, or that breaks
 * connections: in the simulator, on virtual time.
 *
 *	lossy idempotent|once CALLS LOSS LATENCY CUT
 *
 * CALLS calls of 64 bytes, idempotent or to be executed at most once, 64 of
 * them under way, over a link that takes LATENCY us and loses LOSS percent of
 * the messages in either direction. If CUT is not 0, connections are needed,
 * take two round trips to make, and are cut each CUT ms. Prints lines of a name
 * and a number: calls, lost, resent, queries, p50, p99, p999 (us), rate (calls
 * a second), and executions (of all calls together). Every machine prints the
 * same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/duo.h"
#include "bench/node.h"
#include "ulnet/sim.h"

#define SEED	 1
#define INFLIGHT 64
#define SIZE	 64
#define DEADLINE UINT64_C(10000000) /* us, of a call */
/* ns of virtual time that one lnet_sim_run() takes */
#define STEP UINT64_C(10000000)

struct run {
	struct lnet_sim *sim;
	struct ulrpc_client *client;
	enum ulrpc_semantics semantics;
	uint64_t cut; /* ns between two cuts; 0: no cuts */
	unsigned int calls, begun, ended, lost;
	uint64_t retries, queries, executions;
	uint64_t last;	 /* ns: end of the last call */
	uint32_t *times; /* us, of answered calls */
};

/* ---- the server ---- */

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	uint64_t *executions = arg;

	++*executions;
	ulrpc_reply(request, body, length);
}

static void serve(struct ulrpc *rpc, struct run *r)
{
	const struct ulrpc_method_conf method = { .name = "load",
						  .handler = on_request,
						  .arg = &r->executions,
						  .run = ULRPC_RUN_INLINE,
						  .semantics = r->semantics };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "bench";
	conf.methods = &method;
	conf.nmethods = 1;
	must(ulrpc_service_start(rpc, &conf, &service), "ulrpc_service_start");
}

/* ---- the client ---- */

static void call(struct run *r);

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct run *r = arg;

	r->retries += o->retries;
	r->queries += o->queries;
	if (o->status)
		r->lost++;
	else
		r->times[r->ended - r->lost] = (uint32_t)o->total;
	if (!o->status)
		duo_verify(reply, 0, length);
	r->ended++;
	r->last = lnet_sim_now(r->sim);
	if (r->begun < r->calls)
		call(r);
}

static void call(struct run *r)
{
	const struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					      .semantics = r->semantics };
	unsigned char body[SIZE];

	duo_fill(body, sizeof(body));
	r->begun++;
	must(ulrpc_call(r->client, ulrpc_method("load"), body, sizeof(body),
			&conf, on_end, r, NULL),
	     "ulrpc_call");
}

/* ---- the simulation ---- */

static struct ulrpc *node_add(struct lnet_sim *sim, const char *nid)
{
	struct ulrpc *rpc;
	int i = lnet_sim_node_add(sim, nid, NULL, NULL, NULL);

	must(i, "lnet_sim_node_add");
	must(ulrpc_open(lnet_sim_node(sim, (unsigned int)i), NULL, &rpc),
	     "ulrpc_open");
	return rpc;
}

static void cut(void *arg);

/* cuts come at varying moments of a round trip */
static void cut_later(struct run *r)
{
	must(lnet_sim_at(r->sim, r->cut + lnet_sim_random(r->sim, 1000000), cut,
			 r),
	     "lnet_sim_at");
}

static void cut(void *arg)
{
	const struct ulnet_nid any = LNET_NID_ANY;
	struct run *r = arg;

	lnet_sim_cut(r->sim, &any, &any);
	if (r->ended < r->calls)
		cut_later(r);
}

static void run_init(struct run *r, uint32_t loss, uint64_t latency)
{
	const struct ulnet_sim_link link = { .latency = latency,
					     .loss = loss,
					     .connect =
						     r->cut ? 4 * latency : 0 };
	const struct ulnet_nid any = LNET_NID_ANY;

	r->times = calloc(r->calls, sizeof(*r->times));
	if (!r->times)
		give_up(-ENOMEM, "calls");
	must(lnet_sim_new(SEED, 1, &r->sim), "lnet_sim_new");
	must(lnet_sim_link_set(r->sim, &any, &any, &link), "lnet_sim_link_set");
	serve(node_add(r->sim, "10.0.0.1@tcp"), r);
	r->client =
		bench_client(node_add(r->sim, "10.0.0.2@tcp"), "10.0.0.1@tcp");
	if (r->cut)
		cut_later(r);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(struct run *r)
{
	unsigned int n = r->ended - r->lost;

	if (!n)
		give_up(-EPROTO, "no call was answered");
	qsort(r->times, n, sizeof(*r->times), compare);
	printf("calls %u\nlost %u\nresent %llu\nqueries %llu\n", r->ended,
	       r->lost, (unsigned long long)r->retries,
	       (unsigned long long)r->queries);
	printf("p50 %u\np99 %u\np999 %u\n", r->times[n / 2],
	       r->times[(uint64_t)n * 99 / 100],
	       r->times[(uint64_t)n * 999 / 1000]);
	printf("rate %.0f\nexecutions %llu\n", n / ((double)r->last / 1e9),
	       (unsigned long long)r->executions);
}

int main(int argc, char **argv)
{
	bool once = argc == 6 && !strcmp(argv[1], "once");
	struct run run = { .semantics = once ? ULRPC_AT_MOST_ONCE
					     : ULRPC_IDEMPOTENT };

	if (argc == 6 && (once || !strcmp(argv[1], "idempotent")))
		run.calls = (unsigned int)strtoul(argv[2], NULL, 10);
	if (!run.calls) {
		fprintf(stderr,
			"usage: lossy idempotent|once CALLS LOSS LATENCY "
			"CUT\n");
		return 2;
	}
	run.cut = strtoull(argv[5], NULL, 10) * 1000000;
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	run_init(&run,
		 (uint32_t)(strtod(argv[3], NULL) * LNET_SIM_ALWAYS / 100),
		 strtoull(argv[4], NULL, 10) * 1000);
	for (unsigned int i = 0; i < INFLIGHT && i < run.calls; i++)
		call(&run);
	while (run.ended < run.calls)
		lnet_sim_run(run.sim, STEP);
	report(&run);
	free(run.times);
	return lnet_sim_free(run.sim) ? 1 : 0;
}
