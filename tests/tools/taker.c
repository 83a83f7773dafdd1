/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service of four workers, each of which moves bulk of a call for as long as
 * that goes well, and a client that makes such calls:
 *
 *	taker serve NID PORT
 *	taker call NID PORT SERVER CALLS
 *
 * The service is named echo, for rpcping, whose calls of RawWorker it answers.
 * It says "take" when it begins with a call, and "end" with the status when
 * that has ended. A client is only forgotten when it is known to be gone: a
 * lease is three hours. The client cancels all calls at SIGUSR1.
 */
#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ulnet/service.h"

#define WORKERS 4
#define BYTES	(1 << 20)
#define HOUR	UINT64_C(3600000000) /* us */
#define PAUSE	5000		     /* us */

static struct ulrpc *open_node(const char *nid, const char *port,
			       enum ulnet_accept accept)
{
	const struct ulrpc_conf rc = { .keepalive = HOUR };
	struct ulnet_conf conf;
	struct ulrpc *rpc = NULL;
	struct lnet *node;
	int status;

	lnet_conf_init(&conf);
	conf.nids = nid;
	conf.port = (uint16_t)atoi(port);
	conf.accept = accept;
	status = lnet_open(&conf, &node);
	if (!status)
		status = ulrpc_open(node, &rc, &rpc);
	if (status)
		errx(1, "%s: %s", nid, strerror(-status));
	return rpc;
}

/* ---- the service ---- */

static void take(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct iovec iov = { malloc(BYTES), BYTES };
	int rc;

	(void)arg;
	(void)body;
	(void)length;
	fprintf(stderr, "take\n");
	do {
		rc = ulrpc_bulk_get_wait(r, 0, 0, &iov, 1);
		if (!rc)
			rc = ulrpc_request_sleep(r, PAUSE);
	} while (!rc);
	free(iov.iov_base);
	fprintf(stderr, "end %d\n", rc);
	ulrpc_fail(r, rc);
}

static void raw(void *arg, struct ulrpc_request *r, const void *body,
		size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
}

static void serve(char *argv[])
{
	struct ulrpc *rpc = open_node(argv[0], argv[1], LNET_ACCEPT_ALL);
	const struct ulrpc_method_conf methods[] = {
		{ .name = "take", .handler = take },
		{ .name = "RawWorker", .handler = raw },
	};
	struct ulrpc_service_conf conf;
	int rc;

	ulrpc_service_conf_init(&conf);
	conf.name = "echo";
	conf.methods = methods;
	conf.nmethods = 2;
	conf.workers_min = WORKERS;
	rc = ulrpc_service_start(rpc, &conf, NULL);
	if (rc)
		errx(1, "%s", strerror(-rc));
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

/* ---- the client ---- */

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	(void)arg;
	(void)o;
	(void)reply;
	(void)length;
}

static struct ulrpc_call *call(struct ulrpc *rpc, struct ulrpc_client *c)
{
	struct iovec iov = { calloc(1, BYTES), BYTES };
	struct ulrpc_bulk_conf bc = { .iov = &iov,
				      .niov = 1,
				      .access = ULRPC_BULK_SOURCE };
	struct ulrpc_call_conf conf = { .deadline = HOUR, .nbulks = 1 };
	struct ulrpc_bulk *bulk;
	struct ulrpc_call *made = NULL;
	int rc = ulrpc_bulk_new(rpc, &bc, &bulk);

	conf.bulks = &bulk;
	if (!rc)
		rc = ulrpc_call(c, ulrpc_method("take"), NULL, 0, &conf, on_end,
				NULL, &made);
	if (rc)
		errx(1, "call: %s", strerror(-rc));
	return made;
}

static void call_all(char *argv[], const sigset_t *cancel)
{
	struct ulrpc *rpc = open_node(argv[0], argv[1], LNET_ACCEPT_NONE);
	unsigned int n = (unsigned int)atoi(argv[3]);
	struct ulrpc_call **calls = calloc(n, sizeof(struct ulrpc_call *));
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client = NULL;
	struct ulnet_nid server;
	int rc, sig;

	ulrpc_client_conf_init(&conf);
	conf.nids = &server;
	conf.nnids = 1;
	conf.service = "echo";
	conf.inflight_begin = n;
	rc = lnet_nid_parse(argv[2], &server);
	if (!rc)
		rc = ulrpc_client_open(rpc, &conf, &client);
	if (rc)
		errx(1, "%s: %s", argv[2], strerror(-rc));
	for (unsigned int i = 0; i < n; i++)
		calls[i] = call(rpc, client);
	sigwait(cancel, &sig);
	for (unsigned int i = 0; i < n; i++)
		ulrpc_cancel(calls[i]);
	for (;;)
		pause();
}

int main(int argc, char *argv[])
{
	sigset_t cancel;

	/* holds for all threads that are made later */
	sigemptyset(&cancel);
	sigaddset(&cancel, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &cancel, NULL);
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv + 2);
	else if (argc == 6 && !strcmp(argv[1], "call"))
		call_all(argv + 2, &cancel);
	fprintf(stderr, "usage: taker serve NID PORT\n"
			"       taker call NID PORT SERVER CALLS\n");
	return 2;
}
