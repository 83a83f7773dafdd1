/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a router costs: a client PUTs with ACKs to a server, directly, and then
 * through a router between two nets. bench/routers.sh calls it.
 *
 *	route SIZE DEPTH MS
 *
 * DEPTH PUTs of SIZE bytes are under way, for MS milliseconds each way. Prints
 * a line of a name and a number for each of:
 *
 *	direct-ns
 *		processor time for a PUT and its ACK, without a router, of both
 *		ends: two messages are sent, and two received
 *	router-ns
 *		processor time of the router for a PUT and its ACK: also two
 *		messages sent, and two received
 *	direct-rate
 *		PUTs a second without a router, with the client on the last
 *		core, and the server on core 0
 *	router-rate
 *		PUTs a second through the router, which is alone on core 0; the
 *		client and the server are on the last core
 *
 * All processes wait in lnet_poll() when there is nothing to do.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <ulnet/lnet.h>
#include <ulnet/route.h>

#include "bench/duo.h"

#define PORTAL	  10
#define BITS	  UINT64_C(0x726f757465)
#define CREDITS	  4096
#define TIMEOUT	  20000000 /* us, of each PUT */
#define WARM_PUTS 200	   /* PUTs before anything is counted */
#define NEAR	  "127.0.0.1@tcp1"
#define NEAR_GATE "127.0.0.3@tcp1"
#define FAR	  "127.0.0.2@tcp2"
#define FAR_GATE  "127.0.0.4@tcp2"
/* NID of the server that is reached without a router */
#define BESIDE "127.0.0.2@tcp1"

struct run {
	uint16_t port;
	uint32_t size;
	uint64_t depth;
	uint64_t ns;
};

/* ---- nodes ---- */

static struct lnet *open_node(const struct run *r, const char *nids)
{
	char one[64];
	struct ulnet_conf conf;
	struct lnet *node;
	size_t n;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = r->port;
	conf.accept = LNET_ACCEPT_ALL;
	must(lnet_open(&conf, &node), "lnet_open");
	for (; *nids; nids += n + (nids[n] == ' ')) {
		struct ulnet_ni_conf ni = { .credits = CREDITS,
					    .peer_credits = CREDITS,
					    .peer_buffer_credits = CREDITS };

		n = strcspn(nids, " ");
		snprintf(one, sizeof(one), "%.*s", (int)n, nids);
		must(lnet_nid_parse(one, &ni.nid), one);
		must(lnet_ni_add(node, &ni), one);
	}
	return node;
}

static void add_route(struct lnet *node, const char *net, const char *gateway)
{
	struct ulnet_route route = { .hops = 1 };

	must(lnet_net_parse(net, &route.net), net);
	must(lnet_nid_parse(gateway, &route.gateway), gateway);
	must(lnet_route_add(node, &route), gateway);
}

static void run_for_ever(struct lnet *node)
{
	for (;;)
		must(lnet_poll(node, 1000000), "lnet_poll");
}

/* ---- router and server: until they are killed ---- */

static void route(void *arg, int ready)
{
	const struct ulnet_routing routing = { .enabled = true };
	struct lnet *node = open_node(arg, NEAR_GATE " " FAR_GATE);

	must(lnet_routing_set(node, &routing), "lnet_routing_set");
	duo_ready(ready);
	run_for_ever(node);
}

static void on_put(const struct ulnet_event *ev)
{
	must(ev->status, "PUT");
}

static void serve_on(const struct run *r, const char *nid, bool routed,
		     int ready)
{
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_me_handle me;
	struct ulnet_md_handle h;
	struct ulnet_md md = { .start = duo_buffer(r->size),
			       .length = r->size,
			       .threshold = LNET_MD_THRESH_INF,
			       .options =
				       LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE,
			       .handler = on_put };
	struct lnet *node = open_node(r, nid);

	if (routed)
		add_route(node, "tcp1", FAR_GATE);
	must(LNetMEAttach(node, PORTAL, any, BITS, 0, LNET_RETAIN,
			  LNET_INS_AFTER, &me),
	     "LNetMEAttach");
	must(LNetMDAttach(me, &md, LNET_RETAIN, &h), "LNetMDAttach");
	duo_ready(ready);
	run_for_ever(node);
}

static void serve_beside(void *arg, int ready)
{
	serve_on(arg, BESIDE, false, ready);
}

static void serve_far(void *arg, int ready)
{
	serve_on(arg, FAR, true, ready);
}

/* ---- client ---- */

struct client {
	const struct run *run;
	struct lnet *node;
	struct ulnet_md_handle md;
	struct ulnet_id server;
	uint64_t begun, done;
	bool enough;
};

static void put_more(struct client *c)
{
	while (!c->enough && c->begun - c->done < c->run->depth) {
		must(LNetPut(LNET_NID_ANY, c->md, LNET_ACK_REQ, c->server,
			     PORTAL, BITS, 0, 0),
		     "LNetPut");
		c->begun++;
	}
}

