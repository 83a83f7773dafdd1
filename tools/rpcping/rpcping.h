/* SPDX-License-Identifier: BSD-3-Clause */
/* rpcping(1): its command line, and what it says of its calls. */
#ifndef TOOLS_RPCPING_H
#define TOOLS_RPCPING_H

#include <stdbool.h>

#include "tools/common/node.h"
#include "rpcping_load.h"

/* Who is called: a node. */
struct target {
	const char *text; /* as given */
	struct ulnet_nid nids[ULRPC_NIDS_MAX];
	unsigned int nnids;
	uint32_t pid; /* 0: the usual one */
};

struct rpcping_options {
	struct node_options node;
	struct load_conf load;	  /* the same for all targets, without what they
				* are and who is told of the end */
	struct ulrpc_retry retry; /* load.retry, unless that is NULL */
	struct target *targets;
	unsigned int ntargets;
	uint64_t interval; /* us between live lines */
	uint64_t grace;	   /* us for calls under way when a signal comes */
	enum ulrpc_bulk_access bulk; /* 0: none */
	bool live, poll, json;
};

/* 0: go on, with @o filled; OPTION_DONE; else the exit status.
 * rpcping_options_free() is due in any case. */
int rpcping_options_parse(struct rpcping_options *o, int argc, char **argv);
void rpcping_options_free(struct rpcping_options *o);

/* ---- reports ---- */

/* "2.0 s: 411522 calls/s, ...": what happened since @before, at @now ns, in a
 * line on stderr that the next one overwrites if stderr is a terminal.
 * @change: room for the difference. */
void report_live(const struct load_stats *all, const struct load_stats *before,
		 uint64_t now, struct histogram *change);
/* Erases the line of report_live() from a terminal. */
void report_live_end(void);

/* On stderr: each reason for which calls to @target, which should listen on
 * @port, were lost since @before, once. */
void report_losses(const char *target, unsigned int port,
		   const struct load_stats *now,
		   const struct load_stats *before);

/* On stdout. */
void report_text(const struct rpcping_options *o, const char *title,
		 const struct load_stats *stats);
void report_json(const struct load_stats *stats, struct lnet *node);
/* Where the time went, and what @rpc has counted. Not in a turn. */
void report_explain(const struct load_stats *stats, struct ulrpc *rpc);

#endif
