/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/metrics.h"
#include "tools/common/nearest.h"
#include "tools/common/place.h"

#define OPTIONS_MAX 20 /* of one command */

const struct command *command_find(int argc, char *const *argv, bool *sub_p)
{
	*sub_p = false;
	for (const struct command *c = commands; c->name; c++) {
		if (strcmp(c->name, argv[0]) != 0)
			continue;
		*sub_p = true;
		if (!c->sub || (argc > 1 && strcmp(c->sub, argv[1]) == 0))
			return c;
	}
	return NULL;
}

static unsigned int count_options(const struct option_def *defs)
{
	unsigned int n = 0;

	while (defs[n].name)
		if (++n > OPTIONS_MAX)
			abort();
	return n;
}

/* ---- what was given ---- */

struct given {
	const struct command *command;
	const char *who;
	const char *values[OPTIONS_MAX]; /* of the option; NULL: not given */
	char *joined[OPTIONS_MAX];	 /* values made of several; else NULL */
	char **args;			 /* the rest */
	unsigned int nargs;
};

static int usage(const struct given *g)
{
	command_help(stderr, g->command);
	return EXIT_USAGE;
}

/* getopt has said that the last word it has seen is no option. */
static int bad_option(const struct given *g, const char *word)
{
	const struct option_def *defs = g->command->options;
	struct nearest near;

	if (!optopt && !strncmp(word, "--", 2)) {
		nearest_init(&near, word + 2);
		nearest_try(&near, "help");
		for (unsigned int i = 0; defs[i].name; i++)
			nearest_try(&near, defs[i].name);
		nearest_say(&near, "--", stderr);
	}
	return usage(g);
}

/* Prints an error in the form that kernel nodes' lnetctl has for it. */
static int bad_number(const struct command *command, const char *key)
{
	fprintf(stderr,
		"parser:\n"
		"    - %s:\n"
		"          errno: -1\n"
		"          descr: \"cannot parse %s value\"\n",
		command->name, key);
	return 255;
}

static bool number_parse(const char *text, int64_t *value_p)
{
	char *end;
	long long value;

	if (!isdigit((unsigned char)text[text[0] == '-']))
		return false;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || *end)
		return false;
	*value_p = value;
	return true;
}

static bool is_number(enum option_kind kind)
{
	return kind == OPTION_NUMBER || kind == OPTION_LEVEL;
}

/* What getopt_long() wants: short options and long ones, each of which returns
 * the index of its definition and 1. */
static void getopt_tables(const struct option_def *defs, char *letters,
			  struct option *longs)
{
	unsigned int n = count_options(defs);

	for (unsigned int i = 0; i < n; i++) {
		int has = defs[i].arg ? required_argument : no_argument;

		if (defs[i].kind == OPTION_LEVEL)
			has = optional_argument;
		longs[i] = (struct option){ defs[i].name, has, NULL,
					    CHAR_MAX + 1 + (int)i };
		if (!defs[i].letter)
			continue;
		*letters++ = defs[i].letter;
		for (int colons = has; colons; colons--)
			*letters++ = ':';
	}
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
	longs[n + 1] = (struct option){ 0 };
	letters[0] = 'h';
	letters[1] = '\0';
}

static unsigned int option_index(const struct option_def *defs, int option)
{
	unsigned int i = 0;

	if (option > CHAR_MAX)
		return (unsigned int)(option - CHAR_MAX - 1);
	while (defs[i].letter != option)
		i++;
	return i;
}

/* "-v 2" has its number, as "-v2" has; "-v" and "-v --net tcp" have none. */
static const char *level_value(int argc, char **argv)
{
	int64_t value;

	if (optarg)
		return optarg;
	if (optind < argc && number_parse(argv[optind], &value))
		return argv[optind++];
	return "1";
}

/* The option came before: both values, with a comma between. Exit status. */
static int given_join(struct given *g, unsigned int i)
{
	char *both;

	if (asprintf(&both, "%s,%s", g->values[i], optarg) < 0) {
		perror(g->who);
		return 255;
	}
	free(g->joined[i]);
	g->joined[i] = both;
	g->values[i] = both;
	return 0;
}

static void given_fini(struct given *g)
{
	for (unsigned int i = 0; i < OPTIONS_MAX; i++)
		free(g->joined[i]);
}

/* Exit status; *@help_p: help was asked for. The last of equal options counts,
 * but of those that can be many all do. */
