/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lst(8): a console of LNet's self-test. Each command is a process of its own
 * with a node of its own; the state of the session is in a file between
 * commands (lst_state.c).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"
#include "tools/common/keys.h"
#include "tools/common/option.h"
#include "tools/common/node.h"
#include "tools/common/program.h"
#include "ulnet/keys.h"

static const char help_test[] =
	"\n"
	"TEST: ping, or brw [read|write] [check=none|simple|full] [size=SIZE] "
	"[off=SIZE]\n";

struct lst_tool {
	struct lst_console console;
	const struct lst_command *command;
	struct lst_words words;
	struct node_options options;
	struct keys_options keys;
	struct say say;
	struct node node;
	char **argv;
};

static int lst_no_command(const char *name)
{
	struct nearest near;

	option_wrong(WHO, "no such command: %s", name);
	nearest_init(&near, name);
	for (const struct lst_command *c = lst_commands; c->name; c++)
		nearest_try(&near, c->name);
	nearest_say(&near, "", stderr);
	fputs("See '" WHO " --help'.\n", stderr);
	return OPTION_USAGE;
}

static int print_command(const struct lst_command *c)
{
	printf("usage: " WHO " [OPTION]... %s%s%s\n", c->name,
	       *c->args ? " " : "", c->args);
	if (c->run == lst_add_test)
		fputs(help_test, stdout);
	return option_printed(WHO);
}

static int lst_take_help(const struct option_at *at);

static const struct option_row rows[] = {
	{ "json", 'j', NULL, "answers as JSON", .kind = OPTION_FLAG,
	  .at = offsetof(struct lst_tool, console.json) },
	{ "help", 'h', "COMMAND", "print this, or what a command has",
	  .kind = OPTION_CALL, .take = lst_take_help, .optional = true },
	{ "version", 'V', NULL, "print the version", .kind = OPTION_VERSION },
	{ 0 },
};

/* Keeps an option of the node for later commands of the session. A file's path
 * is kept as an absolute one, because these commands may run in another
 * directory. */
static int keep_option(void *arg, const struct option_at *at)
{
	struct lst_tool *t = arg;
	struct state *s = &t->console.state;
	const char *value = at->text;

	if (at->object != &t->options && at->object != &t->keys)
		return 0;
	if (strcmp(at->name, "config") == 0)
		value = t->options.config;
	if (strcmp(at->name, "keys") == 0)
		value = t->keys.folder;
	if (s->nargs == STATE_NODE_ARGS || strlen(value) >= STATE_VALUE ||
	    strpbrk(value, "\n"))
		return option_bad(at, "too long, or too many options");
	strcpy(s->args[s->nargs].option, at->name);
	strcpy(s->args[s->nargs++].value, value);
	return 0;
}

static struct option_set lst_options(struct lst_tool *t)
{
	return (struct option_set){
		.who = WHO,
		.see = WHO " --help",
		.head = "usage: lst [OPTION]... COMMAND [ARGUMENT]...\n"
			"Drives LNet's self-test on other nodes, in the "
			"session that $LST_SESSION names.\n\n",
		.tail = "\nThese options, given to new_session, hold for the "
			"session.\n\nCommands:\n",
		.parts = { { node_net_rows, &t->options },
			   { keys_rows, &t->keys },
			   { node_log_rows, &t->options },
			   { rows, t } },
		.in_order = true,
		.taken = keep_option,
		.arg = t,
		.words = "a command",
		.min = 1,
		.max = -1,
	};
}

static int lst_take_help(const struct option_at *at)
{
	struct lst_tool *t = at->object;
	const char *name = at->text ? at->text : t->argv[optind];
	const struct lst_command *one = name ? lst_command_find(name) : NULL;
	const struct option_set set = lst_options(t);

	if (name)
		return one ? print_command(one) : lst_no_command(name);
	options_help(&set, stdout);
	for (const struct lst_command *c = lst_commands; c->name; c++)
		printf("  %-12s %s\n", c->name, c->args);
	fputs(help_test, stdout);
	return option_printed(WHO);
}

