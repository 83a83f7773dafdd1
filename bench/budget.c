/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many instructions a call takes. Two nodes take turns in one thread, over
 * TCP, or over simulated RDMA devices, whose own instructions bench/budget.sh
 * leaves out. For callgrind, which collects inside of measured() only.
 *
 *	budget DEPTH CALLS [verbs [CPTS [away]] | stream]
 *
 * makes CALLS calls of 64 bytes there and back, DEPTH of them under way. Each
 * node has CPTS CPTs, all in one thread; away: the server serves the client on
 * another CPT than the one to which its messages come. stream: over TCP, as
 * many messages of one stream, which the service sends back.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/util.h"
#include "bench/duo.h"
#include "bench/node.h"
#include "sim/sim.h"
#include "ulnet/loop.h"
#include "ulnet/stream.h"

#define SIZE	 64
#define WARM	 2000 /* calls until nothing is allocated any more */
#define DEADLINE (600 * UINT64_C(1000000)) /* us; valgrind is slow */

#define STEP UINT64_C(10000) /* ns of virtual time */
/* ns, over TCP: see clock_gettime(). At first longer, so that nodes learn what
 * the processor's tick counter counts, which takes them some ms */
#define TICK	  UINT64_C(100)
#define TICK_WARM UINT64_C(20000)
/* of a stream, beyond any depth that is measured */
#define WINDOW	 4096u
#define MESSAGES (WINDOW * SIZE) /* bytes of them */

struct run {
	/* sends one more */
	void (*begin)(struct run *r);
	struct lnet_sim *sim; /* NULL: TCP */
	struct lnet *client_node, *server_node;
	struct ulrpc_client *client;
	struct ulrpc_stream *stream;
	bool open; /* the stream is */
	unsigned int cpts;
	bool away;
	uint32_t method;
	unsigned long to_begin, under_way;
};

static bool is_warm;
static struct lnet *serving; /* the server's node, if it is simulated */
static int served_on;	     /* the CPT of the last request there */

/* In place of libc's, for libev too: whoever asks for the time moves it on, by
 * so little that timers hardly count. By the true clock they expire more often
 * for each call when the machine is busy, and the same program would take more
 * instructions. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static uint64_t now = UINT64_C(1000000000000);

	(void)clock;
	now += is_warm ? TICK : TICK_WARM;
	ts->tv_sec = (time_t)(now / 1000000000);
	ts->tv_nsec = (long)(now % 1000000000);
	return 0;
}

static void call(struct run *r);

static void on_reply(void *arg, const struct ulrpc_outcome *outcome,
		     const void *reply, size_t length)
{
	struct run *r = arg;

	(void)reply;
	if (outcome->status || length != SIZE)
		must(-EIO, ulrpc_cause_name(outcome->cause));
	r->under_way--;
	if (r->to_begin)
		call(r);
}

static void call(struct run *r)
{
	static const unsigned char body[SIZE];
	struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					.reply_max = SIZE };

	r->to_begin--;
	r->under_way++;
	must(ulrpc_call(r->client, r->method, body, SIZE, &conf, on_reply, r,
			NULL),
	     "ulrpc_call");
}

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void on_probe(void *arg, struct ulrpc_request *request, const void *body,
		     size_t length)
{
	(void)arg;
	served_on = lnet_cpt_current(serving);
	ulrpc_reply(request, body, length);
}

/* Of both nodes, over TCP. */
static in_line void turn(struct run *r)
{
	must(lnet_poll(r->client_node, 0), "lnet_poll");
	must(lnet_poll(r->server_node, 0), "lnet_poll");
}

static void calls(struct run *r, unsigned long n, unsigned long depth)
{
	r->to_begin = n;
	while (r->to_begin && r->under_way < depth)
		r->begin(r);
	while (r->under_way && r->sim)
		lnet_sim_run(r->sim, STEP);
	while (r->under_way)
		turn(r);
}

/* callgrind counts the instructions inside this function, by its name */
__attribute__((noinline)) void measured(struct run *r, unsigned long n,
					unsigned long depth);

void measured(struct run *r, unsigned long n, unsigned long depth)
{
	calls(r, n, depth);
}

static void over_tcp(struct run *r)
{
	uint16_t port = duo_free_port();

	bench_serve(bench_node(DUO_SERVER "@tcp", port, &r->server_node),
		    on_request, NULL);
	r->client = bench_client(
		bench_node(DUO_CLIENT "@tcp", port, &r->client_node),
		DUO_SERVER "@tcp");
}

/* ---- a stream ---- */

static void message(struct run *r)
{
	static const unsigned char body[SIZE];

	r->to_begin--;
	r->under_way++;
	must(ulrpc_stream_send(r->stream, body, SIZE), "ulrpc_stream_send");
}

static void on_messages(void *arg, struct ulrpc_stream *stream)
{
	const void *body;
	size_t length;

	(void)arg;
	while (ulrpc_stream_next(stream, &body, &length) == 1)
		must(ulrpc_stream_send(stream, body, length),
		     "ulrpc_stream_send");
}

static void on_stream(void *arg, struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	const struct ulrpc_stream_events events = { .readable = on_messages };

	(void)arg;
	(void)body;
	(void)length;
	ulrpc_stream_watch(stream, &events);
}

