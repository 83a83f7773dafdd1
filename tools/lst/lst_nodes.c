/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/target.h"

#define REMOVES_MAX 64

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

/* As lst_nodes_add(), but fails if a node with this NID cannot be in a session.
 */
static int lst_nodes_add_nid(struct lst_nodes *nodes,
			     const struct ulnet_nid *nid)
{
	char text[LNET_NIDSTR_SIZE];

	if (!lnet_nid_is_lo(nid) && lnet_nid_is_nid4(nid))
		return lst_nodes_add(nodes, nid);
	return lst_fail("%s: a NID with an address of 4 bytes is expected, "
			"like 10.0.0.1@tcp",
			lnet_nid_format(nid, text, sizeof(text)));
}

static int lst_nodes_add_list(struct lst_nodes *nodes, const char *text,
			      const struct ulnet_nidlist *list)
{
	struct ulnet_nid *nids = malloc(STATE_NODES * sizeof(*nids));
	int status = 0;
	size_t n = 0;

	if (!nids)
		return lst_fail("%s", strerror(ENOMEM));
	if (lnet_nidlist_expand(list, nids, STATE_NODES, &n))
		status = lst_fail("'%s': a group has at most %u nodes", text,
				  STATE_NODES);
	for (size_t i = 0; i < n && !status; i++)
		status = lst_nodes_add_nid(nodes, &nids[i]);
	free(nids);
	return status;
}

int lst_port_use(struct lst_console *c, const struct state_port *at)
{
	char text[LNET_NIDSTR_SIZE];
	int rc = lnet_peer_port_claim(c->node, &at->nid, at->port,
				      LNET_PORT_TEXT);

	if (!rc)
		return 0;
	return lst_fail("port %u of %s: %s", at->port,
			lnet_nid_format(&at->nid, text, sizeof(text)),
			strerror(-rc));
}

/* The port of a host that was found: for this command, and for those that
 * follow in the session. */
static int host_port(struct lst_console *c, const struct ulnet_address *found)
{
	const struct state_port at = { found->nid, found->port };

	if (!at.port)
		return 0;
	if (state_port_add(&c->state, &at.nid, at.port))
		return lst_fail("%s", strerror(ENOMEM));
	return lst_port_use(c, &at);
}

static int lst_nodes_add_host(struct lst_console *c, struct lst_nodes *nodes,
			      const char *text)
{
	char why[TARGET_WHY];
	struct ulnet_address found;

	if (target_lookup_first(c->node, text, &found, why))
		return lst_fail("%s: %s", text, why);
	target_say(WHO, text, &found);
	if (host_port(c, &found))
		return FAILED;
	return lst_nodes_add_nid(nodes, &found.nid);
}

int lst_nodes_add_nids(struct lst_console *c, struct lst_nodes *nodes,
		       const char *text)
{
	struct ulnet_text_error err;
	struct ulnet_nidlist *list;
	struct ulnet_nid nid;
	int rc, status;

	if (lnet_nid_parse(text, &nid) == 0)
		return lst_nodes_add_nid(nodes, &nid);
	if (target_is_name(text))
		return lst_nodes_add_host(c, nodes, text);
	rc = lnet_nidlist_parse(text, &list, &err);
	if (rc == -EINVAL)
		return lst_fail("'%s': at character %zu: %s: NIDs are "
				"expected, like 10.0.0.[1-9]@tcp, or the name "
				"of a host",
				text, err.offset + 1, err.what);
	if (rc)
		return lst_fail("%s", strerror(-rc));
	status = lst_nodes_add_list(nodes, text, list);
	lnet_nidlist_free(list);
	return status;
}

void lst_nodes_filter(struct lst_nodes *nodes, const struct state *s,
		      unsigned int states)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < nodes->n; i++)
		if (states & 1u << state_of(s, &nodes->asks[i].to.nid))
			nodes->asks[n++].to = nodes->asks[i].to;
	nodes->n = n;
}

int lst_nodes_need_active(const struct lst_nodes *nodes, const struct state *s,
			  const char *what)
{
	char nid[LNET_NIDSTR_SIZE];
	int status = 0;

	for (unsigned int i = 0; i < nodes->n; i++) {
		const struct ulnet_nid *node = &nodes->asks[i].to.nid;

		if (state_of(s, node) != NODE_ACTIVE)
			status = lst_fail(
				"%s: %s is %s: see update_group", what,
				lnet_nid_format(node, nid, sizeof(nid)),
				node_states[state_of(s, node)]);
	}
	return status;
}

int lst_nodes_add_group(struct lst_nodes *nodes, struct state *s,
			const char *name)
{
	const struct state_group *g = state_group(s, name);
	int status = 0;

	if (!g)
		return lst_fail("there is no group %s", name);
	for (unsigned int i = 0; i < g->n && !status; i++)
		status = lst_nodes_add(nodes, &g->nodes[i].nid);
	return status;
}

