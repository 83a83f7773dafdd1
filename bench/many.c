/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many nodes in one process, and in one simulation.
 *
 *	many own N	bytes of memory for each of N nodes on TCP, which have
 *			a loop each
 *	many shared N	the same, on one libev loop of the caller's
 *	many pair N	calls between two of N nodes, which share a loop
 *	many pings N	N simulated nodes ping one of them, in turn
 *	many calls N [SIZE [BANDWIDTH]]
 *			N simulated clients call one server at the same time;
 *			bytes of a request and of its reply, and bytes/s of a
 *			link, 0 being any number
 *	many idle N	N simulated clients that have made a call make no more:
 *			events of the network from 60 s to 260 s after it, while
 *			they are connected, and in an hour when they no longer
 *			are, with the processor time that this hour took
 *
 * "own", "shared", "calls" and "idle" print lines of a name and a number. The
 * others are for counting their instructions: "pings" does 20,000 pings, of two
 * messages each, in lnet_sim_run_all(); and "pair" 1,000 calls, in measured().
 */
#include <ev.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bench/duo.h"
#include "bench/node.h"
#include "ulnet/sim.h"

#define PINGS	 20000
#define CALLS	 1000
#define SIZE	 64 /* bytes of a request, and of its reply */
#define BODY_MAX 65536
#define LATENCY	 50000		       /* ns, of the simulated network */
#define DEADLINE UINT64_C(10000000)    /* us, of a call */
#define LIFE	 UINT64_C(60000000000) /* ns, that a simulation may take */

/* ---- nodes on TCP ---- */

static const char *tcp_nid(unsigned int i, char *text, size_t size)
{
	snprintf(text, size, "127.1.%u.%u@tcp", i / 250, 1 + i % 250);
	return text;
}

static void tcp_nodes(unsigned int n, struct ev_loop *loop)
{
	struct lnet **nodes = calloc(n, sizeof(struct lnet *));
	uint16_t port = duo_free_port();
	size_t before;
	char nid[64];

	if (!nodes)
		give_up(-ENOMEM, "nodes");
	duo_more_files();
	before = duo_memory().allocated;
	for (unsigned int i = 0; i < n; i++) {
		bench_node_on(loop, tcp_nid(i, nid, sizeof(nid)), port,
			      &nodes[i]);
	}
	printf("bytes %zu\n", (duo_memory().allocated - before) / n);
	for (unsigned int i = 0; i < n; i++)
		lnet_close(nodes[i]);
	free(nodes);
}

/* ---- two of many nodes ---- */

struct pair {
	struct ev_loop *loop;
	struct ulrpc_client *client;
	unsigned int left;
};

static void echo(void *arg, struct ulrpc_request *request, const void *body,
		 size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void pair_call(struct pair *p);

static void on_echo(void *arg, const struct ulrpc_outcome *outcome,
		    const void *reply, size_t length)
{
	struct pair *p = arg;

	(void)reply;
	(void)length;
	must(outcome->status, "a call");
	if (--p->left)
		pair_call(p);
	else
		ev_break(p->loop, EVBREAK_ALL);
}

static void pair_call(struct pair *p)
{
	static const unsigned char body[SIZE];
	struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					.reply_max = SIZE };

	must(ulrpc_call(p->client, ulrpc_method("load"), body, SIZE, &conf,
			on_echo, p, NULL),
	     "ulrpc_call");
}

/* callgrind counts the instructions inside this function, by its name */
__attribute__((noinline)) void measured(struct pair *p, unsigned int calls);

void measured(struct pair *p, unsigned int calls)
{
	/* without this timer ev_run() would return: nodes do not keep the loop
	 * alive */
	struct ev_timer alive;

	ev_timer_init(&alive, NULL, 1000, 0);
	ev_timer_start(p->loop, &alive);
	p->left = calls;
	pair_call(p);
	ev_run(p->loop, 0);
	ev_timer_stop(p->loop, &alive);
}

