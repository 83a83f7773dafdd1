/* SPDX-License-Identifier: BSD-3-Clause */
#include "option.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define YEAR_US (UINT64_C(366) * 86400 * 1000000)

int option_bad(const char *who, const char *option, const char *value,
	       const char *what)
{
	bool assigned = option[strlen(option) - 1] == '=';

	fprintf(stderr, assigned ? "%s: %s%s: %s\n" : "%s: --%s %s: %s\n", who,
		option, value, what);
	return OPTION_USAGE;
}

int option_number(const char *who, const char *option, const char *text,
		  unsigned int min, unsigned int max, unsigned int *value_p)
{
	unsigned long value;
	char range[64], *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	snprintf(range, sizeof(range), "a number from %u to %u is expected",
		 min, max);
	if (!isdigit((unsigned char)*text) || *end || errno || value < min ||
	    value > max)
		return option_bad(who, option, text, range);
	*value_p = (unsigned int)value;
	return 0;
}

struct unit {
	const char *name;
	double factor;
};

/* The factor of what is behind a number; 0: no such unit. */
static double unit_factor(const struct unit *units, const char *name)
{
	for (; units->name; units++)
		if (strcmp(units->name, name) == 0)
			return units->factor;
	return 0;
}

int option_size(const char *who, const char *option, const char *text,
		uint64_t min, uint64_t max, uint64_t *value_p)
{
	static const struct unit units[] = {
		{ "", 1 },	   { "k", 1u << 10 }, { "K", 1u << 10 },
		{ "M", 1u << 20 }, { "G", 1u << 30 }, { 0 },
	};
	unsigned long long value;
	uint64_t factor;
	char range[128], *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	factor = (uint64_t)unit_factor(units, end);
	snprintf(range, sizeof(range),
		 "a number from %" PRIu64 " to %" PRIu64
		 " is expected, or one with k, M or G",
		 min, max);
	if (!isdigit((unsigned char)*text) || errno || !factor ||
	    value > max / factor || value * factor < min)
		return option_bad(who, option, text, range);
	*value_p = value * factor;
	return 0;
}

/* A number that may have a fraction, but no sign and no exponent. */
static double take_decimal(const char *text, char **end_p)
{
	size_t length = strspn(text, "0123456789.");
	char number[64];

	*end_p = (char *)text + length;
	if (!isdigit((unsigned char)*text) || length >= sizeof(number))
		return -1;
	memcpy(number, text, length);
	number[length] = 0;
	if (strchr(number, '.') != strrchr(number, '.'))
		return -1;
	return strtod(number, NULL);
}

int option_rate(const char *who, const char *option, const char *text,
		double max, double *value_p)
{
	static const struct unit units[] = {
		{ "", 1 },    { "k", 1e3 }, { "K", 1e3 },
		{ "M", 1e6 }, { "G", 1e9 }, { 0 },
	};
	char range[128], *end;
	double value = take_decimal(text, &end) * unit_factor(units, end);

	if (value > 0 && value <= max) {
		*value_p = value;
		return 0;
	}
	snprintf(range, sizeof(range),
		 "a number above 0, at most %.0f, is expected, or one with "
		 "k or M",
		 max);
	return option_bad(who, option, text, range);
}

int option_time(const char *who, const char *option, const char *text,
		uint64_t min, uint64_t *us_p)
{
	static const struct unit units[] = {
		{ "", 1e6 },   { "us", 1 },	{ "ms", 1e3 }, { "s", 1e6 },
		{ "m", 60e6 }, { "h", 3600e6 }, { 0 },
	};
	char range[128], *end;
	double number = take_decimal(text, &end);
	double factor = unit_factor(units, end), value = number * factor;

	if (number >= 0 && factor > 0 && value >= (double)min &&
	    value <= (double)YEAR_US) {
		*us_p = (uint64_t)(value + 0.5);
		return 0;
	}
	snprintf(range, sizeof(range),
		 "a time %s 0, at most 366 days, is expected: seconds, or a "
		 "number with us, ms, s, m or h",
		 min ? "above" : "from");
	return option_bad(who, option, text, range);
}

int option_word(const char *who, const char *option, const char *text,
		const char *const *words, size_t n, const char *expected,
		unsigned int *index_p)
{
	char what[256];

	for (size_t i = 0; i < n; i++) {
		if (words[i] && strcmp(words[i], text) == 0) {
			*index_p = (unsigned int)i;
			return 0;
		}
	}
	snprintf(what, sizeof(what), "%s is expected", expected);
	return option_bad(who, option, text, what);
}

int option_path(const char *who, const char *option, const char *path,
		char **path_p)
{
	char *here, *text;

	if (!*path)
		return option_bad(who, option, "''", "a path is expected");
	here = *path == '/' ? NULL : getcwd(NULL, 0);
	if (*path != '/' && !here)
		return option_bad(who, option, path, strerror(errno));
	if (asprintf(&text, "%s%s%s", here ? here : "", here ? "/" : "", path) <
	    0)
		text = NULL;
	free(here);
	if (!text)
		return option_bad(who, option, path, strerror(ENOMEM));
	free(*path_p);
	*path_p = text;
	return 0;
}
