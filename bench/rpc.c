/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RPC over TCP: calls of raw bytes, answered inline; for bulk, the bytes are
 * moved by the server. bench/load.h tells the command line and what is printed.
 * "rpc --flavours" prints the names of all flavours.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/load.h"
#include "ulnet/keys.h"
#include "ulnet/rpc.h"
#include "ulnet/service.h"

#define DEADLINE (60 * UINT64_C(1000000)) /* us */

/* A slot for each request under way, with its bulk. */
struct slot {
	struct peer *peer;
	size_t index;
	unsigned char *memory;
	struct ulrpc_bulk *bulk;
};

/* Server: a request and its transfer. */
struct job {
	struct peer *peer;
	struct ulrpc_request *request;
	unsigned char *memory;
	struct job *next;
};

struct peer {
	struct load load;
	uint16_t port;
	bool bulk_read, bulk_write;
	struct lnet *node;
	struct ulrpc_client *client;
	struct slot *slots;
	struct job *jobs; /* free ones */
};

/* ---- keys ---- */

static enum ulrpc_flavour flavour_of(const struct peer *p)
{
	enum ulrpc_flavour f = ULRPC_FLAVOUR_DEFAULT;

	if (!p->load.flavour)
		return f;
	while (strcmp(ulrpc_flavour_name(f), p->load.flavour) != 0)
		if (!strcmp(ulrpc_flavour_name(f++), "unknown"))
			must(-EINVAL, p->load.flavour);
	return f;
}

static void flavours_print(void)
{
	enum ulrpc_flavour f = ULRPC_FLAVOUR_DEFAULT;

	while (strcmp(ulrpc_flavour_name(++f), "unknown") != 0)
		puts(ulrpc_flavour_name(f));
}

/* NULL: none are asked for. */
static struct ulrpc_keys *keys_load_from(const char *folder)
{
	char crt[256], key[256], authority[256], why[256];
	const struct ulrpc_keys_conf files = { .certificate = crt,
					       .key = key,
					       .authority = authority };
	struct ulrpc_keys *keys;
	int rc;

	if (!folder)
		return NULL;
	snprintf(crt, sizeof(crt), "%s/a.crt", folder);
	snprintf(key, sizeof(key), "%s/a.key", folder);
	snprintf(authority, sizeof(authority), "%s/authority.crt", folder);
	rc = ulrpc_keys_load(&files, &keys, why, sizeof(why));
	must(rc, rc ? why : "");
	return keys;
}

/* The NID of the node that has @address on TCP. */
static struct ulnet_nid nid_of(const struct peer *p, const char *address)
{
	struct ulnet_nid nid;
	char text[64];

	/* The port is free, so nobody else's numbers come from it. */
	if (p->load.shm)
		snprintf(text, sizeof(text), "%u@shm",
			 2u * p->port + !strcmp(address, DUO_SERVER));
	else
		snprintf(text, sizeof(text), "%s@tcp", address);
	must(lnet_nid_parse(text, &nid), text);
	return nid;
}

static struct ulrpc *open_rpc(struct peer *p, const char *address)
{
	struct ulnet_conf conf;
	struct ulnet_ni_conf ni = { 0 };
	struct ulrpc_conf all;
	struct ulrpc *rpc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = p->port;
	conf.accept = LNET_ACCEPT_ALL;
	must(lnet_open(&conf, &p->node), "lnet_open");
	ni.nid = nid_of(p, address);
	must(lnet_ni_add(p->node, &ni), "lnet_ni_add");
	ulrpc_conf_init(&all);
	all.keys = keys_load_from(p->load.keys);
	must(ulrpc_open(p->node, &all, &rpc), "ulrpc_open");
	ulrpc_keys_put(all.keys);
	return rpc;
}

static void turn(struct peer *p)
{
	must(lnet_poll(p->node, p->load.block ? UINT64_MAX : 0), "lnet_poll");
}

/* ---- server ---- */

static struct job *job_get(struct peer *p)
{
	struct job *job = p->jobs;

	if (job) {
		p->jobs = job->next;
		return job;
	}
	job = calloc(1, sizeof(*job));
	if (job && !posix_memalign((void **)&job->memory, 4096,
				   p->load.request_size + p->load.reply_size)) {
		job->peer = p;
		return job;
	}
	must(-ENOMEM, "job");
	return NULL;
}

static void job_end(void *arg, int status, uint64_t moved)
{
	struct job *job = arg;
	struct peer *p = job->peer;

	(void)moved;
	must(status, "bulk");
	if (p->bulk_write) {
		const void *reply =
			load_serve(&p->load, job->memory, p->load.request_size);

		ulrpc_reply(job->request, reply, p->load.reply_size);
	} else {
		ulrpc_reply(job->request, NULL, 0);
	}
	job->next = p->jobs;
	p->jobs = job;
}

