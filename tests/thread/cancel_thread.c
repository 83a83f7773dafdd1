/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that end before they are answered, on real threads, over TCP: callers
 * cancel, run out of time, or close their client, while workers of a node with
 * two CPTs set callbacks that use memory on their stacks, report progress,
 * sleep, and reply. At last a service ends while its workers ask who calls, and
 * a node while a thread of the user has a request.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/util.h"
#include "tests/port.h"
#include "tests/thread/check.h"
#include "ulnet/service.h"

#define CALLERS	 3
#define CLIENTS	 25 /* clients of each caller, one after the other, at least */
#define CALLS	 40 /* calls of each client, at most */
#define WORKERS	 4
#define LONG	 UINT64_C(60000000) /* us: nothing should take so long */
#define NAP_MOST 3000		    /* us */

static atomic_uint served, slept, canceled, told;

/* Has everything happened that can? Chance decides when. */
static bool seen_all(void)
{
	return atomic_load(&slept) && atomic_load(&canceled) &&
	       atomic_load(&told);
}

/* ---- the service ---- */

/* On the stack of a worker. */
struct box {
	pthread_mutex_t lock;
	unsigned int told;
	bool gone;
};

static void on_cancel(void *arg, struct ulrpc_request *r)
{
	struct box *b = arg;

	pthread_mutex_lock(&b->lock);
	check(!b->gone && !b->told++);
	check(ulrpc_request_canceled(r));
	pthread_mutex_unlock(&b->lock);
	atomic_fetch_add(&told, 1);
}

static void set_callback(struct ulrpc_request *r, struct box *b)
{
	int rc = ulrpc_request_on_cancel(r, on_cancel, b);

	check(rc == 0 || (rc == -ECANCELED && ulrpc_request_canceled(r)));
	if (!rc)
		check(ulrpc_request_on_cancel(r, on_cancel, NULL) != 0);
}

static void work(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct box b = { .lock = PTHREAD_MUTEX_INITIALIZER };
	unsigned int n = atomic_fetch_add(&served, 1);
	int rc;

	(void)arg;
	(void)body;
	(void)length;
	if (n % 4)
		set_callback(r, &b);
	ulrpc_progress(r, n % 1000);
	rc = ulrpc_request_sleep(r, n * 7919 % NAP_MOST);
	check(rc == 0 || (rc == -ECANCELED && ulrpc_request_canceled(r)));
	atomic_fetch_add(rc ? &canceled : &slept, 1);
	ulrpc_reply(r, "done", 4);
	pthread_mutex_lock(&b.lock);
	b.gone = true;
	pthread_mutex_unlock(&b.lock);
	pthread_mutex_destroy(&b.lock);
}

/* ---- callers ---- */

struct caller {
	unsigned int number, random;
	uint16_t port;
	struct ulrpc *rpc;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int begun, ended; /* counts of calls */
};

static unsigned int below(struct caller *c, unsigned int n)
{
	return (unsigned int)rand_r(&c->random) % n;
}

static struct ulrpc *open_node(const char *nid, uint16_t port,
			       enum ulnet_accept accept, unsigned int cpts)
{
	struct ulnet_conf conf;
	struct ulrpc *rpc;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.nids = nid;
	conf.port = port;
	conf.accept = accept;
	conf.cpts = cpts;
	BUG_ON(lnet_open(&conf, &node));
	BUG_ON(ulrpc_open(node, NULL, &rpc));
	return rpc;
}

