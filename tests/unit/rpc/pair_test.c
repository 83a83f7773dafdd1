/* SPDX-License-Identifier: BSD-3-Clause */
/* A real client with a real service, on nodes whose loops run in all the ways
 * that there are. */
#include <ev.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "tests/port.h"
#include "tests/unit/rpc/client/call_rig.h"
#include "ulnet/service.h"

#define ECHO "echo"

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static struct ulrpc_service *echo_start(struct ulrpc *rpc, enum ulrpc_run run)
{
	struct ulrpc_method_conf method = { .name = ECHO,
					    .handler = echo,
					    .run = run };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *svc;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = &method;
	conf.nmethods = 1;
	cr_assert_eq(ulrpc_service_start(rpc, &conf, &svc), 0);
	return svc;
}

static struct ulrpc_client *client_to(struct ulrpc *rpc, struct ulnet_nid nid)
{
	struct ulrpc_client_conf conf;
	struct ulrpc_client *c;

	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &c), 0);
	return c;
}

static void call_and_compare(struct ulrpc_client *c, const char *text)
{
	struct ulrpc_call_conf conf = within(5000000);
	struct ulrpc_outcome o;
	char reply[SIZE] = "";
	size_t length;

	cr_assert_eq(ulrpc_call_wait(c, ulrpc_method(ECHO), text, strlen(text),
				     &conf, reply, sizeof(reply), &length, &o),
		     0);
	cr_assert_eq(o.cause, ULRPC_CAUSE_OK, "%s", ulrpc_cause_name(o.cause));
	cr_assert_eq(length, strlen(text));
	cr_assert_str_eq(reply, text);
	cr_assert_eq(o.total, o.connecting + o.window + o.wire +
				      o.server_throttled + o.server_queue +
				      o.service + o.fetch);
}

/* ---- one node, which calls itself by 0@lo ---- */

static void on_lo(struct lnet *node, enum ulrpc_run run_as)
{
	struct ulrpc_service *svc;
	struct ulrpc_client *c;
	struct ulrpc *rpc;

	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	cr_assert_eq(ulrpc_open(node, NULL, &rpc), -EBUSY);
	svc = echo_start(rpc, run_as);
	c = client_to(rpc, LNET_NID_LO);
	for (unsigned int i = 0; i < 50; i++)
		call_and_compare(c, i % 2 ? "odd" : "even");
	ulrpc_client_close(c);
	cr_assert_eq(ulrpc_service_stop(svc, 1000000), 0);
	cr_assert_eq(ulrpc_close(rpc), 0);
	lnet_close(node);
}

static struct lnet *node_with(enum ulnet_run run_as, struct ev_loop *ev,
			      unsigned int cpts)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = run_as;
	conf.ev = ev;
	conf.cpts = cpts;
	cr_assert_eq(lnet_open(&conf, &node), 0);
	return node;
}

Test(pair, waits_when_polled)
{
	on_lo(node_with(LNET_RUN_POLL, NULL, 1), ULRPC_RUN_INLINE);
	on_lo(node_with(LNET_RUN_POLL, NULL, 1), ULRPC_RUN_WORKER);
}

Test(pair, waits_with_threads)
{
	on_lo(node_with(LNET_RUN_THREADS, NULL, 1), ULRPC_RUN_INLINE);
	on_lo(node_with(LNET_RUN_THREADS, NULL, 3), ULRPC_RUN_INLINE);
	on_lo(node_with(LNET_RUN_THREADS, NULL, 1), ULRPC_RUN_WORKER);
}

Test(pair, waits_in_an_ev_loop)
{
	struct ev_loop *ev = ev_loop_new(0);

	on_lo(node_with(LNET_RUN_EV, ev, 1), ULRPC_RUN_INLINE);
	on_lo(node_with(LNET_RUN_EV, ev, 1), ULRPC_RUN_WORKER);
	ev_loop_destroy(ev);
}

