/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands for sessions and groups of nodes, and ping: lst(8). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"

/* ---- sessions ---- */

/* Stops all tests before nodes leave the session, because kernel nodes hang
 * otherwise. */
static int session_end(struct lst_console *c)
{
	struct state *s = &c->state;
	struct lst_nodes nodes = { 0 };
	int status = 0;

	for (unsigned int i = 0; i < s->nbatches; i++)
		status |= lst_batch_stop(c, &s->batches[i], false);
	status |= lst_nodes_add_session(&nodes, s);
	lst_nodes_filter(&nodes, s, NODES_MEMBERS);
	status |= lst_nodes_remove(c, &nodes, "end_session");
	free(nodes.asks);
	state_clear(s);
	return status;
}

/* Sets *@nid to the first NID of the node that is not 0@lo and that a session
 * can be named after. */
static bool find_nid(struct lst_console *c, struct ulnet_nid *nid)
{
	struct ulnet_id id;

	for (unsigned int i = 0; !LNetGetId(c->node, i, &id); i++) {
		*nid = id.nid;
		if (!lnet_nid_is_lo(nid) && lnet_nid_is_nid4(nid))
			return true;
	}
	return false;
}

/* Adds an NI on net tcp, since public scripts are written for kernel nodes,
 * which have that net. Returns 0 or FAILED. */
static int add_default_net(struct lst_console *c)
{
	struct ulnet_text_error err = { .what = "" };
	struct ulnet_ni_conf *nis;
	unsigned int n;
	int rc = lnet_networks_parse("tcp", &nis, &n, &err);

	if (!rc) {
		rc = lnet_ni_add(c->node, &nis[0]);
		free(nis);
	}
	return rc ? lst_fail("--net tcp: %s",
			     *err.what ? err.what : strerror(-rc))
		  : 0;
}

static int own_nid(struct lst_console *c, struct ulnet_nid *nid)
{
	if (find_nid(c, nid))
		return 0;
	if (c->default_net && add_default_net(c))
		return FAILED;
	if (find_nid(c, nid))
		return 0;
	return lst_fail("no network with addresses of 4 bytes: another --net "
			"is needed, like --net 'tcp(eth0)'");
}

int lst_new_session(struct lst_console *c, const struct lst_words *w)
{
	struct state *s = &c->state;
	struct ulnet_nid nid;
	const char *name = w->n ? w->args[0] : getenv("USER");

	name = name ? name : "session";
	if (lst_check_label(name))
		return FAILED;
	if (state_expired(s))
		session_end(c);
	if (s->exists)
		return lst_fail("there is a session already: %s; end_session "
				"ends it",
				s->name);
	if (own_nid(c, &nid))
		return FAILED;
	state_name_copy(s->name, name);
	s->console = lnet_nid_to_nid4(&nid);
	s->stamp = (int64_t)(lnet_now(c->node, LST_HOME) / 1000000);
	s->force = w->force;
	s->timeout = w->timeout;
	s->next_batch = 1;
	s->exists = true;
	return 0;
}

int lst_end_session(struct lst_console *c, const struct lst_words *w)
{
	(void)w;
	return session_end(c);
}

int lst_show_session(struct lst_console *c, const struct lst_words *w)
{
	struct lst_session_id id = { c->state.console, c->state.stamp };
	struct ulnet_nid nid = lnet_nid_from_nid4(id.console);
	char text[LNET_NIDSTR_SIZE], name[LST_LABEL_SIZE];

	(void)w;
	lnet_nid_format(&nid, text, sizeof(text));
	printf(c->json ? "{\"session\": \"%s\", \"console\": \"%s\", "
			 "\"stamp\": %" PRId64 ", \"timeout\": %u}\n"
		       : "%s: console %s, stamp %" PRId64 ", timeout %u s\n",
	       lst_label(c->state.name, c->json, name), text, id.stamp,
	       c->state.timeout);
	return 0;
}

/* ---- members ---- */

/* Makes nodes members of the session. */
static int nodes_make(struct lst_console *c, struct lst_nodes *nodes,
		      const char *what)
{
	struct lst_msg make = { .type = LST_MAKE,
				.make.force = c->state.force };
	int status = 0;

	state_name_copy(make.name, c->state.name);
	lst_nodes_ask(c, nodes, &make, ASK_S);
	for (unsigned int i = 0; i < nodes->n; i++) {
		struct lst_ask *ask = &nodes->asks[i];

		if (!ask->status && !ask->reply.status &&
		    ask->reply.features != LST_BYTES)
			ask->reply.status = EPROTO;
		status |= lst_node_failed(ask, what, 0);
	}
	return status;
}

/* Makes those nodes of the group members of the session that are not. Nodes
 * that were active are asked first whether they still are, because a node that
 * is made a member twice has to be removed twice. */
