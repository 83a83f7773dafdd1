/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that a command of lst(8) is about, and what they say. Functions
 * return an exit status: what is wrong has been said. */
#ifndef TOOLS_LST_NODES_H
#define TOOLS_LST_NODES_H

#include "lst_command.h"

#define ASK_S	  30 /* until a node has to have answered */
#define SECOND_US UINT64_C(1000000)

/* Those that are in the session, as far as is known. */
#define NODES_MEMBERS (1u << NODE_ACTIVE | 1u << NODE_DOWN)

struct lst_nodes {
	unsigned int n;
	struct lst_ask *asks; /* the caller frees it */
};

/* Each adds those that are not there yet. */
int lst_nodes_add(struct lst_nodes *nodes, const struct ulnet_nid *nid);
/* NIDs, and ranges of them. */
int lst_nodes_add_nids(struct lst_nodes *nodes, const char *text);
int lst_nodes_add_group(struct lst_nodes *nodes, struct state *s,
			const char *name);
/* Those that send in tests of a batch; with NULL of any batch. */
int lst_nodes_add_clients(struct lst_nodes *nodes, struct state *s,
			  const char *batch);
/* Those that are sent to. */
int lst_nodes_add_servers(struct lst_nodes *nodes, struct state *s,
			  const char *batch);
/* Those of all groups. */
int lst_nodes_add_session(struct lst_nodes *nodes, struct state *s);
/* A group, or NIDs. */
int lst_nodes_add_word(struct lst_console *c, struct lst_nodes *nodes,
		       const char *word);

/* Only those whose state is one of @states, bits of enum node_state. */
void lst_nodes_keep(struct lst_nodes *nodes, const struct state *s,
		    unsigned int states);
/* Says which are not; @what they should be active for. */
int lst_nodes_need_active(const struct lst_nodes *nodes, const struct state *s,
			  const char *what);

/* Asks all of them at once, and waits. The answers say their states, too. */
void lst_nodes_ask(struct lst_console *c, struct lst_nodes *nodes,
		   const struct lst_msg *msg, uint32_t seconds);
/* The same, of each what its msg says; the session is filled in. */
void lst_nodes_ask_each(struct lst_console *c, struct lst_nodes *nodes,
			uint32_t seconds);
/* The session that an answer tells is the one that the node is in. */
enum node_state lst_node_said(const struct lst_console *c,
			      const struct lst_ask *ask);
/* Says which node did not do it. @also: a status that is as good as 0. */
int lst_node_failed(const struct lst_ask *ask, const char *what, uint32_t also);
int lst_nodes_failed(const struct lst_nodes *nodes, const char *what,
		     uint32_t also);
/* Nodes forget the session unless they are asked something: servers, too, of
 * which nobody has anything to ask while tests run. */
void lst_nodes_keep_alive(struct lst_console *c);
/* Lets them go. */
int lst_nodes_remove(struct lst_console *c, struct lst_nodes *nodes,
		     const char *what);

#endif
