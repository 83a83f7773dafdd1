/* SPDX-License-Identifier: BSD-3-Clause */
/* What lst(8) does: each command asks the nodes it is about, all at once. */
#include "lst_command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "option.h"
#include "services/lst/list.h"

#define WHO	  "lst"
#define FAILED	  1
#define ASK_S	  30 /* until a node has to have answered */
#define STOP_S	  60
#define SECOND_US UINT64_C(1000000)

/* The nodes that a command is about, and what they say. */
struct nodes {
	unsigned int n;
	struct lst_ask *asks;
};

static int usage(const char *command, const char *what)
{
	fprintf(stderr, WHO ": %s: %s\nSee '" WHO " --help'.\n", command, what);
	return OPTION_USAGE;
}

__attribute__((format(printf, 1, 2))) static int fail(const char *fmt, ...)
{
	va_list ap;

	fputs(WHO ": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return FAILED;
}

/* ---- nodes ---- */

static int nodes_add(struct nodes *nodes, const struct ulnet_nid *nid)
{
	struct lst_ask *asks;

	for (unsigned int i = 0; i < nodes->n; i++)
		if (lnet_nid_eq(&nodes->asks[i].to.nid, nid))
			return 0;
	asks = realloc(nodes->asks, (nodes->n + 1) * sizeof(*asks));
	if (!asks)
		return fail("%s", strerror(ENOMEM));
	nodes->asks = asks;
	asks[nodes->n++] = (struct lst_ask){ .to = { *nid, LNET_PID_LUSTRE } };
	return 0;
}

static int nodes_add_group(struct nodes *nodes, struct state *s,
			   const char *name)
{
	const struct state_group *g = state_group(s, name);
	int status = 0;

	if (!g)
		return fail("there is no group %s", name);
	for (unsigned int i = 0; i < g->n && !status; i++)
		status = nodes_add(nodes, &g->nids[i]);
	return status;
}

/* Those that send in tests of a batch; with NULL of any batch. */
static int nodes_add_clients(struct nodes *nodes, struct state *s,
			     const char *batch)
{
	int status = 0;

	for (unsigned int i = 0; i < s->ntests && !status; i++)
		if (!batch || strcmp(s->tests[i].batch, batch) == 0)
			status = nodes_add_group(nodes, s, s->tests[i].from);
	return status;
}

static void nodes_ask(struct lst_console *c, struct nodes *nodes,
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

/* Says which node did not do it. @also: a status that is as good as 0. */
static int node_failed(const struct lst_ask *ask, const char *what,
		       uint32_t also)
{
	char nid[LNET_NIDSTR_SIZE];

	if (!ask->status && (!ask->reply.status || ask->reply.status == also))
		return 0;
	lnet_nid_format(&ask->to.nid, nid, sizeof(nid));
	if (ask->status)
		return fail("%s: %s: no answer: %s", what, nid,
			    strerror(-ask->status));
	if (ask->reply.type == LST_MAKE_REPLY && ask->reply.status == EBUSY)
		return fail("%s: %s: belongs to the session %s; to take it "
			    "away: new_session --force",
			    what, nid, ask->reply.name);
	return fail("%s: %s: %s", what, nid, status_text(ask->reply.status));
}

static int nodes_failed(const struct nodes *nodes, const char *what,
			uint32_t also)
{
	int status = 0;

	for (unsigned int i = 0; i < nodes->n; i++)
		status |= node_failed(&nodes->asks[i], what, also);
	return status;
}

/* ---- options ---- */

/* What a command may have; the words after them are left in argv. */
struct words {
	bool force, wait;
	unsigned int delay, count, concurrency, loop;
	const char *batch, *from, *to, *distribute;
};

enum {
	OPT_FORCE = 256,
	OPT_WAIT,
	OPT_DELAY,
	OPT_COUNT,
	OPT_CONCURRENCY,
	OPT_LOOP,
	OPT_BATCH,
	OPT_FROM,
	OPT_TO,
	OPT_DISTRIBUTE
};

static const struct option options_force[] = {
	{ "force", no_argument, NULL, OPT_FORCE },
	{ 0 },
};
static const struct option options_wait[] = {
	{ "wait", no_argument, NULL, OPT_WAIT },
	{ 0 },
};
static const struct option options_stat[] = {
	{ "delay", required_argument, NULL, OPT_DELAY },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ 0 },
};
static const struct option options_test[] = {
	{ "batch", required_argument, NULL, OPT_BATCH },
	{ "loop", required_argument, NULL, OPT_LOOP },
	{ "concurrency", required_argument, NULL, OPT_CONCURRENCY },
	{ "distribute", required_argument, NULL, OPT_DISTRIBUTE },
	{ "from", required_argument, NULL, OPT_FROM },
	{ "to", required_argument, NULL, OPT_TO },
	{ 0 },
};
static const struct option options_none[] = { { 0 } };

static int take_option(struct words *w, int option, const char *value)
{
	switch (option) {
	case OPT_FORCE:
		w->force = true;
		return 0;
	case OPT_WAIT:
		w->wait = true;
		return 0;
	case OPT_DELAY:
		return option_number(WHO, "delay", value, 1, 60, &w->delay);
	case OPT_COUNT:
		return option_number(WHO, "count", value, 1, 1000000000,
				     &w->count);
	case OPT_CONCURRENCY:
		return option_number(WHO, "concurrency", value, 1, 1024,
				     &w->concurrency);
	case OPT_LOOP:
		return option_number(WHO, "loop", value, 1, INT32_MAX,
				     &w->loop);
	case OPT_BATCH:
		w->batch = value;
		return 0;
	case OPT_FROM:
		w->from = value;
		return 0;
	case OPT_TO:
		w->to = value;
		return 0;
	case OPT_DISTRIBUTE:
		w->distribute = value;
		return 0;
	}
	fputs("See '" WHO " --help'.\n", stderr); /* getopt said why */
	return OPTION_USAGE;
}

/* Reads options, which may stand anywhere; from *@first_p on there are @min to
 * @max words. */
static int take_words(struct words *w, const struct option *options, int argc,
		      char **argv, int min, int max)
{
	const char *command = argv[0];
	char program[] = WHO;
	int option, status = 0;

	*w = (struct words){ .delay = 5, .concurrency = 1 };
	argv[0] = program;
	optind = 0;
	while (!status &&
	       (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		status = take_option(w, option, optarg);
	argv[0] = (char *)command;
	if (status)
		return status;
	if (argc - optind < min)
		return usage(command, "arguments are missing");
	if (argc - optind > max)
		return usage(command, "too many arguments");
	return 0;
}

static int check_name(const char *what, const char *name)
{
	if (state_name_good(name))
		return 0;
	return fail("%s '%s': 1 to 31 letters, digits, or one of . _ - are "
		    "expected",
		    what, name);
}

/* ---- sessions ---- */

static int new_session(struct lst_console *c, int argc, char **argv)
{
	struct state *s = &c->state;
	struct words w;
	struct ulnet_id id;
	int status = take_words(&w, options_force, argc, argv, 0, 1);
	const char *name = argc > optind ? argv[optind] : getenv("USER");

	if (status)
		return status;
	name = name ? name : "session";
	if (check_name("session", name))
		return FAILED;
	if (s->exists)
		return fail("there is a session already: %s; end_session ends "
			    "it",
			    s->name);
	/* The first NID that is not 0@lo. */
	for (unsigned int i = 0;; i++) {
		if (LNetGetId(c->node, i, &id))
			return fail("no network with addresses of 4 bytes: "
				    "--net is needed, like --net 'tcp(eth0)'");
		if (!lnet_nid_is_lo(&id.nid) && lnet_nid_is_nid4(&id.nid))
			break;
	}
	strcpy(s->name, name);
	s->console = lnet_nid_to_nid4(&id.nid);
	s->stamp = (int64_t)(lnet_now(c->node, LST_HOME) / 1000000);
	s->force = w.force;
	s->next_batch = 1;
	s->exists = true;
	return 0;
}

/* Asks again and again until no client of @batch is running. */
static int await_idle(struct lst_console *c, const char *batch, uint64_t id,
		      bool stop, bool say)
{
	struct lst_msg query = { .type = LST_BATCH,
				 .batch = { .id = id, .op = LST_QUERY } };
	struct nodes nodes = { 0 };
	int status = nodes_add_clients(&nodes, &c->state, batch);

	for (unsigned int s = 0; !status; s++) {
		unsigned int busy = 0;

		nodes_ask(c, &nodes, &query, ASK_S);
		status = nodes_failed(&nodes, batch, stop ? ESRCH : 0);
		for (unsigned int i = 0; i < nodes.n; i++)
			busy += nodes.asks[i].reply.batch.active > 0;
		if (status || !busy)
			break;
		if (say)
			fprintf(stderr, WHO ": %s: %u of %u nodes are busy\n",
				batch, busy, nodes.n);
		if (stop && s == STOP_S)
			status = fail("%s: does not stop", batch);
		lst_ask_wait(&c->calls, SECOND_US);
	}
	free(nodes.asks);
	return status;
}

static int batch_stop(struct lst_console *c, const struct state_batch *b,
		      bool force)
{
	struct lst_msg stop = {
		.type = LST_BATCH,
		.batch = { .id = b->id, .op = LST_STOP, .arg = force }
	};
	struct nodes nodes = { 0 };
	int status = nodes_add_clients(&nodes, &c->state, b->name);

	if (!status) {
		nodes_ask(c, &nodes, &stop, ASK_S);
		status = nodes_failed(&nodes, b->name, ESRCH);
	}
	free(nodes.asks);
	return status ? status : await_idle(c, b->name, b->id, true, false);
}

/* Members are let go only when they have stopped: kernel nodes hang else. */
static int end_session(struct lst_console *c, int argc, char **argv)
{
	struct lst_msg remove = { .type = LST_REMOVE };
	struct state *s = &c->state;
	struct nodes nodes = { 0 };
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 0, 0);

	if (status)
		return status;
	for (unsigned int i = 0; i < s->nbatches; i++)
		status |= batch_stop(c, &s->batches[i], false);
	for (unsigned int i = 0; i < s->ngroups; i++)
		status |= nodes_add_group(&nodes, s, s->groups[i].name);
	nodes_ask(c, &nodes, &remove, ASK_S);
	status |= nodes_failed(&nodes, "end_session", ESRCH);
	free(nodes.asks);
	s->exists = false;
	return status;
}

static int show_session(struct lst_console *c, int argc, char **argv)
{
	struct lst_session_id id = { c->state.console, c->state.stamp };
	struct ulnet_nid nid = lnet_nid_from_nid4(id.console);
	char text[LNET_NIDSTR_SIZE];
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 0, 0);

	if (status)
		return status;
	lnet_nid_format(&nid, text, sizeof(text));
	printf(c->json ? "{\"session\": \"%s\", \"console\": \"%s\", "
			 "\"stamp\": %" PRId64 "}\n"
		       : "%s: console %s, stamp %" PRId64 "\n",
	       c->state.name, text, id.stamp);
	return 0;
}

/* ---- groups ---- */

/* Makes the session at those nodes that have none. */
static int nodes_make(struct lst_console *c, struct nodes *nodes)
{
	struct lst_msg make = { .type = LST_MAKE,
				.make.force = c->state.force };
	int status = 0;

	strcpy(make.name, c->state.name);
	nodes_ask(c, nodes, &make, ASK_S);
	for (unsigned int i = 0; i < nodes->n; i++) {
		struct lst_ask *ask = &nodes->asks[i];

		if (!ask->status && !ask->reply.status &&
		    ask->reply.features != LST_BYTES)
			ask->reply.status = EPROTO;
		status |= node_failed(ask, "add_group", 0);
	}
	return status;
}

static bool nodes_good(const struct nodes *nodes, const struct ulnet_nid *nid)
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
		      const struct nodes *all, const struct nodes *asked)
{
	for (unsigned int i = 0; i < all->n; i++) {
		const struct ulnet_nid *nid = &all->asks[i].to.nid;

		if (!state_has(&c->state, nid) && !nodes_good(asked, nid))
			continue;
		if (state_group_add(g, nid))
			return fail("group %s: a group has at most %u nodes",
				    g->name, STATE_NODES);
	}
	return 0;
}

