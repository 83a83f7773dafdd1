/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients cost their server in memory, with keys and without: N clients,
 * each a node with an address of its own, over TCP on the loopback interface.
 *
 *	proven N DIR
 *
 * DIR is a folder with authority.crt, a.crt and a.key, or "none". Every client
 * makes CALLS calls, a few clients at a time. Prints the bytes from malloc()
 * that the server has then for each client: "bytes B". The difference between
 * the two is what keys take, of a client that is active.
 */
#include <errno.h>
#include <ev.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/duo.h"
#include "bench/node.h"
#include "ulnet/keys.h"

#define CALLS 8	 /* of each client */
#define FLOCK 50 /* clients that call at a time */
#define MOST  3000
/* us: no client falls silent meanwhile, and has its slots for calls freed */
#define KEEPALIVE UINT64_C(300000000)
#define SETTLE	  UINT64_C(200000) /* us, for what the last calls leave */

struct page { /* shared by both processes */
	atomic_bool served, seen;
	size_t bytes;
};

struct client {
	struct proven *p;
	unsigned int calls;
	struct ulrpc_client *service;
};

struct proven {
	unsigned int n, left;
	uint16_t port;
	struct page *page;
	struct ulrpc_conf conf;
	struct ev_loop *loop;
	struct client *clients;
};

static struct ulrpc_keys *keys_of(const char *dir)
{
	char crt[256], key[256], authority[256], why[256];
	const struct ulrpc_keys_conf files = { .certificate = crt,
					       .key = key,
					       .authority = authority };
	struct ulrpc_keys *keys;

	snprintf(crt, sizeof(crt), "%s/a.crt", dir);
	snprintf(key, sizeof(key), "%s/a.key", dir);
	snprintf(authority, sizeof(authority), "%s/authority.crt", dir);
	must(ulrpc_keys_load(&files, &keys, why, sizeof(why)), why);
	return keys;
}

/* ---- the server ---- */

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void run_for(struct lnet *node, uint64_t us)
{
	uint64_t until = duo_now() + us * 1000, now;

	while ((now = duo_now()) < until)
		must(lnet_poll(node, (until - now) / 1000), "lnet_poll");
}

static void server(void *arg, int ready)
{
	struct proven *p = arg;
	struct ulrpc *rpc;
	struct lnet *node;
	struct duo_memory before;

	rpc = bench_node_with(NULL, DUO_SERVER "@tcp", p->port, &p->conf,
			      &node);
	bench_serve(rpc, on_request, NULL);
	run_for(node, SETTLE);
	before = duo_memory();
	duo_ready(ready);
	while (!p->page->served)
		must(lnet_poll(node, 1000), "lnet_poll");
	run_for(node, SETTLE);
	p->page->bytes = duo_memory_since(&before).allocated;
	p->page->seen = true;
	_exit(0);
}

/* ---- the clients ---- */

static void call(struct client *c);

static void on_reply(void *arg, const struct ulrpc_outcome *outcome,
		     const void *reply, size_t length)
{
	struct client *c = arg;

	(void)reply;
	(void)length;
	must(outcome->status, "a call");
	if (++c->calls < CALLS)
		call(c);
	else if (!--c->p->left)
		ev_break(c->p->loop, EVBREAK_ALL);
}

static void call(struct client *c)
{
	static const unsigned char body[64];
	struct ulrpc_call_conf conf = { .deadline = UINT64_C(60000000),
					.reply_max = sizeof(body) };

	must(ulrpc_call(c->service, ulrpc_method("load"), body, sizeof(body),
			&conf, on_reply, c, NULL),
	     "ulrpc_call");
}

/* Clients have loopback addresses from 127.1.0.1 on. */
static void client_open(struct proven *p, unsigned int i)
{
	struct client *c = &p->clients[i];
	struct lnet *node;
	struct ulrpc *rpc;
	char nid[64];

	c->p = p;
	snprintf(nid, sizeof(nid), "127.1.%u.%u@tcp", i / 250, 1 + i % 250);
	rpc = bench_node_with(p->loop, nid, p->port, &p->conf, &node);
	c->service = bench_client(rpc, DUO_SERVER "@tcp");
	call(c);
}

static void clients(struct proven *p)
{
	/* without this timer ev_run() would return: nodes do not keep the loop
	 * alive */
	ev_timer alive;

	p->loop = ev_loop_new(EVFLAG_AUTO);
	ev_timer_init(&alive, NULL, 1e6, 0);
	ev_timer_start(p->loop, &alive);
	for (unsigned int i = 0; i < p->n; i++) {
		p->left++;
		client_open(p, i);
		if (i % FLOCK == FLOCK - 1 || i == p->n - 1)
			ev_run(p->loop, 0);
	}
	p->page->served = true;
	while (!p->page->seen)
		ev_run(p->loop, EVRUN_NOWAIT);
}

int main(int argc, char **argv)
{
	struct proven p = { 0 };
	pid_t child;

	if (argc == 3)
		p.n = (unsigned int)strtoul(argv[1], NULL, 10);
	if (!p.n || p.n > MOST) {
		fprintf(stderr, "usage: proven N DIR (N up to %d)\n", MOST);
		return 2;
	}
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	p.page = duo_shared(sizeof(*p.page));
	p.clients = calloc(p.n, sizeof(*p.clients));
	if (!p.clients)
		must(-ENOMEM, "clients");
	ulrpc_conf_init(&p.conf);
	p.conf.keepalive = KEEPALIVE;
	if (strcmp(argv[2], "none") != 0)
		p.conf.keys = keys_of(argv[2]);
	duo_more_files();
	p.port = duo_free_port();
	child = duo_fork(server, &p);
	clients(&p);
	duo_wait(child);
	printf("bytes %zu\n", p.page->bytes / p.n);
	return 0;
}
