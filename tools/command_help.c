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
	fprintf(to, "usage: lnetctl %s%s%s%s%s%s\n  %s%s\n", c->name,
		c->sub ? " " : "", c->sub ? c->sub : "",
		c->options->name ? " [OPTION]..." : "", c->args ? " " : "",
		c->args ? c->args : "", c->help,
		c->kind == COMMAND_LATER ? " (not supported yet)" : "");
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
	for (const struct command *c = commands; c->name; c++) {
		int n = fprintf(to, "  %s%s%s", c->name, c->sub ? " " : "",
				c->sub ? c->sub : "");

		if (c->kind != COMMAND_LATER)
			explain(to, n, c->help);
		else
			fprintf(to, "%*s%s (not supported yet)\n", COLUMN - n,
				"", c->help);
	}
}

/* Those of one command stand together in the table. */
void command_list(FILE *to, const char *name)
{
	const char *before = "";

	for (const struct command *c = commands; c->name; c++) {
		if (!name && strcmp(c->name, before) != 0)
			fprintf(to, "%s\n", c->name);
		if (name && strcmp(c->name, name) == 0 && c->sub)
			fprintf(to, "%s\n", c->sub);
		before = c->name;
		if (name && strcmp(c->name, name) == 0 &&
		    c->kind == COMMAND_SET)
			for (unsigned int i = 0; settings[i]; i++)
				fprintf(to, "%s\n", settings[i]);
	}
}