static int take_nids(const struct state *s, struct nodes *all,
		     struct nodes *ask, int argc, char **argv)
{
	struct ulnet_nid nid;
	int status = 0;

	for (int i = 0; i < argc && !status; i++) {
		if (lnet_nid_parse(argv[i], &nid) || lnet_nid_is_lo(&nid) ||
		    !lnet_nid_is_nid4(&nid))
			return fail("'%s': a NID with an address of 4 bytes "
				    "is expected, like 10.0.0.1@tcp",
				    argv[i]);
		status = nodes_add(all, &nid);
		if (!status && !state_has(s, &nid))
			status = nodes_add(ask, &nid);
	}
	return status;
}

static int add_group(struct lst_console *c, int argc, char **argv)
{
	struct state *s = &c->state;
	struct nodes all = { 0 }, ask = { 0 };
	struct state_group group = { 0 };
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 2, INT32_MAX);

	if (status)
		return status;
	if (check_name("group", argv[optind]))
		return FAILED;
	if (state_group(s, argv[optind]))
		return fail("there is a group %s already", argv[optind]);
	if (s->ngroups == STATE_GROUPS)
		return fail("there are %u groups already", s->ngroups);
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

static int del_group(struct lst_console *c, int argc, char **argv)
{
	struct lst_msg remove = { .type = LST_REMOVE };
	struct state *s = &c->state;
	struct nodes nodes = { 0 };
	struct state_group *g, gone;
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 1, 1);

	if (status)
		return status;
	g = state_group(s, argv[optind]);
	if (!g)
		return fail("there is no group %s", argv[optind]);
	if (group_used(s, g->name))
		return fail("group %s is in a test", g->name);
	gone = *g;
	g->nids = NULL;
	state_group_del(s, g);
	/* Nodes of other groups stay members. */
	for (unsigned int i = 0; i < gone.n && !status; i++)
		if (!state_has(s, &gone.nids[i]))
			status = nodes_add(&nodes, &gone.nids[i]);
	nodes_ask(c, &nodes, &remove, ASK_S);
	status |= nodes_failed(&nodes, "del_group", ESRCH);
	free(nodes.asks);
	free(gone.nids);
	return status;
}

