/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lst_words.h"

int lst_nodes_add(struct lst_nodes *nodes, const struct ulnet_nid *nid)
{
	struct lst_ask *asks;

	for (unsigned int i = 0; i < nodes->n; i++)
		if (lnet_nid_eq(&nodes->asks[i].to.nid, nid))
			return 0;
	asks = realloc(nodes->asks, (nodes->n + 1) * sizeof(*asks));
	if (!asks)
		return lst_fail("%s", strerror(ENOMEM));
	nodes->asks = asks;
	asks[nodes->n++] = (struct lst_ask){ .to = { *nid, LNET_PID_LUSTRE } };
	return 0;
}

int lst_nodes_add_group(struct lst_nodes *nodes, struct state *s,
			const char *name)
{
	const struct state_group *g = state_group(s, name);
	int status = 0;

	if (!g)
		return lst_fail("there is no group %s", name);
	for (unsigned int i = 0; i < g->n && !status; i++)
		status = lst_nodes_add(nodes, &g->nids[i]);
	return status;
}

int lst_nodes_add_clients(struct lst_nodes *nodes, struct state *s,
			  const char *batch)
{
	int status = 0;

	for (unsigned int i = 0; i < s->ntests && !status; i++)
		if (!batch || strcmp(s->tests[i].batch, batch) == 0)
			status =
				lst_nodes_add_group(nodes, s, s->tests[i].from);
	return status;
}

void lst_nodes_ask(struct lst_console *c, struct lst_nodes *nodes,
		   const struct lst_msg *msg, uint32_t seconds)
{
	for (unsigned int i = 0; i < nodes->n; i++) {
		nodes->asks[i].msg = *msg;
		nodes->asks[i].msg.features = LST_BYTES;
		nodes->asks[i].msg.session =
			(struct lst_session_id){ c->state.console,
						 c->state.stamp };
	}
	lst_ask_all(&c->calls, nodes->asks, nodes->n, seconds);
}

static const char *status_text(uint32_t status)
{
	switch (status) {
	case EACCES:
		return "does not take the word of this console: --lst of "
		       "lnetd(8)";
	case EBUSY:
		return "belongs to another session, or its batch is running";
	case ESRCH:
	case ENOENT:
		return "knows nothing of this session, or not of this batch";
	case EPROTO:
		return "speaks another version of the self-test";
	}
	return strerror((int)status);
}

int lst_node_failed(const struct lst_ask *ask, const char *what, uint32_t also)
{
	char nid[LNET_NIDSTR_SIZE];

	if (!ask->status && (!ask->reply.status || ask->reply.status == also))
		return 0;
	lnet_nid_format(&ask->to.nid, nid, sizeof(nid));
	if (ask->status)
		return lst_fail("%s: %s: no answer: %s", what, nid,
				strerror(-ask->status));
	if (ask->reply.type == LST_MAKE_REPLY && ask->reply.status == EBUSY)
		return lst_fail("%s: %s: belongs to the session %s; to take it "
				"away: new_session --force",
				what, nid, ask->reply.name);
	return lst_fail("%s: %s: %s", what, nid,
			status_text(ask->reply.status));
}

int lst_nodes_failed(const struct lst_nodes *nodes, const char *what,
		     uint32_t also)
{
	int status = 0;

	for (unsigned int i = 0; i < nodes->n; i++)
		status |= lst_node_failed(&nodes->asks[i], what, also);
	return status;
}

int lst_nodes_add_words(struct lst_console *c, struct lst_nodes *nodes,
			int argc, char **argv)
{
	int status = 0;

	for (int i = optind; i < argc && !status; i++)
		status = lst_nodes_add_group(nodes, &c->state, argv[i]);
	return status;
}
