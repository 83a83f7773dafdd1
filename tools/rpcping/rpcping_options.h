/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of rpcping(1). */
#ifndef TOOLS_RPCPING_OPTIONS_H
#define TOOLS_RPCPING_OPTIONS_H

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

#endif