static int list_group(struct lst_console *c, int argc, char **argv)
{
	const struct state *s = &c->state;
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 0, 1);
	char nid[LNET_NIDSTR_SIZE];
	const char *one, *comma = "";

	if (status)
		return status;
	one = argc > optind ? argv[optind] : NULL;
	if (one && !state_group(&c->state, one))
		return fail("there is no group %s", one);
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

/* ---- batches ---- */

static int add_batch(struct lst_console *c, int argc, char **argv)
{
	struct state *s = &c->state;
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 1, 1);

	if (status)
		return status;
	if (check_name("batch", argv[optind]))
		return FAILED;
	if (state_batch(s, argv[optind]))
		return fail("there is a batch %s already", argv[optind]);
	if (s->nbatches == STATE_BATCHES)
		return fail("there are %u batches already", s->nbatches);
	strcpy(s->batches[s->nbatches].name, argv[optind]);
	s->batches[s->nbatches++].id = s->next_batch++;
	return 0;
}

/* The one that is named, or the only one there is. */
static struct state_batch *batch_named(struct lst_console *c, const char *name)
{
	struct state_batch *b;

	if (!name && c->state.nbatches == 1)
		return &c->state.batches[0];
	b = name ? state_batch(&c->state, name) : NULL;
	if (!b)
		fail(name ? "there is no batch %s" : "which batch?%s",
		     name ? name : "");
	return b;
}

