/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many clients of the real library lose their one server at the same moment:
 * how many of their calls come back at the same time? bench/herd computes what
 * the pauses alone would make of them.
 *
 *	herd [--long]
 *
 * 1,000 clients, or 10,000.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/service.h>
#include <ulnet/sim.h>

#define MSEC UINT64_C(1000000)
#define SEC  (1000 * MSEC)
#define BIN  (10 * MSEC)
#define BINS 6000 /* bins of BIN ns: a minute */
/* of a call, us */
#define DEADLINE UINT64_C(60000000)
#define TIMEOUT	 UINT64_C(1000000)
#define BASE	 UINT64_C(500000)

struct herd {
	struct lnet_sim *sim;
	unsigned int n;	    /* clients; the server is node n */
	struct ulrpc **rpc; /* one for each client; the server has its own */
	struct ulrpc_client **clients;
	uint64_t since; /* ns: begin of bin 0 */
	/* bins[i]: calls that reached the server from i * BIN after @since on
	 */
	unsigned int bins[BINS];
	unsigned int good, bad; /* calls that succeeded, and that failed */
};

static int passed, failed;

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "herd: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void expect(bool right, const char *what, unsigned int is)
{
	printf("%s %s: %u\n", right ? "PASS" : "FAIL", what, is);
	right ? passed++ : failed++;
}

static struct ulnet_nid nid_of(unsigned int i)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;

	snprintf(text, sizeof(text), "10.0.%u.%u@tcp", (i + 1) / 256,
		 (i + 1) % 256);
	must(lnet_nid_parse(text, &nid), text);
	return nid;
}

/* ---- the server ---- */

static void on_request(void *arg, struct ulrpc_request *r, const void *body,
		       size_t length)
{
	struct herd *h = arg;
	uint64_t bin = (lnet_sim_now(h->sim) - h->since) / BIN;

	if (bin < BINS)
		h->bins[bin]++;
	ulrpc_reply(r, body, length);
}

/* Also called when the server has restarted. */
static int serve(void *arg, unsigned int index, struct lnet *node)
{
	struct ulrpc_method_conf method = { .name = "echo",
					    .handler = on_request,
					    .arg = arg,
					    .run = ULRPC_RUN_INLINE,
					    .semantics = ULRPC_IDEMPOTENT };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	struct ulrpc *rpc;

	(void)index;
	must(ulrpc_open(node, NULL, &rpc), "the server");
	ulrpc_service_conf_init(&conf);
	conf.name = "herd";
	conf.methods = &method;
	conf.nmethods = 1;
	must(ulrpc_service_start(rpc, &conf, &service), "the service");
	return 0;
}

/* ---- the clients ---- */

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	struct herd *h = arg;

	(void)reply;
	(void)length;
	o->status ? h->bad++ : h->good++;
}

static void client_open(struct herd *h, unsigned int i,
			enum ulrpc_backoff policy)
{
	const struct ulrpc_retry retry = { .policy = policy,
					   .max = ULRPC_RETRIES_ANY,
					   .base = BASE };
	struct ulnet_nid server = nid_of(h->n);
	struct ulrpc_client_conf conf;
	struct ulrpc_conf all;

	ulrpc_conf_init(&all);
	all.timeout_min = all.timeout_max = TIMEOUT;
	must(ulrpc_open(lnet_sim_node(h->sim, i), &all, &h->rpc[i]), "RPC");
	ulrpc_client_conf_init(&conf);
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = "herd";
	conf.retry = &retry;
	must(ulrpc_client_open(h->rpc[i], &conf, &h->clients[i]), "a client");
}

static void node_add(struct herd *h, unsigned int i, lnet_sim_start_fn start)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid = nid_of(i);

	lnet_nid_format(&nid, text, sizeof(text));
	if (lnet_sim_node_add(h->sim, text, NULL, start, h) != (int)i)
		must(-ENOMEM, "a node");
}

static struct herd *herd_new(unsigned int n, enum ulrpc_backoff policy)
{
	struct herd *h = calloc(1, sizeof(*h));

	if (!h)
		abort();
	h->n = n;
	h->rpc = calloc(n, sizeof(struct ulrpc *));
	h->clients = calloc(n, sizeof(struct ulrpc_client *));
	if (!h->rpc || !h->clients)
		abort();
	must(lnet_sim_new(1, 1, &h->sim), "the simulation");
	for (unsigned int i = 0; i < n; i++) {
		node_add(h, i, NULL);
		client_open(h, i, policy);
	}
	node_add(h, n, serve);
	return h;
}

static void herd_free(struct herd *h)
{
	expect(!lnet_sim_free(h->sim), "violations", 0);
	free(h->clients);
	free(h->rpc);
	free(h);
}

