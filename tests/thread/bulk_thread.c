/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node with two CPTs in threads, that calls itself:
 *
 *	callers (plain threads) lend a source and a sink to each call, and wait
 *	workers (the service's) get, turn all bits, put, and reply: waiting for
 *		each step, or leaving the end of the put to the reply, or,
 *		without waiting at all, going on when the get has ended
 *
 * and some calls are too short of time, so that memory comes back late. All of
 * it without seals, and with each flavour that has some, and sealers.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "tests/thread/check.h"
#include "tests/thread/keys.h"
#include "ulnet/service.h"

#define CALLERS	 4
#define CALLS	 60 /* of each caller */
#define BYTES	 200000
#define FRAGMENT 700
#define DEADLINE 60000000 /* us: nothing should take so long */

/* ---- the service ---- */

/* Kept until a put that was not waited for has ended. */
struct copy {
	struct ulrpc_request *request;
	int status;
	struct iovec iov;
	uint8_t bytes[BYTES];
};

static void on_put(void *arg, int status, uint64_t moved)
{
	struct copy *c = arg;

	check(status || moved == c->iov.iov_len);
	free(c);
}

static void turn_bits(struct copy *c)
{
	for (size_t i = 0; i < c->iov.iov_len; i++)
		c->bytes[i] = (uint8_t)~c->bytes[i];
}

static void go_on(void *arg, struct ulrpc_request *r)
{
	struct copy *c = arg;
	int rc = c->status;

	check(c->request == r);
	turn_bits(c);
	if (!rc)
		rc = ulrpc_bulk_put(r, 1, 0, &c->iov, 1, on_put, c);
	if (!rc) {
		ulrpc_reply(r, NULL, 0);
		return;
	}
	free(c);
	ulrpc_fail(r, rc);
}

static void on_got(void *arg, int status, uint64_t moved)
{
	struct copy *c = arg;

	(void)moved;
	c->status = status;
	check(ulrpc_request_continue(c->request, go_on, c) == 0);
}

static void turn(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct copy *c = calloc(1, sizeof(*c));
	struct ulrpc_bulk_info info = { .length = 0 };
	int rc;

	(void)arg;
	check(length == 1 && ulrpc_request_bulk(r, 0, &info) == 0);
	c->iov = (struct iovec){ c->bytes, info.length };
	c->request = r;
	if (*(const char *)body == 'c') {
		rc = ulrpc_bulk_get(r, 0, 0, &c->iov, 1, on_got, c);
		if (!rc)
			return;
	} else {
		rc = ulrpc_bulk_get_wait(r, 0, 0, &c->iov, 1);
	}
	turn_bits(c);
	if (!rc && *(const char *)body == 'n') {
		rc = ulrpc_bulk_put(r, 1, 0, &c->iov, 1, on_put, c);
		if (!rc)
			c = NULL;
	} else if (!rc) {
		rc = ulrpc_bulk_put_wait(r, 1, 0, &c->iov, 1);
	}
	free(c);
	if (rc)
		ulrpc_fail(r, rc);
	else
		ulrpc_reply(r, NULL, 0);
}

static void on_cpt(void *arg, struct ulrpc_request *r, const void *body,
		   size_t length)
{
	struct iovec iov = { arg, 1 };

	(void)body;
	(void)length;
	check(ulrpc_bulk_get_wait(r, 0, 0, &iov, 1) == -EDEADLK);
	ulrpc_reply(r, NULL, 0);
}

/* ---- callers ---- */

static struct ulrpc *rpc;
static struct ulrpc_client *client;
static uint32_t segment;

struct memory {
	struct iovec iov[BYTES / FRAGMENT + 1];
	unsigned int niov;
	uint8_t bytes[BYTES];
	struct ulrpc_bulk *bulk;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool released;
};

static void lend(struct memory *m, size_t length, enum ulrpc_bulk_access access)
{
	struct ulrpc_bulk_conf conf = { .iov = m->iov,
					.access = access,
					.flags = ULRPC_BULK_CHECKSUM,
					.segment = segment };

	m->niov = 0;
	for (size_t at = 0; at < length; at += FRAGMENT)
		m->iov[m->niov++] =
			(struct iovec){ m->bytes + at,
					MIN(FRAGMENT, length - at) };
	conf.niov = m->niov;
	m->released = false;
	check(ulrpc_bulk_new(rpc, &conf, &m->bulk) == 0);
}

static void on_released(void *arg)
{
	struct memory *m = arg;

	pthread_mutex_lock(&m->lock);
	m->released = true;
	pthread_cond_signal(&m->cond);
	pthread_mutex_unlock(&m->lock);
}

static void take_back(struct memory *m)
{
	ulrpc_bulk_close(m->bulk, on_released, m);
	pthread_mutex_lock(&m->lock);
	while (!m->released)
		pthread_cond_wait(&m->cond, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

static void call_once(struct memory *source, struct memory *sink,
		      unsigned int n)
{
	size_t length = 1 + n * 3571 % BYTES;
	bool hurry = n % 5 == 4;
	struct ulrpc_bulk *bulks[2];
	struct ulrpc_call_conf conf = { .deadline = hurry ? 200 : DEADLINE,
					.bulks = bulks,
					.nbulks = 2 };
	struct ulrpc_outcome o;

	memset(source->bytes, (int)n, length);
	memset(sink->bytes, 0, length);
	lend(source, length, ULRPC_BULK_SOURCE);
	lend(sink, length, ULRPC_BULK_SINK);
	bulks[0] = source->bulk;
	bulks[1] = sink->bulk;
	if (check(ulrpc_call_wait(client, ulrpc_method("turn"), &"wnc"[n % 3],
				  1, &conf, NULL, 0, NULL, &o) == 0) &&
	    !hurry && !check(o.cause == ULRPC_CAUSE_OK))
		fprintf(stderr, "%s\n", ulrpc_cause_name(o.cause));
	take_back(source);
	take_back(sink);
	for (size_t i = 0; o.cause == ULRPC_CAUSE_OK && i < length; i++)
		if (!check(sink->bytes[i] == (uint8_t)~n))
			break;
	/* The memory has come back: nobody else writes to it. */
	memset(source->bytes, 1, length);
	memset(sink->bytes, 2, length);
}

static struct memory *memory_new(void)
{
	struct memory *m = calloc(1, sizeof(*m));

	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->cond, NULL);
	return m;
}

static void *caller(void *arg)
{
	struct memory *source = memory_new(), *sink = memory_new();

	for (unsigned int i = 0; i < CALLS; i++)
		call_once(source, sink, i + *(unsigned int *)arg * CALLS);
	free(source);
	free(sink);
	return NULL;
}

static void call_inline(void)
{
	struct memory *source = memory_new();
	struct ulrpc_call_conf conf = { .deadline = DEADLINE, .nbulks = 1 };
	struct ulrpc_bulk *bulks[1];
	struct ulrpc_outcome o;

	lend(source, 10, ULRPC_BULK_SOURCE);
	bulks[0] = source->bulk;
	conf.bulks = bulks;
	check(ulrpc_call_wait(client, ulrpc_method("inline"), NULL, 0, &conf,
			      NULL, 0, NULL, &o) == 0 &&
	      o.cause == ULRPC_CAUSE_OK);
	take_back(source);
	free(source);
}

static void call_many(void)
{
	pthread_t threads[CALLERS];
	unsigned int numbers[CALLERS];

	for (unsigned int i = 0; i < CALLERS; i++) {
		numbers[i] = i;
		check(pthread_create(&threads[i], NULL, caller, &numbers[i]) ==
		      0);
	}
	for (unsigned int i = 0; i < CALLERS; i++)
		pthread_join(threads[i], NULL);
}

static struct ulrpc_service *serve(void)
{
	static uint8_t byte;
	const struct ulrpc_method_conf methods[] = {
		{ .name = "turn", .handler = turn },
		{ .name = "inline",
		  .handler = on_cpt,
		  .arg = &byte,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service *service;
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "turner";
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	conf.workers_min = 3;
	conf.segments = 2;
	BUG_ON(ulrpc_service_start(rpc, &conf, &service));
	return service;
}

static void run(struct ulrpc_keys *keys, enum ulrpc_flavour flavour)
{
	struct ulrpc_service *service;
	struct ulrpc_client_conf cc;
	struct ulrpc_conf rc;
	struct ulnet_conf conf;
	struct ulnet_nid self;
	struct lnet *node;

	segment = keys ? 100000 : 40000;
	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.cpts = 2;
	BUG_ON(lnet_open(&conf, &node));
	ulrpc_conf_init(&rc);
	rc.keys = keys;
	BUG_ON(ulrpc_open(node, &rc, &rpc));
	service = serve();
	BUG_ON(lnet_nid_parse("0@lo", &self));
	ulrpc_client_conf_init(&cc);
	cc.nids = &self;
	cc.nnids = 1;
	cc.service = "turner";
	cc.flavour = flavour;
	BUG_ON(ulrpc_client_open(rpc, &cc, &client));
	call_inline();
	call_many();
	ulrpc_client_close(client);
	check(ulrpc_service_stop(service, DEADLINE) == 0);
	check(ulrpc_close(rpc) == 0);
	lnet_close(node);
}

static void run_sealed(void)
{
	struct ulrpc_keys *keys = cluster_keys();

	if (!keys)
		return;
	run(keys, ULRPC_FLAVOUR_INTEGRITY);
	run(keys, ULRPC_FLAVOUR_PRIVACY);
	ulrpc_keys_put(keys);
}

int main(void)
{
	run(NULL, ULRPC_FLAVOUR_NONE);
	run_sealed();
	if (atomic_load(&failures))
		return 1;
	printf("%d calls\n", CALLERS * CALLS);
	return 0;
}
