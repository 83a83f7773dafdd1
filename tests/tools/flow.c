/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service with streams, and a client of it, both with control sockets:
 *
 *	flow serve NID PORT SOCKET
 *	flow call NID PORT SOCKET SERVER
 *
 * Methods of the service "flow": "hold" sends a message, and is open until its
 * client ends it; "fill" sends as many messages as its client allows without
 * reading any, and ends.
 *
 * Either says "ready". Then the client does what its input says, line by line,
 * and answers each with a line:
 *
 *	hold	opens a stream of this kind, which stays: "held"
 *	fill	opens one, and reads it: "filled N", with the number of messages
 *	send	sends a message over the stream that was held last: "sent"
 *	put	gives that stream back, which ends it: "put"
 *	wait	waits until it has ended: "ended: CAUSE"
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ulnet/control.h"
#include "ulnet/stream.h"

#define HELD_MAX 8

static struct lnet_control *control;

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

static struct ulrpc *node_open(char **argv)
{
	struct ulnet_control_conf conf = { .path = argv[2] };
	struct ulnet_conf node_conf;
	struct lnet *node;
	struct ulrpc *rpc;

	lnet_conf_init(&node_conf);
	node_conf.nids = argv[0];
	node_conf.port = (uint16_t)atoi(argv[1]);
	node_conf.accept = LNET_ACCEPT_ALL;
	check(lnet_open(&node_conf, &node), argv[0]);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	check(lnet_control_start(node, &conf, &control), argv[2]);
	check(ulrpc_control(rpc, control), "control");
	return rpc;
}

/* ---- the service ---- */

static void on_held_ended(void *arg, struct ulrpc_stream *stream,
			  const struct ulrpc_stream_outcome *outcome)
{
	(void)arg;
	(void)outcome;
	ulrpc_stream_put(stream);
}

static void serve_hold(void *arg, struct ulrpc_stream *stream, const void *body,
		       size_t length)
{
	const struct ulrpc_stream_events events = { .ended = on_held_ended };

	(void)arg;
	(void)body;
	(void)length;
	check(ulrpc_stream_send(stream, "here", 4), "hold");
	ulrpc_stream_watch(stream, &events);
}

/* Runs on the stream's CPT: meanwhile it cannot hear that messages were read.
 */
static void serve_fill(void *arg, struct ulrpc_stream *stream, const void *body,
		       size_t length)
{
	(void)arg;
	(void)body;
	(void)length;
	while (!ulrpc_stream_send(stream, "x", 1))
		;
	ulrpc_stream_end(stream, 0, NULL);
	ulrpc_stream_put(stream);
}

static void serve(struct ulrpc *rpc)
{
	const struct ulrpc_stream_method methods[] = {
		{ "hold", serve_hold, .run = ULRPC_RUN_INLINE },
		{ "fill", serve_fill, .run = ULRPC_RUN_INLINE },
	};
	struct ulrpc_stream_service_conf conf;
	struct ulrpc_stream_service *service;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "flow";
	conf.methods = methods;
	conf.nmethods = 2;
	check(ulrpc_stream_serve(rpc, &conf, &service), "service");
	say("ready");
	for (;;)
		pause();
}

/* ---- the client ---- */

static struct ulrpc_stream *held[HELD_MAX];
static unsigned int nheld;

static struct ulrpc_stream *stream_open(struct ulrpc_streams *streams,
					const char *method)
{
	const struct ulrpc_stream_conf conf = { .deadline = ULRPC_NEVER };
	struct ulrpc_stream *stream;

	check(ulrpc_stream_open(streams, method, NULL, 0, &conf, &stream),
	      method);
	return stream;
}

static void hold(struct ulrpc_streams *streams)
{
	const void *body;
	size_t length;

	if (nheld == HELD_MAX)
		errx(1, "hold: too many");
	held[nheld] = stream_open(streams, "hold");
	if (ulrpc_stream_next_wait(held[nheld++], &body, &length) != 1)
		errx(1, "hold: no message");
	say("held");
}

static void fill(struct ulrpc_streams *streams)
{
	struct ulrpc_stream *stream = stream_open(streams, "fill");
	const void *body;
	unsigned int n = 0;
	size_t length;
	int rc;

	while ((rc = ulrpc_stream_next_wait(stream, &body, &length)) == 1)
		n++;
	check(rc, "fill");
	ulrpc_stream_put(stream);
	printf("filled %u\n", n);
	fflush(stdout);
}

/* What is done with the stream that was held last. */
static void with_held(const char *what)
{
	struct ulrpc_stream_outcome outcome;

	if (!nheld)
		errx(1, "%s: there is no stream", what);
	if (!strcmp(what, "send")) {
		check(ulrpc_stream_send(held[nheld - 1], "x", 1), "send");
		say("sent");
	} else if (!strcmp(what, "put")) {
		ulrpc_stream_put(held[--nheld]);
		say("put");
	} else if (!strcmp(what, "wait")) {
		check(ulrpc_stream_outcome_wait(held[nheld - 1], &outcome),
		      "wait");
		printf("ended: %s\n", ulrpc_cause_name(outcome.cause));
		fflush(stdout);
	} else {
		errx(1, "what is '%s'?", what);
	}
}

static void call(struct ulrpc *rpc, const char *server)
{
	struct ulrpc_streams_conf conf;
	struct ulrpc_streams *streams;
	char line[64];

	ulrpc_streams_conf_init(&conf);
	conf.client.target = server;
	conf.client.service = "flow";
	check(ulrpc_streams_open(rpc, &conf, &streams), server);
	say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "hold"))
			hold(streams);
		else if (!strcmp(line, "fill"))
			fill(streams);
		else
			with_held(line);
	}
	while (nheld)
		ulrpc_stream_put(held[--nheld]);
	lnet_control_stop(control);
	lnet_close(ulrpc_node(rpc)); /* and the streams, and RPC */
}

int main(int argc, char *argv[])
{
	if (argc == 5 && !strcmp(argv[1], "serve"))
		serve(node_open(argv + 2));
	else if (argc == 6 && !strcmp(argv[1], "call"))
		call(node_open(argv + 2), argv[5]);
	else
		errx(2, "usage: flow serve NID PORT SOCKET | "
			"call NID PORT SOCKET SERVER");
	return 0;
}
