/* SPDX-License-Identifier: BSD-3-Clause */
/* What RPC on a node counts, in the text format of Prometheus. Manual:
 * ulnet_metrics(7). */
#ifndef RPC_STATS_METRICS_H
#define RPC_STATS_METRICS_H

struct ulrpc;

/* The output of the request "rpc metrics": a mapping, whose text it is; to be
 * freed. 0, -ENOMEM, or what ulrpc_counters() says. */
int rpc_metrics(struct ulrpc *rpc, char **yaml_p);

#endif