static int list_batch(struct lst_console *c, int argc, char **argv)
{
	const struct state *s = &c->state;
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 0, 0);

	if (status)
		return status;
	fputs(c->json ? "{\"batches\": [" : "", stdout);
	for (unsigned int i = 0; i < s->nbatches; i++) {
		const char *name = s->batches[i].name, *comma = "";

		printf(c->json ? "%s{\"batch\": \"%s\", \"tests\": ["
			       : "%s%s:\n",
		       c->json && i ? ", " : "", name);
		for (unsigned int k = 0; k < s->ntests; k++) {
			const struct state_test *t = &s->tests[k];

			if (strcmp(t->batch, name) != 0)
				continue;
			printf(c->json ? "%s{\"from\": \"%s\", \"to\": \"%s\", "
					 "\"test\": \"%s\"}"
				       : "%s    from %s to %s: %s\n",
			       c->json ? comma : "", t->from, t->to, t->text);
			comma = ", ";
		}
		fputs(c->json ? "]}" : "", stdout);
	}
	fputs(c->json ? "]}\n" : "", stdout);
	return 0;
}

static int run(struct lst_console *c, int argc, char **argv)
{
	struct lst_msg start = { .type = LST_BATCH, .batch.op = LST_RUN };
	struct nodes nodes = { 0 };
	struct state_batch *b;
	struct words w;
	int status = take_words(&w, options_wait, argc, argv, 0, 1);

	if (status)
		return status;
	b = batch_named(c, argv[optind]);
	if (!b)
		return FAILED;
	start.batch.id = b->id;
	status = nodes_add_clients(&nodes, &c->state, b->name);
	if (!status && !nodes.n)
		status = fail("batch %s has no tests", b->name);
	if (!status) {
		nodes_ask(c, &nodes, &start, ASK_S);
		status = nodes_failed(&nodes, b->name, 0);
	}
	free(nodes.asks);
	if (!status && w.wait)
		status = await_idle(c, b->name, b->id, false, true);
	return status;
}

