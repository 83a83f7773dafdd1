/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a command line that has a node's metrics served: the same for all
 * programs that do. */
#ifndef TOOLS_METRICS_OPTIONS_H
#define TOOLS_METRICS_OPTIONS_H

#include <getopt.h>

struct metrics_options {
	const char *address; /* NULL: none are served */
	unsigned int peers;
};

enum { METRICS_OPT_PEERS = 704 };

#define METRICS_LETTERS "m:"
/* clang-format off */
#define METRICS_OPTIONS                                                        \
	{ "metrics", required_argument, NULL, 'm' },                           \
	{ "metrics-peers", required_argument, NULL, METRICS_OPT_PEERS }
/* clang-format on */

#define METRICS_HELP                                                          \
	"  -m, --metrics [ADDRESS:]PORT serve metrics to Prometheus there, "  \
	"by HTTP;\n"                                                          \
	"                               without an address at 127.0.0.1\n"    \
	"      --metrics-peers N        with metrics of so many NIDs of "     \
	"peers (256)\n"

void metrics_options_init(struct metrics_options *o);
/* As node_options_take(). */
int metrics_options_take(struct metrics_options *o, const char *who, int option,
			 const char *arg);

#endif
