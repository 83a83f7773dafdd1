/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_words.h"

#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "lst_state.h"
#include "tools/common/nearest.h"
#include "tools/common/option.h"

static int see_help(const char *command)
{
	fprintf(stderr, "See '" WHO " --help%s%s'.\n", command ? " " : "",
		command ? command : "");
	return OPTION_USAGE;
}

int lst_usage(const char *command, const char *what)
{
	fprintf(stderr, WHO ": %s: %s\n", command, what);
	return see_help(command);
}

int lst_bad_option(const char *command, const struct option *options,
		   const char *word)
{
	struct nearest near;

	if (!optopt && strncmp(word, "--", 2) == 0) {
		nearest_init(&near, word + 2);
		for (; options->name; options++)
			nearest_try(&near, options->name);
		nearest_say(&near, "--", stderr);
	}
	return see_help(command);
}

int lst_fail(const char *fmt, ...)
{
	va_list ap;

	fputs(WHO ": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return FAILED;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define AT(member)   offsetof(struct lst_words, member)

static const struct {
	int option;
	size_t at; /* a bool */
} flags[] = {
	{ OPT_FORCE, AT(force) },     { OPT_WAIT, AT(wait) },
	{ OPT_REFRESH, AT(refresh) }, { OPT_SESSION, AT(session) },
	{ OPT_SERVER, AT(server) },   { OPT_RATE, AT(rate) },
	{ OPT_BW, AT(bw) },	      { OPT_READ, AT(read) },
	{ OPT_WRITE, AT(write) },     { OPT_AVG, AT(avg) },
	{ OPT_MIN, AT(min) },	      { OPT_MAX, AT(max) },
	{ OPT_MBS, AT(mbs) },
};

static const struct {
	int option;
	size_t at; /* a const char * */
} texts[] = {
	{ OPT_BATCH, AT(batch) }, { OPT_FROM, AT(from) },
	{ OPT_TO, AT(to) },	  { OPT_DISTRIBUTE, AT(distribute) },
	{ OPT_CLEAN, AT(clean) }, { OPT_REMOVE, AT(remove) },
	{ OPT_GROUP, AT(group) }, { OPT_NODES, AT(nodes) },
};

static const struct {
	int option;
	const char *name;
	unsigned int min, max;
	size_t at; /* an unsigned int */
} numbers[] = {
	{ OPT_DELAY, "delay", 1, 60, AT(delay) },
	{ OPT_COUNT, "count", 1, 1000000000, AT(count) },
	{ OPT_CONCURRENCY, "concurrency", 1, 1024, AT(concurrency) },
	{ OPT_LOOP, "loop", 1, INT32_MAX, AT(loop) },
	{ OPT_ASK, "timeout", 3, 60, AT(ask) },
	{ OPT_TIMEOUT, "timeout", 0, 86400, AT(timeout) },
	{ OPT_RUN, "timeout", 0, INT32_MAX, AT(run) },
	{ OPT_TEST, "test", 1, STATE_TESTS, AT(test) },
};

static const struct {
	int option;
	unsigned int states;
} states[] = {
	{ OPT_ALL, (1u << NODE_STATES) - 1 }, { OPT_ACTIVE, 1u << NODE_ACTIVE },
	{ OPT_BUSY, 1u << NODE_BUSY },	      { OPT_DOWN, 1u << NODE_DOWN },
	{ OPT_UNKNOWN, 1u << NODE_UNKNOWN },
};

static int take_option(struct lst_words *w, int option, const char *value)
{
	char *words = (char *)w;

	for (size_t i = 0; i < COUNT(flags); i++)
		if (flags[i].option == option) {
			*(bool *)(words + flags[i].at) = true;
			return 0;
		}
	for (size_t i = 0; i < COUNT(states); i++)
		if (states[i].option == option) {
			w->states |= states[i].states;
			return 0;
		}
	for (size_t i = 0; i < COUNT(texts); i++)
		if (texts[i].option == option) {
			*(const char **)(words + texts[i].at) = value;
			return 0;
		}
	for (size_t i = 0; i < COUNT(numbers); i++)
		if (numbers[i].option == option)
			return option_number(
				WHO, numbers[i].name, value, numbers[i].min,
				numbers[i].max,
				(unsigned int *)(words + numbers[i].at));
	return OPTION_USAGE; /* is in no table */
}

int lst_words_take(struct lst_words *w, const struct option *options, int argc,
		   char **argv, int min, int max)
{
	const char *command = argv[0];
	char program[] = WHO;
	int option, status = 0;

	*w = (struct lst_words){
		.delay = 5, .concurrency = 1, .ask = 10, .timeout = 300
	};
	argv[0] = program;
	optind = 0;
	while (!status &&
	       (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		status = option == '?' ? lst_bad_option(command, options,
							argv[optind - 1])
				       : take_option(w, option, optarg);
	argv[0] = (char *)command;
	if (status)
		return status;
	if (argc - optind < min)
		return lst_usage(command, "arguments are missing");
	if (argc - optind > max)
		return lst_usage(command, "too many arguments");
	return 0;
}

int lst_check_name(const char *what, const char *name)
{
	if (state_name_good(name))
		return 0;
	return lst_fail("%s '%s': 1 to 31 letters, digits, or one of . _ - are "
			"expected",
			what, name);
}

/* Whatever the locale: it goes to other nodes. */
static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

int lst_check_label(const char *name)
{
	size_t length = strlen(name), i = 0;

	while (i < length && is_printable(name[i]))
		i++;
	if (length && length < STATE_NAME_SIZE && i == length)
		return 0;
	return lst_fail("a session's name: 1 to 31 printable characters of "
			"ASCII are expected");
}

const char *lst_label(const char *name, bool json, char *text)
{
	size_t n = 0;

	for (size_t i = 0; i < STATE_NAME_SIZE - 1 && name[i]; i++) {
		if (json && (name[i] == '"' || name[i] == '\\'))
			text[n++] = '\\';
		text[n++] = is_printable(name[i]) ? name[i] : '?';
	}
	text[n] = '\0';
	return text;
}
