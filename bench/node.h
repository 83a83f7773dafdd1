/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes with RPC on TCP for measurements, driven by lnet_poll(). */
#ifndef BENCH_NODE_H
#define BENCH_NODE_H

#include <stdint.h>
#include "ulnet/service.h"
#include "ulnet/stream.h"

/* Opens a node with the NID @nid that uses @port, and RPC on it; *@node_p is to
 * be closed by lnet_close(). The process ends with a message if that fails. */
struct ulrpc *bench_node(const char *nid, uint16_t port, struct lnet **node_p);

/* As bench_node(), on a libev loop of the caller, which many nodes may share.
 */
struct ev_loop;
struct ulrpc *bench_node_on(struct ev_loop *loop, const char *nid,
			    uint16_t port, struct lnet **node_p);
/* The same, with a configuration of RPC; NULL: the defaults. */
struct ulrpc *bench_node_with(struct ev_loop *loop, const char *nid,
			      uint16_t port, const struct ulrpc_conf *conf,
			      struct lnet **node_p);

/* Adds a service "bench" with one method "load", which @handler serves in the
 * loop. */
void bench_serve(struct ulrpc *rpc, ulrpc_handler_fn handler, void *arg);

/* The same with streams, of which each may have up to @messages messages of
 * @bytes bytes together on their way. */
void bench_serve_streams(struct ulrpc *rpc, ulrpc_stream_fn handler, void *arg,
			 uint32_t messages, uint32_t bytes);

/* Opens a client of the service of bench_serve() at @nid. */
struct ulrpc_client *bench_client(struct ulrpc *rpc, const char *nid);

#endif