static void close_node(struct ulrpc *rpc)
{
	struct lnet *node = ulrpc_node(rpc);

	check(ulrpc_close(rpc) == 0);
	lnet_close(node);
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct caller *c = arg;

	(void)reply;
	check(o->status || length == 4);
	pthread_mutex_lock(&c->lock);
	c->ended++;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static struct ulrpc_call *call(struct caller *c, struct ulrpc_client *client)
{
	struct ulrpc_call_conf conf = {
		.deadline = below(c, 5) ? LONG : 1 + below(c, 8000),
		.semantics =
			below(c, 2) ? ULRPC_IDEMPOTENT : ULRPC_AT_MOST_ONCE,
	};
	struct ulrpc_call *made;

	check(ulrpc_call(client, ulrpc_method("work"), "x", 1, &conf, on_end, c,
			 &made) == 0);
	c->begun++;
	return made;
}

/* Draws when calls end, so that every combination happens. */
static void call_some(struct caller *c, struct ulrpc_client *client)
{
	unsigned int n = 1 + below(c, CALLS);
	struct ulrpc_call *calls[CALLS];

	for (unsigned int i = 0; i < n; i++)
		calls[i] = call(c, client);
	usleep(below(c, 8000));
	for (unsigned int i = 0; i < n; i++) {
		if (below(c, 2))
			ulrpc_cancel(calls[i]);
		if (!below(c, 8))
			usleep(below(c, 500));
	}
	if (below(c, 2))
		usleep(below(c, 20000));
	for (unsigned int i = 0; i < n; i++)
		ulrpc_call_put(calls[i]);
}

static void *caller(void *arg)
{
	struct caller *c = arg;
	struct ulrpc_client_conf conf;
	struct ulnet_nid server;

	BUG_ON(lnet_nid_parse("127.0.0.1@tcp", &server));
	ulrpc_client_conf_init(&conf);
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = "work";
	for (unsigned int i = 0; i < CLIENTS || !seen_all(); i++) {
		struct ulrpc_client *client;

		BUG_ON(ulrpc_client_open(c->rpc, &conf, &client));
		call_some(c, client);
		ulrpc_client_close(client);
	}
	pthread_mutex_lock(&c->lock);
	while (c->ended < c->begun)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static unsigned int call_many(uint16_t port)
{
	struct caller callers[CALLERS];
	pthread_t threads[CALLERS];
	unsigned int calls = 0;
	char nid[32];

	for (unsigned int i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){
			.number = i,
			.random = i + 1,
			.lock = PTHREAD_MUTEX_INITIALIZER,
			.changed = PTHREAD_COND_INITIALIZER,
		};
		snprintf(nid, sizeof(nid), "127.0.0.%u@tcp", 2 + i);
		callers[i].rpc = open_node(nid, port, LNET_ACCEPT_NONE, 1);
		check(pthread_create(&threads[i], NULL, caller, &callers[i]) ==
		      0);
	}
	for (unsigned int i = 0; i < CALLERS; i++) {
		pthread_join(threads[i], NULL);
		calls += callers[i].begun;
		check(callers[i].ended == callers[i].begun);
		close_node(callers[i].rpc);
	}
	return calls;
}

static struct ulrpc_service *serve(struct ulrpc *rpc, const char *name,
				   ulrpc_handler_fn handler)
{
	const struct ulrpc_method_conf method = { .name = name,
						  .handler = handler };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = name;
	conf.methods = &method;
	conf.nmethods = 1;
	conf.workers_min = WORKERS;
	BUG_ON(ulrpc_service_start(rpc, &conf, &service));
	return service;
}

/* ---- a service that ends before its handlers ---- */

static atomic_uint asking, told_the_end;

static void on_told_the_end(void *arg, const struct ulrpc_outcome *o,
			    const void *reply, size_t length)
{
	(void)arg;
	(void)reply;
	(void)length;
	check(o->status != 0);
	atomic_fetch_add(&told_the_end, 1);
}

/* Asks who has called until all callers have been told that the service has
 * ended, and once more. */
static void ask(void *arg, struct ulrpc_request *r, const void *body,
		size_t length)
{
	struct ulrpc_request_info info;
	struct ulrpc_peer peer;
	bool last;

	(void)arg;
	(void)body;
	(void)length;
	atomic_fetch_add(&asking, 1);
	do {
		last = atomic_load(&told_the_end) == WORKERS;
		ulrpc_request_peer(r, &peer);
		ulrpc_request_info(r, &info);
		check(peer.kind == ULRPC_PEER_UNKNOWN && info.attempt == 1);
		sched_yield();
	} while (!last);
	check(ulrpc_request_canceled(r));
	ulrpc_reply(r, NULL, 0);
}

/* The calls are in few messages, so that some share what is known of one. */
static void end_while_handlers_ask(struct ulrpc *rpc)
{
	const struct ulrpc_call_conf call = { .deadline = LONG };
	struct ulrpc_service *service = serve(rpc, "ask", ask);
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;

	ulrpc_client_conf_init(&conf);
	conf.nids = &LNET_NID_LO;
	conf.nnids = 1;
	conf.service = "ask";
	BUG_ON(ulrpc_client_open(rpc, &conf, &client));
	for (unsigned int i = 0; i < WORKERS; i++)
		check(ulrpc_call(client, ulrpc_method("ask"), NULL, 0, &call,
				 on_told_the_end, NULL, NULL) == 0);
	while (atomic_load(&asking) < WORKERS)
		sched_yield();
	check(ulrpc_service_stop(service, 0) == -ETIMEDOUT);
	ulrpc_client_close(client);
}

/* ---- a node that ends before a request ---- */

static _Atomic(struct ulrpc_request *) kept;
static atomic_bool node_gone;

static void keep(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	atomic_store(&kept, r);
}

/* Uses the request all the time, and a last time when there is no node. */
static void *use_kept(void *arg)
{
	struct ulrpc_request *r = atomic_load(&kept);
	struct ulrpc_request_info info;
	bool last;

	(void)arg;
	do {
		last = atomic_load(&node_gone);
		check(ulrpc_bulk_cancel(r, 0) != 0);
		check(ulrpc_bulk_timeout(r, 0, 1) != 0);
		ulrpc_request_info(r, &info);
		sched_yield();
	} while (!last);
	ulrpc_reply(r, NULL, 0);
	return NULL;
}

static void end_while_request_is_kept(struct ulrpc *rpc)
{
	const struct ulrpc_call_conf call = { .deadline = LONG };
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;
	pthread_t thread;

	serve(rpc, "keep", keep);
	ulrpc_client_conf_init(&conf);
	conf.nids = &LNET_NID_LO;
	conf.nnids = 1;
	conf.service = "keep";
	BUG_ON(ulrpc_client_open(rpc, &conf, &client));
	check(ulrpc_call(client, ulrpc_method("keep"), NULL, 0, &call,
			 on_told_the_end, NULL, NULL) == 0);
	while (!atomic_load(&kept))
		sched_yield();
	BUG_ON(pthread_create(&thread, NULL, use_kept, NULL));
	close_node(rpc);
	atomic_store(&node_gone, true);
	pthread_join(thread, NULL);
}

int main(void)
{
	uint16_t port = free_port();
	struct ulrpc *rpc =
		open_node("127.0.0.1@tcp", port, LNET_ACCEPT_ALL, 2);
	struct ulrpc_service *service = serve(rpc, "work", work);
	unsigned int calls = call_many(port);

	check(ulrpc_service_stop(service, LONG) == 0);
	end_while_handlers_ask(rpc);
	end_while_request_is_kept(rpc);
	if (atomic_load(&failures))
		return 1;
	printf("%u calls, %u served, %u canceled there, %u told so\n", calls,
	       atomic_load(&served), atomic_load(&canceled),
	       atomic_load(&told));
	return 0;
}
