/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions: lst(8). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"
#include "lst_nodes.h"

/* Members are let go only when they have stopped: kernel nodes hang else. */
static int session_end(struct lst_console *c)
{
	struct state *s = &c->state;
	struct lst_nodes nodes = { 0 };
	int status = 0;

	for (unsigned int i = 0; i < s->nbatches; i++)
		status |= lst_batch_stop(c, &s->batches[i], false);
	for (unsigned int i = 0; i < s->ngroups; i++)
		status |= lst_nodes_add_group(&nodes, s, s->groups[i].name);
	lst_nodes_keep(&nodes, s, NODES_MEMBERS);
	status |= lst_nodes_remove(c, &nodes, "end_session");
	free(nodes.asks);
	state_clear(s);
	return status;
}

int lst_new_session(struct lst_console *c, const struct lst_words *w)
{
	struct state *s = &c->state;
	struct ulnet_id id;
	const char *name = w->n ? w->args[0] : getenv("USER");

	name = name ? name : "session";
	if (lst_check_label(name))
		return FAILED;
	if (state_expired(s))
		session_end(c);
	if (s->exists)
		return lst_fail(
			"there is a session already: %s; end_session ends "
			"it",
			s->name);
	/* The first NID that is not 0@lo. */
	for (unsigned int i = 0;; i++) {
		if (LNetGetId(c->node, i, &id))
			return lst_fail(
				"no network with addresses of 4 bytes: "
				"--net is needed, like --net 'tcp(eth0)'");
		if (!lnet_nid_is_lo(&id.nid) && lnet_nid_is_nid4(&id.nid))
			break;
	}
	state_name_copy(s->name, name);
	s->console = lnet_nid_to_nid4(&id.nid);
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
