/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that block, in virtual time. */
#include "tests/unit/rpc/serve_rig.h"
#include "tests/unit/rpc/worker_sleep.h"

#define LENGTH	4096
#define WORKERS 3

struct rig {
	struct serve_rig g;
	struct ulrpc_client *back; /* the server's client of its own service */
	char lent[LENGTH], got[LENGTH];
	struct ulrpc_bulk *bulk;
	bool muted;
	unsigned int begun, ended;
	int status; /* of the last wait */
	uint64_t ns;
};

/* ---- handlers ---- */

static void finish(struct rig *r, struct ulrpc_request *request, int status)
{
	r->status = status;
	r->ended++;
	if (status)
		ulrpc_fail(request, status);
	else
		ulrpc_reply(request, "done", 4);
}

/* Makes the link from caller to server lose everything, so that bulk never
 * arrives. */
static void mute(struct rig *r)
{
	struct ulnet_sim_link bad = { .loss = LNET_SIM_ALWAYS };
	struct ulnet_nid from = nth_id(CALLER).nid, to = nth_id(SERVER).nid;

	lnet_sim_link_set(r->g.sim, &from, &to, &bad);
}

static void get(void *arg, struct ulrpc_request *request, const void *body,
		size_t length)
{
	struct rig *r = arg;
	const struct iovec iov = { r->got, LENGTH };

	(void)body;
	(void)length;
	r->begun++;
	if (r->muted)
		mute(r);
	finish(r, request, ulrpc_bulk_get_wait(request, 0, 0, &iov, 1));
}

static void nap(void *arg, struct ulrpc_request *request, const void *body,
		size_t length)
{
	struct rig *r = arg;

	(void)body;
	(void)length;
	r->begun++;
	finish(r, request,
	       worker_sleep(ulrpc_node(ulrpc_request_rpc(request)), r->ns));
}

/* Handler that calls its own service. */
static void ask(void *arg, struct ulrpc_request *request, const void *body,
		size_t length)
{
	const struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER };
	struct rig *r = arg;
	struct ulrpc_outcome o;
	char reply[8];
	size_t n;
	int rc;

	r->begun++;
	rc = ulrpc_call_wait(r->back, ulrpc_method("nap"), body, length, &conf,
			     reply, sizeof(reply), &n, &o);
	finish(r, request, rc ? rc : o.status);
}

/* Handler that may neither open, close, start nor stop anything. */
static void manage(void *arg, struct ulrpc_request *request, const void *body,
		   size_t length)
{
	struct rig *r = arg;
	struct ulrpc_service_conf conf = serve_conf(&r->g);
	struct ulrpc *rpc = ulrpc_request_rpc(request), *other;

	(void)body;
	(void)length;
	conf.name = "other";
	cr_assert_eq(ulrpc_service_start(rpc, &conf, NULL), -EDEADLK);
	cr_assert_eq(ulrpc_service_stop(r->g.service, 0), -EDEADLK);
	cr_assert_eq(ulrpc_close(rpc), -EDEADLK);
	cr_assert_eq(ulrpc_open(ulrpc_node(rpc), NULL, &other), -EDEADLK);
	finish(r, request, 0);
}

/* ---- the rig ---- */

static void rig_init(struct rig *r, unsigned int cpts)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "get", .handler = get, .arg = r },
		{ .name = "nap", .handler = nap, .arg = r },
		{ .name = "ask", .handler = ask, .arg = r },
		{ .name = "manage", .handler = manage, .arg = r },
	};
	struct ulrpc_client_conf cc;
	struct ulrpc_service_conf conf;
	struct ulnet_nid nid = nth_id(SERVER).nid;

	memset(r, 0, sizeof(*r));
	memset(r->lent, 'x', LENGTH);
	r->ns = SEC;
	serve_init(&r->g, 1, cpts);
	serve_open(&r->g, NULL);
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.workers_min = 1;
	conf.workers_max = WORKERS;
	serve_start(&r->g, &conf);
	serve_client(&r->g);
	ulrpc_client_conf_init(&cc);
	cc.nids = &nid;
	cc.nnids = 1;
	cc.service = "test";
	cr_assert_eq(ulrpc_client_open(r->g.rpc[SERVER], &cc, &r->back), 0);
}