int lst_nodes_add_batch(struct lst_nodes *nodes, struct state *s,
			const char *batch, bool servers)
{
	int status = 0;

	for (unsigned int i = 0; i < s->ntests && !status; i++) {
		const struct state_test *t = &s->tests[i];

		if (!batch || strcmp(t->batch, batch) == 0)
			status = lst_nodes_add_group(nodes, s,
						     servers ? t->to : t->from);
	}
	return status;
}

int lst_nodes_add_session(struct lst_nodes *nodes, struct state *s)
{
	int status = 0;

	for (unsigned int i = 0; i < s->ngroups && !status; i++)
		status = lst_nodes_add_group(nodes, s, s->groups[i].name);
	return status;
}

enum node_state lst_node_state(const struct lst_console *c,
			       const struct lst_ask *ask)
{
	const struct lst_session_id none = LST_SESSION_NONE;
	const struct lst_session_id own = { c->state.console, c->state.stamp };

	if (ask->status)
		return NODE_DOWN;
	if (lst_session_eq(&ask->reply.session, &own))
		return NODE_ACTIVE;
	return lst_session_eq(&ask->reply.session, &none) ? NODE_UNKNOWN
							  : NODE_BUSY;
}

void lst_nodes_ask_each(struct lst_console *c, struct lst_nodes *nodes,
			uint32_t seconds)
{
	for (unsigned int i = 0; i < nodes->n; i++) {
		nodes->asks[i].msg.features = LST_BYTES;
		nodes->asks[i].msg.session =
			(struct lst_session_id){ c->state.console,
						 c->state.stamp };
	}
	state_touch(&c->state);
	lst_ask_all(&c->calls, nodes->asks, nodes->n, seconds);
	for (unsigned int i = 0; i < nodes->n; i++)
		state_set_node(&c->state, &nodes->asks[i].to.nid,
			       lst_node_state(c, &nodes->asks[i]));
}

void lst_nodes_ask(struct lst_console *c, struct lst_nodes *nodes,
		   const struct lst_msg *msg, uint32_t seconds)
{
	for (unsigned int i = 0; i < nodes->n; i++)
		nodes->asks[i].msg = *msg;
	lst_nodes_ask_each(c, nodes, seconds);
}

int lst_nodes_request(struct lst_console *c, struct lst_nodes *nodes,
		      int status, const struct lst_msg *msg, const char *what,
		      uint32_t also)
{
	if (!status) {
		lst_nodes_ask(c, nodes, msg, ASK_S);
		status = lst_nodes_failed(nodes, what, also);
	}
	free(nodes->asks);
	return status;
}

void lst_nodes_keep_alive(struct lst_console *c)
{
	const struct lst_msg debug = { .type = LST_DEBUG };
	struct lst_nodes nodes = { 0 };

	lst_nodes_add_session(&nodes, &c->state);
	lst_nodes_filter(&nodes, &c->state, 1u << NODE_ACTIVE);
	lst_nodes_ask(c, &nodes, &debug, ASK_S);
	free(nodes.asks);
}

/* A node that was made a member more than once has to be removed as often. */
int lst_nodes_remove(struct lst_console *c, struct lst_nodes *nodes,
		     const char *what)
{
	const struct lst_msg remove = { .type = LST_REMOVE };
	int status = 0;

	for (unsigned int i = 0; nodes->n && !status; i++) {
		unsigned int left = 0;

		lst_nodes_ask(c, nodes, &remove, ASK_S);
		status = lst_nodes_failed(nodes, what, ESRCH);
		for (unsigned int k = 0; k < nodes->n; k++)
			if (lst_node_state(c, &nodes->asks[k]) == NODE_ACTIVE)
				nodes->asks[left++].to = nodes->asks[k].to;
		nodes->n = left;
		if (left && i == REMOVES_MAX)
			status = lst_fail(
				"%s: %u nodes are still in the session", what,
				left);
	}
	return status;
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
		return "knows nothing of this session, or not of this batch; "
		       "update_group --refresh makes it a member again";
	case EPROTO:
		return "speaks another version of the self-test";
	}
	return strerror((int)status);
}

int lst_node_failed(const struct lst_ask *ask, const char *what, uint32_t also)
{
	char nid[LNET_NIDSTR_SIZE], name[LST_LABEL_SIZE];

	if (!ask->status && (!ask->reply.status || ask->reply.status == also))
		return 0;
	lnet_nid_format(&ask->to.nid, nid, sizeof(nid));
	if (ask->status)
		return lst_fail("%s: %s: no answer: %s", what, nid,
				strerror(-ask->status));
	if (ask->reply.type == LST_MAKE_REPLY && ask->reply.status == EBUSY)
		return lst_fail("%s: %s: belongs to the session %s; to take it "
				"away: new_session --force",
				what, nid,
				lst_label(ask->reply.name, false, name));
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

int lst_nodes_add_word(struct lst_console *c, struct lst_nodes *nodes,
		       const char *word)
{
	return strchr(word, '@') ? lst_nodes_add_nids(c, nodes, word)
				 : lst_nodes_add_group(nodes, &c->state, word);
}
