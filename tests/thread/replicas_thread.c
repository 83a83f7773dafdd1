/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads make calls, and open, use and drop streams, at one of two servers, of
 * which one is this node itself, and nobody is at the other one. */
#include <pthread.h>
#include <stdlib.h>

#include "tests/thread/rig.h"
#include "ulnet/replicas.h"

#define CALLS	200
#define STREAMS 60
#define THREADS 4

static struct ulrpc_replicas *set;

/* Sends what has opened the stream back, and leaves it to the client. */
static void talk(void *arg, struct ulrpc_stream *stream, const void *body,
		 size_t length)
{
	(void)arg;
	check(ulrpc_stream_send(stream, body, length) == 0);
	ulrpc_stream_end(stream, 0, NULL);
	ulrpc_stream_put(stream);
}

static void *call_main(void *arg)
{
	struct ulrpc_replicas_call_conf conf;

	(void)arg;
	ulrpc_replicas_call_conf_init(&conf);
	conf.call.deadline = ULRPC_NEVER;
	for (unsigned int i = 0; i < CALLS; i++) {
		struct ulrpc_replicas_outcome o;

		check(ulrpc_replicas_call_wait(set, ulrpc_method("A"), "x", 1,
					       &conf, NULL, 0, NULL, &o) == 0);
		check(o.call.cause == ULRPC_CAUSE_OK);
	}
	return NULL;
}

static void ignore(void *arg, const struct ulrpc_replicas_outcome *o,
		   struct ulrpc_stream *stream)
{
	(void)arg;
	(void)o;
	ulrpc_stream_put(stream);
}

/* Reads one of three to its end; one is canceled, and one is not waited for. */
static void *stream_main(void *arg)
{
	struct ulrpc_replicas_stream_conf conf;

	(void)arg;
	ulrpc_replicas_stream_conf_init(&conf);
	conf.deadline = ULRPC_NEVER;
	for (unsigned int i = 0; i < STREAMS; i++) {
		struct ulrpc_replicas_outcome o;
		struct ulrpc_replicas_call *call;
		struct ulrpc_stream *s;
		const void *body;
		size_t length;

		if (i % 3 == 2) {
			check(ulrpc_replicas_stream_open(set, "talk", "x", 1,
							 &conf, ignore, NULL,
							 &call) == 0);
			if (i % 2)
				ulrpc_replicas_cancel(call);
			ulrpc_replicas_call_put(call);
			continue;
		}
		check(ulrpc_replicas_stream_open_wait(set, "talk", "x", 1,
						      &conf, &s, &o) == 0);
		if (!check(s))
			continue;
		if (i % 3)
			ulrpc_stream_cancel(s);
		while (ulrpc_stream_next_wait(s, &body, &length) == 1)
			check(length == 1);
		ulrpc_stream_put(s);
	}
	return NULL;
}

static int serve(struct rig *rig)
{
	const struct ulrpc_method_conf call = { .name = "A",
						.handler = echo,
						.run = ULRPC_RUN_INLINE };
	const struct ulrpc_stream_method stream = { .name = "talk",
						    .handler = talk,
						    .run = ULRPC_RUN_INLINE };
	struct ulrpc_stream_service_conf conf;
	struct ulrpc_stream_service *service;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "test";
	conf.service.methods = &call;
	conf.service.nmethods = 1;
	conf.methods = &stream;
	conf.nmethods = 1;
	return ulrpc_stream_serve(rig->rpc, &conf, &service);
}

static int set_open(struct rig *rig)
{
	struct ulnet_nid nids[2] = { LNET_NID_LO };
	struct ulrpc_replicas_conf conf;

	check(lnet_nid_parse("127.0.9.9@tcp", &nids[1]) == 0);
	ulrpc_replicas_conf_init(&conf);
	conf.client.nids = nids;
	conf.client.nnids = 2;
	conf.client.service = "test";
	return ulrpc_replicas_open(rig->rpc, &conf, &set);
}

int main(void)
{
	void *(*const mains[THREADS])(void *arg) = { call_main, call_main,
						     stream_main, stream_main };
	pthread_t threads[THREADS];
	struct rig rig;

	if (!check(rig_open_rpc(&rig) == 0) || !check(serve(&rig) == 0) ||
	    !check(set_open(&rig) == 0))
		return 1;
	for (unsigned int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, mains[i], NULL))
			return 1;
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	ulrpc_replicas_close(set);
	rig_close(&rig);
	return atomic_load(&failures) ? 1 : 0;
}
