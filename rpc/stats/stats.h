/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of all CPTs together, and names for the numbers in them. Any
 * thread, but none in a turn; reading them holds up a CPT for some of its peers
 * at a time only.
 */
#ifndef RPC_STATS_H
#define RPC_STATS_H

#include "rpc/stats/stat.h"
#include "ulnet/control.h"

/* Commands of RPC are added to a control, which only a program with libulnetctl
 * has. libulrpc is not linked with that library, so that a program that makes
 * calls, and nothing else, loads neither it nor the YAML parser. Nothing of it
 * is called without a control. */
#pragma weak lnet_control_add
#pragma weak lnet_control_del
#pragma weak lnet_control_number
#pragma weak lnet_ctl_quote

extern const struct rpc_part stat_part;

/* The first thing that ulrpc_close() does: takes back what ulrpc_control()
 * gave. Waits for requests that are being carried out. */
void stats_close(struct ulrpc *rpc);

/* The name of a method, or NULL; stays valid as long as @rpc. */
const char *stats_method_name(struct ulrpc *rpc, uint32_t number);

/* ---- among the files of statistics ---- */

/* A copy, as of some moment of the reading. */
struct stat_peer_copy {
	struct ulnet_id id;
	uint64_t counts[STAT_COUNTS_ALL];
	struct hist_small *times; /* NULL: none */
	struct stat_peer_gauges gauges;
};

struct stats_sum {
	struct stat_shard all;			  /* but for its peers: */
	struct stat_peer_copy *peers[STAT_SIDES]; /* by id; may come twice */
	size_t npeers[STAT_SIDES];
	size_t room[STAT_SIDES];
};

/* 0, -ENOMEM, or what lnet_call() says. stats_sum_free() is due if 0. */
int stats_sum(struct ulrpc *rpc, struct stats_sum **sum_p) must_check;
/* The same without peers, which there may be many of. */
int stats_sum_methods(struct ulrpc *rpc, struct stats_sum **sum_p) must_check;
void stats_sum_free(struct stats_sum *sum);

/* The output of the request "rpc metrics", in the text format of Prometheus: a
 * mapping, whose text it is; to be freed. 0, -ENOMEM, or what ulrpc_counters()
 * says. Manual: ulnet_metrics(7). */
int rpc_metrics(struct ulrpc *rpc, char **yaml_p);

/* As YAML; @buckets: with all of the histograms. Errors are in ferror(). */
void stats_print(struct ulrpc *rpc, const struct stats_sum *sum, bool buckets,
		 FILE *out);

#endif
