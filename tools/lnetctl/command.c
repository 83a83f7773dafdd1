/* SPDX-License-Identifier: BSD-3-Clause */
#include "command.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/option.h"
#include "tools/common/target.h"

#define OPTIONS_MAX 20 /* options of one command */

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

const struct option_row *command_row(const struct command *c, unsigned int i)
{
	for (unsigned int k = 0; k < COMMAND_TABLES && c->options[k]; k++)
		for (const struct option_row *row = c->options[k]; row->name;
		     row++)
			if (!i--)
				return row;
	return NULL;
}

/* ---- reading the arguments ---- */

/* What the user has given to a command. */
struct given {
	const struct command *command;
	const char *who;
	/* By the option's number: the value that was given; NULL: the option
	 * was not given. */
	const char *values[OPTIONS_MAX];
	/* memory for the value, if it was joined from several */
	char *joined[OPTIONS_MAX];
	char **args; /* the arguments that are no options */
	unsigned int nargs;
	/* for each of @args, where the node is to connect; 0: where it does
	 * anyway. NULL: this is so for all */
	uint16_t *ports;
	/* what was found for names: an array, with memory for each of them */
	char **found;
	unsigned int nfound;
};

static int usage(const struct given *g)
{
	command_help(stderr, g->command);
	return EXIT_USAGE;
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

static bool integer_parse(const char *text, int64_t *value_p)
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

/* Appends @value, after a comma, to the value that option @i has already.
 * Returns 0 or the exit status. */
static int given_join(struct given *g, unsigned int i, const char *value)
{
	char *both;

	if (asprintf(&both, "%s,%s", g->values[i], value) < 0) {
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
	while (g->nfound)
		free(g->found[--g->nfound]);
	free(g->found);
	free(g->ports);
}

/* Keeps the value of an option. If the option is repeated, the last value
 * counts, or, for GIVEN_MANY, all values. */
static int given_take(void *arg, const struct option_at *at)
{
	struct given *g = arg;
	const struct option_row *row;
	unsigned int i = 0;

	while ((row = command_row(g->command, i)) && row != at->row)
		i++;
	if (!row)
		return 0;
	if (i >= OPTIONS_MAX)
		abort();
	if (row->own == GIVEN_MANY && g->values[i])
		return given_join(g, i, at->text);
	g->values[i] = at->text			 ? at->text
		       : row->own == GIVEN_LEVEL ? "1"
						 : row->name;
	/* Modes exclude each other. */
	for (unsigned int k = 0; command_row(g->command, k); k++)
		if (row->own == GIVEN_MODE && k != i &&
		    command_row(g->command, k)->own == GIVEN_MODE)
			g->values[k] = NULL;
	return 0;
}

static int command_take_help(const struct option_at *at)
{
	((struct command_args *)at->object)->help = true;
	return OPTION_DONE;
}

static const struct option_row help_rows[] = {
	{ "help", 'h', NULL, "print this", .kind = OPTION_CALL,
	  .take = command_take_help },
	{ 0 },
};

/* Sets how many arguments that are no options @c takes. */
static void arguments_limit(const struct command *c, struct option_set *set)
{
	static const int most[] = {
		[COMMAND_SET] = 2,   [COMMAND_IMPORT] = 1, [COMMAND_EXPORT] = 1,
		[COMMAND_FAULT] = 1, [COMMAND_KERNEL] = 0, [COMMAND_TEXT] = 1,
	};

	set->words = c->args;
	set->max = c->list ? -1 : most[c->kind];
	set->min = c->kind == COMMAND_SET				? 2
		   : c->kind == COMMAND_FAULT || (c->list && !c->needs) ? 1
									: 0;
}

/* Fills @g and @args. Returns 0, also if args->help is set, or the exit
 * status. */
static int given_parse(struct given *g, int argc, char **argv,
		       struct command_args *args)
{
	struct option_set set = {
		.who = g->who,
		.parts = { { help_rows, args } },
		/* The value of a setting may be negative, and would look like
		 * an option: options must come before it. */
		.in_order = g->command->kind == COMMAND_SET,
		.taken = given_take,
		.arg = g,
	};
	int status;

	for (unsigned int i = 0; i < COMMAND_TABLES && g->command->options[i];
	     i++) {
		set.parts[i + 1].rows = g->command->options[i];
		set.parts[i + 1].object = args;
	}
	arguments_limit(g->command, &set);
	status = options_parse(&set, argc, argv);
	g->args = set.args;
	g->nargs = (unsigned int)set.nargs;
	if (status == OPTION_USAGE)
		return usage(g);
	return status == OPTION_DONE ? 0 : status;
}

/* ---- checking them ---- */

/* Was one of the options given that the command needs, such as "net|nid"? */
static bool has_needed(const struct given *g)
{
	const struct option_row *row;
	const char *needs = g->command->needs;

	if (!needs)
		return true;
	for (unsigned int i = 0; (row = command_row(g->command, i)); i++) {
		size_t length = strlen(row->name);

		if (!g->values[i])
			continue;
		for (const char *n = needs; n; n = strchr(n, '|')) {
			n += *n == '|';
			if (strncmp(n, row->name, length) == 0 &&
			    (!n[length] || n[length] == '|'))
				return true;
		}
	}
	return false;
}

static void command_say_missing(const struct given *g)
{
	fprintf(stderr, "%s: missing: --", g->who);
	for (const char *n = g->command->needs; *n; n++)
		if (*n == '|')
			fputs(" or --", stderr);
		else
			fputc(*n, stderr);
	fputc('\n', stderr);
}

/* Appends the arguments that are no options to the value of the option that has
 * the same key: NIDs may be given either way. Returns 0 or the exit status. */
static int given_join_words(struct given *g)
{
	const struct command *c = g->command;
	unsigned int i = 0;
	int status = 0;

	if (!c->list || !c->needs)
		return 0;
	while (strcmp(command_row(c, i)->key, c->list) != 0)
		i++;
	for (unsigned int k = 0; !status && k < g->nargs; k++) {
		if (g->values[i])
			status = given_join(g, i, g->args[k]);
		else
			g->values[i] = g->args[k];
	}
	g->nargs = 0;
	return status;
}

static int command_check_options(const struct given *g)
{
	const struct option_row *row;
	int64_t value;

	if (!has_needed(g)) {
		command_say_missing(g);
		return usage(g);
	}
	for (unsigned int i = 0; (row = command_row(g->command, i)); i++)
		if (g->values[i] &&
		    (row->own == GIVEN_NUMBER || row->own == GIVEN_LEVEL) &&
		    !integer_parse(g->values[i], &value))
			return bad_number(g->command, row->key);
	return 0;
}

/* ---- names ---- */

/* Returns @text, or the NID that it is the name of, with *@port_p; NULL: not
 * found, or no memory, after a message. */
static char *given_host(struct given *g, char *text, uint16_t *port_p)
{
	char **found, *nid;

	if (!target_is_name(text))
		return text;
	found = realloc(g->found, (g->nfound + 1) * sizeof(*found));
	if (!found) {
		perror(g->who);
		return NULL;
	}
	g->found = found;
	nid = host_nid(g->who, text, port_p);
	if (nid)
		found[g->nfound++] = nid;
	return nid;
}

/* Looks up the names among the arguments that are peers to ask. Returns 0 or
 * the exit status. */
static int given_find_peers(struct given *g)
{
	g->ports = calloc(g->nargs + 1, sizeof(*g->ports));
	if (!g->ports) {
		perror(g->who);
		return 255;
	}
	for (unsigned int i = 0; i < g->nargs; i++) {
		g->args[i] = given_host(g, g->args[i], &g->ports[i]);
		if (!g->args[i])
			return 255;
	}
	return 0;
}

/* Looks up the names of peers among the arguments and options. Returns 0 or
 * the exit status. */
static int given_find_hosts(struct given *g)
{
	const struct option_row *row;
	uint16_t unused; /* nobody connects to what an option names */

	for (unsigned int i = 0; (row = command_row(g->command, i)); i++) {
		if (row->own != GIVEN_HOST || !g->values[i])
			continue;
		g->values[i] =
			given_host(g, (char *)(uintptr_t)g->values[i], &unused);
		if (!g->values[i])
			return 255;
	}
	return g->command->kind == COMMAND_PING ? given_find_peers(g) : 0;
}

/* ---- the request ---- */

/* Adds a list: @value, split at the commas that are not in brackets. */
static void command_add_list(struct request *r, const char *key,
			     const char *value)
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

static void add_option(struct request *r, const struct option_row *def,
		       const char *value)
{
	int64_t number;

	switch (def->own) {
	case GIVEN_FLAG:
		request_flag(r, def->key);
		break;
	case GIVEN_TEXT:
	case GIVEN_MODE:
	case GIVEN_HOST:
		request_text(r, def->key, value);
		break;
	case GIVEN_NUMBER:
	case GIVEN_LEVEL:
		if (integer_parse(value, &number))
			request_number(r, def->key, number);
		break;
	case GIVEN_LIST:
	case GIVEN_MANY:
		command_add_list(r, def->key, value);
		break;
	}
}

static int add_setting(const struct given *g, struct request *r)
{
	const char *name = g->args[0], *known;
	struct nearest near;
	int64_t value;
	unsigned int i = 0;

	nearest_init(&near, name);
	while ((known = lnet_ctl_setting(i++)) && strcmp(known, name) != 0)
		nearest_try(&near, known);
	if (!known) {
		fprintf(stderr,
			"%s: '%s' is not a valid command. See '%s "
			"--list-commands'.\n",
			g->who, name, g->who);
		nearest_say(&near, "", stderr);
		return 255;
	}
	/* The node knows which words stand for numbers. */
	if (integer_parse(g->args[1], &value))
		request_number(r, name, value);
	else
		request_text(r, name, g->args[1]);
	return 0;
}

/* Most requests have the name of their command. All commands about fault rules
 * make one request, "fault", and the action is an argument of it. */
static void begin_request(const struct given *g, struct request *r)
{
	const struct command *c = g->command;
	bool faults = c->kind == COMMAND_FAULT || c->kind == COMMAND_RULE;
	const char *sub = faults ? NULL : c->sub;
	char name[64];

	snprintf(name, sizeof(name), "%s%s%s", c->name, sub ? " " : "",
		 sub ? sub : "");
	request_begin(r, name);
	if (faults)
		request_text(r, "action",
			     c->kind == COMMAND_FAULT ? g->args[0] : c->sub);
	if (c->kind == COMMAND_FAULT && c->sub)
		request_text(r, "rule_type", c->sub);
}

static int request_make(const struct given *g, struct request *r)
{
	const struct command *command = g->command;
	const struct option_row *row;

	begin_request(g, r);
	for (unsigned int i = 0; (row = command_row(command, i)); i++)
		if (g->values[i] && row->kind == OPTION_OWN)
			add_option(r, row, g->values[i]);
	if (command->list && !command->needs)
		request_nids(r, command->list, g->args, g->ports, g->nargs);
	return command->kind == COMMAND_SET ? add_setting(g, r) : 0;
}

/* Returns how many us the node may take for a ping or discovery; 0: the timeout
 * makes no sense. That is the timeout of one NID, because the node asks all
 * NIDs at the same time. */
static uint64_t ping_us(const struct given *g)
{
	const struct option_row *row;
	int64_t seconds = g->command->seconds;

	for (unsigned int i = 0; (row = command_row(g->command, i)); i++)
		if (g->values[i] && !strcmp(row->name, "timeout"))
			integer_parse(g->values[i], &seconds);
	return seconds > 0 && seconds < 86400 ? (uint64_t)seconds * 1000000 : 0;
}

static int command_make(struct given *g, struct command_args *args,
			struct request *r)
{
	enum command_kind kind = g->command->kind;
	int status = given_join_words(g);

	if (!status)
		status = command_check_options(g);
	if (!status)
		status = given_find_hosts(g);
	if (status)
		return status;
	if (kind == COMMAND_PING)
		args->takes_us = ping_us(g);
	if (g->nargs && (kind == COMMAND_IMPORT || kind == COMMAND_EXPORT ||
			 kind == COMMAND_TEXT))
		args->file = g->args[0];
	return request_make(g, r);
}

int command_parse(const struct command *command, const char *who, int argc,
		  char **argv, struct command_args *args, struct request *r)
{
	struct given g = { .command = command, .who = who };
	int status;

	*args = (struct command_args){ .top = { .interval_us = 1000000,
						.rows = 20 },
				       .metrics.peers = METRICS_PEERS };
	*r = (struct request){ 0 };
	status = given_parse(&g, argc, argv, args);
	if (!status && !args->help)
		status = command_make(&g, args, r);
	given_fini(&g);
	return status;
}

/* ---- commands that programs have added ---- */

/* Returns how many words of @argv are the name. */
static int added_words(int argc, char *const *argv)
{
	int n = 0;

	while (n < argc && *argv[n] != '-')
		n++;
	return n;
}

bool added_name(int argc, char *const *argv, char *name)
{
	int words = added_words(argc, argv);
	size_t length = 0;

	for (int i = 0; i < words; i++) {
		length += strlen(argv[i]) + !!i;
		if (length > LNET_CONTROL_NAME_MAX)
			return false;
		name = stpcpy(stpcpy(name, i ? " " : ""), argv[i]);
	}
	return length > 0;
}

/* Adds the argument @key, of @length bytes, which may be any text. */
static void added_argument(struct request *r, const char *key, size_t length,
			   const char *value)
{
	char *copy = strndup(key, length), *quoted = NULL;
	int rc = copy ? lnet_ctl_quote(copy, &quoted) : -ENOMEM;

	if (rc)
		request_fail(r, rc);
	else if (value)
		request_text(r, quoted, value);
	else
		request_flag(r, quoted);
	free(quoted);
	free(copy);
}

int added_parse(const char *name, int argc, char *const *argv,
		struct request *r)
{
	char *quoted = NULL;
	int rc = lnet_ctl_quote(name, &quoted);

	request_begin(r, rc ? "" : quoted);
	free(quoted);
	if (rc)
		request_fail(r, rc);
	for (int i = added_words(argc, argv); i < argc; i++) {
		const char *key = argv[i] + 2, *value = strchr(argv[i], '=');
		size_t length = value ? (size_t)(value - key) : strlen(key);

		if (strncmp(argv[i], "--", 2) != 0 || !*key || value == key) {
			fprintf(stderr,
				"lnetctl %s: %s: --KEY VALUE is expected\n",
				name, argv[i]);
			return EXIT_USAGE;
		}
		if (value)
			value++;
		else if (i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0)
			value = argv[++i];
		added_argument(r, key, length, value);
	}
	return 0;
}

/* ---- help ---- */

void command_help(FILE *to, const struct command *c)
{
	fprintf(to, "usage: lnetctl %s%s%s%s%s%s\n  %s\n", c->name,
		c->sub ? " " : "", c->sub ? c->sub : "",
		c->options[0] ? " [OPTION]..." : "", c->args ? " " : "",
		c->args ? c->args : "", c->help);
	for (unsigned int i = 0; command_row(c, i); i++)
		option_help(command_row(c, i), to);
	for (unsigned int i = 0; c->kind == COMMAND_SET && lnet_ctl_setting(i);
	     i++)
		fprintf(to, "  %s\n", lnet_ctl_setting(i));
}

void command_help_group(FILE *to, const char *name)
{
	const char *between = "";

	for (const struct command *c = commands; c->name; c++) {
		if (strcmp(c->name, name) != 0)
			continue;
		fputs(between, to);
		between = "\n";
		command_help(to, c);
	}
}

void command_help_all(FILE *to)
{
	for (const struct command *c = commands; c->name; c++)
		if (c->kind != COMMAND_KERNEL)
			option_explain(to,
				       fprintf(to, "  %s%s%s", c->name,
					       c->sub ? " " : "",
					       c->sub ? c->sub : ""),
				       c->help);
}

/* ---- names, in columns ---- */

#define LIST_WIDTH   20
#define LIST_COLUMNS 4

struct listing {
	FILE *to;
	unsigned int n;
	int width; /* width of the last name */
};

/* At least one blank follows a name, even if the name is wider than its column.
 */
static void list_name(struct listing *l, const char *name)
{
	if (l->n && l->n % LIST_COLUMNS == 0)
		fputc('\n', l->to);
	else if (l->n)
		fprintf(l->to, "%*s",
			l->width < LIST_WIDTH ? LIST_WIDTH - l->width : 1, "");
	l->width = fprintf(l->to, "%s", name);
	l->n++;
}

void command_list(FILE *to, const char *name)
{
	struct listing l = { .to = to };
	const char *before = "";

	for (const struct command *c = commands; c->name; c++) {
		bool first = strcmp(c->name, before) != 0;

		before = c->name;
		if (c->kind == COMMAND_KERNEL)
			continue;
		if (!name && first)
			list_name(&l, c->name);
		if (!name || strcmp(c->name, name) != 0)
			continue;
		if (c->sub)
			list_name(&l, c->sub);
		for (unsigned int i = 0;
		     c->kind == COMMAND_SET && lnet_ctl_setting(i); i++)
			list_name(&l, lnet_ctl_setting(i));
	}
	if (l.n)
		fputc('\n', to);
}

/* ---- splitting lines ---- */

/* Copies the word at *@from, without its quotes, to *@to, and moves both
 * pointers behind it. -EINVAL: a quote is not closed. */
static int command_take_word(char **from, char **to)
{
	char *in = *from, *out = *to, quote = 0;

	for (; *in && (quote || !isspace((unsigned char)*in)); in++) {
		if (quote && *in == quote)
			quote = 0;
		else if (!quote && (*in == '"' || *in == '\''))
			quote = *in;
		else if (*in == '\\' && quote != '\'' && in[1])
			*out++ = *++in;
		else
			*out++ = *in;
	}
	*from = *in ? in + 1 : in;
	*to = out;
	return quote ? -EINVAL : 0;
}

int words_split(char *line, char ***words_p)
{
	/* Each word takes at least two characters: one letter and a blank. */
	char **words = calloc(strlen(line) / 2 + 2, sizeof(*words));
	char *in = line, *out = line;
	int n = 0, rc;

	if (!words)
		return -ENOMEM;
	for (;;) {
		while (isspace((unsigned char)*in))
			in++;
		if (!*in || *in == '#')
			break;
		words[n++] = out;
		rc = command_take_word(&in, &out);
		if (rc) {
			free(words);
			return rc;
		}
		/* This overwrites only what has been read: @out is before @in,
		 * or both are at the end of the line. */
		*out++ = 0;
	}
	*words_p = words;
	return n;
}
