/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose nodes are: lst(8). */
#include <errno.h>
#include <stdlib.h>

#include "lst_command.h"
#include "lst_nodes.h"

static void print_json(const struct lst_ask *ask, const char *nid,
		       const char *state)
{
	char name[LST_LABEL_SIZE];

	printf("{\"nid\": \"%s\", \"state\": \"%s\"", nid, state);
	if (!ask->status && !ask->reply.status)
		printf(", \"session\": \"%s\", \"timeout\": %u",
		       lst_label(ask->reply.name, true, name),
		       ask->reply.timeout);
	fputs("}", stdout);
}

static void print_node(bool json, const struct lst_ask *ask,
		       enum node_state state)
{
	char nid[LNET_NIDSTR_SIZE], name[LST_LABEL_SIZE];

	lnet_nid_format(&ask->to.nid, nid, sizeof(nid));
	if (json)
		print_json(ask, nid, node_states[state]);
	else if (!ask->status && !ask->reply.status)
		printf("%s: %s, session %s\n", nid, node_states[state],
		       lst_label(ask->reply.name, false, name));
	else
		printf("%s: %s\n", nid, node_states[state]);
}

static int take_nodes(struct lst_console *c, const struct lst_words *w,
		      struct lst_nodes *nodes)
{
	struct state *s = &c->state;
	const struct state_batch *b;
	int status = 0;

	if (w->group)
		status = lst_nodes_add_group(nodes, s, w->group);
	if (w->nodes)
		status |= lst_nodes_add_nids(nodes, w->nodes);
	if (w->batch) {
		b = lst_batch_named(c, w->batch);
		if (!b)
			return FAILED;
		status |= lst_nodes_add_clients(nodes, s, b->name);
		if (w->server)
			status |= lst_nodes_add_servers(nodes, s, b->name);
	}
	if (w->session || (!w->group && !w->nodes && !w->batch))
		status |= lst_nodes_add_session(nodes, s);
	return status;
}

int lst_ping(struct lst_console *c, const struct lst_words *w)
{
	const struct lst_msg debug = { .type = LST_DEBUG };
	struct lst_nodes nodes = { 0 };
	int status = 0;

	if (w->server && !w->batch)
		return lst_usage("ping", "--server: of which --batch?");
	status = take_nodes(c, w, &nodes);
	if (!status) {
		lst_nodes_ask(c, &nodes, &debug, w->ask);
		fputs(c->json ? "{\"nodes\": [" : "", stdout);
		for (unsigned int i = 0; i < nodes.n; i++) {
			fputs(c->json && i ? ", " : "", stdout);
			print_node(c->json, &nodes.asks[i],
				   lst_node_said(c, &nodes.asks[i]));
		}
		fputs(c->json ? "]}\n" : "", stdout);
		/* To be in no session is no failure. */
		status = lst_nodes_failed(&nodes, "ping", ESRCH);
	}
	free(nodes.asks);
	return status;
}
