/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generated stubs among threads: several threads wait for calls to a service
 * whose workers read the callers' memory, and whose replies are sent by yet
 * another thread.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include "base/util.h"
#include "tests/unit/rpc/stub/box.pb-c.h"
#include "ulnet/stub.h"

#define THREADS	 4
#define ROUNDS	 100
#define BYTES	 5000
#define DEADLINE UINT64_C(120000000) /* us: a slow machine is no failure */

/* ---- the service: workers hand over to the one who replies ---- */

struct later {
	struct later *next;
	uint32_t number;
	Test__Old_Closure closure;
	void *data;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct later *list;
	bool over;
} queue = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, false };

static void serve_plant(Test__Box_Service *self, const Test__Tree *tree,
			Test__Old_Closure closure, void *data)
{
	struct later *later = malloc(sizeof(*later));
	uint8_t bytes[BYTES];
	struct iovec iov = { bytes, sizeof(bytes) };
	uint32_t sum = 0;
	int rc;

	(void)self;
	BUG_ON(!later || !tree->one || tree->one->length != BYTES);
	rc = ulrpc_bulk_get_wait(ulrpc_request_of(data), tree->one->index, 0,
				 &iov, 1);
	BUG_ON(rc);
	for (size_t i = 0; i < BYTES; i++)
		sum += bytes[i];
	*later = (struct later){ NULL, sum + tree->number, closure, data };
	pthread_mutex_lock(&queue.lock);
	later->next = queue.list;
	queue.list = later;
	pthread_cond_signal(&queue.cond);
	pthread_mutex_unlock(&queue.lock);
}

/* Handled in the loop. */
static void serve_ask(Test__Box_Service *self, const Test__Old *request,
		      Test__Old_Closure closure, void *data)
{
	(void)self;
	if (request->number % 10 == 9)
		ulrpc_closure_fail(data, -EDOM);
	else
		closure(request, data);
}

static void *replier(void *arg)
{
	Test__Old reply = TEST__OLD__INIT;
	struct later *later;

	pthread_mutex_lock(&queue.lock);
	while (!queue.over || queue.list) {
		later = queue.list;
		if (!later) {
			pthread_cond_wait(&queue.cond, &queue.lock);
			continue;
		}
		queue.list = later->next;
		pthread_mutex_unlock(&queue.lock);
		reply.number = later->number;
		later->closure(&reply, later->data);
		free(later);
		pthread_mutex_lock(&queue.lock);
	}
	pthread_mutex_unlock(&queue.lock);
	return arg;
}

/* ---- callers ---- */

static struct ulrpc *rpc;
static ProtobufCService *stub;
static _Atomic unsigned int closures;

static uint32_t call(const char *method, const ProtobufCMessage *request)
{
	struct ulrpc_outcome outcome;
	ProtobufCMessage *reply;
	uint32_t number;

	BUG_ON(ulrpc_call_message_wait(stub, method, request, NULL, &reply,
				       &outcome));
	BUG_ON(ulrpc_stub_outcome());
	if (outcome.status) {
		BUG_ON(outcome.status != -EDOM || reply);
		return UINT32_MAX;
	}
	number = ((Test__Old *)reply)->number;
	protobuf_c_message_free_unpacked(reply, NULL);
	return number;
}

static void on_answer(const Test__Old *old, void *data)
{
	uintptr_t number = (uintptr_t)data;
	const struct ulrpc_outcome *outcome = ulrpc_stub_outcome();

	if (number % 10 == 9)
		BUG_ON(old || outcome->status != -EDOM);
	else
		BUG_ON(!old || outcome->status || old->number != number);
	atomic_fetch_add(&closures, 1);
}

static void on_released(void *released)
{
	BUG_ON(sem_post(released));
}

static void *caller(void *arg)
{
	uint8_t bytes[BYTES];
	struct iovec iov = { bytes, BYTES };
	struct ulrpc_bulk_conf conf = { .iov = &iov,
					.niov = 1,
					.access = ULRPC_BULK_SOURCE };
	Test__Tree tree = TEST__TREE__INIT;
	Test__Old old = TEST__OLD__INIT;
	struct ulrpc_bulk *bulk;
	sem_t released;

	BUG_ON(sem_init(&released, 0, 0));
	memset(bytes, 1, BYTES);
	tree.pick_case = TEST__TREE__PICK_NUMBER;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		old.number = i;
		test__box__ask(stub, &old, on_answer, (void *)(uintptr_t)i);
		BUG_ON(call("Ask", &old.base) !=
		       (i % 10 == 9 ? UINT32_MAX : i));
		BUG_ON(ulrpc_bulk_new(rpc, &conf, &bulk));
		tree.one = ulrpc_bulk_field(bulk);
		tree.number = i;
		BUG_ON(call("Plant", &tree.base) != BYTES + i);
		ulrpc_bulk_close(bulk, on_released, &released);
		BUG_ON(sem_wait(&released));
	}
	sem_destroy(&released);
	return arg;
}

/* ---- all of it ---- */

static Test__Box_Service box = TEST__BOX__INIT(serve_);
static const struct ulrpc_method_options options[] = {
	{ .method = "Ask", .run = ULRPC_RUN_INLINE },
	{ .method = NULL },
};

static struct ulrpc_client *open_client(void)
{
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;
	struct ulnet_nid nid;

	ulrpc_client_conf_init(&conf);
	BUG_ON(lnet_nid_parse("0@lo", &nid));
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = test__box__descriptor.name;
	BUG_ON(ulrpc_client_open(rpc, &conf, &client));
	BUG_ON(ulrpc_stub_new(client, &test__box__descriptor, options, DEADLINE,
			      &stub));
	return client;
}

static void on_ended(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
}

int main(void)
{
	static _Atomic int ended;
	struct ulrpc_service_conf conf = { .workers_min = 2,
					   .ended = on_ended,
					   .ended_arg = (void *)&ended };
	pthread_t threads[THREADS], later;
	struct ulrpc_service *service;
	struct ulrpc_client *client;
	struct ulnet_conf node_conf;
	struct lnet *node;

	lnet_conf_init(&node_conf);
	BUG_ON(lnet_open(&node_conf, &node));
	BUG_ON(ulrpc_open(node, NULL, &rpc));
	BUG_ON(ulrpc_serve(rpc, &box.base, options, &conf, &service));
	client = open_client();
	BUG_ON(pthread_create(&later, NULL, replier, NULL));
	for (unsigned int i = 0; i < THREADS; i++)
		BUG_ON(pthread_create(&threads[i], NULL, caller, NULL));
	for (unsigned int i = 0; i < THREADS; i++)
		BUG_ON(pthread_join(threads[i], NULL));
	BUG_ON(ulrpc_service_stop(service, DEADLINE));
	BUG_ON(ended != 1);
	pthread_mutex_lock(&queue.lock);
	queue.over = true;
	pthread_cond_signal(&queue.cond);
	pthread_mutex_unlock(&queue.lock);
	BUG_ON(pthread_join(later, NULL));
	ulrpc_stub_free(stub);
	ulrpc_client_close(client);
	BUG_ON(ulrpc_close(rpc));
	BUG_ON(closures != THREADS * ROUNDS);
	lnet_close(node);
	printf("%d calls\n", 3 * THREADS * ROUNDS);
	return 0;
}