static void tcp_pair(unsigned int n)
{
	struct pair pair = { .loop = ev_loop_new(EVFLAG_AUTO) };
	uint16_t port = duo_free_port();
	struct lnet *node;
	char nid[64];

	duo_more_files();
	bench_serve(bench_node_on(pair.loop, DUO_SERVER "@tcp", port, &node),
		    echo, NULL);
	pair.client = bench_client(
		bench_node_on(pair.loop, DUO_CLIENT "@tcp", port, &node),
		DUO_SERVER "@tcp");
	for (unsigned int i = 2; i < n; i++)
		bench_node_on(pair.loop, tcp_nid(i, nid, sizeof(nid)), port,
			      &node);
	measured(&pair, CALLS);
}

/* ---- simulated nodes ---- */

static struct lnet_sim *sim_new(uint64_t bandwidth)
{
	struct ulnet_sim_link link = { .latency = LATENCY,
				       .bandwidth = bandwidth };
	struct ulnet_nid any = LNET_NID_ANY;
	struct lnet_sim *sim;

	must(lnet_sim_new(1, 1, &sim), "lnet_sim_new");
	must(lnet_sim_link_set(sim, &any, &any, &link), "lnet_sim_link_set");
	return sim;
}

static const char *sim_nid(unsigned int i, char *text, size_t size)
{
	snprintf(text, size, "10.%u.%u.%u@tcp", i >> 16 & 255, i >> 8 & 255,
		 i & 255);
	return text;
}

static struct lnet *sim_node(struct lnet_sim *sim, unsigned int i)
{
	char nid[64];

	must(lnet_sim_node_add(sim, sim_nid(i, nid, sizeof(nid)), NULL, NULL,
			       NULL),
	     "lnet_sim_node_add");
	return lnet_sim_node(sim, i);
}

static void sim_end(struct lnet_sim *sim)
{
	if (lnet_sim_free(sim))
		give_up(-EPROTO, "the simulation");
}

struct pings {
	struct lnet_sim *sim;
	struct ulnet_id to;
	unsigned int n, done;
};

static void on_pong(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct pings *p = arg;
	unsigned int from = 1 + p->done % p->n;

	(void)info;
	must(status, "a ping");
	if (p->done++ < PINGS)
		must(lnet_ping(lnet_sim_node(p->sim, from), p->to, 1000000,
			       on_pong, p),
		     "lnet_ping");
}

static void sim_pings(unsigned int n)
{
	struct pings pings = { .sim = sim_new(0),
			       .to.pid = LNET_PID_LUSTRE,
			       .n = n };
	char nid[64];

	for (unsigned int i = 0; i <= n; i++)
		sim_node(pings.sim, i);
	must(lnet_nid_parse(sim_nid(0, nid, sizeof(nid)), &pings.to.nid), nid);
	on_pong(&pings, 0, NULL);
	lnet_sim_run_all(pings.sim);
	sim_end(pings.sim);
}

/* ---- simulated clients ---- */

struct herd {
	unsigned int left, answered, refused, unknown;
	uint64_t last; /* ns: when the last call ended */
	struct lnet_sim *sim;
};

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	uint64_t *runs = arg;

	++*runs;
	ulrpc_reply(request, body, length);
}

static void on_end(void *arg, const struct ulrpc_outcome *outcome,
		   const void *reply, size_t length)
{
	struct herd *h = arg;

	(void)reply;
	(void)length;
	h->left--;
	h->last = lnet_sim_now(h->sim);
	if (!outcome->status)
		h->answered++;
	else if (outcome->execution == ULRPC_NOT_EXECUTED)
		h->refused++;
	else
		h->unknown++;
}

static struct ulrpc *sim_rpc(struct lnet_sim *sim, unsigned int i)
{
	struct ulrpc *rpc;

	must(ulrpc_open(sim_node(sim, i), NULL, &rpc), "ulrpc_open");
	return rpc;
}

