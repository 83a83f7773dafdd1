/* SPDX-License-Identifier: BSD-3-Clause */
/* What RPC on a node counts, in the text format of Prometheus: what a program
 * with services adds to metrics_print(). Manual: ulnet_metrics(7). */
#ifndef TOOLS_RPC_METRICS_H
#define TOOLS_RPC_METRICS_H

#include <stdio.h>

/* A metrics_more_fn; @rpc is a struct ulrpc. */
int rpc_metrics_print(void *rpc, FILE *out);

#endif