static int lst_parse(struct lst_tool *t, int argc, char **argv)
{
	struct option_set set = lst_options(t);
	int status;

	t->argv = argv;
	status = options_parse(&set, argc, argv);
	if (status)
		return status;
	t->command = lst_command_find(set.args[0]);
	if (!t->command)
		return lst_no_command(set.args[0]);
	if (set.nargs > 1 && strcmp(set.args[1], "--help") == 0)
		return print_command(t->command);
	return lst_words_take(&t->words, t->command, set.nargs, set.args);
}

/* Takes an option that the session has kept. 0, or the exit status. */
static int take_kept(struct lst_tool *t, const char *name, const char *value)
{
	if (!strcmp(name, "keys") || !strcmp(name, "as"))
		return options_take(keys_rows, &t->keys, WHO, name, value);
	return options_take(strcmp(name, "log") ? node_net_rows : node_log_rows,
			    &t->options, WHO, name, value);
}

/* Sets up the node's options: those of this command line if there are any
 * (@given), else those of the session. */
static int node_args(struct lst_tool *t, bool given)
{
	struct state *s = &t->console.state;
	int status = 0;

	for (unsigned int i = 0; !given && i < s->nargs && !status; i++)
		status = take_kept(t, s->args[i].option, s->args[i].value);
	if (!status)
		status = keys_check(&t->keys, WHO);
	t->say = (struct say){ .who = WHO };
	node_options_log(&t->options);
	return status;
}

/* If the options name no network, the node starts without NIs: lst_ask_all()
 * adds those from which the nodes that it asks can be reached. */
static int start_node(struct lst_tool *t)
{
	const struct node_options *o = &t->options;
	int rc = keys_read(&t->keys, &t->say, &t->options.keys);

	if (!rc)
		rc = node_begin(&t->node, &t->options, &t->say, LNET_RUN_POLL);
	if (!rc)
		rc = node_control(&t->node);
	if (!rc)
		rc = node_configure(&t->node);
	if (rc)
		return 1;
	t->console.node = t->node.lnet;
	t->console.default_net = !o->nnets && !o->ip2nets && !o->config;
	lst_calls_init(&t->console.calls, t->node.lnet, LST_HOME);
	return 0;
}

/* Nodes that were named with ports in earlier commands still have them. */
static int use_ports(struct lst_console *c)
{
	int status = 0;

	for (unsigned int i = 0; i < c->state.nports && !status; i++)
		status = lst_port_use(c, &c->state.ports[i]);
	return status;
}

static int check_session(const struct lst_tool *t)
{
	const struct state *s = &t->console.state;

	if (t->command->makes)
		return 0;
	if (!s->exists)
		return lst_fail("there is no session %s: new_session makes one",
				getenv("LST_SESSION"));
	if (!state_expired(s) || t->command->run == lst_end_session)
		return 0;
	return lst_fail("the session %s has ended: no command for %u s, "
			"--timeout %u; new_session makes another one",
			s->name, s->idle, s->timeout);
}

static int run_command(struct lst_tool *t)
{
	struct state *s = &t->console.state;
	unsigned int given = s->nargs;
	bool ready;
	int status;

	if (state_open(s))
		return 1;
	/* Options of the node on this command line replace those of the
	 * session. */
	if (given)
		s->nargs = given;
	status = check_session(t);
	if (!status)
		status = node_args(t, given);
	if (!status && t->command->asks)
		status = start_node(t);
	if (!status && t->command->asks)
		status = use_ports(&t->console);
	ready = !status;
	if (ready)
		status = t->command->run(&t->console, &t->words);
	if (ready && t->console.json && !t->command->answers &&
	    status != OPTION_USAGE)
		printf("{\"command\": \"%s\", \"done\": %s}\n",
		       t->command->name, status ? "false" : "true");
	if (t->node.lnet)
		node_close(&t->node);
	if (ready && s->exists && state_save(s))
		status = 1;
	state_close(s);
	return status ? status : option_printed(WHO);
}

int main(int argc, char **argv)
{
	static struct lst_tool t;
	int status;

	if (secure_stdio())
		return 1;
	node_options_init(&t.options);
	t.options.accept = LNET_ACCEPT_NONE;
	status = lst_parse(&t, argc, argv);
	if (!status)
		status = run_command(&t);
	ulrpc_keys_put(t.options.keys);
	node_options_free(&t.options);
	keys_options_free(&t.keys);
	return status == OPTION_DONE ? 0 : status;
}