static void on_request(void *arg, struct ulrpc_request *request,
		       const void *body, size_t length)
{
	struct peer *p = arg;
	struct job *job;
	struct iovec iov;

	if (!p->bulk_read && !p->bulk_write) {
		ulrpc_reply(request, load_serve(&p->load, body, length),
			    p->load.reply_size);
		return;
	}
	job = job_get(p);
	job->request = request;
	if (p->bulk_write) {
		iov = (struct iovec){ job->memory, p->load.request_size };
		must(ulrpc_bulk_get(request, 0, 0, &iov, 1, job_end, job),
		     "ulrpc_bulk_get");
		return;
	}
	iov = (struct iovec){ load_serve(&p->load, body, length),
			      p->load.reply_size };
	must(ulrpc_bulk_put(request, 0, 0, &iov, 1, job_end, job),
	     "ulrpc_bulk_put");
}

static void server(void *arg, int ready)
{
	struct peer *p = arg;
	struct ulrpc *rpc = open_rpc(p, DUO_SERVER);
	struct ulrpc_method_conf method = {
		.name = "load",
		.handler = on_request,
		.arg = p,
		.run = ULRPC_RUN_INLINE,
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "bench";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.flavour = flavour_of(p);
	must(ulrpc_service_start(rpc, &conf, &service), "ulrpc_service_start");
	duo_ready(ready);
	for (;;)
		turn(p);
}

/* ---- client ---- */

static void on_reply(void *arg, const struct ulrpc_outcome *outcome,
		     const void *reply, size_t length);

static void call(struct slot *s)
{
	struct peer *p = s->peer;
	unsigned char *request = load_request(&p->load, s->index);
	struct ulrpc_call_conf conf = {
		.deadline = DEADLINE,
		.reply_max = p->bulk_read ? 0 : (uint32_t)p->load.reply_size,
	};
	struct ulrpc_bulk_conf bulk = { .access = ULRPC_BULK_SOURCE };
	struct iovec iov;
	size_t size = p->load.request_size;

	if (p->bulk_read || p->bulk_write) {
		conf.bulks = &s->bulk;
		conf.nbulks = 1;
	}
	/* The load chooses where its bytes are; for writes, they are the bulk.
	 */
	if (p->bulk_write) {
		iov = (struct iovec){ request, size };
		bulk.iov = &iov;
		bulk.niov = 1;
		must(ulrpc_bulk_new(ulrpc_client_rpc(p->client), &bulk,
				    &s->bulk),
		     "ulrpc_bulk_new");
		size = 0;
	}
	must(ulrpc_call(p->client, ulrpc_method("load"), request, size, &conf,
			on_reply, s, NULL),
	     "ulrpc_call");
}

static void on_reply(void *arg, const struct ulrpc_outcome *outcome,
		     const void *reply, size_t length)
{
	struct slot *s = arg;
	struct peer *p = s->peer;
	long next;

	if (outcome->status)
		must(outcome->status, ulrpc_cause_name(outcome->cause));
	if (p->bulk_write) {
		ulrpc_bulk_close(s->bulk, NULL, NULL);
		s->bulk = NULL;
	}
	if (p->bulk_read)
		next = load_replied(&p->load, s->memory, p->load.reply_size);
	else
		next = load_replied(&p->load, reply, length);
	if (next < 0)
		return;
	/* the memory of a slot moves on to the next request */
	p->slots[next].memory = s->memory;
	p->slots[next].bulk = s->bulk;
	call(&p->slots[next]);
}

static void slots_make(struct peer *p, struct ulrpc *rpc)
{
	p->slots = calloc(LOAD_DEPTH_MAX, sizeof(*p->slots));
	if (!p->slots)
		must(-ENOMEM, "slots");
	for (size_t i = 0; i < p->load.depth; i++) {
		struct slot *s = &p->slots[i];
		struct ulrpc_bulk_conf conf = { .access = ULRPC_BULK_SINK };
		struct iovec iov;

		s->peer = p;
		s->index = i;
		if (!p->bulk_read)
			continue;
		if (posix_memalign((void **)&s->memory, 4096,
				   p->load.reply_size))
			must(-ENOMEM, "slots");
		iov = (struct iovec){ s->memory, p->load.reply_size };
		conf.iov = &iov;
		conf.niov = 1;
		must(ulrpc_bulk_new(rpc, &conf, &s->bulk), "ulrpc_bulk_new");
	}
}

static void client(struct peer *p)
{
	struct ulrpc *rpc = open_rpc(p, DUO_CLIENT);
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid = nid_of(p, DUO_SERVER);

	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "bench";
	conf.flavour = flavour_of(p);
	must(ulrpc_client_open(rpc, &conf, &p->client), "ulrpc_client_open");
	slots_make(p, rpc);
	for (size_t i = 0; i < p->load.depth; i++)
		call(&p->slots[i]);
	while (p->load.under_way)
		turn(p);
}

int main(int argc, char **argv)
{
	struct peer p = { 0 };

	if (argc == 2 && !strcmp(argv[1], "--flavours")) {
		flavours_print();
		return 0;
	}
	load_args(&p.load, argc, argv);
	p.bulk_read = p.load.reply_size > p.load.request_size;
	p.bulk_write = p.load.reply_size < p.load.request_size;
	p.port = (uint16_t)duo_free_port();
	load_fork(&p.load, server, &p);
	client(&p);
	load_end(&p.load);
	return 0;
}