static void rig_fini(struct rig *r)
{
	if (r->bulk)
		ulrpc_bulk_close(r->bulk, NULL, NULL);
	serve_fini(&r->g);
}

static void call(struct rig *r, const char *method, struct called *c)
{
	serve_call(&r->g, method, "x", 1, ULRPC_NEVER, ULRPC_PRIORITY_DEFAULT,
		   c);
}

/* Makes a call that lends memory. */
static void call_get(struct rig *r, struct called *c)
{
	struct iovec iov = { r->lent, LENGTH };
	struct ulrpc_call_conf conf = { .deadline = ULRPC_NEVER,
					.bulks = &r->bulk,
					.nbulks = 1 };
	struct ulrpc_bulk_conf bc = { .access = ULRPC_BULK_SOURCE,
				      .iov = &iov,
				      .niov = 1 };

	*c = (struct called){ 0 };
	cr_assert_eq(ulrpc_bulk_new(r->g.rpc[CALLER], &bc, &r->bulk), 0);
	cr_assert_eq(ulrpc_call(r->g.client, ulrpc_method("get"), "x", 1, &conf,
				on_called, c, NULL),
		     0);
}

static unsigned int threads(const struct rig *r)
{
	return r->g.service->exec.nworkers;
}

/* ---- handlers that block ---- */

Test(worker_sim, waits_for_bulk)
{
	struct called c;
	struct rig r;

	rig_init(&r, 1);
	call_get(&r, &c);
	lnet_sim_run(r.g.sim, SEC);
	cr_assert_eq(c.ended, 1);
	cr_assert_eq(c.outcome.status, 0);
	cr_assert_eq(memcmp(r.lent, r.got, LENGTH), 0);
	rig_fini(&r);
}

/* Workers sleep at the same time, so that all but one call run at once. Threads
 * are started when they are needed, and stay for later calls. */
Test(worker_sim, sleeps)
{
	struct called c[WORKERS + 1];
	struct rig r;

	rig_init(&r, 1);
	lnet_sim_run(r.g.sim, SEC);
	cr_assert_eq(threads(&r), 0);
	for (unsigned int i = 0; i <= WORKERS; i++)
		call(&r, "nap", &c[i]);
	lnet_sim_run(r.g.sim, SEC / 2);
	cr_assert_eq(r.begun, WORKERS);
	cr_assert_eq(threads(&r), WORKERS);
	lnet_sim_run(r.g.sim, SEC);
	cr_assert_eq(r.ended, WORKERS);
	cr_assert_eq(r.begun, WORKERS + 1);
	lnet_sim_run(r.g.sim, SEC);
	for (unsigned int i = 0; i <= WORKERS; i++)
		cr_assert_eq(c[i].ended, 1);
	cr_assert_eq(threads(&r), WORKERS);
	/* Threads above the minimum end after ten seconds. */
	lnet_sim_run(r.g.sim, 11 * SEC);
	cr_assert_eq(threads(&r), 1);
	call(&r, "nap", &c[0]);
	lnet_sim_run(r.g.sim, 2 * SEC);
	cr_assert_eq(c[0].ended, 1);
	cr_assert_eq(threads(&r), 1);
	rig_fini(&r);
}

Test(worker_sim, calls_and_waits)
{
	for (unsigned int cpts = 1; cpts <= 3; cpts++) {
		struct called c;
		struct rig r;

		rig_init(&r, cpts);
		call(&r, "ask", &c);
		lnet_sim_run(r.g.sim, 5 * SEC);
		cr_assert_eq(c.ended, 1);
		cr_assert_eq(c.outcome.status, 0, "%d", c.outcome.status);
		cr_assert_eq(r.begun, 2);
		rig_fini(&r);
	}
}

Test(worker_sim, neither_begins_nor_ends_services)
{
	struct called c;
	struct rig r;

	rig_init(&r, 1);
	call(&r, "manage", &c);
	lnet_sim_run(r.g.sim, SEC);
	cr_assert_eq(c.outcome.status, 0);
	rig_fini(&r);
}

