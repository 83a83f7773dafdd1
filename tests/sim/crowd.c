/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many nodes of two rails meet one server at the same moment: each sends it a
 * message, and is acknowledged. Then once more, one after the other, when the
 * server has restarted and knows none of them: what it keeps of each is what
 * the process has allocated since, as the others know the server already, and
 * messages pass one at a time.
 *
 *	crowd [--long]
 *
 * 1,000 nodes, or 10,000.
 */
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/sim.h>

#include "lnd/simlnd/net.h"

#define MSEC   UINT64_C(1000000)
#define SEC    (1000 * MSEC)
#define RAILS  2
#define PORTAL 4
#define BITS   1
/* Of a PUT, us: long enough for all of them. */
#define TIMEOUT UINT64_C(20000000)

struct crowd {
	struct lnet_sim *sim;
	bool discovery;
	unsigned int n;		/* nodes; the server is node n */
	unsigned int good, bad; /* PUTs that have ended */
	uint64_t last;		/* ns: when the last one has */
	char memory[4096];
};

static int passed, failed;

static void must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "crowd: %s: %s\n", what, strerror(-rc));
	exit(1);
}

static void expect(bool right, const char *what, uint64_t is)
{
	printf("%s %s: %lu\n", right ? "PASS" : "FAIL", what,
	       (unsigned long)is);
	right ? passed++ : failed++;
}

static struct ulnet_nid nid_of(unsigned int node, unsigned int rail)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, rail),
			     0x0a000001 + (rail << 16) + node);
}

/* ---- the server ---- */

static int serve(void *arg, unsigned int index, struct lnet *node)
{
	struct crowd *c = arg;
	struct ulnet_id anybody = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_md md = { .start = c->memory,
			       .length = sizeof(c->memory),
			       .threshold = LNET_MD_THRESH_INF,
			       .options =
				       LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE };
	struct ulnet_me_handle me;
	struct ulnet_md_handle handle;

	(void)index;
	must(LNetMEAttach(node, PORTAL, anybody, BITS, 0, LNET_UNLINK,
			  LNET_INS_AFTER, &me),
	     "an entry");
	must(LNetMDAttach(me, &md, LNET_UNLINK, &handle), "its memory");
	return 0;
}

/* ---- the others ---- */

static void on_event(const struct ulnet_event *ev)
{
	struct crowd *c = ev->user_ptr;

	if (!ev->terminal)
		return;
	ev->outcome == LNET_OUTCOME_DELIVERED ? c->good++ : c->bad++;
	c->last = lnet_sim_now(c->sim);
}

static void greet(struct crowd *c, unsigned int i)
{
	static char word[64];
	struct ulnet_id server = { nid_of(c->n, 0), LNET_PID_LUSTRE };
	struct ulnet_md md = { .start = word,
			       .length = sizeof(word),
			       .threshold = 2,
			       .timeout = TIMEOUT,
			       .user_ptr = c,
			       .handler = on_event };
	struct ulnet_md_handle handle;

	must(LNetMDBind(lnet_sim_node(c->sim, i), &md, LNET_UNLINK, &handle),
	     "memory");
	must(LNetPut(LNET_NID_ANY, handle, LNET_ACK_REQ, server, PORTAL, BITS,
		     0, 0),
	     "a PUT");
}

static void node_add(struct crowd *c, unsigned int i, lnet_sim_start_fn start)
{
	char text[RAILS * LNET_NIDSTR_SIZE], *p = text;
	struct ulnet_conf conf;

	for (unsigned int rail = 0; rail < RAILS; rail++) {
		struct ulnet_nid nid = nid_of(i, rail);
		char one[LNET_NIDSTR_SIZE];

		lnet_nid_format(&nid, one, sizeof(one));
		p += sprintf(p, "%s ", one);
	}
	lnet_conf_init(&conf);
	conf.discovery = c->discovery ? LNET_DISCOVERY_ON : LNET_DISCOVERY_OFF;
	must(lnet_sim_node_add(c->sim, text, &conf, start, c), "a node");
}

static struct crowd *crowd_new(unsigned int n, bool discovery)
{
	const struct ulnet_sim_link link = { .latency = MSEC / 2,
					     .connect = MSEC };
	const struct ulnet_nid any = LNET_NID_ANY;
	struct crowd *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->n = n;
	c->discovery = discovery;
	must(lnet_sim_new(1, 1, &c->sim), "the simulation");
	must(lnet_sim_link_set(c->sim, &any, &any, &link), "the links");
	for (unsigned int i = 0; i < n; i++)
		node_add(c, i, NULL);
	node_add(c, n, serve);
	return c;
}

/* ---- what is measured ---- */

static uint64_t messages(const struct crowd *c)
{
	struct ulnet_ni_info info;
	uint64_t sum = 0;

	for (unsigned int i = 1; i <= RAILS; i++) {
		must(lnet_ni_info(lnet_sim_node(c->sim, c->n), i, &info),
		     "an interface");
		sum += info.recv_count;
	}
	return sum;
}

static uint64_t allocated(void)
{
	return mallinfo2().uordblks;
}

/* @pause: ns from one to the next. */
static void meet(struct crowd *c, uint64_t pause)
{
	uint64_t began = lnet_sim_now(c->sim), before = messages(c), sent;
	int known;

	c->good = c->bad = 0;
	for (unsigned int i = 0; i < c->n; i++) {
		greet(c, i);
		if (pause)
			lnet_sim_run(c->sim, pause);
	}
	lnet_sim_run_all(c->sim);
	printf(pause ? "one after the other:\n" : "at once:\n");
	expect(c->good == c->n, "nodes that were heard", c->good);
	expect(c->last - began <= c->n * pause + SEC, "us that it took",
	       (c->last - began) / 1000);
	/* With discovery a question, what the node tells of itself, and that it
	 * has heard what the server has told. Whoever is heard by both NIDs
	 * before it is its turn to be asked may tell, and be told, once more
	 * for the other one. */
	sent = messages(c) - before;
	expect(sent >= c->n * (c->discovery ? 4 : 1) &&
		       sent <= c->n * (c->discovery ? 8 : 1),
	       "messages to the server", sent);
	known = lnet_peers(lnet_sim_node(c->sim, c->n), NULL, 0);
	expect(known == (int)(c->n * (c->discovery ? RAILS : 1)),
	       "NIs that the server knows", (uint64_t)known);
}

static void crowd_free(struct crowd *c)
{
	unsigned int violations = lnet_sim_free(c->sim);

	expect(!violations, "violations", violations);
	free(c);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 && !strcmp(argv[1], "--long") ? 10000 : 1000;
	struct crowd *c;
	uint64_t before, bytes;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--long") != 0)) {
		fprintf(stderr, "usage: crowd [--long]\n");
		return 2;
	}
	printf("with discovery, ");
	c = crowd_new(n, true);
	meet(c, 0);
	crowd_free(c);
	c = crowd_new(n, false);
	meet(c, 0);
	must(lnet_sim_crash(c->sim, n), "the crash");
	must(lnet_sim_restart(c->sim, n), "the restart");
	lnet_sim_run_all(c->sim);
	before = allocated();
	meet(c, 10 * MSEC);
	/* The simulated network's are not LNet's. */
	bytes = (allocated() - before) / n - sizeof(struct sim_path);
	expect(bytes > 0 && bytes <= 1024, "bytes for each of them", bytes);
	crowd_free(c);
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
