/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of lst(8)'s commands, and what is wrong with them. */
#ifndef TOOLS_LST_WORDS_H
#define TOOLS_LST_WORDS_H

#include <getopt.h>
#include <stdbool.h>

#define WHO    "lst"
#define FAILED 1 /* exit status */

/* What a command may have; the words after them are left in argv. */
struct lst_words {
	bool force, wait, refresh, session, server;
	bool rate, bw, read, write, avg, min, max, mbs;
	unsigned int states; /* bits of enum node_state */
	unsigned int delay, count, concurrency, loop;
	unsigned int ask;     /* s, in which nodes have to answer */
	unsigned int timeout; /* s, of a session */
	unsigned int run;     /* s, that nodes are told with a batch */
	unsigned int test;    /* of a batch, from 1 on; 0: all */
	const char *batch, *from, *to, *distribute, *clean, *remove;
	const char *group, *nodes;
};

enum {
	OPT_FORCE = 256,
	OPT_WAIT,
	OPT_DELAY,
	OPT_COUNT,
	OPT_CONCURRENCY,
	OPT_LOOP,
	OPT_TEST,
	OPT_BATCH,
	OPT_FROM,
	OPT_TO,
	OPT_DISTRIBUTE,
	OPT_REFRESH,
	OPT_CLEAN,
	OPT_REMOVE,
	OPT_ALL,
	OPT_ACTIVE,
	OPT_BUSY,
	OPT_DOWN,
	OPT_UNKNOWN,
	OPT_ASK,
	OPT_TIMEOUT,
	OPT_RUN,
	OPT_SESSION,
	OPT_GROUP,
	OPT_NODES,
	OPT_SERVER,
	OPT_RATE,
	OPT_BW,
	OPT_READ,
	OPT_WRITE,
	OPT_AVG,
	OPT_MIN,
	OPT_MAX,
	OPT_MBS
};

/* Reads options, which may stand anywhere: OPT_* that @options have; from
 * optind on there are @min to @max words. 0, or OPTION_USAGE. */
int lst_words_take(struct lst_words *w, const struct option *options, int argc,
		   char **argv, int min, int max);
/* getopt has said that @word is none of @options: perhaps one of them was
 * meant. @command NULL: they are the program's. Returns OPTION_USAGE. */
int lst_bad_option(const char *command, const struct option *options,
		   const char *word);
/* Says what is wrong with a command. Returns OPTION_USAGE. */
int lst_usage(const char *command, const char *what);
/* Says why a command fails. Returns FAILED. */
int lst_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Is it one? 0, or FAILED. */
int lst_check_name(const char *what, const char *name);
#define LST_LABEL_SIZE 64

/* A session's name is a label: what others may read, and nothing else. 0, or
 * FAILED. */
int lst_check_label(const char *name);
/* A session's name, perhaps as a node has told it: what terminals do not print
 * becomes a question mark; with @json quotes and backslashes have another
 * backslash. Returns @text, of LST_LABEL_SIZE bytes. */
const char *lst_label(const char *name, bool json, char *text);

#endif
