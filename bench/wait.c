/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call alone: a thread waits in ulrpc_call_wait() for 64 bytes that go to
 * another process and come back. bench/tcp.sh calls it, and bench/raw_shm for
 * what two processes need to wake up each other.
 *
 *	wait NET RUN MS
 *
 * prints the median of the time of a call, us. NET: tcp or shm. RUN: how the
 * caller's node runs, while the server's always has threads:
 *	threads	the node's own thread makes the turns, and wakes the caller
 *	shared	the caller makes the turns: LNET_RUN_SHARED
 *	poll	the caller makes the turns, and nobody else would
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/duo.h"
#include "ulnet/lnet.h"
#include "ulnet/rpc.h"
#include "ulnet/service.h"

#define SIZE	 64
#define DEADLINE (60 * UINT64_C(1000000)) /* us */

struct side {
	bool over_shm;
	uint16_t port;
	uint64_t ns; /* how long to measure */
	enum ulnet_run run;
	struct ulrpc *rpc;
};

/* NIDs in shared memory are unique on this host, as ports are. */
static struct ulnet_nid nid_of(const struct side *s, bool server)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;

	if (s->over_shm)
		snprintf(text, sizeof(text), "%u@shm", 2u * s->port + server);
	else
		snprintf(text, sizeof(text), "%s@tcp",
			 server ? DUO_SERVER : DUO_CLIENT);
	must(lnet_nid_parse(text, &nid), text);
	return nid;
}

static void side_open(struct side *s, bool server)
{
	struct ulnet_ni_conf ni = { .nid = nid_of(s, server) };
	struct ulnet_conf conf;
	struct lnet *node;

	lnet_conf_init(&conf);
	conf.run = server ? LNET_RUN_THREADS : s->run;
	conf.port = s->port;
	conf.accept = LNET_ACCEPT_ALL;
	must(lnet_open(&conf, &node), "lnet_open");
	must(lnet_ni_add(node, &ni), "lnet_ni_add");
	must(ulrpc_open(node, NULL, &s->rpc), "ulrpc_open");
}

static void on_echo(void *arg, struct ulrpc_request *request, const void *body,
		    size_t length)
{
	(void)arg;
	ulrpc_reply(request, body, length);
}

static void server(void *arg, int ready)
{
	struct ulrpc_method_conf method = { .name = "echo",
					    .handler = on_echo,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	struct side *s = arg;

	side_open(s, true);
	ulrpc_service_conf_init(&conf);
	conf.name = "wait";
	conf.methods = &method;
	conf.nmethods = 1;
	must(ulrpc_service_start(s->rpc, &conf, &service), "service");
	duo_ready(ready);
	for (;;) /* the parent ends this process */
		pause();
}

static struct ulrpc_client *client_open(struct side *s)
{
	struct ulnet_nid nid = nid_of(s, true);
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;

	side_open(s, false);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "wait";
	must(ulrpc_client_open(s->rpc, &conf, &client), "ulrpc_client_open");
	return client;
}

static void call(struct ulrpc_client *client, uint64_t n)
{
	struct ulrpc_call_conf conf = { .deadline = DEADLINE };
	unsigned char out[SIZE], in[SIZE] = { 0 };
	struct ulrpc_outcome outcome;
	size_t length = 0;

	memset(out, (int)(n % 256), sizeof(out));
	must(ulrpc_call_wait(client, ulrpc_method("echo"), out, sizeof(out),
			     &conf, in, sizeof(in), &length, &outcome),
	     "ulrpc_call_wait");
	must(outcome.status, ulrpc_cause_name(outcome.cause));
	must(length == SIZE && !memcmp(in, out, SIZE) ? 0 : -EBADMSG, "echo");
}

static double measure(struct side *s)
{
	struct duo_times *times = duo_buffer(sizeof(*times));
	struct ulrpc_client *client = client_open(s);
	uint64_t begin, now, n = 0;
	double v;

	call(client, 0);
	begin = now = duo_now();
	while (now - begin < DUO_WARM_NS + s->ns) {
		uint64_t before = now;

		call(client, ++n);
		now = duo_now();
		if (now - begin > DUO_WARM_NS)
			duo_times_add(times, now - before);
	}
	v = duo_times_median(times);
	free(times);
	return v;
}

static bool parse(struct side *s, char **argv)
{
	static const char *const nets[] = { "tcp", "shm" };
	static const struct {
		const char *name;
		enum ulnet_run run;
	} runs[] = { { "threads", LNET_RUN_THREADS },
		     { "shared", LNET_RUN_SHARED },
		     { "poll", LNET_RUN_POLL } };
	size_t i = 0;

	s->over_shm = !strcmp(argv[1], nets[1]);
	while (i < 3 && strcmp(argv[2], runs[i].name) != 0)
		i++;
	if (i == 3 || (!s->over_shm && strcmp(argv[1], nets[0]) != 0))
		return false;
	s->run = runs[i].run;
	s->ns = strtoull(argv[3], NULL, 0) * 1000000;
	return s->ns > 0;
}

int main(int argc, char **argv)
{
	struct side s = { 0 };

	if (argc != 4 || !parse(&s, argv)) {
		fprintf(stderr, "usage: wait tcp|shm threads|shared|poll MS\n");
		return 2;
	}
	s.port = duo_free_port();
	duo_fork(server, &s);
	printf("%.3f\n", measure(&s));
	return 0;
}
