/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of real clients that end before they are answered, and what becomes of
 * their requests at the server. */
#include <errno.h>

#include "tests/unit/rpc/serve_rig.h"

#define CALLS 100

static struct ulrpc_call *calls[CALLS];
static struct called ended[CALLS];

/* Makes so many calls that the window allows as many as the tests make at a
 * time. */
static void warm_up(struct lnet_sim *sim, struct ulrpc_client *c)
{
	const struct ulrpc_call_conf conf = { .deadline = 10000000 };
	static struct called done[1000];

	for (unsigned int i = 0; i < ARRAY_SIZE(done); i++) {
		done[i] = (struct called){ 0 };
		cr_assert_eq(ulrpc_call(c, ulrpc_method("echo"), "x", 1, &conf,
					on_called, &done[i], NULL),
			     0);
	}
	lnet_sim_run(sim, SEC);
	for (unsigned int i = 0; i < ARRAY_SIZE(done); i++)
		cr_assert_eq(done[i].outcome.cause, ULRPC_CAUSE_OK);
}

static void rig(struct serve_rig *g, const struct ulrpc_service_conf *conf)
{
	serve_init(g, 1, 1);
	serve_open(g, NULL);
	serve_start_with(g, conf);
	serve_client(g);
	warm_up(g->sim, g->client);
	g->served.runs = 0;
}

static void call(struct serve_rig *g, unsigned int i, const char *method,
		 uint64_t deadline)
{
	const struct ulrpc_call_conf conf = { .deadline = deadline };

	ended[i] = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g->client, ulrpc_method(method), "x", 1, &conf,
				on_called, &ended[i], &calls[i]),
		     0);
}

static void cancel(unsigned int i)
{
	ulrpc_cancel(calls[i]);
	ulrpc_call_put(calls[i]);
}

static uint64_t sent_cancels(const struct serve_rig *g)
{
	return g->rpc[CALLER]->shards[0].stats->counts[RPC_STAT_cancels_sent];
}

static struct service_cpt *cpt0(struct serve_rig *g)
{
	return &g->service->cpt[0];
}

/* The client tells the server of a canceled call at once, as ulrpc_call(3)
 * says: of all that are canceled in one turn in as few messages as possible,
 * and of answered calls not at all. */
Test(cancel_pair, canceled)
{
	struct serve_rig g;

	rig(&g, NULL);
	for (unsigned int i = 0; i < CALLS; i++)
		call(&g, i, i ? "work" : "park", 60000000);
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), CALLS);
	for (unsigned int i = 0; i < CALLS; i++)
		cancel(i);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(sent_cancels(&g), 2);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 1, "none waits");
	cr_assert(ulrpc_request_canceled(g.served.park[0]));
	serve_release(&g.served);
	call(&g, 0, "work", 1000000);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(ended[0].outcome.cause, ULRPC_CAUSE_OK);
	cancel(0);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(g.served.runs, 2);
	cr_assert_eq(sent_cancels(&g), 2);
	cr_assert_eq(serve_ended(cpt0(&g), STAT_CANCELED), CALLS);
	ulrpc_client_close(g.client);
	serve_fini(&g);
}

/* The server also learns at once of calls whose deadline has passed, and of a
 * client that is closed. */
Test(cancel_pair, no_time_and_no_client)
{
	struct serve_rig g;

	rig(&g, NULL);
	call(&g, 0, "park", 2000000);
	lnet_sim_run(g.sim, 100 * MSEC);
	call(&g, 1, "work", 60000000);
	lnet_sim_run(g.sim, 1800 * MSEC);
	cr_assert_not(ulrpc_request_canceled(g.served.park[0]));
	lnet_sim_run(g.sim, 200 * MSEC);
	cr_assert_eq(ended[0].ended, 1);
	cr_assert(ulrpc_request_canceled(g.served.park[0]));
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 2);
	ulrpc_client_close(g.client);
	lnet_sim_run(g.sim, MSEC);
	cr_assert_eq(atomic_load(&cpt0(&g)->under_way), 1);
	serve_release(&g.served);
	lnet_sim_run(g.sim, SEC);
	cr_assert_eq(g.served.runs, 1);
	for (unsigned int i = 0; i < 2; i++)
		ulrpc_call_put(calls[i]);
	serve_fini(&g);
}

/* ---- a server that ends ---- */

/* When a server ends, its clients learn of that, and calls that it has answered
 * before have their replies: no call waits for its deadline. */
