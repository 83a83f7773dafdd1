/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of lnetctl(8): which there are, what arguments they take, and
 * how these become a request. Knows no connection: lnetctl.c sends.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/common/exporter.h"
#include "tools/common/request.h"

/* What becomes of an option's value: a row's own kind. */
enum given_kind {
	GIVEN_FLAG, /* present: true */
	GIVEN_TEXT,
	GIVEN_NUMBER,
	GIVEN_LEVEL,   /* a number that may be left out: 1 */
	GIVEN_LIST,    /* of texts, by commas that are not in brackets */
	GIVEN_MANY,    /* such a list, of all that is given if it comes again */
	GIVEN_MODE,    /* the option's name is the value of "mode" */
	GIVEN_NOTHING, /* taken and not needed: see its help */
};

#define COMMAND_TABLES 6

enum command_kind {
	COMMAND_PLAIN,
	COMMAND_PING,
	COMMAND_SET,	 /* arguments: a setting and its number */
	COMMAND_IMPORT,	 /* argument: a file, or stdin */
	COMMAND_EXPORT,	 /* argument: a file, or stdout */
	COMMAND_FAULT,	 /* argument: what is to be done; the sub-command is the
			 * kind of rules */
	COMMAND_RULE,	 /* the sub-command is what is to be done with rules */
	COMMAND_VERSION, /* no request: lnetctl says it */
	COMMAND_TOP,	 /* asks again and again */
	COMMAND_METRICS, /* asks, once or whenever it is asked by HTTP */
	COMMAND_KERNEL,	 /* kernel nodes' lnetctl has it, and here it would mean
			 * nothing: its help says why. Is always refused, and
			 * in no list */
};

struct command {
	const char *name, *sub; /* sub NULL: the command has no sub-commands */
	const char *help;
	/* Ends with NULL. Rows are OPTION_OWN, and become a part of the
	 * request; or are about struct command_args. */
	const struct option_row *options[COMMAND_TABLES];
	const char *needs; /* options of which one must be there: "net|nid" */
	const char *args;  /* for the help: arguments that are no options */
	const char *list;  /* their key, of at least one; NULL: none is given */
	enum command_kind kind;
	unsigned int seconds; /* PING: that it takes at most by itself, unless
			       * --timeout says it */
};

extern const struct command commands[]; /* ends with name NULL; by name */
extern const char *const settings[];	/* of "set"; ends with NULL */

/* The options of a command, by numbers from 0; NULL: there are no more. */
const struct option_row *command_row(const struct command *c, unsigned int i);

/* The command of @argv[0], and @argv[1] if it has sub-commands; NULL: none,
 * and *@sub_p tells whether it is the sub-command that is wrong or missing. */
const struct command *command_find(int argc, char *const *argv, bool *sub_p);

/* What is no part of the request. Borrows from argv. */
struct command_args {
	bool help;	  /* was asked for, and nothing else was looked at */
	const char *file; /* of import and export; NULL: none given */
	struct {
		uint64_t interval_us;
		unsigned int count; /* blocks; 0: until it is stopped */
		unsigned int rows;  /* NIDs of peers */
	} top;
	struct metrics_options metrics; /* address NULL: print them */
	uint64_t takes_us; /* time that carrying the request out may take by
			    * itself */
};

/*
 * Makes the request of @argv, which begins with the command's last word; @who
 * is how messages call it. Returns 0, or the exit status after having said why:
 * 234 (with the help) for wrong arguments, 255 for numbers that are none. What
 * the request still needs is an import's text, and request_end().
 * request_free() is due in any case.
 */
int command_parse(const struct command *command, const char *who, int argc,
		  char **argv, struct command_args *args, struct request *r);

/* Help of all commands, of those with @name, of one. */
void command_help_all(FILE *to);
void command_help_group(FILE *to, const char *name);
void command_help(FILE *to, const struct command *command);

/* Names, in columns; @name NULL: of commands, else of its sub-commands. */
void command_list(FILE *to, const char *name);

/*
 * Cuts @line, which it changes, at blanks; text in '' or "" is one word, and a
 * backslash takes what is special from the next character (but in ''). A # at
 * the beginning of a word ends the line. *@words_p: to be freed, its words are
 * in @line; ends with NULL. Returns how many; -EINVAL: a quote is not closed;
 * -ENOMEM.
 */
int words_split(char *line, char ***words_p);

/* ---- the view of "lnetctl top" ---- */

/* Rates between two answers of a node, and what is so now. */

struct top_sample; /* one answer */

/* Reads what a node says to the request "top"; lines that are not known are
 * skipped. NULL: no memory, or it has no time. */
struct top_sample *top_read(const char *text);
void top_free(struct top_sample *s);

/* Prints the block for the time between the two; with at most @rows NIDs of
 * peers, those where most happens, or waits, and routes, first those that are
 * not up. How many are not shown is said. Columns that do not fit into @width
 * are left out; 0: there is room for all. */
void top_print(const struct top_sample *before, const struct top_sample *now,
	       unsigned int rows, unsigned int width, FILE *out);

#define EXIT_USAGE 234 /* -EINVAL */

#endif