static int given_parse(struct given *g, int argc, char **argv, bool *help_p)
{
	const struct option_def *defs = g->command->options;
	char letters[OPTIONS_MAX * 3 + 3];
	struct option longs[OPTIONS_MAX + 2];
	char *name = argv[0];
	int option;

	/* A setting may be negative: options must come before it. */
	letters[0] = '+';
	getopt_tables(defs, letters + (g->command->kind == COMMAND_SET), longs);
	argv[0] =
		(char *)g->who; /* that is what getopt's messages begin with */
	optind = 0;
	while ((option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		unsigned int i;

		if (option == '?' || option == 'h') {
			argv[0] = name;
			*help_p = option == 'h';
			return option == 'h' ? 0
					     : bad_option(g, argv[optind - 1]);
		}
		i = option_index(defs, option);
		if (defs[i].kind == OPTION_LEVEL)
			g->values[i] = level_value(argc, argv);
		else if (defs[i].kind != OPTION_MANY || !g->values[i])
			g->values[i] = optarg ? optarg : defs[i].name;
		else if (given_join(g, i))
			return 255;
		/* Modes exclude each other. */
		for (unsigned int j = 0; defs[j].name; j++)
			if (defs[i].kind == OPTION_MODE &&
			    defs[j].kind == OPTION_MODE && j != i)
				g->values[j] = NULL;
	}
	argv[0] = name;
	g->args = argv + optind;
	g->nargs = (unsigned int)(argc - optind);
	return 0;
}

/* ---- is it what the command wants? ---- */

/* Was one of the options of a list like "net|nid" given? */
static bool needed_there(const struct given *g)
{
	const struct option_def *defs = g->command->options;
	const char *needs = g->command->needs;

	if (!needs)
		return true;
	for (unsigned int i = 0; defs[i].name; i++) {
		size_t length = strlen(defs[i].name);

		if (!g->values[i])
			continue;
		for (const char *n = needs; n; n = strchr(n, '|')) {
			n += *n == '|';
			if (strncmp(n, defs[i].name, length) == 0 &&
			    (!n[length] || n[length] == '|'))
				return true;
		}
	}
	return false;
}

static void say_missing(const struct given *g)
{
	fprintf(stderr, "%s: missing: --", g->who);
	for (const char *n = g->command->needs; *n; n++)
		if (*n == '|')
			fputs(" or --", stderr);
		else
			fputc(*n, stderr);
	fputc('\n', stderr);
}

static int check_args(const struct given *g)
{
	static const unsigned int most[] = {
		[COMMAND_SET] = 2,    [COMMAND_IMPORT] = 1,
		[COMMAND_EXPORT] = 1, [COMMAND_FAULT] = 1,
		[COMMAND_TOP] = 0,    [COMMAND_METRICS] = 0,
	};
	unsigned int max = most[g->command->kind];
	unsigned int min = g->command->kind == COMMAND_SET     ? 2
			   : g->command->kind == COMMAND_FAULT ? 1
							       : 0;

	if (g->command->list) {
		max = UINT_MAX;
		min = 1;
	}
	if (g->nargs < min) {
		fprintf(stderr, "%s: missing: %s\n", g->who, g->command->args);
		return usage(g);
	}
	if (g->nargs > max) {
		fprintf(stderr, "%s: unexpected argument: %s\n", g->who,
			g->args[max]);
		return usage(g);
	}
	return 0;
}

static int check_options(const struct given *g)
{
	const struct option_def *defs = g->command->options;
	int64_t value;

	if (!needed_there(g)) {
		say_missing(g);
		return usage(g);
	}
	for (unsigned int i = 0; defs[i].name; i++)
		if (g->values[i] && is_number(defs[i].kind) &&
		    !number_parse(g->values[i], &value))
			return bad_number(g->command, defs[i].key);
	return 0;
}

/* ---- the request ---- */

/* Cuts @value at commas outside of brackets, and blanks around them. */
static void add_list(struct request *r, const char *key, const char *value)
{
	char **items = calloc(strlen(value) / 2 + 2, sizeof(*items));
	char *copy = strdup(value), *c = copy, *end;
	unsigned int n = 0, depth = 0;

	if (!copy || !items)
		request_fail(r, -ENOMEM);
	while (copy && items && *c) {
		c += strspn(c, " ,");
		if (!*c)
			break;
		items[n++] = c;
		for (; *c && (depth || *c != ','); c++)
			if (*c == '[')
				depth++;
			else if (*c == ']' && depth)
				depth--;
		for (end = c; end[-1] == ' ';)
			end--;
		if (*c)
			c++;
		*end = 0;
	}
	request_list(r, key, items, n);
	free(items);
	free(copy);
}

static void add_option(struct request *r, const struct option_def *def,
		       const char *value)
{
	int64_t number;

	switch (def->kind) {
	case OPTION_FLAG:
		request_flag(r, def->key);
		break;
	case OPTION_TEXT:
	case OPTION_MODE:
		request_text(r, def->key, value);
		break;
	case OPTION_NUMBER:
	case OPTION_LEVEL:
		if (number_parse(value, &number))
			request_number(r, def->key, number);
		break;
	case OPTION_LIST:
	case OPTION_MANY:
		add_list(r, def->key, value);
		break;
	case OPTION_NOTHING:
	case OPTION_LOCAL:
		break;
	}
}

static int add_setting(const struct given *g, struct request *r)
{
	const char *name = g->args[0];
	struct nearest near;
	int64_t value;
	unsigned int i = 0;

	nearest_init(&near, name);
	while (settings[i] && strcmp(settings[i], name) != 0)
		nearest_try(&near, settings[i++]);
	if (!settings[i]) {
		fprintf(stderr,
			"%s: '%s' is not a valid command. See '%s "
			"--list-commands'.\n",
			g->who, name, g->who);
		nearest_say(&near, "", stderr);
		return 255;
	}
	if (!number_parse(g->args[1], &value))
		return bad_number(g->command, name);
	request_number(r, name, value);
	return 0;
}

/* All rules are changed by one request. */
static void begin_fault(const struct given *g, struct request *r)
{
	request_begin(r, g->command->name);
	request_text(r, "action", g->args[0]);
	if (g->command->sub)
		request_text(r, "rule_type", g->command->sub);
}

static void begin_rule(const struct given *g, struct request *r)
{
	request_begin(r, g->command->name);
	request_text(r, "action", g->command->sub);
}

static void begin_other(const struct given *g, struct request *r)
{
	const struct command *command = g->command;
	char name[64];

	snprintf(name, sizeof(name), "%s%s%s", command->name,
		 command->sub ? " " : "", command->sub ? command->sub : "");
	request_begin(r, name);
}

static int request_make(const struct given *g, struct request *r)
{
	const struct command *command = g->command;
	const struct option_def *defs = command->options;

	if (command->kind == COMMAND_FAULT)
		begin_fault(g, r);
	else if (command->kind == COMMAND_RULE)
		begin_rule(g, r);
	else
		begin_other(g, r);
	for (unsigned int i = 0; defs[i].name; i++)
		if (g->values[i])
			add_option(r, &defs[i], g->values[i]);
	if (command->list)
		request_list(r, command->list, g->args, g->nargs);
	return command->kind == COMMAND_SET ? add_setting(g, r) : 0;
}

/* The node asks all at once. */
static uint64_t ping_us(const struct given *g)
{
	const struct option_def *defs = g->command->options;
	int64_t seconds = g->command->seconds;

	for (unsigned int i = 0; defs[i].name; i++)
		if (g->values[i] && !strcmp(defs[i].name, "timeout"))
			number_parse(g->values[i], &seconds);
	return seconds > 0 && seconds < 86400 ? (uint64_t)seconds * 1000000 : 0;
}

/* The option's number, in [@min, @max]; left alone if it was not given. Exit
 * status. */
static int local_number(const struct given *g, const char *name, double min,
			double max, double *value_p)
{
	const struct option_def *defs = g->command->options;
	const char *text = NULL;
	double value;
	char *end;

	for (unsigned int i = 0; defs[i].name; i++)
		if (strcmp(defs[i].name, name) == 0)
			text = g->values[i];
	if (!text)
		return 0;
	value = strtod(text, &end);
	if (!isdigit((unsigned char)*text) || *end || !(value >= min) ||
	    !(value <= max)) {
		fprintf(stderr, "%s: --%s '%s': %g to %g is expected\n", g->who,
			name, text, min, max);
		return usage(g);
	}
	*value_p = value;
	return 0;
}

static int top_args(const struct given *g, struct command_args *args)
{
	double interval = 1, count = 0, rows = 20;
	int status = local_number(g, "interval", 0.1, 86400, &interval);

	if (!status)
		status = local_number(g, "count", 1, 1e9, &count);
	if (!status)
		status = local_number(g, "rows", 0, 1000, &rows);
	args->top.interval_us = (uint64_t)(interval * 1e6);
	args->top.count = (unsigned int)count;
	args->top.rows = (unsigned int)rows;
	return status;
}

static int metrics_args(const struct given *g, struct command_args *args)
{
	const struct option_def *defs = g->command->options;
	double peers = METRICS_PEERS;
	int status = local_number(g, "peers", 0, METRICS_PEERS_MAX, &peers);
	const char *listen = NULL;

	for (unsigned int i = 0; defs[i].name; i++)
		if (strcmp(defs[i].name, "listen") == 0)
			listen = g->values[i];
	if (!status && listen && place_check(listen)) {
		fprintf(stderr,
			"%s: --listen '%s': [ADDRESS:]PORT is expected, with "
			"an "
			"address in numbers, like 127.0.0.1:9988\n",
			g->who, listen);
		status = usage(g);
	}
	args->metrics.peers = (unsigned int)peers;
	args->metrics.listen = listen;
	return status;
}

static int command_make(const struct given *g, struct command_args *args,
			struct request *r)
{
	enum command_kind kind = g->command->kind;
	int status = check_args(g);

	if (!status)
		status = check_options(g);
	if (status)
		return status;
	if (kind == COMMAND_TOP)
		status = top_args(g, args);
	if (kind == COMMAND_METRICS)
		status = metrics_args(g, args);
	if (status)
		return status;
	if (kind == COMMAND_PING)
		args->takes_us = ping_us(g);
	if (g->nargs && (kind == COMMAND_IMPORT || kind == COMMAND_EXPORT))
		args->file = g->args[0];
	return request_make(g, r);
}

int command_parse(const struct command *command, const char *who, int argc,
		  char **argv, struct command_args *args, struct request *r)
{
	struct given g = { .command = command, .who = who };
	int status;

	*args = (struct command_args){ 0 };
	*r = (struct request){ 0 };
	status = given_parse(&g, argc, argv, &args->help);
	if (!status && !args->help)
		status = command_make(&g, args, r);
	given_fini(&g);
	return status;
}
