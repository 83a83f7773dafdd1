/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/node.h"

#include "bench/duo.h"

struct ulrpc *bench_node_with(struct ev_loop *loop, const char *nid,
			      uint16_t port, const struct ulrpc_conf *rpc_conf,
			      struct lnet **node_p)
{
	struct ulnet_conf conf;
	struct ulnet_ni_conf ni = { 0 };
	struct ulrpc *rpc;

	lnet_conf_init(&conf);
	conf.run = loop ? LNET_RUN_EV : LNET_RUN_POLL;
	conf.ev = loop;
	conf.port = port;
	conf.accept = LNET_ACCEPT_ALL;
	must(lnet_open(&conf, node_p), "lnet_open");
	must(lnet_nid_parse(nid, &ni.nid), nid);
	must(lnet_ni_add(*node_p, &ni), "lnet_ni_add");
	must(ulrpc_open(*node_p, rpc_conf, &rpc), "ulrpc_open");
	return rpc;
}

struct ulrpc *bench_node_on(struct ev_loop *loop, const char *nid,
			    uint16_t port, struct lnet **node_p)
{
	return bench_node_with(loop, nid, port, NULL, node_p);
}

struct ulrpc *bench_node(const char *nid, uint16_t port, struct lnet **node_p)
{
	return bench_node_on(NULL, nid, port, node_p);
}

void bench_serve(struct ulrpc *rpc, ulrpc_handler_fn handler, void *arg)
{
	struct ulrpc_method_conf method = {
		.name = "load",
		.handler = handler,
		.arg = arg,
		.run = ULRPC_RUN_INLINE,
	};
	struct ulrpc_service_conf conf;
	struct ulrpc_service *service;

	ulrpc_service_conf_init(&conf);
	conf.name = "bench";
	conf.methods = &method;
	conf.nmethods = 1;
	must(ulrpc_service_start(rpc, &conf, &service), "ulrpc_service_start");
}

void bench_serve_streams(struct ulrpc *rpc, ulrpc_stream_fn handler, void *arg,
			 uint32_t messages, uint32_t bytes)
{
	const struct ulrpc_stream_method method = {
		.name = "load",
		.handler = handler,
		.arg = arg,
		.run = ULRPC_RUN_INLINE,
	};
	struct ulrpc_stream_service_conf conf;

	ulrpc_stream_service_conf_init(&conf);
	conf.service.name = "bench";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.window_messages = messages;
	conf.window_bytes = bytes;
	must(ulrpc_stream_serve(rpc, &conf, NULL), "ulrpc_stream_serve");
}

struct ulrpc_client *bench_client(struct ulrpc *rpc, const char *nid)
{
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;
	struct ulnet_nid to;

	must(lnet_nid_parse(nid, &to), nid);
	ulrpc_client_conf_init(&conf);
	conf.nids = &to;
	conf.nnids = 1;
	conf.service = "bench";
	must(ulrpc_client_open(rpc, &conf, &client), "ulrpc_client_open");
	return client;
}
