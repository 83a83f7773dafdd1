/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/replicas.h>
#include <ulnet/service.h>

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

static void greet(void *arg, struct ulrpc_request *request, const void *body,
		  size_t length)
{
	(void)arg, (void)body, (void)length;
	ulrpc_reply(request, "hello", 5);
}

/* Until its input ends. */
static void serve(const char *nid, uint16_t port)
{
	const struct ulrpc_method_conf method = {
		.name = "greet",
		.handler = greet,
		.semantics = ULRPC_IDEMPOTENT,
	};
	struct ulrpc *rpc = open_node(nid, port);
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "several";
	conf.methods = &method;
	conf.nmethods = 1;
	check(ulrpc_service_start(rpc, &conf, &service), "service");
	warnx("ready; the end of input ends it");
	while (getchar() != EOF)
		;
	lnet_close(ulrpc_node(rpc)); /* and the service, and RPC */
}

/* Calls one of the servers that @target stands for. */
static void call(const char *target, const char *key)
{
	struct ulrpc *rpc = open_node(NULL, 0);
	struct ulrpc_replicas_conf conf;
	struct ulrpc_replicas_call_conf how;
	struct ulrpc_replicas *servers;
	struct ulrpc_replicas_outcome o;
	char reply[64], nid[LNET_NIDSTR_SIZE];
	size_t length;

	ulrpc_replicas_conf_init(&conf);
	conf.client.target = target;
	conf.client.service = "several";
	conf.client.wait_for_ready = ULRPC_WAIT_NOT; /* if none is there */
	conf.choice = ULRPC_CHOOSE_FIRST;
	check(ulrpc_replicas_open(rpc, &conf, &servers), target);

	ulrpc_replicas_call_conf_init(&how);
	how.call.deadline = 60 * 1000000;
	how.call.semantics = ULRPC_IDEMPOTENT;
	how.key = key;
	how.key_length = key ? strlen(key) : 0;
	check(ulrpc_replicas_call_wait(servers, ulrpc_method("greet"), NULL, 0,
				       &how, reply, sizeof(reply), &length, &o),
	      "call");
	lnet_text_clean(o.call.text); /* it is the service's */
	if (o.call.cause != ULRPC_CAUSE_OK)
		errx(1, "%s, %s: %s", ulrpc_cause_name(o.call.cause),
		     ulrpc_execution_name(o.call.execution), o.call.text);
	printf("%s: %.*s, after %u others\n",
	       lnet_nid_format(&o.server, nid, sizeof(nid)), (int)length, reply,
	       o.moves);
	ulrpc_replicas_close(servers);
	lnet_close(ulrpc_node(rpc));
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], (uint16_t)strtoul(argv[3], NULL, 10));
	else if ((argc == 3 || argc == 4) && !strcmp(argv[1], "call"))
		call(argv[2], argv[3]);
	else
		errx(2, "usage: serve NID PORT | call TARGET [KEY]");
	return 0;
}
