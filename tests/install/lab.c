/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A user's test of a service, built with what is installed, and with
 * libulnetlab instead of libulnet: a call over a simulated network. libulrpc,
 * which is linked with libulnet, runs on the laboratory's nodes.
 */
#include <stdio.h>
#include <string.h>
#include <ulnet/service.h>
#include <ulnet/sim.h>

static struct ulrpc_client *client;

static void on_echo(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	(void)arg;
	ulrpc_reply(r, body, length);
}

static int server_start(void *arg, unsigned int index, struct lnet *node)
{
	static const struct ulrpc_method_conf method = {
		.name = "echo", .handler = on_echo, .run = ULRPC_RUN_INLINE
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;
	struct ulrpc *rpc;
	int rc = ulrpc_open(node, NULL, &rpc);

	(void)arg;
	(void)index;
	if (rc)
		return rc;
	ulrpc_service_conf_init(&conf);
	conf.name = "echo";
	conf.methods = &method;
	conf.nmethods = 1;
	return ulrpc_service_start(rpc, &conf, &service);
}

static int client_start(void *arg, unsigned int index, struct lnet *node)
{
	struct ulnet_nid server;
	struct ulrpc_client_conf conf;
	struct ulrpc *rpc;
	int rc = ulrpc_open(node, NULL, &rpc);

	(void)arg;
	(void)index;
	if (rc || lnet_nid_parse("10.0.0.1@tcp", &server))
		return rc ? rc : -1;
	ulrpc_client_conf_init(&conf);
	conf.service = "echo";
	conf.nids = &server;
	conf.nnids = 1;
	return ulrpc_client_open(rpc, &conf, &client);
}

static void on_end(void *arg, const struct ulrpc_outcome *o, const void *reply,
		   size_t length)
{
	printf("%s\n", ulrpc_cause_name(o->cause));
	*(int *)arg = o->cause == ULRPC_CAUSE_OK && length == 5 &&
		      !memcmp(reply, "hello", 5);
}

static void call(void *arg)
{
	const struct ulrpc_call_conf conf = { .deadline = 5000000 };
	int rc = ulrpc_call(client, ulrpc_method("echo"), "hello", 5, &conf,
			    on_end, arg, NULL);

	if (rc)
		printf("ulrpc_call: %s\n", strerror(-rc));
}

int main(void)
{
	struct lnet_sim *sim;
	int good = 0, rc = lnet_sim_new(1, 1, &sim);

	if (rc) {
		printf("lnet_sim_new: %s\n", strerror(-rc));
		return 2;
	}
	if (lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, server_start, NULL) <
		    0 ||
	    lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, client_start, NULL) <
		    0 ||
	    lnet_sim_at(sim, 0, call, &good))
		return 1;
	lnet_sim_run(sim, UINT64_C(10000000000));
	return lnet_sim_free(sim) || !good;
}