static void calls(struct herd *h)
{
	const struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					      .semantics = ULRPC_IDEMPOTENT };

	h->since = lnet_sim_now(h->sim);
	h->good = h->bad = 0;
	memset(h->bins, 0, sizeof(h->bins));
	for (unsigned int i = 0; i < h->n; i++)
		must(ulrpc_call(h->clients[i], ulrpc_method("echo"), "", 0,
				&conf, on_end, h, NULL),
		     "a call");
}

/* Lets clients and server find each other's failures by broken connections. */
static void connections(struct herd *h)
{
	const struct ulnet_sim_link link = { .latency = MSEC / 2,
					     .connect = MSEC };
	struct ulnet_nid any = LNET_NID_ANY;

	must(lnet_sim_link_set(h->sim, &any, &any, &link), "the link");
}

/* Connects all clients, and lets them learn how long calls take. */
static void warm_up(struct herd *h)
{
	calls(h);
	lnet_sim_run(h->sim, 5 * SEC);
	expect(h->good == h->n, "clients that have called", h->good);
}

static unsigned int peak(const struct herd *h)
{
	unsigned int most = 0;

	for (unsigned int i = 0; i < BINS; i++)
		most = h->bins[i] > most ? h->bins[i] : most;
	return most;
}

/* ---- what happens to the clients ---- */

/* Loses all messages to the server at one moment. Returns the most calls of one
 * bin afterwards. */
static unsigned int lost_messages(unsigned int n, enum ulrpc_backoff policy)
{
	struct ulnet_sim_link bad = { .loss = LNET_SIM_ALWAYS }, good = { 0 };
	struct herd *h = herd_new(n, policy);
	struct ulnet_nid server = nid_of(n), any = LNET_NID_ANY;
	unsigned int most;

	warm_up(h);
	must(lnet_sim_link_set(h->sim, &any, &server, &bad), "the link");
	calls(h);
	lnet_sim_run(h->sim, 5 * MSEC);
	must(lnet_sim_link_set(h->sim, &any, &server, &good), "the link");
	lnet_sim_run(h->sim, 30 * SEC);
	expect(h->good == n, "calls that were answered", h->good);
	most = peak(h);
	herd_free(h);
	return most;
}

/* Breaks all connections while each client has one call on its way. Returns the
 * most calls of one bin afterwards. */
static unsigned int cut(unsigned int n)
{
	struct herd *h = herd_new(n, ULRPC_BACKOFF_DEFAULT);
	struct ulnet_nid any = LNET_NID_ANY;
	unsigned int most;

	connections(h);
	warm_up(h);
	calls(h);
	lnet_sim_run(h->sim, MSEC / 4);
	lnet_sim_cut(h->sim, &any, &any);
	lnet_sim_run(h->sim, 30 * SEC);
	expect(h->good == n, "calls that were answered", h->good);
	most = peak(h);
	herd_free(h);
	return most;
}

/* Restarts the server while each client has one call for it. @connected: the
 * clients hear that the connection has ended. Returns the most calls of one bin
 * afterwards. */
static unsigned int restart(unsigned int n, bool connected)
{
	struct herd *h = herd_new(n, ULRPC_BACKOFF_DEFAULT);
	unsigned int most;

	if (connected)
		connections(h);
	warm_up(h);
	if (connected) {
		calls(h);
		lnet_sim_run(h->sim, MSEC / 4);
	}
	must(lnet_sim_crash(h->sim, n), "the crash");
	if (!connected)
		calls(h);
	lnet_sim_run(h->sim, 5 * SEC);
	must(lnet_sim_restart(h->sim, n), "the restart");
	lnet_sim_run(h->sim, 30 * SEC);
	expect(h->good + h->bad == n, "calls that ended", h->good + h->bad);
	most = peak(h);
	herd_free(h);
	return most;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 && !strcmp(argv[1], "--long") ? 10000 : 1000;
	unsigned int full, mad, none;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--long") != 0)) {
		fprintf(stderr, "usage: herd [--long]\n");
		return 2;
	}
	none = lost_messages(n, ULRPC_BACKOFF_NONE);
	expect(none == n, "at once, without pauses", none);
	mad = lost_messages(n, ULRPC_BACKOFF_MAD);
	expect(mad == n, "at once, by the law of datagrams", mad);
	full = lost_messages(n, ULRPC_BACKOFF_FULL);
	/* on average 2 % of the calls come in one bin */
	expect(full <= n / 40 + 20, "at once, with full jitter", full);
	full = cut(n);
	expect(full <= 260, "at once, after a cut", full);
	/* A client spreads its attempts over 100 ms or, if the server has said
	 * that it has more than 1,000 clients, over 0.1 ms for each of them. So
	 * on average 2 % of the attempts come in the first 10 ms, as with full
	 * jitter. */
	full = restart(n, true);
	expect(full <= 260, "at once, after a restart, told", full);
	full = restart(n, false);
	expect(full <= 260, "at once, after a restart", full);
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
