/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The times that a call's outcome gives a plain thread. The thread's clock is
 * not that of the CPT that carries out the call: the CPT's may be as old as its
 * last turn, or as the long turn that it is in.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include "base/util.h"
#include "ulnet/service.h"

#define PAUSE_MS 50
#define NAP_MS	 10
#define LATE_US	 10000
#define SLACK_US 10000000 /* longer than a turn takes anywhere */

static struct lnet *node;
static struct ulrpc *rpc;
static struct ulrpc_client *client;

#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			exit(1);                                           \
		}                                                          \
	} while (0)

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

static void nap(unsigned int ms)
{
	uint64_t until = clock_ns() + ms * NSEC_PER_MSEC;
	struct timespec t = { .tv_nsec = (long)(ms * NSEC_PER_MSEC) };

	while (clock_ns() < until)
		nanosleep(&t, NULL);
}

/* ---- the service ---- */

static void on_nap(void *arg, struct ulrpc_request *r, const void *body,
		   size_t length)
{
	(void)arg;
	nap(NAP_MS);
	ulrpc_reply(r, body, length);
}

static void on_echo(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
}

static struct {
	_Atomic unsigned int n;
	struct ulrpc_request *request[2];
} kept;

static void on_keep(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	unsigned int i = atomic_load(&kept.n);

	(void)arg;
	(void)body;
	(void)length;
	CHECK(i < ARRAY_SIZE(kept.request));
	kept.request[i] = r;
	atomic_store(&kept.n, i + 1);
}

static struct ulrpc_service *serve(void)
{
	static const struct ulrpc_method_conf methods[] = {
		{ .name = "nap", .handler = on_nap },
		{ .name = "keep", .handler = on_keep, .run = ULRPC_RUN_INLINE },
		{ .name = "echo", .handler = on_echo, .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "clock";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	CHECK(ulrpc_service_start(rpc, &conf, &service) == 0);
	return service;
}

/* ---- callers ---- */

static void check_sum(const struct ulrpc_outcome *o)
{
	CHECK(o->total == o->connecting + o->window + o->wire +
				  o->server_throttled + o->server_queue +
				  o->service + o->fetch);
}

/* Returns the us that the caller sees the call take. */
static uint64_t call(const char *method, uint64_t deadline,
		     struct ulrpc_outcome *o)
{
	struct ulrpc_call_conf conf = { .deadline = deadline };
	uint64_t before = clock_ns();

	CHECK(ulrpc_call_wait(client, ulrpc_method(method), NULL, 0, &conf,
			      NULL, 0, NULL, o) == 0);
	check_sum(o);
	return (clock_ns() - before) / NSEC_PER_USEC;
}

/* A pause before the call is not counted as part of the call. */
static void after_a_pause(void)
{
	struct ulrpc_outcome o;
	uint64_t took;

	nap(PAUSE_MS);
	took = call("nap", 60000000, &o);
	CHECK(o.cause == ULRPC_CAUSE_OK);
	CHECK(o.total <= took);
	CHECK(o.service >= NAP_MS * 1000 && o.total >= NAP_MS * 1000);
}

/* A pause before the call does not shorten the time that the call has. */
static void deadline_after_a_pause(void)
{
	struct ulrpc_outcome o;
	uint64_t took;

	nap(PAUSE_MS);
	took = call("keep", PAUSE_MS * 1000, &o);
	CHECK(o.cause == ULRPC_CAUSE_DEADLINE);
	CHECK(o.total <= took && o.total >= PAUSE_MS * 1000);
}

static atomic_bool in_turn, called, ended;

/* The call ends by its deadline, in a turn whose clock was read before other
 * threads handed over their calls. The turn lasts until they have done so. */
static void on_late(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	(void)arg;
	(void)reply;
	(void)length;
	CHECK(o->cause == ULRPC_CAUSE_DEADLINE);
	atomic_store(&in_turn, true);
	while (!atomic_load(&called))
		sched_yield();
}

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	(void)reply;
	(void)length;
	*(struct ulrpc_outcome *)arg = *o;
	atomic_store(&ended, true);
}

/* The call begins later than the turn that carries it out. */
static void in_a_long_turn(void)
{
	struct ulrpc_call_conf late = { .deadline = LATE_US },
			       conf = { .deadline = 60000000 };
	struct ulrpc_outcome o;
	uint64_t before;

	CHECK(ulrpc_call(client, ulrpc_method("keep"), NULL, 0, &late, on_late,
			 NULL, NULL) == 0);
	while (!atomic_load(&in_turn))
		sched_yield();
	nap(NAP_MS);
	before = clock_ns();
	CHECK(ulrpc_call(client, ulrpc_method("echo"), NULL, 0, &conf, on_done,
			 &o, NULL) == 0);
	atomic_store(&called, true);
	while (!atomic_load(&ended))
		sched_yield();
	CHECK(o.cause == ULRPC_CAUSE_OK);
	check_sum(&o);
	CHECK(o.total <= (clock_ns() - before) / NSEC_PER_USEC + SLACK_US);
}

int main(void)
{
	struct ulnet_nid nid = LNET_NID_LO;
	struct ulrpc_client_conf cc;
	struct ulrpc_service *service;
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	CHECK(lnet_open(&conf, &node) == 0);
	CHECK(ulrpc_open(node, NULL, &rpc) == 0);
	service = serve();
	ulrpc_client_conf_init(&cc);
	cc.nids = &nid;
	cc.nnids = 1;
	cc.service = "clock";
	CHECK(ulrpc_client_open(rpc, &cc, &client) == 0);
	for (unsigned int i = 0; i < 5; i++)
		after_a_pause();
	deadline_after_a_pause();
	in_a_long_turn();
	for (unsigned int i = 0; i < atomic_load(&kept.n); i++)
		ulrpc_reply(kept.request[i], NULL, 0);
	ulrpc_client_close(client);
	CHECK(ulrpc_service_stop(service, 60000000) == 0);
	CHECK(ulrpc_close(rpc) == 0);
	lnet_close(node);
	return 0;
}
