/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What peers cost that are connected and idle: one server node, and a client
 * node with N interfaces on N addresses, which to the server are N peers; each
 * sends one PUT with ACK. bench/tcp.sh calls it.
 *
 *	tcp_peers N
 *
 * prints lines of a name and a number: how long it took until the last one had
 * its ACK and all connections stood, and what the server has for each peer.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ulnet/lnet.h>

#include "bench/duo.h"

#define PORTAL	10
#define BITS	UINT64_C(0x62656e6368)
#define TYPES	1	 /* connections of a peer with small messages */
#define TIMEOUT 50000000 /* us, of each PUT */
#define IDLE_NS UINT64_C(200000000)
#define GIVE_UP UINT64_C(10000000000) /* ns, for all connections */

/* Shared by both processes. */
struct page {
	atomic_bool acked; /* the client has all ACKs */
	atomic_bool measured;
	uint64_t connected; /* ns: when all connections were open */
	size_t connections;
	struct duo_memory used; /* what the server uses for all peers */
};

struct peers {
	unsigned int n;
	uint16_t port;
	struct page *page;
	struct lnet *node;
	unsigned int acked;
	char byte[8];
};

/* ---- what is used ---- */

/* Returns the bytes in socket buffers of all TCP sockets here. */
static double kernel_memory(void)
{
	FILE *f = fopen("/proc/net/sockstat", "r");
	unsigned long pages = 0;
	char line[256];

	if (!f) {
		must(-ENOENT, "/proc/net/sockstat");
		return 0;
	}
	while (fgets(line, sizeof(line), f)) {
		const char *mem = strstr(line, " mem ");

		if (!strncmp(line, "TCP:", 4) && mem)
			pages = strtoul(mem + 5, NULL, 10);
	}
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* ---- both ---- */

static void open_node(struct peers *p)
{
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = p->port;
	conf.accept_backlog = 4096;
	conf.accept_max = 4096;
	conf.interfaces_max = 40000;
	must(lnet_open(&conf, &p->node), "lnet_open");
}

static struct ulnet_nid add_ni(struct peers *p, const char *address)
{
	struct ulnet_ni_conf ni = { 0 };
	char nid[64];

	snprintf(nid, sizeof(nid), "%s@tcp", address);
	must(lnet_nid_parse(nid, &ni.nid), nid);
	must(lnet_ni_add(p->node, &ni), nid);
	return ni.nid;
}

static void on_event(const struct ulnet_event *ev)
{
	struct peers *p = ev->user_ptr;

	if (ev->status) {
		fprintf(stderr, "tcp_peers: %s: %s (%s)\n",
			lnet_event_name(ev->type), strerror(-ev->status),
			lnet_cause_name(ev->cause));
		exit(1);
	}
	p->acked += ev->terminal;
}

/* ---- server ---- */

static void attach(struct peers *p)
{
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_me_handle me;
	struct ulnet_md_handle h;
	struct ulnet_md md = { .start = p->byte,
			       .length = sizeof(p->byte),
			       .threshold = LNET_MD_THRESH_INF,
			       .options =
				       LNET_MD_OP_PUT | LNET_MD_MANAGE_REMOTE,
			       .user_ptr = p,
			       .handler = on_event };

	must(LNetMEAttach(p->node, PORTAL, any, BITS, 0, LNET_RETAIN,
			  LNET_INS_AFTER, &me),
	     "LNetMEAttach");
	must(LNetMDAttach(me, &md, LNET_RETAIN, &h), "LNetMDAttach");
}

/* Polls the node for @ns. */
static void run_for(struct peers *p, uint64_t ns)
{
	for (uint64_t begin = duo_now(); duo_now() - begin < ns;)
		must(lnet_poll(p->node, 1000), "lnet_poll");
}

static void server(void *arg, int ready)
{
	struct peers *p = arg;
	struct page *page = p->page;
	struct duo_memory before;
	size_t files;

	open_node(p);
	add_ni(p, DUO_SERVER);
	attach(p);
	run_for(p, 10000000);
	files = duo_files() - 1; /* the pipe does not count */
	before = duo_memory();
	duo_ready(ready);
	while (!page->acked)
		must(lnet_poll(p->node, 1000), "lnet_poll");
	page->connected = duo_now();
	while ((page->connections = duo_files() - files) < p->n * TYPES &&
	       duo_now() - page->connected < GIVE_UP)
		run_for(p, 1000000);
	page->connected = duo_now();
	run_for(p, IDLE_NS);
	page->used = duo_memory_since(&before);
	page->measured = true;
	/* the client closes first: if we did, it would take that for a failure
	 */
	for (uint64_t begin = duo_now(); duo_files() > files;) {
		run_for(p, 10000000);
		if (duo_now() - begin > GIVE_UP)
			break;
	}
	lnet_close(p->node);
}

/* ---- client ---- */

static void client(struct peers *p, struct ulnet_nid *nids)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	struct ulnet_md_handle h;
	struct ulnet_md md = { .start = p->byte,
			       .length = sizeof(p->byte),
			       .threshold = LNET_MD_THRESH_INF,
			       .user_ptr = p,
			       .handler = on_event,
			       .timeout = TIMEOUT };

	must(lnet_nid_parse(DUO_SERVER "@tcp", &to.nid), "NID");
	must(LNetMDBind(p->node, &md, LNET_RETAIN, &h), "LNetMDBind");
	for (unsigned int i = 0; i < p->n; i++)
		must(LNetPut(nids[i], h, LNET_ACK_REQ, to, PORTAL, BITS, 0, 0),
		     "LNetPut");
	while (p->acked < p->n)
		must(lnet_poll(p->node, 1000), "lnet_poll");
	p->page->acked = true;
	while (!p->page->measured)
		must(lnet_poll(p->node, 1000), "lnet_poll");
}

static struct ulnet_nid *add_nis(struct peers *p)
{
	struct ulnet_nid *nids = duo_buffer(p->n * sizeof(*nids));
	char address[32];

	for (unsigned int i = 0; i < p->n; i++) {
		snprintf(address, sizeof(address), "127.1.%u.%u", i / 250,
			 i % 250 + 1);
		nids[i] = add_ni(p, address);
	}
	return nids;
}

static void print(const struct peers *p, const char *name, double v)
{
	printf("%s %.1f\n", name, v / p->n);
}

int main(int argc, char **argv)
{
	struct peers p = { .n = argc == 2 ? (unsigned int)atoi(argv[1]) : 0 };
	struct ulnet_nid *nids;
	struct duo_memory before;
	double kernel;
	uint64_t begin;
	pid_t child;

	if (!p.n || p.n > 10000) {
		fprintf(stderr, "usage: tcp_peers N (up to 10000)\n");
		return 2;
	}
	p.page = duo_shared(sizeof(*p.page));
	duo_more_files();
	p.port = duo_free_port();
	child = duo_fork(server, &p);
	open_node(&p);
	nids = add_nis(&p);
	run_for(&p, 10000000);
	before = duo_memory();
	kernel = kernel_memory();
	begin = duo_now();
	client(&p, nids);
	printf("setup-ms %.1f\n", (double)(p.page->connected - begin) / 1e6);
	print(&p, "connections", (double)p.page->connections);
	print(&p, "server-allocated", (double)p.page->used.allocated);
	print(&p, "server-resident", (double)p.page->used.resident);
	print(&p, "client-allocated",
	      (double)(duo_memory().allocated - before.allocated));
	print(&p, "kernel-buffers", kernel_memory() - kernel);
	lnet_close(p.node);
	duo_wait(child);
	free(nids);
	return 0;
}
