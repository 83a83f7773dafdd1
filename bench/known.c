/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What peers cost that are known, but have no connection. N nodes on TCP, each
 * with an address of its own, discover a server node, and it discovers them:
 * FLOCK nodes at a time, which are closed then. Afterwards the server has
 * nothing to do.
 *
 *	known N SECONDS
 *
 * prints lines of a name and a number: what the server has for each of the
 * nodes, and how much processor time it takes in each of SECONDS seconds.
 */
#include <ev.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ulnet/lnet.h>

#include "bench/duo.h"

#define FLOCK	250		      /* nodes that are open at a time */
#define SETTLE	UINT64_C(500000000)   /* ns */
#define GIVE_UP UINT64_C(60000000000) /* ns, for connections to end */
#define MOST	UINT32_C(100000)      /* N at most: default of peers_max */

/* Shared by both processes. */
struct page {
	atomic_bool met; /* all nodes have met the server, and are closed */
	uint32_t known;
	struct duo_memory used; /* what the server uses for all nodes */
	uint64_t cpu;		/* ns: processor time of the idle server */
};

struct known {
	uint32_t n;
	unsigned int seconds;
	uint16_t port;
	struct page *page;
	/* nodes of the flock that have not discovered the server yet */
	unsigned int left;
	struct ev_loop *loop;
};

static struct lnet *open_node(struct known *k, const char *nid)
{
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = k->loop ? LNET_RUN_EV : LNET_RUN_POLL;
	conf.ev = k->loop;
	conf.nids = nid;
	conf.port = k->port;
	conf.accept = LNET_ACCEPT_ALL;
	must(lnet_open(&conf, &node), nid);
	return node;
}

/* ---- the server ---- */

static void run_for(struct lnet *node, uint64_t ns)
{
	uint64_t until = duo_now() + ns, now;

	while ((now = duo_now()) < until)
		must(lnet_poll(node, (until - now) / 1000), "lnet_poll");
}

static uint64_t processor_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void server(void *arg, int ready)
{
	struct known *k = arg;
	struct page *page = k->page;
	struct lnet *node = open_node(k, DUO_SERVER "@tcp");
	struct duo_memory before;
	uint64_t begin;
	size_t files;

	run_for(node, SETTLE);
	files = duo_files() - 1; /* the pipe does not count */
	before = duo_memory();
	duo_ready(ready);
	while (!page->met)
		must(lnet_poll(node, 1000), "lnet_poll");
	begin = duo_now();
	while (duo_files() > files && duo_now() - begin < GIVE_UP)
		run_for(node, SETTLE / 10);
	run_for(node, SETTLE);
	page->known = (uint32_t)lnet_peers(node, NULL, 0);
	page->used = duo_memory_since(&before);
	begin = processor_time();
	run_for(node, k->seconds * UINT64_C(1000000000));
	page->cpu = processor_time() - begin;
	lnet_close(node);
}

/* ---- the nodes that become known ---- */

static void on_discovered(void *arg, int status)
{
	struct known *k = arg;

	must(status, "lnet_discover");
	if (!--k->left)
		ev_break(k->loop, EVBREAK_ALL);
}

static uint64_t stat_of(struct lnet *node, const char *name)
{
	struct ulnet_stat stats[256];
	int n = lnet_stats(node, stats, 256);

	for (int i = 0; i < n; i++)
		if (!strcmp(stats[i].name, name))
			return stats[i].value;
	give_up(-ENOENT, name);
}

/* Opens nodes @from to @from + @n - 1, and waits until they and the server have
 * discovered each other. */
static void flock(struct known *k, uint32_t from, unsigned int n)
{
	struct lnet *nodes[FLOCK];
	struct ulnet_nid to;
	char nid[64];

	must(lnet_nid_parse(DUO_SERVER "@tcp", &to), "NID");
	k->left = n;
	for (unsigned int i = 0; i < n; i++) {
		uint32_t at = from + i;

		snprintf(nid, sizeof(nid), "127.%u.%u.%u@tcp", 1 + at / 62500,
			 at / 250 % 250, 1 + at % 250);
		nodes[i] = open_node(k, nid);
		must(lnet_discover(nodes[i], &to, 0, on_discovered, k),
		     "lnet_discover");
	}
	while (k->left)
		ev_run(k->loop, 0);
	/* the server pushes to each of them, too */
	for (unsigned int i = 0; i < n; i++)
		while (!stat_of(nodes[i], "pushes"))
			ev_run(k->loop, EVRUN_ONCE);
	for (unsigned int i = 0; i < n; i++)
		lnet_close(nodes[i]);
}

static void meet(struct known *k)
{
	/* without this timer ev_run() would return: nodes do not keep the loop
	 * alive */
	ev_timer alive;

	k->loop = ev_loop_new(EVFLAG_AUTO);
	ev_timer_init(&alive, NULL, 1e6, 0);
	ev_timer_start(k->loop, &alive);
	for (uint32_t i = 0; i < k->n; i += FLOCK)
		flock(k, i, k->n - i < FLOCK ? k->n - i : FLOCK);
	ev_timer_stop(k->loop, &alive);
	ev_loop_destroy(k->loop);
	k->page->met = true;
}

int main(int argc, char **argv)
{
	struct known k = { 0 };
	pid_t child;

	if (argc == 3) {
		k.n = (uint32_t)strtoul(argv[1], NULL, 10);
		k.seconds = (unsigned int)strtoul(argv[2], NULL, 10);
	}
	if (!k.n || k.n > MOST || !k.seconds) {
		fprintf(stderr, "usage: known N SECONDS (N up to %u)\n", MOST);
		return 2;
	}
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	k.page = duo_shared(sizeof(*k.page));
	duo_more_files();
	k.port = duo_free_port();
	child = duo_fork(server, &k);
	meet(&k);
	duo_wait(child);
	if (k.page->known != k.n)
		give_up(-EPROTO, "not all are known");
	printf("allocated %zu\nresident %zu\ncpu %.3f\n",
	       k.page->used.allocated / k.n, k.page->used.resident / k.n,
	       (double)k.page->cpu / 1e3 / k.seconds);
	return 0;
}
