/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/stream.h>

static void check(int rc, const char *what)
{
	if (rc)
		errx(1, "%s: %s", what, strerror(-rc));
}

static struct ulrpc *open_node(const char *nids, uint16_t port)
{
	struct ulnet_conf_error why = { "" };
	struct ulnet_conf conf = {
		.nids = nids,
		.port = port,
		.accept = nids ? LNET_ACCEPT_ALL : LNET_ACCEPT_NONE,
		.err = &why,
	};
	struct lnet *node;
	struct ulrpc *rpc;

	check(lnet_open(&conf, &node), why.what);
	check(ulrpc_open(node, NULL, &rpc), "RPC");
	return rpc;
}

/* ---- the service ---- */

/* From the service to the client: sends the lines of the file @path. */
static void serve_read(void *path, struct ulrpc_stream *stream,
		       const void *body, size_t length)
{
	FILE *file = fopen(path, "r");
	int rc = file ? 0 : -errno;
	char line[1024];

	(void)body;
	(void)length;
	while (!rc && fgets(line, sizeof(line), file))
		rc = ulrpc_stream_send_wait(stream, line, strlen(line));
	ulrpc_stream_end(stream, rc, file ? NULL : "cannot open the file");
	ulrpc_stream_put(stream);
	if (file)
		fclose(file);
}

/* Both ways: answers each message with what has come so far. */
static void serve_count(void *arg, struct ulrpc_stream *stream,
			const void *body, size_t length)
{
	unsigned int lines = 0;
	size_t bytes = 0;
	char answer[64];
	int rc = 0;

	(void)arg;
	while (!rc && ulrpc_stream_next_wait(stream, &body, &length) == 1) {
		bytes += length;
		snprintf(answer, sizeof(answer), "lines: %u, bytes: %zu\n",
			 ++lines, bytes);
		rc = ulrpc_stream_send_wait(stream, answer, strlen(answer));
	}
	ulrpc_stream_end(stream, rc, NULL);
	ulrpc_stream_put(stream);
}

/* Until its input ends. */
static void serve(uint16_t port, char *path)
{
	const struct ulrpc_stream_method methods[] = {
		{ .name = "read", .handler = serve_read, .arg = path },
		{ .name = "count", .handler = serve_count },
	};
	struct ulrpc *rpc = open_node("127.0.0.1@tcp", port);
	struct ulrpc_stream_service_conf conf;
	struct ulrpc_stream_service *service;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "lines";
	conf.methods = methods;
	conf.nmethods = 2;
	check(ulrpc_stream_serve(rpc, &conf, &service), "service");
	warnx("ready; the end of input ends it");
	while (getchar() != EOF)
		;
	lnet_close(ulrpc_node(rpc)); /* and the service, and RPC */
}

/* ---- the client ---- */

/* Prints the next message. Returns false if no more will come. */
static bool print_next(struct ulrpc_stream *stream)
{
	const void *message;
	size_t length;

	if (ulrpc_stream_next_wait(stream, &message, &length) != 1)
		return false;
	return fwrite(message, 1, length, stdout) == length;
}

/* Sends each line of the input, and prints the answer to it. */
static void send_lines(struct ulrpc_stream *stream)
{
	char line[1024];

	while (fgets(line, sizeof(line), stdin))
		if (ulrpc_stream_send_wait(stream, line, strlen(line)) ||
		    !print_next(stream))
			break;
}

static void call(const char *target, const char *method)
{
	struct ulrpc_stream_conf limits = { .deadline = 60000000 /* us */ };
	struct ulrpc *rpc = open_node(NULL, 0);
	struct ulrpc_streams_conf conf;
	struct ulrpc_stream_outcome end;
	struct ulrpc_streams *streams;
	struct ulrpc_stream *stream;

	ulrpc_streams_conf_init(&conf);
	conf.client.target = target;
	conf.client.service = "lines";
	conf.client.wait_for_ready = ULRPC_WAIT_NOT; /* if it is not there */
	check(ulrpc_streams_open(rpc, &conf, &streams), target);
	check(ulrpc_stream_open(streams, method, NULL, 0, &limits, &stream),
	      method);
	if (!strcmp(method, "count"))
		send_lines(stream);
	ulrpc_stream_close_send(stream);
	while (print_next(stream))
		;
	check(ulrpc_stream_outcome_wait(stream, &end), "stream");
	if (end.cause != ULRPC_CAUSE_OK)
		errx(1, "%s: %s", ulrpc_cause_name(end.cause),
		     *end.text ? end.text : strerror(-end.status));
	ulrpc_stream_put(stream);
	lnet_close(ulrpc_node(rpc)); /* and the streams, and RPC */
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve((uint16_t)strtoul(argv[2], NULL, 10), argv[3]);
	else if (argc == 3)
		call(argv[2], argv[1]);
	else
		errx(2, "usage: serve PORT FILE | read TARGET | count TARGET");
	return 0;
}
