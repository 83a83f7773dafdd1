/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics of all CPTs together, and the names of methods. Thread: any, but
 * not in a turn, because lnet_call() asks each CPT and waits, for a few peers
 * at a time.
 */
#ifndef RPC_STATS_H
#define RPC_STATS_H

#include "rpc/stats/stat.h"
#include "ulnet/control.h"

/* These functions are in libulnetctl. libulrpc is not linked with it, so that
 * programs without a control socket load neither it nor a YAML parser. The
 * functions are called only with a control, which only programs with
 * libulnetctl have. */
#pragma weak lnet_control_add
#pragma weak lnet_control_del
#pragma weak lnet_control_fail
#pragma weak lnet_control_number
#pragma weak lnet_control_text
#pragma weak lnet_ctl_quote
#pragma weak lnet_rules_parse

extern const struct rpc_part stat_part;

/* Removes the commands that ulrpc_control() has added, and waits for commands
 * that are being carried out. ulrpc_close() begins with this. */
void stats_close(struct ulrpc *rpc);

/* Returns the name of a method, valid as long as @rpc; NULL: it is not known.
 */
const char *stats_method_name(struct ulrpc *rpc, uint32_t number);

/* ---- for the files of this folder ---- */

/* A copy of a struct stat_peer. */
struct stat_peer_copy {
	struct ulnet_id id;
	uint64_t counts[STAT_COUNTS_ALL];
	struct hist_small *times; /* NULL: the peer has no times */
	struct stat_peer_gauges gauges;
};

struct stats_sum {
	struct stat_shard all; /* sums of everything but the peers */
	/* Arrays of npeers[], sorted by the peer's id. There is one element for
	 * each connection, so a peer may have several. */
	struct stat_peer_copy *peers[STAT_SIDES];
	size_t npeers[STAT_SIDES];
	size_t room[STAT_SIDES];
};

/* Adds up the statistics of all CPTs. @peers: also copies those of peers, which
 * may be many. Returns 0, -ENOMEM, or an error of lnet_call(). On success the
 * caller owes stats_sum_free(). */
int stats_sum(struct ulrpc *rpc, bool peers,
	      struct stats_sum **sum_p) must_check;
void stats_sum_free(struct stats_sum *sum);

/* Sets *@yaml_p to the answer to the request "rpc metrics", which the caller
 * frees: a mapping in YAML whose "text" is in the text format of Prometheus.
 * Returns 0, -ENOMEM, or an error of ulrpc_counters(). Manual:
 * ulnet_metrics(7). */
int rpc_metrics(struct ulrpc *rpc, char **yaml_p);

/* What ulnet_control_command.fn calls: shows the rules for callers, or sets
 * those of the argument "text". */
int on_rules(void *arg, struct lnet_control_call *call, char **output_p);

/* What ulnet_control_command.fn calls: tells "lnetctl top" what there is. */
int on_top(void *arg, struct lnet_control_call *call, char **output_p);
/* What ulnet_control_command.fn calls: shows the slowest calls and requests. */
int on_slow(void *arg, struct lnet_control_call *call, char **output_p);

/* What ulnet_control_command.fn calls: changes a service, or shows what may be
 * changed. */
int on_set(void *arg, struct lnet_control_call *call, char **output_p);
extern const char *const set_keys[]; /* its arguments; ends with NULL */

/* Reads the argument @key, which is true or false. Returns what
 * lnet_control_text() does. */
int control_flag(struct lnet_control_call *call, const char *key,
		 bool *flag_p) must_check;

/* Compares, as strcmp() does, who two peers have proved to be. NULL: the peer
 * has proved nothing. */
int proofs_cmp(const struct stat_proof *a, const struct stat_proof *b);

enum stats_shown {
	STATS_ALL,
	STATS_BUCKETS,	   /* also the buckets of histograms */
	STATS_CONNECTIONS, /* only who is connected, and how */
};

/* Prints YAML to @out. After an error ferror(@out) is true. */
void stats_print(struct ulrpc *rpc, const struct stats_sum *sum,
		 enum stats_shown shown, FILE *out);

#endif