static int stop(struct lst_console *c, int argc, char **argv)
{
	struct state_batch *b;
	struct words w;
	int status = take_words(&w, options_force, argc, argv, 0, 1);

	if (status)
		return status;
	b = batch_named(c, argv[optind]);
	return b ? batch_stop(c, b, w.force) : FAILED;
}

static int query(struct lst_console *c, int argc, char **argv)
{
	struct lst_msg msg = { .type = LST_BATCH, .batch.op = LST_QUERY };
	struct nodes nodes = { 0 };
	struct state_batch *b;
	struct words w;
	char nid[LNET_NIDSTR_SIZE];
	int status = take_words(&w, options_none, argc, argv, 0, 1);

	if (status)
		return status;
	b = batch_named(c, argv[optind]);
	if (!b)
		return FAILED;
	msg.batch.id = b->id;
	status = nodes_add_clients(&nodes, &c->state, b->name);
	nodes_ask(c, &nodes, &msg, ASK_S);
	status |= nodes_failed(&nodes, b->name, 0);
	fputs(c->json ? "{\"nodes\": [" : "", stdout);
	for (unsigned int i = 0; i < nodes.n; i++) {
		const struct lst_ask *ask = &nodes.asks[i];

		if (ask->status || ask->reply.status)
			continue;
		printf(c->json ? "%s{\"nid\": \"%s\", \"running\": %u}"
			       : "%s%s: %u tests are running\n",
		       c->json && i ? ", " : "",
		       lnet_nid_format(&ask->to.nid, nid, sizeof(nid)),
		       ask->reply.batch.active);
	}
	fputs(c->json ? "]}\n" : "", stdout);
	free(nodes.asks);
	return status;
}

/* ---- tests ---- */

static bool word_is(const char *word, const char *key, const char **value_p)
{
	size_t length = strlen(key);

	if (strncmp(word, key, length) != 0 || word[length] != '=')
		return false;
	*value_p = word + length + 1;
	return true;
}

static int take_check(const char *value, uint32_t *check_p)
{
	static const char *const words[] = { NULL, "none", "simple", "full" };
	unsigned int check;
	int status = option_word(WHO, "check", value, words, 4,
				 "none, simple or full", &check);

	if (!status)
		*check_p = check;
	return status;
}

