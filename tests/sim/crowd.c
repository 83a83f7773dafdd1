/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many nodes with two rails meet one server at the same moment: each sends it a
 * PUT, and waits for the ACK. Meanwhile the server discovers only so many peers
 * at a time, and must answer a "friend", a node that it knows already, as
 * quickly as ever.
 *
 * Then the server restarts and knows nobody, and the nodes send again, one
 * after the other. The nodes know the server already, so whatever the process
 * allocates from then on is what the server keeps of its peers.
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
#include "lnet/discovery/session.h"
#include "lnet/discovery/discovery.h"
#include "lnet/node/node.h"

#define MSEC   UINT64_C(1000000)
#define SEC    (1000 * MSEC)
#define RAILS  2
#define PORTAL 4
#define BITS   1
/* deadline of a PUT, us: long enough for all of them */
#define TIMEOUT UINT64_C(20000000)
/* ns: twice a round trip */
#define FRIEND_WAITS (2 * MSEC)
#define LOOKS	     (MSEC / 10) /* between two inspections of the server */

/* The PUTs of one kind of sender. */
struct greetings {
	struct crowd *crowd;
	/* PUTs that have succeeded, and that have failed */
	unsigned int good, bad;
	uint64_t last; /* ns: when the last one ended */
};

struct crowd {
	struct lnet_sim *sim;
	bool discovery;
	unsigned int n; /* nodes; the server is node n, and the friend n + 1 */
	struct greetings of_all, of_friend;
	/* The most that was seen at any inspection: peers that the server was
	 * asking at the same time, discoveries that it had; and the longest
	 * time that the friend has waited, ns. */
	uint64_t turns, discoveries, waited;
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

/* ---- the nodes that meet the server ---- */

static void on_event(const struct ulnet_event *ev)
{
	struct greetings *g = ev->user_ptr;

	if (!ev->terminal)
		return;
	ev->outcome == LNET_OUTCOME_DELIVERED ? g->good++ : g->bad++;
	g->last = lnet_sim_now(g->crowd->sim);
}

static void greet(struct crowd *c, unsigned int i, struct greetings *g)
{
	static char word[64];
	struct ulnet_id server = { nid_of(c->n, 0), LNET_PID_LUSTRE };
	struct ulnet_md md = { .start = word,
			       .length = sizeof(word),
			       .threshold = 2,
			       .timeout = TIMEOUT,
			       .user_ptr = g,
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
	c->of_all.crowd = c->of_friend.crowd = c;
	must(lnet_sim_new(1, 1, &c->sim), "the simulation");
	must(lnet_sim_link_set(c->sim, &any, &any, &link), "the links");
	for (unsigned int i = 0; i < n; i++)
		node_add(c, i, NULL);
	node_add(c, n, serve);
	node_add(c, n + 1, NULL);
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

static uint64_t discoveries(const struct disc_cpt *dc)
{
	const struct discovery *d;
	uint64_t n = 0;

	list_for_each_entry (d, &dc->all, all)
		n++;
	return n;
}

static const struct disc_cpt *server_disc(const struct crowd *c)
{
	const struct lnet *server = lnet_sim_node(c->sim, c->n);

	return disc_cpt(server->cpt[0]);
}

static void look(struct crowd *c)
{
	const struct disc_cpt *dc = server_disc(c);

	c->turns = MAX(c->turns, dc->turns);
	c->discoveries = MAX(c->discoveries, discoveries(dc));
}

static void befriend(struct crowd *c)
{
	greet(c, c->n + 1, &c->of_friend);
	lnet_sim_run_all(c->sim);
}

/* Lets the friend send again as soon as the server has answered, until all n
 * nodes have met the server. */
static void watch(struct crowd *c)
{
	while (c->of_all.good + c->of_all.bad < c->n) {
		uint64_t began = lnet_sim_now(c->sim);
		unsigned int before = c->of_friend.good;

		greet(c, c->n + 1, &c->of_friend);
		while (c->of_friend.good == before && !c->of_friend.bad) {
			lnet_sim_run(c->sim, LOOKS);
			look(c);
		}
		c->waited = MAX(c->waited, c->of_friend.last - began);
	}
}

static void watched(const struct crowd *c)
{
	expect(!c->of_friend.bad, "PUTs of the friend that failed",
	       c->of_friend.bad);
	expect(c->waited <= FRIEND_WAITS, "us that the friend waited at most",
	       c->waited / 1000);
	if (!c->discovery)
		return;
	expect(c->turns > 0 && c->turns <= DISC_TURNS_MAX,
	       "peers that the server asked at a time", c->turns);
	expect(c->discoveries <= c->n, "discoveries that it had at a time",
	       c->discoveries);
	expect(!discoveries(server_disc(c)), "discoveries that are left",
	       discoveries(server_disc(c)));
}

/* Lets each node but the friend send its PUT: one every @pause ns, or, if that
 * is 0, all at once. */
static void meet(struct crowd *c, uint64_t pause)
{
	uint64_t began = lnet_sim_now(c->sim), before = messages(c), sent;
	unsigned int friends = c->of_friend.good;
	int known;

	c->of_all.good = c->of_all.bad = 0;
	for (unsigned int i = 0; i < c->n; i++) {
		greet(c, i, &c->of_all);
		if (pause)
			lnet_sim_run(c->sim, pause);
	}
	if (!pause)
		watch(c);
	lnet_sim_run_all(c->sim);
	printf(pause ? "one after the other:\n" : "at once:\n");
	expect(c->of_all.good == c->n, "nodes that were heard", c->of_all.good);
	expect(c->of_all.last - began <= c->n * pause + SEC, "us that it took",
	       (c->of_all.last - began) / 1000);
	/* A discovery takes a ping and its REPLY, and a push and its ACK. A
	 * node that the server has heard by both NIDs before it is asked may
	 * push, and be pushed to, once more for the second NID. */
	sent = messages(c) - before - (c->of_friend.good - friends);
	expect(sent >= c->n * (c->discovery ? 4 : 1) &&
		       sent <= c->n * (c->discovery ? 8 : 1),
	       "messages to the server", sent);
	known = lnet_peers(lnet_sim_node(c->sim, c->n), NULL, 0);
	friends = c->of_friend.good > friends;
	expect(known == (int)((c->n + friends) * (c->discovery ? RAILS : 1)),
	       "NIs that the server knows", (uint64_t)known);
	if (!pause)
		watched(c);
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
	befriend(c);
	meet(c, 0);
	crowd_free(c);
	c = crowd_new(n, false);
	befriend(c);
	meet(c, 0);
	must(lnet_sim_crash(c->sim, n), "the crash");
	must(lnet_sim_restart(c->sim, n), "the restart");
	lnet_sim_run_all(c->sim);
	before = allocated();
	meet(c, 10 * MSEC);
	/* The simulated network's own memory is not LNet's. */
	bytes = (allocated() - before) / n - sizeof(struct sim_path);
	expect(bytes > 0 && bytes <= 1024, "bytes for each of them", bytes);
	crowd_free(c);
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}