Test(cancel_pair, goodbye)
{
	struct serve_rig g;

	rig(&g, NULL);
	call(&g, 0, "hold", 3600000000);
	call(&g, 1, "hold", 3600000000);
	lnet_sim_run(g.sim, 100 * MSEC);
	ulrpc_reply(unpark(&g.served), "in time", 7);
	cr_assert_eq(ulrpc_close(g.rpc[SERVER]), 0);
	g.rpc[SERVER] = NULL;
	lnet_sim_run(g.sim, 100 * MSEC);
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(ended[i].ended, 1, "%u", i);
		ulrpc_call_put(calls[i]);
	}
	cr_assert_eq(ended[0].outcome.cause, ULRPC_CAUSE_OK);
	cr_assert_eq(ended[1].outcome.execution, ULRPC_EXECUTION_UNKNOWN);
	cr_assert_eq(ended[1].outcome.cause, ULRPC_CAUSE_RESTARTED);
	serve_release(&g.served);
	serve_fini(&g);
}

/* A server ends while calls are on their way to it. They have certainly not
 * been executed, and run at the next server, though none may be executed twice;
 * a call that may have been executed ends. */
Test(cancel_pair, goodbye_to_unread_calls)
{
	struct serve_rig g;

	rig(&g, NULL);
	call(&g, 0, "hold", 3600000000);
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(g.served.runs, 1);
	for (unsigned int i = 1; i < 4; i++)
		call(&g, i, "echo", 3600000000);
	cr_assert_eq(ulrpc_close(g.rpc[SERVER]), 0);
	g.rpc[SERVER] = NULL;
	lnet_sim_run(g.sim, 100 * MSEC);
	cr_assert_eq(ended[0].ended, 1);
	cr_assert_eq(ended[0].outcome.execution, ULRPC_EXECUTION_UNKNOWN);
	for (unsigned int i = 1; i < 4; i++)
		cr_assert_eq(ended[i].ended, 0, "%u", i);
	g.served.runs = 0;
	serve_open(&g, NULL);
	serve_start_with(&g, NULL);
	lnet_sim_run(g.sim, 10 * SEC);
	for (unsigned int i = 0; i < 4; i++)
		ulrpc_call_put(calls[i]);
	for (unsigned int i = 1; i < 4; i++) {
		cr_assert_eq(ended[i].outcome.cause, ULRPC_CAUSE_OK, "%u", i);
		cr_assert_eq(ended[i].outcome.execution, ULRPC_EXECUTED);
	}
	cr_assert_eq(g.served.runs, 3);
	serve_release(&g.served);
	serve_fini(&g);
}

/* ---- workers that wait for bulk ---- */

#define WORKERS 4

static int got[WORKERS];
static unsigned int ngot;

static void take(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	char memory[64];
	struct iovec iov = { memory, sizeof(memory) };
	int rc = ulrpc_bulk_get_wait(r, 0, 0, &iov, 1);

	(void)arg;
	(void)body;
	(void)length;
	got[ngot++] = rc;
	if (rc)
		ulrpc_fail(r, rc);
	else
		ulrpc_reply(r, NULL, 0);
}

struct four {
	struct serve_rig g;
	struct ulrpc *other_rpc;
	struct ulrpc_client *other;
	struct ulrpc_bulk *bulk[WORKERS];
	char memory[64];
};

static void four_call(struct four *f, unsigned int i, uint64_t deadline)
{
	struct iovec iov = { f->memory, sizeof(f->memory) };
	struct ulrpc_bulk_conf lend = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf conf = { .deadline = deadline,
					.bulks = &f->bulk[i],
					.nbulks = 1 };

	cr_assert_eq(ulrpc_bulk_new(f->g.rpc[CALLER], &lend, &f->bulk[i]), 0);
	ended[i] = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(f->g.client, ulrpc_method("take"), "x", 1,
				&conf, on_called, &ended[i], &calls[i]),
		     0);
}

/* Checks that all workers are free: calls of another client are served at once.
 */
static void four_others(const struct four *f)
{
	struct called done[WORKERS];

	for (unsigned int i = 0; i < WORKERS; i++) {
		struct ulrpc_call_conf conf = { .deadline = 1000000 };

		done[i] = (struct called){ 0 };
		cr_assert_eq(ulrpc_call(f->other, ulrpc_method("work"), "x", 1,
					&conf, on_called, &done[i], NULL),
			     0);
	}
	lnet_sim_run(f->g.sim, 110 * MSEC);
	for (unsigned int i = 0; i < WORKERS; i++) {
		cr_assert_eq(done[i].ended, 1);
		cr_assert_eq(done[i].outcome.cause, ULRPC_CAUSE_OK);
	}
}

