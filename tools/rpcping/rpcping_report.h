/* SPDX-License-Identifier: BSD-3-Clause */
/* What rpcping(1) prints. */
#ifndef TOOLS_RPCPING_REPORT_H
#define TOOLS_RPCPING_REPORT_H

#include "rpcping_options.h"

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

/* Prints on stdout. -errno of writing. */
int report_text(const struct rpcping_options *o, const char *title,
		const struct load_stats *stats);
int report_json(const struct load_stats *stats, struct lnet *node);
/* Where the time went, and what @rpc has counted. Not in a turn. */
int report_explain(const struct load_stats *stats, struct ulrpc *rpc);

#endif