static int group_refresh(struct lst_console *c, const struct state_group *g,
			 const char *what)
{
	const struct lst_msg debug = { .type = LST_DEBUG };
	struct lst_nodes nodes = { 0 };
	int status = lst_nodes_add_group(&nodes, &c->state, g->name);

	lst_nodes_filter(&nodes, &c->state, 1u << NODE_ACTIVE);
	lst_nodes_ask(c, &nodes, &debug, ASK_S);
	status |= lst_nodes_add_group(&nodes, &c->state, g->name);
	lst_nodes_filter(&nodes, &c->state, NODES_ALL & ~(1u << NODE_ACTIVE));
	status |= nodes_make(c, &nodes, what);
	free(nodes.asks);
	return status;
}

/* Removes the nodes from the group, and from the session unless they are in
 * another group. Nodes that are down leave the session by themselves later. */
static int group_drop(struct lst_console *c, struct state_group *g,
		      struct lst_nodes *nodes, const char *what)
{
	struct lst_nodes gone = { 0 };
	int status = 0;

	for (unsigned int i = 0; i < nodes->n; i++) {
		const struct ulnet_nid *nid = &nodes->asks[i].to.nid;
		enum node_state state = state_of(&c->state, nid);

		state_group_remove(g, nid);
		if (!state_has(&c->state, nid) && state == NODE_ACTIVE)
			status |= lst_nodes_add(&gone, nid);
	}
	status |= lst_nodes_remove(c, &gone, what);
	free(gone.asks);
	return status;
}

/* ---- commands ---- */

static int group_make(struct state *s, struct state_group *g,
		      const struct lst_nodes *nodes)
{
	for (unsigned int i = 0; i < nodes->n; i++) {
		struct state_node node = { .nid = nodes->asks[i].to.nid };

		node.state = state_of(s, &node.nid);
		if (state_group_add(g, &node))
			return lst_fail("group %s: a group has at most %u "
					"nodes",
					g->name, STATE_NODES);
	}
	return 0;
}

int lst_add_group(struct lst_console *c, const struct lst_words *w)
{
	struct state *s = &c->state;
	struct lst_nodes nodes = { 0 };
	struct state_group *g = &s->groups[s->ngroups];
	int status = 0;

	if (lst_check_name("group", w->args[0]))
		return FAILED;
	if (state_group(s, w->args[0]))
		return lst_fail("there is a group %s already", w->args[0]);
	if (s->ngroups == STATE_GROUPS)
		return lst_fail("there are %u groups already", s->ngroups);
	state_name_copy(g->name, w->args[0]);
	for (int i = 1; i < w->n && !status; i++)
		status = lst_nodes_add_nids(c, &nodes, w->args[i]);
	if (!status)
		status = group_make(s, g, &nodes);
	free(nodes.asks);
	if (status) {
		free(g->nodes);
		*g = (struct state_group){ 0 };
		return status;
	}
	s->ngroups++;
	return group_refresh(c, g, "add_group");
}

/* Returns the group @name. NULL: there is none, or it is in a test, and a
 * message was printed. */
static struct state_group *group_unused(struct state *s, const char *name)
{
	struct state_group *g = state_group(s, name);

	if (!g)
		lst_fail("there is no group %s", name);
	for (unsigned int i = 0; i < s->ntests && g; i++) {
		if (strcmp(s->tests[i].from, name) != 0 &&
		    strcmp(s->tests[i].to, name) != 0)
			continue;
		lst_fail("group %s is in a test", name);
		g = NULL;
	}
	return g;
}

int lst_del_group(struct lst_console *c, const struct lst_words *w)
{
	struct lst_nodes nodes = { 0 };
	struct state_group *g = group_unused(&c->state, w->args[0]);
	int status;

	if (!g)
		return FAILED;
	status = lst_nodes_add_group(&nodes, &c->state, g->name);
	status |= group_drop(c, g, &nodes, "del_group");
	free(nodes.asks);
	state_group_del(&c->state, g);
	return status;
}

/* Parses a state; "invalid" means all but active. */
static int take_states(const char *word, unsigned int *states_p)
{
	static const char *const words[] = { "unknown", "active",  "busy",
					     "down",	"invalid", NULL };
	const struct option_at at = { .who = WHO,
				      .name = "clean",
				      .text = word };
	unsigned int state = 0;
	int status = option_word(&at, words, 0, &state);

	*states_p = state == NODE_STATES ? NODES_ALL & ~(1u << NODE_ACTIVE)
					 : 1u << state;
	return status;
}

static int group_clean(struct lst_console *c, struct state_group *g,
		       const char *word)
{
	struct lst_nodes nodes = { 0 };
	unsigned int states;
	int status = take_states(word, &states);

	if (!status)
		status = lst_nodes_add_group(&nodes, &c->state, g->name);
	if (!status) {
		lst_nodes_filter(&nodes, &c->state, states);
		status = group_drop(c, g, &nodes, "update_group");
	}
	free(nodes.asks);
	return status;
}