static void sim_calls(unsigned int n, uint32_t size, uint64_t bandwidth)
{
	static const unsigned char body[BODY_MAX];
	struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					.reply_max = size };
	struct lnet_sim *sim = sim_new(bandwidth);
	struct ulrpc_client **clients = calloc(n, sizeof(*clients));
	struct herd herd = { .left = n, .sim = sim };
	uint64_t runs = 0;
	size_t before;
	char nid[64];

	if (!clients)
		give_up(-ENOMEM, "clients");
	bench_serve(sim_rpc(sim, 0), on_request, &runs);
	sim_nid(0, nid, sizeof(nid));
	before = duo_memory().allocated;
	for (unsigned int i = 0; i < n; i++)
		clients[i] = bench_client(sim_rpc(sim, 1 + i), nid);
	for (unsigned int i = 0; i < n; i++)
		must(ulrpc_call(clients[i], ulrpc_method("load"), body, size,
				&conf, on_end, &herd, NULL),
		     "ulrpc_call");
	while (herd.left && lnet_sim_now(sim) < LIFE)
		lnet_sim_run(sim, 1000000);
	printf("answered %u\nrefused %u\nunknown %u\nruns %llu\nlast %.3f\n"
	       "bytes %zu\n",
	       herd.answered, herd.refused, herd.unknown,
	       (unsigned long long)runs, (double)herd.last / 1e6,
	       (duo_memory().allocated - before) / n);
	free(clients);
	sim_end(sim);
}

/* ---- simulated clients with nothing to do ---- */

#define SEC UINT64_C(1000000000) /* ns */

static uint64_t events_of(struct lnet_sim *sim, uint64_t seconds)
{
	struct ulnet_sim_stats before, after;

	lnet_sim_stats(sim, &before);
	lnet_sim_run(sim, seconds * SEC);
	lnet_sim_stats(sim, &after);
	return after.events - before.events;
}

static void sim_idle(unsigned int n)
{
	struct ulrpc_call_conf conf = { .deadline = 6 * DEADLINE };
	struct lnet_sim *sim = sim_new(0);
	struct herd herd = { .left = n, .sim = sim };
	uint64_t runs = 0, connected, gone;
	clock_t used;
	char nid[64];

	bench_serve(sim_rpc(sim, 0), on_request, &runs);
	sim_nid(0, nid, sizeof(nid));
	for (unsigned int i = 0; i < n; i++)
		must(ulrpc_call(bench_client(sim_rpc(sim, 1 + i), nid),
				ulrpc_method("load"), "x", 1, &conf, on_end,
				&herd, NULL),
		     "ulrpc_call");
	events_of(sim, 60);
	if (herd.answered < n)
		give_up(-EPROTO, "a call");
	connected = events_of(sim, 200);
	events_of(sim, 200);
	used = clock();
	gone = events_of(sim, 3600);
	used = clock() - used;
	printf("connected %llu\ngone %llu\ncpu %.0f\n",
	       (unsigned long long)connected, (unsigned long long)gone,
	       (double)used * 1e6 / CLOCKS_PER_SEC);
	sim_end(sim);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	unsigned int n =
		argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
	unsigned long size = argc > 3 ? strtoul(argv[3], NULL, 10) : SIZE;
	uint64_t bandwidth = argc > 4 ? strtoull(argv[4], NULL, 10) : 0;

	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	if (!n || size > BODY_MAX)
		what = "";
	if (!strcmp(what, "own"))
		tcp_nodes(n, NULL);
	else if (!strcmp(what, "shared"))
		tcp_nodes(n, ev_loop_new(EVFLAG_AUTO));
	else if (!strcmp(what, "pair"))
		tcp_pair(n);
	else if (!strcmp(what, "pings"))
		sim_pings(n);
	else if (!strcmp(what, "calls"))
		sim_calls(n, (uint32_t)size, bandwidth);
	else if (!strcmp(what, "idle"))
		sim_idle(n);
	else {
		fprintf(stderr, "usage: many own|shared|pair|pings|idle N\n"
				"       many calls N [SIZE [BANDWIDTH]]\n");
		return 2;
	}
	return 0;
}