Test(pair, ends_with_the_node)
{
	struct lnet *node = node_with(LNET_RUN_POLL, NULL, 1);
	struct ulrpc_client *c;
	struct ulrpc *rpc;
	struct note n = { 0 };
	struct ulrpc_call_conf conf = within(5000000);
	struct lnet_sim *sim;

	cr_assert_eq(lnet_sim_new(1, 1, &sim), 0);
	n.sim = sim;
	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	(void)echo_start(rpc, ULRPC_RUN_INLINE);
	c = client_to(rpc, LNET_NID_LO);
	call_and_compare(c, "hello");
	cr_assert_eq(ulrpc_call(c, 1, NULL, 0, &conf, note_end, &n, &n.call),
		     0);
	lnet_close(node);
	cr_assert_eq(n.ended, 1);
	cr_assert_eq(n.outcome.cause, ULRPC_CAUSE_CANCELED);
	ulrpc_call_put(n.call);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

/* ---- many threads ---- */

#define THREADS 4
#define EACH	2000

static atomic_uint threads_ended;

static void count_end(void *arg, const struct ulrpc_outcome *o,
		      const void *reply, size_t length)
{
	(void)arg;
	(void)reply;
	cr_assert_eq(o->cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(o->cause));
	cr_assert_eq(length, 5);
	atomic_fetch_add(&threads_ended, 1);
}

static void *thread_calls(void *arg)
{
	struct ulrpc_client *c = arg;
	struct ulrpc_call_conf conf = within(20000000);

	for (unsigned int i = 0; i < EACH; i++)
		if (i % 16 == 15)
			call_and_compare(c, "hello");
		else
			cr_assert_eq(ulrpc_call(c, ulrpc_method(ECHO), "hello",
						5, &conf, count_end, NULL,
						NULL),
				     0);
	return NULL;
}

Test(pair, any_thread_may_call)
{
	struct lnet *node = node_with(LNET_RUN_THREADS, NULL, 2);
	pthread_t threads[THREADS];
	struct ulrpc_service *svc;
	struct ulrpc_client *c;
	struct ulrpc *rpc;

	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	svc = echo_start(rpc, ULRPC_RUN_INLINE);
	c = client_to(rpc, LNET_NID_LO);
	for (unsigned int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, thread_calls, c),
			     0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	while (atomic_load(&threads_ended) < THREADS * (EACH - EACH / 16))
		sched_yield();
	ulrpc_client_close(c);
	cr_assert_eq(ulrpc_service_stop(svc, 1000000), 0);
	cr_assert_eq(ulrpc_close(rpc), 0);
	lnet_close(node);
}

/* ---- on a small stack ---- */

/* bytes of stack: what lnet_open(3) promises to be enough; with sanitizers code
 * needs far more */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK (1u << 20)
#else
#define STACK (128u << 10)
#endif
/* calls at the same time, so that messages are as long as they can be */
#define AT_ONCE 600

static void another_call(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	struct ulrpc_call_conf conf = within(20000000);
	struct ulrpc_client *c = arg;

	(void)length;
	cr_assert_eq(o->cause, ULRPC_CAUSE_OK, "%s",
		     ulrpc_cause_name(o->cause));
	cr_assert_eq(ulrpc_call(c, ulrpc_method(ECHO), reply, 5, &conf,
				count_end, NULL, NULL),
		     0);
}

static void *polls(void *arg)
{
	struct ulnet_conf conf = { .run = LNET_RUN_POLL,
				   .nids = "127.0.0.9@tcp",
				   .port = *(uint16_t *)arg };
	struct ulrpc_call_conf call = within(20000000);
	struct ulrpc_service *svc;
	struct ulrpc_client *c;
	struct ulnet_nid nid;
	struct lnet *node;
	struct ulrpc *rpc;

	cr_assert_eq(lnet_nid_parse(conf.nids, &nid), 0);
	cr_assert_eq(lnet_open(&conf, &node), 0);
	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	svc = echo_start(rpc, ULRPC_RUN_INLINE);
	c = client_to(rpc, nid);
	for (unsigned int i = 0; i < AT_ONCE; i++)
		cr_assert_eq(ulrpc_call(c, ulrpc_method(ECHO), "hello", 5,
					&call, another_call, c, NULL),
			     0);
	while (atomic_load(&threads_ended) < AT_ONCE)
		lnet_poll(node, 1000);
	ulrpc_client_close(c);
	cr_assert_eq(ulrpc_service_stop(svc, 1000000), 0);
	lnet_close(node);
	return NULL;
}

Test(pair, needs_little_stack)
{
	uint16_t port = free_port();
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	cr_assert_eq(pthread_attr_setstacksize(&attr, STACK), 0);
	cr_assert_eq(pthread_create(&thread, &attr, polls, &port), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

/* ---- a node that only calls ---- */

/* It needs no address: its client brings one. A node that listens gets none. */
Test(pair, a_caller_without_nids)
{
	struct ulnet_conf conf = { .nids = "127.0.0.9@tcp",
				   .port = free_port() };
	struct ulrpc_call_conf call = within(60000000);
	struct ulrpc_outcome end;
	struct lnet *server, *node;
	struct ulrpc_service *svc;
	struct ulrpc_client *c;
	struct ulrpc *served, *rpc;
	struct ulnet_nid nid;
	struct ulnet_id own;
	char reply[5];
	size_t n;

	cr_assert_eq(lnet_nid_parse(conf.nids, &nid), 0);
	cr_assert_eq(lnet_open(&conf, &server), 0);
	cr_assert_eq(ulrpc_open(server, NULL, &served), 0);
	svc = echo_start(served, ULRPC_RUN_INLINE);
	conf.nids = NULL;
	for (unsigned int i = 0; i < 2; i++) {
		conf.accept = i ? LNET_ACCEPT_NONE : LNET_ACCEPT_ALL;
		cr_assert_eq(lnet_open(&conf, &node), 0);
		cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
		c = client_to(rpc, nid);
		cr_assert_eq(LNetGetId(node, 1, &own), i ? 0 : -ENOENT);
		if (!i)
			lnet_close(node);
	}
	cr_assert_eq(ulrpc_call_wait(c, ulrpc_method(ECHO), "hello", 5, &call,
				     reply, sizeof(reply), &n, &end),
		     0);
	cr_assert_eq(end.status, 0, "%s", ulrpc_cause_name(end.cause));
	cr_assert_eq(n, 5);
	cr_assert_eq(memcmp(reply, "hello", 5), 0);
	lnet_close(node);
	cr_assert_eq(ulrpc_service_stop(svc, 1000000), 0);
	lnet_close(server);
}

/* ---- sets ---- */

/* Two calls go well, three fail: two are soon enough, and that three are not to
 * come is known when the third has failed. */
static void quorum_of(struct ulrpc *rpc, struct ulrpc_client *c)
{
	struct ulrpc_call_conf conf = within(60000000);
	unsigned int good = 0, bad = 0;
	struct ulrpc_result r;
	struct ulrpc_set *set;

	cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
	cr_assert_eq(ulrpc_set_wait_good(set, 1, 1000), 0);
	for (unsigned int i = 0; i < 5; i++)
		cr_assert_eq(ulrpc_set_call(set, c,
					    ulrpc_method(i % 2 ? ECHO : "none"),
					    NULL, 0, &conf, NULL, NULL),
			     0);
	cr_assert_eq(ulrpc_set_wait_good(set, 2, 60000000), 2);
	cr_assert_eq(ulrpc_set_wait_good(set, 3, 60000000), 2);
	cr_assert_eq(ulrpc_set_wait_good(set, ULRPC_SET_ALL, 60000000), 2);
	while (!ulrpc_set_next(set, &r)) {
		good += r.outcome.cause == ULRPC_CAUSE_OK;
		bad += r.outcome.cause == ULRPC_CAUSE_NO_METHOD;
		free(r.reply);
	}
	cr_assert_eq(good, 2);
	cr_assert_eq(bad, 3);
	cr_assert_eq(ulrpc_set_wait_good(set, 1, 1000), 0);
	ulrpc_set_free(set);
}

static void set_of(struct lnet *node)
{
	struct ulrpc_call_conf conf = within(5000000);
	struct ulrpc_service *svc;
	struct ulrpc_result r;
	struct ulrpc_client *c;
	struct ulrpc_set *set;
	struct ulrpc *rpc;
	struct pollfd p = { .events = POLLIN };
	bool seen[20] = { false };

	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	svc = echo_start(rpc, ULRPC_RUN_INLINE);
	c = client_to(rpc, LNET_NID_LO);
	cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
	p.fd = ulrpc_set_fd(set);
	cr_assert_geq(p.fd, 0);
	cr_assert_eq(ulrpc_set_next(set, &r), -EAGAIN);
	cr_assert_eq(ulrpc_set_wait(set, 1, 1000), -ETIMEDOUT);
	cr_assert_eq(poll(&p, 1, 0), 0);
	for (uintptr_t i = 0; i < 20; i++)
		cr_assert_eq(ulrpc_set_call(set, c, ulrpc_method(ECHO), &i,
					    sizeof(i), &conf, (void *)i, NULL),
			     0);
	cr_assert_geq(ulrpc_set_wait(set, 1, 5000000), 1);
	cr_assert_eq(poll(&p, 1, 0), 1);
	cr_assert_geq(ulrpc_set_wait(set, 7, 5000000), 7);
	cr_assert_eq(ulrpc_set_wait(set, ULRPC_SET_ALL, 5000000), 20);
	for (unsigned int i = 0; i < 20; i++) {
		uintptr_t which;

		cr_assert_eq(ulrpc_set_next(set, &r), 0);
		cr_assert_eq(r.outcome.cause, ULRPC_CAUSE_OK);
		cr_assert_eq(r.length, sizeof(which));
		memcpy(&which, r.reply, sizeof(which));
		cr_assert_eq((void *)which, r.arg);
		cr_assert_not(seen[which]);
		seen[which] = true;
		free(r.reply);
	}
	cr_assert_eq(poll(&p, 1, 0), 0);
	cr_assert_eq(ulrpc_set_next(set, &r), -EAGAIN);
	/* The set is freed while some calls are under way, and the results of
	 * others were not taken. */
	for (uintptr_t i = 0; i < 20; i++) {
		cr_assert_eq(ulrpc_set_call(set, c, ulrpc_method(ECHO), &i,
					    sizeof(i), &conf, (void *)i, NULL),
			     0);
		if (i == 9)
			cr_assert_geq(ulrpc_set_wait(set, 3, 5000000), 3);
	}
	ulrpc_set_free(set);
	quorum_of(rpc, c);
	ulrpc_client_close(c);
	cr_assert_eq(ulrpc_service_stop(svc, 1000000), 0);
	cr_assert_eq(ulrpc_close(rpc), 0);
	lnet_close(node);
}

Test(pair, sets_are_waited_for)
{
	set_of(node_with(LNET_RUN_POLL, NULL, 1));
	set_of(node_with(LNET_RUN_THREADS, NULL, 2));
}

/* ---- shutdown ---- */

static void shut(void *arg, int status)
{
	*(int *)arg = status;
}

Test(pair, shutdown_lets_calls_end)
{
	struct lnet *node = node_with(LNET_RUN_POLL, NULL, 1);
	struct ulrpc_call_conf conf = within(5000000);
	struct ulrpc_client *c;
	struct ulrpc_set *set;
	struct ulrpc *rpc;
	int status = 1;

	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	(void)echo_start(rpc, ULRPC_RUN_INLINE);
	c = client_to(rpc, LNET_NID_LO);
	call_and_compare(c, "hello");
	cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
	cr_assert_eq(ulrpc_set_call(set, c, ulrpc_method(ECHO), "x", 1, &conf,
				    NULL, NULL),
		     0);
	cr_assert_eq(ulrpc_shutdown(rpc, 1000000, shut, &status), 0);
	cr_assert_eq(ulrpc_shutdown(rpc, 1000000, shut, &status), -EALREADY);
	cr_assert_eq(ulrpc_set_call(set, c, 1, "x", 1, &conf, NULL, NULL),
		     -ESHUTDOWN);
	while (status == 1)
		lnet_poll(node, 1000);
	cr_assert_eq(status, 0);
	ulrpc_set_free(set);
	cr_assert_eq(ulrpc_close(rpc), 0);
	lnet_close(node);
}

Test(pair, shutdown_that_is_cut_off_says_so)
{
	struct lnet *node = node_with(LNET_RUN_POLL, NULL, 1);
	struct ulrpc_call_conf conf = within(60000000);
	struct ulrpc_client *c;
	struct ulrpc_set *set;
	struct ulrpc *rpc;

	for (unsigned int i = 0; i < 2; i++) {
		int status = 1;

		cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
		(void)echo_start(rpc, ULRPC_RUN_INLINE);
		c = client_to(rpc, LNET_NID_LO);
		cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
		if (i)
			cr_assert_eq(ulrpc_set_call(set, c, ulrpc_method(ECHO),
						    "x", 1, &conf, NULL, NULL),
				     0);
		cr_assert_eq(ulrpc_shutdown(rpc, ULRPC_NEVER, shut, &status),
			     0);
		ulrpc_set_free(set);
		cr_assert_eq(ulrpc_close(rpc), 0);
		cr_assert_eq(status, i ? -ECANCELED : 0);
	}
	lnet_close(node);
}

/* ---- requests that outlive their service ---- */

struct keeper {
	struct ulrpc_request *_Atomic request;
	atomic_bool closed;
	uint64_t last; /* the request's time_left, in the end */
};

static void keep(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	struct keeper *k = arg;

	(void)body;
	(void)length;
	atomic_store(&k->request, request);
}

/* Uses the request all the time, from a thread of the user's, until all is
 * closed and then once more. */
static void *keeper_run(void *arg)
{
	struct keeper *k = arg;
	struct ulrpc_request_info info;
	struct ulrpc_request *r;
	bool closed;
	char byte;

	while (!(r = atomic_load(&k->request)))
		sched_yield();
	do {
		struct iovec iov = { &byte, 1 };

		closed = atomic_load(&k->closed);
		ulrpc_request_info(r, &info);
		cr_assert_str_eq(info.service, "test");
		cr_assert_lt(ulrpc_bulk_put_wait(r, 0, 0, &iov, 1), 1);
	} while (!closed);
	k->last = info.time_left;
	cr_assert_eq(ulrpc_bulk_put_wait(r, 0, 0, NULL, 0), -ENOENT);
	ulrpc_reply(r, NULL, 0);
	return NULL;
}

Test(pair, requests_may_be_kept_while_all_is_closed)
{
	struct lnet *node = node_with(LNET_RUN_THREADS, NULL, 1);
	struct ulrpc_call_conf conf = within(60000000);
	struct ulrpc_bulk_conf lend = { .niov = 1, .access = ULRPC_BULK_SINK };
	char memory[1];
	struct iovec iov = { memory, sizeof(memory) };

	lend.iov = &iov;
	conf.nbulks = 1;
	for (unsigned int i = 0; i < 20; i++) {
		struct keeper k = { .closed = false };
		struct ulrpc_method_conf method = { .name = ECHO,
						    .handler = keep,
						    .arg = &k };
		struct ulrpc_service_conf sc;
		struct ulrpc_service *svc;
		struct ulrpc_bulk *bulk;
		struct ulrpc_set *set;
		struct ulrpc *rpc;
		pthread_t thread;

		cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
		ulrpc_service_conf_init(&sc);
		sc.name = "test";
		sc.methods = &method;
		sc.nmethods = 1;
		cr_assert_eq(ulrpc_service_start(rpc, &sc, &svc), 0);
		cr_assert_eq(ulrpc_bulk_new(rpc, &lend, &bulk), 0);
		conf.bulks = &bulk;
		cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
		cr_assert_eq(pthread_create(&thread, NULL, keeper_run, &k), 0);
		cr_assert_eq(ulrpc_set_call(set, client_to(rpc, LNET_NID_LO),
					    ulrpc_method(ECHO), "x", 1, &conf,
					    NULL, NULL),
			     0);
		while (!atomic_load(&k.request))
			sched_yield();
		ulrpc_set_free(set);
		ulrpc_bulk_close(bulk, NULL, NULL);
		cr_assert_eq(ulrpc_close(rpc), 0);
		atomic_store(&k.closed, true);
		pthread_join(thread, NULL);
		cr_assert_eq(k.last, 0);
	}
	lnet_close(node);
}

/* On a worker: replies some time after it has said that it runs. */
static void reply_later(void *arg, struct ulrpc_request *request,
			const void *body, size_t length)
{
	(void)body;
	(void)length;
	atomic_store((atomic_bool *)arg, true);
	cr_assert_eq(ulrpc_request_sleep(request, 20000), 0);
	ulrpc_reply(request, NULL, 0);
}

/* A call that is in its handler is answered, on a node run in this way. */
static void shutdown_waits(struct lnet *node, bool polled)
{
	struct ulrpc_call_conf conf = within(60000000);
	atomic_bool runs = false;
	struct ulrpc_method_conf method = { .name = ECHO,
					    .handler = reply_later,
					    .arg = &runs,
					    .run = ULRPC_RUN_WORKER };
	struct ulrpc_service_conf sc = { .name = "test",
					 .methods = &method,
					 .nmethods = 1 };
	struct ulrpc_result result;
	struct ulrpc_set *set;
	struct ulrpc *rpc;

	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	cr_assert_eq(ulrpc_service_start(rpc, &sc, NULL), 0);
	cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
	cr_assert_eq(ulrpc_set_call(set, client_to(rpc, LNET_NID_LO),
				    ulrpc_method(ECHO), "x", 1, &conf, NULL,
				    NULL),
		     0);
	while (!atomic_load(&runs))
		polled ? lnet_poll(node, 1000) : sched_yield();
	cr_assert_eq(ulrpc_shutdown_wait(rpc, ULRPC_NEVER), 0);
	cr_assert_eq(ulrpc_set_next(set, &result), 0);
	cr_assert_eq(result.outcome.cause, ULRPC_CAUSE_OK);
	free(result.reply);
	cr_assert_eq(ulrpc_shutdown_wait(rpc, ULRPC_NEVER), -EALREADY);
	ulrpc_set_free(set);
	cr_assert_eq(ulrpc_close(rpc), 0);
	lnet_close(node);
}

Test(pair, shutdown_can_be_waited_for)
{
	shutdown_waits(node_with(LNET_RUN_POLL, NULL, 1), true);
	shutdown_waits(node_with(LNET_RUN_THREADS, NULL, 2), false);
}

static int shutdown_in_a_turn(void *rpc)
{
	return ulrpc_shutdown_wait(rpc, ULRPC_NEVER);
}

/* A request that is not replied to does not end before its time. */
Test(pair, shutdown_waits_no_longer_than_it_is_told)
{
	struct lnet *node = node_with(LNET_RUN_THREADS, NULL, 1);
	struct ulrpc_call_conf conf = within(60000000);
	struct keeper k = { .closed = false };
	struct ulrpc_method_conf method = { .name = ECHO,
					    .handler = keep,
					    .arg = &k };
	struct ulrpc_service_conf sc = { .name = "test",
					 .methods = &method,
					 .nmethods = 1 };
	struct ulrpc_set *set;
	struct ulrpc *rpc;

	cr_assert_eq(ulrpc_open(node, NULL, &rpc), 0);
	cr_assert_eq(ulrpc_service_start(rpc, &sc, NULL), 0);
	cr_assert_eq(ulrpc_set_new(rpc, &set), 0);
	cr_assert_eq(ulrpc_set_call(set, client_to(rpc, LNET_NID_LO),
				    ulrpc_method(ECHO), "x", 1, &conf, NULL,
				    NULL),
		     0);
	while (!atomic_load(&k.request))
		sched_yield();
	cr_assert_eq(lnet_call(node, 0, shutdown_in_a_turn, rpc), -EDEADLK);
	cr_assert_eq(ulrpc_shutdown_wait(rpc, 1000), -ETIMEDOUT);
	ulrpc_reply(k.request, NULL, 0);
	ulrpc_set_free(set);
	cr_assert_eq(ulrpc_close(rpc), 0);
	lnet_close(node);
}

/* ---- servers that crash, and restart ---- */

#define CLIENTS 3
#define SERVERS 2
#define CALLS	3000

struct fleet {
	struct lnet_sim *sim;
	struct ulrpc *rpc[CLIENTS + SERVERS];
	struct ulrpc_client *clients[CLIENTS][SERVERS];
	struct note notes[CALLS];
	uint64_t began[CALLS];
};

static int fleet_start(void *arg, unsigned int index, struct lnet *node)
{
	struct fleet *t = arg;
	struct ulrpc_conf conf;

	ulrpc_conf_init(&conf);
	conf.keepalive = 500000;
	conf.connect_timeout = 1000000;
	cr_assert_eq(ulrpc_open(node, &conf, &t->rpc[index]), 0);
	if (index >= CLIENTS) {
		(void)echo_start(t->rpc[index], index % 2 ? ULRPC_RUN_INLINE
							  : ULRPC_RUN_WORKER);
		return 0;
	}
	for (unsigned int i = 0; i < SERVERS; i++)
		t->clients[index][i] =
			client_to(t->rpc[index], nth_id(CLIENTS + i).nid);
	return 0;
}

static void fleet_call(struct fleet *t, unsigned int i)
{
	struct ulrpc_call_conf conf = { .deadline = 3000000 };
	struct note *n = &t->notes[i];
	unsigned int from = i % CLIENTS, to = i / CLIENTS % SERVERS;

	conf.semantics = i % 5 ? ULRPC_AT_MOST_ONCE : ULRPC_IDEMPOTENT;
	*n = (struct note){ .sim = t->sim };
	t->began[i] = lnet_sim_now(t->sim);
	cr_assert_eq(ulrpc_call(t->clients[from][to], ulrpc_method(ECHO), &i,
				sizeof(i), &conf, note_end, n, NULL),
		     0);
}

static void fleet_fault(struct fleet *t, unsigned int i)
{
	unsigned int victim = CLIENTS + i / 400 % SERVERS;

	if (i % 400 == 200)
		cr_assert_eq(lnet_sim_crash(t->sim, victim), 0);
	else if (i % 400 == 300)
		cr_assert_eq(lnet_sim_restart(t->sim, victim), 0);
}

static void fleet_with(uint64_t seed)
{
	static struct fleet t;
	struct ulnet_sim_link bad = { .latency = 50000,
				      .jitter = 100000,
				      .loss = 5000,
				      .duplicate = 20000,
				      .reorder = 50000,
				      .reorder_window = 500000,
				      .refuse = 5000,
				      .error = 2000 };
	unsigned int causes[ULRPC_CAUSE_COUNT] = { 0 };

	cr_assert_eq(lnet_sim_new(seed, 2, &t.sim), 0);
	for (unsigned int i = 0; i < CLIENTS + SERVERS; i++) {
		char text[LNET_NIDSTR_SIZE];
		struct ulnet_id id = nth_id(i);

		lnet_nid_format(&id.nid, text, sizeof(text));
		cr_assert_eq(plain_node(t.sim, text, NULL, fleet_start, &t),
			     (int)i);
	}
	lnet_sim_link_set(t.sim, &LNET_NID_ANY, &LNET_NID_ANY, &bad);
	for (unsigned int i = 0; i < CALLS; i++) {
		fleet_call(&t, i);
		fleet_fault(&t, i);
		if (i % 3 == 0)
			lnet_sim_run(t.sim, lnet_sim_random(t.sim, 20 * MSEC));
	}
	lnet_sim_run(t.sim, 4 * SEC);
	for (unsigned int i = 0; i < CALLS; i++) {
		struct note *n = &t.notes[i];

		cr_assert_eq(n->ended, 1, "call %u: %u", i, n->ended);
		cr_assert_leq(n->at - t.began[i], 3 * SEC);
		causes[n->outcome.cause]++;
		if (n->outcome.cause != ULRPC_CAUSE_OK)
			continue;
		cr_assert_eq(n->length, sizeof(i));
		cr_assert_eq(memcmp(n->reply, &i, sizeof(i)), 0);
	}
	/* Only the crash of a server makes calls fail. */
	cr_assert_eq(causes[ULRPC_CAUSE_OK] + causes[ULRPC_CAUSE_RESTARTED],
		     CALLS);
	cr_assert_gt(causes[ULRPC_CAUSE_OK], CALLS - CALLS / 50);
	cr_assert_eq(lnet_sim_check(t.sim), 0);
	for (unsigned int i = 0; i < CLIENTS; i++)
		cr_assert_eq(lnet_sim_crash(t.sim, i), 0);
	cr_assert_eq(lnet_sim_free(t.sim), 0);
}

Test(pair, calls_end_once_and_in_time_though_servers_crash)
{
	for (uint64_t seed = 1; seed <= 8; seed++)
		fleet_with(seed);
}