/* Kernel nodes crash over sizes and offsets that this refuses. */
static int take_brw(struct lst_brw_params *brw, int argc, char **argv)
{
	uint64_t size = LST_PAGE_SIZE, off = 0;
	const char *value;
	int status = 0;

	*brw = (struct lst_brw_params){ .opcode = LST_READ,
					.flags = LST_CHECK_NONE };
	for (int i = 0; i < argc && !status; i++) {
		if (strcmp(argv[i], "read") == 0 || strcmp(argv[i], "r") == 0)
			brw->opcode = LST_READ;
		else if (strcmp(argv[i], "write") == 0 ||
			 strcmp(argv[i], "w") == 0)
			brw->opcode = LST_WRITE;
		else if (word_is(argv[i], "check", &value))
			status = take_check(value, &brw->flags);
		else if (word_is(argv[i], "size", &value))
			status = option_size(WHO, "size", value, 8, LNET_MTU,
					     &size);
		else if (word_is(argv[i], "off", &value))
			status = option_size(WHO, "off", value, 0,
					     LST_PAGE_SIZE - 8, &off);
		else
			status = usage("add_test", "brw has read, write, "
						   "check=, size=, off=");
	}
	if (status)
		return status;
	if (size % 8 || off % 8)
		return usage("add_test", "size and off: multiples of 8");
	if (off + size >
	    (size + LST_PAGE_SIZE - 1) / LST_PAGE_SIZE * LST_PAGE_SIZE)
		return usage("add_test", "off: what begins there has to end in "
					 "as many pages of 4096 bytes as size "
					 "has");
	brw->length = (uint32_t)size;
	brw->offset = (uint32_t)off;
	return 0;
}

static int take_test(struct lst_msg *msg, const struct words *w, int argc,
		     char **argv)
{
	*msg = (struct lst_msg){ .type = LST_TEST,
				 .test = { .loop = w->loop ? w->loop
							   : UINT32_MAX,
					   .concurrency = w->concurrency,
					   .stop_on_error = 1 } };
	if (strcmp(argv[0], "ping") == 0) {
		msg->test.service = LST_SERVICE_PING;
		return argc > 1 ? usage("add_test", "ping has no arguments")
				: 0;
	}
	msg->test.service = LST_SERVICE_BRW;
	if (strcmp(argv[0], "brw") != 0)
		return usage("add_test", "the test is ping or brw");
	return take_brw(&msg->test.brw, argc - 1, argv + 1);
}

/* --distribute D:S: D clients have the same S servers. */
static int take_distribute(const char *text, unsigned int servers,
			   unsigned int *d, unsigned int *s)
{
	char end;

	*d = *s = 1;
	if (text && sscanf(text, "%u:%u%c", d, s, &end) != 2)
		*d = 0;
	if (*d && *d <= 1024 && *s && *s <= servers && *s <= LST_LIST_WHOLE)
		return 0;
	return fail("--distribute %s: CLIENTS:SERVERS is expected, of which "
		    "the group has %u servers, and a test at most %u",
		    text ? text : "1:1", servers, LST_LIST_WHOLE);
}

static int test_servers(struct lst_console *c, const struct state_group *to,
			const struct lst_msg *test, uint32_t wanted)
{
	struct lst_msg msg = *test;
	struct nodes nodes = { 0 };
	int status = nodes_add_group(&nodes, &c->state, to->name);

	msg.test.loop = wanted;
	if (!status) {
		nodes_ask(c, &nodes, &msg, ASK_S);
		status = nodes_failed(&nodes, "add_test", 0);
	}
	free(nodes.asks);
	return status;
}

/* Each client fetches its list of servers. */
static int test_clients(struct lst_console *c, const struct state_group *from,
			const struct state_group *to,
			const struct lst_msg *test, unsigned int d,
			unsigned int s)
{
	struct lst_msg msg = *test;
	struct nodes nodes = { 0 };
	struct ulnet_id ids[LST_LIST_WHOLE];
	uint8_t *lists = malloc((size_t)from->n * s * LST_RECORD_SIZE);
	int status = nodes_add_group(&nodes, &c->state, from->name);

	if (!lists)
		status = fail("%s", strerror(ENOMEM));
	for (unsigned int i = 0; i < nodes.n && !status; i++) {
		uint8_t *list = lists + (size_t)i * s * LST_RECORD_SIZE;

		for (unsigned int k = 0; k < s; k++)
			ids[k] = (struct ulnet_id){
				to->nids[(i / d * s + k) % to->n],
				LNET_PID_LUSTRE
			};
		lst_list_encode(ids, s, list);
		nodes.asks[i].bulk = (struct lst_bulk){ LNET_MD_OP_GET, list,
							s * LST_RECORD_SIZE };
	}
	msg.test.is_client = 1;
	msg.test.targets = s;
	if (!status) {
		nodes_ask(c, &nodes, &msg, ASK_S);
		status = nodes_failed(&nodes, "add_test", 0);
	}
	free(nodes.asks);
	free(lists);
	return status;
}

