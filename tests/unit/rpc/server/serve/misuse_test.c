/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that break a rule of ulrpc_reply(3) are aborted, on a node and in
 * the simulator with the same sentence. */
#include <criterion/criterion.h>
#include <string.h>
#include "base/pool.h"
#include "rpc/client/client.h"
#include "tests/misuse.h"
#include "ulnet/service.h"
#include "ulnet/sim.h"
#include "ulnet/spans.h"
#include "ulnet/thread.h"

#define SERVICE "tally"

struct place {
	const char *method;
	enum ulrpc_run run;
	bool virtual;
	struct lnet_sim *sim;
	struct lnet *node;
	struct ulrpc *rpc;
	struct ulrpc_client *client;
};

static void on_twice(void *arg, struct ulrpc_request *r, const void *body,
		     size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
	ulrpc_reply(r, body, length);
}

static void on_also_fail(void *arg, struct ulrpc_request *r, const void *body,
			 size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
	ulrpc_fail(r, -EIO);
}

static void on_no_body(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	ulrpc_reply(r, NULL, 5);
}

static void on_positive(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	ulrpc_fail(r, EIO);
}

static void on_zero(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	ulrpc_fail_text(r, 0, "nothing went wrong");
}

static struct ulrpc_spans *spans;

static void on_spans(void *arg, struct ulrpc_request *r, const void *body,
		     size_t length)
{
	const struct ulrpc_spans_conf conf = { .path = "/nonexistent/spans" };
	struct ulrpc_spans *more;

	(void)body;
	(void)length;
	(void)r;
	misuse_must(ulrpc_spans_start(arg, &conf, &more) == -EDEADLK);
	ulrpc_spans_stop(spans);
}

static void on_hang(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct ulnet_cond never;

	(void)arg;
	misuse_must(lnet_cond_init(&never) == 0);
	pthread_mutex_lock(&lock);
	while (lnet_cond_wait(&never, &lock, UINT64_MAX) == 0)
		;
	pthread_mutex_unlock(&lock);
	ulrpc_reply(r, body, length);
}

static void rpc_start(struct place *p)
{
	struct ulrpc_method_conf methods[] = {
		{ .name = "twice", .handler = on_twice, .run = p->run },
		{ .name = "also_fail", .handler = on_also_fail, .run = p->run },
		{ .name = "no_body", .handler = on_no_body, .run = p->run },
		{ .name = "positive", .handler = on_positive, .run = p->run },
		{ .name = "zero", .handler = on_zero, .run = p->run },
		{ .name = "hang", .handler = on_hang, .run = p->run },
		{ .name = "spans", .handler = on_spans, .run = p->run },
	};
	const struct ulnet_nid lo = LNET_NID_LO;
	struct ulrpc_client_conf client;
	struct ulrpc_service_conf conf;
	struct ulrpc_service *svc;

	misuse_must(ulrpc_open(p->node, NULL, &p->rpc) == 0);
	methods[ARRAY_SIZE(methods) - 1].arg = p->rpc;
	ulrpc_service_conf_init(&conf);
	conf.name = SERVICE;
	conf.methods = methods;
	conf.nmethods = ARRAY_SIZE(methods);
	misuse_must(ulrpc_service_start(p->rpc, &conf, &svc) == 0);
	ulrpc_client_conf_init(&client);
	client.nids = &lo;
	client.nnids = 1;
	client.service = SERVICE;
	misuse_must(ulrpc_client_open(p->rpc, &client, &p->client) == 0);
}

static void call(struct place *p, uint64_t timeout)
{
	struct ulrpc_call_conf conf = { .deadline = timeout };
	struct ulrpc_outcome o;
	char reply[100];
	size_t length;

	(void)ulrpc_call_wait(p->client, ulrpc_method(p->method), "hello", 5,
			      &conf, reply, sizeof(reply), &length, &o);
}

static void place_run(void *arg)
{
	struct place *p = arg;
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	if (p->virtual) {
		misuse_must(lnet_sim_new(1, 1, &p->sim) == 0);
		misuse_must(lnet_sim_node_add(p->sim, "10.0.0.1@tcp", NULL,
					      NULL, NULL) >= 0);
		p->node = lnet_sim_node(p->sim, 0);
	} else {
		misuse_must(lnet_open(&conf, &p->node) == 0);
	}
	rpc_start(p);
	call(p, 300000000);
}