/* Opens a service with four workers, each of which waits for bulk of a call: it
 * does not come, as all messages from the server to that client are lost. There
 * is also another client. */
static void four_init_until(struct four *f, uint64_t keepalive,
			    uint64_t deadline)
{
	const struct ulnet_id server = nth_id(SERVER), caller = nth_id(CALLER);
	const struct ulnet_sim_link stuck = { .loss = LNET_SIM_ALWAYS };
	const struct ulrpc_method_conf methods[] = {
		{ .name = "take", .handler = take },
		{ .name = "work", .handler = echo, .arg = &f->g.served },
		{ .name = "echo",
		  .handler = echo,
		  .arg = &f->g.served,
		  .run = ULRPC_RUN_INLINE },
	};
	const struct ulrpc_conf conf = { .keepalive = keepalive };
	struct ulrpc_service_conf sc = { .name = "four",
					 .methods = methods,
					 .nmethods = ARRAY_SIZE(methods),
					 .workers_min = WORKERS };
	struct serve_rig *g = &f->g;

	memset(f, 0, sizeof(*f));
	ngot = 0;
	serve_init(g, 1, 1);
	serve_open(g, &conf);
	serve_start(g, &sc);
	cr_assert_eq(ulrpc_open(g->node[CALLER], &conf, &g->rpc[CALLER]), 0);
	g->client = serve_client_of(g->rpc[CALLER], "four");
	cr_assert_eq(ulrpc_open(lnet_sim_node(g->sim, serve_node_add(g, 2)),
				&conf, &f->other_rpc),
		     0);
	f->other = serve_client_of(f->other_rpc, "four");
	warm_up(g->sim, g->client);
	warm_up(g->sim, f->other);
	lnet_sim_link_set(g->sim, &server.nid, &caller.nid, &stuck);
	for (unsigned int i = 0; i < WORKERS; i++)
		four_call(f, i, deadline);
	lnet_sim_run(g->sim, 50 * MSEC);
	cr_assert_eq(ngot, 0);
}

static void four_init(struct four *f, uint64_t keepalive)
{
	four_init_until(f, keepalive, 3600000000);
}

static void four_are_free(const struct four *f)
{
	cr_assert_eq(ngot, WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++)
		cr_assert_eq(got[i], -ECANCELED, "%d", got[i]);
	four_others(f);
}

static void four_fini(struct four *f)
{
	for (unsigned int i = 0; i < WORKERS; i++) {
		ulrpc_call_put(calls[i]);
		ulrpc_bulk_close(f->bulk[i], NULL, NULL);
	}
	cr_assert_eq(ulrpc_close(f->other_rpc), 0);
	serve_fini(&f->g);
}

Test(cancel_pair, four_that_are_canceled)
{
	struct four f;

	four_init(&f, 0);
	for (unsigned int i = 0; i < WORKERS; i++)
		ulrpc_cancel(calls[i]);
	lnet_sim_run(f.g.sim, MSEC);
	four_are_free(&f);
	four_fini(&f);
}

Test(cancel_pair, four_whose_client_closes)
{
	struct four f;

	four_init(&f, 0);
	ulrpc_client_close(f.g.client);
	lnet_sim_run(f.g.sim, MSEC);
	four_are_free(&f);
	four_fini(&f);
}

/* The calls' deadline passes, and the server does not hear that they were
 * canceled. It knows the deadline itself. */
Test(cancel_pair, four_whose_cancels_are_lost)
{
	const struct ulnet_id server = nth_id(SERVER), caller = nth_id(CALLER);
	const struct ulnet_sim_link stuck = { .loss = LNET_SIM_ALWAYS };
	struct four f;

	four_init_until(&f, 0, 3000000);
	lnet_sim_link_set(f.g.sim, &caller.nid, &server.nid, &stuck);
	lnet_sim_run(f.g.sim, 2900 * MSEC);
	cr_assert_eq(ngot, 0);
	lnet_sim_run(f.g.sim, 100 * MSEC);
	for (unsigned int i = 0; i < WORKERS; i++)
		cr_assert_eq(ended[i].ended, 1);
	four_are_free(&f);
	four_fini(&f);
}

/* The client's node crashes. The server knows when the lease is over. */
Test(cancel_pair, four_whose_client_dies)
{
	struct four f;

	four_init(&f, 100000);
	lnet_sim_crash(f.g.sim, CALLER);
	f.g.rpc[CALLER] = NULL;
	lnet_sim_run(f.g.sim, 400 * MSEC);
	four_are_free(&f);
	cr_assert_eq(ulrpc_close(f.other_rpc), 0);
	serve_fini(&f.g);
}
