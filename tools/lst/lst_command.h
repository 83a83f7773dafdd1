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
	const char *comma; /* in a list of JSON, before what comes next */
};

struct lst_command {
	const char *name;
	const char *args; /* for --help */
	bool makes;	  /* the session is not there yet */
	bool asks;	  /* it needs a node */
	/* Returns the exit status; what is wrong has been said. */
	int (*run)(struct lst_console *c, int argc, char **argv);
	bool answers; /* as JSON, too; else it is told that it is done */
};

/* Each is a struct lst_command's run(). */
int lst_new_session(struct lst_console *c, int argc, char **argv);
int lst_end_session(struct lst_console *c, int argc, char **argv);
int lst_show_session(struct lst_console *c, int argc, char **argv);
int lst_add_group(struct lst_console *c, int argc, char **argv);
int lst_del_group(struct lst_console *c, int argc, char **argv);
int lst_update_group(struct lst_console *c, int argc, char **argv);
int lst_list_group(struct lst_console *c, int argc, char **argv);
int lst_add_batch(struct lst_console *c, int argc, char **argv);
int lst_list_batch(struct lst_console *c, int argc, char **argv);
int lst_run(struct lst_console *c, int argc, char **argv);
int lst_stop(struct lst_console *c, int argc, char **argv);
int lst_query(struct lst_console *c, int argc, char **argv);
int lst_add_test(struct lst_console *c, int argc, char **argv);
int lst_ping(struct lst_console *c, int argc, char **argv);
int lst_stat(struct lst_console *c, int argc, char **argv);
int lst_show_error(struct lst_console *c, int argc, char **argv);

/* The batch that is named, or the only one there is; NULL, and it is said. */
struct state_batch *lst_batch_named(struct lst_console *c, const char *name);
/* Stops it, and waits until nothing runs. */
int lst_batch_stop(struct lst_console *c, const struct state_batch *b,
		   bool force);

/* They end with one without a name. */
extern const struct lst_command lst_commands[];

#endif