/* Removes nodes from the group. @text may name nodes that are not in the group,
 * but at least one has to be. */
static int group_remove(struct lst_console *c, struct state_group *g,
			const char *text)
{
	struct lst_nodes nodes = { 0 };
	unsigned int before = g->n;
	int status = lst_nodes_add_nids(c, &nodes, text);

	if (!status)
		status = group_drop(c, g, &nodes, "update_group");
	if (!status && g->n == before)
		status =
			lst_fail("group %s has no node of '%s'", g->name, text);
	free(nodes.asks);
	return status;
}

int lst_update_group(struct lst_console *c, const struct lst_words *w)
{
	struct state_group *g;

	if (w->refresh + (w->clean != NULL) + (w->remove != NULL) != 1)
		return lst_usage("update_group", "one of --refresh, --clean "
						 "and --remove is needed");
	g = w->refresh ? state_group(&c->state, w->args[0])
		       : group_unused(&c->state, w->args[0]);
	if (!g)
		return w->refresh ? lst_fail("there is no group %s", w->args[0])
				  : FAILED;
	if (w->refresh)
		return group_refresh(c, g, "update_group");
	return w->clean ? group_clean(c, g, w->clean)
			: group_remove(c, g, w->remove);
}

/* ---- the list ---- */

static void print_node(bool json, bool first, const struct state_node *node)
{
	const char *state = node_states[node->state];
	char nid[LNET_NIDSTR_SIZE];

	lnet_nid_format(&node->nid, nid, sizeof(nid));
	if (json)
		printf("%s{\"nid\": \"%s\", \"state\": \"%s\"}",
		       first ? "" : ", ", nid, state);
	else if (node->state == NODE_ACTIVE)
		printf(" %s", nid);
	else
		printf(" %s (%s)", nid, state);
}

static void print_group(struct lst_console *c, const struct state_group *g,
			unsigned int states)
{
	bool any = false, json = c->json;

	lst_list_next(c);
	printf(json ? "{\"group\": \"%s\", \"nodes\": [" : "%s:", g->name);
	for (unsigned int i = 0; i < g->n; i++) {
		if (!(states & 1u << g->nodes[i].state))
			continue;
		print_node(json, !any, &g->nodes[i]);
		any = true;
	}
	fputs(json ? "]}" : "\n", stdout);
}

int lst_list_group(struct lst_console *c, const struct lst_words *w)
{
	const struct state *s = &c->state;
	const char *one = w->args[0];

	if (one && !state_group(&c->state, one))
		return lst_fail("there is no group %s", one);
	lst_list_begin(c, "groups");
	for (unsigned int i = 0; i < s->ngroups; i++)
		if (!one || strcmp(s->groups[i].name, one) == 0)
			print_group(c, &s->groups[i],
				    w->states ? w->states : NODES_ALL);
	lst_list_end(c);
	return 0;
}

/* ---- ping ---- */

static void ping_json(const struct lst_ask *ask, const char *nid,
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

static void ping_print(bool json, const struct lst_ask *ask,
		       enum node_state state)
{
	char nid[LNET_NIDSTR_SIZE], name[LST_LABEL_SIZE];

	lnet_nid_format(&ask->to.nid, nid, sizeof(nid));
	if (json)
		ping_json(ask, nid, node_states[state]);
	else if (!ask->status && !ask->reply.status)
		printf("%s: %s, session %s\n", nid, node_states[state],
		       lst_label(ask->reply.name, false, name));
	else
		printf("%s: %s\n", nid, node_states[state]);
}

static int ping_nodes(struct lst_console *c, const struct lst_words *w,
		      struct lst_nodes *nodes)
{
	struct state *s = &c->state;
	const struct state_batch *b;
	int status = 0;

	if (w->group)
		status = lst_nodes_add_group(nodes, s, w->group);
	if (w->nodes)
		status |= lst_nodes_add_nids(c, nodes, w->nodes);
	if (w->batch) {
		b = lst_batch_named(c, w->batch);
		if (!b)
			return FAILED;
		status |= lst_nodes_add_batch(nodes, s, b->name, false);
		if (w->server)
			status |= lst_nodes_add_batch(nodes, s, b->name, true);
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
	status = ping_nodes(c, w, &nodes);
	if (!status) {
		lst_nodes_ask(c, &nodes, &debug, w->ask);
		lst_list_begin(c, "nodes");
		for (unsigned int i = 0; i < nodes.n; i++) {
			lst_list_next(c);
			ping_print(c->json, &nodes.asks[i],
				   lst_node_state(c, &nodes.asks[i]));
		}
		lst_list_end(c);
		/* A node that is in no session answers with ESRCH, which is no
		 * failure. */
		status = lst_nodes_failed(&nodes, "ping", ESRCH);
	}
	free(nodes.asks);
	return status;
}
