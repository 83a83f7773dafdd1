/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream over TCP: messages of one stream, which the service sends back;
 * beside bench/rpc, whose calls carry the same. bench/load.h tells the command
 * line and what is printed; there is no bulk, and there are no keys.
 */
#include <errno.h>
#include <stdlib.h>
#include "bench/load.h"
#include "bench/node.h"
#include "ulnet/stream.h"

/* beyond any depth that is measured */
#define WINDOW	 4096u
#define MESSAGES (WINDOW * 1024u) /* bytes of them */

struct peer {
	struct load load;
	uint16_t port;
	struct lnet *node;
	struct ulrpc_stream *stream;
};

static struct ulrpc *open_rpc(struct peer *p, const char *address)
{
	struct ulnet_conf conf;
	struct ulnet_ni_conf ni = { 0 };
	struct ulrpc *rpc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	conf.port = p->port;
	conf.accept = LNET_ACCEPT_ALL;
	must(lnet_open(&conf, &p->node), "lnet_open");
	must(lnet_nid_parse(address, &ni.nid), address);
	must(lnet_ni_add(p->node, &ni), "lnet_ni_add");
	must(ulrpc_open(p->node, NULL, &rpc), "ulrpc_open");
	return rpc;
}

static void turn(struct peer *p)
{
	must(lnet_poll(p->node, p->load.block ? UINT64_MAX : 0), "lnet_poll");
}

/* ---- server ---- */

static void on_requests(void *arg, struct ulrpc_stream *stream)
{
	struct peer *p = arg;
	const void *body;
	size_t length;

	while (ulrpc_stream_next(stream, &body, &length) == 1)
		must(ulrpc_stream_send(stream,
				       load_serve(&p->load, body, length),
				       p->load.reply_size),
		     "ulrpc_stream_send");
}

static void on_stream(void *arg, struct ulrpc_stream *stream, const void *body,
		      size_t length)
{
	const struct ulrpc_stream_events events = { .readable = on_requests,
						    .arg = arg };

	(void)body;
	(void)length;
	ulrpc_stream_watch(stream, &events);
}

static void server(void *arg, int ready)
{
	struct peer *p = arg;
	struct ulrpc *rpc = open_rpc(p, DUO_SERVER "@tcp");

	bench_serve_streams(rpc, on_stream, p, WINDOW, MESSAGES);
	duo_ready(ready);
	for (;;)
		turn(p);
}

/* ---- client ---- */

static void request(struct peer *p, size_t slot)
{
	must(ulrpc_stream_send(p->stream, load_request(&p->load, slot),
			       p->load.request_size),
	     "ulrpc_stream_send");
}

static void on_replies(void *arg, struct ulrpc_stream *stream)
{
	struct peer *p = arg;
	const void *body;
	size_t length;
	long next;

	while (ulrpc_stream_next(stream, &body, &length) == 1) {
		next = load_replied(&p->load, body, length);
		if (next >= 0)
			request(p, (size_t)next);
	}
}

static void on_open(void *arg, struct ulrpc_stream *stream)
{
	struct peer *p = arg;

	(void)stream;
	for (size_t i = 0; i < p->load.depth; i++)
		request(p, i);
}

static void on_end(void *arg, struct ulrpc_stream *stream,
		   const struct ulrpc_stream_outcome *outcome)
{
	(void)arg;
	(void)stream;
	must(outcome->status ? outcome->status : -EPIPE,
	     ulrpc_cause_name(outcome->cause));
}

static void client(struct peer *p)
{
	struct ulrpc *rpc = open_rpc(p, DUO_CLIENT "@tcp");
	const struct ulrpc_stream_conf limits = {
		.deadline = ULRPC_NEVER,
		.events = { on_replies, on_open, on_end, p },
	};
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;
	struct ulnet_nid nid;

	must(lnet_nid_parse(DUO_SERVER "@tcp", &nid), DUO_SERVER);
	ulrpc_streams_conf_init(&conf);
	conf.client.nids = &nid;
	conf.client.nnids = 1;
	conf.client.service = "bench";
	conf.window_messages = WINDOW;
	conf.window_bytes = MESSAGES;
	must(ulrpc_streams_open(rpc, &conf, &streams), "ulrpc_streams_open");
	must(ulrpc_stream_open(streams, "load", NULL, 0, &limits, &p->stream),
	     "ulrpc_stream_open");
	/* on_open() is called when there is credit after -EAGAIN. */
	if (ulrpc_stream_send(p->stream, NULL, 0) != -EAGAIN)
		must(-EPROTO, "a stream that is open at once");
	do
		turn(p);
	while (p->load.under_way || !p->load.begun);
}

int main(int argc, char **argv)
{
	struct peer p = { 0 };

	load_args(&p.load, argc, argv);
	if (p.load.reply_size != p.load.request_size || p.load.keys ||
	    p.load.flavour || p.load.depth > WINDOW)
		must(-EINVAL, "neither bulk nor keys, and depth up to 4096");
	p.port = (uint16_t)duo_free_port();
	load_fork(&p.load, server, &p);
	client(&p);
	load_end(&p.load);
	return 0;
}
