/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of nodes: lst(8). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"
#include "lst_nodes.h"
#include "lst_words.h"

static const struct option options_none[] = { { 0 } };

/* Makes the session at those nodes that have none. */
static int nodes_make(struct lst_console *c, struct lst_nodes *nodes)
{
	struct lst_msg make = { .type = LST_MAKE,
				.make.force = c->state.force };
	int status = 0;

	strcpy(make.name, c->state.name);
	lst_nodes_ask(c, nodes, &make, ASK_S);
	for (unsigned int i = 0; i < nodes->n; i++) {
		struct lst_ask *ask = &nodes->asks[i];

		if (!ask->status && !ask->reply.status &&
		    ask->reply.features != LST_BYTES)
			ask->reply.status = EPROTO;
		status |= lst_node_failed(ask, "add_group", 0);
	}
	return status;
}

static bool nodes_good(const struct lst_nodes *nodes,
		       const struct ulnet_nid *nid)
{
	for (unsigned int i = 0; i < nodes->n; i++)
		if (lnet_nid_eq(&nodes->asks[i].to.nid, nid))
			return !nodes->asks[i].status &&
			       !nodes->asks[i].reply.status;
	return false;
}

/* In the order of the command line, by which tests are distributed: those that
 * have the session, or have got it. */
static int group_fill(struct lst_console *c, struct state_group *g,
		      const struct lst_nodes *all,
		      const struct lst_nodes *asked)
{
	for (unsigned int i = 0; i < all->n; i++) {
		const struct ulnet_nid *nid = &all->asks[i].to.nid;

		if (!state_has(&c->state, nid) && !nodes_good(asked, nid))
			continue;
		if (state_group_add(g, nid))
			return lst_fail(
				"group %s: a group has at most %u nodes",
				g->name, STATE_NODES);
	}
	return 0;
}

static int take_nids(const struct state *s, struct lst_nodes *all,
		     struct lst_nodes *ask, int argc, char **argv)
{
	struct ulnet_nid nid;
	int status = 0;

	for (int i = 0; i < argc && !status; i++) {
		if (lnet_nid_parse(argv[i], &nid) || lnet_nid_is_lo(&nid) ||
		    !lnet_nid_is_nid4(&nid))
			return lst_fail(
				"'%s': a NID with an address of 4 bytes "
				"is expected, like 10.0.0.1@tcp",
				argv[i]);
		status = lst_nodes_add(all, &nid);
		if (!status && !state_has(s, &nid))
			status = lst_nodes_add(ask, &nid);
	}
	return status;
}

int lst_add_group(struct lst_console *c, int argc, char **argv)
{
	struct state *s = &c->state;
	struct lst_nodes all = { 0 }, ask = { 0 };
	struct state_group group = { 0 };
	struct lst_words w;
	int status = lst_words_take(&w, options_none, argc, argv, 2, INT32_MAX);

	if (status)
		return status;
	if (lst_check_name("group", argv[optind]))
		return FAILED;
	if (state_group(s, argv[optind]))
		return lst_fail("there is a group %s already", argv[optind]);
	if (s->ngroups == STATE_GROUPS)
		return lst_fail("there are %u groups already", s->ngroups);
	strcpy(group.name, argv[optind]);
	status = take_nids(s, &all, &ask, argc - optind - 1, argv + optind + 1);
	if (!status) {
		status = nodes_make(c, &ask);
		status |= group_fill(c, &group, &all, &ask);
	}
	free(all.asks);
	free(ask.asks);
	if (group.n)
		s->groups[s->ngroups++] = group;
	return status;
}

static bool group_used(const struct state *s, const char *name)
{
	for (unsigned int i = 0; i < s->ntests; i++)
		if (strcmp(s->tests[i].from, name) == 0 ||
		    strcmp(s->tests[i].to, name) == 0)
			return true;
	return false;
}

int lst_del_group(struct lst_console *c, int argc, char **argv)
{
	struct lst_msg remove = { .type = LST_REMOVE };
	struct state *s = &c->state;
	struct lst_nodes nodes = { 0 };
	struct state_group *g, gone;
	struct lst_words w;
	int status = lst_words_take(&w, options_none, argc, argv, 1, 1);

	if (status)
		return status;
	g = state_group(s, argv[optind]);
	if (!g)
		return lst_fail("there is no group %s", argv[optind]);
	if (group_used(s, g->name))
		return lst_fail("group %s is in a test", g->name);
	gone = *g;
	g->nids = NULL;
	state_group_del(s, g);
	/* Nodes of other groups stay members. */
	for (unsigned int i = 0; i < gone.n && !status; i++)
		if (!state_has(s, &gone.nids[i]))
			status = lst_nodes_add(&nodes, &gone.nids[i]);
	lst_nodes_ask(c, &nodes, &remove, ASK_S);
	status |= lst_nodes_failed(&nodes, "del_group", ESRCH);
	free(nodes.asks);
	free(gone.nids);
	return status;
}

int lst_list_group(struct lst_console *c, int argc, char **argv)
{
	const struct state *s = &c->state;
	struct lst_words w;
	int status = lst_words_take(&w, options_none, argc, argv, 0, 1);
	char nid[LNET_NIDSTR_SIZE];
	const char *one, *comma = "";

	if (status)
		return status;
	one = argc > optind ? argv[optind] : NULL;
	if (one && !state_group(&c->state, one))
		return lst_fail("there is no group %s", one);
	fputs(c->json ? "{\"groups\": [" : "", stdout);
	for (unsigned int i = 0; i < s->ngroups; i++) {
		const struct state_group *g = &s->groups[i];

		if (one && strcmp(one, g->name) != 0)
			continue;
		printf(c->json ? "%s{\"group\": \"%s\", \"nodes\": [" : "%s%s:",
		       c->json ? comma : "", g->name);
		for (unsigned int k = 0; k < g->n; k++)
			printf(c->json ? "%s\"%s\"" : "%s%s",
			       !c->json ? " "
			       : k	? ", "
					: "",
			       lnet_nid_format(&g->nids[k], nid, sizeof(nid)));
		fputs(c->json ? "]}" : "\n", stdout);
		comma = ", ";
	}
	fputs(c->json ? "]}\n" : "", stdout);
	return 0;
}