static void on_answers(void *arg, struct ulrpc_stream *stream)
{
	struct run *r = arg;
	const void *body;
	size_t length;

	while (ulrpc_stream_next(stream, &body, &length) == 1) {
		r->under_way--;
		if (r->to_begin)
			message(r);
	}
}

static void on_open(void *arg, struct ulrpc_stream *stream)
{
	struct run *r = arg;

	(void)stream;
	r->open = true;
}

static void stream_over_tcp(struct run *r)
{
	const struct ulrpc_stream_conf limits = {
		.deadline = ULRPC_NEVER,
		.events = { .readable = on_answers,
			    .writable = on_open,
			    .arg = r },
	};
	uint16_t port = duo_free_port();
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;
	struct ulrpc *rpc;

	bench_serve_streams(
		bench_node(DUO_SERVER "@tcp", port, &r->server_node), on_stream,
		NULL, WINDOW, MESSAGES);
	rpc = bench_node(DUO_CLIENT "@tcp", port, &r->client_node);
	ulrpc_streams_conf_init(&conf);
	conf.client.target = DUO_SERVER "@tcp";
	conf.client.service = "bench";
	conf.window_messages = WINDOW;
	conf.window_bytes = MESSAGES;
	must(ulrpc_streams_open(rpc, &conf, &streams), "ulrpc_streams_open");
	must(ulrpc_stream_open(streams, "load", NULL, 0, &limits, &r->stream),
	     "ulrpc_stream_open");
	/* on_open() is called when there is credit after -EAGAIN. */
	if (ulrpc_stream_send(r->stream, NULL, 0) != -EAGAIN)
		must(-EPROTO, "a stream that is open at once");
	while (!r->open)
		turn(r);
	r->begin = message;
}

/* ---- simulated devices ---- */

static struct lnet *sim_node(struct run *r, const char *nid)
{
	int i = lnet_sim_node_add(r->sim, nid, NULL, NULL, NULL);

	must(i, "lnet_sim_node_add");
	return lnet_sim_node(r->sim, (unsigned int)i);
}

static struct ulrpc *rpc_on(struct lnet *node, enum ulrpc_spread spread)
{
	struct ulrpc_conf conf;
	struct ulrpc *rpc;

	ulrpc_conf_init(&conf);
	conf.spread = spread;
	must(ulrpc_open(node, &conf, &rpc), "ulrpc_open");
	return rpc;
}

/* Makes clients until the server serves one where that is wanted. */
static void choose_client(struct run *r)
{
	for (unsigned int i = 2; i < 250; i++) {
		struct ulnet_nid nid;
		char text[32];

		snprintf(text, sizeof(text), "10.0.0.%u@o2ib", i);
		must(lnet_nid_parse(text, &nid), text);
		r->client = bench_client(
			rpc_on(sim_node(r, text), ULRPC_SPREAD_NIDS),
			"10.0.0.1@o2ib");
		r->method = ulrpc_method("probe");
		calls(r, 1, 1);
		r->method = ulrpc_method("load");
		if ((served_on != lnet_cpt_of(serving, &nid)) == r->away)
			return;
		ulrpc_client_close(r->client);
	}
	give_up(-ENOENT, "no client is where it should be");
}

static void over_verbs(struct run *r)
{
	const struct ulrpc_method_conf methods[] = {
		{ .name = "load",
		  .handler = on_request,
		  .run = ULRPC_RUN_INLINE },
		{ .name = "probe",
		  .handler = on_probe,
		  .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	struct simqp_fabric *fabric;

	must(lnet_sim_new(1, r->cpts, &r->sim), "lnet_sim_new");
	must(sim_verbs(r->sim, NULL, &fabric), "sim_verbs");
	serving = sim_node(r, "10.0.0.1@o2ib");
	ulrpc_service_conf_init(&conf);
	conf.name = "bench";
	conf.methods = methods;
	conf.nmethods = 2;
	must(ulrpc_service_start(rpc_on(serving, r->away ? ULRPC_SPREAD_CLIENTS
							 : ULRPC_SPREAD_NIDS),
				 &conf, &service),
	     "ulrpc_service_start");
	choose_client(r);
}

int main(int argc, char **argv)
{
	unsigned long depth, n;
	struct run r = { .begin = call, .method = ulrpc_method("load") };
	bool stream = argc == 4 && !strcmp(argv[3], "stream");

	if (argc < 3 || argc > 6 ||
	    (argc > 3 && !stream && strcmp(argv[3], "verbs")) ||
	    (argc > 5 && strcmp(argv[5], "away"))) {
		fprintf(stderr, "usage: budget DEPTH CALLS "
				"[verbs [CPTS [away]] | stream]\n");
		return 2;
	}
	r.cpts = argc > 4 ? (unsigned int)strtoul(argv[4], NULL, 10) : 1;
	r.away = argc > 5;
	depth = strtoul(argv[1], NULL, 10);
	n = strtoul(argv[2], NULL, 10);
	if (stream)
		stream_over_tcp(&r);
	else if (argc == 3)
		over_tcp(&r);
	else
		over_verbs(&r);
	calls(&r, WARM, depth);
	is_warm = true;
	measured(&r, n, depth);
	if (r.sim)
		return lnet_sim_free(r.sim) != 0;
	lnet_close(r.client_node);
	lnet_close(r.server_node);
	return 0;
}
