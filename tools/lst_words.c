/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_words.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lst_state.h"
#include "option.h"

int lst_usage(const char *command, const char *what)
{
	fprintf(stderr, WHO ": %s: %s\nSee '" WHO " --help'.\n", command, what);
	return OPTION_USAGE;
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

static int take_option(struct lst_words *w, int option, const char *value)
{
	switch (option) {
	case OPT_FORCE:
		w->force = true;
		return 0;
	case OPT_WAIT:
		w->wait = true;
		return 0;
	case OPT_DELAY:
		return option_number(WHO, "delay", value, 1, 60, &w->delay);
	case OPT_COUNT:
		return option_number(WHO, "count", value, 1, 1000000000,
				     &w->count);
	case OPT_CONCURRENCY:
		return option_number(WHO, "concurrency", value, 1, 1024,
				     &w->concurrency);
	case OPT_LOOP:
		return option_number(WHO, "loop", value, 1, INT32_MAX,
				     &w->loop);
	case OPT_BATCH:
		w->batch = value;
		return 0;
	case OPT_FROM:
		w->from = value;
		return 0;
	case OPT_TO:
		w->to = value;
		return 0;
	case OPT_DISTRIBUTE:
		w->distribute = value;
		return 0;
	case OPT_REFRESH:
		w->refresh = true;
		return 0;
	case OPT_CLEAN:
		w->clean = value;
		return 0;
	case OPT_REMOVE:
		w->remove = value;
		return 0;
	case OPT_ACTIVE:
		w->states |= 1u << NODE_ACTIVE;
		return 0;
	case OPT_BUSY:
		w->states |= 1u << NODE_BUSY;
		return 0;
	case OPT_DOWN:
		w->states |= 1u << NODE_DOWN;
		return 0;
	case OPT_UNKNOWN:
		w->states |= 1u << NODE_UNKNOWN;
		return 0;
	}
	fputs("See '" WHO " --help'.\n", stderr); /* getopt said why */
	return OPTION_USAGE;
}

int lst_words_take(struct lst_words *w, const struct option *options, int argc,
		   char **argv, int min, int max)
{
	const char *command = argv[0];
	char program[] = WHO;
	int option, status = 0;

	*w = (struct lst_words){ .delay = 5, .concurrency = 1 };
	argv[0] = program;
	optind = 0;
	while (!status &&
	       (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		status = take_option(w, option, optarg);
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
