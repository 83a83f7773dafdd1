/* SPDX-License-Identifier: BSD-3-Clause */
/* What lnetctl says of its commands; all of it comes from their table. */
#include <string.h>

#include "command.h"

static void help_settings(FILE *to)
{
	for (unsigned int i = 0; settings[i]; i++)
		fprintf(to, "  %s\n", settings[i]);
}

void command_help(FILE *to, const struct command *c)
{
	fprintf(to, "usage: lnetctl %s%s%s%s%s%s\n  %s\n", c->name,
		c->sub ? " " : "", c->sub ? c->sub : "",
		c->options[0] ? " [OPTION]..." : "", c->args ? " " : "",
		c->args ? c->args : "", c->help);
	for (unsigned int i = 0; command_row(c, i); i++)
		option_help(command_row(c, i), to);
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
