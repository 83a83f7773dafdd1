/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lst(8): a console of LNet's self-test. Each command is a process, and a node
 * of its own; what lasts is in a file (lst_state.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lst_command.h"
#include "lst_words.h"
#include "tools/common/nearest.h"
#include "tools/common/node.h"
#include "tools/common/option.h"
#include "tools/common/secure.h"

static const char help_head[] =
	"usage: lst [OPTION]... COMMAND [ARGUMENT]...\n"
	"Drives LNet's self-test on other nodes, in the session that "
	"$LST_SESSION names.\n"
	"\n" NODE_HELP_NETS "  -j, --json                   answers as JSON\n"
	"  -l, --log LEVEL              err, warn (default), info or debug\n"
	"  -h, --help [COMMAND]         print this, or what a command has\n"
	"  -V, --version                print the version\n"
	"\n"
	"These options, given to new_session, hold for the session.\n"
	"\n"
	"Commands:\n";
static const char help_test[] =
	"\n"
	"TEST: ping, or brw [read|write] [check=none|simple|full] [size=SIZE] "
	"[off=SIZE]\n";

static const struct option options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "net", required_argument, NULL, 'n' },
	{ "ip2nets", required_argument, NULL, NODE_IP2NETS },
	{ "routes", required_argument, NULL, NODE_ROUTES },
	{ "port", required_argument, NULL, 'p' },
	{ "accept", required_argument, NULL, 'a' },
	{ "log", required_argument, NULL, 'l' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

struct lst_tool {
	struct lst_console console;
	const struct lst_command *command;
	struct node_options options;
	struct say say;
	struct node node;
};

static int flushed(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	perror(WHO ": stdout");
	return 1;
}

static const struct lst_command *command_named(const char *name)
{
	const struct lst_command *c = lst_commands;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}

static int no_command(const char *name)
{
	struct nearest near;

	fprintf(stderr, WHO ": no such command: %s\n", name);
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
	return flushed();
}

/* @name NULL: of all commands. */
static int print_help(const char *name)
{
	const struct lst_command *one = name ? command_named(name) : NULL;

	if (name)
		return one ? print_command(one) : no_command(name);
	fputs(help_head, stdout);
	for (const struct lst_command *c = lst_commands; c->name; c++)
		printf("  %-12s %s\n", c->name, c->args);
	fputs(help_test, stdout);
	return flushed();
}

/* Of the options of the node those are kept that its commands need again. */
static int keep_arg(struct state *s, int option, const char *value)
{
	size_t length = strlen(value);

	if (s->nargs == STATE_NODE_ARGS || length >= STATE_VALUE ||
	    strpbrk(value, "\n")) {
		fprintf(stderr, WHO ": %s: too long, or too many options\n",
			value);
		return OPTION_USAGE;
	}
	s->args[s->nargs].option = option;
	memcpy(s->args[s->nargs++].value, value, length + 1);
	return 0;
}

/* The next command may be given in another directory. */
static int take_arg(struct lst_tool *t, int letter)
{
	char *path = NULL;
	int status =
		letter == 'c' ? option_path(WHO, "config", optarg, &path) : 0;

	if (!status)
		status = keep_arg(&t->console.state, letter,
				  path ? path : optarg);
	free(path);
	return status ? status : -1;
}

/* @word: the one that was read; @next: the one after it, or NULL. */
static int take_option(struct lst_tool *t, int option, const char *word,
		       const char *next)
{
	switch (option) {
	case 'h':
		return print_help(next);
	case 'V':
		puts(WHO " (" PACKAGE_NAME ") " PACKAGE_VERSION);
		return flushed();
	case 'j':
		t->console.json = true;
		return -1;
	case '?':
		return lst_bad_option(NULL, options, word);
	}
	return take_arg(t, option);
}

static int find_command(struct lst_tool *t, char **words)
{
	if (!*words) {
		fputs(WHO ": a command is missing\nSee '" WHO " --help'.\n",
		      stderr);
		return OPTION_USAGE;
	}
	t->command = command_named(*words);
	if (!t->command)
		return no_command(*words);
	if (words[1] && strcmp(words[1], "--help") == 0)
		return print_command(t->command);
	return -1;
}

/* Exit status, or -1: go on, with the command at optind. */
static int parse(struct lst_tool *t, int argc, char **argv)
{
	int option, status;

	argv[0] = WHO;
	while ((option = getopt_long(argc, argv, "+c:n:p:a:l:jhV", options,
				     NULL)) != -1) {
		status = take_option(t, option, argv[optind - 1], argv[optind]);
		if (status >= 0)
			return status;
	}
	return find_command(t, argv + optind);
}

/* The options of this command line, or else those of the session. */
static int node_args(struct lst_tool *t)
{
	struct state *s = &t->console.state;
	int status = 0;

	for (unsigned int i = 0; i < s->nargs && !status; i++)
		status = node_options_take(&t->options, WHO, s->args[i].option,
					   s->args[i].value);
	t->say = (struct say){ .who = WHO, .level = t->options.log };
	lnet_log_set(t->say.level, NULL, NULL);
	return status;
}

static int start_node(struct lst_tool *t)
{
	int rc = node_open(&t->node, &t->options, &t->say, LNET_RUN_POLL);

	if (!rc)
		rc = node_control(&t->node);
	if (!rc)
		rc = node_configure(&t->node);
	if (rc)
		return 1;
	t->console.node = t->node.lnet;
	lst_calls_init(&t->console.calls, t->node.lnet, LST_HOME);
	return 0;
}

static int check_session(const struct lst_tool *t)
{
	const struct state *s = &t->console.state;

	if (t->command->makes)
		return 0;
	if (!s->exists) {
		fprintf(stderr,
			WHO ": there is no session %s: new_session makes one\n",
			getenv("LST_SESSION"));
		return 1;
	}
	if (!state_expired(s) || t->command->run == lst_end_session)
		return 0;
	fprintf(stderr,
		WHO ": the session %s has ended: no command for %u s, "
		    "--timeout %u; new_session makes another one\n",
		s->name, s->idle, s->timeout);
	return 1;
}

static int run_command(struct lst_tool *t, int argc, char **argv)
{
	struct state *s = &t->console.state;
	unsigned int given = s->nargs;
	bool ready;
	int status;

	if (state_open(s))
		return 1;
	/* What is given now goes before what was given then. */
	if (given)
		s->nargs = given;
	status = check_session(t);
	if (!status)
		status = node_args(t);
	if (!status && t->command->asks)
		status = start_node(t);
	ready = !status;
	if (ready)
		status = t->command->run(&t->console, argc, argv);
	if (ready && t->console.json && !t->command->answers &&
	    status != OPTION_USAGE)
		printf("{\"command\": \"%s\", \"done\": %s}\n",
		       t->command->name, status ? "false" : "true");
	if (t->node.lnet)
		node_close(&t->node);
	if (ready && s->exists && state_save(s))
		status = 1;
	state_close(s);
	return status ? status : flushed();
}

int main(int argc, char **argv)
{
	static struct lst_tool t;
	int status;

	if (secure_stdio())
		return 1;
	node_options_init(&t.options);
	t.options.accept = LNET_ACCEPT_NONE;
	status = parse(&t, argc, argv);
	if (status < 0)
		status = run_command(&t, argc - optind, argv + optind);
	node_options_free(&t.options);
	return status;
}
