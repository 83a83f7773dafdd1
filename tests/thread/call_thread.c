/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node with two CPTs in threads, which serves itself. Plain threads call,
 * wait, cancel, use sets of their own, send metadata to workers, and open and
 * close clients, all at once; then the node is shut down with calls under way.
 * Each call must end once.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/util.h"
#include "ulnet/context.h"
#include "ulnet/service.h"

#define CPTS	 2
#define CALLERS	 3
#define ROUNDS	 150
#define BURST	 20
#define DEADLINE (60 * UINT64_C(1000000)) /* us */

static struct lnet *node;
static struct ulrpc *rpc;
static atomic_uint began, ended, canceled;
static atomic_bool going;

#define CHECK(cond)                                                       \
	do {                                                              \
		if (!(cond)) {                                            \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			exit(1);                                          \
		}                                                         \
	} while (0)

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

/* On workers: takes what has come with the request, and adds to the reply. */
static void on_noted(void *arg, struct ulrpc_request *request, const void *body,
		     size_t length)
{
	struct ulrpc_metadata m;

	(void)arg;
	CHECK(ulrpc_request_find(request, "name", &m) == 0);
	CHECK(ulrpc_reply_add(request, "at", "worker", 6) == 0);
	ulrpc_reply(request, body, length);
}

static void on_done(void *arg, const struct ulrpc_outcome *o, const void *reply,
		    size_t length)
{
	atomic_uint *times = arg;

	CHECK(atomic_fetch_add(times, 1) == 0);
	CHECK(o->cause == ULRPC_CAUSE_OK || o->cause == ULRPC_CAUSE_CANCELED ||
	      !atomic_load(&going));
	CHECK(o->cause != ULRPC_CAUSE_OK || (length == 4 && reply));
	if (o->cause == ULRPC_CAUSE_CANCELED)
		atomic_fetch_add(&canceled, 1);
	atomic_fetch_add(&ended, 1);
}

static struct ulrpc_client *client_open(void)
{
	struct ulnet_nid nid = LNET_NID_LO;
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	CHECK(ulrpc_client_open(rpc, &conf, &c) == 0);
	return c;
}

static void burst(struct ulrpc_client *c, atomic_uint *times)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	struct ulrpc_call *calls[BURST];

	for (unsigned int i = 0; i < BURST; i++) {
		atomic_fetch_add(&began, 1);
		CHECK(ulrpc_call(c, ulrpc_method("m"), "body", 4, &conf,
				 on_done, &times[i], &calls[i]) == 0);
		if (i % 5 == 4)
			ulrpc_cancel(calls[i - i % 3]);
	}
	for (unsigned int i = 0; i < BURST; i++)
		ulrpc_call_put(calls[i]);
}

static void one(struct ulrpc_client *c)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	struct ulrpc_outcome o;
	char reply[4];
	size_t length;

	CHECK(ulrpc_call_wait(c, ulrpc_method("m"), "wait", 4, &conf, reply,
			      sizeof(reply), &length, &o) == 0);
	CHECK(o.cause == ULRPC_CAUSE_OK && length == 4);
	CHECK(memcmp(reply, "wait", 4) == 0);
}

static void set(struct ulrpc_client *c)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	struct ulrpc_call *call;
	struct ulrpc_set *calls;
	struct ulrpc_result r;

	CHECK(ulrpc_set_new(rpc, &calls) == 0);
	for (unsigned int i = 0; i < BURST; i++)
		CHECK(ulrpc_set_call(calls, c, ulrpc_method("m"), "sets", 4,
				     &conf, NULL, i ? NULL : &call) == 0);
	CHECK(ulrpc_set_wait(calls, 3, DEADLINE) >= 3);
	CHECK(ulrpc_set_next(calls, &r) == 0);
	CHECK(r.outcome.cause == ULRPC_CAUSE_OK);
	free(r.reply);
	ulrpc_cancel(call); /* the call may have ended */
	ulrpc_call_put(call);
	/* The other calls are under way, or were refused. */
	ulrpc_set_free(calls);
}

/* Makes a call with the metadata that all calls have: the server knows them
 * soon. */
static void note(struct ulrpc_client *c, struct ulrpc_set *calls)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };

	CHECK(ulrpc_context_new(&conf.context) == 0);
	CHECK(ulrpc_context_add(conf.context, "name", "value", 5) == 0);
	CHECK(ulrpc_set_call(calls, c, ulrpc_method("noted"), "note", 4, &conf,
			     NULL, NULL) == 0);
	ulrpc_context_free(conf.context);
}

static void noted(struct ulrpc_client *c)
{
	struct ulrpc_set *calls;
	struct ulrpc_result r;

	CHECK(ulrpc_set_new(rpc, &calls) == 0);
	for (unsigned int i = 0; i < BURST; i++)
		note(c, calls);
	CHECK(ulrpc_set_wait(calls, BURST, DEADLINE) == BURST);
	while (!ulrpc_set_next(calls, &r)) {
		CHECK(r.outcome.cause == ULRPC_CAUSE_OK && r.length == 4);
		free(r.reply);
	}
	ulrpc_set_free(calls);
}

static void *caller(void *arg)
{
	static atomic_uint times[CALLERS][ROUNDS][BURST];
	uintptr_t me = (uintptr_t)arg;
	struct ulrpc_client *c = client_open();

	for (unsigned int i = 0; i < ROUNDS; i++) {
		burst(c, times[me][i]);
		one(c);
		if (i % 10 == 0)
			set(c);
		if (i % 10 == 5)
			noted(c);
		if (i % 25 == 24) {
			ulrpc_client_close(c);
			c = client_open();
		}
	}
	/* These calls are under way at shutdown. */
	return NULL;
}

static void service_start(void)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "m", .handler = on_request, .run = ULRPC_RUN_INLINE },
		{ .name = "noted", .handler = on_noted },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	CHECK(ulrpc_service_start(rpc, &conf, &service) == 0);
}

int main(void)
{
	pthread_t threads[CALLERS];
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.cpts = CPTS;
	CHECK(lnet_open(&conf, &node) == 0);
	CHECK(ulrpc_open(node, NULL, &rpc) == 0);
	service_start();
	atomic_store(&going, true);
	for (uintptr_t i = 0; i < CALLERS; i++)
		CHECK(pthread_create(&threads[i], NULL, caller, (void *)i) ==
		      0);
	for (unsigned int i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
	atomic_store(&going, false);
	CHECK(ulrpc_close(rpc) == 0);
	lnet_close(node);
	CHECK(atomic_load(&began) == CALLERS * ROUNDS * BURST);
	CHECK(atomic_load(&ended) == atomic_load(&began));
	printf("%u calls ended, %u of them canceled\n", atomic_load(&ended),
	       atomic_load(&canceled));
	return 0;
}