static void note_test(struct state *s, const struct words *w,
		      const struct state_batch *b, int argc, char **argv)
{
	struct state_test *t = &s->tests[s->ntests++];
	size_t at = 0;

	strcpy(t->batch, b->name);
	strcpy(t->from, w->from);
	strcpy(t->to, w->to);
	for (int i = 0; i < argc && at < sizeof(t->text) - 1; i++)
		at += (size_t)snprintf(t->text + at, sizeof(t->text) - at,
				       "%s%s", i ? " " : "", argv[i]);
}

static int add_test(struct lst_console *c, int argc, char **argv)
{
	struct state *st = &c->state;
	const struct state_group *from, *to;
	struct state_batch *b;
	struct lst_msg msg;
	struct words w;
	unsigned int d, s, clients;
	int status = take_words(&w, options_test, argc, argv, 1, 8);

	if (!status)
		status = take_test(&msg, &w, argc - optind, argv + optind);
	if (status)
		return status;
	if (!w.from || !w.to)
		return usage("add_test", "--from and --to are needed");
	b = batch_named(c, w.batch);
	from = state_group(st, w.from);
	to = state_group(st, w.to);
	if (!b)
		return FAILED;
	if (!from || !to)
		return fail("there is no group %s", from ? w.to : w.from);
	if (st->ntests == STATE_TESTS)
		return fail("there are %u tests already", st->ntests);
	status = take_distribute(w.distribute, to->n, &d, &s);
	if (status)
		return status;
	msg.test.batch = b->id;
	clients = (from->n + d - 1) / d;
	status = test_servers(c, to, &msg,
			      (clients + to->n / s - 1) / (to->n / s) * d *
				      w.concurrency);
	if (!status)
		status = test_clients(c, from, to, &msg, d, s);
	if (!status)
		note_test(st, &w, b, argc - optind, argv + optind);
	return status;
}

/* ---- counters ---- */

struct round {
	bool known;
	struct lst_counters stat;
};

static double per_second(uint64_t now, uint64_t before, uint32_t ms)
{
	return ms ? (double)(now - before) * 1000 / ms : 0;
}

static void print_rates(const struct lst_console *c, const char *nid,
			const struct lst_counters *a,
			const struct lst_counters *b)
{
	uint32_t ms = b->running_ms - a->running_ms;
	/* Counters of 32 bits wrap. */
	double in = per_second(b->recv_count - a->recv_count, 0, ms);
	double out = per_second(b->send_count - a->send_count, 0, ms);
	double in_bytes = per_second(b->recv_length, a->recv_length, ms);
	double out_bytes = per_second(b->send_length, a->send_length, ms);

	if (c->json)
		printf("{\"nid\": \"%s\", \"ms\": %u, "
		       "\"received_per_s\": %.1f, \"sent_per_s\": %.1f, "
		       "\"received_bytes_per_s\": %.0f, "
		       "\"sent_bytes_per_s\": %.0f}\n",
		       nid, ms, in, out, in_bytes, out_bytes);
	else
		printf("%s: received %.0f messages/s, %.2f MiB/s; "
		       "sent %.0f messages/s, %.2f MiB/s\n",
		       nid, in, in_bytes / 1048576, out, out_bytes / 1048576);
}

static int nodes_add_words(struct lst_console *c, struct nodes *nodes, int argc,
			   char **argv)
{
	int status = 0;

	for (int i = optind; i < argc && !status; i++)
		status = nodes_add_group(nodes, &c->state, argv[i]);
	return status;
}

static int stat_round(struct lst_console *c, struct nodes *nodes,
		      struct round *rounds)
{
	const struct lst_msg ask = { .type = LST_STAT };
	char nid[LNET_NIDSTR_SIZE];
	int status;

