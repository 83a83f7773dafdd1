/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a build with --enable-pgo is trained with: calls and bulk between two
 * nodes over loopback TCP and shared memory, and of a node to itself. The nodes
 * take turns in one thread, and the clock is the program's own, so that each
 * run does nearly the same. What it does not do, such as TLS and waiting, is
 * compiled as without a profile.
 *
 *	train			trains
 *	train DEPTH CALLS	makes CALLS calls of 64 bytes over TCP, DEPTH of
 *				them under way, to count their instructions
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "bench/duo.h"
#include "bench/node.h"

#define DEADLINE (600 * UINT64_C(1000000)) /* us */
#define TICK	 UINT64_C(1000)		   /* ns: see clock_gettime() */
#define SMALL	 64
#define MIDDLE	 4000
#define LARGE	 (UINT64_C(1) << 20)

struct pair {
	struct lnet *client_node, *server_node; /* may be the same */
	struct ulrpc *rpc;
	struct ulrpc_client *client;
};

/* Calls of one kind. */
struct load {
	struct pair *pair;
	size_t size; /* of the body, both ways */
	enum { NO_BULK, BULK_GET, BULK_PUT } bulk;
	unsigned long to_begin, under_way;
};

static unsigned char memory[LARGE];

/* In place of libc's, for libev too: the clock moves on when it is read. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static uint64_t now = UINT64_C(1000000000000);

	(void)clock;
	now += TICK;
	ts->tv_sec = (time_t)(now / 1000000000);
	ts->tv_nsec = (long)(now % 1000000000);
	return 0;
}

/* ---- the service ---- */

static void on_moved(void *arg, int status, uint64_t moved)
{
	(void)moved;
	must(status, "bulk");
	ulrpc_reply(arg, NULL, 0);
}

/* The first byte of a request says what is to be done with its bulk. */
static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	static struct iovec iov = { memory, LARGE };
	const unsigned char *what = body;

	(void)arg;
	if (*what == BULK_GET)
		must(ulrpc_bulk_get(request, 0, 0, &iov, 1, on_moved, request),
		     "ulrpc_bulk_get");
	else if (*what == BULK_PUT)
		must(ulrpc_bulk_put(request, 0, 0, &iov, 1, on_moved, request),
		     "ulrpc_bulk_put");
	else
		ulrpc_reply(request, body, length);
}

/* ---- calls ---- */

static void call(struct load *l);

/* The memory is this program's for ever. */
static void on_released(void *arg)
{
	(void)arg;
}

static void on_reply(void *arg, const struct ulrpc_outcome *outcome,
		     const void *reply, size_t length)
{
	struct load *l = arg;

	(void)reply;
	if (outcome->status || length != (l->bulk ? 0 : l->size))
		must(-EIO, ulrpc_cause_name(outcome->cause));
	l->under_way--;
	if (l->to_begin)
		call(l);
}

static void call(struct load *l)
{
	static unsigned char body[MIDDLE], room[LARGE];
	struct iovec iov = { room, LARGE };
	struct ulrpc_bulk_conf bulk_conf = {
		.access = l->bulk == BULK_GET ? ULRPC_BULK_SOURCE
					      : ULRPC_BULK_SINK,
		.iov = &iov,
		.niov = 1,
	};
	struct ulrpc_call_conf conf = { .deadline = DEADLINE,
					.reply_max = (uint32_t)l->size };
	struct ulrpc_bulk *bulk = NULL;

	if (l->bulk) {
		must(ulrpc_bulk_new(l->pair->rpc, &bulk_conf, &bulk),
		     "ulrpc_bulk_new");
		conf.bulks = &bulk;
		conf.nbulks = 1;
	}
	body[0] = (unsigned char)l->bulk;
	l->to_begin--;
	l->under_way++;
	must(ulrpc_call(l->pair->client, ulrpc_method("load"), body, l->size,
			&conf, on_reply, l, NULL),
	     "ulrpc_call");
	/* Closed when the call, which uses it, has ended. */
	if (bulk)
		ulrpc_bulk_close(bulk, on_released, NULL);
}

static void make_calls(struct load l, unsigned long n, unsigned long depth)
{
	l.to_begin = n;
	while (l.to_begin && l.under_way < depth)
		call(&l);
	while (l.under_way) {
		must(lnet_poll(l.pair->client_node, 0), "lnet_poll");
		must(lnet_poll(l.pair->server_node, 0), "lnet_poll");
	}
}

static void train(struct pair *p)
{
	const struct load small = { .pair = p, .size = SMALL };
	const struct load middle = { .pair = p, .size = MIDDLE };
	const struct load get = { .pair = p, .size = 1, .bulk = BULK_GET };
	const struct load put = { .pair = p, .size = 1, .bulk = BULK_PUT };

	make_calls(small, 20000, 1);
	make_calls(small, 40000, 8);
	make_calls(small, 100000, 64);
	make_calls(middle, 10000, 1);
	make_calls(middle, 20000, 16);
	make_calls(get, 100, 1);
	make_calls(get, 200, 4);
	make_calls(put, 100, 1);
	make_calls(put, 200, 4);
}

/* What is counted. */
struct counted {
	unsigned long depth, calls;
};

static void count(struct pair *p, const struct counted *c)
{
	make_calls((struct load){ .pair = p, .size = SMALL }, c->calls,
		   c->depth);
}

/* ---- nodes ---- */

/* @c: NULL: trains. */
static void between(const char *client, const char *server,
		    const struct counted *c)
{
	uint16_t port = duo_free_port();
	struct pair p;

	bench_serve(bench_node(server, port, &p.server_node), on_request, NULL);
	p.rpc = bench_node(client, port, &p.client_node);
	p.client = bench_client(p.rpc, server);
	if (c)
		count(&p, c);
	else
		train(&p);
	lnet_close(p.client_node);
	lnet_close(p.server_node);
}

static void alone(void)
{
	struct pair p;

	p.rpc = bench_node(DUO_CLIENT "@tcp", duo_free_port(), &p.client_node);
	p.server_node = p.client_node;
	bench_serve(p.rpc, on_request, NULL);
	p.client = bench_client(p.rpc, "0@lo");
	train(&p);
	lnet_close(p.client_node);
}

int main(int argc, char **argv)
{
	/* The port is free, so nobody else's numbers come from it. */
	unsigned int number = 2u * duo_free_port();
	char client[32], server[32];
	struct counted c;

	if (argc == 3) {
		c.depth = strtoul(argv[1], NULL, 10);
		c.calls = strtoul(argv[2], NULL, 10);
		between(DUO_CLIENT "@tcp", DUO_SERVER "@tcp", &c);
		return 0;
	}
	between(DUO_CLIENT "@tcp", DUO_SERVER "@tcp", NULL);
	snprintf(client, sizeof(client), "%u@shm", number);
	snprintf(server, sizeof(server), "%u@shm", number + 1);
	between(client, server, NULL);
	alone();
	return 0;
}