/* ---- the end ---- */

static void crash_during(const char *method, unsigned int begun)
{
	struct called c;
	struct rig r;

	rig_init(&r, 2);
	r.ns = 1000 * SEC;
	r.muted = true;
	if (strcmp(method, "get") == 0)
		call_get(&r, &c);
	else
		call(&r, method, &c);
	lnet_sim_run(r.g.sim, SEC / 10);
	cr_assert_eq(r.begun, begun, "%s", method);
	cr_assert_eq(r.ended, 0, "%s", method);
	cr_assert_eq(lnet_sim_crash(r.g.sim, SERVER), 0);
	cr_assert_eq(r.ended, begun, "they have come to their ends");
	cr_assert_eq(r.status, -ECANCELED, "%s: %d", method, r.status);
	r.g.rpc[SERVER] = NULL;
	lnet_sim_run(r.g.sim, SEC);
	cr_assert_eq(c.ended, 0);
	rig_fini(&r);
}

Test(worker_sim, crash_during_bulk)
{
	crash_during("get", 1);
}

Test(worker_sim, crash_during_sleep)
{
	crash_during("nap", 1);
}

Test(worker_sim, crash_during_call)
{
	crash_during("ask", 2);
}

/* Calls that wait for a worker when the node crashes do not run. */
Test(worker_sim, crash_with_more_to_do)
{
	struct called c[WORKERS + 5];
	struct rig r;

	rig_init(&r, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++)
		call(&r, "nap", &c[i]);
	lnet_sim_run(r.g.sim, SEC / 2);
	cr_assert_eq(r.begun, WORKERS);
	cr_assert_eq(lnet_sim_crash(r.g.sim, SERVER), 0);
	cr_assert_eq(r.begun, WORKERS);
	cr_assert_eq(r.ended, WORKERS);
	r.g.rpc[SERVER] = NULL;
	rig_fini(&r);
}

/* When a service stops or RPC is closed, transfers of bulk end, and a handler
 * that sleeps is waited for. */
static void stop_during(const char *method, bool close)
{
	struct called c;
	struct rig r;
	uint64_t began;

	rig_init(&r, 1);
	r.ns = 10 * SEC;
	r.muted = true;
	if (strcmp(method, "get") == 0)
		call_get(&r, &c);
	else
		call(&r, method, &c);
	lnet_sim_run(r.g.sim, SEC / 10);
	began = lnet_sim_now(r.g.sim);
	if (close) {
		cr_assert_eq(ulrpc_close(r.g.rpc[SERVER]), 0);
		r.g.rpc[SERVER] = NULL;
	} else {
		cr_assert_eq(ulrpc_service_stop(r.g.service, 1000), -ETIMEDOUT);
	}
	cr_assert_eq(r.ended, 1);
	if (strcmp(method, "get") == 0) {
		cr_assert_eq(r.status, -ESHUTDOWN, "%d", r.status);
		cr_assert_leq(lnet_sim_now(r.g.sim), began + 2 * SEC);
	} else {
		cr_assert_eq(r.status, 0, "%d", r.status);
	}
	rig_fini(&r);
}

Test(worker_sim, stop_during_bulk)
{
	stop_during("get", false);
	stop_during("get", true);
}

Test(worker_sim, stop_during_sleep)
{
	stop_during("nap", false);
	stop_during("nap", true);
}

/* ---- all runs are the same ---- */

static uint64_t digest(void)
{
	struct called c[20];
	struct rig r;
	uint64_t d;

	rig_init(&r, 3);
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++) {
		r.ns = lnet_sim_random(r.g.sim, SEC);
		call(&r, i % 3 ? "nap" : "ask", &c[i]);
		lnet_sim_run(r.g.sim, lnet_sim_random(r.g.sim, SEC / 4));
	}
	lnet_sim_run(r.g.sim, 60 * SEC);
	d = lnet_sim_digest(r.g.sim);
	rig_fini(&r);
	return d;
}

Test(worker_sim, runs_repeat)
{
	uint64_t once = digest();

	for (unsigned int i = 0; i < 10; i++)
		cr_assert_eq(digest(), once);
}
