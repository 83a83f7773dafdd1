/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it costs to keep calls alive whose handlers take very long: the server
 * sends early replies. Over TCP on the loopback interface.
 *
 *	slow CALLS SECONDS
 *
 * CALLS calls, up to 1,000 of each client, are at their server. For SECONDS it
 * answers none of them, but says again and again, early enough, that it needs
 * longer. Prints lines of a name and a number: server and client, percent of a
 * core that the two processes used meanwhile; extensions, how often the server
 * said that it needs longer; resent and queries: of all calls together.
 */
#include <errno.h>
#include <ev.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include "bench/duo.h"
#include "bench/node.h"

#define EACH	 1000 /* calls of a client */
#define NODES	 64   /* clients */
#define TICK	 0.01 /* s, between two checks whether all calls have arrived */
#define DEADLINE UINT64_C(3600000000) /* us, of a call */

/* Shared by both processes. */
struct shared {
	uint16_t port;
	_Atomic unsigned int held; /* calls at the server */
};

struct sums {
	unsigned int ended;
	uint64_t extensions, retries, queries;
};

/* ---- the server ---- */

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	struct shared *s = arg;

	(void)request;
	(void)body;
	(void)length;
	s->held++;
}

static void server(void *arg, int ready)
{
	struct shared *s = arg;
	struct lnet *node;

	bench_serve(bench_node(DUO_SERVER "@tcp", s->port, &node), on_request,
		    s);
	duo_ready(ready);
	for (;;)
		must(lnet_poll(node, UINT64_MAX), "lnet_poll");
}

/* ---- the clients ---- */

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct sums *sums = arg;

	(void)reply;
	(void)length;
	sums->ended++;
	sums->extensions += o->extensions;
	sums->retries += o->retries;
	sums->queries += o->queries;
}

static struct lnet *client(struct ev_loop *loop, const struct shared *s,
			   unsigned int index, unsigned int calls,
			   struct sums *sums)
{
	const struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	struct ulrpc_client *client;
	struct lnet *node;
	char nid[64];

	snprintf(nid, sizeof(nid), "127.1.0.%u@tcp", 1 + index);
	client = bench_client(bench_node_on(loop, nid, s->port, &node),
			      DUO_SERVER "@tcp");
	for (unsigned int i = 0; i < calls; i++)
		must(ulrpc_call(client, ulrpc_method("load"), "x", 1, &conf,
				on_end, sums, NULL),
		     "ulrpc_call");
	return node;
}

/* ---- who measures ---- */

static double used(clockid_t clock) /* Returns processor time, s. */
{
	struct timespec t;

	must_sys(clock_gettime(clock, &t), "clock_gettime");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void stop(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
	(void)timer;
	(void)revents;
	ev_break(loop, EVBREAK_ALL);
}

static void run_for(struct ev_loop *loop, double seconds)
{
	struct ev_timer timer;

	ev_timer_init(&timer, stop, seconds, 0);
	ev_now_update(loop);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
}

static void measure(struct ev_loop *loop, pid_t child, double seconds)
{
	double theirs, ours;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock))
		give_up(-ESRCH, "the server");
	theirs = used(clock);
	ours = used(CLOCK_PROCESS_CPUTIME_ID);
	run_for(loop, seconds);
	printf("server %.2f\nclient %.2f\n",
	       100 * (used(clock) - theirs) / seconds,
	       100 * (used(CLOCK_PROCESS_CPUTIME_ID) - ours) / seconds);
}

int main(int argc, char **argv)
{
	struct shared *s = duo_shared(sizeof(*s));
	unsigned int calls =
		argc == 3 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
	double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
	struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
	struct lnet *nodes[NODES];
	unsigned int n = (calls + EACH - 1) / EACH;
	struct sums sums = { 0 };
	pid_t child;

	if (!n || n > NODES || seconds <= 0) {
		fprintf(stderr, "usage: slow CALLS SECONDS\n");
		return 2;
	}
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	s->port = duo_free_port();
	child = duo_fork(server, s);
	for (unsigned int i = 0; i < n; i++)
		nodes[i] = client(loop, s, i,
				  i + 1 < n ? EACH : calls - i * EACH, &sums);
	while (s->held + sums.ended < calls)
		run_for(loop, TICK);
	measure(loop, child, seconds);
	if (sums.ended)
		give_up(-EPROTO, "a call ended");
	for (unsigned int i = 0; i < n; i++)
		lnet_close(nodes[i]);
	printf("extensions %llu\nresent %llu\nqueries %llu\n",
	       (unsigned long long)sums.extensions,
	       (unsigned long long)sums.retries,
	       (unsigned long long)sums.queries);
	must_sys(kill(child, SIGKILL), "kill");
	must_sys(waitpid(child, NULL, 0), "waitpid");
	return 0;
}