	nodes_ask(c, nodes, &ask, ASK_S);
	status = nodes_failed(nodes, "stat", 0);
	for (unsigned int i = 0; i < nodes->n; i++) {
		const struct lst_ask *a = &nodes->asks[i];
		bool good = !a->status && !a->reply.status;

		lnet_nid_format(&a->to.nid, nid, sizeof(nid));
		if (good && rounds[i].known)
			print_rates(c, nid, &rounds[i].stat, &a->reply.stat);
		rounds[i].known = good;
		if (good)
			rounds[i].stat = a->reply.stat;
	}
	fflush(stdout);
	return status;
}

static int stat(struct lst_console *c, int argc, char **argv)
{
	struct nodes nodes = { 0 };
	struct round *rounds;
	struct words w;
	int status = take_words(&w, options_stat, argc, argv, 1, INT32_MAX);

	if (!status)
		status = nodes_add_words(c, &nodes, argc, argv);
	rounds = calloc(nodes.n + 1, sizeof(*rounds));
	if (!status && rounds)
		status = stat_round(c, &nodes, rounds);
	for (unsigned int i = 0; !status && rounds && (!w.count || i < w.count);
	     i++) {
		lst_ask_wait(&c->calls, w.delay * SECOND_US);
		status = stat_round(c, &nodes, rounds);
	}
	free(rounds);
	free(nodes.asks);
	return status;
}

static int show_error(struct lst_console *c, int argc, char **argv)
{
	const struct lst_msg ask = { .type = LST_STAT };
	struct nodes nodes = { 0 };
	char nid[LNET_NIDSTR_SIZE];
	struct words w;
	int status = take_words(&w, options_none, argc, argv, 1, INT32_MAX);
	unsigned int bad = 0;

	if (!status)
		status = nodes_add_words(c, &nodes, argc, argv);
	nodes_ask(c, &nodes, &ask, ASK_S);
	status |= nodes_failed(&nodes, "show_error", 0);
	for (unsigned int i = 0; i < nodes.n; i++) {
		const struct lst_counters *s = &nodes.asks[i].reply.stat;

		if (nodes.asks[i].status || nodes.asks[i].reply.status)
			continue;
		if (!s->brw_errors && !s->ping_errors && !s->errors)
			continue;
		bad++;
		printf(c->json ? "{\"nid\": \"%s\", \"brw_errors\": %u, "
				 "\"ping_errors\": %u, \"errors\": %u, "
				 "\"dropped\": %u, \"expired\": %u}\n"
			       : "%s: brw errors %u, ping errors %u; RPCs: "
				 "errors %u, dropped %u, expired %u\n",
		       lnet_nid_format(&nodes.asks[i].to.nid, nid, sizeof(nid)),
		       s->brw_errors, s->ping_errors, s->errors,
		       s->rpcs_dropped, s->rpcs_expired);
	}
	if (!status && !c->json)
		printf("%u of %u nodes have errors\n", bad, nodes.n);
	free(nodes.asks);
	return status;
}

/* ---- the list ---- */

const struct lst_command lst_commands[] = {
	{ "new_session", "[--force] [NAME]", true, true, new_session },
	{ "end_session", "", false, true, end_session },
	{ "show_session", "", false, false, show_session },
	{ "add_group", "NAME NID...", false, true, add_group },
	{ "del_group", "NAME", false, true, del_group },
	{ "list_group", "[NAME]", false, false, list_group },
	{ "add_batch", "NAME", false, false, add_batch },
	{ "list_batch", "", false, false, list_batch },
	{ "add_test",
	  "[--batch NAME] [--loop N] [--concurrency N]\n"
	  "              [--distribute C:S] --from GROUP --to GROUP TEST",
	  false, true, add_test },
	{ "run", "[--wait] [BATCH]", false, true, run },
	{ "stop", "[--force] [BATCH]", false, true, stop },
	{ "query", "[BATCH]", false, true, query },
	{ "stat", "[--delay S] [--count N] GROUP...", false, true, stat },
	{ "show_error", "GROUP...", false, true, show_error },
	{ 0 },
};
