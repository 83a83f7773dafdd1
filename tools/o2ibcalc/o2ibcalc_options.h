/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of o2ibcalc(1). */
#ifndef TOOLS_O2IBCALC_OPTIONS_H
#define TOOLS_O2IBCALC_OPTIONS_H

#include "o2ibcalc_report.h"

enum format {
	FORMAT_TABLE,
	FORMAT_YAML,
	FORMAT_JSON,
};

struct o2ibcalc_options {
	enum format format;
	struct report report; /* its inputs; nothing is calculated yet */
};

/* Returns -1: go on; or the exit status, and all is said. */
int o2ibcalc_options_parse(struct o2ibcalc_options *o, int argc, char **argv);
void o2ibcalc_options_free(struct o2ibcalc_options *o);

#endif
