/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of lnetctl(8), their arguments, and the requests that commands
 * become. lnetctl.c sends the requests.
 */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ulnet/control.h>

#include "tools/common/exporter.h"
#include "tools/common/request.h"

/* What an option adds to the request: the field "own" of its row says it. */
enum given_kind {
	GIVEN_FLAG, /* true */
	GIVEN_TEXT,
	GIVEN_HOST, /* a text: the NID of a peer, or its name */
	GIVEN_NUMBER,
	GIVEN_LEVEL, /* a number; 1 if it is left out */
	GIVEN_LIST,  /* texts, between commas that are not in brackets */
	/* as GIVEN_LIST; if the option is repeated, all texts of all lists */
	GIVEN_MANY,
	GIVEN_MODE,   /* the option's name, as the value of "mode" */
	GIVEN_UNUSED, /* nothing: it is accepted for scripts' sake */
};

#define COMMAND_TABLES 6

enum command_kind {
	COMMAND_PLAIN,
	COMMAND_PING,
	COMMAND_SET,	 /* arguments: a setting and its number */
	COMMAND_IMPORT,	 /* argument: a file, or stdin */
	COMMAND_EXPORT,	 /* argument: a file, or stdout */
	COMMAND_TEXT,	 /* argument: a file, or none */
	COMMAND_FAULT,	 /* argument: the action on fault rules; the
			  * sub-command is their type */
	COMMAND_RULE,	 /* sub-command: the action on fault rules */
	COMMAND_VERSION, /* makes no request */
	COMMAND_TOP,	 /* repeats its request */
	COMMAND_METRICS, /* makes requests, once or for each HTTP client */
	COMMAND_KERNEL,	 /* only kernel nodes' lnetctl has it: it is refused,
			  * and not listed; its help says why */
};

struct command {
	const char *name, *sub; /* .sub NULL: the command has no sub-commands */
	const char *help;
	/* Tables of options; ends with NULL. A row either is OPTION_OWN and
	 * adds to the request, or sets a field of struct command_args. */
	const struct option_row *options[COMMAND_TABLES];
	const char *needs; /* options of which one must be given: "net|nid" */
	/* description of the arguments that are no options, for the help */
	const char *args;
	/* these arguments, of which one must be given, become a list with this
	 * key; NULL: they become no list */
	const char *list;
	enum command_kind kind;
	unsigned int seconds; /* PING: the default of --timeout, s */
};

/* Ends with name NULL. Commands with the same name follow each other. */
extern const struct command commands[];

/* Returns option number @i, from 0, of @c; NULL: @c has fewer options. */
const struct option_row *command_row(const struct command *c, unsigned int i);

/* Finds the command that @argv[0] names, with @argv[1] if it has sub-commands.
 * NULL: there is none; *@sub_p tells whether the fault is in the sub-command.
 */
const struct command *command_find(int argc, char *const *argv, bool *sub_p);

/* What a command line says that is no part of the request. Borrows from
 * argv. */
struct command_args {
	bool help; /* --help was given: nothing else was looked at */
	/* the file of import and export; NULL: none was given */
	const char *file;
	struct {
		uint64_t interval_us;
		/* TOP: number of blocks to print; 0: until a signal comes */
		unsigned int count;
		unsigned int rows; /* TOP: most NIDs, and most routes */
	} top;
	/* METRICS: if the address is NULL, they are printed */
	struct metrics_options metrics;
	uint64_t takes_us; /* us that the node may take for the request */
};

/*
 * Makes the request of @argv, which begins with the command's last word; @who
 * is what messages begin with. Returns 0, or the exit status after a message:
 * 234 (with the help) for wrong arguments, 255 for malformed numbers. The
 * caller adds the text of an import, then calls request_end(), and
 * request_free() in any case.
 */
int command_parse(const struct command *command, const char *who, int argc,
		  char **argv, struct command_args *args, struct request *r);

/*
 * A command that is none of these may be one that the program of the node has
 * added (lnet_control_add(3)). Its name are the words up to the first option;
 * an option, --KEY VALUE or --KEY=VALUE, is an argument, which is true if it
 * has no value. added_name() writes at most LNET_CONTROL_NAME_MAX + 1 bytes to
 * @name; false: no command can have such a name. added_parse() makes the
 * request, and returns 0, or the exit status after a message. As with
 * command_parse(), the caller ends and frees the request.
 */
bool added_name(int argc, char *const *argv, char *name);
int added_parse(const char *name, int argc, char *const *argv,
		struct request *r);

/* Print the help of all commands; of the commands called @name; of @command. */
void command_help_all(FILE *to);
void command_help_group(FILE *to, const char *name);
void command_help(FILE *to, const struct command *command);

/* Prints, in columns, the names of all commands, or, unless @name is NULL, of
 * the sub-commands of the command @name. */
void command_list(FILE *to, const char *name);

/*
 * Splits @line, which it changes, at blanks, as a shell does: text in '' or ""
 * is one word, a backslash (but in '') quotes the next character, and # at the
 * beginning of a word starts a comment. *@words_p, to be freed, points to the
 * words in @line, and ends with NULL. Returns how many there are; -EINVAL: a
 * quote is not closed; -ENOMEM.
 */
int words_split(char *line, char ***words_p);

/* Looks up @text, the name of a node, and prints to stderr what it stands for.
 * Returns the text of its NID, to be freed, and sets *@port_p (0: the text and
 * the answer have no port); NULL: after a message. */
char *host_nid(const char *who, const char *text, uint16_t *port_p);

/* ---- what "lnetctl top" prints ---- */

struct top_sample; /* a node's counters and gauges at one moment */

/* Reads a node's answer to the request "top"; unknown lines are skipped. NULL:
 * no memory, or the answer has no time in it. */
struct top_sample *top_read(const char *text);
void top_free(struct top_sample *s);

/* Prints gauges as they are @now, and rates since @before. At most @rows NIDs
 * of peers are shown (those with waiting messages, low health or much traffic
 * first), at most @rows routes (those that are not up first), and how many more
 * there are. Columns that do not fit into @width are left out; 0: all fit. */
void top_print(const struct top_sample *before, const struct top_sample *now,
	       unsigned int rows, unsigned int width, FILE *out);

/* The same for calls: of a node's answers to "rpc top". At most @rows services
 * and methods of each side, those with the most calls first; lines are cut off
 * at @width. */
struct rpc_sample;

struct rpc_sample *top_rpc_read(const char *text);
void top_rpc_free(struct rpc_sample *s);
void top_rpc_print(const struct rpc_sample *before,
		   const struct rpc_sample *now, unsigned int rows,
		   unsigned int width, FILE *out);

#define EXIT_USAGE 234 /* exit status for -EINVAL */

#endif