static void on_end(const struct ulnet_event *ev)
{
	struct client *c = ev->user_ptr;

	must(ev->status, "PUT");
	if (!ev->terminal)
		return;
	if (ev->outcome != LNET_OUTCOME_DELIVERED ||
	    ev->mlength != c->run->size)
		must(-EBADMSG, "outcome");
	c->done++;
	put_more(c);
}

static int put_first(void *arg)
{
	put_more(arg);
	return 0;
}

static void open_client(struct client *c, bool routed)
{
	struct ulnet_md md = { .start = duo_buffer(c->run->size),
			       .length = c->run->size,
			       .threshold = LNET_MD_THRESH_INF,
			       .user_ptr = c,
			       .handler = on_end,
			       .timeout = TIMEOUT };

	c->node = open_node(c->run, NEAR);
	if (routed)
		add_route(c->node, "tcp2", NEAR_GATE);
	must(lnet_nid_parse(routed ? FAR : BESIDE, &c->server.nid), "NID");
	c->server.pid = LNET_PID_LUSTRE;
	must(LNetMDBind(c->node, &md, LNET_RETAIN, &c->md), "LNetMDBind");
}

/* Begins PUTs, and polls until @done PUTs are done, or duo_now() is @end (ns).
 */
static void poll_until(struct client *c, uint64_t done, uint64_t end)
{
	must(lnet_call(c->node, 0, put_first, c), "lnet_call");
	while (c->done < done && duo_now() < end)
		must(lnet_poll(c->node, 1000), "lnet_poll");
}

/* ---- what is measured ---- */

/* Returns the processor time that a process has used, ns. */
static uint64_t cpu_of(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		must(-ESRCH, "clock_getcpuclockid");
	must_sys(clock_gettime(clock, &ts), "clock_gettime");
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Lets process @pid (0: this one) run on @core only. */
static void pin_to(pid_t pid, long core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	must_sys(sched_setaffinity(pid, sizeof(set), &set),
		 "sched_setaffinity");
}

static void end_process(pid_t pid)
{
	must_sys(kill(pid, SIGKILL), "kill");
	must_sys(waitpid(pid, NULL, 0), "waitpid");
}

struct result {
	double ns;   /* processor time for a PUT */
	double rate; /* PUTs a second */
};

/* Measures PUTs. @pids: the processes whose processor time counts. */
static struct result measure(struct client *c, const pid_t *pids,
			     unsigned int n)
{
	uint64_t begin, took, cpu = 0, done;

	poll_until(c, WARM_PUTS, UINT64_MAX);
	for (unsigned int i = 0; i < n; i++)
		cpu -= cpu_of(pids[i]);
	begin = duo_now();
	done = c->done;
	poll_until(c, UINT64_MAX, begin + c->run->ns);
	took = duo_now() - begin;
	done = c->done - done;
	for (unsigned int i = 0; i < n; i++)
		cpu += cpu_of(pids[i]);
	c->enough = true;
	poll_until(c, c->begun, UINT64_MAX);
	lnet_close(c->node);
	if (!done)
		must(-ETIMEDOUT, "PUTs");
	return (struct result){ .ns = (double)cpu / (double)done,
				.rate = (double)done * 1e9 / (double)took };
}

static struct result measure_direct(struct run *r)
{
	struct client c = { .run = r };
	struct result result;
	pid_t pids[2];

	pids[0] = duo_fork(serve_beside, r);
	pids[1] = getpid();
	open_client(&c, false);
	result = measure(&c, pids, 2);
	end_process(pids[0]);
	return result;
}

static struct result measure_routed(struct run *r)
{
	struct client c = { .run = r };
	struct result result;
	pid_t router, server;

	router = duo_fork(route, r);
	server = duo_fork(serve_far, r);
	pin_to(server, sysconf(_SC_NPROCESSORS_ONLN) - 1);
	open_client(&c, true);
	result = measure(&c, &router, 1);
	end_process(server);
	end_process(router);
	return result;
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t v = strtoull(text, &end, 10);

	if (*end || !v || v > UINT32_MAX)
		must(-EINVAL, text);
	return v;
}

int main(int argc, char **argv)
{
	struct run r = { .port = duo_free_port() };
	struct result direct, routed;

	if (argc != 4) {
		fprintf(stderr, "usage: route SIZE DEPTH MS\n");
		return 2;
	}
	r.size = (uint32_t)number(argv[1]);
	r.depth = number(argv[2]);
	r.ns = number(argv[3]) * 1000000;
	direct = measure_direct(&r);
	routed = measure_routed(&r);
	printf("direct-ns %.0f\nrouter-ns %.0f\n", direct.ns, routed.ns);
	printf("direct-rate %.0f\nrouter-rate %.0f\n", direct.rate,
	       routed.rate);
	return 0;
}
