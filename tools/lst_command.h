/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of lst(8). */
#ifndef TOOLS_LST_COMMAND_H
#define TOOLS_LST_COMMAND_H

#include "lst_state.h"
#include "services/lst/console.h"

struct lst_console {
	struct state state;
	struct lnet *node; /* NULL: the command needs none */
	struct lst_calls calls;
	bool json;
};

struct lst_command {
	const char *name;
	const char *args; /* for --help */
	bool makes;	  /* the session is not there yet */
	bool asks;	  /* it needs a node */
	/* Returns the exit status; what is wrong has been said. */
	int (*run)(struct lst_console *c, int argc, char **argv);
};

/* They end with one without a name. */
extern const struct lst_command lst_commands[];

#endif
