/* SPDX-License-Identifier: BSD-3-Clause */
/* What lnetctl says of its commands; all of it comes from their table. */
#include <string.h>

#include "command.h"

#define COLUMN 30 /* where explanations begin */

static void explain(FILE *to, int written, const char *text)
{
	if (written >= COLUMN - 1)
		written = fprintf(to, "\n") - 1;
	fprintf(to, "%*s%s\n", COLUMN - written, "", text);
}

static void help_option(FILE *to, const struct option_def *def)
{
	int n;

	n = def->letter ? fprintf(to, "  -%c, --%s", def->letter, def->name)
			: fprintf(to, "      --%s", def->name);
	if (def->arg && def->kind == OPTION_LEVEL)
		n += fprintf(to, " [%s]", def->arg);
	else if (def->arg)
		n += fprintf(to, " %s", def->arg);
	explain(to, n, def->help);
}

static void help_settings(FILE *to)
{
	for (unsigned int i = 0; settings[i]; i++)
		fprintf(to, "  %s\n", settings[i]);
}

void command_help(FILE *to, const struct command *c)
{
	fprintf(to, "usage: lnetctl %s%s%s%s%s%s\n  %s\n", c->name,
		c->sub ? " " : "", c->sub ? c->sub : "",
		c->options->name ? " [OPTION]..." : "", c->args ? " " : "",
		c->args ? c->args : "", c->help);
	for (const struct option_def *def = c->options; def->name; def++)
		help_option(to, def);
	if (c->kind == COMMAND_SET)
		help_settings(to);
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
	fputs("usage: lnetctl [OPTION]... COMMAND [ARGUMENT]...\n"
	      "       lnetctl [OPTION]...                 reads commands from "
	      "stdin\n"
	      "       lnetctl --help | --version | --list-commands\n"
	      "       lnetctl COMMAND --help\n"
	      "\n"
	      "options:\n"
	      "  --socket PATH      of lnetd(8); else $ULNET_SOCKET, else the "
	      "usual one\n"
	      "  --timeout SECONDS  to wait for the node's answer (10); 0: for "
	      "ever\n"
	      "\n"
	      "commands:\n",
	      to);
	for (const struct command *c = commands; c->name; c++)
		if (c->kind != COMMAND_KERNEL)
			explain(to,
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
	int width; /* of the last name */
};

/* The next name goes behind one that is longer than its column. */
static int list_gap(const struct listing *l)
{
	return l->width < LIST_WIDTH ? LIST_WIDTH - l->width : 1;
}

static void list_name(struct listing *l, const char *name)
{
	if (l->n && l->n % LIST_COLUMNS == 0)
		fputc('\n', l->to);
	else if (l->n)
		fprintf(l->to, "%*s", list_gap(l), "");
	l->width = fprintf(l->to, "%s", name);
	l->n++;
}

static void list_settings(struct listing *l)
{
	for (unsigned int i = 0; settings[i]; i++)
		list_name(l, settings[i]);
}

/* Those of one command stand together in the table. */
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
		if (name && strcmp(c->name, name) == 0 && c->sub)
			list_name(&l, c->sub);
		if (name && strcmp(c->name, name) == 0 &&
		    c->kind == COMMAND_SET)
			list_settings(&l);
	}
	if (l.n)
		fputc('\n', to);
}
