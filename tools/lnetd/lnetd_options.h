/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of lnetd(8). */
#ifndef TOOLS_LNETD_OPTIONS_H
#define TOOLS_LNETD_OPTIONS_H

#include <stdbool.h>

#include "tools/common/lst_options.h"
#include "tools/common/metrics_options.h"
#include "tools/common/node_options.h"

struct lnetd_options {
	struct node_options node; /* socket is not NULL */
	char *pidfile;		  /* NULL: none */
	struct metrics_options metrics;
	struct lst_options lst;
	bool foreground;
};

/*
 * < 0: go on, with @o filled; else the exit status: 0 after --help and
 * --version, 2 after a message about what is wrong. lnetd_options_free() is due
 * in any case. Paths are absolute.
 */
int lnetd_options_parse(struct lnetd_options *o, int argc, char **argv);
void lnetd_options_free(struct lnetd_options *o);

#endif
