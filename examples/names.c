/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulnet/etcd.h>
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
	check(lnet_etcd_open(node), "etcd"); /* for names etcd:// */
	return rpc;
}

static void greet(void *arg, struct ulrpc_request *request, const void *body,
		  size_t length)
{
	(void)arg, (void)body, (void)length;
	ulrpc_reply(request, "hello", 5);
}

/* Until its input ends. As long, etcd knows the server, if @place is given. */
static void serve(const char *nid, uint16_t port, const char *place)
{
	const struct ulrpc_method_conf method = { .name = "greet",
						  .handler = greet };
	struct ulrpc *rpc = open_node(nid, port);
	struct ulnet_address own = { .port = port, .weight = 1 };
	struct ulnet_etcd_entry *entry = NULL;
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "names";
	conf.methods = &method;
	conf.nmethods = 1;
	check(ulrpc_service_start(rpc, &conf, &service), "service");
	if (place) {
		check(lnet_nid_parse(nid, &own.nid), nid);
		check(lnet_etcd_register(ulrpc_node(rpc), place, &own, 10,
					 &entry, NULL),
		      place);
		check(lnet_etcd_wait(entry, 60 * 1000000), place);
	}
	warnx("ready; the end of input ends it");
	while (getchar() != EOF)
		;
	lnet_etcd_withdraw(entry);
	lnet_close(ulrpc_node(rpc)); /* and the service, and RPC */
}

/* Calls the server that @target stands for. */
static void call(const char *target)
{
	const struct ulrpc_call_conf how = { .deadline = 60 * 1000000 };
	struct ulrpc *rpc = open_node(NULL, 0);
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;
	struct ulrpc_outcome o;
	char reply[64], nid[LNET_NIDSTR_SIZE];
	size_t length;

	ulrpc_client_conf_init(&conf);
	conf.target = target;
	conf.service = "names";
	conf.wait_for_ready = ULRPC_WAIT_NOT; /* if there is no such name */
	check(ulrpc_client_open(rpc, &conf, &client), target);
	check(ulrpc_call_wait(client, ulrpc_method("greet"), NULL, 0, &how,
			      reply, sizeof(reply), &length, &o),
	      "call");
	lnet_text_clean(o.text); /* it is the service's */
	if (o.cause != ULRPC_CAUSE_OK)
		errx(1, "%s: %s", ulrpc_cause_name(o.cause), o.text);
	printf("%s: %.*s\n", lnet_nid_format(&o.target, nid, sizeof(nid)),
	       (int)length, reply);
	ulrpc_client_close(client);
	lnet_close(ulrpc_node(rpc));
}

/* Prints what @target stands for, without calling anybody. */
static void look_up(const char *target)
{
	struct ulrpc *rpc = open_node(NULL, 0);
	struct ulnet_name_answer *found;
	char nid[LNET_NIDSTR_SIZE];

	check(lnet_name_lookup_wait(ulrpc_node(rpc), target, 60 * 1000000,
				    &found, NULL),
	      target);
	for (unsigned int i = 0; i < found->n; i++)
		printf("%s, port %u, priority %u, weight %u\n",
		       lnet_nid_format(&found->addresses[i].nid, nid,
				       sizeof(nid)),
		       found->addresses[i].port, found->addresses[i].priority,
		       found->addresses[i].weight);
	if (found->status)
		errx(1, "%s: %s", target, found->why);
	free(found);
	lnet_close(ulrpc_node(rpc));
}

int main(int argc, char **argv)
{
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "serve"))
		serve(argv[2], (uint16_t)strtoul(argv[3], NULL, 10), argv[4]);
	else if (argc == 3 && !strcmp(argv[1], "call"))
		call(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "look"))
		look_up(argv[2]);
	else
		errx(2, "usage: serve NID PORT [etcd://HOST:PORT/PREFIX] | "
			"call TARGET | look TARGET");
	return 0;
}
