/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of command lines' options. A function that cannot read its value says
 * so on stderr, with the names of the program and the option, and returns
 * OPTION_USAGE; else 0.
 */
#ifndef TOOLS_OPTION_H
#define TOOLS_OPTION_H

#include <stddef.h>
#include <stdint.h>

#define OPTION_USAGE 2 /* exit status: the command line is wrong */

/* @option: without dashes; "size=" is no option, but what a word begins with.
 * Returns OPTION_USAGE. */
int option_bad(const char *who, const char *option, const char *value,
	       const char *what);

/* A number from @min to @max. */
int option_number(const char *who, const char *option, const char *text,
		  unsigned int min, unsigned int max, unsigned int *value_p);
/* A number with an optional suffix k, M or G (powers of 1024), from @min to
 * @max. */
int option_size(const char *who, const char *option, const char *text,
		uint64_t min, uint64_t max, uint64_t *value_p);
/* A number, which may have a fraction and a suffix k, M or G (powers of 1000),
 * above 0, to @max. */
int option_rate(const char *who, const char *option, const char *text,
		double max, double *value_p);
/* A time in seconds, or with a suffix us, ms, s, m or h, at least @min (0 or 1)
 * and at most 366 days, in microseconds. */
int option_time(const char *who, const char *option, const char *text,
		uint64_t min, uint64_t *us_p);
/* The index of @text in @words, n of them, which may have gaps; else says that
 * @expected is expected. */
int option_word(const char *who, const char *option, const char *text,
		const char *const *words, size_t n, const char *expected,
		unsigned int *index_p);
/* *@path_p, which is to be freed, becomes the absolute path: the program's
 * working directory may change. */
int option_path(const char *who, const char *option, const char *path,
		char **path_p);

#endif
