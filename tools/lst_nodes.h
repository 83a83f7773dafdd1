/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a command of lst(8) is about, and what they say. Functions
 * return an exit status: what is wrong has been said. */
#ifndef TOOLS_LST_NODES_H
#define TOOLS_LST_NODES_H

#include "lst_command.h"

#define ASK_S	  30 /* until a node has to have answered */
#define SECOND_US UINT64_C(1000000)

struct lst_nodes {
	unsigned int n;
	struct lst_ask *asks; /* the caller frees it */
};

/* Each adds those that are not there yet. */
int lst_nodes_add(struct lst_nodes *nodes, const struct ulnet_nid *nid);
int lst_nodes_add_group(struct lst_nodes *nodes, struct state *s,
			const char *name);
/* Those that send in tests of a batch; with NULL of any batch. */
int lst_nodes_add_clients(struct lst_nodes *nodes, struct state *s,
			  const char *batch);
/* What the words from optind on name. */
int lst_nodes_add_words(struct lst_console *c, struct lst_nodes *nodes,
			int argc, char **argv);

/* Asks all of them at once, and waits. */
void lst_nodes_ask(struct lst_console *c, struct lst_nodes *nodes,
		   const struct lst_msg *msg, uint32_t seconds);
/* Says which node did not do it. @also: a status that is as good as 0. */
int lst_node_failed(const struct lst_ask *ask, const char *what, uint32_t also);
int lst_nodes_failed(const struct lst_nodes *nodes, const char *what,
		     uint32_t also);

#endif