static void both(const char *method, enum ulrpc_run run, const char *pattern)
{
	struct place node = { .method = method, .run = run };
	struct place sim = { .method = method, .run = run, .virtual = true };
	char a[MISUSE_TEXT], b[MISUSE_TEXT];

	cr_assert_str_eq(misuse_is(place_run, &node, pattern, a),
			 misuse_is(place_run, &sim, pattern, b));
}

Test(rpc_misuse, replies_without_sense)
{
	for (unsigned int i = 0; i < 2; i++) {
		enum ulrpc_run run = i ? ULRPC_RUN_WORKER : ULRPC_RUN_INLINE;

		both("no_body", run,
		     "ulnet: ulrpc_reply(): a reply of 5 bytes to method "
		     "no_body of service tally, whose body is NULL");
		both("positive", run,
		     "ulnet: ulrpc_fail(): method positive of service tally "
		     "failed with status 5, which is not negative");
		both("zero", run,
		     "ulnet: ulrpc_fail_text(): method zero of service tally "
		     "failed with status 0, which is not negative");
	}
}

/* The request has been freed, unless freed memory is looked for. */
Test(rpc_misuse, second_reply, .disabled = POOL_IS_MALLOC)
{
	both("twice", ULRPC_RUN_INLINE,
	     "ulnet: ulrpc_reply(): the request of method twice has been "
	     "replied to before");
	both("also_fail", ULRPC_RUN_INLINE,
	     "ulnet: ulrpc_fail(): the request of method also_fail has been "
	     "replied to before");
}

static void close_while_hanging(void *arg)
{
	struct place *p = arg;

	p->virtual = true;
	place_run(p);
	lnet_sim_free(p->sim);
}

/* On a node closing would wait for ever. */
Test(rpc_misuse, worker_hangs)
{
	struct place p = { .method = "hang", .run = ULRPC_RUN_WORKER };
	char text[MISUSE_TEXT];

	misuse_is(close_while_hanging, &p,
		  "ulnet: lnet_close(): nothing is left that can happen, but "
		  "RPC waits for a handler of service tally that runs on a "
		  "worker",
		  text);
}

/* A call that nobody ends: as many as that are counted. */
static void close_with_call_left(void *arg)
{
	struct place *p = arg;

	misuse_must(lnet_sim_new(1, 1, &p->sim) == 0);
	misuse_must(lnet_sim_node_add(p->sim, "10.0.0.1@tcp", NULL, NULL,
				      NULL) >= 0);
	p->node = lnet_sim_node(p->sim, 0);
	rpc_start(p);
	p->client->ncalls++;
	p->client->shard->work++;
	lnet_sim_free(p->sim);
}

/* Workers have nothing to do with it. */
Test(rpc_misuse, call_is_left)
{
	struct place p = { .method = "hang", .run = ULRPC_RUN_WORKER };
	char text[MISUSE_TEXT];

	misuse_is(close_with_call_left, &p,
		  "ulnet: lnet_close(): nothing is left that can happen, but "
		  "RPC waits for a call to service tally at 0@lo",
		  text);
}

static void start_spans(void *arg)
{
	struct place *p = arg;
	char path[] = "/tmp/ulnet-spans.XXXXXX";
	const struct ulrpc_spans_conf conf = { .path = path };

	misuse_must(close(mkstemp(path)) == 0);
	misuse_must(lnet_open(NULL, &p->node) == 0);
	rpc_start(p);
	misuse_must(ulrpc_spans_start(p->rpc, &conf, &spans) == 0);
	unlink(path);
	call(p, 300000000);
}

Test(rpc_misuse, spans_are_stopped_in_a_turn)
{
	struct place p = { .method = "spans", .run = ULRPC_RUN_INLINE };
	char text[MISUSE_TEXT];

	misuse_is(start_spans, &p,
		  "ulnet: ulrpc_spans_stop(): called in a turn of a CPT", text);
}
