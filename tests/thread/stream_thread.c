/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node with two CPTs in threads, which serves itself. Plain threads open
 * streams, send and read and wait, two threads to a stream; others have
 * callbacks, or are canceled, or closed, at any time. Handlers run inline and
 * on workers. Then the service stops, comes again, and RPC is closed with
 * streams open. Messages come in order, each stream ends once, and nobody
 * hangs.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/util.h"
#include "tests/thread/check.h"
#include "ulnet/stream.h"

#define CPTS	 2
#define THREADS	 3
#define ROUNDS	 12
#define MESSAGES 400
#define DEADLINE (60 * UINT64_C(1000000)) /* us */

static struct lnet *node;
static struct ulrpc *rpc;
static struct ulrpc_stream_service *service;
static struct ulrpc_streams *streams;
static atomic_uint opened, opened_sinks, ended, served, served_ended;

/* ---- the service ---- */

static void echo(struct ulrpc_stream *stream)
{
	const void *body;
	size_t length;
	int rc = 0;

	while (!rc && ulrpc_stream_next_wait(stream, &body, &length) == 1)
		rc = ulrpc_stream_send_wait(stream, body, length);
	ulrpc_stream_end(stream, 0, NULL);
	ulrpc_stream_put(stream);
}

static void on_worker(void *arg, struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	echo(stream);
}

static void on_served_ended(void *arg, struct ulrpc_stream *stream,
			    const struct ulrpc_stream_outcome *outcome)
{
	(void)arg;
	(void)outcome;
	atomic_fetch_add(&served_ended, 1);
	ulrpc_stream_put(stream);
}

/* Counts, and answers with nothing. */
static void on_served_readable(void *arg, struct ulrpc_stream *stream)
{
	const void *body;
	size_t length;
	int rc;

	(void)arg;
	while ((rc = ulrpc_stream_next(stream, &body, &length)) == 1)
		check(length == 4);
	if (!rc)
		ulrpc_stream_end(stream, 0, NULL);
}

static void on_cpt(void *arg, struct ulrpc_stream *stream, const void *body,
		   size_t length)
{
	const struct ulrpc_stream_events events = {
		.readable = on_served_readable,
		.ended = on_served_ended,
	};

	(void)arg;
	(void)body;
	(void)length;
	atomic_fetch_add(&served, 1);
	ulrpc_stream_watch(stream, &events);
}

static void serve(void)
{
	const struct ulrpc_stream_method methods[] = {
		{ .name = "echo", .handler = on_worker },
		{ .name = "sink", .handler = on_cpt, .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_stream_service_conf conf;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "test";
	conf.service.workers_min = 2 * THREADS;
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	check(ulrpc_stream_serve(rpc, &conf, &service) == 0);
}

/* ---- clients ---- */

static void on_ended(void *arg, struct ulrpc_stream *stream,
		     const struct ulrpc_stream_outcome *outcome)
{
	(void)arg;
	(void)stream;
	check(outcome->delivered + outcome->undelivered <= outcome->sent);
	atomic_fetch_add(&ended, 1);
}

static struct ulrpc_stream *stream_open(const char *method)
{
	const struct ulrpc_stream_conf conf = {
		.deadline = DEADLINE,
		.events = { .ended = on_ended },
	};
	struct ulrpc_stream *stream;

	if (!check(ulrpc_stream_open(streams, method, "x", 1, &conf, &stream) ==
		   0))
		exit(1);
	atomic_fetch_add(&opened, 1);
	if (!strcmp(method, "sink"))
		atomic_fetch_add(&opened_sinks, 1);
	return stream;
}

static void *send_all(void *arg)
{
	struct ulrpc_stream *stream = arg;

	for (uint32_t i = 0; i < MESSAGES; i++)
		if (ulrpc_stream_send_wait(stream, &i, sizeof(i)))
			return NULL;
	(void)ulrpc_stream_close_send(stream);
	return NULL;
}

/* Returns how many messages have come. */
static uint32_t read_all(struct ulrpc_stream *stream)
{
	const void *body;
	size_t length;
	uint32_t n = 0, number;

	while (ulrpc_stream_next_wait(stream, &body, &length) == 1) {
		memcpy(&number, body, sizeof(number));
		check(number == n++);
	}
	return n;
}

static void both_ways(bool cancel)
{
	struct ulrpc_stream *stream = stream_open("echo");
	struct ulrpc_stream_outcome o;
	pthread_t sender;
	uint32_t n;

	check(pthread_create(&sender, NULL, send_all, stream) == 0);
	if (cancel)
		ulrpc_stream_cancel(stream);
	n = read_all(stream);
	pthread_join(sender, NULL);
	check(ulrpc_stream_outcome_wait(stream, &o) == 0);
	check(cancel || (o.cause == ULRPC_CAUSE_OK && n == MESSAGES &&
			 o.delivered == MESSAGES));
	ulrpc_stream_put(stream);
}

static void *caller(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct ulrpc_stream *gone = stream_open("sink");
		struct ulrpc_stream *sunk = stream_open("sink");
		struct ulrpc_stream_outcome o;

		both_ways(i % 4 == 3);
		send_all(sunk);
		ulrpc_stream_put(gone);
		check(ulrpc_stream_outcome_wait(sunk, &o) == 0);
		check(o.cause == ULRPC_CAUSE_OK && o.delivered == MESSAGES);
		ulrpc_stream_put(sunk);
	}
	return NULL;
}

static void *caller_until_stopped(void *arg)
{
	struct ulrpc_stream *stream = arg;

	for (uint32_t i = 0;; i++)
		if (ulrpc_stream_send_wait(stream, &i, sizeof(i)))
			break;
	ulrpc_stream_put(stream);
	return NULL;
}

static void run(void *(*fn)(void *arg), const char *method, void (*stop)(void))
{
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		check(pthread_create(&threads[i], NULL, fn,
				     method ? stream_open(method) : NULL) == 0);
	if (stop)
		stop();
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A stream that is still being opened would wait for the service to come again:
 * so all have to be open. */
static void stop_service(void)
{
	while (atomic_load(&served) < atomic_load(&opened_sinks))
		sched_yield();
	check(ulrpc_stream_service_stop(service, DEADLINE) == 0);
}

static void close_streams(void)
{
	ulrpc_streams_close(streams);
}

static void close_rpc(void)
{
	check(ulrpc_close(rpc) == 0);
}

static void client(void)
{
	struct ulnet_nid nid = LNET_NID_LO;
	struct ulrpc_streams_conf conf;

	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = "test";
	check(ulrpc_streams_open(rpc, &conf, &streams) == 0);
}

int main(void)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_THREADS;
	conf.cpts = CPTS;
	check(lnet_open(&conf, &node) == 0);
	check(ulrpc_open(node, NULL, &rpc) == 0);
	serve();
	client();
	run(caller, NULL, NULL);
	run(caller_until_stopped, "sink", stop_service);
	serve();
	run(caller_until_stopped, "sink", close_streams);
	client();
	run(caller_until_stopped, "echo", close_rpc);
	lnet_close(node);
	check(atomic_load(&ended) == atomic_load(&opened));
	check(atomic_load(&served_ended) == atomic_load(&served));
	printf("%u streams\n", atomic_load(&opened));
	return atomic_load(&failures) != 0;
}
